//! Targets of quantization, by their usual names (`q4_k_m`).

use alloc::collections::BTreeMap;
use core::fmt;

use tensor_dtype::Dtype;

use super::plan::shorter;
use crate::error::{Error, ErrorKind};

/// `general.file_type` of a GGUF file: what most of its tensors are, and by which mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileType(pub u32);

macro_rules! file_types {
    ($($variant:ident = $id:literal, $base:ident;)*) => {
        #[expect(missing_docs, reason = "the name says it all")]
        impl FileType {
            $(pub const $variant: Self = Self($id);)*

            /// Those that models are quantized to here, with the format of most tensors.
            const ALL: &'static [(Self, &'static str, Dtype)] =
                &[$((Self::$variant, stringify!($variant), Dtype::$base)),*];
        }
    };
}

impl FileType {
    /// The type of a file with these tensors, each with its number of elements: that of the quantized type, or without one the element type, of the most
    /// elements. Of several mixtures it is the usual one (`_M`), as llama.cpp says of a file without `general.file_type`.
    ///
    /// ```
    /// use apr_convert::quantize::FileType;
    /// use tensor_dtype::Dtype;
    ///
    /// let of = |tensors: &[(Dtype, u64)]| FileType::of(tensors.iter().copied());
    /// assert_eq!(of(&[(Dtype::F32, 900), (Dtype::Q4_K, 100), (Dtype::Q6_K, 50)]), Some(FileType::Q4_K_M));
    /// assert_eq!(of(&[(Dtype::F32, 10), (Dtype::Bf16, 100)]), Some(FileType::BF16));
    /// assert_eq!(of(&[(Dtype::I32, 10)]), None);
    /// ```
    #[must_use]
    pub fn of(tensors: impl IntoIterator<Item = (Dtype, u64)>) -> Option<Self> {
        let mut counts: BTreeMap<u32, (u64, Dtype)> = BTreeMap::new();
        for (dtype, count) in tensors {
            let dtype = in_gguf(dtype);
            if let Some(file_type) = Self::usual(dtype) {
                counts.entry(file_type.0).or_insert((0, dtype)).0 += count;
            }
        }
        let is_quantized = counts.values().any(|(_, dtype)| dtype.is_quantized());
        let counts = counts.into_iter().filter(|(_, (_, dtype))| dtype.is_quantized() == is_quantized);
        counts.max_by_key(|(_, (count, _))| *count).map(|(id, _)| Self(id))
    }

    /// Whether a file with tensors of these types can be of this type. Unknown numbers are not judged.
    #[must_use]
    pub fn fits(self, dtypes: impl IntoIterator<Item = Dtype>) -> bool {
        let base = Self::ALL.iter().find(|(known, ..)| *known == self).map(|(.., base)| *base);
        let Some(base) = base else { return true };
        let (mut is_there, mut is_quantized) = (false, false);
        for dtype in dtypes.into_iter().map(in_gguf) {
            // Rows that are too short for its blocks have the next shorter ones, in `.apr` files of `Q4_K` those of 4 bits, or 16 bits.
            is_there |= dtype == base || shorter(base) == Some(dtype);
            is_there |= base == Dtype::Q4_K && dtype == Dtype::Q4_0;
            is_there |= base.is_quantized() && matches!(dtype, Dtype::F16 | Dtype::Bf16);
            is_quantized |= dtype.is_quantized();
        }
        is_there && (base.is_quantized() || !is_quantized)
    }

    /// The usual type of a file whose tensors have this type.
    fn usual(dtype: Dtype) -> Option<Self> {
        Some(match dtype {
            Dtype::Q3_K => Self::Q3_K_M,
            Dtype::Q4_K => Self::Q4_K_M,
            Dtype::Q5_K => Self::Q5_K_M,
            Dtype::IQ2_XXS => Self(19),
            Dtype::IQ2_XS => Self(20),
            Dtype::IQ3_XXS => Self(23),
            Dtype::IQ1_S => Self(24),
            Dtype::IQ3_S => Self(26),
            Dtype::IQ2_S => Self(29),
            Dtype::IQ1_M => Self(31),
            _ => return Self::ALL.iter().find(|(.., base)| *base == dtype).map(|(file_type, ..)| *file_type),
        })
    }
}

/// The type that blocks of `.apr` files become in a GGUF file.
const fn in_gguf(dtype: Dtype) -> Dtype {
    match dtype {
        Dtype::AprQ4 => Dtype::Q4_0,
        Dtype::AprQ8 => Dtype::Q8_0,
        dtype => dtype,
    }
}

file_types! {
    F32 = 0, F32;
    F16 = 1, F16;
    Q4_0 = 2, Q4_0;
    Q4_1 = 3, Q4_1;
    Q8_0 = 7, Q8_0;
    Q5_0 = 8, Q5_0;
    Q5_1 = 9, Q5_1;
    Q2_K = 10, Q2_K;
    Q3_K_S = 11, Q3_K;
    Q3_K_M = 12, Q3_K;
    Q3_K_L = 13, Q3_K;
    Q4_K_S = 14, Q4_K;
    Q4_K_M = 15, Q4_K;
    Q5_K_S = 16, Q5_K;
    Q5_K_M = 17, Q5_K;
    Q6_K = 18, Q6_K;
    Q2_K_S = 21, Q2_K;
    IQ4_NL = 25, IQ4_NL;
    IQ4_XS = 30, IQ4_XS;
    BF16 = 32, Bf16;
    TQ1_0 = 36, TQ1_0;
    TQ2_0 = 37, TQ2_0;
    MXFP4_MOE = 38, MXFP4;
    NVFP4 = 39, NVFP4;
    Q1_0 = 40, Q1_0;
    Q2_0 = 41, Q2_0;
}

/// Other spellings: those of llama-quantize, of ggml's types, and of other programs for `.apr` files.
const ALIASES: &[(&str, FileType)] = &[
    ("Q3_K", FileType::Q3_K_M),
    ("Q4_K", FileType::Q4_K_M),
    ("Q5_K", FileType::Q5_K_M),
    ("Q4K", FileType::Q4_K_M),
    ("Q5K", FileType::Q5_K_M),
    ("Q6K", FileType::Q6_K),
    ("MXFP4", FileType::MXFP4_MOE),
    ("INT4", FileType::Q4_0),
    ("INT8", FileType::Q8_0),
    ("FP16", FileType::F16),
    ("FP32", FileType::F32),
];

/// File types of llama-quantize that are only decoded here, with the nearest alternative.
const READ_ONLY: &[(&str, &str)] = &[
    ("IQ1_S", "TQ1_0"),
    ("IQ1_M", "TQ1_0"),
    ("IQ2_XXS", "Q2_K"),
    ("IQ2_XS", "Q2_K"),
    ("IQ2_S", "Q2_K"),
    ("IQ2_M", "Q2_K"),
    ("IQ3_XXS", "Q3_K_S"),
    ("IQ3_XS", "Q3_K_S"),
    ("IQ3_S", "Q3_K_S"),
    ("IQ3_M", "Q3_K_M"),
];

/// The target of quantization: the type of most tensors, and the mixture.
///
/// ```
/// use apr_convert::quantize::{FileType, Target};
/// use tensor_dtype::Dtype;
///
/// let target = Target::from_name("q4_k_m")?;
/// assert_eq!((target.file_type(), target.base()), (FileType::Q4_K_M, Dtype::Q4_K));
/// assert_eq!(Target::from_name("int8")?, Target::from_name("Q8_0")?);
/// assert_eq!(Target::from_name("q9").unwrap_err().code(), "cv-target");
/// assert_eq!(Target::from_name("iq2_xs").unwrap_err().code(), "cv-read-only-target");
/// # Ok::<(), apr_convert::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    file_type: FileType,
    name: &'static str,
    base: Dtype,
}

impl Target {
    /// The target of this name, in capitals or not: llama-quantize's (`Q4_K_M`, `q4_0`), and `int4`, `int8`, `fp16`,
    /// `fp32`, `q4k`, `q6k`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownTarget`]; [`ErrorKind::ReadOnlyTarget`] for the codebook formats.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        let alias = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
        let found = FileType::ALL.iter().find(|(file_type, own, _)| match alias {
            Some((_, meant)) => meant == file_type,
            None => own.eq_ignore_ascii_case(name),
        });
        if let Some(&(file_type, name, base)) = found {
            return Ok(Self { file_type, name, base });
        }
        let read_only = READ_ONLY.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        Err(match read_only {
            Some(&(name, instead)) => ErrorKind::ReadOnlyTarget { name, instead },
            None => ErrorKind::UnknownTarget { name: name.into() },
        }
        .into())
    }

    /// Every name that is not an alias, in llama-quantize's order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FileType::ALL.iter().map(|(_, name, _)| *name)
    }

    /// Number in `general.file_type`.
    #[must_use]
    pub const fn file_type(self) -> FileType {
        self.file_type
    }

    /// llama-quantize's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The format of most tensors.
    #[must_use]
    pub const fn base(self) -> Dtype {
        self.base
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_type_fits_the_tensors_or_not() {
        use Dtype::{AprQ4, F16, F32, Q4_0, Q4_K, Q6_K};
        assert!(FileType::Q4_K_S.fits([F32, Q4_K, Q6_K]) && FileType::F16.fits([F32, F16]));
        assert!(FileType::Q4_K_M.fits([F32, Dtype::Q5_0]) && FileType::Q4_K_M.fits([F32, AprQ4]));
        assert!(FileType::Q4_0.fits([F32, AprQ4]) && FileType(1024).fits([F32]) && FileType(27).fits([F32]));
        assert!(
            !FileType::F32.fits([F32, Q4_0]) && !FileType::Q4_0.fits([F32]) && !FileType::F16.fits([F32])
        );
        assert_eq!(FileType::of([(F32, 9), (AprQ4, 1)]), Some(FileType::Q4_0));
        for (file_type, _, base) in FileType::ALL {
            let usual = FileType::of([(*base, 1)]).unwrap();
            assert!(usual.fits([*base]) && file_type.fits([*base]), "{base}");
        }
    }

    #[test]
    fn every_name_is_found_and_can_be_made() {
        for name in Target::names() {
            let target = Target::from_name(&name.to_ascii_lowercase()).unwrap();
            assert_eq!(target.name(), name);
            assert!(apr_quant::Quantizer::new(target.base()).is_ok(), "{name}");
        }
        for (alias, file_type) in ALIASES {
            assert_eq!(Target::from_name(alias).unwrap().file_type(), *file_type);
        }
        for (name, instead) in READ_ONLY {
            assert_eq!(Target::from_name(name).unwrap_err().code(), "cv-read-only-target");
            assert!(Target::from_name(instead).is_ok());
        }
        assert_eq!(Target::from_name("").unwrap_err().code(), "cv-target");
    }
}
