//! Kinds of errors, with the file concerned.

use core::fmt;
use std::path::{Path, PathBuf};

use located_error::{Entry, Located, Location, Subject};

const AGAIN: &str = "get the signature from the signer of the model again";
const BY_HAND: &str = "put regular files in its place, or leave it out (`apr sign --ignore NAME`)";

/// Why a signature was refused or not made, with the file concerned where there is one.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    path: Option<PathBuf>,
    subject: Option<Subject>,
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
            ErrorKind::Crypto(error) => error.path().or(self.0.path.as_deref()),
            _ => self.0.path.as_deref(),
        }
    }

    /// The entry concerned, as the list or the folder names it.
    #[must_use]
    pub const fn subject(&self) -> Option<&Subject> {
        self.0.subject.as_ref()
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
        self.0.subject.get_or_insert_with(|| Subject::entry(name));
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
            subject: None,
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
        if let Some(subject) = &self.0.subject {
            write!(f, ", {subject}")?;
        }
        match (&self.0.path, &self.0.kind) {
            (None, _) | (_, ErrorKind::File(_)) => Ok(()),
            (_, ErrorKind::Crypto(error)) if error.path().is_some() => Ok(()),
            // `Debug` escapes control characters of a malicious name.
            (Some(path), _) => write!(f, ", file {path:?}"),
        }
    }
}

impl Located for Error {
    fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    fn message(&self) -> &dyn fmt::Display {
        self.0.kind.message()
    }

    fn location(&self) -> Location<'_> {
        let mut location = self.0.kind.inner_location();
        location.subject = self.subject();
        location.path = self.path();
        location
    }

    fn entry(&self) -> Option<&'static Entry> {
        self.0.kind.entry()
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.0.kind {
            // The text of a wrapped error is part of this one's; what comes next is its own source.
            kind @ (ErrorKind::Crypto(_) | ErrorKind::File(_)) => kind.inner_source(),
            _ => self.0.source.as_deref().map(|source| source as _),
        }
    }
}

/// How a folder differs from its list. Counts are of all; of the names, the first 1,000 of each kind are kept.
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

    /// Listed files that are missing.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Files that are not on the list.
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

located_error::kinds! {
    /// What was wrong.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// A file or folder could not be read.
        Io {
            /// What was tried.
            operation: &'static str,
        } = "mf-io" (Io),
            "cannot {operation}"
            => "see the reason above";
        /// A model signature, or the list in it, is not the JSON it should be: it was cut off, changed, or is another kind of file.
        Json {
            /// `the bundle` or `the statement in it`.
            what: &'static str,
            /// Line, from 1.
            line: usize,
            /// Column, from 1.
            column: usize,
        } = "mf-json" (Verification),
            "invalid JSON in {what}, at line {line} column {column}"
            => AGAIN;
        /// The file is JSON and no model signature: a part is missing, there twice, or of another kind.
        Bundle {
            /// What is wrong with it.
            what: &'static str,
        } = "mf-bundle" (Verification),
            "not a model signature: {what}"
            => AGAIN;
        /// The model signature is of a kind that is not checked here: with a certificate or from Sigstore's service, of an older
        /// version, or with another hash.
        Unsupported {
            /// What it uses.
            what: &'static str,
        } = "mf-unsupported" (Unsupported),
            "unsupported model signature: {what}"
            => "check it with the program that made it, or ask for one with a P-256 key";
        /// The signature is right and what was signed contradicts itself: it is no list of files, an entry is there twice or out of
        /// order, or shards do not cover their file. Such a list covers less than it appears to.
        Statement {
            /// What is wrong with it.
            what: &'static str,
        } = "mf-statement" (Verification),
            "the signed statement is not a list of files: {what}"
            => "ask the signer of the model for another signature";
        /// A name is not a plain relative path: it is absolute, or has a part that is empty, `.` or `..`.
        Name = "mf-name" (Verification),
            "a name on the list is not a plain relative path"
            => "name files below the folder, with `/` between folders";
        /// The digest over the whole list is not that of its entries.
        Root = "mf-root" (Verification),
            "the digest over the list does not match its entries"
            => "ask the signer of the model for another signature";
        /// The model signature names another key than the one it was to be checked with.
        OtherKey = "mf-key" (Verification),
            "the signature names another key"
            => "get the public key of the signer over a channel that you trust";
        /// There is more than a signature may speak of: 1,000,000 files or entries, 64 MiB of list.
        Limit {
            /// Of what.
            what: &'static str,
            /// How much there is.
            found: u64,
            /// How much is allowed.
            limit: u64,
        } = "mf-limit" (Invalid),
            "{found} {what}, the limit is {limit}"
            => "sign fewer files, or in larger shards (`apr sign --shard-size`)";
        /// The files are not the signed ones: some were changed, are missing, or are there and not on the list. An added file can do
        /// harm as much as a changed one.
        Differs {
            /// Files with another content.
            changed: u64,
            /// Files that are not there.
            missing: u64,
            /// Files that are not on the list.
            extra: u64,
        } = "mf-differs" (Verification),
            "the files differ from the signed ones: {changed} changed, {missing} missing, {extra} not on the list"
            => "fetch the model again; take away files that do not belong to it";
        /// There is a symbolic link in the folder. What it points to can change without the folder, so no signature of the folder
        /// covers it.
        Symlink = "mf-symlink" (Verification),
            "a symbolic link: what it points to is not part of the folder"
            => BY_HAND;
        /// There is something in the folder that is neither a file nor a folder: a pipe, a socket or a device.
        NotRegular = "mf-not-regular" (Verification),
            "not a file or a folder"
            => BY_HAND;
        /// A file's name is not UTF-8, so no list can hold it.
        NotUtf8 = "mf-not-utf8" (Invalid),
            "the file name is not valid UTF-8"
            => "rename the file";
        /// The folder holds no file that could be signed.
        Empty = "mf-empty" (Invalid),
            "the folder has no file to sign"
            => "look whether it is the right folder";
        /// The length of a file changed while it was being read.
        Unstable = "mf-unstable" (Io),
            "the file changed while it was being read"
            => "make sure that no other program writes there, and try again";
    }

    wrapped {
        /// A key or a signature.
        Crypto(apr_crypto::Error);
        /// A file could not be opened, read as a whole, or replaced.
        File(durable_file::Error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_kinds_is_in_order() {
        let problems = located_error::problems(ErrorKind::TABLE, "mf-");
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn names_and_files_are_shown_escaped() {
        let error = Error::from(ErrorKind::Symlink).of_name("a\n").in_file(Path::new("b\u{1b}"));
        assert!(error.to_string().ends_with(", entry \"a\\n\", file \"b\\u{1b}\""), "{error}");
        assert_eq!(
            (error.subject().map(Subject::name), error.path()),
            (Some("a\n"), Some(Path::new("b\u{1b}")))
        );
        // The innermost place is the one that helps.
        let error = error.of_name("c").in_file(Path::new("d"));
        assert_eq!(
            (error.subject().map(Subject::name), error.path()),
            (Some("a\n"), Some(Path::new("b\u{1b}")))
        );
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
