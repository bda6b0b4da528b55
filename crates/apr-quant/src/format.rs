//! The one table of element and block types.

use core::fmt;

use crate::error::{Error, ErrorKind};

/// A number that says how a tensor of a GGUF file is stored, whether anybody knows it or not.
///
/// ```
/// use apr_quant::{BlockFormat, GgmlType};
///
/// assert_eq!(GgmlType(12).format()?, BlockFormat::Q4_K);
/// assert_eq!(GgmlType(4).format().unwrap_err().code(), "q-removed-type");
/// assert_eq!(GgmlType(99).format().unwrap_err().code(), "q-unknown-type");
/// assert_eq!(GgmlType(99).to_string(), "type 99");
/// # Ok::<(), apr_quant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GgmlType(pub u32);

/// Types that ggml once had: number, name, what took their place.
const REMOVED: [(u32, &str, &str); 8] = [
    (4, "Q4_2", "Q4_0"),
    (5, "Q4_3", "Q4_1"),
    (31, "Q4_0_4_4", "Q4_0"),
    (32, "Q4_0_4_8", "Q4_0"),
    (33, "Q4_0_8_8", "Q4_0"),
    (36, "IQ4_NL_4_4", "IQ4_NL"),
    (37, "IQ4_NL_4_8", "IQ4_NL"),
    (38, "IQ4_NL_8_8", "IQ4_NL"),
];

impl GgmlType {
    /// The format behind the number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RemovedType`] for a type that ggml gave up, [`ErrorKind::UnknownType`] for a number it never had.
    pub fn format(self) -> Result<BlockFormat, Error> {
        let Self(id) = self;
        if let Some(&format) = BlockFormat::ALL.iter().find(|format| format.ggml_type() == Some(self)) {
            return Ok(format);
        }
        let removed = REMOVED.iter().find(|(removed, _, _)| *removed == id);
        Err(removed
            .map_or(ErrorKind::UnknownType { id }, |&(_, name, instead)| ErrorKind::RemovedType {
                id,
                name,
                instead,
            })
            .into())
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match BlockFormat::ALL.iter().find(|format| format.ggml_type() == Some(*self)) {
            Some(format) => f.pad(format.name()),
            None => write!(f, "type {}", self.0),
        }
    }
}

macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident = $id:expr, $name:literal, $len:literal elements in $bytes:literal;)*) => {
        /// How numbers become bytes: plain elements, or blocks of a fixed number of elements.
        ///
        /// The names are ggml's. A row of a tensor is a whole number of blocks.
        ///
        /// ```
        /// use apr_quant::BlockFormat;
        ///
        /// let format = BlockFormat::Q4_K;
        /// assert_eq!((format.block_len(), format.block_bytes()), (256, 144));
        /// assert_eq!(format.bits_per_weight(), 4.5);
        /// assert_eq!(format.byte_len(512, 3)?, 3 * 2 * 144);
        /// assert_eq!(format.byte_len(128, 2).unwrap_err().code(), "q-row-length");
        /// # Ok::<(), apr_quant::Error>(())
        /// ```
        #[expect(non_camel_case_types, reason = "spelled as everyone spells them")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum BlockFormat {
            $($(#[$doc])* $variant,)*
        }

        impl BlockFormat {
            /// Every format, ggml's by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Name in ggml; our own for our own.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Number in GGUF files; `None` for formats that ggml does not have.
            #[must_use]
            pub const fn ggml_type(self) -> Option<GgmlType> {
                const fn number(id: i64) -> Option<GgmlType> {
                    if id < 0 { None } else { Some(GgmlType(id as u32)) }
                }
                match self {
                    $(Self::$variant => number($id),)*
                }
            }

            /// Elements of a block.
            #[must_use]
            pub const fn block_len(self) -> usize {
                match self {
                    $(Self::$variant => $len,)*
                }
            }

            /// Bytes of a block.
            #[must_use]
            pub const fn block_bytes(self) -> usize {
                match self {
                    $(Self::$variant => $bytes,)*
                }
            }
        }
    };
}

/// In place of a number: ggml does not have it.
const OWN: i64 = -1;

formats! {
    /// 32-bit float.
    F32 = 0, "F32", 1 elements in 4;
    /// 16-bit float.
    F16 = 1, "F16", 1 elements in 2;
    /// `f16` scale, 32 nibbles: (q - 8) d.
    Q4_0 = 2, "Q4_0", 32 elements in 18;
    /// `f16` scale and minimum, 32 nibbles: q d + m.
    Q4_1 = 3, "Q4_1", 32 elements in 20;
    /// `f16` scale, 32 fifth bits, 32 nibbles: (q - 16) d.
    Q5_0 = 6, "Q5_0", 32 elements in 22;
    /// `f16` scale and minimum, 32 fifth bits, 32 nibbles: q d + m.
    Q5_1 = 7, "Q5_1", 32 elements in 24;
    /// `f16` scale, 32 bytes: q d.
    Q8_0 = 8, "Q8_0", 32 elements in 34;
    /// `f16` scale, `f16` sum, 32 bytes; for products at run time.
    Q8_1 = 9, "Q8_1", 32 elements in 36;
    /// 16 groups of 16 with 4-bit scales and minima, two bits each.
    Q2_K = 10, "Q2_K", 256 elements in 84;
    /// 16 groups of 16 with 6-bit scales, three bits each.
    Q3_K = 11, "Q3_K", 256 elements in 110;
    /// 8 groups of 32 with 6-bit scales and minima, four bits each.
    Q4_K = 12, "Q4_K", 256 elements in 144;
    /// 8 groups of 32 with 6-bit scales and minima, five bits each.
    Q5_K = 13, "Q5_K", 256 elements in 176;
    /// 16 groups of 16 with 8-bit scales, six bits each.
    Q6_K = 14, "Q6_K", 256 elements in 210;
    /// `f32` scale, 256 bytes, 16 sums; for products at run time.
    Q8_K = 15, "Q8_K", 256 elements in 292;
    /// Two bits from a codebook of 256.
    IQ2_XXS = 16, "IQ2_XXS", 256 elements in 66;
    /// Two bits from a codebook of 512.
    IQ2_XS = 17, "IQ2_XS", 256 elements in 74;
    /// Three bits from a codebook of 256.
    IQ3_XXS = 18, "IQ3_XXS", 256 elements in 98;
    /// One and a half bits from a codebook of 2,048.
    IQ1_S = 19, "IQ1_S", 256 elements in 50;
    /// 32 nibbles into a table of 16 uneven steps.
    IQ4_NL = 20, "IQ4_NL", 32 elements in 18;
    /// Three bits from a codebook of 512.
    IQ3_S = 21, "IQ3_S", 256 elements in 110;
    /// Two bits from a codebook of 1,024.
    IQ2_S = 22, "IQ2_S", 256 elements in 82;
    /// 8 groups of 32 with 6-bit scales, nibbles into a table of 16 uneven steps.
    IQ4_XS = 23, "IQ4_XS", 256 elements in 136;
    /// 8-bit signed integer.
    I8 = 24, "I8", 1 elements in 1;
    /// 16-bit signed integer.
    I16 = 25, "I16", 1 elements in 2;
    /// 32-bit signed integer.
    I32 = 26, "I32", 1 elements in 4;
    /// 64-bit signed integer.
    I64 = 27, "I64", 1 elements in 8;
    /// 64-bit float.
    F64 = 28, "F64", 1 elements in 8;
    /// One and three quarter bits from a codebook of 2,048.
    IQ1_M = 29, "IQ1_M", 256 elements in 56;
    /// The upper half of a 32-bit float.
    BF16 = 30, "BF16", 1 elements in 2;
    /// Ternary: five in a byte, one `f16` scale.
    TQ1_0 = 34, "TQ1_0", 256 elements in 54;
    /// Ternary: four in a byte, one `f16` scale.
    TQ2_0 = 35, "TQ2_0", 256 elements in 66;
    /// Microscaling: an exponent, 32 floats of four bits.
    MXFP4 = 39, "MXFP4", 32 elements in 17;
    /// Four scales of eight bits, 64 floats of four bits.
    NVFP4 = 40, "NVFP4", 64 elements in 36;
    /// `f16` scale, 128 signs.
    Q1_0 = 41, "Q1_0", 128 elements in 18;
    /// `f16` scale, 64 times two bits: (q - 1) d.
    Q2_0 = 42, "Q2_0", 64 elements in 18;
    /// The 4-bit blocks of `.apr` files: `f16` scale, nibbles of neighbours in a byte. Not ggml's `Q4_0`.
    AprQ4 = OWN, "AprQ4", 32 elements in 18;
    /// The 8-bit integers of `.apr` files, behind one `f32` scale for the whole tensor.
    AprQ8 = OWN, "AprQ8", 1 elements in 1;
}

impl BlockFormat {
    /// The format of this name, in capitals or not.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name().eq_ignore_ascii_case(name))
    }

    /// Whether elements share something: a block, a scale.
    #[must_use]
    pub const fn is_quantized(self) -> bool {
        self.block_len() > 1 || matches!(self, Self::AprQ8)
    }

    /// Bits that an element takes.
    #[must_use]
    pub fn bits_per_weight(self) -> f64 {
        self.block_bytes() as f64 * 8.0 / self.block_len() as f64
    }

    /// Bytes of `n_rows` rows of `row_len` elements.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RowLength`] if a row is not a whole number of blocks (`AprQ4` alone fills up the last one of the
    /// tensor), [`ErrorKind::TooLong`] beyond 64 bits.
    pub fn byte_len(self, row_len: u64, n_rows: u64) -> Result<u64, Error> {
        let (block_len, block_bytes) = (self.block_len() as u64, self.block_bytes() as u64);
        let count = row_len.checked_mul(n_rows).ok_or(ErrorKind::TooLong)?;
        let n_blocks = match self {
            Self::AprQ4 => count.div_ceil(block_len),
            _ if !row_len.is_multiple_of(block_len) => {
                return Err(ErrorKind::RowLength { format: self, row_len }.into());
            }
            _ => count / block_len,
        };
        let bytes = n_blocks.checked_mul(block_bytes).ok_or(ErrorKind::TooLong)?;
        match self {
            Self::AprQ8 if count > 0 => Ok(bytes.checked_add(4).ok_or(ErrorKind::TooLong)?),
            _ => Ok(bytes),
        }
    }
}

impl fmt::Display for BlockFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_known_removed_or_refused() {
        for id in 0..=42 {
            let removed = REMOVED.iter().any(|(removed, _, _)| *removed == id);
            match GgmlType(id).format() {
                Ok(format) => assert!(!removed && format.ggml_type() == Some(GgmlType(id))),
                Err(error) => assert!(removed && error.code() == "q-removed-type", "{id}: {error}"),
            }
        }
        assert_eq!(GgmlType(43).format().unwrap_err().code(), "q-unknown-type");
        assert_eq!(GgmlType(u32::MAX).format().unwrap_err().code(), "q-unknown-type");
    }

    #[test]
    fn names_and_numbers_are_unique() {
        for (idx, format) in BlockFormat::ALL.iter().enumerate() {
            assert_eq!(BlockFormat::from_name(&format.name().to_ascii_lowercase()), Some(*format));
            let rest = &BlockFormat::ALL[idx + 1..];
            assert!(
                format.ggml_type().is_none()
                    || rest.iter().all(|other| other.ggml_type() != format.ggml_type())
            );
        }
    }

    #[test]
    fn lengths_are_checked() {
        assert_eq!(BlockFormat::AprQ4.byte_len(35, 2).unwrap(), 3 * 18);
        assert_eq!(BlockFormat::AprQ8.byte_len(35, 2).unwrap(), 74);
        assert_eq!(BlockFormat::AprQ8.byte_len(0, 2).unwrap(), 0);
        assert_eq!(BlockFormat::F64.byte_len(u64::MAX, 1).unwrap_err().code(), "q-too-long");
        assert_eq!(BlockFormat::Q8_0.byte_len(1 << 63, 4).unwrap_err().code(), "q-too-long");
        assert_eq!(BlockFormat::Q4_0.byte_len(33, 1).unwrap_err().code(), "q-row-length");
    }
}
