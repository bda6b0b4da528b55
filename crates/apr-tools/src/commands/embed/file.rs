//! The file that is embedded in the program, and the library function that reads it there.

use std::path::Path;

use apr_container::{Compression, UncheckedSignature, inspect_bytes_with};
use apr_crypto::VerifyingKey;
use apr_models::{AnyModel, Model as _, Tensors};
use model_file::{FileKind, ModelFormat};

use crate::error::{CODE_FOREIGN_FORMAT, Failure};
use crate::input::NamedModel;

/// Longest file that is taken: the compiler reads it as a whole.
pub(super) const MAX_LEN: u64 = 1 << 30;

/// A model's file.
#[derive(Debug)]
pub(crate) struct ModelFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: Format,
}

/// How it is read.
#[derive(Debug)]
pub(crate) enum Format {
    /// A container of version 1.
    First { compression: Compression, signature: Signature },
    /// Tensors.
    Tensors { reader: &'static str },
}

/// What happens to the signature inside.
#[derive(Debug)]
pub(crate) enum Signature {
    /// There is none.
    None,
    /// The program verifies it with this key.
    Verified(VerifyingKey),
    /// Not verified, at the user's request.
    Unchecked,
}

impl ModelFile {
    /// Reads the file and checks that the function which the program will call accepts it.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is of a format that no small program reads.
    pub(crate) fn read(
        path: &Path,
        known: &NamedModel,
        signer: Option<VerifyingKey>,
    ) -> Result<Self, Failure> {
        Self::new(durable_file::read(path, MAX_LEN)?, path, known, signer)
    }

    /// The same of bytes that were read.
    ///
    /// # Errors
    ///
    /// If the file is of a format that no small program reads.
    pub(super) fn new(
        bytes: Vec<u8>,
        path: &Path,
        known: &NamedModel,
        signer: Option<VerifyingKey>,
    ) -> Result<Self, Failure> {
        let in_file = |failure: Failure| failure.in_file(path);
        let kind = FileKind::of(&bytes).expected();
        if kind != ModelFormat::AprV1 {
            let (reader, tensors) = match kind {
                ModelFormat::AprV2 => ("from_apr2", Tensors::from_apr2(&bytes)),
                _ => ("from_safetensors", Tensors::from_safetensors(&bytes)),
            };
            let model = tensors.and_then(|tensors| AnyModel::from_tensors(&tensors));
            return match model {
                Ok(model) if model.name() == known.model.name() => {
                    Ok(Self { bytes, format: Format::Tensors { reader } })
                }
                _ => Err(in_file(Failure::new(
                    CODE_FOREIGN_FORMAT,
                    "no program is written around a model in this form",
                ))
                .help("make an .apr file of it first: `apr convert MODEL model.apr --dequantize f32`")),
            };
        }
        let options = apr_container::ReadOptions::STRICT.with_unchecked_signature(UncheckedSignature::Allow);
        let info = inspect_bytes_with(&bytes, &options).map_err(|error| in_file(error.into()))?;
        let signature = match signer {
            Some(key) => Signature::Verified(key),
            None if info.signed => Signature::Unchecked,
            None => Signature::None,
        };
        Ok(Self { bytes, format: Format::First { compression: info.compression, signature } })
    }
}
