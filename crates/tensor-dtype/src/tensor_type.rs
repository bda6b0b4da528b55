//! Data type of a tensor in a file of any format.

use core::fmt;

use crate::dtype::Dtype;
use crate::id::AprType;

/// Data type of a tensor in a file: a type of the table, an identifier that readers of `.apr` files carry without knowing it, or a type of
/// another program.
///
/// ```
/// use tensor_dtype::{AprType, Dtype, TensorType};
///
/// assert_eq!(TensorType::from(AprType(12)), TensorType::Known(Dtype::Q4_K));
/// assert_eq!(TensorType::from(AprType(77)).name(), "unknown");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TensorType {
    /// A type of the table.
    Known(Dtype),
    /// An identifier of an `.apr` file that no version of the format has assigned.
    Unknown(AprType),
    /// A type that none of these formats has, by the name that safetensors would give it: `C128`, `I4`.
    Other(&'static str),
}

impl TensorType {
    /// Name of the type; `unknown` for an unassigned identifier.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Known(dtype) => dtype.name(),
            Self::Unknown(_) => "unknown",
            Self::Other(name) => name,
        }
    }

    /// The type of the table.
    #[must_use]
    pub const fn known(self) -> Option<Dtype> {
        match self {
            Self::Known(dtype) => Some(dtype),
            Self::Unknown(_) | Self::Other(_) => None,
        }
    }

    /// The element type; `None` for block types and unassigned identifiers.
    #[must_use]
    pub const fn element(self) -> Option<Dtype> {
        match self {
            Self::Known(dtype) if !dtype.is_quantized() => Some(dtype),
            _ => None,
        }
    }

    /// Identifier in `.apr` files of version 2; `None` for types that the format does not have.
    #[must_use]
    pub const fn apr_type(self) -> Option<AprType> {
        match self {
            Self::Known(dtype) => dtype.apr_type(),
            Self::Unknown(id) => Some(id),
            Self::Other(_) => None,
        }
    }
}

impl From<Dtype> for TensorType {
    fn from(dtype: Dtype) -> Self {
        Self::Known(dtype)
    }
}

impl From<AprType> for TensorType {
    fn from(id: AprType) -> Self {
        id.known().map_or(Self::Unknown(id), Self::Known)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
