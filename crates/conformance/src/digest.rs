//! SHA-256 as the manifests write it.

use core::fmt::Write as _;

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
    hex(&Sha256::digest(bytes))
}

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(out, "{byte:02x}"); // A string takes everything.
    }
    out
}
