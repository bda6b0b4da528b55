//! Loading of models.

#[cfg(feature = "std")]
use std::path::Path;

#[cfg(feature = "crypto")]
use apr_crypto::{Access, Trust};
#[cfg(all(feature = "crypto", feature = "std"))]
use apr_crypto::{Password, RecipientSecret};

use crate::codec::{DecodePayload, ViewPayload};
use crate::error::{Error, ErrorKind};
use crate::limits::{ReadOptions, UncheckedSignature};
use crate::model_type::ModelType;
use crate::v1::container::Container;
use crate::v1::header::Header;
#[cfg(feature = "crypto")]
use crate::v1::protect;
#[cfg(not(feature = "crypto"))]
use crate::v1::without_keys::Access;

/// How to load a model. [`ReadOptions`] and [`Access`] convert into it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions<'k> {
    /// Strictness, limits, and what to do with a signature that nothing here requires.
    pub read: ReadOptions,
    /// The key that decrypts the payload, and the keys one of which must have signed the file. Both are required once they are
    /// set: a plaintext payload and an unsigned file are refused.
    ///
    /// The signature is verified before anything is decrypted, and the payload authenticated before anything is decoded. Strict
    /// reading also requires that the payload is bound to header and metadata, which other writers omit:
    /// [`ReadOptions::COMPAT`] accepts their files.
    pub access: Access<'k>,
}

impl LoadOptions<'_> {
    #[cfg(feature = "crypto")]
    const fn requires_signature(&self) -> bool {
        !matches!(self.access.trust(), Trust::NoSignature)
    }

    #[cfg(feature = "crypto")]
    const fn has_key(&self) -> bool {
        self.access.key().is_some()
    }

    #[cfg(not(feature = "crypto"))]
    const fn requires_signature(&self) -> bool {
        false
    }

    #[cfg(not(feature = "crypto"))]
    const fn has_key(&self) -> bool {
        false
    }
}

impl From<ReadOptions> for LoadOptions<'_> {
    fn from(read: ReadOptions) -> Self {
        Self { read, ..Self::default() }
    }
}

impl From<&ReadOptions> for LoadOptions<'_> {
    fn from(read: &ReadOptions) -> Self {
        Self::from(*read)
    }
}

impl<'k> From<Access<'k>> for LoadOptions<'k> {
    fn from(access: Access<'k>) -> Self {
        Self { access, ..Self::default() }
    }
}

impl<'k> From<&Access<'k>> for LoadOptions<'k> {
    fn from(access: &Access<'k>) -> Self {
        Self::from(*access)
    }
}

/// Which model type a file must have to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// This one.
    Type(ModelType),
    /// Any that the specification lists: for models that decide by [`PayloadReader::model_type`].
    ///
    /// [`PayloadReader::model_type`]: crate::PayloadReader::model_type
    AnyKnown,
}

impl From<ModelType> for Expect {
    fn from(model_type: ModelType) -> Self {
        Self::Type(model_type)
    }
}

/// Loads a model from the bytes of a file, for example from `include_bytes!`.
///
/// # Errors
///
/// As [`load_from_bytes_with`], with [`ReadOptions::STRICT`].
pub fn load_from_bytes<M: DecodePayload>(file: &[u8], model_type: ModelType) -> Result<M, Error> {
    load_from_bytes_with(file, model_type, ReadOptions::STRICT)
}

/// Loads a model from the bytes of a file: verifies the signature that the options require, then decrypts, then decodes.
///
/// # Errors
///
/// Those of [`Container::from_bytes_with`]; [`ErrorKind::ModelTypeMismatch`], [`ErrorKind::UnknownModelType`];
/// [`ErrorKind::Encrypted`] without a key for an encrypted payload; [`ErrorKind::SignatureUnchecked`] if the file is signed and
/// the options neither require a signature nor allow an unverified one; those of
/// [`PlainPayload::decode`](crate::v1::PlainPayload::decode).
///
/// With a required signature `ErrorKind::{NotSigned, SignatureInvalid, UntrustedSigner}`; with a key `NotEncrypted`,
/// `DecryptionFailed` (a wrong key, or a modified file), `Rebound`, and in strict reading `Unbound`.
pub fn load_from_bytes_with<'k, M: DecodePayload>(
    file: &[u8],
    expect: impl Into<Expect>,
    options: impl Into<LoadOptions<'k>>,
) -> Result<M, Error> {
    let options = options.into();
    let container = Container::from_bytes_with(file, &options.read)?;
    #[cfg(feature = "crypto")]
    protect::verify_block(options.access.trust(), container.signature())?;
    check_loadable::<M>(container.header(), expect.into(), &options)?;
    #[cfg(feature = "crypto")]
    if let Some(key) = options.access.key() {
        return protect::decrypt(&container, key, &options.read);
    }
    container.payload().plain()?.decode()
}

/// A view of the model in the bytes of a file, for example from `include_bytes!`: its values stay in place.
///
/// # Errors
///
/// Those of [`load_from_bytes`]; [`ErrorKind::Compressed`].
pub fn view_bytes<M: ViewPayload>(file: &[u8], model_type: ModelType) -> Result<M::View<'_>, Error> {
    view_bytes_with::<M>(file, model_type, &ReadOptions::STRICT)
}

/// As [`view_bytes`], with read options.
pub(crate) fn view_bytes_with<'data, M: ViewPayload>(
    file: &'data [u8],
    expect: impl Into<Expect>,
    options: &ReadOptions,
) -> Result<M::View<'data>, Error> {
    let container = Container::from_bytes_with(file, options)?;
    check_loadable::<M>(container.header(), expect.into(), &options.into())?;
    container.payload().plain()?.view::<M>()
}

/// Loads a model from a file.
///
/// ```
/// # #[cfg(feature = "serde")] {
/// use apr_container::{ModelType, SaveOptions, Serde, load, save};
///
/// # let path = std::env::temp_dir().join(format!("apr-load-{}.apr", std::process::id()));
/// save(&Serde(vec![0.5f32, 2.0]), ModelType::Custom, &path, SaveOptions::default())?;
/// let Serde(weights) = load::<Serde<Vec<f32>>>(&path, ModelType::Custom)?;
/// assert_eq!(weights, [0.5, 2.0]);
///
/// let error = load::<Serde<Vec<f32>>>(&path, ModelType::KMeans).unwrap_err();
/// assert_eq!(error.code(), "ac-wrong-type");
/// # std::fs::remove_file(&path).unwrap();
/// # }
/// # Ok::<(), apr_container::Error>(())
/// ```
///
/// # Errors
///
/// As [`load_with`], with [`ReadOptions::STRICT`].
#[cfg(feature = "std")]
pub fn load<M: DecodePayload>(path: impl AsRef<Path>, model_type: ModelType) -> Result<M, Error> {
    load_with(path, model_type, ReadOptions::STRICT)
}

/// Loads a model from a file. Without keys, the file is read once from front to back: besides the model it takes a buffer of
/// 128 KiB (and the compressed payload of an lz4 file). With keys, all of the file is in memory.
///
/// Of a corrupted file nothing is returned: the checksum is compared before the model is returned.
///
/// # Errors
///
/// [`ErrorKind::File`], [`ErrorKind::Io`], and those of [`load_from_bytes_with`].
#[cfg(feature = "std")]
pub fn load_with<'k, M: DecodePayload>(
    path: impl AsRef<Path>,
    expect: impl Into<Expect>,
    options: impl Into<LoadOptions<'k>>,
) -> Result<M, Error> {
    let source = crate::v1::file::open(path.as_ref(), crate::v1::file::FILE_LEN_MAX)?;
    load_from(&source, expect, options)
}

/// Loads a model from a source, as [`load_with`] does from a file.
///
/// # Errors
///
/// [`ErrorKind::Io`], and those of [`load_from_bytes_with`].
#[cfg(feature = "std")]
pub fn load_from<'k, M: DecodePayload>(
    source: &dyn read_at::ReadAt,
    expect: impl Into<Expect>,
    options: impl Into<LoadOptions<'k>>,
) -> Result<M, Error> {
    let (expect, options) = (expect.into(), options.into());
    #[cfg(feature = "crypto")]
    if options.has_key() || options.requires_signature() {
        protect::check_source(source, options.access.trust(), &options.read)?;
        return load_from_bytes_with(&crate::v1::file::read_all(source)?, expect, options);
    }
    crate::v1::file::load(source, &options.read, |header| check_loadable::<M>(header, expect, &options))
}

/// Loads a model that was encrypted with a password.
///
/// # Errors
///
/// As [`load_with`], with [`ReadOptions::STRICT`].
#[cfg(all(feature = "crypto", feature = "std"))]
pub fn load_encrypted<M: DecodePayload>(
    path: impl AsRef<Path>,
    model_type: ModelType,
    password: &str,
) -> Result<M, Error> {
    let password = Password::from(password);
    load_with(path, model_type, Access::default().with_password(&password))
}

/// Loads a model that was encrypted to this recipient.
///
/// # Errors
///
/// As [`load_with`], with [`ReadOptions::STRICT`].
#[cfg(all(feature = "crypto", feature = "std"))]
pub fn load_as_recipient<M: DecodePayload>(
    path: impl AsRef<Path>,
    model_type: ModelType,
    secret: &RecipientSecret,
) -> Result<M, Error> {
    load_with(path, model_type, Access::default().with_recipient(secret))
}

/// Loads a model if the file has a valid signature by a trusted key: one [`VerifyingKey`](apr_crypto::VerifyingKey), or one
/// of several [`TrustedKeys`](apr_crypto::TrustedKeys). `None` and [`Trust::Anyone`] accept a valid signature by any key.
///
/// # Errors
///
/// As [`load_with`], with [`ReadOptions::STRICT`].
#[cfg(all(feature = "crypto", feature = "std"))]
pub fn load_verified<'k, M: DecodePayload>(
    path: impl AsRef<Path>,
    model_type: ModelType,
    trust: impl Into<Trust<'k>>,
) -> Result<M, Error> {
    load_with(path, model_type, Access::default().with_trust(trust))
}

fn check_loadable<M: DecodePayload>(
    header: &Header,
    expect: Expect,
    options: &LoadOptions<'_>,
) -> Result<(), Error> {
    check_type::<M>(header, expect)?;
    if header.is_encrypted() && !options.has_key() {
        return Err(ErrorKind::Encrypted.at(21));
    }
    let is_allowed =
        options.requires_signature() || options.read.unchecked_signature == UncheckedSignature::Allow;
    if header.is_signed() && !is_allowed {
        return Err(ErrorKind::SignatureUnchecked.at(21));
    }
    Ok(())
}

fn check_type<M: DecodePayload>(header: &Header, expect: Expect) -> Result<(), Error> {
    let found = header.model_type;
    match expect {
        Expect::Type(expected) if expected != found => {
            return Err(ErrorKind::ModelTypeMismatch { expected, found }.at(6));
        }
        Expect::AnyKnown if !found.is_known() => return Err(ErrorKind::UnknownModelType { found }.at(6)),
        _ => {}
    }
    match M::MODEL_TYPE.filter(|expected| *expected != found) {
        Some(expected) => Err(ErrorKind::ModelTypeMismatch { expected, found }.at(6)),
        None => Ok(()),
    }
}
