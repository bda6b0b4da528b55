//! Any numbers as blocks of any format, with any importance: refused by name, or blocks whose numbers are close; any bytes as
//! blocks: numbers, without a panic; the same with all instructions; lengths that do not fit: refused.

#![no_main]

use apr_fuzz::Choices;
use apr_quant::{
    Dtype, ErrorKind, ErrorMeter, NonFinite, Quantizer, SimdLevel, dequantize, dequantize_on, dtypes,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let choices = &mut Choices::new(input);
    let formats: Vec<Dtype> = dtypes().collect();
    let format = formats[choices.below(formats.len())];
    let shape = choices.byte();
    let body = input.get(2..).unwrap_or_default();
    any_bytes(format, body);
    match Quantizer::new(format) {
        Ok(quantizer) => any_numbers(format, quantizer, shape, body),
        Err(error) => assert_eq!(error.code(), "q-not-quantizable"),
    }
});

/// Whole blocks of the input, and a byte too many or too few.
fn any_bytes(format: Dtype, body: &[u8]) {
    let head = if format == Dtype::AprQ8 { 4.min(body.len()) } else { 0 };
    let n_blocks = (body.len() - head) / format.block_bytes();
    let mut values = vec![0.0; n_blocks * format.block_len()];
    let bytes = &body[..head + n_blocks * format.block_bytes()];
    let fits = dequantize(format, bytes, &mut values);
    for level in SimdLevel::all() {
        let mut again = vec![0.5; values.len()];
        assert_eq!(dequantize_on(level, format, bytes, &mut again).is_ok(), fits.is_ok());
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        assert!(fits.is_err() || again.iter().zip(&values).all(same), "{format}: {level:?}");
    }
    assert!(fits.is_ok() || format == Dtype::AprQ8 && values.is_empty(), "{fits:?}");
    if fits.is_ok() {
        let mut meter = ErrorMeter::new();
        assert!(meter.add_blocks(format, &values, bytes).is_ok());
        let report = meter.report();
        assert_eq!((report.count, report.max_error), (values.len() as u64, 0.0));
        assert_eq!(report.non_finite_originals, report.non_finite_decoded);
        assert!(report.clipped.unwrap_or(0) <= report.saturated.unwrap_or(0));
    }
    let longer = [bytes, &[0]].concat();
    let refused = dequantize(format, &longer, &mut values).map_err(|error| *error.kind());
    assert!(matches!(refused, Err(ErrorKind::BlocksLength { .. })), "{refused:?}");
    if let Some((_, shorter)) = bytes.split_last().filter(|_| fits.is_ok()) {
        assert!(dequantize(format, shorter, &mut values).is_err());
    }
}

fn any_numbers(format: Dtype, quantizer: Quantizer<'_>, shape: u8, body: &[u8]) {
    let len = format.block_len();
    let row_len = len * usize::from(1 + shape % 3);
    let numbers = body.as_chunks().0.iter().copied().map(f32::from_le_bytes);
    let mut values: Vec<f32> = numbers.clone().map(|value| spread(value, shape)).collect();
    // Few bytes are enough for a row: the rest repeats them, a little smaller each time.
    for idx in values.len()..row_len {
        values.push(values.get(idx.wrapping_sub(7)).map_or(0.5, |value| value * 0.875));
    }
    values.truncate(values.len() / row_len * row_len);
    let weights: Vec<f32> =
        body.iter().rev().cycle().take(row_len).map(|byte| f32::from(*byte) / 16.0).collect();
    let is_weighted = shape & 0x40 != 0 && weights.len() == row_len;
    let quantizer = if is_weighted { quantizer.importance(&weights) } else { quantizer };

    let n_rows = (values.len() / row_len) as u64;
    let bytes = format.byte_len_of_rows(row_len as u64, n_rows).expect("whole blocks") as usize;
    let mut blocks = vec![0x55; bytes + 1];
    let longer = quantizer.quantize(&values, row_len, &mut blocks).map_err(|error| *error.kind());
    assert!(matches!(longer, Err(ErrorKind::OutputLength { .. })), "{longer:?}");
    // What the reference does with anything at all: no panic, whatever it is.
    let reference =
        quantizer.non_finite(NonFinite::AsReference).quantize(&values, row_len, &mut blocks[..bytes]);
    let as_reference = blocks.clone();
    let result = quantizer.quantize(&values, row_len, &mut blocks[..bytes]).map_err(|error| *error.kind());
    for level in SimdLevel::all() {
        let mut again = vec![0xaa; bytes];
        let same = quantizer.simd(level).quantize(&values, row_len, &mut again);
        assert_eq!(same.map_err(|error| *error.kind()), result, "{format}: {level:?}");
        assert!(result.is_err() || again == blocks[..bytes], "{format}: {level:?}");
    }
    match result {
        Ok(()) => {
            assert!(values.iter().all(|value| value.is_finite()));
            assert!(
                reference.is_ok() && as_reference == blocks,
                "{format}: what is not refused is the reference's"
            );
        }
        Err(kind) => return refused_rightly(&values, format, is_weighted, kind),
    }
    let mut decoded = vec![f32::NAN; values.len()];
    dequantize(format, &blocks[..bytes], &mut decoded).expect("what was written");
    let (relative, absolute) = bound(format, is_weighted);
    // One scale for a whole tensor of AprQ8, one for each block of the others.
    let scope = if format == Dtype::AprQ8 { values.len().max(1) } else { len };
    for (values, decoded) in values.chunks(scope).zip(decoded.chunks(scope)) {
        let largest = values.iter().fold(0.0, |max: f64, value| max.max(f64::from(value.abs())));
        for (value, decoded) in values.iter().zip(decoded) {
            let error = (f64::from(*value) - f64::from(*decoded)).abs();
            assert!(
                error <= relative * largest + absolute,
                "{format}: {value} became {decoded}, beside {largest}"
            );
        }
    }
}

/// Numbers of a size that most blocks hold, and as they are.
fn spread(value: f32, shape: u8) -> f32 {
    match shape & 0x30 {
        0x00 => value,
        // Exponents from -16 to 15.
        0x10 => f32::from_bits(value.to_bits() & 0x8fff_ffff | 0x3000_0000),
        0x20 => f32::from_bits(value.to_bits() & 0x87ff_ffff | 0x3800_0000),
        _ => (value.to_bits() % 512) as f32 - 256.0,
    }
}

fn refused_rightly(values: &[f32], format: Dtype, is_weighted: bool, kind: ErrorKind) {
    match kind {
        ErrorKind::NonFinite { element } => {
            let (before, from) = values.split_at(element as usize);
            assert!(!from[0].is_finite() && before.iter().all(|value| value.is_finite()));
        }
        ErrorKind::ScaleTooLarge { dtype: named, element } => {
            // A search under odd weights may go far; a scale never leaves `f16` for numbers below one.
            assert!(named == format && values[element as usize].abs() > 1.0, "{}", values[element as usize]);
        }
        ErrorKind::ImportanceZero { dtype: named, element } => {
            assert!(is_weighted && named == format && values[element as usize].is_finite());
        }
        ErrorKind::ScaleTooSmall { dtype: named, element } => {
            let value = values[element as usize].abs();
            // The inverse of a step is infinite below 2.94e-39. The step may be a 31st of a span, the span a 2^24th of the number.
            assert!(named == format && value > 0.0 && value < 1.6e-30, "{value}");
        }
        kind => panic!("{kind}"),
    }
}

/// How far a decoded number may be off: a part of the largest of its block, and what `f16` scales lose near zero.
fn bound(format: Dtype, is_weighted: bool) -> (f64, f64) {
    let half = 2f64.powi(-24);
    match format {
        Dtype::F32 | Dtype::F64 => (0.0, 0.0),
        Dtype::F16 => (2f64.powi(-11), half),
        Dtype::Bf16 => (2f64.powi(-8), 2f64.powi(-133)),
        Dtype::Q8_0 | Dtype::Q8_1 => (0.0046, 127.0 * half),
        Dtype::Q8_K | Dtype::AprQ8 => (0.004, 2f64.powi(-126)),
        Dtype::MXFP4 => (0.26, 2f64.powi(-126)),
        Dtype::TQ1_0 | Dtype::TQ2_0 | Dtype::Q2_0 => (0.501, half),
        // Small numbers have no scale, large ones are cut.
        Dtype::NVFP4 => (1.0, 0.0),
        Dtype::Q1_0 => (2.001, half),
        Dtype::AprQ4 => (0.126, 8.0 * half),
        Dtype::Q4_0 if !is_weighted => (0.126, 8.0 * half),
        Dtype::Q5_0 if !is_weighted => (0.0635, 16.0 * half),
        Dtype::Q4_1 if !is_weighted => (0.069, 16.0 * half),
        Dtype::Q5_1 if !is_weighted => (0.035, 32.0 * half),
        // The line goes through the weighted mean of numbers and codes. Two neighbouring codes may stand for numbers two steps apart:
        // its slope is at most twice the step, and 31 codes from the mean twice the span, which is twice the largest number.
        Dtype::Q4_1 | Dtype::Q5_1 => (6.5, 4096.0 * half),
        // Searches weigh errors: single ones may be as large as the numbers.
        _ => (4.0, 4096.0 * half),
    }
}
