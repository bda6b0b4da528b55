//! The 22 element types of the format.

use core::fmt;

use crate::error::{Error, ErrorKind};

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $bits:literal,)*) => {
        /// Type of a tensor's elements. Multi-byte elements are little-endian, tensors are row-major.
        ///
        /// The order of the variants is the order official writers sort by (they put the greatest first).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Dtype {
            $($(#[$doc])* $variant,)*
        }

        impl Dtype {
            /// Every element type, in order.
            pub const ALL: [Self; 22] = [$(Self::$variant),*];

            /// Size of one element in bits: 4 to 64.
            #[must_use]
            pub const fn bits(self) -> u32 {
                match self {
                    $(Self::$variant => $bits,)*
                }
            }

            /// The name used in headers, for example `BF16`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The type whose name and a closing quote these bytes are, the first in the lowest place. Names
            /// of more than seven bytes are not found.
            #[inline]
            pub(crate) fn from_quoted(word: u64) -> Option<Self> {
                $(if word == const { quoted($name) } {
                    return Some(Self::$variant);
                })*
                None
            }

            /// The type with this name. Names are case-sensitive.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
            }
        }
    };
}

dtypes! {
    /// One byte, 0 or 1.
    Bool "BOOL" 8,
    /// OCP MX E2M1: 4 bits, no infinity, no NaN.
    F4 "F4" 4,
    /// OCP MX E2M3: 6 bits, no infinity, no NaN.
    F6E2M3 "F6_E2M3" 6,
    /// OCP MX E3M2: 6 bits, no infinity, no NaN.
    F6E3M2 "F6_E3M2" 6,
    /// Unsigned 8-bit integer.
    U8 "U8" 8,
    /// Signed 8-bit integer.
    I8 "I8" 8,
    /// OFP8 E5M2: an IEEE-like 8-bit float with infinities.
    F8E5M2 "F8_E5M2" 8,
    /// OFP8 E4M3: 8-bit float without infinities, NaN only where all exponent and mantissa bits are set.
    F8E4M3 "F8_E4M3" 8,
    /// OCP MX scale: 2^(x - 127), 255 is NaN.
    F8E8M0 "F8_E8M0" 8,
    /// E4M3 with exponent bias 8, no negative zero; 0x80 is the only NaN.
    F8E4M3Fnuz "F8_E4M3FNUZ" 8,
    /// E5M2 with exponent bias 16, no negative zero; 0x80 is the only NaN.
    F8E5M2Fnuz "F8_E5M2FNUZ" 8,
    /// Signed 16-bit integer.
    I16 "I16" 16,
    /// Unsigned 16-bit integer.
    U16 "U16" 16,
    /// IEEE 754 binary16.
    F16 "F16" 16,
    /// The upper half of a binary32.
    Bf16 "BF16" 16,
    /// Signed 32-bit integer.
    I32 "I32" 32,
    /// Unsigned 32-bit integer.
    U32 "U32" 32,
    /// IEEE 754 binary32.
    F32 "F32" 32,
    /// Complex number: two binary32, real part first.
    C64 "C64" 64,
    /// IEEE 754 binary64.
    F64 "F64" 64,
    /// Signed 64-bit integer.
    I64 "I64" 64,
    /// Unsigned 64-bit integer.
    U64 "U64" 64,
}

impl Dtype {
    /// Bytes that a tensor of this type and shape takes.
    ///
    /// The product of the dimensions is formed from left to right, so a zero protects what follows it, not
    /// what stands before it, as in the official reader.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SizeOverflow`] if elements or bits do not fit 64 bits, [`ErrorKind::PartialByte`] if the
    /// elements of a sub-byte type do not fill whole bytes.
    ///
    /// ```
    /// use st_core::Dtype;
    ///
    /// assert_eq!(Dtype::Bf16.byte_len(&[3, 5]), Ok(30));
    /// assert_eq!(Dtype::F4.byte_len(&[6]), Ok(3));
    /// assert!(Dtype::F4.byte_len(&[3]).is_err());
    /// ```
    pub fn byte_len(self, shape: &[usize]) -> Result<u64, Error> {
        let mut bits = 1u64;
        for &dim in shape {
            bits = bits.checked_mul(dim as u64).ok_or(ErrorKind::SizeOverflow)?;
        }
        bits = bits.checked_mul(u64::from(self.bits())).ok_or(ErrorKind::SizeOverflow)?;
        if bits.is_multiple_of(8) { Ok(bits / 8) } else { Err(ErrorKind::PartialByte { bits }.into()) }
    }
}

/// The bytes of a name of at most seven and a closing quote, the first in the lowest place; nothing that
/// stands in a header for longer ones.
const fn quoted(name: &str) -> u64 {
    let mut padded = [0; 8];
    match padded.split_at_mut_checked(name.len()) {
        Some((front, [quote, ..])) => {
            front.copy_from_slice(name.as_bytes());
            *quote = b'"';
            u64::from_le_bytes(padded)
        }
        _ => u64::MAX,
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found_again() {
        for dtype in Dtype::ALL {
            assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!(Dtype::from_name("f32"), None);
        assert!(Dtype::ALL.is_sorted());
    }

    #[test]
    fn short_names_are_found_with_their_quote() {
        for dtype in Dtype::ALL {
            let text = alloc::format!("{dtype}\"\0\0\0\0\0\0\0");
            let word = u64::from_le_bytes(*text.as_bytes().first_chunk().unwrap());
            assert_eq!(Dtype::from_quoted(word), (dtype.name().len() < 8).then_some(dtype));
            assert_eq!(Dtype::from_quoted(word ^ 1), None);
        }
        assert_eq!(Dtype::from_quoted(u64::from_le_bytes(*b"F32\0\"\0\0\0")), None);
        assert_eq!(
            (quoted("F4"), quoted("F8_E4M3"), quoted("F8_E4M3FNUZ")),
            (0x22_3446, 0x2233_4d34_455f_3846, u64::MAX)
        );
    }

    #[test]
    fn display_pads() {
        assert_eq!(alloc::format!("{:>5}|{:<5}", Dtype::U8, Dtype::Bf16), "   U8|BF16 ");
    }

    #[test]
    fn byte_len_multiplies_from_left_to_right() {
        assert_eq!(Dtype::U8.byte_len(&[0, 1 << 63, 4]), Ok(0));
        assert_eq!(*Dtype::U8.byte_len(&[1 << 63, 4, 0]).unwrap_err().kind(), ErrorKind::SizeOverflow);
        assert_eq!(*Dtype::F4.byte_len(&[1 << 62]).unwrap_err().kind(), ErrorKind::SizeOverflow);
    }
}
