//! The model inside a sealed file.

use alloc::rc::Rc;
use std::path::Path;

use model_file::{ErrorKind, OpenOptions};

use super::{Format, Model, Rules, Source};
use crate::error::{CODE_FOREIGN_FORMAT, Exit, Failure};
use crate::sealed_file::SealedFile;
use crate::secrets::Keys;

impl Model {
    /// Opens a file, or the model inside it if it is sealed.
    ///
    /// # Errors
    ///
    /// Those of [`of_content`](Self::of_content).
    pub(crate) fn open_content(path: &Path, rules: &Rules, keys: &Rc<Keys>) -> Result<Self, Failure> {
        Self::of_content(Source::open(path)?.with_keys(keys), rules)
    }

    /// Opens a source, or the model inside it if it is sealed.
    ///
    /// # Errors
    ///
    /// Those of [`from_source`](Self::from_source) and [`of_sealed`](Self::of_sealed).
    pub(crate) fn of_content(source: Source, rules: &Rules) -> Result<Self, Failure> {
        match source.format() {
            Format::Sealed => Self::of_sealed(source, rules),
            _ => Self::from_source(source, rules),
        }
    }

    /// Opens the model inside a sealed file with the keys of its source. Each byte that is used is decrypted and verified where it is
    /// read.
    ///
    /// # Errors
    ///
    /// If the file is not signed by whom it must be, or does not open; if what is inside is not a valid model.
    fn of_sealed(source: Source, rules: &Rules) -> Result<Self, Failure> {
        let sealed = SealedFile::open(&source, source.keys().limits())?;
        let options = OpenOptions::new()
            .with_read_options(*rules)
            .with_access(sealed.access(source.keys()))
            .with_sealed_limits(sealed.limits().clone());
        let opened = source.reopened(&options).and_then(|file| {
            file.decode()?;
            Ok(file)
        });
        let file = opened.map_err(|error| match error.into_kind() {
            ErrorKind::Sealed(error) => sealed.refused(error),
            ErrorKind::ForeignFormat { found } => holds(found.title()).in_file(source.label()),
            kind => {
                let is_safetensors = matches!(kind, ErrorKind::SafeTensors(_));
                let failure = source.failure_of(kind.into());
                match failure.code() {
                    "ac-encrypted" => failure.help(
                        "the file inside the sealed one is encrypted itself: `apr open` the sealed one first",
                    ),
                    _ if is_safetensors => with_way_out(failure),
                    _ => failure,
                }
            }
        })?;
        drop(sealed);
        Ok(Self { file, source })
    }
}

/// The failure of a sealed file with something that is no model.
pub(super) fn holds(title: &str) -> Failure {
    with_way_out(Failure::new(
        CODE_FOREIGN_FORMAT,
        format!("the sealed file holds {title}, no model that is known here"),
    ))
}

fn with_way_out(failure: Failure) -> Failure {
    match failure.exit() {
        Exit::Invalid | Exit::Unsupported => {
            failure.help("`apr open FILE -o OUT` gives back what is inside; `apr check OUT` says what it is")
        }
        _ => failure,
    }
}
