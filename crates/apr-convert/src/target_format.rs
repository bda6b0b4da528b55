//! Formats of output files.

use core::fmt;

use tensor_dtype::Dtype;

/// A file format that tensors are written into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetFormat {
    /// GGUF: every type of ggml.
    #[default]
    Gguf,
    /// `.apr` version 2: element types, its own 4-bit and 8-bit types, `Q4_K` and `Q6_K`.
    Apr,
    /// safetensors: element types.
    SafeTensors,
}

impl TargetFormat {
    /// Whether the format has this data type.
    #[must_use]
    pub const fn has(self, dtype: Dtype) -> bool {
        match self {
            Self::Gguf => dtype.ggml_type().is_some(),
            Self::Apr => dtype.apr_type().is_some(),
            Self::SafeTensors => !dtype.is_quantized(),
        }
    }
}

impl fmt::Display for TargetFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Gguf => "GGUF",
            Self::Apr => "an .apr file",
            Self::SafeTensors => "safetensors",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_its_types() {
        assert!(!TargetFormat::Apr.has(Dtype::Q4_0) && TargetFormat::Gguf.has(Dtype::Q4_0));
        assert!(!TargetFormat::Gguf.has(Dtype::AprQ4) && !TargetFormat::SafeTensors.has(Dtype::Q8_0));
    }
}
