//! Files, alone or in a folder, that can run code when they are loaded: pickles, PyTorch's archives of them, programs.

use alloc::borrow::Cow;
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use foreign_format::Format;
use model_scan::{Options, Verdict};
use serde::Serialize;

use crate::error::Failure;
use crate::scanning;
use crate::terminal::human::{grouped, plural};

/// Maximum number of files that are checked; folders of models have a few dozen.
const MAX_FILES: u64 = 10_000;

/// Most files that are named in text.
const NAMED: usize = 5;

/// Extensions of pickles, for content that is not recognized or compressed.
const PICKLE_ENDINGS: [&str; 3] = ["pkl", "pickle", "joblib"];

/// A file that can run code when it is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeFile {
    path: PathBuf,
    format: &'static str,
    title: &'static str,
    /// What a scan says, with the reason, if there was one.
    verdict: Option<(Verdict, String)>,
}

/// How files are looked at.
#[derive(Clone, Copy, Debug, Default)]
enum Look {
    /// By their first bytes: whether the format can run code.
    #[default]
    Format,
    /// As `apr scan` does.
    Scan,
}

/// The content of a folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// By path.
    pub(crate) code: Vec<CodeFile>,
    /// Notes about files that could not be checked.
    skipped: Vec<String>,
    look: Look,
}

/// Looks at the beginning of every file in a folder and the folders below. Hidden folders are left out, links to folders are
/// not followed.
pub(crate) fn formats(folder: &Path) -> Contents {
    contents(folder, Look::Format)
}

/// Scans these files.
pub(crate) fn scan(folder: &Path) -> Contents {
    contents(folder, Look::Scan)
}

/// Scans one file.
pub(crate) fn scan_file(path: &Path) -> Contents {
    let mut contents = Contents { files: 1, look: Look::Scan, ..Contents::default() };
    contents.add_file(path.to_owned());
    contents
}

fn contents(folder: &Path, look: Look) -> Contents {
    let mut contents = Contents { look, ..Contents::default() };
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if let Err(error) = contents.add_folder(&folder, &mut folders) {
            contents.skipped.push(format!("{}: not looked at: {error}", folder.display()));
        }
    }
    contents.code.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    contents
}

impl Contents {
    fn add_folder(&mut self, folder: &Path, folders: &mut Vec<PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, is_hidden) = (entry.path(), entry.file_name().as_encoded_bytes().starts_with(b"."));
            if entry.file_type()?.is_dir() {
                folders.extend((!is_hidden).then_some(path));
                continue;
            }
            // A link to a file is loaded like the file.
            let Some(len) = path.metadata().ok().filter(fs::Metadata::is_file).map(|found| found.len())
            else {
                continue;
            };
            self.files += 1;
            self.bytes = self.bytes.saturating_add(len);
            if self.files <= MAX_FILES {
                self.add_file(path);
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: PathBuf) {
        let found = match self.look {
            Look::Format => of_format(&path),
            Look::Scan => scanned(&path),
        };
        match found {
            Ok(file) => self.code.extend(file),
            Err(failure) => self.skipped.push(format!("{}: not looked at: {failure}", path.display())),
        }
    }

    /// Whether a scan found a file that runs code.
    pub(crate) fn is_dangerous(&self) -> bool {
        self.code.iter().any(|file| matches!(file.verdict, Some((Verdict::Dangerous, _))))
    }

    /// A sentence for each of the first files, then how many more there are.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let named = self.code.iter().take(NAMED).map(CodeFile::warning);
        let more = self.code.len().saturating_sub(NAMED) as u64;
        let more = (more > 0).then(|| format!("{} more that can run code when loaded", plural(more, "file")));
        let skipped = self.skipped.iter().take(NAMED).cloned();
        let cut = (self.files > MAX_FILES)
            .then(|| format!("{} of {} files were looked at", grouped(MAX_FILES), grouped(self.files)));
        named.chain(more).chain(skipped).chain(cut).collect()
    }
}

/// One of them in a report.
#[derive(Serialize)]
pub(crate) struct CodeRow<'a> {
    file: Cow<'a, str>,
    format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
}

/// The files that can run code, for the field `runs_code` of a report.
pub(crate) fn rows<'c>(folders: impl IntoIterator<Item = &'c Contents>) -> Vec<CodeRow<'c>> {
    let files = folders.into_iter().flat_map(|contents| &contents.code);
    let row = |file: &'c CodeFile| CodeRow {
        file: file.path.to_string_lossy(),
        format: file.format,
        verdict: file.verdict.as_ref().map(|(verdict, _)| verdict.name()),
    };
    files.map(row).collect()
}

impl CodeFile {
    fn warning(&self) -> String {
        let (path, title) = (self.path.display(), self.title);
        match &self.verdict {
            None => format!("{path}: {title}; it can run code when loaded, and was not examined"),
            Some((verdict, reason)) => {
                format!("{path}: {title}; {}, it can run code when loaded: {reason}", verdict.name())
            }
        }
    }
}

/// A file that a scan does not find safe.
fn scanned(path: &Path) -> Result<Option<CodeFile>, Failure> {
    let judged = scanning::judge(path, path, &Options::DEFAULT)?;
    let verdict = judged.verdict();
    Ok((verdict != Verdict::Safe).then(|| CodeFile {
        path: path.to_owned(),
        format: judged.format,
        title: judged.title,
        verdict: Some((verdict, judged.reason())),
    }))
}

/// The format of a file that can run code, by its content; by its name only where the content is compressed or unknown.
fn of_format(path: &Path) -> Result<Option<CodeFile>, Failure> {
    let file = durable_file::open_regular(path, u64::MAX)?;
    let len = file.len();
    let mut file = file.into_file();
    let format = foreign_format::identify(len, |offset, buf| {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buf)
    });
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_called_pickle = PICKLE_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known));
    let format = match format.map_err(|error| Failure::io("read the file", path, &error))? {
        Some(format) if format.can_run_code() => Some(format),
        None if is_called_pickle => Some(Format::Pickle),
        Some(format) if format.is_compressed() && is_called_pickle => Some(Format::Pickle),
        _ => None,
    };
    let file = |format: Format| CodeFile {
        path: path.to_owned(),
        format: format.name(),
        title: format.title(),
        verdict: None,
    };
    Ok(format.map(file))
}
