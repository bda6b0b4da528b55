//! Kinds of errors, with the file concerned.

use core::fmt;

use std::io;

use located_error::{Subject, cut};

const AGAIN: &str = "get the signature from the signer of the model again";
const BY_HAND: &str = "put regular files in its place, or leave it out (`apr sign --ignore NAME`)";

located_error::errors! {
    /// Why a signature was refused or not made, with the file concerned where there is one.
    pub struct Error, with path;

    /// What was wrong.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// A file or folder could not be read.
        Io {
            /// What was tried.
            operation: &'static str,
            /// The system's reason.
            error: io::Error,
        } = "mf-io" (Io) from error,
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
            /// In what they differ.
            differences: Differences,
        } = "mf-differs" (Verification) from differences,
            "the files differ from the signed ones: {} changed, {} missing, {} not on the list",
            differences.n_changed, differences.n_missing, differences.n_extra
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

impl Error {
    /// In what the files differ from the list; empty unless the kind is [`ErrorKind::Differs`].
    #[must_use]
    pub fn differences(&self) -> &Differences {
        match self.kind() {
            ErrorKind::Differs { differences } => differences,
            _ => const { &Differences::NONE },
        }
    }

    pub(crate) fn of_name(self, name: &str) -> Self {
        self.of(Subject::entry(name))
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
    const SHOWN: usize = 10;
    const NONE: Self = Self {
        missing: Vec::new(),
        extra: Vec::new(),
        changed: Vec::new(),
        n_missing: 0,
        n_extra: 0,
        n_changed: 0,
    };

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

/// The first names of each kind: `changed: a, b; missing: c`.
impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("changed", &self.changed, self.n_changed),
            ("missing", &self.missing, self.n_missing),
            ("not on the list", &self.extra, self.n_extra),
        ];
        let mut separator = "";
        for (label, names, count) in lists.into_iter().filter(|(_, names, _)| !names.is_empty()) {
            write!(f, "{separator}{label}: ")?;
            separator = "; ";
            for (idx, name) in names.iter().take(Self::SHOWN).enumerate() {
                // `Debug` escapes control characters of a malicious name.
                write!(f, "{}{:?}", if idx == 0 { "" } else { ", " }, cut(name, 100))?;
            }
            if count > Self::SHOWN {
                write!(f, " and {} more", count - Self::SHOWN)?;
            }
        }
        Ok(())
    }
}

impl core::error::Error for Differences {}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_table_of_kinds_is_in_order() {
        let problems = located_error::problems(ErrorKind::TABLE, "mf-");
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn names_and_files_are_shown_escaped() {
        let error = Error::from(ErrorKind::Symlink).of_name("a\n").in_file(Path::new("b\u{1b}"));
        assert_eq!(
            error.to_string(),
            "b\\u{1b}: a symbolic link: what it points to is not part of the folder, entry \"a\\n\""
        );
        assert_eq!(
            (error.subject().map(Subject::name), error.path()),
            (Some("a\n"), Some(Path::new("b\u{1b}")))
        );
        // The innermost location is kept.
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
        let error = Error::from(ErrorKind::Io { operation: "read", error: io::ErrorKind::Other.into() });
        assert!(core::error::Error::source(&error).is_some());
    }

    #[test]
    fn long_lists_of_differences_are_cut() {
        let mut differences = Differences::default();
        (0..1500).for_each(|idx| differences.add_extra(&idx.to_string()));
        assert_eq!((differences.extra().len(), differences.is_empty()), (1000, false));
        let error = Error::from(ErrorKind::Differs { differences });
        assert!(error.to_string().ends_with(": 0 changed, 0 missing, 1500 not on the list"), "{error}");
        let listed = core::error::Error::source(&error).map(ToString::to_string);
        assert!(
            listed.is_some_and(|text| text.starts_with("not on the list: \"0\", ")
                && text.ends_with(", \"9\" and 1490 more"))
        );
        assert_eq!(error.differences().extra()[999], "999");
    }
}
