#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - One message in memory: [`AesKey`]; from a password: [`Password`], [`Argon2Cost`]; for a recipient: [`RecipientSecret`],
//!   [`RecipientPublic`].
//! - Messages of any size, any part of which can be read: [`FileKey`], [`ChunkedEncryptor`], [`ChunkedReader`].
//! - Signatures: [`SigningKey`], [`VerifyingKey`]; detached ones: [`minisign`]; trusted keys: [`TrustedKeys`].
//! - Hashes with proofs for any part: [`TreeHasher`], [`TreeRoot`], [`VerifiedReader`].
//! - Encrypted requests to a model and their responses: [`inference`].
//! - Key files: [`PublicKey`], [`SecretKey`], [`StoredKey`], and PEM; in any of these encodings: [`AnyPublicKey`],
//!   [`AnySecretKey`].
//!
//! # Security
//!
//! Secrets are types of their own: no `Clone`, no `Serialize`, redacted `Debug`, zeroized on drop. Nonces and
//! salts are made by what uses them, never by the caller. Wrong key, wrong password and damaged ciphertext are one error.
//! Public keys of small order do not exist as types. The cost of a password is bounded before memory is allocated.
//! Untrusted input leads to errors: no input makes this crate panic, loop, or allocate memory out of proportion to it.
//! `docs/crypto.md` lists what is not protected.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
mod random;
mod secret;
mod keys;
mod encrypt;
mod sign;
mod tree;
pub mod inference;

mod array;
#[cfg(test)]
mod hex;

#[cfg(feature = "std")]
pub use crate::encrypt::ChunkedWriter;
pub use crate::encrypt::{
    AesKey, Agreement, Argon2Cost, Argon2Limits, ChunkedEncryptor, ChunkedLayout, ChunkedMessage,
    ChunkedReader, Commitment, EphemeralPublic, FileKey, MacKey, Nonce, Password, PasswordStanza,
    RecipientPublic, RecipientSecret, RecipientStanza, Salt, Tag,
};
pub use crate::error::{Error, ErrorKind};
#[cfg(feature = "std")]
pub use crate::keys::refuse_exposed;
pub use crate::keys::{
    AnyPublicKey, AnySecretKey, Fingerprint, KeyFormat, LockedKey, PublicKey, SecretKey, StoredKey,
    TrustedKeys, is_key_text,
};
#[cfg(feature = "getrandom")]
pub use crate::random::OsRandom;
pub use crate::random::Rng;
pub use crate::secret::{SecretText, constant_time_eq};
#[cfg(feature = "p256")]
pub use crate::sign::p256;
pub use crate::sign::{
    Access, DecryptionKey, RejectedSigner, Signature, Signer, SigningKey, Trust, Trusted, Verification,
    VerifyingKey, dsse_pae, minisign,
};
pub use crate::tree::{LeafLen, TreeAlgorithm, TreeHasher, TreeRoot, UpperHashes, VerifiedReader};
