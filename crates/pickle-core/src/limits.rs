//! The resources a machine may use.

/// The resources a machine may use. Exceeding one is [`ErrorKind::Limit`](crate::ErrorKind::Limit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Opcodes of all pickles of a stream.
    pub opcodes: u64,
    /// Nodes of the tree; at most 2^32 - 16.
    pub values: u32,
    /// Entries of the memo.
    pub memo: u32,
    /// Open `MARK`s.
    pub marks: u32,
    /// Length of an integer: bytes of a binary one, digits of one in text.
    pub integer_bytes: u32,
    /// Length of the module of a global, and of its name.
    pub name_bytes: u32,
    /// Bytes of strings that had to be decoded because of their escapes.
    pub decoded_bytes: u32,
}

impl Limits {
    /// Above every checkpoint known, and low enough that a file of a few kilobytes cannot occupy a machine.
    pub const DEFAULT: Self = Self {
        opcodes: 1 << 26,
        values: 1 << 26,
        memo: 1 << 24,
        marks: 1 << 20,
        integer_bytes: 4096,
        name_bytes: 4096,
        decoded_bytes: 1 << 26,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
