fn call(bytes: &[u8]) -> usize {
    through_it(bytes).unwrap_or(0)
}

fn through_it(bytes: &[u8]) -> Result<usize, apr_quant::Error> {
    use apr_quant::{ErrorMeter, Quantizer, byte_len, dequantize, dtypes};

    // The type is not known here: the code of every one of them stays in the program.
    let Some(dtype) = dtypes().nth(bytes.len()) else { return Ok(0) };
    let (mut values, mut blocks) = ([0.0f32; 256], [0u8; 2048]);
    for (value, byte) in values.iter_mut().zip(bytes) {
        *value = f32::from(*byte);
    }
    let weights = [1.0; 256];
    let Some(output) = blocks.get_mut(..byte_len(dtype, 256, 1)? as usize) else { return Ok(0) };
    Quantizer::new(dtype)?.importance(&weights).quantize(&values, 256, output)?;
    let mut back = [0.0f32; 256];
    dequantize(dtype, output, &mut back)?;
    let mut meter = ErrorMeter::new();
    meter.add_blocks(dtype, &values, output)?;
    Ok(meter.report().rmse as usize + back[0] as usize)
}
