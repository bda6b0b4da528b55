//! Encryption of single messages, of streams in chunks, with passwords and to recipients.

mod cipher;
pub(crate) mod aead;
pub(crate) mod kdf;
pub(crate) mod mac;
pub(crate) mod password;
pub(crate) mod recipient;
pub(crate) mod file_key;
pub(crate) mod chunked;

pub use self::aead::{AesKey, Nonce, Tag};
#[cfg(feature = "std")]
pub use self::chunked::ChunkedWriter;
pub use self::chunked::{ChunkedEncryptor, ChunkedLayout, ChunkedMessage, ChunkedReader};
pub use self::file_key::{FileKey, PasswordStanza, RecipientStanza};
pub use self::kdf::Commitment;
pub use self::mac::MacKey;
pub use self::password::{Argon2Cost, Argon2Limits, Password, Salt};
pub use self::recipient::{Agreement, EphemeralPublic, RecipientPublic, RecipientSecret};
