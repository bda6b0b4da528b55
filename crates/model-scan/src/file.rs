//! Files: one stream, an array, an archive of them, a compressed file, or the code of another format.

mod budget;
mod coded;
mod compressed;
mod executable;
mod expected;
mod item;
mod layout;
mod named;
mod pieces;
mod streams;
mod tar;
mod zip;

use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::Error;
use read_at::ReadAt;

pub(crate) use self::item::prefix;
use self::item::{Files, Item};
pub(crate) use self::tar::is_tar;
use crate::problem::{Problem, Verdict};
use crate::report::{Options, Origin, Report};

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
        let is_python = self
            .remarks
            .iter()
            .any(|remark| remark.path.is_empty() && matches!(remark.problem, Problem::PythonFile {}));
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
/// [`ErrorKind::Read`](pickle_core::ErrorKind::Read) alone: whatever is wrong with the file is in the report.
pub fn scan_file(source: impl ReadAt, options: &Options<'_>) -> Result<FileReport, Error> {
    scan_named(source, "", options)
}

/// Scans a file as [`scan_file`] does, and considers its name: Python files, chat templates and some configurations have no other mark. Members
/// of archives have names anyway.
///
/// # Errors
///
/// As [`scan_file`].
pub fn scan_named(source: impl ReadAt, name: &str, options: &Options<'_>) -> Result<FileReport, Error> {
    let mut files = Files::new(options, source.total_len());
    let item = Item { source: &source, path: "", name, origin: Origin::File, depth: 0 };
    files.report.format = files.file(item)?;
    Ok(files.report)
}
