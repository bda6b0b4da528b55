//! Blocks that only importance leads to.

use apr_quant::{Dtype, Quantizer};

/// Element and hundred-millionths: all others are zeros.
const NUMBERS: [(usize, i32); 15] = [
    (12, 126),
    (39, -7),
    (61, -262),
    (89, 202),
    (96, 149),
    (100, 47),
    (105, 28),
    (117, -130),
    (130, -18),
    (181, -38),
    (190, 80),
    (199, -131),
    (202, -105),
    (241, -38),
    (246, 110),
];

/// A digit for each element.
const IMPORTANCE: &str = "\
    020913120001300009100000203000000010010910120112900002100400200001024511309000091041000110021911\
    105200929291990130101245110000102110001023002000110002020210100001110401200101013102949000030010\
    0120071001302300400310010015200900000101001010900110010000002001";

/// What libggml-base 0.13.1 makes of it.
const Q4_K: &str = "\
    000000001dffaebf0040c07d842bf120e0e0e0e0e0e0e0e0e0e0e0e0efe0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e000e0e0\
    f0707070a070707070907070707070707070707070007070707f7070707070705f5f505f5f5f5f5f5f5f5f5f5f5f5f5f\
    5f5f5f5f5f0f5f5f5f5f5f5f5f5fff5f4e4e4e4e4e4e4e404e4e434e4e4e4e4e4e0e4e4e4e4eee4e4e4e4e4e4e4e4e4e";

const Q5_K: &str = "\
    000001001b6f6cbf003f802754ba7cb05a5242525a525212525a125253525252525252525252d2525256525252507252\
    e0e0e0e0e0e0e0d0e0e0e0e0efe0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e000e0e0e0e0e0e030e0e0e0e010e0e0e0e0e0e0\
    e0e0e0e0e000e0e0e0efe0e0e0e0e0e0afafa0afafafafafafafafafafafafafafafafafaf0fafafafafafafafafffaf\
    8f8f8f8f8f8f8f808f8f868f8f8f8f8f8f0f8f8f8f8fef8f8f8f8f8f8f8f8f8f";

/// With importance, the search ends with a scale of a wrong sign in one group: 255 in eight bits. The reference packs it
/// into `Q4_K` as it is, so that its upper bits change the scale beside it, and clamps it to 63 before it packs `Q5_K`.
#[test]
fn a_group_whose_scale_has_a_wrong_sign_is_packed_as_by_the_reference() {
    let mut values = [0.0; 256];
    for (element, number) in NUMBERS {
        values[element] = (f64::from(number) * 1e-8) as f32;
    }
    let importance: Vec<f32> = IMPORTANCE.bytes().map(|digit| f32::from(digit - b'0')).collect();
    for (dtype, expected) in [(Dtype::Q4_K, Q4_K), (Dtype::Q5_K, Q5_K)] {
        let mut bytes = vec![0; expected.len() / 2];
        let quantizer = Quantizer::new(dtype).unwrap().importance(&importance);
        quantizer.quantize(&values, 256, &mut bytes).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected, "{dtype}");
    }
}
