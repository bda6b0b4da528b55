//! Lengths that do not fit.

use apr_quant::{Dtype, Quantizer, dequantize};

fn quantize(dtype: Dtype, count: usize, row_len: usize, bytes: usize) -> Result<(), &'static str> {
    let mut out = vec![0; bytes];
    let quantizer = Quantizer::new(dtype).unwrap();
    quantizer.quantize(&vec![1.0; count], row_len, &mut out).map_err(|error| error.code())
}

#[test]
fn lengths_must_fit_exactly() {
    assert_eq!(quantize(Dtype::Q8_0, 64, 32, 68), Ok(()));
    assert_eq!(quantize(Dtype::Q8_0, 64, 64, 68), Ok(()));
    assert_eq!(quantize(Dtype::Q8_0, 64, 64, 67), Err("q-output-length"));
    assert_eq!(quantize(Dtype::Q8_0, 64, 64, 69), Err("q-output-length"));
    assert_eq!(quantize(Dtype::Q8_0, 64, 48, 68), Err("q-values-length"));
    assert_eq!(quantize(Dtype::Q8_0, 64, 16, 68), Err("q-row-length"));
    assert_eq!(quantize(Dtype::Q4_K, 256, 128, 144), Err("q-row-length"));
    assert_eq!(quantize(Dtype::Q8_0, 64, 0, 68), Err("q-values-length"));
    assert_eq!(quantize(Dtype::Q8_0, 0, 0, 0), Ok(()));
    assert_eq!(quantize(Dtype::Q8_0, 0, 32, 0), Ok(()));
    assert_eq!(quantize(Dtype::F16, 3, 1, 6), Ok(()));
}

#[test]
fn blocks_must_be_those_of_the_elements() {
    let dequantize = |dtype, bytes: usize, count: usize| {
        dequantize(dtype, &vec![0; bytes], &mut vec![0.0; count]).map_err(|error| error.code())
    };
    assert_eq!(dequantize(Dtype::Q4_0, 18, 32), Ok(()));
    assert_eq!(dequantize(Dtype::Q4_0, 17, 32), Err("q-blocks-length"));
    assert_eq!(dequantize(Dtype::Q4_0, 36, 32), Err("q-blocks-length"));
    assert_eq!(dequantize(Dtype::Q4_0, 18, 31), Err("q-row-length"));
    assert_eq!(dequantize(Dtype::Q4_0, 0, 0), Ok(()));
}

#[test]
fn weights_must_be_one_per_column_and_not_negative() {
    let quantize = |weights: &[f32]| {
        let quantizer = Quantizer::new(Dtype::Q4_0).unwrap().importance(weights);
        quantizer.quantize(&[1.0; 64], 32, &mut [0; 36]).map_err(|error| error.code())
    };
    let mut weights = [1.0; 32];
    assert_eq!(quantize(&weights), Ok(()));
    assert_eq!(quantize(&[1.0; 64]), Err("q-importance-length"));
    assert_eq!(quantize(&[]), Err("q-importance-length"));
    for bad in [-1.0, f32::NAN, f32::INFINITY] {
        weights[31] = bad;
        assert_eq!(quantize(&weights), Err("q-importance-value"), "{bad}");
    }
    assert_eq!(quantize(&[0.0; 32]), Ok(()));
}
