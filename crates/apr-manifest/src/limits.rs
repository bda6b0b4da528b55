//! Resource limits for untrusted bundles and folders.

/// Resource limits for files that are not verified yet.
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
}

impl Default for Limits {
    fn default() -> Self {
        Self { bundle_len: 64 << 20, files: 1_000_000 }
    }
}
