//! The resources an archive may use.

/// The resources an archive may use. Exceeding one is [`ErrorKind::Limit`](crate::ErrorKind::Limit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Members.
    pub entries: u64,
    /// Bytes of the central directory.
    pub directory_bytes: u64,
    /// Findings that are kept.
    pub findings: usize,
}

impl Limits {
    /// A million members.
    pub const DEFAULT: Self = Self { entries: 1 << 20, directory_bytes: 1 << 28, findings: 1000 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
