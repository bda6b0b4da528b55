//! Refusals that name the format of a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use foreign_format::{Format, identify};

use crate::error::{CODE_FOREIGN_FORMAT, Failure};

/// The format of a regular file, if it is a known one that is told by its content. What cannot be read has none.
pub(crate) fn of_file(path: &Path) -> Option<Format> {
    let regular = durable_file::open_regular(path, u64::MAX).ok()?;
    let len = regular.len();
    of_open(&mut regular.into_file(), len).ok()?
}

/// The same of an open file of `len` bytes, whose position moves.
///
/// # Errors
///
/// Those of reading.
pub(crate) fn of_open(file: &mut File, len: u64) -> io::Result<Option<Format>> {
    identify(len, |offset, buf| {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buf)
    })
}

/// Refuses a file of this format where `expected` is read.
pub(crate) fn refusal(format: Format, expected: &str, path: &Path) -> Failure {
    let failure = Failure::new(CODE_FOREIGN_FORMAT, format!("this is {}, not {expected}", format.title()))
        .in_file(path);
    match (format, format.help()) {
        (_, Some(help)) => failure.help(help),
        (Format::Sealed, None) => failure
            .help("`apr inspect FILE` says what opens it; `apr open FILE -o OUT` gives back what is inside"),
        (_, None) => failure
            .help("name the file itself: in a folder or a set of shards only safetensors files are read"),
    }
}

/// Refuses a file that should be a model, if its format is known.
pub(crate) fn not_a_model(format: Format, path: &Path) -> Failure {
    let expected = if format.help().is_some() { "safetensors, .apr or GGUF" } else { "safetensors" };
    refusal(format, expected, path)
}
