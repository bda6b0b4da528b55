//! Kinds of errors.

use alloc::boxed::Box;
#[cfg(feature = "std")]
use std::path::Path;

use located_error::remedy;

const SMALLER: &str = "free some memory, or process a smaller part";
const KEY_TEXT: &str = "copy the key line again, as a whole: it begins with `apr-` and has no spaces";

located_error::errors! {
    /// Why an operation was refused. An error of a text names the line.
    pub struct Error caused by located_error::AnyCause;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// Authenticated decryption failed. It cannot tell a wrong key or password from modified data, and must not.
        Open = "cy-open" (Verification),
            "wrong key or password, or the data was modified"
            => remedy::WRONG_KEY;
        /// The signature does not belong to these bytes and this key: the data were changed after they were signed, or signed by
        /// someone else.
        Signature = "cy-signature" (Verification),
            "invalid signature: the data was modified, or another key signed it"
            => remedy::NOT_AS_SIGNED;
        /// The data do not belong to the tree hash that is trusted: they were changed, or are a part of another file.
        Tree = "cy-tree" (Verification),
            "tree hash mismatch: the data was modified"
            => remedy::NOT_AS_SIGNED;
        /// The header of the file has another authentication code than its key gives: it was changed, or the key is another one.
        Mac = "cy-mac" (Verification),
            "authentication code mismatch: wrong key, or the data was modified"
            => remedy::NOT_AS_SIGNED;
        /// The public key is one of the few with which anyone can forge signatures or compute the shared secret. No program generates
        /// such a key by accident.
        WeakKey = "cy-weak-key" (Verification),
            "public key of small order, which protects nothing: ask for another one"
            => "ask the owner for another key, over a channel that you trust";
        /// The bytes are not a public key, or not its canonical encoding. Every key has one encoding, so that comparing keys means
        /// something.
        InvalidKey = "cy-invalid-key" (Invalid),
            "not a canonical public key encoding"
            => "ask the owner for the key again";
        /// The file holds a secret key beside a public one that is not its own. Signing with such a pair can give the secret away.
        KeyMismatch = "cy-key-mismatch" (Verification),
            "the public key stored with the secret key does not match it: the key file is corrupted"
            => "take the key from a copy of the file; the corrupted one is of no use";
        /// The operating system gave no randomness, and nothing secret can be made without it. Nothing was written.
        Randomness = "cy-randomness" (Io),
            "no randomness available: nothing was encrypted or created"
            => "try again; on a machine that has just started, a little later";
        /// A password's cost is outside what is accepted: below it guessing is too cheap to call it protection, above it a file could
        /// keep the machine busy for hours.
        Cost {
            /// `memory in KiB`, `passes`, `lanes` or `memory times passes in KiB`.
            what: &'static str,
            /// The value.
            found: u64,
            /// Smallest accepted.
            min: u64,
            /// Largest accepted.
            max: u64,
        } = "cy-cost" (Verification),
            "password cost out of range: {what} is {found}, expected {min} to {max}"
            => "create the file or key again with a cost in that range, or raise the limit: --max-password-cost SIZE:PASSES";
        /// The system has no memory for a large piece: what a password costs, or the content of a file.
        OutOfMemory {
            /// Requested bytes.
            len: u64,
        } = "cy-memory" (Io),
            "no memory for {len} bytes"
            => SMALLER;
        /// The data are shorter than the format needs: the file was cut off.
        Truncated {
            /// What is too short.
            what: &'static str,
            /// Bytes it needs at least.
            needed: u64,
            /// Bytes given.
            available: u64,
        } = "cy-truncated" (Invalid),
            "{what} is truncated: expected at least {needed} bytes, found {available}"
            => remedy::NOT_AS_SIGNED;
        /// A text or message is longer than the format or the limit allows. Key files are short; a longer file is hardly one.
        TooLong {
            /// What is too long.
            what: &'static str,
            /// Its length.
            len: u64,
            /// Longest allowed.
            limit: u64,
        } = "cy-too-long" (Invalid),
            "{what} is too long: {len} bytes, the limit is {limit}"
            => "check that the right file was named";
        /// No message encrypted in chunks has this length: the file was cut off or something was added.
        ChunkedLength {
            /// The length.
            len: u64,
        } = "cy-chunked-length" (Invalid),
            "{len} bytes is not a possible length of an encrypted message: it was truncated or extended"
            => remedy::NOT_AS_SIGNED;
        /// The requested range is longer than the source.
        OutOfRange {
            /// First requested byte.
            offset: u64,
            /// Requested bytes.
            len: u64,
            /// Bytes there are.
            available: u64,
        } = "cy-range" (Invalid),
            "range of {len} bytes from byte {offset} is outside the {available} bytes of data"
            => "check that the file is complete";
        /// The data could not be read.
        Source = "cy-source" (Io),
            "cannot read the data"
            => "check the disk or connection they come from, and try again";
        /// The tree hash has leaves of a length that this version does not know.
        LeafLen {
            /// The length.
            len: u64,
        } = "cy-leaf-len" (Invalid),
            "tree leaves of {len} bytes: expected a power of two from 1024 to 16777216"
            => remedy::NOT_AS_SIGNED;
        /// The file names an algorithm that this version does not know.
        UnknownAlgorithm = "cy-algorithm" (Unsupported),
            "unknown algorithm: a newer release may know it"
            => "use a newer version of apr";
        /// The text is not a key line: it lacks the mark between kind and data, or has letters or a length that no key line has.
        Bech32 {
            /// What is wrong with it.
            what: &'static str,
        } = "cy-bech32" (Invalid),
            "not a key line: {what}"
            => KEY_TEXT;
        /// The key line contains a typing error: its last six letters are a checksum and do not match. Up to three wrong letters are
        /// always noticed.
        Checksum = "cy-checksum" (Invalid),
            "the key line contains a typing error: its checksum does not match"
            => KEY_TEXT;
        /// The key is of another kind than the one needed: a public one in place of a secret one or the reverse, or one for
        /// encrypting in place of one for signing.
        KeyKind {
            /// What is needed.
            expected: &'static str,
            /// What is there.
            found: &'static str,
        } = "cy-key-kind" (Invalid),
            "wrong kind of key: expected {expected}, found {found}"
            => "recipients' keys are made by `apr keygen encrypt`, signers' by `apr keygen sign`; the public half is in FILE.pub";
        /// The text has no key: all of its lines are empty or comments.
        NoKey {
            /// What was looked for.
            expected: &'static str,
        } = "cy-no-key" (Invalid),
            "no {expected} in this text"
            => "check that the right file was named; `apr keygen` makes key files";
        /// The file has more than one key, so that it is ambiguous.
        SecondKey = "cy-second-key" (Invalid),
            "more than one key in this text: keep each in a file of its own"
            => "keep each key in a file of its own";
        /// A comment or a name has letters that do not fit into one line: control characters, or invisible ones that reorder what a
        /// terminal shows.
        Comment {
            /// What is wrong with it.
            what: &'static str,
        } = "cy-comment" (Usage),
            "unsuitable text: {what}"
            => "leave them out";
        /// The text is not in the format it should be in. Key files are read as our own key lines, PEM (PKCS#8 and SPKI, Ed25519 and
        /// X25519) and minisign's.
        Text {
            /// The format.
            format: &'static str,
            /// What is wrong with it.
            what: &'static str,
        } = "cy-text" (Invalid),
            "not {format}: {what}"
            => "check that the right file was named; `openssl pkey` converts keys of other forms to PEM";
        /// The secret key is one of minisign's under a password, and minisign's way of deriving keys from passwords is not built in.
        MinisignPassword = "cy-minisign-password" (Unsupported),
            "the minisign key is encrypted with a password: make a copy without one (minisign -C -W) and import that"
            => "make a copy of the key and take the password off: minisign -C -W -s COPY; then `apr keygen sign --from COPY --ask-password`";
        /// The signature names another key than the one it was to be checked with.
        KeyId = "cy-key-id" (Verification),
            "the signature names another key"
            => "get the public key of the signer over a channel that you trust";
        /// A name or a key occurs twice in the list of trusted keys, so that it is ambiguous.
        Duplicate {
            /// `name` or `key`.
            what: &'static str,
        } = "cy-duplicate" (Invalid),
            "duplicate {what} in the list"
            => "take one of the two lines out";
        /// The key file exists. Keys are never overwritten, not even with --force: what was encrypted for the old one could not be
        /// opened any more.
        FileExists = "cy-file-exists" (Usage),
            "the file exists: a key is never overwritten, choose another name"
            => "choose another name, or move the old key away";
        /// Keys and lists of trusted keys are read from regular files alone, not from pipes, devices or folders.
        NotRegular = "cy-not-regular" (Invalid),
            "not a regular file"
            => "name a file";
        /// Others can read a file that has to be secret, or change a list of keys that has to be yours. Who did so is not known, so
        /// the content counts for nothing any more.
        Exposed {
            /// Permission bits of the file.
            mode: u32,
        } = "cy-exposed" (Verification),
            "the permissions {mode:03o} give others access to the file: restrict them (chmod 600), and do not trust its content any more"
            => "make a new key or password in a file of mode 600; if you are sure that no one read it, chmod 600 FILE";
        /// The operating system refused to read or write the file.
        File {
            /// What was tried.
            operation: &'static str,
        } = "cy-file" (Io),
            "cannot {operation}"
            => remedy::PATH;
        /// The bytes are not a request to a model, or not a response: other magic bytes, another version, or too short.
        Message {
            /// What was expected.
            expected: &'static str,
        } = "cy-message" (Invalid),
            "malformed message: expected {expected}"
            => "see that both sides speak the same version of the protocol";
        /// A trusted key signed this public key, but not for requests to a model: the signature has another trusted comment.
        KeyPurpose {
            /// The comment that the signature must have.
            expected: &'static str,
        } = "cy-key-purpose" (Verification),
            "the key was signed for another purpose: expected the trusted comment `{expected}`"
            => "the owner of the model signs the key again: apr sign KEY.pub --key SIGNER --comment 'apr inference key'";
        /// A request was recorded and sent again. It was answered once.
        Replay = "cy-replay" (Verification),
            "replayed request: it was admitted before; send a new one"
            => "send a new request: each request is valid once";
        /// A request is too old, or from a clock that is ahead.
        Stale {
            /// When it was made, in seconds since 1970; 0 if it does not say.
            sent_at: u64,
            /// Earliest time accepted.
            earliest: u64,
            /// Latest time accepted.
            latest: u64,
        } = "cy-stale" (Verification),
            "request of second {sent_at} since 1970, expected {earliest} to {latest}: check the clock and send a new one"
            => "set the clock of the client, and send a new request";
        /// The server remembers a limited number of requests, and accepts none that it could not recognize when replayed.
        ReplayGuardFull {
            /// Requests it remembers.
            capacity: u64,
        } = "cy-replay-full" (Io),
            "replay guard full: {capacity} requests are remembered; try again later"
            => "try again later; the operator can raise the capacity or shorten the time";
    }
}

impl Error {
    /// An error of a source or an [`Rng`](crate::Rng) that the caller provides, with its cause.
    ///
    /// ```
    /// use apr_crypto::{Error, ErrorKind};
    ///
    /// let error = Error::wrap(ErrorKind::Source, core::fmt::Error);
    /// assert_eq!(error.code(), "cy-source");
    /// assert!(core::error::Error::source(&error).is_some());
    /// ```
    #[must_use]
    pub fn wrap(kind: ErrorKind, source: impl core::error::Error + Send + Sync + 'static) -> Self {
        Self::from(kind).caused_by(Box::new(source))
    }

    fn caused_by(mut self, cause: Box<dyn core::error::Error + Send + Sync>) -> Self {
        self.0.cause = Some(cause);
        self
    }

    /// Line of the text concerned, from 1.
    #[must_use]
    pub const fn line(&self) -> Option<u32> {
        self.0.line
    }

    /// The file concerned, as the caller named it.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    pub(crate) fn at_line(mut self, line: usize) -> Self {
        self.0.line = Some(u32::try_from(line).unwrap_or(u32::MAX));
        self
    }

    #[cfg(feature = "std")]
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.0.path = Some(path.into());
        self
    }
}

/// Errors of a source. What another reader of this crate reported through a source comes out as it was.
impl From<read_at::Error> for Error {
    #[cold]
    fn from(error: read_at::Error) -> Self {
        use read_at::ErrorKind as Read;
        match error.kind() {
            Read::OutOfRange { offset, len, available } => {
                ErrorKind::OutOfRange { offset, len, available }.into()
            }
            Read::NotRegular => ErrorKind::NotRegular.into(),
            Read::OutOfMemory { len } => ErrorKind::OutOfMemory { len }.into(),
            Read::Source => {
                let Some(source) = error.into_source() else { return ErrorKind::Source.into() };
                match source.downcast::<Self>() {
                    Ok(own) => *own,
                    Err(other) => Self::from(ErrorKind::Source).caused_by(other),
                }
            }
            _ => Self::wrap(ErrorKind::Source, error),
        }
    }
}

/// For readers that are sources themselves.
impl From<Error> for read_at::Error {
    #[cold]
    fn from(error: Error) -> Self {
        match *error.kind() {
            ErrorKind::OutOfRange { offset, len, available } => {
                read_at::ErrorKind::OutOfRange { offset, len, available }.into()
            }
            _ => Self::from_source(error),
        }
    }
}

#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.0.kind {
            ErrorKind::OutOfMemory { .. } => std::io::ErrorKind::OutOfMemory,
            ErrorKind::TooLong { .. } | ErrorKind::OutOfRange { .. } => std::io::ErrorKind::InvalidInput,
            ErrorKind::Randomness | ErrorKind::Source | ErrorKind::File { .. } => std::io::ErrorKind::Other,
            _ => std::io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn the_table_of_kinds_is_in_order() {
        let problems = located_error::problems(ErrorKind::TABLE, "cy-");
        assert!(problems.is_empty(), "{problems:?}");
        assert!(ErrorKind::Exposed { mode: 0o644 }.to_string().contains("permissions 644"));
    }

    #[cfg(feature = "std")]
    #[test]
    fn kinds_for_writers_are_those_of_their_cause() {
        use std::io;
        let kind = |kind: ErrorKind| io::Error::from(Error::from(kind)).kind();
        assert_eq!(kind(ErrorKind::OutOfMemory { len: 1 }), io::ErrorKind::OutOfMemory);
        assert_eq!(kind(ErrorKind::TooLong { what: "x", len: 2, limit: 1 }), io::ErrorKind::InvalidInput);
        assert_eq!(kind(ErrorKind::Randomness), io::ErrorKind::Other);
        assert_eq!(kind(ErrorKind::Open), io::ErrorKind::InvalidData);
    }

    #[cfg(feature = "std")]
    #[test]
    fn display_names_line_and_escapes_the_file() {
        let error = Error::from(ErrorKind::Checksum).at_line(3).in_file(Path::new("a\n"));
        let text = error.to_string();
        assert!(text.starts_with("a\\n: ") && text.ends_with(", in line 3"), "{text}");
        assert_eq!(
            (error.line(), error.path(), error.code()),
            (Some(3), Some(Path::new("a\n")), "cy-checksum")
        );
    }
}
