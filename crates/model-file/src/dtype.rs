//! Types of tensors.

use core::fmt;

use apr_container::v2;
use apr_quant::BlockFormat;

/// Type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dtype {
    /// One that safetensors has.
    Plain(st_core::Dtype),
    /// Quantized blocks of ggml.
    Block(BlockFormat),
    /// One of `.apr` files alone: their own quantized blocks, and types that no specification lists.
    Packed(v2::AprType),
}

impl Dtype {
    /// Name of the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain(dtype) => dtype.name(),
            Self::Block(format) => format.name(),
            Self::Packed(dtype) => dtype.name().unwrap_or("unknown"),
        }
    }

    /// Common name of this quantization: that of ggml, also for blocks of `.apr` files with the same bits.
    #[must_use]
    pub fn common_name(self) -> &'static str {
        match self {
            Self::Packed(v2::AprType::AprQ4) => BlockFormat::Q4_0.name(),
            Self::Packed(v2::AprType::AprQ8) => BlockFormat::Q8_0.name(),
            _ => self.name(),
        }
    }

    /// The type in safetensors.
    #[must_use]
    pub fn plain(self) -> Option<st_core::Dtype> {
        match self {
            Self::Plain(dtype) => Some(dtype),
            Self::Block(_) | Self::Packed(_) => None,
        }
    }

    /// The block format whose decoder reads the values; `None` of types without one.
    #[must_use]
    pub fn block_format(self) -> Option<BlockFormat> {
        match self {
            Self::Plain(dtype) => {
                IN_GGUF.iter().find(|(plain, _)| *plain == dtype).map(|(_, format)| *format)
            }
            Self::Block(format) => Some(format),
            Self::Packed(v2::AprType::AprQ4) => Some(BlockFormat::AprQ4),
            Self::Packed(v2::AprType::AprQ8) => Some(BlockFormat::AprQ8),
            Self::Packed(_) => None,
        }
    }

    /// The type in `.apr` version 2.
    #[must_use]
    pub fn in_apr(self) -> Option<v2::AprType> {
        match self {
            Self::Packed(dtype) => Some(dtype),
            Self::Block(BlockFormat::Q4_K) => Some(v2::AprType::Q4_K),
            Self::Block(BlockFormat::Q6_K) => Some(v2::AprType::Q6_K),
            Self::Block(_) => None,
            Self::Plain(dtype) => SHARED.iter().find(|(plain, _)| *plain == dtype).map(|(_, apr)| *apr),
        }
    }
}

/// Types that both formats have, with the same bytes.
const SHARED: [(st_core::Dtype, v2::AprType); 8] = [
    (st_core::Dtype::F64, v2::AprType::F64),
    (st_core::Dtype::F32, v2::AprType::F32),
    (st_core::Dtype::F16, v2::AprType::F16),
    (st_core::Dtype::Bf16, v2::AprType::Bf16),
    (st_core::Dtype::I64, v2::AprType::I64),
    (st_core::Dtype::I32, v2::AprType::I32),
    (st_core::Dtype::I8, v2::AprType::I8),
    (st_core::Dtype::U8, v2::AprType::U8),
];

/// Plain types of GGUF.
const IN_GGUF: [(st_core::Dtype, BlockFormat); 8] = [
    (st_core::Dtype::F64, BlockFormat::F64),
    (st_core::Dtype::F32, BlockFormat::F32),
    (st_core::Dtype::F16, BlockFormat::F16),
    (st_core::Dtype::Bf16, BlockFormat::BF16),
    (st_core::Dtype::I64, BlockFormat::I64),
    (st_core::Dtype::I32, BlockFormat::I32),
    (st_core::Dtype::I16, BlockFormat::I16),
    (st_core::Dtype::I8, BlockFormat::I8),
];

impl From<BlockFormat> for Dtype {
    fn from(format: BlockFormat) -> Self {
        match IN_GGUF.iter().find(|(_, known)| *known == format) {
            Some((plain, _)) => Self::Plain(*plain),
            None => Self::Block(format),
        }
    }
}

impl From<v2::AprType> for Dtype {
    fn from(dtype: v2::AprType) -> Self {
        match dtype {
            v2::AprType::Q4_K => return Self::Block(BlockFormat::Q4_K),
            v2::AprType::Q6_K => return Self::Block(BlockFormat::Q6_K),
            _ => {}
        }
        match SHARED.iter().find(|(_, apr)| *apr == dtype) {
            Some((plain, _)) => Self::Plain(*plain),
            None => Self::Packed(dtype),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
