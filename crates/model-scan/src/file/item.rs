//! The walk through a file and what is in it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::{Error, ErrorKind};
use read_at::{ReadAt, Window};
use zip_core::{Archive, Compression, Entry};

use super::budget::Budget;
use super::tar::is_tar;
use super::{Contradiction, FileReport, Format, Remark, executable, named};
use crate::numpy::{self, Data};
use crate::problem::{Problem, Verdict};
use crate::report::{Options, Origin};
use crate::{graph, hdf5, keras, onnx, settings};

/// A file, or a part of one that a loader may read like a file.
#[derive(Clone, Copy)]
pub(super) struct Item<'i> {
    pub(super) source: &'i dyn ReadAt,
    /// Names of members, joined with `!`; empty for the file itself.
    pub(super) path: &'i str,
    /// Its name, with or without folders; empty if it has none.
    pub(super) name: &'i str,
    pub(super) origin: Origin,
    /// Files that it is in.
    pub(super) depth: u32,
}

/// The walk, and what was found so far.
pub(super) struct Files<'o> {
    pub(super) options: &'o Options<'o>,
    /// Length of the file.
    pub(super) len: u64,
    /// Bytes that may still be decompressed.
    pub(super) inflated: u64,
    pub(super) budget: Budget,
    pub(super) report: FileReport,
}

/// Files that are not opened.
const UNREAD: [(&[u8], &str); 6] = [
    (b"\x1f\x9d", "compressed with compress"),
    (b"LRZI", "compressed with lrzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"ZF-0x", "compressed by an old joblib"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"Rar!\x1a\x07", "rar archive"),
];

impl<'o> Files<'o> {
    /// The walk through a file of `len` bytes.
    pub(super) fn new(options: &'o Options<'o>, len: u64) -> Self {
        let report = FileReport {
            format: Format::Other,
            parts: Vec::new(),
            contradictions: Vec::new(),
            remarks: Vec::new(),
        };
        let inflated = options.inflated.unwrap_or_else(|| len.saturating_mul(8).saturating_add(3 << 19));
        Self { options, len, inflated, budget: Budget::new(options, len), report }
    }

    pub(super) fn file(&mut self, item: Item<'_>) -> Result<Format, Error> {
        let Item { source, path, depth, .. } = item;
        let mut start = [0; 512];
        let start = prefix(source, &mut start)?;
        if start.is_empty() {
            return Ok(Format::Other);
        }
        if depth > self.options.depth {
            self.unopened(path, "nested too deep");
            return Ok(Format::Other);
        }
        if !self.budget.take_bytes(source.total_len()) {
            self.unopened(path, "more bytes in members than are read");
            return Ok(Format::Other);
        }
        self.code(item, start)?;
        // What a file is depends on who reads it: HDF5 may begin behind a first block of any kind, and messages and settings may begin with
        // the first bytes of other formats.
        self.whole(item, start)?;
        if let Some(compression) = Compression::of(start) {
            self.compressed(item, compression)?;
            return Ok(Format::Compressed);
        }
        if let Some((_, reason)) = UNREAD.iter().find(|(magic, _)| start.starts_with(magic)) {
            self.unopened(path, reason);
            return Ok(Format::Compressed);
        }
        // Frames that zstd and lz4 skip, or a pickle that begins as one.
        if matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
            self.unopened(path, "compressed with zstd or lz4");
            let is_pickle = self.maybe_stream(item, start)?;
            return Ok(if is_pickle { Format::Pickle } else { Format::Compressed });
        }
        let archive = match Archive::open(source, &zip_core::Limits::DEFAULT) {
            Ok(archive) => Some(archive),
            Err(error) => match error.kind() {
                zip_core::ErrorKind::Read {} | zip_core::ErrorKind::OutOfMemory {} => {
                    return Err(ErrorKind::Read {}.into());
                }
                zip_core::ErrorKind::NoEnd {} if !start.starts_with(b"PK\x03\x04") => None,
                _ => {
                    self.unopened(path, "unreadable archive");
                    None
                }
            },
        };
        let is_array = start.starts_with(numpy::MAGIC);
        if is_array {
            self.array(source, path)?;
        }
        if is_tar(start) {
            // The name of the first member may be the beginning of a pickle.
            self.maybe_stream(item, start)?;
            self.tar(item)?;
            // An archive in its last member: Python's `zipfile` opens that as if the file were one.
            if let Some((archive, _)) = &archive {
                self.archive(archive, path, depth)?;
            }
            return Ok(Format::Tar);
        }
        if let Some((archive, findings)) = archive {
            // What is before the archive may be loaded, too.
            if !start.starts_with(b"PK") {
                self.maybe_stream(item, start)?;
            }
            for finding in findings {
                let member = finding.entry.and_then(|idx| archive.entries().get(idx)).map_or("", Entry::name);
                self.contradiction(&join(path, member), finding.offset, finding.problem);
            }
            return self.archive(&archive, path, depth);
        }
        if is_array {
            return Ok(Format::Numpy);
        }
        let is_pickle = self.maybe_stream(item, start)?;
        Ok(if is_pickle { Format::Pickle } else { Format::Other })
    }

    /// Finds files that are run themselves: by their names, or by their first bytes.
    fn code(&mut self, item: Item<'_>, start: &[u8]) -> Result<(), Error> {
        let named = named::scan(item.source, item.name, self.options.kept)?;
        let is_code = named.iter().any(|(_, problem)| problem.verdict() > Verdict::Safe);
        for (offset, problem) in named {
            self.remark(item.path, offset, problem);
        }
        if let Some(kind) = executable::kind(item.source, start)?.filter(|_| !is_code) {
            self.unopened(item.path, kind);
        }
        Ok(())
    }

    /// What readers find that do not look at the first bytes alone: settings, Keras models, TensorFlow graphs.
    fn whole(&mut self, item: Item<'_>, start: &[u8]) -> Result<(), Error> {
        let Item { source, path, name, .. } = item;
        let kept = self.options.kept;
        let mut found = settings::scan(source, start, name, kept)?;
        if hdf5::is_hdf5(source)? {
            found.extend(hdf5::scan(source, kept)?);
            found.extend(keras::scan(source, kept)?);
        }
        found.extend(graph::scan(source, kept)?);
        found.extend(graph::scan_lite(source, kept)?);
        found.extend(onnx::scan(source, kept)?);
        for (offset, problem) in found {
            self.remark(path, offset, problem);
        }
        Ok(())
    }

    fn array(&mut self, source: &dyn ReadAt, path: &str) -> Result<(), Error> {
        match numpy::data(source)? {
            Data::Elements => {}
            Data::Pickle(at) => {
                let len = source.total_len() - at;
                self.stream(&Window::new(source, at, len)?, path, Origin::File)?;
            }
            Data::Unknown => self.unopened(path, "array with an unknown header"),
        }
        Ok(())
    }

    pub(super) fn contradiction(&mut self, path: &str, offset: u64, problem: zip_core::Problem) {
        self.report.contradictions.push(Contradiction { path: path.to_owned(), offset, problem });
    }

    /// Adds a remark, unless another scan of the same bytes made it.
    pub(super) fn remark(&mut self, path: &str, offset: u64, problem: Problem) {
        let mut of_file = self.report.remarks.iter().rev().take_while(|known| known.path == path);
        if of_file.any(|known| (known.offset, &known.problem) == (offset, &problem)) {
            return;
        }
        self.report.remarks.push(Remark { path: path.to_owned(), offset, problem });
    }

    pub(super) fn unopened(&mut self, path: &str, reason: &'static str) {
        self.remark(path, 0, Problem::Unopened { reason });
    }
}

/// The first bytes of a source.
pub(crate) fn prefix<'b>(source: &dyn ReadAt, buffer: &'b mut [u8]) -> Result<&'b [u8], Error> {
    let len = usize::try_from(source.total_len()).unwrap_or(usize::MAX).min(buffer.len());
    let start = buffer.get_mut(..len).unwrap_or_default();
    source.read_exact_at(0, start)?;
    Ok(start)
}

pub(super) fn join(path: &str, member: &str) -> String {
    match (path, member) {
        ("", member) => member.to_owned(),
        (path, "") => path.to_owned(),
        (path, member) => format!("{path}!{member}"),
    }
}
