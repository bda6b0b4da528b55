//! Signatures: Ed25519, minisign's files, ECDSA over P-256, and which signers are trusted.

pub(crate) mod ed25519;
pub(crate) mod trust;
pub mod minisign;
#[cfg(feature = "p256")]
pub mod p256;

pub use self::ed25519::{Signature, SigningKey, Verification, VerifyingKey, dsse_pae};
pub use self::trust::{Access, DecryptionKey, RejectedSigner, Signer, Trust, Trusted};
