//! Signatures beside models: for single files, whole folders and sharded checkpoints, in two published formats.
//!
//! - *OpenSSF Model Signing, version 1*: a signed list of files and their digests ([`Manifest`]) in a Sigstore bundle
//!   ([`Bundle`]), with a P-256 key. [`sign_model`] and [`verify_model`] are the doors.
//! - *minisign*: a signature of one file of any size, with an Ed25519 key. [`sign_file`] and [`verify_file`].
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("apr-manifest-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(folder.join("model"))?;
//! # let (model, signature) = (folder.join("model"), folder.join("model.sig"));
//! # std::fs::write(model.join("weights.bin"), "weights")?;
//! use apr_crypto::{OsRandom, p256::SigningKey};
//! use apr_manifest::{Limits, SignOptions, sign_model, verify_model};
//!
//! let key = SigningKey::generate(&mut OsRandom)?;
//! sign_model(&model, &signature, &key, &SignOptions::default(), &|_, _| ())?;
//!
//! // Who has the public key and the folder learns that every file in it is the signed one.
//! let verified = verify_model(&model, &signature, &key.verifying_key(), &Limits::default(), &|_, _| ())?;
//! assert_eq!(verified.manifest().files().len(), 1);
//!
//! std::fs::write(model.join("extra.py"), "import os")?;
//! let error = verify_model(&model, &signature, &key.verifying_key(), &Limits::default(), &|_, _| ()).unwrap_err();
//! assert_eq!(error.differences().extra(), ["extra.py"]);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! None: the crate is about files and `std` throughout.
//!
//! # Security
//!
//! A manifest exists only with a key that verified it, or of files that were just read. Names out of a bundle are compared
//! with what the folder holds; none is ever opened. Symbolic links are refused. The length of a bundle and the number
//! of files have [`Limits`]; nothing is allocated for what a bundle merely claims. A signature shows that the holder of a
//! key signed these files; whose key it is has to be known from elsewhere. `docs/model-signing.md` is the specification.

#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod limits;
mod digest;
mod name;
mod manifest;
mod statement;
mod bundle;
mod walk;
mod hashing;
mod model;
mod detached;

pub use crate::bundle::{Bundle, key_hint};
pub use crate::detached::{
    VerifiedFile, minisign_path, read_signature, sign_file, verify_file, verify_file_any,
};
pub use crate::digest::{Digest, HashAlgorithm};
pub use crate::error::{Differences, Error, ErrorKind};
pub use crate::hashing::Watch;
pub use crate::limits::Limits;
pub use crate::manifest::{FileEntry, Manifest, Method, Part};
pub use crate::model::{SignOptions, Verified, model_name, sign_model, verify_model, verify_model_file};
