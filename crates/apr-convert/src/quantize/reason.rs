//! Why a tensor gets its data type.

use core::fmt;

use tensor_dtype::Dtype;

use super::kept::Kept;
use super::role::Role;

/// Why a tensor gets its data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It is the target type.
    Target,
    /// It keeps its type.
    Kept(Kept),
    /// The mixture has another type for tensors of this role.
    Mixture(Role),
    /// An override by name.
    Override {
        /// Index of the override, in the order given.
        index: usize,
    },
    /// An option for the output tensor or the token embeddings.
    Option(Role),
    /// The row length is not a multiple of the block size.
    Fallback {
        /// The type that was wanted.
        wanted: Dtype,
    },
    /// The format that is written does not have its type.
    TargetFormat {
        /// Its type before.
        was: Dtype,
    },
}

impl Reason {
    /// Identifier in reports.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Kept(kept) => kept.code(),
            Self::Mixture(_) => "mixture",
            Self::Override { .. } => "override",
            Self::Option(_) => "option",
            Self::Fallback { .. } => "fallback",
            Self::TargetFormat { .. } => "container",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target => f.write_str("target"),
            Self::Kept(kept) => kept.fmt(f),
            Self::Mixture(Role::Output) => f.write_str("mixture: the output tensor"),
            Self::Mixture(Role::TokenEmbedding) => f.write_str("mixture: token embeddings"),
            Self::Mixture(_) => f.write_str("mixture"),
            Self::Override { .. } => f.write_str("override"),
            Self::Option(_) => f.write_str("option"),
            Self::Fallback { wanted } => {
                write!(f, "fallback: row length not a multiple of {} ({wanted})", wanted.block_len())
            }
            Self::TargetFormat { was } => write!(f, "target format has no {was}"),
        }
    }
}
