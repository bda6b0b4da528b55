//! Exit codes, and failures as a block of text or a JSON object.

mod libraries;

use alloc::borrow::Cow;
use core::error::Error;
use core::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use located_error::{Category, Subject};
use serde::{Serialize, Serializer};

pub(crate) use self::libraries::{ALIGNMENT, ALIGNMENT_HELP};
use crate::codes;
pub(crate) use crate::codes::cli::*;
use crate::remote;
use crate::report::{self, Report};
use crate::terminal::escape::{self, Visible};
use crate::terminal::style::Style;
use crate::terminal::suggest;

/// The exit codes, which scripts rely on. Documented in `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Success = 0,
    /// Compared, and not equal.
    Different = 1,
    /// The command line asks for something that cannot be.
    Usage = 2,
    /// The input is not what it claims to be.
    Invalid = 3,
    /// A checksum does not match.
    Refused = 4,
    /// The operating system said no.
    Io = 5,
    /// A known format that this version does not read.
    Unsupported = 6,
    /// Nothing was decided: another try may succeed. `EX_TEMPFAIL` of sysexits.
    TryAgain = 75,
    /// A defect of this program: `EX_SOFTWARE` of sysexits, so that no verdict above can be mistaken for it.
    Internal = 70,
}

impl From<Category> for Exit {
    fn from(category: Category) -> Self {
        match category {
            Category::Stopped => Self::Success,
            Category::Usage => Self::Usage,
            Category::Invalid => Self::Invalid,
            Category::Verification => Self::Refused,
            Category::Io => Self::Io,
            Category::Unsupported => Self::Unsupported,
            _ => Self::Internal,
        }
    }
}

/// Where in a table; lines, rows and columns count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Of a text.
    line: Option<u64>,
    /// Of a table that is no text.
    row: Option<u64>,
    column: Option<u64>,
    /// Name of the column.
    name: Option<String>,
}

impl Place {
    pub(crate) fn line(line: u64) -> Self {
        Self { line: Some(line), ..Self::default() }
    }

    #[cfg(feature = "tables")]
    pub(crate) fn row(row: u64) -> Self {
        Self { row: Some(row), ..Self::default() }
    }

    pub(crate) fn in_column(mut self, column: u64) -> Self {
        self.column = Some(column);
        self
    }

    pub(crate) fn named(mut self, name: Option<&str>) -> Self {
        self.name = name.map(str::to_owned);
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.row) {
            (Some(line), _) => write!(f, "line {line}")?,
            (None, row) => write!(f, "row {}", row.unwrap_or_default())?,
        }
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        match &self.name {
            Some(name) => write!(f, " ({})", escape::cut(name, 60)),
            None => Ok(()),
        }
    }
}

/// Why a command stopped: what, where, why, and what to do next.
#[derive(Clone, Debug)]
pub(crate) struct Failure(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    code: &'static str,
    what: String,
    file: Option<PathBuf>,
    offset: Option<u64>,
    place: Option<Place>,
    tensor: Option<String>,
    /// Of the metadata.
    key: Option<String>,
    why: Option<String>,
    /// Usage of the command.
    usage: Option<String>,
    help: Option<String>,
    /// Text printed instead of the block: the usage errors of the argument parser.
    block: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: &'static str, what: impl Into<String>) -> Self {
        Self(Box::new(Details {
            code,
            what: what.into(),
            file: None,
            offset: None,
            place: None,
            tensor: None,
            key: None,
            why: None,
            usage: None,
            help: None,
            block: None,
        }))
    }

    /// A URL where a file of this machine is needed.
    pub(crate) fn not_remote(path: &Path) -> Self {
        Self::new(CODE_REMOTE, "a file of this machine is needed here, not a URL").in_file(path)
    }

    /// A URL where a new file is to be written.
    pub(crate) fn remote_output(path: &Path) -> Self {
        let failure = Self::new(CODE_REMOTE, "the output has to be a file of this machine, not a URL");
        failure.in_file(path).help(
            "write a file, and copy it afterwards; `convert`, `quantize`, `export` and `put` write objects of s3://, gs:// and az://",
        )
    }

    /// An operation on a file that the operating system refused.
    pub(crate) fn io(operation: &str, path: &Path, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound && remote::is_url(path) {
            return Self::not_remote(path);
        }
        Self::new(CODE_IO, format!("cannot {operation}: {error}")).in_file(path).of_system(error)
    }

    /// With advice about what the operating system refused; the path is looked at only if that does not exist.
    fn of_system(self, error: &io::Error) -> Self {
        let entry = codes::find(self.0.code).filter(|entry| entry.category == Category::Io);
        match entry.filter(|_| error.kind() != io::ErrorKind::NotFound) {
            Some(entry) => self.help(entry.remedy),
            None => self,
        }
    }

    /// Standard output that does not take what is written to it. A reader that went away is no failure: the run
    /// ends quietly, see [`Failure::is_closed_pipe`].
    pub(crate) fn stdout(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(CODE_CLOSED_PIPE, "the reader of standard output went away");
        }
        Self::new(CODE_STDOUT, format!("write to standard output: {error}"))
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.0.file.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Names another file than the one it happened in: `-` for the temporary copy of standard input, for example.
    pub(crate) fn in_place_of_file(mut self, path: &Path) -> Self {
        self.0.file = Some(path.to_owned());
        self
    }

    /// Names the file at `path` as the user does.
    pub(crate) fn called(self, path: &Path, label: &Path) -> Self {
        match self.0.file.as_deref() == Some(path) {
            true => self.in_place_of_file(label),
            false => self,
        }
    }

    /// Names a file below `from` as what it was to become below `to`.
    pub(crate) fn moved(mut self, from: &Path, to: &Path) -> Self {
        if let Some(below) = self.0.file.as_ref().and_then(|file| file.strip_prefix(from).ok()) {
            self.0.file = Some(to.join(below));
        }
        self
    }

    pub(crate) fn at(mut self, offset: Option<u64>) -> Self {
        self.0.offset = offset.or(self.0.offset);
        self
    }

    pub(crate) fn placed(mut self, place: Place) -> Self {
        self.0.place = Some(place);
        self
    }

    pub(crate) fn of_tensor(mut self, name: Option<&str>) -> Self {
        self.0.tensor = name.map(str::to_owned).or(self.0.tensor);
        self
    }

    pub(crate) fn of_key(mut self, key: Option<&str>) -> Self {
        self.0.key = key.map(str::to_owned).or(self.0.key);
        self
    }

    /// What a library's error is about.
    pub(crate) fn about(self, subject: Option<&Subject>) -> Self {
        match subject {
            Some(Subject::Tensor(name)) => self.of_tensor(Some(name)),
            Some(Subject::Key(name)) => self.of_key(Some(name)),
            Some(other) => self.because(other.to_string()),
            None => self,
        }
    }

    /// The damage that the checksum found, with this failure as what it led to.
    pub(crate) fn caused_by_damage(self, damage: Self) -> Self {
        let why = match self.0.offset {
            Some(offset) => format!("{} at byte {offset}", self.0.what),
            None => self.0.what,
        };
        Self(Box::new(Details { file: self.0.file, why: Some(why), ..*damage.0 }))
    }

    /// In other words.
    pub(crate) fn saying(mut self, what: impl Into<String>) -> Self {
        self.0.what = what.into();
        self
    }

    pub(crate) fn because(mut self, why: impl Into<String>) -> Self {
        self.0.why = Some(why.into());
        self
    }

    /// What to do next, in place of the advice that belongs to the code.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Usage of the command.
    pub(crate) fn with_usage(mut self, usage: impl Into<String>) -> Self {
        self.0.usage = Some(usage.into());
        self
    }

    pub(crate) fn instead(mut self, block: String) -> Self {
        self.0.block = Some(block);
        self
    }

    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    pub(crate) fn what(&self) -> &str {
        &self.0.what
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    pub(crate) fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    pub(crate) fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.0.code == CODE_CLOSED_PIPE
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.0.code {
            CODE_TASKS_MISSING => Exit::TryAgain,
            code => codes::find(code).map_or(Exit::Internal, |entry| entry.category.into()),
        }
    }

    /// The advice: the one given, else the one that belongs to the code.
    pub(crate) fn advice(&self) -> Option<Cow<'_, str>> {
        if let Some(help) = &self.0.help {
            return Some(help.into());
        }
        let is_missing = |path: &&PathBuf| {
            path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let is_here = |path: &&PathBuf| path.as_os_str() != "-" && !remote::is_url(path);
        match self.0.file.as_ref().filter(|path| self.exit() == Exit::Io && is_here(path) && is_missing(path))
        {
            Some(path) => Some(suggest::missing(path).into()),
            None => codes::find(self.0.code).map(|entry| entry.remedy.into()),
        }
    }

    /// The block for people, ending in a line feed.
    pub(crate) fn block(&self, style: Style) -> String {
        let details = &*self.0;
        if let Some(block) = &details.block {
            return block.clone();
        }
        let mut block = String::new();
        let mut line = |label: &str, text: &dyn fmt::Display| {
            let _ = writeln!(block, "  {label:<8}{text}");
        };
        if let Some(file) = &details.file {
            line("file:", &escape::short_path(file));
        }
        if let Some(place) = &details.place {
            line("where:", place);
        }
        // A single array has no name.
        if let Some(tensor) = details.tensor.as_ref().filter(|name| !name.is_empty()) {
            line("tensor:", &escape::cut(tensor, 200));
        }
        if let Some(key) = &details.key {
            line("key:", &escape::cut(key, 200));
        }
        if let Some(offset) = details.offset {
            line("offset:", &format_args!("byte {offset}"));
        }
        if let Some(why) = &details.why {
            line("why:", &Visible(why));
        }
        if let Some(usage) = &details.usage {
            line("usage:", &Visible(usage));
        }
        if let Some(help) = self.advice() {
            line("help:", &Visible(&help));
        }
        line("more:", &format_args!("apr explain {}", details.code));
        let label = style.red(&format!("error[{}]", details.code));
        format!("{label}: {}\n{block}", Visible(&details.what))
    }

    /// The failure as the only object that a run prints.
    pub(crate) fn report(&self) -> impl Report {
        ErrorReport { exit: self.exit() as u8, error: self }
    }
}

#[derive(Serialize)]
struct ErrorReport<'a> {
    exit: u8,
    error: &'a Failure,
}

impl Report for ErrorReport<'_> {
    const SCHEMA: &'static str = "apr.error/1";
}

/// As the object `error` of `docs/cli.md`.
impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            code: &'a str,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            file: Option<Cow<'a, str>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tensor: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            key: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            offset: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            line: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            row: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            column: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            column_name: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            why: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            help: Option<Cow<'a, str>>,
        }
        let details = &*self.0;
        let place = details.place.as_ref();
        let fields = Fields {
            code: details.code,
            message: &details.what,
            file: details.file.as_deref().map(report::path),
            tensor: details.tensor.as_deref(),
            key: details.key.as_deref(),
            offset: details.offset,
            line: place.and_then(|place| place.line),
            row: place.and_then(|place| place.row),
            column: place.and_then(|place| place.column),
            column_name: place.and_then(|place| place.name.as_deref()),
            why: details.why.as_deref(),
            help: self.advice(),
        };
        fields.serialize(serializer)
    }
}

/// For work inside a writer; the failure is found again by `downcast`.
impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        Self::other(failure)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.0.code, Visible(&self.0.what))
    }
}

impl Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_doubted_only_if_it_was_not_found() {
        let advice = |kind: io::ErrorKind| {
            let failure = Failure::io("write the file", Path::new("not/there"), &kind.into());
            assert!(failure.what().starts_with("cannot write the file: "), "{failure}");
            failure.advice().unwrap().into_owned()
        };
        assert!(advice(io::ErrorKind::NotFound).contains("there is no folder not"));
        assert!(advice(io::ErrorKind::PermissionDenied).contains("its permissions"));
    }
}
