//! Resource limits for sealed files.

use apr_crypto::Argon2Limits;

/// Resource limits of a reader of sealed files, checked before anything is allocated. Every length is compared with the
/// file's own as well.
#[derive(Clone, Debug)]
pub struct SealedLimits {
    /// Longest public metadata. Default 1 MiB.
    pub public_bytes: u64,
    /// Longest directory as stored. Default 64 MiB.
    pub directory_bytes: u64,
    /// Most parts. Default 2^21.
    pub parts: usize,
    /// Most stanzas that a recipient's key is tried on: each costs a multiplication on the curve. Default 1,024.
    pub stanzas: usize,
    /// What a password may cost.
    pub argon2: Argon2Limits,
}

impl Default for SealedLimits {
    fn default() -> Self {
        Self {
            public_bytes: 1 << 20,
            directory_bytes: 64 << 20,
            parts: 1 << 21,
            stanzas: 1024,
            argon2: Argon2Limits::default(),
        }
    }
}
