//! Typed access to the bytes of a tensor.

use half::{bf16, f16};
use st_core::{Dtype, Element, ErrorKind, TensorView};

/// `bytes` are the little-endian bytes of `values`.
fn round_trip<T: Element + PartialEq + core::fmt::Debug>(values: &[T], bytes: &[u8]) {
    let shape = [values.len()];
    let mut buffer = vec![0; 32 + bytes.len()];
    let aligned = buffer.as_ptr().align_offset(8);
    for offset in [aligned, aligned + 1] {
        buffer[offset..][..bytes.len()].copy_from_slice(bytes);
        let view = TensorView::new(T::DTYPE, &shape, &buffer[offset..][..bytes.len()]).unwrap();
        let mut elements = view.elements::<T>().unwrap();
        assert_eq!(elements.len(), values.len());
        assert_eq!(elements.next_back().as_ref(), values.last());
        assert!(elements.eq(values[..values.len() - 1].iter().copied()));
        assert_eq!(view.element_count(), values.len() as u64);
        let slice = view.as_slice::<T>().map_err(|error| *error.kind());
        if offset == aligned || size_of::<T>() == 1 {
            assert_eq!(slice, Ok(values));
        } else {
            assert_eq!(slice, Err(ErrorKind::Misaligned { align: align_of::<T>() }));
        }
    }
}

#[test]
#[cfg(target_endian = "little")]
fn every_element_type_is_read_where_it_lies() {
    round_trip::<u8>(&[1, 255], &[1, 255]);
    round_trip::<i8>(&[1, -128], &[1, 128]);
    round_trip::<u16>(&[1, 0xfeff], &[1, 0, 0xff, 0xfe]);
    round_trip::<i16>(&[1, -2], &[1, 0, 0xfe, 0xff]);
    round_trip::<u32>(&[1, 0xfeff_fdfc], [1u32, 0xfeff_fdfc].map(u32::to_le_bytes).as_flattened());
    round_trip::<i32>(&[1, -2], [1i32, -2].map(i32::to_le_bytes).as_flattened());
    round_trip::<u64>(&[1, u64::MAX - 1], [1, u64::MAX - 1].map(u64::to_le_bytes).as_flattened());
    round_trip::<i64>(&[1, -2], [1i64, -2].map(i64::to_le_bytes).as_flattened());
    round_trip::<f32>(&[1.5, -0.0], [1.5f32, -0.0].map(f32::to_le_bytes).as_flattened());
    round_trip::<f64>(&[1.5, -2.5], [1.5f64, -2.5].map(f64::to_le_bytes).as_flattened());
    round_trip::<f16>(&[f16::ONE, f16::NEG_INFINITY], &[0x00, 0x3c, 0x00, 0xfc]);
    round_trip::<bf16>(&[bf16::ONE, bf16::NEG_INFINITY], &[0x80, 0x3f, 0x80, 0xff]);
}

#[test]
fn other_types_are_refused() {
    let view = TensorView::new(Dtype::F32, &[1], &[0; 4]).unwrap();
    let mismatch = ErrorKind::DtypeMismatch { found: Dtype::F32, expected: "I32" };
    assert_eq!(*view.as_slice::<i32>().unwrap_err().kind(), mismatch);
    assert_eq!(*view.elements::<i32>().unwrap_err().kind(), mismatch);
    for dtype in Dtype::ELEMENTS {
        let bytes = [0; 24];
        let shape = [24 * 8 / dtype.bits() as usize];
        let view = TensorView::new(dtype, &shape, &bytes).unwrap();
        let small_float =
            matches!(dtype.name().as_bytes(), [b'F', rest @ ..] if rest != b"64") || dtype == Dtype::Bf16;
        assert_eq!(view.to_f32().map(|values| values.len()).ok(), small_float.then_some(shape[0]), "{dtype}");
        assert_eq!(view.to_f64().map(|values| values.len()).ok(), (dtype != Dtype::C64).then_some(shape[0]));
    }
}

#[test]
fn views_have_exactly_the_bytes_of_their_shape() {
    assert!(TensorView::new(Dtype::F32, &[], &[0; 4]).is_ok());
    assert!(TensorView::new(Dtype::F32, &[0, 7], &[]).is_ok());
    let kind =
        |dtype, shape: &[usize], len| *TensorView::new(dtype, shape, &vec![0; len]).unwrap_err().kind();
    assert_eq!(kind(Dtype::F32, &[2], 4), ErrorKind::DataLength { needed: 8, given: 4 });
    assert_eq!(kind(Dtype::F32, &[1], 8), ErrorKind::DataLength { needed: 4, given: 8 });
    assert_eq!(kind(Dtype::F6E2M3, &[2], 2), ErrorKind::PartialByte { bits: 12 });
    assert_eq!(kind(Dtype::F32, &[usize::MAX, 2], 0), ErrorKind::SizeOverflow);
}

#[test]
fn values_become_f64() {
    let decode = |dtype: Dtype, bytes: &[u8]| -> Vec<f64> {
        let shape = [bytes.len() * 8 / dtype.bits() as usize];
        TensorView::new(dtype, &shape, bytes).unwrap().to_f64().unwrap().collect()
    };
    assert_eq!(decode(Dtype::Bool, &[0, 1]), [0.0, 1.0]);
    assert_eq!(decode(Dtype::U8, &[255]), [255.0]);
    assert_eq!(decode(Dtype::I8, &[255]), [-1.0]);
    assert_eq!(decode(Dtype::I16, &[0xfe, 0xff]), [-2.0]);
    assert_eq!(decode(Dtype::U16, &[0xfe, 0xff]), [65534.0]);
    assert_eq!(decode(Dtype::I32, &[0xfe, 0xff, 0xff, 0xff]), [-2.0]);
    assert_eq!(decode(Dtype::U32, &[0xfe, 0xff, 0xff, 0xff]), [4294967294.0]);
    assert_eq!(decode(Dtype::U64, &u64::MAX.to_le_bytes()), [2f64.powi(64)]);
    assert_eq!(decode(Dtype::F16, &[0x00, 0x3c]), [1.0]);
    assert_eq!(decode(Dtype::Bf16, &[0x80, 0x3f]), [1.0]);
    assert_eq!(decode(Dtype::F32, &0.1f32.to_le_bytes()), [f64::from(0.1f32)]);
    assert_eq!(decode(Dtype::F64, &0.1f64.to_le_bytes()), [0.1]);
    assert_eq!(decode(Dtype::F4, &[0xf2]), [1.0, -6.0]);
    let view = TensorView::new(Dtype::F32, &[1], &[0, 0, 0x80, 0x3f]).unwrap();
    assert!(view.to_f32().unwrap().eq([1.0]));
}
