//! Signatures and keys of minisign.
//!
//! Formats: <https://jedisct1.github.io/minisign/>. A signature is a text of four lines: a comment, the signature, a second
//! comment, and a signature over the first signature and the second comment, which is therefore *trusted*. What is
//! signed is the BLAKE2b-512 hash of the file, so that a file of any size goes by once.
//!
//! | text | base64 of |
//! |---|---|
//! | public key | `Ed`, key id (8), Ed25519 public key (32) |
//! | secret key without password | `Ed`, two zero bytes, `B2`, 48 zero bytes, key id (8), seed (32), public key (32), 32 zero bytes |
//! | signature | `ED` (or `Ed`: of the file itself, not its hash), key id (8), Ed25519 signature (64) |
//!
//! Secret keys under a password (scrypt), as `minisign -G` makes them, are read with the feature `scrypt`; without it,
//! `minisign -C -W` takes the password off.
//!
//! ```
//! # let rng = &mut apr_crypto::OsRandom;
//! use apr_crypto::SigningKey;
//! use apr_crypto::minisign::{Prehash, SecretKey, Signature};
//!
//! let key = SecretKey::from(SigningKey::generate(rng)?);
//! let mut hash = Prehash::new();
//! hash.update(b"wei");
//! hash.update(b"ghts");
//! let hash = hash.finish();
//! let text = key.sign(&hash, "version 1.2", "signed with apr")?.to_string();
//!
//! // Who has the public key and the file checks both and learns the trusted comment.
//! let signature = Signature::from_text(&text)?;
//! assert_eq!(key.public().verify(&hash, &signature)?, "version 1.2");
//! # Ok::<(), apr_crypto::Error>(())
//! ```

mod key;
#[cfg(feature = "scrypt")]
mod locked;
mod signature;

pub use key::{FileVerification, KeyId, PublicKey, SecretKey};
pub use signature::Signature;

use alloc::vec::Vec;
use base64ct::{Base64, Encoding};
use blake2::{Blake2b512, Digest};
use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind};
use crate::secret::redacted;

/// Maximum length of the text.
const MAX_TEXT_LEN: usize = 16 * 1024;

const UNTRUSTED: &str = "untrusted comment: ";
const TRUSTED: &str = "trusted comment: ";

/// The hash that is signed in place of a file: BLAKE2b-512.
#[derive(Clone)]
pub struct Prehash(Blake2b512);

impl Prehash {
    /// Length of the hash.
    pub const LEN: usize = 64;

    /// Of a file that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self(Blake2b512::new())
    }

    /// Takes the next piece of the file.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// The hash.
    #[must_use]
    pub fn finish(self) -> [u8; Self::LEN] {
        self.0.finalize().into()
    }
}

impl Default for Prehash {
    fn default() -> Self {
        Self::new()
    }
}

redacted!(Prehash);

fn wrong(format: &'static str, what: &'static str) -> Error {
    ErrorKind::Text { format, what }.into()
}

/// The lines of a text; one empty line may follow the last.
fn lines<'a>(format: &'static str, text: &'a str) -> Result<impl Iterator<Item = &'a str>, Error> {
    if text.len() > MAX_TEXT_LEN {
        return Err(wrong(format, "more than 16384 bytes"));
    }
    Ok(text.lines())
}

/// The bytes that a line of base64 spells.
fn decode<const N: usize>(format: &'static str, line: &str) -> Result<Zeroizing<[u8; N]>, Error> {
    let mut bytes = Zeroizing::new([0; N]);
    // `Base64` takes padding and unused bits in their one spelling only: another one would be a second signature.
    let len = Base64::decode(line, &mut *bytes).map_err(|_| wrong(format, "not base64, or too long"))?.len();
    if len != N {
        return Err(wrong(format, "too short"));
    }
    Ok(bytes)
}

/// What comes after the last line that belongs there.
fn end<'a>(format: &'static str, mut rest: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    if rest.any(|line| !line.is_empty()) { Err(wrong(format, "text after its last line")) } else { Ok(()) }
}

/// Two letters, key id, and the rest.
fn concat(parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(parts.iter().map(|part| part.len()).sum()));
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

#[cfg(test)]
mod tests;
