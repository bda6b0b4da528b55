//! Failures that name the format of a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use model_file::{FileKind, ModelFormat};

use crate::error::{CODE_FOREIGN_FORMAT, Failure};

/// The kind of a regular file, if it is recognized and is not safetensors; `None` also of what cannot be read.
pub(crate) fn of_file(path: &Path) -> Option<FileKind> {
    let regular = durable_file::open_regular(path, u64::MAX).ok()?;
    let len = regular.len();
    of_open(&mut regular.into_file(), len).ok()?
}

/// The same of an open file of `len` bytes, whose position moves.
///
/// # Errors
///
/// Those of reading.
pub(crate) fn of_open(file: &mut File, len: u64) -> io::Result<Option<FileKind>> {
    let kind = FileKind::identify(len, |offset, buf| {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buf)
    })?;
    Ok(recognized(kind))
}

/// The kind, if it is recognized and is not safetensors.
pub(crate) fn recognized(kind: FileKind) -> Option<FileKind> {
    Some(kind).filter(|kind| !matches!(kind, FileKind::Unknown | FileKind::Model(ModelFormat::SafeTensors)))
}

/// Refuses a file of this kind where `expected` is read.
pub(crate) fn refusal(kind: FileKind, expected: &str, path: &Path) -> Failure {
    let failure =
        Failure::new(CODE_FOREIGN_FORMAT, format!("this is {}, not {expected}", kind.title())).in_file(path);
    failure.help(match (kind, kind.foreign()) {
        (FileKind::Model(_), Some(_)) if !kind.fits(path) => {
            "the name promises another format: if the content is what you expect, rename the file, and `apr` reads it"
        }
        (_, Some(format)) => format.help(),
        (FileKind::Model(ModelFormat::Sealed), _) => {
            "`apr inspect FILE` says what opens it; `apr open FILE -o OUT` gives back what is inside"
        }
        _ => "name the file itself: in a folder or a set of shards only safetensors files are read",
    })
}

/// Refuses a file that should be a model.
pub(crate) fn not_a_model(kind: FileKind, path: &Path) -> Failure {
    let expected = if kind.foreign().is_some() { "safetensors, .apr or GGUF" } else { "safetensors" };
    refusal(kind, expected, path)
}
