//! Files of unsupported formats, with the same names as in the program.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use foreign_format::Format;
use model_file::{FileKind, ModelFormat};

/// A file that was refused.
#[derive(Clone, Copy)]
pub(crate) enum Refused<'a> {
    File(&'a Path),
    Memory(&'a [u8]),
    /// One that was looked at before, and its name.
    Known(FileKind, &'a Path),
}

/// What a file is that is not `wanted`, and what to do with it, as `is ...`; none where the format is not recognized.
pub(crate) fn named(file: Refused<'_>, wanted: &str) -> Option<String> {
    let kind = match file {
        Refused::File(path) => of_file(path)?,
        Refused::Known(kind, _) => kind,
        Refused::Memory(bytes) => FileKind::of_source(&bytes).ok()?,
    };
    let help = match kind {
        FileKind::Model(ModelFormat::AprV1 | ModelFormat::AprV2) => "apr.load opens it",
        FileKind::Model(ModelFormat::Sealed) => "apr.open_sealed opens it",
        FileKind::Model(ModelFormat::Gguf) => "apr.gguf.open opens it",
        // What was to be one is damaged, and its own error says where.
        FileKind::Model(ModelFormat::SafeTensors) if matches!(wanted, "a GGUF file" | "a sealed file") => {
            "apr.open opens it"
        }
        // What is compressed is read only if it is a pickle.
        FileKind::Model(ModelFormat::Foreign(format)) if format.is_compressed() => format.help(),
        FileKind::Model(ModelFormat::Foreign(Format::Pickle)) => {
            "apr.open reads its arrays, and runs nothing in it; a model of scikit-learn that should predict is exported where it \
             was trained: apr.sklearn.export"
        }
        FileKind::Model(ModelFormat::Foreign(_)) => {
            "apr.open reads its tensors, and runs nothing in it; apr.convert writes them as safetensors"
        }
        _ => kind.foreign()?.help(),
    };
    Some(format!("is {}, not {wanted}: {help}", kind.title()))
}

/// Looked at anew: who refused it has read what that took, or is gone.
fn of_file(path: &Path) -> Option<FileKind> {
    let regular = durable_file::open_regular(path, u64::MAX).ok()?;
    let (len, mut file) = (regular.len(), regular.into_file());
    let read = |offset, out: &mut [u8]| {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(out)
    };
    FileKind::identify(len, read).ok()
}
