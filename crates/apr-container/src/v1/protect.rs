//! Encrypted and signed files of version 1.
//!
//! The layouts are those of the format's known readers, with two additions that these ignore: an encrypted payload ends with a
//! binding to the file around it (`docs/apr-format.md`), and the metadata have a commitment to the key, so that a ciphertext
//! decrypts under one key only.

mod authentic;
mod binding;
mod open;
mod raw;
mod seal;
mod streamed;
mod trust;

pub use self::authentic::{AuthenticMetadata, InferenceKey, authenticate};
pub(crate) use self::open::decrypt;
pub use self::raw::RawModel;
pub use self::seal::Protection;
pub(crate) use self::seal::seal;
pub use self::streamed::{check_source, verify_source};
pub(crate) use self::trust::verify_block;
pub use self::trust::verify_signature;

use crate::metadata::Metadata;

/// Key of the custom metadata with the commitment to the encryption key, in hexadecimal digits.
const COMMITMENT_KEY: &str = "apr.commit";
/// What the commitment is for.
const COMMITMENT_LABEL: &str = "apr-v1 commit";
/// Key of the custom metadata that says how the encryption key is obtained: `password` or `recipient`.
const MODE_KEY: &str = "apr.mode";
const PASSWORD_MODE: &str = "password";
const RECIPIENT_MODE: &str = "recipient";

/// How the key of an encrypted payload is obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyHint {
    /// From a password.
    Password,
    /// With a recipient's secret key.
    Recipient,
}

impl KeyHint {
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        match metadata.custom.get(MODE_KEY)?.as_str()? {
            PASSWORD_MODE => Some(Self::Password),
            RECIPIENT_MODE => Some(Self::Recipient),
            _ => None,
        }
    }
}

/// Removes the entries that belong to the protection of one file.
pub(crate) fn remove_entries(metadata: &mut Metadata) {
    metadata.custom.remove(COMMITMENT_KEY);
    metadata.custom.remove(MODE_KEY);
}

/// Whether the metadata have an entry for the commitment to a key.
pub(crate) fn has_commitment(metadata: &Metadata) -> bool {
    metadata.custom.contains_key(COMMITMENT_KEY)
}
