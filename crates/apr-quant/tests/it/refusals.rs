//! Numbers that no block can hold.

use apr_quant::{Dtype, ErrorKind, NonFinite, Quantizer, SimdLevel, dtypes};

/// Blocks of small numbers, with this one at this place.
fn quantize(dtype: Dtype, place: usize, number: f32, non_finite: NonFinite) -> Result<(), ErrorKind> {
    let count = 2 * dtype.block_len().max(128);
    let mut values: Vec<f32> = (0..count).map(|idx| (idx % 7) as f32 - 3.0).collect();
    if number.abs() < 1e-30 {
        values.fill(0.0);
    }
    values[place] = number;
    let bytes = dtype.byte_len_of_rows(count as u64, 1).unwrap();
    let quantizer = Quantizer::new(dtype).unwrap().non_finite(non_finite);
    let result = quantizer.quantize(&values, count, &mut vec![0; bytes.try_into().unwrap()]);
    result.map_err(|error| *error.kind())
}

fn encoded() -> impl Iterator<Item = Dtype> {
    dtypes().filter(|&dtype| Quantizer::new(dtype).is_ok())
}

#[test]
fn an_element_that_is_not_finite_is_named() {
    for dtype in encoded() {
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN] {
            let place = dtype.block_len() + 1;
            assert_eq!(
                quantize(dtype, place, number, NonFinite::Refuse),
                Err(ErrorKind::NonFinite { element: place as u64 }),
                "{dtype} {number}"
            );
        }
    }
}

#[test]
fn the_answer_of_the_reference_is_given_where_it_is_known() {
    for dtype in encoded() {
        let result = quantize(dtype, 1, f32::NAN, NonFinite::AsReference);
        let known = matches!(
            dtype,
            Dtype::F32
                | Dtype::F64
                | Dtype::F16
                | Dtype::Bf16
                | Dtype::Q4_0
                | Dtype::Q4_1
                | Dtype::Q5_0
                | Dtype::Q5_1
                | Dtype::Q8_0
        );
        assert_eq!(result.is_ok(), known, "{dtype}");
    }
}

#[test]
fn a_scale_beyond_the_range_of_f16_is_refused() {
    for dtype in [
        Dtype::F16,
        Dtype::Q4_0,
        Dtype::Q4_1,
        Dtype::Q5_0,
        Dtype::Q5_1,
        Dtype::Q8_0,
        Dtype::Q8_1,
        Dtype::Q2_K,
        Dtype::Q3_K,
        Dtype::Q4_K,
        Dtype::Q5_K,
        Dtype::Q6_K,
        Dtype::IQ4_NL,
        Dtype::IQ4_XS,
        Dtype::TQ1_0,
        Dtype::TQ2_0,
        Dtype::Q1_0,
        Dtype::Q2_0,
    ] {
        let place = dtype.block_len() + 2;
        assert_eq!(
            quantize(dtype, place, -1e30, NonFinite::Refuse),
            Err(ErrorKind::ScaleTooLarge { dtype, element: place as u64 })
        );
        assert_eq!(quantize(dtype, place, -1e30, NonFinite::AsReference), Ok(()));
    }
    assert_eq!(quantize(Dtype::Bf16, 0, -1e30, NonFinite::Refuse), Ok(()));
}

/// The largest numbers, which rounding takes beyond the range of `f32`.
#[test]
fn numbers_that_would_come_back_infinite_are_refused() {
    let below = |limit: f32| f32::from_bits(limit.to_bits() - 1);
    for (dtype, limit) in [
        (Dtype::F16, 65_520.0),
        (Dtype::Bf16, f32::from_bits(0x7f7f_8000)),
        (Dtype::Q8_K, f32::MAX),
        (Dtype::AprQ8, f32::MAX),
    ] {
        for place in [3, 130] {
            let element = place as u64;
            assert_eq!(quantize(dtype, place, -below(limit), NonFinite::Refuse), Ok(()));
            for number in [limit, -limit, f32::MAX] {
                assert_eq!(
                    quantize(dtype, place, number, NonFinite::Refuse),
                    Err(ErrorKind::ScaleTooLarge { dtype, element })
                );
            }
        }
        let as_reference = quantize(dtype, 0, limit, NonFinite::AsReference);
        assert_eq!(as_reference.is_ok(), dtype != Dtype::AprQ8);
    }
    for dtype in [Dtype::F32, Dtype::F64, Dtype::MXFP4, Dtype::NVFP4] {
        assert_eq!(quantize(dtype, 3, f32::MAX, NonFinite::Refuse), Ok(()));
    }
}

#[test]
fn a_step_that_nothing_can_be_divided_by_is_refused() {
    for dtype in [
        Dtype::Q4_0,
        Dtype::Q4_1,
        Dtype::Q5_0,
        Dtype::Q5_1,
        Dtype::Q8_0,
        Dtype::TQ1_0,
        Dtype::TQ2_0,
        Dtype::MXFP4,
        Dtype::Q2_0,
    ] {
        assert_eq!(
            quantize(dtype, 3, 1e-39, NonFinite::Refuse),
            Err(ErrorKind::ScaleTooSmall { dtype, element: 3 })
        );
        assert_eq!(quantize(dtype, 3, 1e-39, NonFinite::AsReference), Ok(()));
        // The scale is zero as `f16`, the codes are those of the numbers.
        assert_eq!(quantize(dtype, 3, 1e-35, NonFinite::Refuse), Ok(()));
    }
}

/// `Q8_K` divides by the number itself: 127 over it is infinite below 3.8e-37.
#[test]
fn the_smallest_numbers_of_a_format_without_f16_are_refused() {
    let dtype = Dtype::Q8_K;
    for number in [1e-39, 2.3e-38, -3.7e-37] {
        assert_eq!(
            quantize(dtype, 3, number, NonFinite::Refuse),
            Err(ErrorKind::ScaleTooSmall { dtype, element: 3 })
        );
        assert_eq!(quantize(dtype, 3, number, NonFinite::AsReference), Ok(()));
    }
    assert_eq!(quantize(dtype, 3, 3.8e-37, NonFinite::Refuse), Ok(()));
}

/// Two rows of three blocks under these weights, with this number in the last block.
fn weighted(dtype: Dtype, weights: &[f32], number: f32) -> Result<(), ErrorKind> {
    let row_len = weights.len();
    let mut values: Vec<f32> = (0..2 * row_len).map(|idx| (idx % 7) as f32 / 8.0 - 0.3).collect();
    values[2 * row_len - 1] = number;
    let bytes = dtype.byte_len_of_rows(row_len as u64, 2).unwrap();
    let quantizer = Quantizer::new(dtype).unwrap().importance(weights);
    let result = quantizer.quantize(&values, row_len, &mut vec![0; bytes.try_into().unwrap()]);
    result.map_err(|error| *error.kind())
}

/// A number whose square is infinite weighs every block of its row, and is what the error is about.
#[test]
fn a_row_without_a_mean_square_names_its_largest_element() {
    for dtype in [Dtype::Q4_0, Dtype::Q4_1, Dtype::Q5_0, Dtype::Q5_1, Dtype::Q8_0] {
        let refused = Err(ErrorKind::ScaleTooLarge { dtype, element: 191 });
        assert_eq!(weighted(dtype, &[1.0; 96], -1e34), refused);
        assert_eq!(weighted(dtype, &[1.0; 96], f32::NAN), Err(ErrorKind::NonFinite { element: 191 }));
    }
    for dtype in [Dtype::Bf16, Dtype::MXFP4] {
        assert_eq!(weighted(dtype, &[1.0; 96], -1e34), Ok(()));
    }
}

/// Two numbers that are too large: all instructions name the same, weighed or not.
#[test]
fn all_instructions_refuse_the_same_element() {
    for dtype in encoded() {
        let mut values = vec![0.25; 512];
        (values[70], values[300]) = (-3.3e38, 3.4e38);
        let row_len = values.len();
        let bytes = dtype.byte_len_of_rows(row_len as u64, 1).unwrap();
        for weights in [None, Some(vec![1.0; row_len])] {
            let quantizer = Quantizer::new(dtype).unwrap();
            let quantizer = weights.as_deref().map_or(quantizer, |weights| quantizer.importance(weights));
            let results = SimdLevel::all().map(|level| {
                let mut out = vec![0; bytes.try_into().unwrap()];
                quantizer.simd(level).quantize(&values, row_len, &mut out).map_err(|error| *error.kind())
            });
            let results: Vec<_> = results.collect();
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{dtype}: {results:?}");
        }
    }
}

#[test]
fn blocks_that_weigh_nothing_have_a_scale_or_an_error_of_their_own() {
    let refused = |dtype, len: usize| {
        let mut weights = vec![1.0; 3 * len];
        weights[len..2 * len].fill(0.0);
        match weighted(dtype, &weights, 0.1) {
            Ok(()) => false,
            Err(ErrorKind::ImportanceZero { element, .. }) => {
                assert!((len as u64..2 * len as u64).contains(&element));
                true
            }
            Err(kind) => panic!("{dtype}: {kind}"),
        }
    };
    assert!(refused(Dtype::IQ4_NL, 32));
    for dtype in encoded().filter(|dtype| *dtype != Dtype::AprQ4) {
        refused(dtype, dtype.block_len());
    }
}

#[test]
fn formats_that_are_only_read_are_refused_by_name() {
    let error = Quantizer::new(Dtype::I8).unwrap_err();
    assert_eq!(error.to_string(), "quantizing to I8 is not supported; use Q8_0");
}
