//! Files: one stream, an array, an archive of them, or a compressed file.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::{Error, ErrorKind, Opcode};
use read_at::{ReadAt, Window};
use zip_core::{Archive, Entry, Limits, Wrapper};

use crate::numpy::{self, Data};
use crate::problem::{Problem, Verdict};
use crate::report::{Finding, Options, Origin, Report, Standing};
use crate::stream::scan_source;

/// What kind of file it is, by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One stream of pickles.
    Pickle,
    /// An archive of PyTorch.
    Torch,
    /// An archive of TorchScript.
    TorchScript,
    /// An array file of NumPy.
    Numpy,
    /// Another ZIP archive, for example `.npz`.
    Zip,
    /// A tar archive.
    Tar,
    /// A compressed file.
    Compressed,
    /// None of these: nothing in it is a pickle.
    Other,
}

/// A stream of pickles in a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Part {
    /// Names of members, joined with `!`; empty for the file itself.
    pub path: String,
    /// What loading it would do.
    pub report: Report,
}

/// A contradiction in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contradiction {
    /// The member, with the archives that it is in; the archive for what concerns no member.
    pub path: String,
    /// Byte offset in the archive.
    pub offset: u64,
    /// What contradicts what.
    pub problem: zip_core::Problem,
}

/// A part that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unopened {
    /// The member, with the archives that it is in.
    pub path: String,
    /// Why.
    pub reason: &'static str,
}

/// What loading a file would do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileReport {
    /// What kind of file it is.
    pub format: Format,
    /// Its streams of pickles.
    pub parts: Vec<Part>,
    /// Contradictions in its archives: suspicious.
    pub contradictions: Vec<Contradiction>,
    /// What was not read: suspicious.
    pub unopened: Vec<Unopened>,
}

impl FileReport {
    /// The worst of all parts.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let sound = self.contradictions.is_empty() && self.unopened.is_empty();
        let file = if sound { Verdict::Safe } else { Verdict::Suspicious };
        self.parts.iter().map(|part| part.report.verdict()).fold(file, Verdict::max)
    }
}

/// Scans a file: by its content, whatever its name.
///
/// Archives and compressed files are opened [`Options::depth`] deep. What is neither a pickle nor contains one is
/// [`Format::Other`], and safe: whether a format has other code in it, is a question for its reader.
///
/// # Errors
///
/// [`ErrorKind::Read`] alone: whatever is wrong with the file is in the report.
pub fn scan_file(source: impl ReadAt, options: &Options<'_>) -> Result<FileReport, Error> {
    let report = FileReport {
        format: Format::Other,
        parts: Vec::new(),
        contradictions: Vec::new(),
        unopened: Vec::new(),
    };
    let mut files = Files { options, inflated: options.inflated, report };
    let format = files.file(&source, "", Origin::File, 0)?;
    files.report.format = format;
    Ok(files.report)
}

struct Files<'o> {
    options: &'o Options<'o>,
    /// Bytes that may still be decompressed.
    inflated: u64,
    report: FileReport,
}

/// Compressed files that are not opened.
const UNREAD: [(&[u8], &str); 8] = [
    (b"\xfd7zXZ\0", "compressed with xz"),
    (b"BZh", "compressed with bzip2"),
    (b"]\0\0", "compressed with lzma"),
    (b"\x04\x22\x4d\x18", "compressed with lz4"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"ZF", "compressed by an old joblib"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"Rar!", "rar archive"),
];

impl Files<'_> {
    fn file(&mut self, source: &dyn ReadAt, path: &str, origin: Origin, depth: u32) -> Result<Format, Error> {
        let mut start = [0; 512];
        let len = source.total_len().min(512);
        let start = start.get_mut(..usize::try_from(len).unwrap_or(512)).unwrap_or_default();
        source.read_exact_at(0, start)?;
        if depth > self.options.depth {
            self.unopened(path, "nested too deep");
            return Ok(Format::Other);
        }
        if start.starts_with(numpy::MAGIC) {
            match numpy::data(source)? {
                Data::Elements => {}
                Data::Pickle(at) => {
                    let len = source.total_len() - at;
                    self.stream(&Window::new(source, at, len)?, path, Origin::File)?;
                }
                Data::Unknown => self.unopened(path, "array with an unknown header"),
            }
            return Ok(Format::Numpy);
        }
        if let Some((_, reason)) = UNREAD.iter().find(|(magic, _)| start.starts_with(magic)) {
            self.unopened(path, reason);
            return Ok(Format::Compressed);
        }
        let is_zlib = matches!(start, [0x78, second, ..] if (0x7800 + u16::from(*second)).is_multiple_of(31));
        if is_zlib || start.starts_with(b"\x1f\x8b") {
            self.compressed(source, path, is_zlib, origin, depth)?;
            return Ok(Format::Compressed);
        }
        let is_pickle = matches!(start, [0x80, 0..=5, ..]);
        let archive = Archive::open(source, &Limits::DEFAULT);
        let archive = match archive {
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
        if is_tar(start) {
            self.tar(source, path, depth)?;
            // An archive in its last member: Python's `zipfile` opens that as if the file were one.
            if let Some((archive, _)) = &archive {
                self.archive(archive, path, depth)?;
            }
            return Ok(Format::Tar);
        }
        if let Some((archive, findings)) = archive {
            // What is before the archive may be loaded, too.
            if !start.starts_with(b"PK") {
                self.maybe_stream(source, path, origin, is_pickle)?;
            }
            for finding in findings {
                let member = finding.entry.and_then(|idx| archive.entries().get(idx)).map_or("", Entry::name);
                self.contradiction(&join(path, member), finding.offset, finding.problem);
            }
            return self.archive(&archive, path, depth);
        }
        let found = self.maybe_stream(source, path, origin, is_pickle)?;
        Ok(if found { Format::Pickle } else { Format::Other })
    }

    fn stream(&mut self, source: &dyn ReadAt, path: &str, origin: Origin) -> Result<(), Error> {
        let mut report = Report::new(self.options.kept);
        scan_source(source, origin, self.options, 0, &mut report)?;
        self.report.parts.push(Part { path: path.to_owned(), report });
        Ok(())
    }

    /// Bytes that do not begin as pickles from protocol 2 on do: a pickle if it ends as one, calls a name, or reaches a dangerous one. Other
    /// text may begin with opcodes.
    fn maybe_stream(
        &mut self,
        source: &dyn ReadAt,
        path: &str,
        origin: Origin,
        sure: bool,
    ) -> Result<bool, Error> {
        let mut report = Report::new(self.options.kept);
        scan_source(source, origin, self.options, 0, &mut report)?;
        let ended = report.findings.iter().all(|finding| {
            !matches!(finding.problem, Problem::Malformed { .. } | Problem::TrailingBytes { .. })
        });
        let named = report.names.iter().any(|name| is_dotted(&name.module) && is_dotted(&name.name));
        let runs = report.verdict() == Verdict::Dangerous && report.calls > 0;
        let dangerous = runs
            || report.names.iter().any(|name| name.standing == Standing::Dangerous && is_dotted(&name.name));
        // A file that is no text and breaks off, as a pickle of protocol 0 or 1 that was cut.
        let cut = report
            .findings
            .iter()
            .any(|finding| finding.problem == Problem::Malformed { cause: "pk-truncated" });
        let broken = path.is_empty() && cut && !is_text(source)?;
        let found = sure || broken || ended || dangerous || (named && report.calls > 0);
        if found {
            self.report.parts.push(Part { path: path.to_owned(), report });
        }
        Ok(found)
    }

    fn compressed(
        &mut self,
        source: &dyn ReadAt,
        path: &str,
        is_zlib: bool,
        origin: Origin,
        depth: u32,
    ) -> Result<(), Error> {
        let total = source.total_len();
        let (mut at, mut out) = (0, Vec::new());
        // Python's readers go on with a stream that follows.
        while at < total {
            let begin = if is_zlib { Some(at) } else { gzip_data(source, at)? };
            let wrapper = if is_zlib { Wrapper::Zlib } else { Wrapper::Raw };
            let max = self.inflated.saturating_sub(out.len() as u64);
            let piece = begin.map(|begin| zip_core::decompress(&source, begin..total, wrapper, max));
            match piece {
                Some(Ok((bytes, end))) => {
                    out.extend_from_slice(&bytes);
                    at = if is_zlib { end } else { end.saturating_add(8) };
                }
                Some(Err(error)) if matches!(error.kind(), zip_core::ErrorKind::Read {}) => {
                    return Err(ErrorKind::Read {}.into());
                }
                _ if at > 0 => {
                    self.unopened(path, "bytes after the compressed data");
                    break;
                }
                _ => {
                    self.unopened(path, "cannot be decompressed");
                    return Ok(());
                }
            }
        }
        self.inflated = self.inflated.saturating_sub(out.len() as u64);
        self.file(&out, path, origin, depth + 1).map(drop)
    }

    fn archive(&mut self, archive: &Archive<&dyn ReadAt>, path: &str, depth: u32) -> Result<Format, Error> {
        let folder = |name: &str| {
            name.strip_suffix("data.pkl").filter(|folder| folder.ends_with('/')).map(str::to_owned)
        };
        let roots: Vec<String> = archive.entries().iter().filter_map(|entry| folder(entry.name())).collect();
        let script = archive.entries().iter().any(|entry| {
            roots.iter().any(|root| {
                entry
                    .name()
                    .strip_prefix(root.as_str())
                    .is_some_and(|rest| rest == "constants.pkl" || rest.starts_with("code/"))
            })
        });
        let (format, origin) = match (roots.is_empty(), script) {
            (true, _) => (Format::Zip, Origin::File),
            (_, false) => (Format::Torch, Origin::Torch),
            (_, true) => (Format::TorchScript, Origin::TorchScript),
        };
        for entry in archive.entries().iter().filter(|entry| !entry.is_folder()) {
            let inside = roots.iter().find_map(|root| entry.name().strip_prefix(root.as_str()));
            let number = |rest: &str, folder: &str| {
                rest.strip_prefix(folder)
                    .is_some_and(|key| key.bytes().all(|byte| byte.is_ascii_digit()) && !key.is_empty())
            };
            let storage =
                inside.is_some_and(|rest| number(rest, "data/") || (script && number(rest, "constants/")));
            if storage {
                continue; // Elements, whatever they look like.
            }
            let parts = self.report.parts.len();
            let member = join(path, entry.name());
            if let Some(range) = entry.stored() {
                let window = Window::new(*archive.source(), range.start, range.end - range.start)?;
                self.file(&window, &member, origin, depth + 1)?;
                self.checksum(archive, entry, &member, parts)?;
            } else {
                let max = self.inflated;
                match archive.read(entry, max) {
                    Ok(bytes) => {
                        self.inflated -= bytes.len() as u64;
                        self.file(&bytes, &member, origin, depth + 1)?;
                        self.checksum(archive, entry, &member, parts)?;
                    }
                    Err(error) if matches!(error.kind(), zip_core::ErrorKind::Read {}) => {
                        return Err(ErrorKind::Read {}.into());
                    }
                    Err(_) => self.unopened(&member, "cannot be read"),
                }
            }
            if format == Format::Torch && inside != Some("data.pkl") {
                for part in self.report.parts.iter_mut().skip(parts) {
                    part.report.add(Finding {
                        offset: 0,
                        opcode: Opcode(b'.'),
                        depth: 0,
                        problem: Problem::SidePickle {},
                    });
                }
            }
        }
        Ok(format)
    }

    /// Of members that are pickles: PyTorch does not verify them, others do.
    fn checksum(
        &mut self,
        archive: &Archive<&dyn ReadAt>,
        entry: &Entry,
        path: &str,
        parts: usize,
    ) -> Result<(), Error> {
        if self.report.parts.len() == parts {
            return Ok(());
        }
        match archive.member(entry).and_then(|mut member| member.verify()) {
            Ok(Some(problem)) => self.contradiction(path, entry.header_offset(), problem),
            Ok(None) => {}
            Err(error) if matches!(error.kind(), zip_core::ErrorKind::Read {}) => {
                return Err(ErrorKind::Read {}.into());
            }
            Err(_) => self.unopened(path, "cannot be read"),
        }
        Ok(())
    }

    /// Members of 512-byte blocks: the name first, the length in octal digits at 124.
    fn tar(&mut self, source: &dyn ReadAt, path: &str, depth: u32) -> Result<(), Error> {
        let (mut at, total) = (0_u64, source.total_len());
        while let Some(data) = at.checked_add(512).filter(|data| *data <= total) {
            let mut header = [0; 512];
            source.read_exact_at(at, &mut header)?;
            if header.iter().all(|byte| *byte == 0) {
                at = data; // The end; some readers go on.
                continue;
            }
            let name = header.split(|byte| *byte == 0).next().unwrap_or_default();
            let member = join(path, &String::from_utf8_lossy(name.get(..100).unwrap_or(name)));
            let digits = header.get(124..136).unwrap_or_default();
            let digits = core::str::from_utf8(digits).unwrap_or_default().trim_matches([' ', '\0']);
            let len = u64::from_str_radix(digits, 8).ok().filter(|len| *len <= total - data);
            let Some(len) = len else {
                self.unopened(&member, "tar header without a length");
                return Ok(());
            };
            self.file(&Window::new(source, data, len)?, &member, Origin::File, depth + 1)?;
            at = data + len.next_multiple_of(512);
        }
        Ok(())
    }

    fn contradiction(&mut self, path: &str, offset: u64, problem: zip_core::Problem) {
        self.report.contradictions.push(Contradiction { path: path.to_owned(), offset, problem });
    }

    fn unopened(&mut self, path: &str, reason: &'static str) {
        self.report.unopened.push(Unopened { path: path.to_owned(), reason });
    }
}

/// Whether a block is a tar header: by its checksum, since the oldest kind has no magic number and PyTorch reads that, too.
fn is_tar(block: &[u8]) -> bool {
    let Some(digits) = block.get(148..156).filter(|_| block.len() == 512) else { return false };
    let digits = core::str::from_utf8(digits).unwrap_or_default().trim_matches([' ', '\0']);
    let Ok(declared) = i64::from_str_radix(digits, 8) else { return false };
    // The field itself counts as spaces; some writers took bytes as signed.
    let field = |idx: usize| (148..156).contains(&idx);
    let sum = |value: fn(u8) -> i64| -> i64 {
        block.iter().enumerate().map(|(idx, byte)| if field(idx) { 32 } else { value(*byte) }).sum()
    };
    declared == sum(i64::from) || declared == sum(|byte| byte.cast_signed().into())
}

/// Where the data of a gzip member begin; `None` if there is no header.
fn gzip_data(source: &dyn ReadAt, at: u64) -> Result<Option<u64>, Error> {
    const MAX_HEADER: u64 = 1 << 16;
    let len = (source.total_len() - at).min(MAX_HEADER);
    let mut header = alloc::vec![0; usize::try_from(len).unwrap_or_default()];
    source.read_exact_at(at, &mut header)?;
    let [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, rest @ ..] = header.as_slice() else { return Ok(None) };
    let mut rest = rest;
    if flags & 4 != 0 {
        let Some((len, after)) = rest.split_first_chunk::<2>() else { return Ok(None) };
        rest = after.get(usize::from(u16::from_le_bytes(*len))..).unwrap_or_default();
    }
    // A name and a comment, which end with a zero; a checksum.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0).map_or(rest.len(), |end| end + 1);
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..).unwrap_or_default();
    }
    Ok(Some(at + (header.len() - rest.len()) as u64))
}

fn join(path: &str, member: &str) -> String {
    match (path, member) {
        ("", member) => member.to_owned(),
        (path, "") => path.to_owned(),
        (path, member) => format!("{path}!{member}"),
    }
}

/// Whether a file begins as text; an empty one does not.
fn is_text(source: &dyn ReadAt) -> Result<bool, Error> {
    let mut start = [0; 512];
    let len = usize::try_from(source.total_len()).unwrap_or(512).min(512);
    let start = start.get_mut(..len).unwrap_or_default();
    source.read_exact_at(0, start)?;
    Ok(len > 0 && core::str::from_utf8(start).is_ok_and(|text| !text.contains('\0')))
}

/// Whether Python could import it.
fn is_dotted(name: &str) -> bool {
    let identifier = |part: &str| {
        part.chars().all(|character| character == '_' || character.is_alphanumeric()) && !part.is_empty()
    };
    name.split('.').all(identifier)
}
