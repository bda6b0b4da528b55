//! The lowest and the highest codes of the formats, as blocks in which every code is one of them.

use tensor_dtype::Dtype;

/// Bytes of the blocks of one piece, and of one scale before them.
pub(super) const BUFFER_LEN: usize = 256 * 8 + 4;

/// One end of the range of codes.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Low,
    High,
}

/// Byte ranges of the codes in a block, and the bytes of all-lowest and all-highest codes.
#[derive(Clone, Copy, Debug)]
struct Codes {
    start: usize,
    end: usize,
    low: u8,
    high: u8,
}

const fn codes(start: usize, end: usize, low: u8, high: u8) -> Option<Codes> {
    Some(Codes { start, end, low, high })
}

/// The reference never writes -128 in 8-bit formats, and writers of `.apr` files never write -8 in 4-bit ones; the range is
/// that of written codes.
const fn codes_of(dtype: Dtype) -> Option<Codes> {
    match dtype {
        Dtype::Q4_0 | Dtype::IQ4_NL => codes(2, 18, 0x00, 0xff),
        Dtype::Q4_1 => codes(4, 20, 0x00, 0xff),
        Dtype::Q5_0 => codes(2, 22, 0x00, 0xff),
        Dtype::Q5_1 => codes(4, 24, 0x00, 0xff),
        Dtype::Q8_0 => codes(2, 34, 0x81, 0x7f),
        Dtype::Q8_1 => codes(4, 36, 0x81, 0x7f),
        Dtype::Q2_K => codes(16, 80, 0x00, 0xff),
        Dtype::Q3_K => codes(0, 96, 0x00, 0xff),
        Dtype::Q4_K => codes(16, 144, 0x00, 0xff),
        Dtype::Q5_K => codes(16, 176, 0x00, 0xff),
        Dtype::Q6_K => codes(0, 192, 0x00, 0xff),
        Dtype::Q8_K => codes(4, 260, 0x81, 0x7f),
        Dtype::IQ4_XS => codes(8, 136, 0x00, 0xff),
        Dtype::TQ1_0 => codes(0, 52, 0x00, 0xff),
        // The digits 0 and 2, four times each: no writer uses the fourth code.
        Dtype::TQ2_0 => codes(0, 64, 0x00, 0xaa),
        Dtype::Q2_0 => codes(2, 18, 0x00, 0xaa),
        Dtype::Q1_0 => codes(2, 18, 0x00, 0xff),
        Dtype::MXFP4 => codes(1, 17, 0xff, 0x77),
        Dtype::NVFP4 => codes(4, 36, 0xff, 0x77),
        Dtype::AprQ4 => codes(2, 18, 0x00, 0xff),
        Dtype::AprQ8 => codes(0, 1, 0x81, 0x7f),
        _ => None,
    }
}

/// Whether the codes of a format are ordered.
pub(super) const fn has(dtype: Dtype) -> bool {
    codes_of(dtype).is_some()
}

/// Replaces every code of whole blocks with the lowest or the highest one.
pub(super) fn set_codes(dtype: Dtype, blocks: &mut [u8], end: End) {
    let Some(codes) = codes_of(dtype) else { return };
    let code = match end {
        End::Low => codes.low,
        End::High => codes.high,
    };
    for block in blocks.chunks_exact_mut(dtype.block_bytes()) {
        block[codes.start..codes.end].fill(code);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::dtypes;
    use crate::error_metrics::PIECE;
    use crate::quantizer::dequantize;

    #[test]
    fn every_format_fits_into_the_room() {
        for dtype in dtypes() {
            assert_eq!(PIECE % dtype.block_len(), 0);
            assert!(PIECE / dtype.block_len() * dtype.block_bytes() + 4 <= BUFFER_LEN);
            if let Some(codes) = codes_of(dtype) {
                assert!(codes.start < codes.end && codes.end <= dtype.block_bytes(), "{dtype}");
            }
        }
    }

    /// Whatever the codes, no value of a block with small scales is beyond its range.
    #[test]
    fn no_code_reaches_beyond_the_ends() {
        let mut state = 7u32;
        for dtype in dtypes() {
            let Some(codes) = codes_of(dtype) else { continue };
            let (len, bytes) = (dtype.block_len().max(2), dtype.block_bytes());
            let head = if dtype == Dtype::AprQ8 { 4 } else { 0 };
            let mut blocks = [0; 300];
            let blocks = &mut blocks[..head + len / dtype.block_len() * bytes];
            // A repeated byte is a small scale in every float type.
            blocks.fill(0x2f);
            let mut values = [[0.0; 256]; 3];
            let [low, some, high] = &mut values;
            set_codes(dtype, &mut blocks[head..], End::Low);
            dequantize(dtype, blocks, &mut low[..len]).unwrap();
            set_codes(dtype, &mut blocks[head..], End::High);
            dequantize(dtype, blocks, &mut high[..len]).unwrap();
            assert!(low[..len].iter().zip(&high[..len]).all(|(low, high)| low != high), "{dtype}");
            for _ in 0..200 {
                for block in blocks[head..].chunks_exact_mut(bytes) {
                    for byte in &mut block[codes.start..codes.end] {
                        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                        *byte = (state >> 24) as u8;
                        if matches!(dtype, Dtype::TQ2_0 | Dtype::Q2_0) {
                            *byte &= 0xaa;
                        } else if *byte == 0x80 {
                            *byte = 0x81;
                        }
                    }
                }
                dequantize(dtype, blocks, &mut some[..len]).unwrap();
                for ((low, some), high) in low.iter().zip(&*some).zip(&*high) {
                    let (low, high) = if low < high { (low, high) } else { (high, low) };
                    assert!(low <= some && some <= high, "{dtype}: {low} {some} {high}");
                }
            }
        }
    }
}
