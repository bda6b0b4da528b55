fn call(bytes: &[u8]) -> usize {
    through_it(bytes).unwrap_or(0)
}

fn through_it(bytes: &[u8]) -> Result<usize, apr_quant::Error> {
    use apr_quant::{BlockFormat, ErrorMeter, GgmlType, Quantizer, dequantize};

    // The format is not known here: every one of them stays in the program.
    let format = GgmlType(bytes.len() as u32).format()?;
    let (mut values, mut blocks) = ([0.0f32; 256], [0u8; 2048]);
    for (value, byte) in values.iter_mut().zip(bytes) {
        *value = f32::from(*byte);
    }
    let weights = [1.0; 256];
    let Some(room) = blocks.get_mut(..format.byte_len(256, 1)? as usize) else { return Ok(0) };
    Quantizer::new(format)?.importance(&weights).quantize(&values, 256, room)?;
    let mut back = [0.0f32; 256];
    dequantize(format, room, &mut back)?;
    let mut meter = ErrorMeter::new();
    meter.add_blocks(format, &values, room)?;
    Ok(meter.report().rmse as usize + BlockFormat::ALL.len() + back[0] as usize)
}
