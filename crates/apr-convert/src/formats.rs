//! What the types of the three formats have in common.

use core::fmt;

use apr_container::v2;
use apr_quant::BlockFormat;

/// A file that tensors are written into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container {
    /// GGUF: every type of ggml.
    #[default]
    Gguf,
    /// `.apr` of version 2: plain numbers, its own 4 and 8 bits, `Q4_K` and `Q6_K`.
    Apr,
    /// safetensors: plain numbers.
    SafeTensors,
}

impl Container {
    /// Whether the file has a place for this format.
    #[must_use]
    pub fn has(self, format: BlockFormat) -> bool {
        match self {
            Self::Gguf => format.ggml_type().is_some(),
            Self::Apr => apr_of_format(format).is_some(),
            Self::SafeTensors => safetensors_of_format(format).is_some(),
        }
    }

    /// The `.apr` type with these bytes.
    #[must_use]
    pub fn apr_dtype(format: BlockFormat) -> Option<v2::AprType> {
        apr_of_format(format)
    }

    /// The safetensors type with these bytes.
    #[must_use]
    pub fn safetensors_dtype(format: BlockFormat) -> Option<st_core::Dtype> {
        safetensors_of_format(format)
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Gguf => "GGUF",
            Self::Apr => "an .apr file",
            Self::SafeTensors => "safetensors",
        })
    }
}

const OF_APR: [(v2::AprType, BlockFormat); 11] = [
    (v2::AprType::F32, BlockFormat::F32),
    (v2::AprType::F16, BlockFormat::F16),
    (v2::AprType::Bf16, BlockFormat::BF16),
    (v2::AprType::F64, BlockFormat::F64),
    (v2::AprType::I8, BlockFormat::I8),
    (v2::AprType::I32, BlockFormat::I32),
    (v2::AprType::I64, BlockFormat::I64),
    (v2::AprType::Q4_K, BlockFormat::Q4_K),
    (v2::AprType::Q6_K, BlockFormat::Q6_K),
    (v2::AprType::AprQ4, BlockFormat::AprQ4),
    (v2::AprType::AprQ8, BlockFormat::AprQ8),
];

const OF_SAFETENSORS: [(st_core::Dtype, BlockFormat); 8] = [
    (st_core::Dtype::F32, BlockFormat::F32),
    (st_core::Dtype::F16, BlockFormat::F16),
    (st_core::Dtype::Bf16, BlockFormat::BF16),
    (st_core::Dtype::F64, BlockFormat::F64),
    (st_core::Dtype::I8, BlockFormat::I8),
    (st_core::Dtype::I16, BlockFormat::I16),
    (st_core::Dtype::I32, BlockFormat::I32),
    (st_core::Dtype::I64, BlockFormat::I64),
];

/// The format behind a type of `.apr` files; `None` for `U8` and for types nobody knows.
#[must_use]
pub fn format_of_apr(dtype: v2::AprType) -> Option<BlockFormat> {
    OF_APR.iter().find(|(apr, _)| *apr == dtype).map(|(_, format)| *format)
}

/// The format behind a type of safetensors; `None` for those that ggml does not have.
#[must_use]
pub fn format_of_safetensors(dtype: st_core::Dtype) -> Option<BlockFormat> {
    OF_SAFETENSORS.iter().find(|(plain, _)| *plain == dtype).map(|(_, format)| *format)
}

fn apr_of_format(format: BlockFormat) -> Option<v2::AprType> {
    OF_APR.iter().find(|(_, found)| *found == format).map(|(apr, _)| *apr)
}

fn safetensors_of_format(format: BlockFormat) -> Option<st_core::Dtype> {
    OF_SAFETENSORS.iter().find(|(_, found)| *found == format).map(|(plain, _)| *plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_keep_their_size() {
        for (dtype, format) in OF_APR {
            assert_eq!(v2::byte_len(dtype, &[2, 256]).unwrap(), format.byte_len(256, 2).unwrap(), "{format}");
            assert!(Container::Apr.has(format));
        }
        assert!(!Container::Apr.has(BlockFormat::Q4_0) && Container::Gguf.has(BlockFormat::Q4_0));
        assert!(!Container::Gguf.has(BlockFormat::AprQ4) && !Container::SafeTensors.has(BlockFormat::Q8_0));
        assert_eq!(format_of_apr(v2::AprType::U8), None);
        assert_eq!(format_of_safetensors(st_core::Dtype::Bool), None);
    }
}
