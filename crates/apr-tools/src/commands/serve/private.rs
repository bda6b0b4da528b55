//! The key of encrypted requests.

use std::ffi::OsString;
use std::path::Path;

use apr_container::Metadata;
use apr_crypto::RecipientPublic;
use apr_serve::Private;

use crate::error::{CODE_INFERENCE_KEY, Failure};
use crate::secrets::{KeyPasswordArgs, load_recipient_secret};

/// Longest file that is offered to clients.
const MAX_LEN: u64 = 16 << 10;

/// The secret key in a file, with its public key as `apr sign` signed it, if that is beside it.
///
/// # Errors
///
/// If the key cannot be read or unlocked, or is of another kind; if the signed public key is another one.
pub(super) fn load(path: &Path, password: &KeyPasswordArgs) -> Result<(Private, RecipientPublic), Failure> {
    let secret = load_recipient_secret(path, password)?;
    let public = secret.public();
    let beside = |ending: &str| {
        let mut name = OsString::from(path);
        name.push(ending);
        name
    };
    let (file, signature) = (beside(".pub"), beside(".pub.minisig"));
    let mut private = Private::new(secret)?;
    let is_signed = Path::new(&signature).try_exists();
    if is_signed.map_err(|error| Failure::io("read the file", Path::new(&signature), &error))? {
        let text = |name: &OsString| {
            let bytes = durable_file::read(Path::new(name), MAX_LEN)?;
            let not_text = |_| Failure::new(CODE_INFERENCE_KEY, "this is no text").in_file(Path::new(name));
            String::from_utf8(bytes).map_err(not_text)
        };
        private = private
            .with_signed_key(text(&file)?, text(&signature)?)
            .map_err(|error| Failure::from(error).in_file(Path::new(&file)))?;
    }
    Ok((private, public))
}

/// Refuses a model that is bound to another key: clients that trust its signer would encrypt to that one.
///
/// # Errors
///
/// If it is.
pub(super) fn check(metadata: &Metadata, key: &RecipientPublic) -> Result<(), Failure> {
    if metadata.names_inference_key(key) == Some(false) {
        let what = format!("the model is bound to another inference key than {}", key.fingerprint());
        return Err(Failure::new(CODE_INFERENCE_KEY, what));
    }
    Ok(())
}
