//! Quantizes the rows of a tensor to 4 bits per value, dequantizes them and measures the error.

use core::error::Error;

use apr_quant::{Dtype, Quantizer, dequantize, measure_error};

fn main() -> Result<(), Box<dyn Error>> {
    // Four rows of 256 values.
    let (rows, row_len) = (4, 256);
    let values: Vec<f32> = (0..rows * row_len).map(|idx| (idx as f32 * 0.37).sin()).collect();

    for dtype in [Dtype::Q8_0, Dtype::Q4_K] {
        let mut blocks = vec![0; dtype.byte_len(&[rows, row_len])? as usize];
        Quantizer::new(dtype)?.quantize(&values, row_len, &mut blocks)?;

        let mut decoded = vec![0.0; values.len()];
        dequantize(dtype, &blocks, &mut decoded)?;
        let report = measure_error(&values, &decoded)?;
        let bits = 8.0 * blocks.len() as f64 / values.len() as f64;
        println!("{dtype}: {bits:.1} bits per value, relative RMSE {:.2} %", 100.0 * report.relative_rmse());
        assert!(report.relative_rmse() < 0.1);
    }
    Ok(())
}

#[test]
fn runs() {
    main().expect("the example succeeds");
}
