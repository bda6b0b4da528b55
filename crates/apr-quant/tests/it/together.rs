//! All cores, and products.

#[cfg(feature = "rayon")]
use apr_quant::dequantize_parallel;
use apr_quant::{Dtype, Quantizer, SimdLevel, dequantize, dot, dot_on, dtypes};

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|idx| ((idx * 7919 % 1009) as f32 - 504.0) / 300.0).collect()
}

fn encoded() -> impl Iterator<Item = (Dtype, Quantizer<'static>)> {
    dtypes().filter_map(|dtype| Some((dtype, Quantizer::new(dtype).ok()?)))
}

#[cfg(feature = "rayon")]
#[test]
fn all_cores_give_the_same_bytes() {
    let values = numbers(256 * 700);
    let weights = numbers(256).iter().map(|weight| weight.abs()).collect::<Vec<_>>();
    for (dtype, quantizer) in encoded() {
        let len = usize::try_from(dtype.byte_len_of_rows(256, 700).unwrap()).unwrap();
        for quantizer in [quantizer, quantizer.importance(&weights)] {
            let (mut one, mut all) = (vec![0; len], vec![0; len]);
            quantizer.quantize(&values, 256, &mut one).unwrap();
            quantizer.quantize_parallel(&values, 256, &mut all).unwrap();
            assert_eq!(one, all, "{dtype}");
            let (mut back, mut parallel) = (vec![0.0; values.len()], vec![0.0; values.len()]);
            dequantize(dtype, &one, &mut back).unwrap();
            dequantize_parallel(dtype, &one, &mut parallel).unwrap();
            assert_eq!(back, parallel, "{dtype}");
        }
    }
}

#[cfg(feature = "rayon")]
#[test]
fn all_cores_name_the_first_element() {
    let mut values = numbers(256 * 700);
    for place in [170_001, 100_003, 140_000] {
        values[place] = f32::NAN;
    }
    let mut out = vec![0; values.len() / 32 * 34];
    let quantizer = Quantizer::new(Dtype::Q8_0).unwrap();
    let error = quantizer.quantize_parallel(&values, 256, &mut out).unwrap_err();
    assert_eq!(Err(error), quantizer.quantize(&values, 256, &mut out));
    assert_eq!(error_code(quantizer.quantize_parallel(&values, 256, &mut out[1..])), "q-output-length");
    assert_eq!(error_code(dequantize_parallel(Dtype::Q8_0, &out[1..], &mut values)), "q-blocks-length");
}

#[cfg(feature = "rayon")]
fn error_code(result: Result<(), apr_quant::Error>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn a_product_is_sixteen_sums_of_the_values() {
    let x = numbers(512 + 256);
    for (dtype, quantizer) in encoded().filter(|(dtype, _)| *dtype != Dtype::AprQ8) {
        let count = if dtype.block_len() == 1 { x.len() - 11 } else { x.len() };
        let values: Vec<f32> = x[..count].iter().map(|x| x * 0.7 + 0.1).collect();
        let mut row = vec![0; dtype.byte_len_of_rows(count as u64, 1).unwrap().try_into().unwrap()];
        quantizer.quantize(&values, count, &mut row).unwrap();
        let mut back = vec![0.0; count];
        dequantize(dtype, &row, &mut back).unwrap();
        let mut sums = [0.0_f32; 16];
        for (idx, (value, x)) in back.iter().zip(&x).enumerate() {
            sums[idx % 16] += value * x;
        }
        for apart in [8, 4, 2, 1] {
            for idx in 0..apart {
                sums[idx] += sums[idx + apart];
            }
        }
        for level in SimdLevel::all() {
            let product = dot_on(level, dtype, &row, &x[..count]).unwrap();
            assert_eq!(product.to_bits(), sums[0].to_bits(), "{dtype} {level:?}");
        }
    }
}

#[test]
fn products_of_other_lengths_are_refused() {
    let code =
        |bytes, count| dot(Dtype::Q4_0, &vec![0; bytes], &vec![0.0; count]).map_err(|error| error.code());
    assert_eq!(code(18, 32), Ok(0.0));
    assert_eq!(code(18, 31), Err("q-row-length"));
    assert_eq!(code(18, 64), Err("q-blocks-length"));
    assert_eq!(code(0, 0), Ok(0.0));
    assert_eq!(dot(Dtype::AprQ8, &[0; 5], &[0.0]).unwrap_err().code(), "q-not-quantizable");
}
