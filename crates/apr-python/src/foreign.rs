//! Files of other formats, named as the program names them.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use foreign_format::{Format, identify, sniff};

/// A file that was refused.
#[derive(Clone, Copy)]
pub(crate) enum Refused<'a> {
    File(&'a Path),
    Memory(&'a [u8]),
}

/// What a file is that is not `wanted`, and what to do with it, as `is ...`; none where the format is not recognized.
pub(crate) fn named(file: Refused<'_>, wanted: &str) -> Option<String> {
    let format = match file {
        Refused::File(path) => of_file(path),
        Refused::Memory(bytes) => sniff(bytes),
    }?;
    let help = match format {
        Format::Apr1 | Format::Apr2 => "apr.load opens it",
        Format::Sealed => "apr.open_sealed opens it",
        Format::Gguf => "apr.gguf.open opens it",
        _ => format.help().unwrap_or("name another file"),
    };
    Some(format!("is {}, not {wanted}: {help}", format.title()))
}

/// Looked at anew: who refused it has read what that took, or is gone.
fn of_file(path: &Path) -> Option<Format> {
    let regular = durable_file::open_regular(path, u64::MAX).ok()?;
    let (len, mut file) = (regular.len(), regular.into_file());
    let read = |offset, out: &mut [u8]| {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(out)
    };
    identify(len, read).ok()?
}
