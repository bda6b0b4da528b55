//! Files of version 1 to models.

#[cfg(feature = "std")]
use std::path::Path;

use crate::codec::{DecodePayload, ViewPayload};
use crate::error::{Error, ErrorKind};
use crate::limits::{ReadOptions, UncheckedSignature};
use crate::model_type::ModelType;
use crate::v1::container::Container;
use crate::v1::header::Header;

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
    load_from_bytes_with(file, model_type, &ReadOptions::STRICT)
}

/// Loads a model from the bytes of a file.
///
/// # Errors
///
/// Those of [`Container::from_bytes_with`]; [`ErrorKind::ModelTypeMismatch`], [`ErrorKind::UnknownModelType`];
/// [`ErrorKind::Encrypted`]; [`ErrorKind::SignatureUnchecked`] if the file is signed and the options do not allow
/// that; those of [`PlainPayload::decode`](crate::v1::PlainPayload::decode).
pub fn load_from_bytes_with<M: DecodePayload>(
    file: &[u8],
    expect: impl Into<Expect>,
    options: &ReadOptions,
) -> Result<M, Error> {
    let container = Container::from_bytes_with(file, options)?;
    check_loadable::<M>(container.header(), expect.into(), options)?;
    container.payload().plain()?.decode()
}

/// A model over the bytes of a file, for example from `include_bytes!`: its values stay where they are.
///
/// # Errors
///
/// As [`view_bytes_with`], with [`ReadOptions::STRICT`].
pub fn view_bytes<M: ViewPayload>(file: &[u8], model_type: ModelType) -> Result<M::View<'_>, Error> {
    view_bytes_with::<M>(file, model_type, &ReadOptions::STRICT)
}

/// A model over the bytes of a file.
///
/// # Errors
///
/// Those of [`load_from_bytes_with`]; [`ErrorKind::Compressed`].
pub fn view_bytes_with<'data, M: ViewPayload>(
    file: &'data [u8],
    expect: impl Into<Expect>,
    options: &ReadOptions,
) -> Result<M::View<'data>, Error> {
    let container = Container::from_bytes_with(file, options)?;
    check_loadable::<M>(container.header(), expect.into(), options)?;
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
    load_with(path, model_type, &ReadOptions::STRICT)
}

/// Loads a model from a file, reading it once from front to back: besides the model it takes a buffer of
/// 128 KiB (and the compressed payload of an lz4 file).
///
/// Of a damaged file nothing is returned: the checksum is compared before the model is handed out.
///
/// # Errors
///
/// [`ErrorKind::File`], [`ErrorKind::Io`], and those of [`load_from_bytes_with`].
#[cfg(feature = "std")]
pub fn load_with<M: DecodePayload>(
    path: impl AsRef<Path>,
    expect: impl Into<Expect>,
    options: &ReadOptions,
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
pub fn load_from<M: DecodePayload>(
    source: &dyn read_at::ReadAt,
    expect: impl Into<Expect>,
    options: &ReadOptions,
) -> Result<M, Error> {
    let expect = expect.into();
    crate::v1::file::load(source, options, |header| check_loadable::<M>(header, expect, options))
}

fn check_loadable<M: DecodePayload>(
    header: &Header,
    expect: Expect,
    options: &ReadOptions,
) -> Result<(), Error> {
    check_type::<M>(header, expect)?;
    if header.is_encrypted() {
        return Err(ErrorKind::Encrypted.at(21));
    }
    if header.is_signed() && options.unchecked_signature == UncheckedSignature::Refuse {
        return Err(ErrorKind::SignatureUnchecked.at(21));
    }
    Ok(())
}

pub(crate) fn check_type<M: DecodePayload>(header: &Header, expect: Expect) -> Result<(), Error> {
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
