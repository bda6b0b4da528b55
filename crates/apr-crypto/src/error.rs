//! What can be wrong.

use alloc::boxed::Box;
use core::fmt;

/// Why an operation was refused, with the line of a text and the file concerned where there are such.
///
/// One pointer long: results are returned from every step, and what fails is rare.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    line: Option<u32>,
    path: Option<Box<str>>,
    source: Option<Box<dyn core::error::Error + Send + Sync>>,
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
        Self::with_source(kind, Some(Box::new(source)))
    }

    fn with_source(kind: ErrorKind, source: Option<Box<dyn core::error::Error + Send + Sync>>) -> Self {
        Self(Box::new(Inner { kind, line: None, path: None, source }))
    }

    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Line of the text concerned, from 1.
    #[must_use]
    pub const fn line(&self) -> Option<u32> {
        self.0.line
    }

    /// The file concerned, as the caller named it.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// Stable identifier of the kind, for example `cy-open`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    pub(crate) fn at_line(mut self, line: usize) -> Self {
        self.0.line = Some(u32::try_from(line).unwrap_or(u32::MAX));
        self
    }

    #[cfg(feature = "std")]
    pub(crate) fn in_file(mut self, path: &std::path::Path) -> Self {
        self.0.path = Some(alloc::string::ToString::to_string(&path.display()).into());
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self::with_source(kind, None)
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
            Read::Source => match error.into_source().map(|source| source.downcast::<Self>()) {
                Some(Ok(own)) => *own,
                Some(Err(other)) => Self::with_source(ErrorKind::Source, Some(other)),
                None => ErrorKind::Source.into(),
            },
            _ => Self::wrap(ErrorKind::Source, error),
        }
    }
}

/// For readers that are sources themselves.
impl From<Error> for read_at::Error {
    #[cold]
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::OutOfRange { offset, len, available } => {
                read_at::ErrorKind::OutOfRange { offset, len, available }.into()
            }
            _ => Self::from_source(error),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, line, path, source } = &*self.0;
        let mut text = f.debug_struct("Error");
        text.field("kind", kind).field("line", line).field("path", path).field("source", source).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)?;
        if let Some(line) = self.0.line {
            write!(f, ", in line {line}")?;
        }
        if let Some(path) = &self.0.path {
            // `Debug` escapes what a hostile name would do to a terminal.
            write!(f, ", file {path:?}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
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

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident $({ $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)? })?
        => $code:literal, $text:literal;)*) => {
        /// What was wrong. Quantities are bytes unless the field says otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $variant $({ $($(#[$field_doc])* $field: $ty),* })?,)*
        }

        impl ErrorKind {
            /// Every identifier [`Error::code`] can return.
            pub const CODES: &'static [&'static str] = &[$($code),*];

            /// Stable identifier of the kind.
            #[must_use]
            pub const fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant $({ $($field: _),* })? => $code,)*
                }
            }
        }

        impl fmt::Display for ErrorKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),* })? => write!(f, $text),)*
                }
            }
        }
    };
}

error_kinds! {
    /// Ciphertext that does not open. Which of key, password, associated data or ciphertext is wrong cannot be told, and
    /// telling would help who guesses.
    Open => "cy-open", "cannot be opened: the key or password is another one, or the data were changed";
    /// A signature that does not belong to this message and key.
    Signature => "cy-signature", "the signature does not match: the data were changed or another key signed them";
    /// Data, length or proof that do not belong to a tree's root.
    Tree => "cy-tree", "the data do not belong to the tree hash: they were changed";
    /// A message authentication code that does not match.
    Mac => "cy-mac", "the authentication code does not match: the key is another one, or the data were changed";
    /// A public key with which anybody can forge signatures or compute the shared secret.
    WeakKey => "cy-weak-key", "the public key is of small order and protects nothing: ask for another one";
    /// Thirty-two bytes that are no public key, or another spelling of one.
    InvalidKey => "cy-invalid-key", "the bytes are not a public key in its one valid spelling";
    /// The public half stored beside a secret key belongs to another one.
    KeyMismatch => "cy-key-mismatch", "the public key stored beside the secret key is not its own: the key file is damaged";
    /// The source of randomness failed.
    Randomness => "cy-randomness", "no randomness to be had: nothing was encrypted or created";
    /// A password's cost outside the accepted range.
    Cost {
        /// `memory in KiB`, `passes`, `lanes` or `memory times passes in KiB`.
        what: &'static str,
        /// The value.
        found: u64,
        /// Smallest accepted.
        min: u64,
        /// Largest accepted.
        max: u64,
    } => "cy-cost", "password cost out of range: {what} is {found}, accepted are {min} to {max}";
    /// No memory for what was asked.
    OutOfMemory {
        /// Bytes asked for.
        len: u64,
    } => "cy-memory", "no memory for {len} bytes";
    /// Less data than the format needs.
    Truncated {
        /// What is too short.
        what: &'static str,
        /// Bytes it needs at least.
        needed: u64,
        /// Bytes given.
        available: u64,
    } => "cy-truncated", "{what} is cut off: {available} bytes, at least {needed} needed";
    /// More data than the construction or the limit allows.
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length.
        len: u64,
        /// Longest allowed.
        limit: u64,
    } => "cy-too-long", "{what} is too long: {len} bytes, the limit is {limit}";
    /// A length that no sealed message has.
    ChunkedLength {
        /// The length.
        len: u64,
    } => "cy-chunked-length", "{len} bytes cannot be a sealed message: it was cut off or added to";
    /// A range outside the data.
    OutOfRange {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes there are.
        available: u64,
    } => "cy-range", "{len} bytes from byte {offset} asked for, there are {available}";
    /// The caller's source of bytes failed.
    Source => "cy-source", "cannot read the data";
    /// A leaf length the tree hash does not know.
    LeafLen {
        /// The length.
        len: u64,
    } => "cy-leaf-len", "tree leaves of {len} bytes: a power of two from 1024 to 16777216 is needed";
    /// A name or number of an algorithm that is not known here.
    UnknownAlgorithm => "cy-algorithm", "unknown algorithm: a newer release may know it";
    /// A key line that is not bech32.
    Bech32 {
        /// What is wrong with it.
        what: &'static str,
    } => "cy-bech32", "not a key line: {what}";
    /// A key line with a typing error.
    Checksum => "cy-checksum", "the key line contains a typing error: its checksum does not match";
    /// A key of another kind than the one needed.
    KeyKind {
        /// What is needed.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    } => "cy-key-kind", "{expected} needed, this is {found}";
    /// A text without a key.
    NoKey {
        /// What was looked for.
        expected: &'static str,
    } => "cy-no-key", "no {expected} in this text";
    /// A text that goes on after the key.
    SecondKey => "cy-second-key", "more than one key in this text: keep each in a file of its own";
    /// A comment or name that cannot be written into a line.
    Comment {
        /// What is wrong with it.
        what: &'static str,
    } => "cy-comment", "unsuitable text: {what}";
    /// Text that is not in the format it should be in.
    Text {
        /// The format.
        format: &'static str,
        /// What is wrong with it.
        what: &'static str,
    } => "cy-text", "not {format}: {what}";
    /// A minisign secret key under a password.
    MinisignPassword => "cy-minisign-password",
        "the minisign key is under a password: make a copy without one (minisign -C -W) and import that";
    /// A signature by another key than the one at hand.
    KeyId => "cy-key-id", "the signature names another key than this one";
    /// Two entries of the same name, or one key under two names.
    Duplicate {
        /// `name` or `key`.
        what: &'static str,
    } => "cy-duplicate", "this {what} is in the list already";
    /// A file that exists already.
    FileExists => "cy-file-exists", "the file exists: a key is never overwritten, choose another name";
    /// Not a regular file.
    NotRegular => "cy-not-regular", "not a regular file";
    /// A secret file that others can read, or a list of trusted keys that others can change.
    Exposed {
        /// Permission bits of the file.
        mode: u32,
    } => "cy-exposed", "the permissions {mode:03o} open the file to others: close it (chmod 600), and trust its content no longer";
    /// The operating system refused.
    File {
        /// What was tried.
        operation: &'static str,
    } => "cy-file", "cannot {operation}";
    /// Bytes that are not the message they should be.
    Message {
        /// What was expected.
        expected: &'static str,
    } => "cy-message", "these bytes are not {expected}";
    /// A request that was admitted before.
    Replay => "cy-replay", "the request was admitted before: it was recorded and sent again, ask anew";
    /// A request of another time than now.
    Stale {
        /// When it was made, in seconds since 1970; 0 if it does not say.
        sent_at: u64,
        /// Earliest time accepted.
        earliest: u64,
        /// Latest time accepted.
        latest: u64,
    } => "cy-stale", "the request is of second {sent_at} since 1970, accepted are {earliest} to {latest}: check the clock and ask anew";
    /// A replay guard that cannot remember more.
    ReplayGuardFull {
        /// Requests it remembers.
        capacity: u64,
    } => "cy-replay-full", "{capacity} requests are remembered and no more can be: ask again later";
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn codes_are_distinct() {
        for (idx, code) in ErrorKind::CODES.iter().enumerate() {
            assert!(code.starts_with("cy-"));
            assert!(!ErrorKind::CODES[..idx].contains(code), "{code}");
        }
    }

    /// One line each, in lower case, without a full stop.
    #[test]
    fn every_kind_has_a_text() {
        use ErrorKind::*;
        let (len, limit, what, expected) = (1, 2, "x", "y");
        let kinds = [
            Open,
            Signature,
            Tree,
            Mac,
            WeakKey,
            InvalidKey,
            KeyMismatch,
            Randomness,
            Cost { what, found: 1, min: 2, max: 3 },
            OutOfMemory { len },
            Truncated { what, needed: 2, available: 1 },
            TooLong { what, len, limit },
            ChunkedLength { len },
            OutOfRange { offset: 1, len, available: 3 },
            Source,
            LeafLen { len },
            UnknownAlgorithm,
            Bech32 { what },
            Checksum,
            KeyKind { expected, found: what },
            NoKey { expected },
            SecondKey,
            Comment { what },
            Text { format: "a key", what },
            MinisignPassword,
            KeyId,
            Duplicate { what },
            FileExists,
            NotRegular,
            Exposed { mode: 0o644 },
            File { operation: "read" },
            Message { expected },
            Replay,
            Stale { sent_at: 1, earliest: 2, latest: 3 },
            ReplayGuardFull { capacity: 1 },
        ];
        assert!(kinds.iter().map(ErrorKind::code).eq(ErrorKind::CODES.iter().copied()));
        for kind in kinds {
            let text = kind.to_string();
            assert!(text.len() > 8 && !text.ends_with('.') && !text.contains('\n'), "{text}");
            assert_eq!(text, Error::from(kind).to_string());
        }
        assert!(Exposed { mode: 0o644 }.to_string().contains("permissions 644"));
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

    #[test]
    fn display_names_line_and_escapes_the_file() {
        let mut error = Error::from(ErrorKind::Checksum).at_line(3);
        error.0.path = Some("a\n".into());
        assert!(error.to_string().ends_with(", in line 3, file \"a\\n\""), "{error}");
        assert_eq!((error.line(), error.path(), error.code()), (Some(3), Some("a\n"), "cy-checksum"));
    }
}
