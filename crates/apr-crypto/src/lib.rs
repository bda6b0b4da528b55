//! Keys, encryption, signatures and tree hashes for model files.
//!
//! This crate sees bytes and keys. It knows no file format but those of keys and of detached signatures; what is encrypted,
//! signed and bound to what is decided above it. The constructions are published ones, put together from the
//! implementations of RustCrypto, dalek and BLAKE3; `docs/crypto.md` names each with its source.
//!
//! ```
//! use apr_crypto::{FileKey, OsRandom, RecipientSecret, SigningKey};
//!
//! let rng = &mut OsRandom;
//! // The buyer makes a key and hands out its public half; the seller's signing key is known to the buyer.
//! let buyer = RecipientSecret::generate(rng)?;
//! let seller = SigningKey::generate(rng)?;
//!
//! // The seller encrypts to the buyer, and signs what was encrypted.
//! let file_key = FileKey::generate(rng)?;
//! let stanza = file_key.wrap_for(rng, &buyer.public(), b"file id")?;
//! let sealed = file_key.seal_chunked(rng, b"header", b"weights")?;
//! let signature = seller.sign(&sealed);
//!
//! // The buyer verifies before opening.
//! seller.verifying_key().verify(&sealed, &signature)?;
//! let file_key = stanza.unwrap(&buyer, b"file id")?;
//! assert_eq!(file_key.open_chunked(b"header", &sealed)?, b"weights");
//! # Ok::<(), apr_crypto::Error>(())
//! ```
//!
//! - One message in memory: [`AesKey`]; from a password: [`Password`], [`Argon2Cost`]; for a person: [`RecipientSecret`],
//!   [`RecipientPublic`].
//! - Messages of any size, any part of which can be read: [`FileKey`], [`ChunkedEncryptor`], [`ChunkedReader`].
//! - Signatures: [`SigningKey`], [`VerifyingKey`]; detached ones: [`minisign`]; whom to believe: [`TrustedKeys`].
//! - Hashes with proofs for any part: [`TreeHasher`], [`TreeRoot`], [`VerifiedReader`].
//! - Questions to a model and their answers: [`inference`].
//! - Keys as text: [`PublicKey`], [`SecretKey`], [`StoredKey`], and PEM; in whatever spelling: [`AnyPublicKey`],
//!   [`AnySecretKey`].
//!
//! # Features
//!
//! - `std` (default): key files, files as sources, `ChunkedWriter`.
//! - `getrandom` (default): `OsRandom`. Without it, an [`Rng`] is the caller's to bring.
//! - `p256`: ECDSA over P-256, signatures that other formats ask for.
//! - `scrypt`: minisign's secret keys under a password.
//! - `rayon`: chunks and leaves on all cores.
//! - `ring`: AES-256-GCM by `ring`, in assembler: two to three times as fast on x86-64. Same bytes, same errors. Needs a C compiler.
//! - `pure`: BLAKE3 without assembler, at half its speed on machines with AVX-512. Where no C compiler is found when it is
//!   built, that is so anyway. Everything else is Rust, unless `ring` is on.
//!
//! # Security
//!
//! Secrets are types of their own: no `Clone`, no `Serialize`, nothing to see in `Debug`, wiped when dropped. Nonces and
//! salts are made by what uses them, never by the caller. Wrong key, wrong password and damaged ciphertext are one error.
//! Public keys of small order do not exist as types. What a password may cost is bounded before memory is asked for.
//! Input from strangers leads to errors: no input makes this crate panic, loop, or ask for memory out of proportion.
//! `docs/crypto.md` says what is not protected.

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
    Access, DecryptionKey, RejectedSigner, Signature, Signer, SigningKey, Trust, Verification, VerifyingKey,
    dsse_pae, minisign,
};
pub use crate::tree::{LeafLen, TreeAlgorithm, TreeHasher, TreeRoot, VerifiedReader};
