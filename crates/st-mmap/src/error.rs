//! What can go wrong with a file, and which one.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use st_core::ShardProblem;

/// Why an operation was refused, with the file and the tensor concerned where there is one.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    path: Option<PathBuf>,
    tensor: Option<String>,
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The file or folder concerned.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.0.kind {
            ErrorKind::File(error) => Some(error.path()),
            _ => self.0.path.as_deref(),
        }
    }

    /// Name of the tensor concerned.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        match &self.0.kind {
            ErrorKind::Format(error) => {
                error.subject().map(st_core::Subject::name).or(self.0.tensor.as_deref())
            }
            _ => self.0.tensor.as_deref(),
        }
    }

    /// Byte offset of the problem in the file, if it has one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match &self.0.kind {
            ErrorKind::Format(error) => error.offset(),
            _ => None,
        }
    }

    /// Stable identifier: the wrapped error's own, or one of [`ErrorKind::CODES`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// Whether the cause is that a file or folder does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// The system's error, if that is the cause.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match &self.0.kind {
            ErrorKind::File(error) => error.io_error(),
            ErrorKind::Io { error, .. } => Some(error),
            _ => None,
        }
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    pub(crate) fn of_tensor(mut self, name: &str) -> Self {
        self.0.tensor.get_or_insert_with(|| name.to_owned());
        self
    }
}

impl ErrorKind {
    pub(crate) fn at(self, path: &Path) -> Error {
        Error::from(self).in_file(path)
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, path: None, tensor: None }))
    }
}

impl From<st_core::Error> for Error {
    fn from(error: st_core::Error) -> Self {
        ErrorKind::Format(error).into()
    }
}

impl From<durable_file::Error> for Error {
    fn from(error: durable_file::Error) -> Self {
        ErrorKind::File(error).into()
    }
}

/// For use inside writers and readers; the whole [`Error`] is inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.io_error().map_or(io::ErrorKind::InvalidData, io::Error::kind), error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, path, tensor } = &*self.0;
        // durable-file names the path itself.
        if let (Some(path), false) = (path, matches!(kind, ErrorKind::File(_))) {
            write!(f, "{}: ", path.display())?;
        }
        kind.fmt(f)?;
        match (kind, tensor) {
            (ErrorKind::Format(error), _) if error.subject().is_some() => Ok(()),
            (_, Some(tensor)) => write!(f, ", tensor {tensor:?}"),
            (_, None) => Ok(()),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        // The text of a wrapped error is part of this one's; what comes next is its own source.
        match &self.0.kind {
            ErrorKind::Format(error) => error.source(),
            ErrorKind::File(error) => error.source(),
            ErrorKind::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// What was wrong. Quantities are bytes unless the field says otherwise.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are not a valid safetensors file or shard index, or the request does not fit them.
    Format(st_core::Error),
    /// Opening, replacing or flushing a file.
    File(durable_file::Error),
    /// The system refused an operation on an open file.
    Io {
        /// The operation.
        operation: &'static str,
        /// The system's reason.
        error: io::Error,
    },
    /// The file became shorter after it was opened.
    Shrunk {
        /// Its length when it was opened.
        expected: u64,
    },
    /// The file is larger than this machine can address.
    AddressSpace {
        /// Its length.
        len: u64,
    },
    /// No memory for a buffer.
    OutOfMemory {
        /// Bytes asked for.
        needed: u64,
    },
    /// The data does not fit the limit of the [`Arena`](crate::Arena).
    ArenaLimit {
        /// Bytes of data.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// The caller's buffer has the wrong length.
    BufferLength {
        /// Bytes the result takes.
        needed: u64,
        /// Length of the buffer.
        given: u64,
    },
    /// A byte range reaches outside the tensor.
    RangeOutside {
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
        /// Bytes in the tensor.
        len: u64,
    },
    /// The folder holds neither a shard index nor a `model.safetensors`.
    NoModel,
    /// The folder holds several shard indexes: name one.
    SeveralIndexes {
        /// How many.
        count: usize,
    },
    /// A shard and the index disagree.
    Shard(ShardProblem),
    /// The file was replaced while it was being changed in place.
    Replaced,
    /// No checkpoint of this step.
    StepNotFound {
        /// The step.
        step: u64,
    },
    /// A checkpoint without `manifest.json`.
    MissingManifest,
    /// A manifest that is not an object of file names and digests.
    BadManifest {
        /// What is wrong.
        problem: &'static str,
        /// The entry concerned.
        entry: Option<String>,
    },
    /// A checkpoint lacks a file that it needs or its manifest lists.
    MissingFile {
        /// Name of the file.
        file: String,
    },
    /// A checkpoint holds something its manifest does not list.
    UnlistedFile {
        /// Name of the file.
        file: String,
    },
    /// The digest of a file is not the one in the manifest.
    ChecksumMismatch {
        /// Name of the file.
        file: String,
    },
    /// `meta.json` is not what it should be.
    BadMeta {
        /// What is wrong.
        problem: &'static str,
    },
    /// `meta.json` names another step than the folder.
    StepMismatch {
        /// Step of the folder.
        folder: u64,
        /// Step of `meta.json`.
        meta: u64,
    },
    /// Optimizer tensors without the JSON part, or the other way round.
    OptimizerPair {
        /// The missing file.
        missing: &'static str,
    },
    /// Text that should be JSON is not.
    BadJson {
        /// What is wrong.
        problem: &'static str,
    },
}

impl ErrorKind {
    /// Every identifier of this crate that [`Error::code`] can return; errors of the crates below keep theirs.
    pub const CODES: &'static [&'static str] = &[
        "sm-io",
        "sm-shrunk",
        "sm-address-space",
        "sm-out-of-memory",
        "sm-arena-limit",
        "sm-buffer-length",
        "sm-range",
        "sm-no-model",
        "sm-several-indexes",
        "sm-shard",
        "sm-replaced",
        "sm-step-not-found",
        "sm-missing-manifest",
        "sm-manifest",
        "sm-missing-file",
        "sm-unlisted-file",
        "sm-checksum-mismatch",
        "sm-meta",
        "sm-step-mismatch",
        "sm-optimizer-pair",
        "sm-json",
    ];

    /// Stable identifier of the kind; that of the wrapped error where there is one.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Format(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Io { .. } => "sm-io",
            Self::Shrunk { .. } => "sm-shrunk",
            Self::AddressSpace { .. } => "sm-address-space",
            Self::OutOfMemory { .. } => "sm-out-of-memory",
            Self::ArenaLimit { .. } => "sm-arena-limit",
            Self::BufferLength { .. } => "sm-buffer-length",
            Self::RangeOutside { .. } => "sm-range",
            Self::NoModel => "sm-no-model",
            Self::SeveralIndexes { .. } => "sm-several-indexes",
            Self::Shard(_) => "sm-shard",
            Self::Replaced => "sm-replaced",
            Self::StepNotFound { .. } => "sm-step-not-found",
            Self::MissingManifest => "sm-missing-manifest",
            Self::BadManifest { .. } => "sm-manifest",
            Self::MissingFile { .. } => "sm-missing-file",
            Self::UnlistedFile { .. } => "sm-unlisted-file",
            Self::ChecksumMismatch { .. } => "sm-checksum-mismatch",
            Self::BadMeta { .. } => "sm-meta",
            Self::StepMismatch { .. } => "sm-step-mismatch",
            Self::OptimizerPair { .. } => "sm-optimizer-pair",
            Self::BadJson { .. } => "sm-json",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => error.fmt(f),
            Self::File(error) => error.fmt(f),
            Self::Io { operation, .. } => write!(f, "cannot {operation}"),
            Self::Shrunk { expected } => write!(
                f,
                "file became shorter than the {expected} bytes it had when it was opened: \
                 wait until its writer is done and open it again"
            ),
            Self::AddressSpace { len } => {
                write!(f, "{len} bytes do not fit the address space of this machine: read tensors one at a time")
            }
            Self::OutOfMemory { needed } => {
                write!(f, "no memory for a buffer of {needed} bytes: map the file or read tensors one at a time")
            }
            Self::ArenaLimit { needed, limit } => {
                write!(f, "{needed} bytes of tensors exceed the arena's limit of {limit}: raise it or map the file")
            }
            Self::BufferLength { needed, given } => {
                write!(f, "buffer of {given} bytes for a result of {needed} bytes")
            }
            Self::RangeOutside { start, end, len } => {
                write!(f, "byte range {start}..{end} is not within the {len} bytes of the tensor")
            }
            Self::NoModel => {
                f.write_str("folder has neither a shard index nor a model.safetensors: name the file to open")
            }
            Self::SeveralIndexes { count } => {
                write!(f, "folder has {count} shard indexes: name the one to open")
            }
            Self::Shard(problem) => write!(f, "index and shard are not of one set: {problem}"),
            Self::Replaced => {
                f.write_str("another program replaced the file meanwhile, nothing was written: try again")
            }
            Self::StepNotFound { step } => write!(f, "no checkpoint of step {step}"),
            Self::MissingManifest => f.write_str(
                "checkpoint without manifest.json cannot be verified: use another step or allow it explicitly",
            ),
            Self::BadManifest { problem, entry: None } => write!(f, "invalid manifest: {problem}"),
            Self::BadManifest { problem, entry: Some(entry) } => {
                write!(f, "invalid manifest: {problem}, entry {entry:?}")
            }
            Self::MissingFile { file } => {
                write!(f, "checkpoint lacks its file {file:?}: copy it again or use an older one")
            }
            Self::UnlistedFile { file } => {
                write!(f, "{file:?} is not listed in the manifest: remove it from the checkpoint")
            }
            Self::ChecksumMismatch { file } => write!(
                f,
                "checksum mismatch for {file}: it is damaged or was changed, use an older checkpoint or a copy"
            ),
            Self::BadMeta { problem } => write!(f, "invalid meta.json: {problem}"),
            Self::StepMismatch { folder, meta } => {
                write!(f, "folder of step {folder} with a meta.json of step {meta}: was the folder renamed?")
            }
            Self::OptimizerPair { missing } => write!(f, "optimizer state without {missing}"),
            Self::BadJson { problem } => write!(f, "invalid JSON: {problem}"),
        }
    }
}

/// Adds the path of the file to the error of a lower crate.
pub(crate) trait InFile<T> {
    fn in_file(self, path: &Path) -> Result<T, Error>;
}

impl<T, E: Into<Error>> InFile<T> for Result<T, E> {
    fn in_file(self, path: &Path) -> Result<T, Error> {
        self.map_err(|error| error.into().in_file(path))
    }
}

/// There is no tensor of this name.
pub(crate) fn not_found(name: &str) -> Error {
    Error::from(st_core::Error::from(st_core::ErrorKind::TensorNotFound)).of_tensor(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_ours() {
        for (idx, code) in ErrorKind::CODES.iter().enumerate() {
            assert!(code.starts_with("sm-"));
            assert!(!ErrorKind::CODES[..idx].contains(code), "{code}");
        }
    }

    #[test]
    fn every_kind_has_its_code_and_one_line() {
        let file = || "f".to_owned();
        let problem = "p";
        let own = [
            ErrorKind::Io { operation: "read", error: io::ErrorKind::Other.into() },
            ErrorKind::Shrunk { expected: 1 },
            ErrorKind::AddressSpace { len: 1 },
            ErrorKind::OutOfMemory { needed: 1 },
            ErrorKind::ArenaLimit { needed: 2, limit: 1 },
            ErrorKind::BufferLength { needed: 2, given: 1 },
            ErrorKind::RangeOutside { start: 1, end: 2, len: 1 },
            ErrorKind::NoModel,
            ErrorKind::SeveralIndexes { count: 2 },
            ErrorKind::Shard(ShardProblem::MissingShard { shard: file() }),
            ErrorKind::Replaced,
            ErrorKind::StepNotFound { step: 1 },
            ErrorKind::MissingManifest,
            ErrorKind::BadManifest { problem, entry: Some(file()) },
            ErrorKind::MissingFile { file: file() },
            ErrorKind::UnlistedFile { file: file() },
            ErrorKind::ChecksumMismatch { file: file() },
            ErrorKind::BadMeta { problem },
            ErrorKind::StepMismatch { folder: 1, meta: 2 },
            ErrorKind::OptimizerPair { missing: "f" },
            ErrorKind::BadJson { problem },
        ];
        assert_eq!(own.iter().map(ErrorKind::code).collect::<Vec<_>>(), ErrorKind::CODES);
        for kind in own.into_iter().chain([ErrorKind::BadManifest { problem, entry: None }]) {
            let text = kind.to_string();
            assert!(
                !text.is_empty() && !text.contains('\n') && !text.contains("  ") && !text.ends_with('.'),
                "{text}"
            );
        }
    }

    #[test]
    fn text_names_file_and_tensor_once() {
        let error =
            ErrorKind::BufferLength { needed: 8, given: 4 }.at(Path::new("a.safetensors")).of_tensor("w");
        assert_eq!(
            error.to_string(),
            "a.safetensors: buffer of 4 bytes for a result of 8 bytes, tensor \"w\""
        );
        assert_eq!((error.tensor(), error.code()), (Some("w"), "sm-buffer-length"));
        let error = error.in_file(Path::new("b"));
        assert_eq!(error.path(), Some(Path::new("a.safetensors")), "the first file is the right one");
    }

    #[test]
    fn wrapped_errors_keep_their_code() {
        let inner = st_core::Error::from(st_core::ErrorKind::TensorNotFound);
        let error = Error::from(inner.clone()).of_tensor("w");
        assert_eq!(error.code(), inner.code());
        assert_eq!(error.to_string(), "tensor not found, tensor \"w\"");
        assert!(core::error::Error::source(&error).is_none());
        let kind = ErrorKind::Io { operation: "read", error: io::ErrorKind::NotFound.into() };
        let error = kind.at(Path::new("a"));
        assert_eq!((error.to_string().as_str(), error.is_not_found()), ("a: cannot read", true));
        assert!(core::error::Error::source(&error).is_some());
    }
}
