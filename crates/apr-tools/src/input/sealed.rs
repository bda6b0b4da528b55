//! The model inside a sealed file.

use alloc::rc::Rc;
use std::path::Path;

use model_file::{ErrorKind, OpenOptions};
use read_at::ReadAt as _;

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

    /// All bytes of the file, or of the file inside a sealed one.
    ///
    /// # Errors
    ///
    /// If there are more than `max_len`, or they cannot be read.
    pub(crate) fn content(&self, max_len: u64) -> Result<Vec<u8>, Failure> {
        let content = self.file.content();
        let len = usize::try_from(content.total_len()).ok().filter(|&len| len as u64 <= max_len);
        let mut bytes = Vec::new();
        let reserved = len.is_some_and(|len| bytes.try_reserve_exact(len).is_ok());
        let Some(len) = len.filter(|_| reserved) else {
            let what =
                format!("the file inside has {} bytes, expected at most {max_len}", content.total_len());
            return Err(Failure::new("df-too-large", what).in_file(self.label()));
        };
        bytes.resize(len, 0);
        let read = content.read_exact_at(0, &mut bytes).map_err(model_file::Error::from);
        read.map_err(|error| self.source.failure_of(error)).map(|()| bytes)
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
        Ok(Self { file, source, harmless: Vec::new() })
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
