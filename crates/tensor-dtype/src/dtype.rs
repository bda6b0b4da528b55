//! The table of element and block types.

use core::fmt;

use crate::id::{AprType, GgmlType};

macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// One line per type: variant, name, elements in bytes of a block, and its identifiers in the formats that have it.
macro_rules! dtypes {
    (
        elements { $(
            $(#[$element_doc:meta])*
            $element:ident = $element_name:literal, $element_len:literal in $element_bytes:literal,
            $(apr $element_apr:literal,)? $(ggml $element_ggml:literal,)? numpy $numpy:literal;
        )* }
        blocks { $(
            $(#[$block_doc:meta])*
            $block:ident = $block_name:literal, $block_len:literal in $block_bytes:literal
            $(, apr $block_apr:literal)? $(, ggml $block_ggml:literal)?;
        )* }
    ) => {
        /// Data type of a tensor: an element type, or a block type for quantized tensors.
        ///
        /// safetensors has the element types and no block type. Its official writer sorts tensors by data type, the
        /// greatest first, and this is the order of the variants. Block types follow, those of ggml by number.
        #[expect(non_camel_case_types, reason = "block types are spelled as ggml spells them")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Dtype {
            $($(#[$element_doc])* $element,)*
            $($(#[$block_doc])* $block,)*
        }

        impl Dtype {
            /// The element types: the 22 types of safetensors, in order.
            pub const ELEMENTS: [Self; 22] = [$(Self::$element),*];

            /// The block types, in order.
            pub const BLOCKS: &'static [Self] = &[$(Self::$block),*];

            /// Every type, in order.
            pub const ALL: &'static [Self] = &[$(Self::$element,)* $(Self::$block),*];

            /// Name of the type. The formats that have a type agree on it, `NumPy` excepted.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$element => $element_name,)*
                    $(Self::$block => $block_name,)*
                }
            }

            /// Elements per block: 1 for element types that fill whole bytes, the least number that does for the others.
            #[must_use]
            pub const fn block_len(self) -> usize {
                match self {
                    $(Self::$element => $element_len,)*
                    $(Self::$block => $block_len,)*
                }
            }

            /// Bytes per block of [`block_len`](Self::block_len) elements.
            #[must_use]
            pub const fn block_bytes(self) -> usize {
                match self {
                    $(Self::$element => $element_bytes,)*
                    $(Self::$block => $block_bytes,)*
                }
            }

            /// Bits per element of an element type, 4 to 64; 0 for block types.
            #[must_use]
            #[inline]
            pub const fn bits(self) -> u32 {
                match self {
                    $(Self::$element => $element_bytes * 8 / $element_len,)*
                    $(Self::$block => 0,)*
                }
            }

            /// Whether elements are quantized in blocks, or share a scale: not one of [`ELEMENTS`](Self::ELEMENTS).
            #[must_use]
            pub const fn is_quantized(self) -> bool {
                self.bits() == 0
            }

            /// Identifier in GGUF files; `None` for types that ggml does not have.
            #[must_use]
            pub const fn ggml_type(self) -> Option<GgmlType> {
                match self {
                    $(Self::$element => optional!($(GgmlType($element_ggml))?),)*
                    $(Self::$block => optional!($(GgmlType($block_ggml))?),)*
                }
            }

            /// Identifier in `.apr` files of version 2; `None` for types that the format does not have.
            #[must_use]
            pub const fn apr_type(self) -> Option<AprType> {
                match self {
                    $(Self::$element => optional!($(AprType($element_apr))?),)*
                    $(Self::$block => optional!($(AprType($block_apr))?),)*
                }
            }

            /// Name of an element type in `NumPy`, or in the package `ml_dtypes`; `None` for block types.
            #[must_use]
            pub const fn numpy_name(self) -> Option<&'static str> {
                match self {
                    $(Self::$element => Some($numpy),)*
                    _ => None,
                }
            }

            /// The element type whose name, followed by a quotation mark and zeros, has these little-endian bytes. Names of
            /// more than seven bytes are not found.
            #[must_use]
            #[inline]
            pub const fn from_quoted_word(word: u64) -> Option<Self> {
                $(if word == const { quoted($element_name) } {
                    return Some(Self::$element);
                })*
                None
            }
        }

        /// Every identifier of the specification of `.apr` files, version 2.
        #[expect(non_upper_case_globals, reason = "spelled as the specification spells them")]
        impl AprType {
            $($(#[doc = concat!("[`Dtype::", stringify!($element), "`].")] pub const $element: Self = Self($element_apr);)?)*
            $($(#[doc = concat!("[`Dtype::", stringify!($block), "`].")] pub const $block: Self = Self($block_apr);)?)*

            /// The data type with this identifier; `None` for unassigned ones.
            #[must_use]
            pub const fn known(self) -> Option<Dtype> {
                match self.0 {
                    $($($element_apr => Some(Dtype::$element),)?)*
                    $($($block_apr => Some(Dtype::$block),)?)*
                    _ => None,
                }
            }
        }

        impl GgmlType {
            /// The data type with this identifier; `None` for removed and unassigned ones.
            #[must_use]
            pub const fn known(self) -> Option<Dtype> {
                match self.0 {
                    $($($element_ggml => Some(Dtype::$element),)?)*
                    $($($block_ggml => Some(Dtype::$block),)?)*
                    _ => None,
                }
            }
        }
    };
}

dtypes! {
    elements {
        /// One byte, 0 or 1.
        Bool = "BOOL", 1 in 1, numpy "bool";
        /// OCP MX E2M1: 4 bits, no infinity, no NaN.
        F4 = "F4", 2 in 1, numpy "float4_e2m1fn";
        /// OCP MX E2M3: 6 bits, no infinity, no NaN.
        F6E2M3 = "F6_E2M3", 4 in 3, numpy "float6_e2m3fn";
        /// OCP MX E3M2: 6 bits, no infinity, no NaN.
        F6E3M2 = "F6_E3M2", 4 in 3, numpy "float6_e3m2fn";
        /// Unsigned 8-bit integer.
        U8 = "U8", 1 in 1, apr 7, numpy "uint8";
        /// Signed 8-bit integer.
        I8 = "I8", 1 in 1, apr 6, ggml 24, numpy "int8";
        /// OFP8 E5M2: an IEEE-like 8-bit float with infinities.
        F8E5M2 = "F8_E5M2", 1 in 1, numpy "float8_e5m2";
        /// OFP8 E4M3: 8-bit float without infinities, NaN only where all exponent and mantissa bits are set.
        F8E4M3 = "F8_E4M3", 1 in 1, numpy "float8_e4m3fn";
        /// OCP MX scale: 2^(x - 127), 255 is NaN.
        F8E8M0 = "F8_E8M0", 1 in 1, numpy "float8_e8m0fnu";
        /// E4M3 with exponent bias 8, no negative zero; 0x80 is the only NaN.
        F8E4M3Fnuz = "F8_E4M3FNUZ", 1 in 1, numpy "float8_e4m3fnuz";
        /// E5M2 with exponent bias 16, no negative zero; 0x80 is the only NaN.
        F8E5M2Fnuz = "F8_E5M2FNUZ", 1 in 1, numpy "float8_e5m2fnuz";
        /// Signed 16-bit integer.
        I16 = "I16", 1 in 2, ggml 25, numpy "int16";
        /// Unsigned 16-bit integer.
        U16 = "U16", 1 in 2, numpy "uint16";
        /// IEEE 754 binary16.
        F16 = "F16", 1 in 2, apr 1, ggml 1, numpy "float16";
        /// bfloat16: the upper half of a binary32.
        Bf16 = "BF16", 1 in 2, apr 30, ggml 30, numpy "bfloat16";
        /// Signed 32-bit integer.
        I32 = "I32", 1 in 4, apr 4, ggml 26, numpy "int32";
        /// Unsigned 32-bit integer.
        U32 = "U32", 1 in 4, numpy "uint32";
        /// IEEE 754 binary32.
        F32 = "F32", 1 in 4, apr 0, ggml 0, numpy "float32";
        /// Complex number: two binary32, real part first.
        C64 = "C64", 1 in 8, numpy "complex64";
        /// IEEE 754 binary64.
        F64 = "F64", 1 in 8, apr 3, ggml 28, numpy "float64";
        /// Signed 64-bit integer.
        I64 = "I64", 1 in 8, apr 5, ggml 27, numpy "int64";
        /// Unsigned 64-bit integer.
        U64 = "U64", 1 in 8, numpy "uint64";
    }
    blocks {
        /// `f16` scale d, 32 4-bit codes q: (q - 8) d.
        Q4_0 = "Q4_0", 32 in 18, ggml 2;
        /// `f16` scale d and minimum m, 32 4-bit codes q: q d + m.
        Q4_1 = "Q4_1", 32 in 20, ggml 3;
        /// `f16` scale d, the fifth bits of 32 codes, their low 4 bits: (q - 16) d.
        Q5_0 = "Q5_0", 32 in 22, ggml 6;
        /// `f16` scale d and minimum m, the fifth bits of 32 codes, their low 4 bits: q d + m.
        Q5_1 = "Q5_1", 32 in 24, ggml 7;
        /// `f16` scale d, 32 signed 8-bit codes q: q d.
        Q8_0 = "Q8_0", 32 in 34, ggml 8;
        /// `f16` scale, `f16` sum, 32 signed 8-bit codes; an operand of dot products.
        Q8_1 = "Q8_1", 32 in 36, ggml 9;
        /// 16 groups of 16 with 4-bit scales and minimums, 2-bit codes.
        Q2_K = "Q2_K", 256 in 84, ggml 10;
        /// 16 groups of 16 with 6-bit scales, 3-bit codes.
        Q3_K = "Q3_K", 256 in 110, ggml 11;
        /// 8 groups of 32 with 6-bit scales and minimums, 4-bit codes.
        Q4_K = "Q4_K", 256 in 144, apr 12, ggml 12;
        /// 8 groups of 32 with 6-bit scales and minimums, 5-bit codes.
        Q5_K = "Q5_K", 256 in 176, ggml 13;
        /// 16 groups of 16 with 8-bit scales, 6-bit codes.
        Q6_K = "Q6_K", 256 in 210, apr 14, ggml 14;
        /// `f32` scale, 256 signed 8-bit codes, 16 sums; an operand of dot products.
        Q8_K = "Q8_K", 256 in 292, ggml 15;
        /// 2-bit codes into a codebook of 256 points.
        IQ2_XXS = "IQ2_XXS", 256 in 66, ggml 16;
        /// 2-bit codes into a codebook of 512 points.
        IQ2_XS = "IQ2_XS", 256 in 74, ggml 17;
        /// 3-bit codes into a codebook of 256 points.
        IQ3_XXS = "IQ3_XXS", 256 in 98, ggml 18;
        /// 1.5-bit codes into a codebook of 2,048 points.
        IQ1_S = "IQ1_S", 256 in 50, ggml 19;
        /// `f16` scale, 32 4-bit indices into a non-linear table of 16 levels.
        IQ4_NL = "IQ4_NL", 32 in 18, ggml 20;
        /// 3-bit codes into a codebook of 512 points.
        IQ3_S = "IQ3_S", 256 in 110, ggml 21;
        /// 2-bit codes into a codebook of 1,024 points.
        IQ2_S = "IQ2_S", 256 in 82, ggml 22;
        /// 8 groups of 32 with 6-bit scales, 4-bit indices into a non-linear table of 16 levels.
        IQ4_XS = "IQ4_XS", 256 in 136, ggml 23;
        /// 1.75-bit codes into a codebook of 2,048 points.
        IQ1_M = "IQ1_M", 256 in 56, ggml 29;
        /// Ternary codes, five per byte, one `f16` scale.
        TQ1_0 = "TQ1_0", 256 in 54, ggml 34;
        /// Ternary codes, four per byte, one `f16` scale.
        TQ2_0 = "TQ2_0", 256 in 66, ggml 35;
        /// OCP microscaling: an E8M0 scale, 32 E2M1 floats.
        MXFP4 = "MXFP4", 32 in 17, ggml 39;
        /// Four 8-bit float scales, 64 E2M1 floats.
        NVFP4 = "NVFP4", 64 in 36, ggml 40;
        /// `f16` scale, 128 signs.
        Q1_0 = "Q1_0", 128 in 18, ggml 41;
        /// `f16` scale d, 64 2-bit codes q: (q - 1) d.
        Q2_0 = "Q2_0", 64 in 18, ggml 42;
        /// 4-bit blocks of `.apr` files: `f16` scale, then two neighbouring elements per byte. Not ggml's `Q4_0`, which stores
        /// element i beside element i + 16.
        AprQ4 = "AprQ4", 32 in 18, apr 128;
        /// 8-bit codes of `.apr` files after one `f32` scale for the whole tensor, [`scale_bytes`](Self::scale_bytes).
        AprQ8 = "AprQ8", 1 in 1, apr 129;
    }
}

impl Dtype {
    /// The type with this name. Names are case-sensitive.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }

    /// The element type with this name, as safetensors spells it.
    #[must_use]
    pub fn element_from_name(name: &str) -> Option<Self> {
        Self::ELEMENTS.into_iter().find(|dtype| dtype.name() == name)
    }

    /// The type with this name in upper or lower case.
    #[must_use]
    pub fn from_name_ignore_case(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name().eq_ignore_ascii_case(name))
    }

    /// The element type that `NumPy` or `ml_dtypes` calls this.
    #[must_use]
    pub fn from_numpy_name(name: &str) -> Option<Self> {
        Self::ELEMENTS.into_iter().find(|dtype| dtype.numpy_name() == Some(name))
    }

    /// Bits per element, the scales of blocks included.
    #[must_use]
    pub fn bits_per_weight(self) -> f64 {
        self.block_bytes() as f64 * 8.0 / self.block_len() as f64
    }

    /// Bytes before the first block of a tensor that has elements: the scale of `AprQ8`.
    #[must_use]
    pub const fn scale_bytes(self) -> usize {
        if matches!(self, Self::AprQ8) { 4 } else { 0 }
    }
}

/// The bytes of a name of at most seven and a quotation mark; a value that no name has for longer ones.
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
        for &dtype in Dtype::ALL {
            assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
            assert_eq!(Dtype::from_name_ignore_case(&dtype.name().to_ascii_lowercase()), Some(dtype));
        }
        assert_eq!(Dtype::from_name("f32"), None);
        assert!(Dtype::ALL.is_sorted());
        assert_eq!(Dtype::ALL.len(), Dtype::ELEMENTS.len() + Dtype::BLOCKS.len());
    }

    #[test]
    fn identifiers_are_distinct() {
        for (idx, dtype) in Dtype::ALL.iter().enumerate() {
            for other in &Dtype::ALL[idx + 1..] {
                assert!(dtype.ggml_type().is_none() || dtype.ggml_type() != other.ggml_type());
                assert!(dtype.apr_type().is_none() || dtype.apr_type() != other.apr_type());
                assert!(dtype.numpy_name().is_none() || dtype.numpy_name() != other.numpy_name());
            }
        }
    }

    #[test]
    fn element_types_fill_whole_bytes_in_blocks() {
        for dtype in Dtype::ELEMENTS {
            assert!(!dtype.is_quantized());
            assert_eq!(dtype.bits() as usize * dtype.block_len(), 8 * dtype.block_bytes(), "{dtype}");
            assert_eq!(dtype.numpy_name().and_then(Dtype::from_numpy_name), Some(dtype));
        }
        assert!(Dtype::BLOCKS.iter().all(|dtype| dtype.is_quantized()));
        assert_eq!((Dtype::F4.bits(), Dtype::F6E2M3.bits(), Dtype::C64.bits()), (4, 6, 64));
    }

    #[test]
    fn short_names_are_found_with_their_quotation_mark() {
        for dtype in Dtype::ELEMENTS {
            let text = alloc::format!("{dtype}\"\0\0\0\0\0\0\0");
            let word = u64::from_le_bytes(*text.as_bytes().first_chunk().unwrap());
            assert_eq!(Dtype::from_quoted_word(word), (dtype.name().len() < 8).then_some(dtype));
            assert_eq!(Dtype::from_quoted_word(word ^ 1), None);
        }
        assert_eq!(Dtype::from_quoted_word(u64::from_le_bytes(*b"F32\0\"\0\0\0")), None);
        assert_eq!(
            (quoted("F4"), quoted("F8_E4M3"), quoted("F8_E4M3FNUZ")),
            (0x22_3446, 0x2233_4d34_455f_3846, u64::MAX)
        );
    }

    #[test]
    fn display_pads() {
        assert_eq!(alloc::format!("{:>5}|{:<5}", Dtype::U8, Dtype::Bf16), "   U8|BF16 ");
    }
}
