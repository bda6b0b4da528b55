//! Kinds of errors, with the file concerned.

use core::fmt;
use std::io;
use std::path::Path;

use located_error::{Subject, remedy};
use st_core::ShardProblem;

use crate::checkpoint::FormatVersion;

const OLDER: &str = "do not use this checkpoint: go back to an older one, or to the copy it came from";

located_error::errors! {
    /// Why an operation was refused, with the file and the tensor concerned where there is one.
    pub struct Error, with path;

    /// What was wrong.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// The operating system refused to read a file that was open.
        Io {
            /// The operation.
            operation: &'static str,
            /// The system's reason.
            error: io::Error,
        } = "sm-io" (Io) from error,
            "cannot {operation}"
            => "check the disk or network share";
        /// The file became shorter after it was opened, so its tensors are no longer there.
        Shrunk {
            /// Its length when it was opened.
            expected: u64,
        } = "sm-shrunk" (Io),
            "file became shorter than the {expected} bytes it had when it was opened: wait until its writer is done and open it again"
            => remedy::QUIET;
        /// The file is larger than this machine can address at once.
        AddressSpace {
            /// Its length.
            len: u64,
        } = "sm-address-space" (Unsupported),
            "{len} bytes do not fit the address space of this machine: read tensors one at a time"
            => "use a 64-bit build";
        /// There is no memory for the data asked for.
        OutOfMemory {
            /// Bytes asked for.
            needed: u64,
        } = "sm-out-of-memory" (Io),
            "no memory for a buffer of {needed} bytes: map the file or read tensors one at a time"
            => remedy::MEMORY;
        /// The data is larger than the buffer it should go to is allowed to grow.
        ArenaLimit {
            /// Bytes of data.
            needed: u64,
            /// The limit.
            limit: u64,
        } = "sm-arena-limit" (Invalid),
            "{needed} bytes of tensors exceed the arena's limit of {limit}: raise it or map the file"
            => remedy::MEMORY;
        /// A buffer was passed that is not as long as the data.
        BufferLength {
            /// Bytes the result takes.
            needed: u64,
            /// Length of the buffer.
            given: u64,
        } = "sm-buffer-length" (Internal),
            "wrong buffer length: expected {needed} bytes, found {given}"
            => remedy::BUG;
        /// A byte range reaches outside its tensor or the data section.
        RangeOutside {
            /// First byte.
            start: u64,
            /// One past the last byte.
            end: u64,
            /// Bytes in the tensor or data section.
            len: u64,
        } = "sm-range" (Internal),
            "byte range {start}..{end} is not within the {len} bytes of the tensor or data section"
            => remedy::BUG;
        /// A folder is read through the file in it that ends in `.safetensors.index.json`, or else through `model.safetensors`. This
        /// one has neither.
        NoModel = "sm-no-model" (Invalid),
            "folder has neither a shard index nor a model.safetensors: name the file to open"
            => "name the model file or the index itself";
        /// The folder has several indexes of shards, and which one is meant is open.
        SeveralIndexes {
            /// How many.
            count: usize,
        } = "sm-several-indexes" (Invalid),
            "folder has {count} shard indexes: name the one to open"
            => "name the index instead of the folder";
        /// The index and the shards of a model do not agree: a shard is missing, a tensor is not where the index says or is not
        /// listed, or the total size differs. A program that loads the model would miss tensors or load stale ones.
        Shard {
            /// How.
            problem: ShardProblem,
        } = "sm-shard" (Invalid),
            "index and shard do not match: {problem}"
            => remedy::SHARDS;
        /// An index is made from all the shards of a set, which are numbered, and a number is missing.
        MissingShard {
            /// Name that the missing file should have.
            file: String,
        } = "sm-missing-shard" (Invalid),
            "the set of shards lacks its file {file:?}"
            => "fetch the missing file from where the others come from";
        /// The folder has shards of several sets, and an index describes one.
        SeveralSets {
            /// First file of a set.
            first: String,
            /// First file of another one.
            second: String,
        } = "sm-several-sets" (Invalid),
            "the folder has shards of several sets, of {first:?} and of {second:?}"
            => "move the files of one set to a folder of their own";
        /// Two files of a folder hold a tensor of the same name, so no index can say which one counts.
        SameTensor {
            /// A file that has it.
            first: String,
            /// Another one.
            second: String,
        } = "sm-same-tensor" (Invalid),
            "the tensor is in {first:?} and in {second:?}"
            => "move the file that does not belong to the model to another folder";
        /// The folder has no safetensors files, so there is nothing that an index could list.
        NoShards = "sm-no-shards" (Invalid),
            "the folder has no .safetensors files"
            => "name the folder with the shards";
        /// Another program replaced the file while its metadata was being changed in place. Nothing was written.
        Replaced = "sm-replaced" (Io),
            "another program replaced the file, nothing was written: try again"
            => remedy::QUIET;
        /// The folder of checkpoints has none of this step.
        StepNotFound {
            /// The step.
            step: u64,
        } = "sm-step-not-found" (Invalid),
            "no checkpoint of step {step}"
            => "list the folders step_N";
        /// The checkpoint has no manifest.json, so none of its files can be verified. It was not written to its end, or someone
        /// removed the file.
        MissingManifest = "sm-missing-manifest" (Verification),
            "checkpoint without manifest.json cannot be verified: use another step or allow it explicitly"
            => "go back to an older checkpoint; if the trainer writes no manifests, `apr check --allow-missing-manifest` checks the headers alone";
        /// The manifest of the checkpoint is not an object of file names and SHA-256 digests.
        BadManifest {
            /// What is wrong.
            problem: &'static str,
            /// The entry concerned.
            entry: Option<String>,
        } = "sm-manifest" (Verification),
            "invalid manifest: {}{}", problem, Named(entry.as_deref())
            => OLDER;
        /// The checkpoint lacks a file that it needs or that its manifest lists.
        MissingFile {
            /// Name of the file.
            file: String,
        } = "sm-missing-file" (Verification),
            "checkpoint lacks its file {file:?}: copy it again or use an older one"
            => OLDER;
        /// The checkpoint holds something that its manifest does not list, so nothing vouches for it.
        UnlistedFile {
            /// Name of the file.
            file: String,
        } = "sm-unlisted-file" (Verification),
            "file {file:?} is not listed in the manifest: remove it from the checkpoint"
            => "find out where the file comes from, and remove it if it does not belong there";
        /// The content of a file is not what was saved: its SHA-256 differs from the manifest's. Bits were damaged on the disk or on
        /// the way, or someone changed the file.
        ChecksumMismatch {
            /// Name of the file.
            file: String,
        } = "sm-checksum-mismatch" (Verification),
            "checksum mismatch for {file}: it is corrupted or was modified, use an older checkpoint or a copy"
            => OLDER;
        /// The meta.json of the checkpoint is not what it should be.
        BadMeta {
            /// What is wrong.
            problem: &'static str,
        } = "sm-meta" (Verification),
            "invalid meta.json: {problem}"
            => OLDER;
        /// The checkpoint was written by a later release, in a form that this one cannot know. What it holds may mean something else.
        UnknownVersion {
            /// The version in meta.json.
            found: FormatVersion,
        } = "sm-version" (Unsupported),
            "checkpoint of format version {found}, this release reads 1.x: use the release that wrote it, or a newer one"
            => "look for a newer release of this program";
        /// A part of a checkpoint that is being saved has a name that no file may have, or one that is taken.
        BadPart {
            /// The name.
            name: String,
        } = "sm-part" (Usage),
            "a part of a checkpoint cannot be called {name:?}: at most 64 letters, digits, `_`, `-` and `.`, each name once, neither model nor optimizer"
            => "choose another name";
        /// A JSON file of a checkpoint that is being saved would be longer than what is read, so the checkpoint could never be loaded.
        TooLong {
            /// Name of the file.
            file: &'static str,
            /// Its length in bytes.
            len: u64,
            /// The greatest length that is read.
            max: u64,
        } = "sm-too-long" (Usage),
            "{file} would have {len} bytes and could not be loaded: the limit is {max}"
            => "keep large state in tensors, and names, metrics and numbers in JSON";
        /// A rule about the best checkpoints to keep cannot be read, or does not say which values of the metric are better.
        BadRule {
            /// The rule.
            rule: String,
            /// What is wrong.
            problem: &'static str,
        } = "sm-keep-rule" (Usage),
            "rule {rule:?}: {problem}: write COUNT:METRIC:min or COUNT:METRIC:max"
            => "write `3:val_loss:min` to keep the three checkpoints with the least val_loss";
        /// No checkpoint of the folder has the metric that decides which of them are kept. Nothing was removed.
        NoMetric {
            /// The metric.
            metric: String,
            /// One that there is.
            known: Option<String>,
        } = "sm-no-metric" (Usage),
            "no checkpoint has the metric {metric:?}{}", Known(known.as_deref())
            => "`apr checkpoint list FOLDER` shows the metrics";
        /// The folder of the checkpoint and its meta.json name different steps: the folder was renamed or mixed up.
        StepMismatch {
            /// Step of the folder.
            folder: u64,
            /// Step of `meta.json`.
            meta: u64,
        } = "sm-step-mismatch" (Verification),
            "folder of step {folder} with a meta.json of step {meta}: was the folder renamed?"
            => OLDER;
        /// The state of an optimizer is kept in two files, tensors and JSON, and one of them is missing.
        OptimizerPair {
            /// The missing file.
            missing: &'static str,
        } = "sm-optimizer-pair" (Verification),
            "optimizer state without {missing}"
            => OLDER;
        /// Text that should be JSON is not.
        BadJson {
            /// What is wrong.
            problem: &'static str,
        } = "sm-json" (Invalid),
            "invalid JSON: {problem}"
            => "fetch the file again";
    }

    wrapped {
        /// The bytes are not a valid safetensors file or shard index, or the request does not fit them.
        Format(st_core::Error);
        /// A file could not be opened, replaced or flushed.
        File(durable_file::Error);
    }
}

impl Error {
    /// Whether the cause is that a file or folder does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// The system's error, if that is the cause.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        located_error::io_error(self)
    }

    pub(crate) fn of_tensor(self, name: &str) -> Self {
        self.of(Subject::tensor(name))
    }
}

impl ErrorKind {
    pub(crate) fn at(self, path: &Path) -> Error {
        Error::from(self).in_file(path)
    }
}

/// For use inside writers and readers; the whole [`Error`] is inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.io_error().map_or(io::ErrorKind::InvalidData, io::Error::kind), error)
    }
}

/// The entry of a manifest, if there is one.
struct Named<'e>(Option<&'e str>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(entry) => write!(f, ", entry {entry:?}"),
            None => Ok(()),
        }
    }
}

/// A metric that there is.
struct Known<'e>(Option<&'e str>);

impl fmt::Display for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(metric) => write!(f, ": there is {metric:?}"),
            None => f.write_str(": there are none"),
        }
    }
}

/// There is no tensor of this name.
pub(crate) fn not_found(name: &str) -> Error {
    Error::from(st_core::Error::from(st_core::ErrorKind::TensorNotFound)).of_tensor(name)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_kinds_is_in_order() {
        let problems = located_error::problems(ErrorKind::TABLE, "sm-");
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn text_names_file_and_tensor_once() {
        let error =
            ErrorKind::BufferLength { needed: 8, given: 4 }.at(Path::new("a.safetensors")).of_tensor("w");
        assert_eq!(
            error.to_string(),
            "a.safetensors: wrong buffer length: expected 8 bytes, found 4, tensor \"w\""
        );
        assert_eq!((error.subject().map(Subject::name), error.code()), (Some("w"), "sm-buffer-length"));
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
