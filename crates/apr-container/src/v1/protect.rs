//! Encrypted and signed files of version 1.
//!
//! The layouts are those that the format's known readers open. What those leave open is closed by additions they pass
//! over: an encrypted payload ends with a binding of everything around it (`docs/apr-format.md`), and the metadata hold a commitment to
//! the key, so that a ciphertext has one meaning.

mod authentic;
mod binding;
mod open;
mod raw;
mod seal;
mod streamed;
mod trust;

pub use self::authentic::{AuthenticMetadata, InferenceKey, authenticate};
pub use self::open::{Opened, open_protected};
#[cfg(feature = "std")]
pub use self::open::{load_as_recipient, load_encrypted, load_protected, load_verified};
pub use self::raw::RawModel;
pub use self::seal::{Protection, to_vec_protected};
#[cfg(feature = "std")]
pub use self::seal::{save_encrypted, save_for_recipient, save_protected, save_signed};
#[cfg(feature = "std")]
pub use self::streamed::check_before_reading;
pub use self::streamed::check_source;
pub use self::streamed::verify_source;
pub use self::trust::verify_signature;

use crate::metadata::Metadata;

/// Key of the custom metadata with the commitment to the encryption key, in hexadecimal digits.
const COMMITMENT_KEY: &str = "apr.commit";
/// What the commitment is for.
const COMMITMENT_LABEL: &str = "apr-v1 commit";
/// Key of the custom metadata that says how to come by the key: `password` or `recipient`.
const MODE_KEY: &str = "apr.mode";
const PASSWORD_MODE: &str = "password";
const RECIPIENT_MODE: &str = "recipient";

/// How to come by the key of an encrypted payload.
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

/// Whether there is something where the commitment to a key stands.
pub(crate) fn has_commitment(metadata: &Metadata) -> bool {
    metadata.custom.contains_key(COMMITMENT_KEY)
}
