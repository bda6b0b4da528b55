//! minisign's signatures.

use alloc::string::String;
use core::fmt;

use base64ct::{Base64, Encoding};

use super::{TRUSTED, UNTRUSTED, concat, decode, end, lines, wrong};
use crate::error::Error;
use crate::sign::ed25519::{Signature as Ed25519, VerifyingKey};
use crate::sign::minisign::KeyId;

const FORMAT: &str = "a minisign signature";

/// A detached signature, not checked against anything yet. `Display` is the text of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    is_prehashed: bool,
    key_id: KeyId,
    signature: Ed25519,
    untrusted: String,
    trusted: String,
    comment: Ed25519,
}

impl Signature {
    pub(super) const fn made(
        key_id: KeyId,
        signature: Ed25519,
        comment: Ed25519,
        trusted: String,
        untrusted: String,
    ) -> Self {
        Self { is_prehashed: true, key_id, signature, untrusted, trusted, comment }
    }

    /// Reads a signature's file. Its trusted comment is to be had from
    /// [`PublicKey::verify`](super::PublicKey::verify) alone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`](crate::ErrorKind::Text).
    pub fn from_text(text: &str) -> Result<Self, Error> {
        let mut lines = lines(FORMAT, text)?;
        let mut next = |what| lines.next().ok_or_else(|| wrong(FORMAT, what));
        let untrusted = next("no text")?
            .strip_prefix(UNTRUSTED)
            .ok_or_else(|| wrong(FORMAT, "no `untrusted comment: ` at its beginning"))?;
        let bytes = decode::<74>(FORMAT, next("no line after its comment")?)?;
        let trusted = next("no third line")?
            .strip_prefix(TRUSTED)
            .ok_or_else(|| wrong(FORMAT, "no `trusted comment: ` in its third line"))?;
        let comment = decode::<64>(FORMAT, next("no fourth line")?)?;
        end(FORMAT, lines)?;
        let [b'E', kind, a, b, c, d, e, f, g, h, signature @ ..] = &*bytes else {
            return Err(wrong(FORMAT, "unknown algorithm"));
        };
        let is_prehashed = match kind {
            b'D' => true,
            b'd' => false,
            _ => return Err(wrong(FORMAT, "unknown algorithm")),
        };
        Ok(Self {
            is_prehashed,
            key_id: KeyId([*a, *b, *c, *d, *e, *f, *g, *h]),
            signature: Ed25519::from_bytes(*signature),
            untrusted: untrusted.into(),
            trusted: trusted.into(),
            comment: Ed25519::from_bytes(*comment),
        })
    }

    /// Which key the signature names.
    #[must_use]
    pub const fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// Whether the file's hash was signed. Signatures of the old kind are of the file itself.
    #[must_use]
    pub const fn is_prehashed(&self) -> bool {
        self.is_prehashed
    }

    /// The untrusted comment: anyone can change it.
    #[must_use]
    pub fn untrusted_comment(&self) -> &str {
        &self.untrusted
    }

    pub(super) const fn signature(&self) -> &Ed25519 {
        &self.signature
    }

    /// The trusted comment, if `key` signed it together with this signature.
    pub(super) fn verify_comment(&self, key: &VerifyingKey) -> Result<&str, Error> {
        key.verify_parts(&[&self.signature.to_bytes(), self.trusted.as_bytes()], &self.comment)?;
        Ok(&self.trusted)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_prehashed { b"ED" } else { b"Ed" };
        let signature = concat(&[kind, &self.key_id.0, &self.signature.to_bytes()]);
        writeln!(f, "{UNTRUSTED}{}\n{}", self.untrusted, Base64::encode_string(&signature))?;
        writeln!(f, "{TRUSTED}{}\n{}", self.trusted, Base64::encode_string(&self.comment.to_bytes()))
    }
}
