//! Element types of tensors and the room their elements take.

use core::fmt;

use crate::error::{Error, ErrorKind};

/// Type of a tensor's elements: a number of the specification's table.
///
/// Numbers below 128 follow ggml where it has the type; others are the format's own. Three types had other numbers
/// in files of 2025: readers know them ([`Dtype::from_stored`]), writers do not use them.
///
/// | number | type | bytes |
/// |---|---|---|
/// | 0 | `F32` | 4 an element |
/// | 1 | `F16` | 2 an element |
/// | 3 | `F64` | 8 an element |
/// | 4, 5, 6 | `I32`, `I64`, `I8` | 4, 8, 1 an element |
/// | 7 | `U8` | 1 an element |
/// | 12 | `Q4_K` | 144 for 256 elements |
/// | 14 | `Q6_K` | 210 for 256 elements |
/// | 30 (was 2) | `BF16` | 2 an element |
/// | 128 (was 8) | `AprQ4` | 18 for 32 elements: a half-precision scale, 32 nibbles |
/// | 129 (was 9) | `AprQ8` | 4 + 1 an element: one single-precision scale for the tensor; nothing for no elements |
///
/// ```
/// use apr_container::v2::Dtype;
///
/// assert_eq!(Dtype::from_stored(2), Dtype::Bf16);
/// assert_eq!(Dtype::AprQ4.byte_len(&[2, 35])?, 3 * 18);
/// assert_eq!(Dtype(200).name(), None);
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dtype(pub u8);

/// How elements become bytes.
#[derive(Clone, Copy)]
enum Geometry {
    /// Blocks of elements through the whole tensor, the last one filled up.
    Blocks { elements: u64, bytes: u64 },
    /// The same; of a matrix, each row may begin a block of its own.
    RowBlocks { elements: u64, bytes: u64 },
    /// A four-byte scale, then a byte each.
    Scaled,
}

impl Geometry {
    /// So many bytes an element.
    const fn plain(bytes: u64) -> Self {
        Self::Blocks { elements: 1, bytes }
    }

    /// Both lengths that a tensor of so many elements may have, see [`Dtype::byte_lens`].
    fn byte_lens(self, count: u64, shape: &[u64]) -> Option<(u64, u64)> {
        let (Self::Blocks { elements, bytes } | Self::RowBlocks { elements, bytes }) = self else {
            let len = if count == 0 { 0 } else { count.checked_add(4)? };
            return Some((len, len));
        };
        let whole = count.div_ceil(elements).checked_mul(bytes)?;
        match (self, shape) {
            (Self::RowBlocks { .. }, &[rows, columns]) => {
                Some((columns.div_ceil(elements).checked_mul(bytes)?.checked_mul(rows)?, whole))
            }
            _ => Some((whole, whole)),
        }
    }
}

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal, $align:literal, $geometry:expr;)*) => {
        #[expect(non_upper_case_globals, reason = "spelled as the specification spells them")]
        impl Dtype {
            $($(#[$doc])* pub const $variant: Self = Self($id);)*

            /// The types of the specification, by number.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),*];

            /// Name in the specification; `None` for a number it does not list.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($name),)*
                    _ => None,
                }
            }

            const fn geometry(self) -> Option<Geometry> {
                match self {
                    $(Self::$variant => Some($geometry),)*
                    _ => None,
                }
            }

            /// What the place of its bytes has to be a multiple of at least.
            pub(crate) const fn align(self) -> u64 {
                match self {
                    $(Self::$variant => $align,)*
                    _ => 1,
                }
            }
        }
    };
}

dtypes! {
    /// 32-bit float.
    F32 = 0, "F32", 4, Geometry::plain(4);
    /// 16-bit float.
    F16 = 1, "F16", 2, Geometry::plain(2);
    /// 64-bit float.
    F64 = 3, "F64", 8, Geometry::plain(8);
    /// 32-bit signed integer.
    I32 = 4, "I32", 4, Geometry::plain(4);
    /// 64-bit signed integer.
    I64 = 5, "I64", 8, Geometry::plain(8);
    /// 8-bit signed integer.
    I8 = 6, "I8", 1, Geometry::plain(1);
    /// 8-bit unsigned integer.
    U8 = 7, "U8", 1, Geometry::plain(1);
    /// ggml's 4-bit super-blocks; carried, not decoded here.
    Q4K = 12, "Q4_K", 2, Geometry::RowBlocks { elements: 256, bytes: 144 };
    /// ggml's 6-bit super-blocks; carried, not decoded here.
    Q6K = 14, "Q6_K", 2, Geometry::RowBlocks { elements: 256, bytes: 210 };
    /// The upper half of a 32-bit float.
    Bf16 = 30, "BF16", 2, Geometry::plain(2);
    /// The format's own 4-bit blocks. Not ggml's `Q4_0`: that one orders the nibbles differently.
    AprQ4 = 128, "AprQ4", 2, Geometry::Blocks { elements: 32, bytes: 18 };
    /// The format's own 8-bit integers with one scale.
    AprQ8 = 129, "AprQ8", 4, Geometry::Scaled;
}

impl Dtype {
    /// The type behind a number found in a file: the three former numbers become today's.
    #[must_use]
    pub const fn from_stored(id: u8) -> Self {
        match id {
            2 => Self::Bf16,
            8 => Self::AprQ4,
            9 => Self::AprQ8,
            _ => Self(id),
        }
    }

    /// Whether the specification lists it.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.geometry().is_some()
    }

    /// Bytes that a tensor of this shape takes, as the format's other writers lay it out: of a matrix of super-blocks
    /// each row begins a block of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownDtype`]; [`ErrorKind::SizeOverflow`] beyond 64 bits.
    pub fn byte_len(self, shape: &[u64]) -> Result<u64, Error> {
        let (len, _) = self.byte_lens(shape)?;
        Ok(len)
    }

    /// [`byte_len`](Self::byte_len), and the other length that occurs: super-blocks through the whole tensor.
    pub(crate) fn byte_lens(self, shape: &[u64]) -> Result<(u64, u64), Error> {
        let geometry = self.geometry().ok_or(ErrorKind::UnknownDtype { found: self.0 })?;
        let lens = element_count(shape).and_then(|count| geometry.byte_lens(count, shape));
        lens.ok_or(ErrorKind::SizeOverflow.into())
    }

    /// Whether a tensor of this shape may be `len` bytes long; always for types nobody knows.
    pub(crate) fn check_len(self, shape: &[u64], len: u64) -> Result<(), Error> {
        if !self.is_known() {
            return Ok(());
        }
        match self.byte_lens(shape)? {
            (rows, whole) if len == rows || len == whole => Ok(()),
            (computed, _) => Err(ErrorKind::SizeMismatch { declared: len, computed }.into()),
        }
    }
}

/// Elements of a tensor of this shape: 1 for none at all, `None` beyond 64 bits.
pub(crate) fn element_count(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |count, &dim| count.checked_mul(dim))
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "type {}", self.0),
        }
    }
}

impl fmt::Debug for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn lengths_follow_the_table() {
        let cases: [(Dtype, &[u64], u64); 16] = [
            (Dtype::F32, &[], 4),
            (Dtype::F32, &[0, u64::MAX, u64::MAX], 0),
            (Dtype::F64, &[3], 24),
            (Dtype::Bf16, &[7, 10], 140),
            (Dtype::I8, &[3], 3),
            (Dtype::AprQ4, &[2, 35], 54),
            (Dtype::AprQ4, &[32], 18),
            (Dtype::AprQ4, &[33], 36),
            (Dtype::AprQ4, &[0], 0),
            (Dtype::AprQ8, &[70], 74),
            (Dtype::AprQ8, &[0], 0),
            (Dtype::AprQ8, &[], 5),
            (Dtype::Q4K, &[256], 144),
            (Dtype::Q4K, &[2, 300], 4 * 144),
            (Dtype::Q6K, &[2, 2, 300], 5 * 210),
            (Dtype::Q6K, &[0, 300], 0),
        ];
        for (dtype, shape, expected) in cases {
            assert_eq!(dtype.byte_len(shape).unwrap(), expected, "{dtype} {shape:?}");
            assert!(dtype.check_len(shape, expected).is_ok());
            assert!(dtype.check_len(shape, expected + 1).is_err());
        }
    }

    #[test]
    fn super_blocks_may_run_through_the_rows() {
        assert!(Dtype::Q4K.check_len(&[2, 300], 3 * 144).is_ok());
        assert!(Dtype::Q4K.check_len(&[2, 300], 5 * 144).is_err());
    }

    #[test]
    fn overflow_is_an_error_and_unknown_types_are_carried() {
        let is_overflow = |dtype: &Dtype, shape: &[u64]| {
            dtype.byte_lens(shape).is_err_and(|error| matches!(error.kind(), ErrorKind::SizeOverflow))
        };
        for dtype in Dtype::KNOWN {
            let huge = [u64::MAX, 2];
            assert!(is_overflow(dtype, &huge), "{dtype}");
        }
        assert!(is_overflow(&Dtype::F64, &[1 << 61]));
        assert!(is_overflow(&Dtype::AprQ8, &[u64::MAX]));
        let unknown = Dtype(40).byte_lens(&[1]).unwrap_err();
        assert!(matches!(unknown.kind(), ErrorKind::UnknownDtype { found: 40 }));
        assert!(Dtype(40).check_len(&[1], 999).is_ok());
    }

    #[test]
    fn numbers_round_trip_and_former_ones_are_known() {
        for &dtype in Dtype::KNOWN {
            assert_eq!(Dtype::from_stored(dtype.0), dtype);
            assert!(dtype.is_known() && dtype.name().is_some());
        }
        let former = [2, 8, 9].map(Dtype::from_stored);
        assert_eq!(former, [Dtype::Bf16, Dtype::AprQ4, Dtype::AprQ8]);
        assert_eq!(format!("{} {:?} {:>5}|", Dtype(77), Dtype::Q4K, Dtype::U8), "type 77 Q4_K    U8|");
    }
}
