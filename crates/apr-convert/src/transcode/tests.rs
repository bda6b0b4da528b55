//! What is made of tensors in pieces, beside the whole.

use apr_quant::dequantize;

use super::*;

/// Values that are difficult for every type, but within the range of each.
fn numbers(count: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| next() + next() + next()).collect()
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn made(transcoder: &Transcoder<'_>, source: &[u8]) -> (Vec<u8>, Option<ErrorReport>, u64) {
    let (mut out, mut consumed) = (Vec::new(), 0);
    let read = |offset: u64, piece: &mut [u8]| -> Result<(), Error> {
        piece.copy_from_slice(&source[offset as usize..][..piece.len()]);
        Ok(())
    };
    let report = transcoder.run(read, |piece| {
        out.extend_from_slice(piece.bytes);
        consumed += piece.consumed;
        Ok::<(), Error>(())
    });
    let mut again = Vec::new();
    let shared = transcoder.run_shared(read, |piece| {
        again.extend_from_slice(piece.bytes);
        Ok::<(), Error>(())
    });
    let report = report.unwrap();
    assert!(again == out && shared.unwrap() == report);
    (out, report, consumed)
}

fn at_once(dtype: Dtype, values: &[f32], row_len: usize) -> Vec<u8> {
    let rows = values.len() / row_len;
    let mut out = vec![0; dtype.byte_len_of_rows(row_len as u64, rows as u64).unwrap() as usize];
    Quantizer::new(dtype).unwrap().quantize(values, row_len, &mut out).unwrap();
    out
}

#[test]
fn pieces_give_the_bytes_of_the_whole() {
    // More than a piece, and the last one short.
    let (rows, columns) = (1100, 256);
    let values = numbers(rows * columns);
    let source = bytes_of(&values);
    for dtype in [Dtype::Q8_0, Dtype::Q4_0, Dtype::F16, Dtype::AprQ4, Dtype::AprQ8] {
        let shape = [rows as u64, columns as u64];
        let transcoder = Transcoder::new(Dtype::F32, dtype, &shape).unwrap().sample(Sample::Whole);
        let (blocks, report, consumed) = made(&transcoder, &source);
        assert_eq!(blocks.len() as u64, transcoder.byte_len().unwrap());
        assert!(blocks == at_once(dtype, &values, columns), "{dtype}");
        assert_eq!(consumed, source.len() as u64);
        assert_eq!(report.unwrap().count, values.len() as u64);
        // And back.
        let back = Transcoder::new(dtype, Dtype::F32, &shape).unwrap();
        let (again, _, consumed) = made(&back, &blocks);
        let mut decoded = vec![0.0; values.len()];
        dequantize(dtype, &blocks, &mut decoded).unwrap();
        assert!(again == bytes_of(&decoded), "{dtype}");
        assert_eq!(consumed, blocks.len() as u64, "{dtype}");
    }
}

#[test]
fn own_formats_take_rows_of_any_length() {
    let values = numbers(7 * 45);
    let source = bytes_of(&values);
    for dtype in [Dtype::AprQ4, Dtype::AprQ8] {
        let transcoder = Transcoder::new(Dtype::F32, dtype, &[7, 45]).unwrap();
        let (blocks, _, _) = made(&transcoder, &source);
        assert!(blocks == at_once(dtype, &values, values.len()), "{dtype}");
    }
}

#[test]
fn four_bits_change_their_layout_and_no_number() {
    // More than is copied at once.
    let (rows, columns) = (2_500, 512);
    let count = rows * columns;
    let own = at_once(Dtype::AprQ4, &numbers(count), count);
    assert!(own.len() as u64 > COPY / 2 && COPY.is_multiple_of(18));
    let own: Vec<u8> = [&own[..], &own[..]].concat();
    let shape = [2 * rows as u64, columns as u64];
    let there = Transcoder::new(Dtype::AprQ4, Dtype::Q4_0, &shape).unwrap();
    let (blocks, report, consumed) = made(&there, &own);
    assert!(report.is_none() && consumed == own.len() as u64 && blocks != own);
    let (mut before, mut after) = (vec![0.0; 2 * count], vec![0.0; 2 * count]);
    dequantize(Dtype::AprQ4, &own, &mut before).unwrap();
    dequantize(Dtype::Q4_0, &blocks, &mut after).unwrap();
    assert!(before == after);
    let back = Transcoder::new(Dtype::Q4_0, Dtype::AprQ4, &shape).unwrap();
    assert!(made(&back, &blocks).0 == own);
    // Blocks that cross rows do not exist in the other layout.
    assert!(Transcoder::new(Dtype::AprQ4, Dtype::Q4_0, &[3, 33]).is_err());
}

#[test]
fn every_matrix_of_a_stack_has_its_weights() {
    let (matrices, rows, columns) = (3_usize, 5_usize, 256_usize);
    let values = numbers(matrices * rows * columns);
    let weights: Vec<f32> = numbers(matrices * columns).iter().map(|value| value.abs()).collect();
    let shape = [matrices as u64, rows as u64, columns as u64];
    let transcoder = Transcoder::new(Dtype::F32, Dtype::Q4_K, &shape).unwrap();
    let (blocks, _, _) = made(&transcoder.importance(&weights).unwrap(), &bytes_of(&values));
    let mut expected = Vec::new();
    for (values, weights) in values.chunks(rows * columns).zip(weights.chunks(columns)) {
        let mut out = vec![0; rows * 144];
        let quantizer = Quantizer::new(Dtype::Q4_K).unwrap().importance(weights);
        quantizer.quantize(values, columns, &mut out).unwrap();
        expected.extend(out);
    }
    assert!(blocks == expected);
    let transcoder = Transcoder::new(Dtype::F32, Dtype::Q4_K, &shape).unwrap();
    assert_eq!(transcoder.importance(&weights[1..]).unwrap_err().code(), "cv-importance-length");
}

#[test]
fn elements_are_counted_from_the_start_of_the_tensor() {
    let (place, small) = (PIECE as usize + 37, 1e-45);
    let element = place as u64;
    for (dtype, number, fill, expected) in [
        (Dtype::Q8_0, f32::NAN, 0.5, QuantErrorKind::NonFinite { element }),
        (Dtype::AprQ8, f32::NAN, 0.5, QuantErrorKind::NonFinite { element }),
        (Dtype::Bf16, f32::NAN, 0.5, QuantErrorKind::NonFinite { element }),
        (Dtype::Bf16, f32::MAX, 0.5, QuantErrorKind::ScaleTooLarge { dtype: Dtype::Bf16, element }),
        (Dtype::AprQ8, -f32::MAX, 0.5, QuantErrorKind::ScaleTooLarge { dtype: Dtype::AprQ8, element }),
        (Dtype::AprQ8, -small, 0.0, QuantErrorKind::ScaleTooSmall { dtype: Dtype::AprQ8, element }),
        (Dtype::IQ4_NL, 0.25, 0.0, QuantErrorKind::ImportanceZero { dtype: Dtype::IQ4_NL, element }),
    ] {
        let mut values = vec![fill; 2 * PIECE as usize];
        values[place] = number;
        let source = bytes_of(&values);
        let weights = [0.0; 64];
        let mut transcoder = Transcoder::new(Dtype::F32, dtype, &[PIECE / 32, 64]).unwrap();
        if dtype == Dtype::IQ4_NL {
            transcoder = transcoder.importance(&weights).unwrap();
        }
        let read = |offset: u64, piece: &mut [u8]| -> Result<(), Error> {
            piece.copy_from_slice(&source[offset as usize..][..piece.len()]);
            Ok(())
        };
        let error = transcoder.run(read, |_| Ok::<(), Error>(())).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Quant(expected.into()), "{dtype}");
    }
}

#[test]
fn equal_formats_are_copied_and_empty_tensors_are_nothing() {
    let source: Vec<u8> = (0..(3 << 20) + 5).map(|idx| idx as u8).collect();
    let shape = [source.len() as u64];
    let transcoder = Transcoder::new(Dtype::I8, Dtype::I8, &shape).unwrap();
    let (copy, report, consumed) = made(&transcoder, &source);
    assert!(copy == source && report.is_none() && consumed == source.len() as u64);
    for to in [Dtype::AprQ8, Dtype::Q8_0] {
        let nothing = Transcoder::new(Dtype::F32, to, &[0, 32]).unwrap();
        assert_eq!(made(&nothing, &[]).0.len(), 0);
    }
    assert!(Transcoder::new(Dtype::F32, Dtype::Q8_0, &[2, 33]).is_err());
    assert!(Transcoder::new(Dtype::F32, Dtype::IQ1_S, &[2, 256]).is_err());
    assert!(Transcoder::new(Dtype::F32, Dtype::F16, &[u64::MAX, 2]).is_err());
}

#[test]
fn types_of_apr_files_have_no_weights() {
    // Several pieces, and rows that are no whole blocks.
    let (rows, columns) = (3000, 33);
    let source = bytes_of(&numbers(rows * columns));
    let weights: Vec<f32> = (0..columns).map(|idx| 1.0 + idx as f32).collect();
    for dtype in [Dtype::AprQ4, Dtype::AprQ8] {
        let plain = Transcoder::new(Dtype::F32, dtype, &[rows as u64, columns as u64]).unwrap();
        let weighed = plain.clone().importance(&weights).unwrap();
        assert!(made(&plain, &source).0 == made(&weighed, &source).0, "{dtype}");
    }
}

#[test]
fn an_estimate_is_near() {
    let values = numbers(160 * PIECE as usize);
    let source = bytes_of(&values);
    let read = |offset: u64, piece: &mut [u8]| -> Result<(), Error> {
        piece.copy_from_slice(&source[offset as usize..][..piece.len()]);
        Ok(())
    };
    let shape = [160, PIECE];
    let transcoder = Transcoder::new(Dtype::F32, Dtype::Q4_0, &shape).unwrap();
    let estimate = transcoder.estimate(read).unwrap().unwrap();
    let (_, report, _) = made(&transcoder.clone(), &source);
    assert_eq!(estimate, report.unwrap());
    let (_, whole, _) = made(&transcoder.sample(Sample::Whole), &source);
    let whole = whole.unwrap();
    assert_eq!((estimate.count, whole.count), (54 * PIECE, 160 * PIECE));
    assert!((estimate.relative_rmse() / whole.relative_rmse() - 1.0).abs() < 0.01);
}
