//! SHA-256 as the sidecars write it.

use sha2::{Digest, Sha256};

/// SHA-256 in lower-case hexadecimal digits.
///
/// # Examples
///
/// ```
/// assert!(conformance::digest::sha256_hex(b"").starts_with("e3b0c442"));
/// ```
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(bytes))
}
