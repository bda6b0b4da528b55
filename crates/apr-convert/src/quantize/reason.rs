//! Why a tensor becomes what it becomes.

use core::fmt;

use tensor_dtype::Dtype;

use super::kept::Kept;
use super::role::Role;

/// Why a tensor becomes what it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It is the target.
    Target,
    /// It is left as it is.
    Kept(Kept),
    /// The mixture has another format for what the tensor does.
    Mixture(Role),
    /// Asked for by name: which override, in the order given.
    Override {
        /// Which.
        index: usize,
    },
    /// Asked for by an option about the output tensor or the token embeddings.
    Option(Role),
    /// Its rows are no whole number of blocks.
    Fallback {
        /// What it would have become.
        wanted: Dtype,
    },
    /// The file to be written has no place for what it was.
    TargetFormat {
        /// What it was.
        was: Dtype,
    },
}

impl Reason {
    /// For reports.
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
                write!(f, "fallback: rows are no multiple of {} ({wanted})", wanted.block_len())
            }
            Self::TargetFormat { was } => write!(f, "the new file has no {was}"),
        }
    }
}
