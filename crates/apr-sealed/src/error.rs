//! Why a sealed file was refused, and where.

use alloc::boxed::Box;
use core::fmt;

/// Why an operation was refused, with the byte offset and the part concerned where there is one.
///
/// One pointer long: results are returned from every step of a reader, and errors are rare.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    subject: Option<Box<str>>,
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Byte offset from the start of the sealed file.
    #[must_use]
    pub const fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The tensor or part concerned, truncated to 256 bytes.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    /// Stable identifier of the kind, for example `ac-sealed-magic`; for a kind that wraps another error, that error's.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    pub(crate) fn named(mut self, subject: &str) -> Self {
        const KEPT: usize = 256;
        self.0.subject = Some(subject.get(..subject.floor_char_boundary(KEPT)).unwrap_or_default().into());
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, offset: None, subject: None }))
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        ErrorKind::Io(error).into()
    }
}

impl From<apr_crypto::Error> for Error {
    fn from(error: apr_crypto::Error) -> Self {
        ErrorKind::Crypto(Box::new(error)).into()
    }
}

impl From<read_at::Error> for Error {
    fn from(error: read_at::Error) -> Self {
        apr_crypto::Error::from(error).into()
    }
}

#[cfg(feature = "std")]
impl From<durable_file::Error> for Error {
    fn from(error: durable_file::Error) -> Self {
        ErrorKind::File(error).into()
    }
}

impl From<apr_crypto::RejectedSigner> for ErrorKind {
    fn from(rejected: apr_crypto::RejectedSigner) -> Self {
        match rejected {
            apr_crypto::RejectedSigner::Untrusted => Self::UntrustedSigner,
            apr_crypto::RejectedSigner::InvalidKey => Self::SignatureInvalid,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, offset, subject } = &*self.0;
        let mut text = f.debug_struct("Error");
        text.field("kind", kind).field("offset", offset).field("subject", subject).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)?;
        if let Some(subject) = &self.0.subject {
            write!(f, ", {subject:?}")?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, ", at byte {offset}")?;
        }
        Ok(())
    }
}

/// `Display` includes the message of a wrapped error, which [`Error::kind`] gives access to; `source` is what that error wraps.
impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Crypto(error) => error.source(),
            _ => None,
        }
    }
}

impl ErrorKind {
    pub(crate) fn at(self, offset: u64) -> Error {
        Error(Box::new(Inner { kind: self, offset: Some(offset), subject: None }))
    }
}

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident $({ $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)? })?
        => $code:literal, $text:literal;)*) => {
        /// What was wrong. Quantities are bytes unless the field says otherwise.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $variant $({ $($(#[$field_doc])* $field: $ty),* })?,)*
            /// An error of a key, a cipher, a tree hash or the source of the bytes.
            Crypto(Box<apr_crypto::Error>),
            /// The file cannot be opened or replaced.
            #[cfg(feature = "std")]
            File(durable_file::Error),
            /// The file cannot be read or written.
            #[cfg(feature = "std")]
            Io(std::io::Error),
        }

        impl ErrorKind {
            /// Every identifier [`Error::code`] can return, but for those of wrapped errors.
            pub const CODES: &'static [&'static str] = &[$($code,)* "ac-io"];

            /// Stable identifier of the kind.
            #[must_use]
            pub fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant $({ $($field: _),* })? => $code,)*
                    Self::Crypto(error) => error.code(),
                    #[cfg(feature = "std")]
                    Self::File(error) => error.code(),
                    #[cfg(feature = "std")]
                    Self::Io(_) => "ac-io",
                }
            }
        }

        impl fmt::Display for ErrorKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),* })? => write!(f, $text),)*
                    Self::Crypto(error) => error.fmt(f),
                    #[cfg(feature = "std")]
                    Self::File(error) => error.fmt(f),
                    #[cfg(feature = "std")]
                    Self::Io(error) => write!(f, "cannot read or write the file: {error}"),
                }
            }
        }
    };
}

error_kinds! {
    /// Not a sealed file.
    Magic => "ac-sealed-magic", "not a sealed file: it begins with something else";
    /// A version of the sealed profile that this reader does not know.
    UnsupportedVersion {
        /// Version of the file.
        found: u16,
    } => "ac-sealed-version", "sealed file of version {found}, the newest known is 1";
    /// A suite of algorithms that this reader does not know.
    UnknownSuite {
        /// Its number.
        found: u16,
    } => "ac-sealed-suite", "sealed file with the unknown suite {found}: a newer release may know it";
    /// Critical flags that this reader does not know.
    UnknownFlags {
        /// The unknown ones among the critical flags.
        found: u32,
    } => "ac-sealed-flags", "sealed file with the unknown critical flags {found:#06x}: a newer release may know them";
    /// The parts of a sealed file are not as long as the file.
    FileLength {
        /// What the header's lengths add up to.
        declared: u64,
        /// Bytes in the file.
        available: u64,
    } => "ac-sealed-length", "the header describes a sealed file of {declared} bytes, the file has {available}: it was cut off or added to";
    /// Fields of a sealed header that contradict each other.
    Header {
        /// What does not fit.
        what: &'static str,
    } => "ac-sealed-header", "header of the sealed file: {what}";
    /// A directory (when sealing: a plan) that is not in the form the specification gives it.
    Directory {
        /// What does not fit.
        what: &'static str,
    } => "ac-sealed-directory", "directory of the sealed file: {what}";
    /// Neither key slot is whole.
    KeySlots => "ac-sealed-slots", "neither key slot of the sealed file is whole: it was damaged";
    /// Neither encrypted nor signed.
    Unprotected => "ac-sealed-unprotected", "neither encrypted nor signed: there is nothing that seals the file";
    /// The file is locked in another way than the key at hand opens.
    WrongKeyType {
        /// What opens it.
        expected: &'static str,
    } => "ac-sealed-lock", "the file opens with {expected}";
    /// More stanzas than the reader tries a recipient's key on.
    TooManyStanzas {
        /// Stanzas of the file.
        found: u64,
        /// Most accepted.
        limit: u64,
    } => "ac-sealed-stanzas", "the sealed file has {found} stanzas, at most {limit} are tried";
    /// The key slots have no room for that many recipients.
    SlotsFull {
        /// Bytes the stanzas need.
        needed: u64,
        /// Bytes there are.
        available: u64,
    } => "ac-sealed-room", "stanzas of {needed} bytes for key slots of {available} bytes: seal the file again with more space";
    /// The file does not say whose its stanzas are.
    RecipientsUnlisted => "ac-sealed-unlisted", "the file does not list its recipients: none of them can be removed by name";
    /// None of the listed recipients has this key.
    RecipientUnknown => "ac-sealed-recipient", "no recipient that the file lists has this key";
    /// Without any recipient, the file could never be opened.
    NoRecipientLeft => "ac-sealed-no-recipient", "no recipient would be left who can open the file";
    /// Only the signer may change who can open the file.
    RecipientsBound => "ac-sealed-bound", "the list of recipients is signed: changing it needs the signing key of this file";
    /// Reserved bytes or bits are set in a version that defines none of them (strict).
    Reserved => "ac-reserved", "reserved header bytes are not zero";
    /// The payload is encrypted: loading needs a password or a key.
    Encrypted => "ac-encrypted", "the payload is encrypted: loading it needs its password or a recipient's key";
    /// The file is signed and nobody has checked the signature.
    SignatureUnchecked => "ac-signed", "the file is signed: verify it with the signer's key, or allow an unchecked signature";
    /// The payload is not encrypted, although it was expected to be.
    NotEncrypted => "ac-not-encrypted", "the payload is plaintext although encryption was required";
    /// The file carries no signature, although one was demanded.
    NotSigned => "ac-not-signed", "the file is not signed";
    /// The signature does not match.
    SignatureInvalid => "ac-signature", "the signature does not match: the file was changed, or another key signed it";
    /// The signature is that of a key nobody said to trust.
    UntrustedSigner => "ac-untrusted-signer", "the file is signed by a key that is not among the trusted ones";
    /// Wrong password or key, or damaged ciphertext: which of them, nobody can tell.
    DecryptionFailed => "ac-decryption", "cannot be decrypted: the password or key is another one, or the file was changed";
    /// A limit of the reader is exceeded.
    Limit {
        /// What is limited.
        what: &'static str,
        /// Declared or counted.
        found: u64,
        /// Largest accepted.
        limit: u64,
    } => "ac-limit", "{what}: {found}, the limit is {limit}";
    /// The machine has no room for it.
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    } => "ac-memory", "no memory for {bytes} bytes";
    /// A value that contradicts what the layout says.
    InvalidValue {
        /// What is wrong.
        what: &'static str,
    } => "ac-value", "{what}";
    /// The size of a tensor or of the file does not fit 64 bits.
    SizeOverflow => "ac-v2-overflow", "size overflows 64 bits";
    /// No tensor of this name.
    TensorNotFound => "ac-v2-not-found", "tensor not found";
    /// Bytes (or elements) given and needed differ.
    DataLength {
        /// Needed.
        needed: u64,
        /// Given.
        given: u64,
    } => "ac-v2-data-length", "{given} given, {needed} needed";
}
