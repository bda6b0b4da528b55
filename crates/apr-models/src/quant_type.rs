//! Formats of quantized values in version 1 payloads.

/// Values that share a scale.
pub(crate) const BLOCK: usize = 32;

/// How a [`QuantizedBlock`](crate::QuantizedBlock) stores its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuantType {
    /// Blocks of 32: a 16-bit float scale, then 32 signed bytes.
    Q8_0,
    /// Blocks of 32: a 16-bit float scale, then 16 bytes, byte `i` with value `2i` in its low and `2i + 1` in its high
    /// half, each stored as value plus 8. Not the order of the format of the same name in GGUF files.
    Q4_0,
    /// Reserved: no known writer uses it.
    Q4_1,
    /// Reserved: no known writer uses it.
    Q8Tensor,
    /// A format of the user.
    Custom,
}

impl QuantType {
    pub(crate) const ALL: [Self; 5] = [Self::Q8_0, Self::Q4_0, Self::Q4_1, Self::Q8Tensor, Self::Custom];

    /// Its name in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Q8_0 => "Q8_0",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q8Tensor => "Q8Tensor",
            Self::Custom => "Custom",
        }
    }

    /// Bytes of a block, of formats with a known meaning.
    pub(crate) const fn block_len(self) -> Option<usize> {
        match self {
            Self::Q8_0 => Some(2 + BLOCK),
            Self::Q4_0 => Some(2 + BLOCK / 2),
            Self::Q4_1 | Self::Q8Tensor | Self::Custom => None,
        }
    }
}
