//! The header of a `.npy` file, byte for byte as `numpy.save` of NumPy 2 writes it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::iter;

use tensor_dtype::{Dtype, TensorType};

/// Data begins at a multiple of this.
const ALIGNMENT: usize = 64;

/// Digits for which the header has space, so that the first dimension can grow in place.
const GROWTH_DIGITS: usize = 21;

/// Longest header of version 1.
const MAX_V1: usize = u16::MAX as usize;

/// What precedes the elements of an array in a `.npy` file: row-major, little-endian. `None` if NumPy does not have the type.
#[must_use]
pub fn header(dtype: impl Into<TensorType>, shape: &[usize]) -> Option<Vec<u8>> {
    let descr = match dtype.into() {
        TensorType::Known(dtype) => descr(dtype)?,
        TensorType::Other("C128") => "<c16",
        _ => return None,
    };
    let dims = match shape {
        [dim] => format!("({dim},)"),
        dims => format!("({})", dims.iter().map(ToString::to_string).collect::<Vec<String>>().join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}");
    if let Some(first) = shape.first() {
        text.extend(iter::repeat_n(' ', GROWTH_DIGITS.saturating_sub(first.to_string().len())));
    }
    // Magic number, version and length of the header; a line feed ends it.
    let padded = |fixed: usize| text.len() + 1 + ALIGNMENT - (fixed + text.len() + 1) % ALIGNMENT;
    let mut bytes = b"\x93NUMPY".to_vec();
    let len = match padded(10) {
        len @ ..=MAX_V1 => {
            bytes.extend([1, 0]);
            bytes.extend((len as u16).to_le_bytes());
            len
        }
        _ => {
            let len = padded(12);
            bytes.extend([2, 0]);
            bytes.extend((len as u32).to_le_bytes());
            len
        }
    };
    let start = bytes.len();
    bytes.extend(text.as_bytes());
    bytes.resize(start + len - 1, b' ');
    bytes.push(b'\n');
    Some(bytes)
}

/// The code of a type: order, kind, bytes.
const fn descr(dtype: Dtype) -> Option<&'static str> {
    Some(match dtype {
        Dtype::Bool => "|b1",
        Dtype::I8 => "|i1",
        Dtype::I16 => "<i2",
        Dtype::I32 => "<i4",
        Dtype::I64 => "<i8",
        Dtype::U8 => "|u1",
        Dtype::U16 => "<u2",
        Dtype::U32 => "<u4",
        Dtype::U64 => "<u8",
        Dtype::F16 => "<f2",
        Dtype::F32 => "<f4",
        Dtype::F64 => "<f8",
        Dtype::C64 => "<c8",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numpy::header::Header;

    #[test]
    fn headers_are_those_of_numpy() {
        // `numpy.save` of zeros of these shapes.
        let text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        let mut expected = b"\x93NUMPY\x01\0v\0".to_vec();
        expected.extend(text);
        expected.resize(127, b' ');
        expected.push(b'\n');
        assert_eq!(header(Dtype::F32, &[2]).unwrap(), expected);
        let scalar = header(Dtype::Bool, &[]).unwrap();
        assert_eq!(scalar.len(), 128);
        assert!(scalar[10..].starts_with(b"{'descr': '|b1', 'fortran_order': False, 'shape': (), }"));
        assert_eq!(header(Dtype::Bf16, &[2]), None);
    }

    #[test]
    fn headers_are_read_back() {
        for shape in [&[][..], &[0], &[7], &[1, 2, 3], &[1; 64], &[123_456_789; 2]] {
            for dtype in Dtype::ELEMENTS {
                let Some(bytes) = header(dtype, shape) else { continue };
                assert_eq!(bytes.len() % ALIGNMENT, 0);
                let mut rest = &bytes[..];
                let next = |out: &mut [u8]| {
                    let Some((head, tail)) = rest.split_at_checked(out.len()) else { return Ok(false) };
                    out.copy_from_slice(head);
                    rest = tail;
                    Ok(true)
                };
                let read = Header::read(next, false).unwrap();
                assert!(rest.is_empty());
                assert_eq!(read.element.unwrap().0.known(), Some(dtype));
                assert_eq!(read.shape, shape.iter().map(|&dim| dim as u64).collect::<Vec<_>>());
            }
        }
    }
}
