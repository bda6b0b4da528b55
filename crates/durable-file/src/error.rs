//! Kinds of errors, and the file concerned.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use located_error::{Entry, Located, Location, remedy};

const SPACE: &str = "check permissions and free space, then repeat: the old file is as it was";

/// Why a file could not be opened, read or replaced.
///
/// ```
/// use durable_file::{ErrorKind, FileKind, open_regular};
///
/// let error = open_regular(&std::env::temp_dir(), 1024).expect_err("a directory");
/// assert_eq!(error.kind(), ErrorKind::NotRegular { what: FileKind::Directory });
/// assert_eq!(error.code(), "df-not-regular");
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    path: PathBuf,
    source: Option<io::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, path: &Path) -> Self {
        Self { kind, path: path.to_path_buf(), source: None }
    }

    pub(crate) fn io(operation: Operation, path: &Path, source: io::Error) -> Self {
        Self { kind: ErrorKind::Io { operation }, path: path.to_path_buf(), source: Some(source) }
    }

    pub(crate) fn unconfirmed(path: &Path, source: io::Error) -> Self {
        Self { kind: ErrorKind::Unconfirmed, path: path.to_path_buf(), source: Some(source) }
    }

    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file or folder in question, as the caller named it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The operating system's answer, where there is one.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        self.source.as_ref()
    }

    /// A stable name of the kind, one of [`ErrorKind::CODES`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.kind {
            ErrorKind::NotRegular { what } => {
                write!(f, "{path} is {what}, not a regular file: name a regular file")
            }
            ErrorKind::TooLarge { len, max } => {
                write!(f, "{path} has at least {len} bytes, the limit is {max}")
            }
            ErrorKind::Changed { expected, found } => write!(
                f,
                "{path} had {expected} bytes when it was opened and {found} while it was read: \
                 wait until its writer is done and try again"
            ),
            ErrorKind::OutOfMemory { len } => write!(f, "no memory for the {len} bytes of {path}"),
            ErrorKind::Exists => write!(f, "{path} exists: choose another name or remove it first"),
            ErrorKind::ReservedName => {
                write!(f, "{path} has the form of our temporary names: choose another name")
            }
            ErrorKind::NoFileName => write!(f, "{path:?} has no file name: add one", path = self.path),
            ErrorKind::SymlinkLoop => write!(f, "the symbolic links at {path} form a loop"),
            ErrorKind::Incomplete => {
                write!(f, "a write for {path} failed, the old file stays: write the content again")
            }
            ErrorKind::Unconfirmed => write!(
                f,
                "{path} has its new content, but a power cut may bring the old one back: save again"
            ),
            ErrorKind::ListedName { problem } => write!(f, "{path} is refused: {problem}"),
            ErrorKind::NotFolder { what } => write!(f, "{path} is {what}, not a folder"),
            ErrorKind::Io { operation } => {
                write!(f, "cannot {operation} {path}{}", advice(operation, self.source.as_ref()))
            }
        }
    }
}

/// What to do next, where the answer of the operating system allows a guess.
fn advice(operation: Operation, source: Option<&io::Error>) -> &'static str {
    match source.map(io::Error::kind) {
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            ", the disk or quota is full: free some space and save again"
        }
        Some(io::ErrorKind::FileTooLarge) => ", a size limit is reached: raise it (ulimit -f) and save again",
        Some(io::ErrorKind::ReadOnlyFilesystem) => ": choose a folder that can be written",
        Some(io::ErrorKind::NotFound) => ": not found, check the path",
        Some(io::ErrorKind::PermissionDenied) if operation == Operation::CreateTemp => {
            ": saving needs the right to create files in its folder"
        }
        Some(io::ErrorKind::PermissionDenied) => ": check the permissions",
        _ => "",
    }
}

impl Located for Error {
    fn code(&self) -> &'static str {
        self.kind.code()
    }

    fn message(&self) -> &dyn fmt::Display {
        &self.kind
    }

    fn location(&self) -> Location<'_> {
        let mut location = Location::default();
        location.path = Some(&self.path);
        location
    }

    fn entry(&self) -> Option<&'static Entry> {
        self.kind.entry()
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// Keeps the operating system's kind where there is one; the whole [`Error`] is inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match (&error.source, error.kind) {
            (Some(source), _) => source.kind(),
            (None, ErrorKind::Exists) => io::ErrorKind::AlreadyExists,
            (None, ErrorKind::OutOfMemory { .. }) => io::ErrorKind::OutOfMemory,
            (None, ErrorKind::TooLarge { .. }) => io::ErrorKind::FileTooLarge,
            (None, _) => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

located_error::kinds! {
    /// What was wrong.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// A model has to be a regular file. This is a folder, a pipe, a socket or a device; reading one of these could wait for ever
        /// or never end.
        NotRegular {
            /// What it is.
            what: FileKind,
        } = "df-not-regular" (Invalid),
            "this is {what}, not a regular file"
            => "name a regular file; to read from a pipe, use `-` as the input";
        /// The file is larger than anything of its kind is, so it is not read into memory.
        TooLarge {
            /// Its length in bytes; for a file that does not know its length, what was read before giving up.
            len: u64,
            /// The caller's limit.
            max: u64,
        } = "df-too-large" (Invalid),
            "file too large: at least {len} bytes, the limit is {max}"
            => "check that this is the right file";
        /// The file changed its length while it was being read.
        Changed {
            /// Bytes when it was opened.
            expected: u64,
            /// Bytes that were read; for a file that grew, one more than expected.
            found: u64,
        } = "df-changed" (Io),
            "the file had {expected} bytes when it was opened and {found} while it was read"
            => remedy::QUIET;
        /// There is no memory for the content of the file.
        OutOfMemory {
            /// Bytes needed.
            len: u64,
        } = "df-out-of-memory" (Io),
            "no memory for {len} bytes"
            => remedy::MEMORY;
        /// The output is there already, or appeared while it was being written. Nothing is overwritten unless you say so.
        Exists = "df-exists" (Usage),
            "the output exists"
            => "choose another name, or add --force to replace it";
        /// The name has the form of the temporary files that a save makes beside its target, and a later save might remove such a
        /// file.
        ReservedName = "df-reserved-name" (Usage),
            "the name has the form of a temporary name"
            => "choose another name";
        /// The path ends in no file name: `/`, `..` or a trailing slash.
        NoFileName = "df-no-file-name" (Usage),
            "the path has no file name"
            => "add a file name";
        /// The symbolic links at this path form a loop.
        SymlinkLoop = "df-symlink-loop" (Io),
            "the symbolic links form a loop"
            => "name the file itself";
        /// An earlier write of the new content failed, so it is not whole and does not take the place of the old file.
        Incomplete = "df-incomplete" (Io),
            "an earlier write failed, the old file is unchanged"
            => SPACE;
        /// The new content is in place, but the system could not confirm that the folder has reached the disk: after a power cut the
        /// old file may be back.
        Unconfirmed = "df-unconfirmed" (Io),
            "the new content is in place, but a power failure may restore the old file"
            => "save again, and check the health of the disk";
        /// A name in a list of files that someone else wrote is refused, before a file is written: other programs would take what it names for
        /// theirs (`.git`, in any spelling), or the names are not those of a tree of files.
        ListedName {
            /// The rule that it breaks.
            problem: &'static str,
        } = "df-listed-name" (Invalid),
            "the name of a listed file is refused: {problem}"
            => "if you trust the rest, leave this one out with --exclude";
        /// Files are written into folders only. A symbolic link to one is not followed, so that a file stays in the folder that was named.
        NotFolder {
            /// Kind of the file, with its article.
            what: &'static str,
        } = "df-not-folder" (Usage),
            "a folder is needed here, and this is {what}"
            => "remove it, or choose another folder for the output";
        /// The operating system refused to open, read, write or rename a file: it does not exist, permission is missing, or the disk
        /// is full or faulty. If a file was to be replaced, the old one is as it was.
        Io {
            /// What was asked of it.
            operation: Operation,
        } = "df-io" (Io),
            "cannot {operation} the file"
            => remedy::PATH;
    }
}

/// What is where a regular file must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A symbolic link (only where links are not followed).
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device, such as a terminal or `/dev/zero`.
    CharDevice,
    /// A block device, such as a disk.
    BlockDevice,
    /// Something that this crate has no name for.
    Other,
}

impl FileKind {
    /// With its article: `a directory`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Directory => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Fifo => "a named pipe",
            Self::Socket => "a socket",
            Self::CharDevice => "a character device",
            Self::BlockDevice => "a block device",
            Self::Other => "a special file",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What was asked of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Find out what a name leads to.
    Inspect,
    /// Open a file.
    Open,
    /// Read a file.
    Read,
    /// Open or list a folder.
    OpenFolder,
    /// Create the temp beside the target.
    CreateTemp,
    /// Write new content.
    Write,
    /// Give the new file the old one's owner and mode.
    SetAccess,
    /// Bring a file to the medium.
    SyncFile,
    /// Put the new file or folder in place.
    Rename,
    /// Bring a folder to the medium.
    SyncFolder,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inspect => "inspect",
            Self::Open => "open",
            Self::Read => "read",
            Self::OpenFolder => "open the folder of",
            Self::CreateTemp => "create a temporary file for",
            Self::Write => "write",
            Self::SetAccess => "set owner and mode of",
            Self::SyncFile => "sync",
            Self::Rename => "put in place",
            Self::SyncFolder => "sync the folder of",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ErrorKind; 13] = [
        ErrorKind::NotRegular { what: FileKind::Fifo },
        ErrorKind::TooLarge { len: 5, max: 4 },
        ErrorKind::Changed { expected: 7, found: 8 },
        ErrorKind::OutOfMemory { len: 9 },
        ErrorKind::Exists,
        ErrorKind::ReservedName,
        ErrorKind::NoFileName,
        ErrorKind::SymlinkLoop,
        ErrorKind::Incomplete,
        ErrorKind::Unconfirmed,
        ErrorKind::ListedName { problem: "it occurs twice" },
        ErrorKind::NotFolder { what: "a symbolic link" },
        ErrorKind::Io { operation: Operation::Open },
    ];

    #[test]
    fn every_kind_has_its_own_code_and_a_line_with_the_path() {
        assert_eq!(KINDS.each_ref().map(ErrorKind::code), ErrorKind::CODES);
        let problems = located_error::problems(ErrorKind::TABLE, "df-");
        assert!(problems.is_empty(), "{problems:?}");
        for kind in KINDS {
            let error = Error::new(kind, Path::new("m.bin"));
            let text = error.to_string();
            assert!(text.contains("m.bin") && !text.contains('\n') && !text.ends_with('.'), "{text}");
        }
    }

    #[test]
    fn every_word_for_a_kind_of_file_and_an_operation_is_distinct() {
        use FileKind::{BlockDevice, CharDevice, Directory, Fifo, Other, Socket, Symlink};
        let mut kinds: Vec<_> =
            [Directory, Symlink, Fifo, Socket, CharDevice, BlockDevice, Other].map(|k| k.to_string()).into();
        use Operation::{
            CreateTemp, Inspect, Open, OpenFolder, Read, Rename, SetAccess, SyncFile, SyncFolder, Write,
        };
        kinds.extend(
            [Inspect, Open, Read, OpenFolder, CreateTemp, Write, SetAccess, SyncFile, Rename, SyncFolder]
                .map(|o| o.to_string()),
        );
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), 17);
    }

    #[test]
    fn advice_follows_the_answer_of_the_operating_system() {
        let advised =
            |operation, kind| Error::io(operation, Path::new("m"), io::Error::from(kind)).to_string();
        assert!(advised(Operation::Write, io::ErrorKind::StorageFull).contains("free some space"));
        assert!(advised(Operation::Write, io::ErrorKind::FileTooLarge).contains("ulimit"));
        assert!(
            advised(Operation::CreateTemp, io::ErrorKind::ReadOnlyFilesystem).contains("choose a folder")
        );
        assert!(advised(Operation::CreateTemp, io::ErrorKind::PermissionDenied).contains("create files"));
        assert!(advised(Operation::Open, io::ErrorKind::PermissionDenied).contains("check the permissions"));
        assert!(advised(Operation::Open, io::ErrorKind::NotFound).contains("check the path"));
        assert_eq!(advised(Operation::Open, io::ErrorKind::Interrupted), "cannot open m");
    }

    #[test]
    fn as_an_io_error_it_keeps_the_kind_and_itself() {
        let of = |kind| io::Error::from(Error::new(kind, Path::new("m"))).kind();
        assert_eq!(of(ErrorKind::Exists), io::ErrorKind::AlreadyExists);
        assert_eq!(of(ErrorKind::OutOfMemory { len: 1 }), io::ErrorKind::OutOfMemory);
        assert_eq!(of(ErrorKind::TooLarge { len: 1, max: 0 }), io::ErrorKind::FileTooLarge);
        assert_eq!(of(ErrorKind::NoFileName), io::ErrorKind::InvalidInput);
        let full = Error::unconfirmed(Path::new("m"), io::ErrorKind::StorageFull.into());
        let outer = io::Error::from(full);
        assert_eq!(outer.kind(), io::ErrorKind::StorageFull);
        let inner = outer.get_ref().and_then(|e| e.downcast_ref::<Error>()).expect("the error is inside");
        assert_eq!(inner.kind(), ErrorKind::Unconfirmed);
        assert!(core::error::Error::source(inner).is_some());
    }
}
