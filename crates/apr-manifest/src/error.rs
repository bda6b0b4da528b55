//! What can be wrong with a signature, a list, or the files it speaks of.

use core::fmt;
use std::path::{Path, PathBuf};

/// Why a signature was refused or not made, with the file concerned where there is one.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    path: Option<PathBuf>,
    name: Option<String>,
    differences: Differences,
    source: Option<Box<dyn core::error::Error + Send + Sync>>,
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Stable identifier: the wrapped error's own, or one of [`ErrorKind::CODES`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// The file or folder concerned.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.0.kind {
            ErrorKind::File(error) => Some(error.path()),
            ErrorKind::Crypto(error) => error.path().map(Path::new).or(self.0.path.as_deref()),
            _ => self.0.path.as_deref(),
        }
    }

    /// The name concerned, as the list or the folder spells it. Escape it before showing it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// In what the files differ from the list; empty unless the kind is [`ErrorKind::Differs`].
    #[must_use]
    pub fn differences(&self) -> &Differences {
        &self.0.differences
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    pub(crate) fn of_name(mut self, name: &str) -> Self {
        self.0.name.get_or_insert_with(|| name.to_owned());
        self
    }

    pub(crate) fn caused_by(mut self, source: impl core::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner {
            kind,
            path: None,
            name: None,
            differences: Differences::default(),
            source: None,
        }))
    }
}

impl From<Differences> for Error {
    fn from(differences: Differences) -> Self {
        let (missing, extra, changed) =
            (differences.n_missing as u64, differences.n_extra as u64, differences.n_changed as u64);
        let mut error = Self::from(ErrorKind::Differs { changed, missing, extra });
        error.0.differences = differences;
        error
    }
}

impl From<apr_crypto::Error> for Error {
    fn from(error: apr_crypto::Error) -> Self {
        ErrorKind::Crypto(error).into()
    }
}

impl From<durable_file::Error> for Error {
    fn from(error: durable_file::Error) -> Self {
        ErrorKind::File(error).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)?;
        // `Debug` escapes what a hostile name would do to a terminal.
        if let Some(name) = &self.0.name {
            write!(f, ", name {name:?}")?;
        }
        match (&self.0.path, &self.0.kind) {
            (None, _) | (_, ErrorKind::File(_)) => Ok(()),
            (_, ErrorKind::Crypto(error)) if error.path().is_some() => Ok(()),
            (Some(path), _) => write!(f, ", file {path:?}"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.0.kind {
            // The text of a wrapped error is part of this one's; what comes next is its own source.
            ErrorKind::Crypto(error) => error.source(),
            ErrorKind::File(error) => error.source(),
            _ => self.0.source.as_deref().map(|source| source as _),
        }
    }
}

/// In what a folder differs from its list. Counts are of all; of the names, the first 1,000 of each kind are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    missing: Vec<String>,
    extra: Vec<String>,
    changed: Vec<String>,
    n_missing: usize,
    n_extra: usize,
    n_changed: usize,
}

impl Differences {
    const MAX_NAMES: usize = 1000;

    /// Files on the list that are not there.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Files that are there and not on the list.
    #[must_use]
    pub fn extra(&self) -> &[String] {
        &self.extra
    }

    /// Files with another content than the listed one.
    #[must_use]
    pub fn changed(&self) -> &[String] {
        &self.changed
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_missing + self.n_extra + self.n_changed == 0
    }

    pub(crate) fn add_missing(&mut self, name: &str) {
        Self::add(&mut self.missing, &mut self.n_missing, name);
    }

    pub(crate) fn add_extra(&mut self, name: &str) {
        Self::add(&mut self.extra, &mut self.n_extra, name);
    }

    pub(crate) fn add_changed(&mut self, name: &str) {
        Self::add(&mut self.changed, &mut self.n_changed, name);
    }

    fn add(names: &mut Vec<String>, count: &mut usize, name: &str) {
        *count += 1;
        if names.len() < Self::MAX_NAMES {
            names.push(name.to_owned());
        }
    }
}

/// What was wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A key or a signature.
    Crypto(apr_crypto::Error),
    /// A file could not be opened, read as a whole, or replaced.
    File(durable_file::Error),
    /// The operating system refused.
    Io {
        /// What was tried.
        operation: &'static str,
    },
    /// Text that is not the JSON it should be.
    Json {
        /// `the bundle` or `the statement in it`.
        what: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// A bundle that is none, or contradicts itself.
    Bundle {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A bundle of a kind that is not verified here.
    Unsupported {
        /// What it uses.
        what: &'static str,
    },
    /// A signed statement that is no list of files, or contradicts itself.
    Statement {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A name that is not a plain relative path.
    Name,
    /// The digest over all entries is not that of the entries.
    Root,
    /// The bundle names another key than the one at hand.
    OtherKey,
    /// More than the limit allows.
    Limit {
        /// Of what.
        what: &'static str,
        /// How much there is.
        found: u64,
        /// How much is allowed.
        limit: u64,
    },
    /// Files that are not the listed ones. [`Error::differences`] names them.
    Differs {
        /// Files with another content.
        changed: u64,
        /// Files that are not there.
        missing: u64,
        /// Files that are not on the list.
        extra: u64,
    },
    /// A symbolic link inside the folder.
    Symlink,
    /// Something that is neither file nor folder.
    NotRegular,
    /// A file name that no list can hold.
    NotUtf8,
    /// A folder without a file.
    Empty,
    /// A file that changed while it was being read.
    Unstable,
}

impl ErrorKind {
    /// Every identifier [`Error::code`] can return besides those of the wrapped errors.
    pub const CODES: &'static [&'static str] = &[
        "mf-io",
        "mf-json",
        "mf-bundle",
        "mf-unsupported",
        "mf-statement",
        "mf-name",
        "mf-root",
        "mf-key",
        "mf-limit",
        "mf-differs",
        "mf-symlink",
        "mf-not-regular",
        "mf-not-utf8",
        "mf-empty",
        "mf-unstable",
    ];

    /// Stable identifier of the kind.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Crypto(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Io { .. } => "mf-io",
            Self::Json { .. } => "mf-json",
            Self::Bundle { .. } => "mf-bundle",
            Self::Unsupported { .. } => "mf-unsupported",
            Self::Statement { .. } => "mf-statement",
            Self::Name => "mf-name",
            Self::Root => "mf-root",
            Self::OtherKey => "mf-key",
            Self::Limit { .. } => "mf-limit",
            Self::Differs { .. } => "mf-differs",
            Self::Symlink => "mf-symlink",
            Self::NotRegular => "mf-not-regular",
            Self::NotUtf8 => "mf-not-utf8",
            Self::Empty => "mf-empty",
            Self::Unstable => "mf-unstable",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crypto(error) => error.fmt(f),
            Self::File(error) => error.fmt(f),
            Self::Io { operation } => write!(f, "cannot {operation}"),
            Self::Json { what, line, column } => {
                write!(f, "{what} is not the JSON it should be, at line {line} column {column}")
            }
            Self::Bundle { what } => write!(f, "not a model signature: {what}"),
            Self::Unsupported { what } => write!(f, "a model signature that is not verified here: {what}"),
            Self::Statement { what } => write!(f, "the signed statement is no list of files: {what}"),
            Self::Name => f.write_str("a name on the list is not a plain relative path"),
            Self::Root => f.write_str("the digest over the list is not that of its entries"),
            Self::OtherKey => f.write_str("the signature names another key than this one"),
            Self::Limit { what, found, limit } => write!(f, "{found} {what}, the limit is {limit}"),
            Self::Differs { changed, missing, extra } => write!(
                f,
                "the files are not the signed ones: {changed} changed, {missing} missing, {extra} not on the list"
            ),
            Self::Symlink => f.write_str("a symbolic link: what it points to is not part of the folder"),
            Self::NotRegular => f.write_str("neither a file nor a folder"),
            Self::NotUtf8 => f.write_str("the file's name is not UTF-8, no list can hold it"),
            Self::Empty => f.write_str("the folder holds no file to sign"),
            Self::Unstable => f.write_str("the file changed while it was being read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_code_and_a_text() {
        use ErrorKind::*;
        let what = "x";
        let kinds = [
            Io { operation: "read" },
            Json { what, line: 1, column: 2 },
            Bundle { what },
            Unsupported { what },
            Statement { what },
            Name,
            Root,
            OtherKey,
            Limit { what: "files", found: 2, limit: 1 },
            Differs { changed: 1, missing: 2, extra: 3 },
            Symlink,
            NotRegular,
            NotUtf8,
            Empty,
            Unstable,
        ];
        assert!(kinds.iter().map(ErrorKind::code).eq(ErrorKind::CODES.iter().copied()));
        for kind in kinds {
            let text = kind.to_string();
            assert!(text.len() > 8 && !text.ends_with('.') && !text.contains('\n'), "{text}");
            assert_eq!(text, Error::from(kind).to_string());
        }
        for (idx, code) in ErrorKind::CODES.iter().enumerate() {
            assert!(code.starts_with("mf-") && !ErrorKind::CODES[..idx].contains(code), "{code}");
        }
    }

    #[test]
    fn names_and_files_are_shown_escaped() {
        let error = Error::from(ErrorKind::Symlink).of_name("a\n").in_file(Path::new("b\u{1b}"));
        assert!(error.to_string().ends_with(", name \"a\\n\", file \"b\\u{1b}\""), "{error}");
        assert_eq!((error.name(), error.path()), (Some("a\n"), Some(Path::new("b\u{1b}"))));
        // The innermost place is the one that helps.
        let error = error.of_name("c").in_file(Path::new("d"));
        assert_eq!((error.name(), error.path()), (Some("a\n"), Some(Path::new("b\u{1b}"))));
    }

    #[test]
    fn wrapped_errors_keep_code_path_and_source() {
        let inner = apr_crypto::Error::wrap(apr_crypto::ErrorKind::Source, fmt::Error);
        let error = Error::from(inner).in_file(Path::new("x"));
        assert_eq!((error.code(), error.path()), ("cy-source", Some(Path::new("x"))));
        assert!(core::error::Error::source(&error).is_some());
        let missing = Path::new("apr-manifest-no-such-file");
        let inner = durable_file::read(missing, 1).unwrap_err();
        let (code, text) = (inner.code(), inner.to_string());
        let error = Error::from(inner).in_file(Path::new("x"));
        assert_eq!((error.code(), error.path(), error.to_string()), (code, Some(missing), text));
        assert!(core::error::Error::source(&error).is_some());
        let error = Error::from(ErrorKind::Empty).caused_by(fmt::Error);
        assert!(core::error::Error::source(&error).is_some());
    }

    #[test]
    fn long_lists_of_differences_are_cut() {
        let mut differences = Differences::default();
        (0..1500).for_each(|idx| differences.add_extra(&idx.to_string()));
        assert_eq!((differences.extra().len(), differences.is_empty()), (1000, false));
        let error = Error::from(differences);
        assert!(matches!(error.kind(), ErrorKind::Differs { changed: 0, missing: 0, extra: 1500 }));
        assert_eq!(error.differences().extra()[999], "999");
    }
}
