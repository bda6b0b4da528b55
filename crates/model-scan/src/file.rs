//! Files: one stream, an array, an archive of them, a compressed file, or the code of another format.

mod contained;
mod pieces;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::{Error, ErrorKind};
use read_at::{ReadAt, Window};
use zip_core::{Archive, Compression, Entry};

use self::contained::is_tar;
use crate::numpy::{self, Data};
use crate::problem::{Problem, Verdict};
use crate::report::{Finding, Options, Origin, Report, Standing};
use crate::stream::scan_source;
use crate::{graph, keras, settings, template};

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
    /// An archive of Keras.
    Keras,
    /// Another ZIP archive, for example `.npz`.
    Zip,
    /// A tar archive.
    Tar,
    /// A compressed file.
    Compressed,
    /// None of these: nothing in it is a pickle.
    Other,
}

impl Format {
    /// The word in reports; `None` for what is none of these.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Pickle => "pickle",
            Self::Torch => "torch",
            Self::TorchScript => "torchscript",
            Self::Numpy => "npy",
            Self::Keras => "keras",
            Self::Zip => "zip",
            Self::Tar => "tar",
            Self::Compressed => "compressed",
            Self::Other => return None,
        })
    }
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

/// What was found outside of pickles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// The member, with the archives that it is in; empty for the file itself.
    pub path: String,
    /// Byte offset in the member.
    pub offset: u64,
    /// What was found.
    pub problem: Problem,
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
    /// What was found outside of pickles, and what was not read.
    pub remarks: Vec<Remark>,
}

impl FileReport {
    /// The report of what a caller cannot open: suspicious.
    #[must_use]
    pub fn unopened(reason: &'static str) -> Self {
        let remark = Remark { path: String::new(), offset: 0, problem: Problem::Unopened { reason } };
        Self {
            format: Format::Other,
            parts: Vec::new(),
            contradictions: Vec::new(),
            remarks: Vec::from([remark]),
        }
    }

    /// Adds that the file was not read, if its name is that of a model: of content that no reader of models knows.
    pub fn add_unknown(&mut self, name: &str) {
        const MODELS: [&str; 16] = [
            "ckpt",
            "gguf",
            "h5",
            "hdf5",
            "joblib",
            "keras",
            "npy",
            "npz",
            "onnx",
            "pickle",
            "pkl",
            "pt",
            "pt2",
            "pth",
            "safetensors",
            "tflite",
        ];
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let is_model = ending.is_some_and(|ending| MODELS.contains(&&*ending));
        if is_model && self.format == Format::Other && self.verdict() == Verdict::Safe {
            let problem =
                Problem::Unopened { reason: "the content is of no format that the name stands for" };
            self.remarks.push(Remark { path: String::new(), offset: 0, problem });
        }
    }

    /// The worst of all findings.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let archives = if self.contradictions.is_empty() { Verdict::Safe } else { Verdict::Suspicious };
        let parts = self.parts.iter().map(|part| part.report.verdict());
        parts.chain(self.remarks.iter().map(|remark| remark.problem.verdict())).fold(archives, Verdict::max)
    }

    /// Name and title of the format for reports: what was scanned as code, or what a reader of models takes the file of `bytes` bytes for.
    #[must_use]
    pub fn format_of(
        &self,
        bytes: u64,
        known: Option<(&'static str, &'static str)>,
    ) -> (&'static str, &'static str) {
        let is_python = self.remarks.iter().any(|remark| matches!(remark.problem, Problem::PythonFile {}));
        let scanned = match self.format {
            _ if is_python => Some(("python", "Python code")),
            _ if bytes == 0 => Some(("empty", "an empty file")),
            Format::Torch => Some(("torch", "a PyTorch checkpoint (a ZIP archive with a pickle)")),
            Format::TorchScript => Some(("torchscript", "a TorchScript program")),
            Format::Keras => Some(("keras", "a Keras model (.keras)")),
            Format::Pickle if known.is_none_or(|(name, _)| name != "torch-legacy") => {
                Some(("pickle", "a pickle (joblib, scikit-learn or other)"))
            }
            _ => None,
        };
        let fallback = (self.format.name().unwrap_or("unknown"), "a file of an unknown format");
        scanned.or(known).unwrap_or(fallback)
    }
}

/// Scans a file: by its content, whatever its name.
///
/// Archives and compressed files are opened [`Options::depth`] deep. What is neither a pickle nor contains one is
/// [`Format::Other`], and safe unless there is a remark.
///
/// # Errors
///
/// [`ErrorKind::Read`] alone: whatever is wrong with the file is in the report.
pub fn scan_file(source: impl ReadAt, options: &Options<'_>) -> Result<FileReport, Error> {
    let report = FileReport {
        format: Format::Other,
        parts: Vec::new(),
        contradictions: Vec::new(),
        remarks: Vec::new(),
    };
    let len = source.total_len();
    let inflated = options.inflated.unwrap_or_else(|| len.saturating_mul(8).saturating_add(3 << 19));
    let mut files = Files { options, len, inflated, report };
    let format = files.file(&source, "", Origin::File, 0)?;
    files.report.format = format;
    Ok(files.report)
}

/// Scans a file as [`scan_file`] does, and considers its name: Python files and chat templates have no other mark.
///
/// # Errors
///
/// As [`scan_file`].
pub fn scan_named(source: impl ReadAt, name: &str, options: &Options<'_>) -> Result<FileReport, Error> {
    let mut report = scan_file(&source, options)?;
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let problem = match ending.as_deref() {
        _ if source.total_len() == 0 => None,
        Some("py" | "pyw" | "pyc") => Some(Problem::PythonFile {}),
        Some("jinja" | "jinja2" | "j2") => {
            let len = source.total_len().min(template::MAX as u64 + 1);
            let mut text = alloc::vec![0; usize::try_from(len).unwrap_or_default()];
            let text = prefix(&source, &mut text)?;
            Some(template::judge(&String::from_utf8_lossy(text)))
        }
        _ => None,
    };
    report.remarks.extend(problem.map(|problem| Remark { path: String::new(), offset: 0, problem }));
    Ok(report)
}

pub(crate) struct Files<'o> {
    options: &'o Options<'o>,
    /// Length of the file.
    len: u64,
    /// Bytes that may still be decompressed.
    inflated: u64,
    report: FileReport,
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

impl Files<'_> {
    fn file(&mut self, source: &dyn ReadAt, path: &str, origin: Origin, depth: u32) -> Result<Format, Error> {
        let mut start = [0; 512];
        let start = prefix(source, &mut start)?;
        if start.is_empty() {
            return Ok(Format::Other);
        }
        if depth > self.options.depth {
            self.unopened(path, "nested too deep");
            return Ok(Format::Other);
        }
        // What a file is depends on who reads it: HDF5 may begin behind a first block of any kind, and messages and settings may begin with
        // the first bytes of other formats.
        self.whole(source, path, start)?;
        if let Some(compression) = Compression::of(start) {
            self.compressed(source, path, compression, origin, depth)?;
            return Ok(Format::Compressed);
        }
        if let Some((_, reason)) = UNREAD.iter().find(|(magic, _)| start.starts_with(magic)) {
            self.unopened(path, reason);
            return Ok(Format::Compressed);
        }
        // An archive may follow.
        if start.starts_with(b"\x7fELF") {
            self.unopened(path, "an executable or a library");
        }
        // Frames that zstd and lz4 skip, or a pickle that begins as one.
        if matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
            self.unopened(path, "compressed with zstd or lz4");
            let is_pickle = self.maybe_stream(source, path, origin, start)?;
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
            self.maybe_stream(source, path, origin, start)?;
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
                self.maybe_stream(source, path, origin, start)?;
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
        let is_pickle = self.maybe_stream(source, path, origin, start)?;
        Ok(if is_pickle { Format::Pickle } else { Format::Other })
    }

    /// What readers find that do not look at the first bytes alone: settings, Keras models, TensorFlow graphs.
    fn whole(&mut self, source: &dyn ReadAt, path: &str, start: &[u8]) -> Result<(), Error> {
        let kept = self.options.kept;
        let mut found = settings::scan(source, start, kept)?;
        if keras::is_hdf5(source)? {
            found.extend(keras::scan(source, kept)?);
        }
        found.extend(graph::scan(source, kept)?);
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

    /// Options for a stream of `len` bytes: what was decompressed may use no more memory than a file of its compressed length.
    fn options_for(&self, len: u64) -> Options<'_> {
        let mut options = *self.options;
        if len > self.len && options.inflated.is_none() {
            let nodes = u32::try_from(self.len / 2 + (1 << 16)).unwrap_or(u32::MAX);
            options.limits.values = options.limits.values.min(nodes);
            options.limits.memo = options.limits.memo.min(nodes);
            options.limits.marks = options.limits.marks.min(nodes);
            options.limits.decoded_bytes = options.limits.decoded_bytes.min(nodes);
        }
        options
    }

    fn stream(&mut self, source: &dyn ReadAt, path: &str, origin: Origin) -> Result<(), Error> {
        let mut report = Report::new(self.options.kept);
        scan_source(source, origin, &self.options_for(source.total_len()), 0, &mut report)?;
        self.report.parts.push(Part { path: path.to_owned(), report });
        Ok(())
    }

    /// Bytes that need not be a pickle. One of protocol 2 or above begins with its number; another one is taken for a pickle if it ends as
    /// one, calls a name, or reaches a dangerous one: other text may begin with opcodes.
    fn maybe_stream(
        &mut self,
        source: &dyn ReadAt,
        path: &str,
        origin: Origin,
        start: &[u8],
    ) -> Result<bool, Error> {
        let mut report = Report::new(self.options.kept);
        scan_source(source, origin, &self.options_for(source.total_len()), 0, &mut report)?;
        let ended = report.findings.iter().all(|finding| {
            !matches!(finding.problem, Problem::Malformed { .. } | Problem::TrailingBytes { .. })
        });
        let named = report.names.iter().any(|name| is_dotted(&name.module) && is_dotted(&name.name));
        let runs = report.verdict() == Verdict::Dangerous && report.calls > 0;
        let dangerous = runs
            || report.names.iter().any(|name| name.standing == Standing::Dangerous && is_dotted(&name.name));
        let numbered = matches!(start, [0x80, 0..=5, ..]);
        // A file that is no text and breaks off, as a pickle of protocol 0 or 1 that was cut or that declares a wrong length. Elements may begin
        // with an opcode, hardly with eight, and hardly end with `STOP` then.
        let stopped_by = |code: &str| {
            let mut problems = report.findings.iter().map(|finding| &finding.problem);
            problems.any(|problem| matches!(problem, Problem::Malformed { cause } if *cause == code))
        };
        let cut = stopped_by("pk-truncated") && (report.opcodes >= 8 || last(source)? == Some(b'.'));
        // Only a pickle goes on for so long, but for names at the beginning of a tar archive: those of modules that no loader finds, or no
        // numbers.
        let byte = |at: u64| usize::try_from(at).ok().and_then(|at| start.get(at)).copied();
        let is_name = |finding: &Finding| match byte(finding.offset) {
            Some(b'c' | b'i') => true,
            Some(b'g' | b'p' | b'I' | b'L' | b'F') => {
                let next = byte(finding.offset.saturating_add(1));
                !next.is_some_and(|byte| byte.is_ascii_digit() || b"+-._ \t\x0b\x0c\r".contains(&byte))
            }
            _ => false,
        };
        let is_tar = is_tar(start);
        let limited = stopped_by("pk-limit") && !(is_tar && report.findings.iter().any(is_name));
        let broken = path.is_empty() && !is_tar && cut && core::str::from_utf8(start).is_err();
        let sure = (numbered || broken) && !(is_model(source, start) && report.names.is_empty());
        let found = sure || limited || ended || dangerous || (named && report.calls > 0);
        if found {
            self.report.parts.push(Part { path: path.to_owned(), report });
        }
        Ok(found)
    }

    fn contradiction(&mut self, path: &str, offset: u64, problem: zip_core::Problem) {
        self.report.contradictions.push(Contradiction { path: path.to_owned(), offset, problem });
    }

    /// Adds a remark, unless another scan of the same bytes made it.
    fn remark(&mut self, path: &str, offset: u64, problem: Problem) {
        let mut of_file = self.report.remarks.iter().rev().take_while(|known| known.path == path);
        if of_file.any(|known| (known.offset, &known.problem) == (offset, &problem)) {
            return;
        }
        self.report.remarks.push(Remark { path: path.to_owned(), offset, problem });
    }

    fn unopened(&mut self, path: &str, reason: &'static str) {
        self.remark(path, 0, Problem::Unopened { reason });
    }
}

/// Whether it begins as a model without code: safetensors, whose first bytes are the length of its header, or a magic number.
fn is_model(source: &dyn ReadAt, start: &[u8]) -> bool {
    let header = start.first_chunk::<8>().map_or(u64::MAX, |len| u64::from_le_bytes(*len));
    let safetensors = start.get(8) == Some(&b'{') && header <= source.total_len().saturating_sub(8);
    let magic = [b"GGUF".as_slice(), b"APR", b"\x89HDF", b"ORC", b"BM"];
    safetensors || magic.iter().any(|magic| start.starts_with(magic)) || start.get(4..8) == Some(b"TFL3")
}

/// The first bytes of a source.
pub(crate) fn prefix<'b>(source: &dyn ReadAt, buffer: &'b mut [u8]) -> Result<&'b [u8], Error> {
    let len = usize::try_from(source.total_len()).unwrap_or(usize::MAX).min(buffer.len());
    let start = buffer.get_mut(..len).unwrap_or_default();
    source.read_exact_at(0, start)?;
    Ok(start)
}

fn last(source: &dyn ReadAt) -> Result<Option<u8>, Error> {
    let Some(at) = source.total_len().checked_sub(1) else { return Ok(None) };
    let mut byte = [0];
    source.read_exact_at(at, &mut byte)?;
    Ok(byte.first().copied())
}

fn join(path: &str, member: &str) -> String {
    match (path, member) {
        ("", member) => member.to_owned(),
        (path, "") => path.to_owned(),
        (path, member) => format!("{path}!{member}"),
    }
}

/// Whether Python could import it.
fn is_dotted(name: &str) -> bool {
    let identifier = |part: &str| {
        part.chars().all(|character| character == '_' || character.is_alphanumeric()) && !part.is_empty()
    };
    name.split('.').all(identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompressed_streams_have_the_limits_of_a_file_of_their_compressed_length() {
        for (inflated, len, is_bounded) in
            [(None, 999, false), (None, 1000, false), (None, 1001, true), (Some(1 << 30), 1001, false)]
        {
            let mut options = Options { inflated, ..Options::DEFAULT };
            let (format, parts, contradictions, remarks) =
                (Format::Other, Vec::new(), Vec::new(), Vec::new());
            let report = FileReport { format, parts, contradictions, remarks };
            let found = Files { options: &options, len: 1000, inflated: 0, report }.options_for(len).limits;
            if is_bounded {
                let limits = &mut options.limits;
                for limit in
                    [&mut limits.values, &mut limits.memo, &mut limits.marks, &mut limits.decoded_bytes]
                {
                    *limit = 500 + (1 << 16);
                }
            }
            assert_eq!(found, options.limits, "{inflated:?} {len}");
        }
    }
}
