//! How much a stranger's file may ask for.

/// What is accepted from files nobody vouches for yet.
///
/// ```
/// use apr_manifest::Limits;
///
/// let small = Limits { bundle_len: 1 << 20, ..Limits::default() };
/// assert!(small.files == Limits::default().files);
/// ```
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest bundle in bytes; 64 MiB, enough for some 300,000 files.
    pub bundle_len: u64,
    /// Most files in a folder, and most entries in a list; 1,000,000.
    pub files: usize,
    /// Longest file in bytes with a minisign signature of the old kind, which needs all of it in memory; 1 GiB, as
    /// minisign has it.
    pub legacy_len: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bundle_len: 64 << 20, files: 1_000_000, legacy_len: 1 << 30 }
    }
}
