//! Files of a folder that can run code when they are loaded: pickles, PyTorch's archives of them, programs.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use foreign_format::Format;

use crate::error::Failure;
use crate::render::human::plural;
use crate::render::json::JsonWriter;

/// Most files that are looked at; folders of models have a few dozen.
const MAX_FILES: u64 = 10_000;

/// Most files that are named in text.
const NAMED: usize = 5;

/// Endings that stand for pickles where the content does not say what it is, or is compressed.
const PICKLE_ENDINGS: [&str; 3] = ["pkl", "pickle", "joblib"];

/// A file that can run code when it is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeFile {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

/// What is in a folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// By path.
    pub(crate) code: Vec<CodeFile>,
    /// Whether there are more files than are looked at.
    pub(crate) is_cut: bool,
}

/// Looks at the beginning of every file in a folder and the folders below. Hidden folders are left out, links to folders are
/// not followed.
///
/// # Errors
///
/// If a folder cannot be listed.
pub(crate) fn scan(folder: &Path) -> Result<Contents, Failure> {
    let mut contents = Contents::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |error| Failure::io("list the folder", &folder, &error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, is_hidden) = (entry.path(), entry.file_name().as_encoded_bytes().starts_with(b"."));
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.extend((!is_hidden).then_some(path));
                continue;
            }
            // A link to a file is loaded like the file.
            let Some(len) = path.metadata().ok().filter(fs::Metadata::is_file).map(|found| found.len())
            else {
                continue;
            };
            if contents.files == MAX_FILES {
                contents.is_cut = true;
                return Ok(contents);
            }
            contents.files += 1;
            contents.bytes = contents.bytes.saturating_add(len);
            contents.code.extend(dangerous(&path).map(|format| CodeFile { path, format }));
        }
    }
    contents.code.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(contents)
}

impl Contents {
    /// A sentence for each of the first files, then how many more there are.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let named = self.code.iter().take(NAMED).map(CodeFile::warning);
        let more = self.code.len().saturating_sub(NAMED) as u64;
        let more = (more > 0).then(|| format!("{} more that can run code when loaded", plural(more, "file")));
        let cut = self.is_cut.then(|| format!("only the first {} were looked at", plural(MAX_FILES, "file")));
        named.chain(more).chain(cut).collect()
    }
}

/// The files that can run code, as a field of a report.
pub(crate) fn write_json<'c, W: Write>(
    folders: impl IntoIterator<Item = &'c Contents>,
    json: &mut JsonWriter<W>,
) -> io::Result<()> {
    json.key("runs_code")?;
    json.array()?;
    for file in folders.into_iter().flat_map(|contents| &contents.code) {
        json.object()?;
        json.field_str("file", &file.path.to_string_lossy())?;
        json.field_str("format", file.format.name())?;
        json.end_object()?;
    }
    json.end_array()
}

impl CodeFile {
    fn warning(&self) -> String {
        let title = self.format.title();
        format!("{}: {title}; it can run code when loaded, and was not examined", self.path.display())
    }
}

/// The format of a file that can run code, by its content; by its name only where the content is compressed or unknown.
fn dangerous(path: &Path) -> Option<Format> {
    let file = durable_file::open_regular(path, u64::MAX).ok()?;
    let len = file.len();
    let mut file = file.into_file();
    let format = foreign_format::identify(len, |offset, buf| {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buf)
    });
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_called_pickle = PICKLE_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known));
    match format.ok()? {
        Some(format) if format.can_run_code() => Some(format),
        None | Some(Format::Zlib | Format::Gzip | Format::Bzip2 | Format::Xz | Format::Lz4)
            if is_called_pickle =>
        {
            Some(Format::Pickle)
        }
        _ => None,
    }
}
