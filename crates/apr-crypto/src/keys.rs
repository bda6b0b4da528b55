//! Keys as users store and exchange them: key lines, PEM, files, fingerprints, trusted-keys lists.

pub(crate) mod stored;
mod bech32;
pub(crate) mod text;
#[cfg(feature = "std")]
pub(crate) mod file;
pub(crate) mod pem;
mod any;
mod fingerprint;
mod trusted;

pub use self::any::{AnyPublicKey, AnySecretKey, KeyFormat, is_key_text};
#[cfg(feature = "std")]
pub use self::file::refuse_exposed;
pub use self::fingerprint::Fingerprint;
pub use self::stored::{LockedKey, PublicKey, SecretKey, StoredKey};
pub use self::trusted::TrustedKeys;
