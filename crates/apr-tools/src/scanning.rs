//! Files and folders as `apr scan` and `apr check` judge them.

use std::fs;
use std::path::{Path, PathBuf};

use model_file::FileKind;
use model_scan::{FileReport, Options, Verdict};
use read_at::{AnySource, FileSource, ReadAt as _};

use crate::error::Failure;
use crate::remote::Remote;

/// A file that was read to its verdict.
pub(crate) struct Judged {
    /// Name of its format.
    pub(crate) format: &'static str,
    /// The format in words, where a reader of models knows it.
    pub(crate) title: &'static str,
    pub(crate) bytes: u64,
    pub(crate) report: FileReport,
}

impl Judged {
    pub(crate) fn verdict(&self) -> Verdict {
        self.report.verdict()
    }

    /// A link to a folder, which is not followed.
    pub(crate) fn linked_folder() -> Self {
        let report = FileReport::unopened("a link to a folder");
        Self { format: "link", title: "a link to a folder", bytes: 0, report }
    }

    /// What decides the verdict: the first of the worst findings.
    pub(crate) fn reason(&self) -> String {
        let verdict = self.verdict();
        let worst = self.report.findings().find(|found| found.verdict == verdict);
        worst.map(|found| found.message).unwrap_or_default()
    }
}

/// Judges the file at `path`, which the user calls `label`.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn judge(path: &Path, label: &Path, options: &Options<'_>) -> Result<Judged, Failure> {
    let named = |failure: Failure| failure.in_place_of_file(label);
    let source = match Remote::open(path)? {
        Some(remote) => remote.source(),
        None => {
            let file = durable_file::open_regular(path, u64::MAX).map_err(|error| named(error.into()))?;
            let len = file.len();
            AnySource::File(FileSource::with_len(file.into_file(), len))
        }
    };
    let len = source.total_len();
    let kind = FileKind::identify(len, |offset, out| source.read_exact_at(offset, out));
    let kind = kind.map_err(|error| named(Failure::io("read the file", label, &error.into())))?;
    let name = label.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let mut report = model_scan::scan_named(&source, &name, options).map_err(|error| named(error.into()))?;
    if len > 0 {
        report.check_name(&name, kind.name());
    }
    let (format, title) = report.format_of(len, kind.name().map(|name| (name, kind.title())));
    Ok(Judged { format, title, bytes: len, report })
}

/// What is below a folder.
#[derive(Default)]
pub(crate) struct Below {
    /// Files, links to files and links to folders, by path.
    pub(crate) files: Vec<PathBuf>,
    /// Folders that cannot be listed.
    pub(crate) unread: Vec<Failure>,
}

/// The files below a folder, those of hidden folders too: but not of `.git`, from which nothing loads models. Links to folders are not followed;
/// they are listed.
pub(crate) fn below(folder: &Path) -> Below {
    let mut below = Below::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut list = || {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if !entry.file_type()?.is_dir() {
                    below.files.push(entry.path());
                } else if entry.file_name() != ".git" {
                    folders.push(entry.path());
                }
            }
            Ok(())
        };
        if let Err(error) = list() {
            below.unread.push(Failure::io("list the folder", &folder, &error));
        }
    }
    below.files.sort_unstable();
    below
}
