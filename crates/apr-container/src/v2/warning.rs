//! Warnings about a file of version 2.

use core::fmt;

/// A property of a file that is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Written for another version than 2.0.
    OtherVersion((u8, u8)),
    /// Flags or header bytes are set that version 2.0 does not define.
    ReservedInUse,
    /// A compression flag is set, the file is not compressed.
    NotCompressed {
        /// The algorithm the flag names.
        algorithm: &'static str,
    },
    /// Everything after the header was one compressed block, which most readers do not support.
    Inflated {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// The file is marked as encrypted: its tensors are not accessible.
    Encrypted,
    /// The file is marked as signed; the format does not define a signature.
    SignatureUnchecked,
    /// Tensors of an unknown type, which can only be copied.
    UnknownDtypes,
    /// Tensors share bytes.
    OverlappingTensors,
    /// The file has no checksum: corruption cannot be detected.
    NoFooter,
    /// The checksum at the end does not match: the file is corrupted.
    WrongFooter {
        /// Stored in the file.
        expected: u32,
        /// Computed over its bytes.
        actual: u32,
    },
    /// Bytes between the tensor data and the end that belong to no part.
    TrailingBytes {
        /// How many.
        count: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherVersion((major, minor)) => write!(f, "written for version {major}.{minor}"),
            Self::ReservedInUse => f.write_str("reserved flags or header bytes are in use"),
            Self::NotCompressed { algorithm } => {
                write!(f, "marked as compressed with {algorithm}, but it is not")
            }
            Self::Inflated { algorithm } => {
                write!(f, "compressed with {algorithm} as a whole, which most readers do not know")
            }
            Self::Encrypted => f.write_str("marked as encrypted: its tensors cannot be read"),
            Self::SignatureUnchecked => {
                f.write_str("marked as signed, but the format has no place for a signature")
            }
            Self::UnknownDtypes => f.write_str("some tensors have an unknown element type"),
            Self::OverlappingTensors => f.write_str("some tensors share bytes"),
            Self::NoFooter => f.write_str("no checksum at the end: damage cannot be noticed"),
            Self::WrongFooter { expected, actual } => {
                write!(f, "damaged: the checksum at the end is {expected:08X}, the bytes have {actual:08X}")
            }
            Self::TrailingBytes { count } => write!(f, "{count} bytes at the end belong to no part"),
        }
    }
}
