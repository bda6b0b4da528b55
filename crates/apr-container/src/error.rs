//! What can be wrong, and where.

mod kinds;
mod model;

use alloc::boxed::Box;
use core::fmt;

use json_scan::{Escape, JsonStr};

use self::kinds::error_kinds;
pub use self::model::ModelError;
use crate::compression::Compression;
use crate::model_type::ModelType;

/// Why an operation was refused, with the byte offset and the key or tensor concerned where there is one.
///
/// One pointer long: results are returned from every step of a decoder, and what fails is rare.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    name: Option<Box<str>>,
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Where: bytes from the start of the file; for what is wrong inside a payload, from the start of its
    /// uncompressed bytes.
    #[must_use]
    pub const fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The metadata key (with its path, joined by dots) or the tensor concerned, cut after 256 bytes.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Stable identifier of the kind, for example `ac-checksum`; for a kind that wraps another error, that error's.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// What a model's own constructor says of parts that were read from a payload; `code` is that error's stable
    /// identifier.
    #[must_use]
    pub fn model(code: &'static str, source: impl core::error::Error + Send + Sync + 'static) -> Self {
        ErrorKind::Model(ModelError { code, source: Box::new(source) }).into()
    }

    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// The same error for bytes that begin at `base`.
    pub(crate) fn shifted(mut self, base: u64) -> Self {
        self.0.offset = self.0.offset.map(|offset| offset.saturating_add(base));
        self
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        const KEPT: usize = 256;
        self.0.name = Some(name.get(..name.floor_char_boundary(KEPT)).unwrap_or_default().into());
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, offset: None, name: None }))
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        ErrorKind::Io(error).into()
    }
}

#[cfg(feature = "crypto")]
impl From<apr_crypto::Error> for Error {
    fn from(error: apr_crypto::Error) -> Self {
        ErrorKind::Crypto(Box::new(error)).into()
    }
}

#[cfg(feature = "crypto")]
impl From<apr_crypto::RejectedSigner> for ErrorKind {
    fn from(rejected: apr_crypto::RejectedSigner) -> Self {
        match rejected {
            apr_crypto::RejectedSigner::Untrusted => Self::UntrustedSigner,
            apr_crypto::RejectedSigner::InvalidKey => Self::SignatureInvalid,
        }
    }
}

#[cfg(feature = "crypto")]
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

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, offset, name } = &*self.0;
        f.debug_struct("Error").field("kind", kind).field("offset", offset).field("name", name).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)?;
        if let Some(name) = &self.0.name {
            f.write_str(", ")?;
            JsonStr(name, Escape::Hazards).fmt(f)?;
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
            #[cfg(feature = "crypto")]
            ErrorKind::Crypto(error) => error.source(),
            _ => None,
        }
    }
}

impl ErrorKind {
    pub(crate) fn at(self, offset: u64) -> Error {
        Error::from(self).at(offset)
    }
}

error_kinds! {
    /// The file is shorter than a header and a checksum.
    TooSmall {
        /// Bytes in the file.
        available: u64,
        /// Bytes the shortest file has.
        needed: u64,
    } => "ac-too-small", "file too small: {available} bytes, the shortest has {needed}";
    /// Neither `APRN` nor `APR\0` nor `APR2`.
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    } => "ac-magic", "not an .apr file: it begins with [{:02X}, {:02X}, {:02X}, {:02X}], not with \"APRN\" or \"APR\\0\"", found[0], found[1], found[2], found[3];
    /// A file of version 2 where one of the first is expected.
    Version2 => "ac-second-generation", "expected an .apr file of version 1, found version 2, which holds tensors instead of a model";
    /// A major version this reader does not know.
    UnsupportedVersion {
        /// Major and minor version of the file.
        found: (u8, u8),
        /// Newest version known.
        supported: (u8, u8),
    } => "ac-version", "version {}.{} is not supported, the newest known is {}.{}", found.0, found.1, supported.0, supported.1;
    /// A model type no specification lists.
    UnknownModelType {
        /// Its number.
        found: ModelType,
    } => "ac-unknown-type", "unknown model type {found}";
    /// The file holds another model type than asked for.
    ModelTypeMismatch {
        /// Asked for.
        expected: ModelType,
        /// In the file (when saving: of the model).
        found: ModelType,
    } => "ac-wrong-type", "wrong model type: expected {expected}, found {found}";
    /// A compression no specification lists.
    UnknownCompression {
        /// Its number.
        found: u8,
    } => "ac-compression", "unknown compression {found}";
    /// Reserved bytes or bits are set in a version that defines none of them (strict).
    Reserved => "ac-reserved", "reserved header bytes are not zero";
    /// A part reaches past the end of the file.
    Truncated {
        /// Which part.
        part: &'static str,
        /// Bytes it needs.
        needed: u64,
        /// Bytes there are.
        available: u64,
    } => "ac-truncated", "{part} needs {needed} bytes, {available} are there";
    /// Bytes that belong to no part (strict).
    Unowned {
        /// How many.
        count: u64,
    } => "ac-unowned", "{count} bytes between the payload and the checksum belong to no part of the file";
    /// The checksum over the file does not match: it is damaged.
    ChecksumMismatch {
        /// Stored in the file.
        expected: u32,
        /// Computed over its bytes.
        actual: u32,
    } => "ac-checksum", "checksum mismatch: expected {expected:08X}, got {actual:08X}";
    /// The payload is encrypted: loading needs a password or a key.
    Encrypted => "ac-encrypted", "the payload is encrypted: loading it needs its password or a recipient's key";
    /// The payload is compressed: there are no values to look at where it lies.
    Compressed {
        /// How.
        compression: Compression,
    } => "ac-compressed", "the payload is compressed ({compression}): a view needs one that is stored as it is";
    /// The file is signed and nobody has checked the signature.
    SignatureUnchecked => "ac-signed", "the file is signed: verify it with the signer's key, or allow an unchecked signature";
    /// The payload is not encrypted, although it was expected to be.
    NotEncrypted => "ac-not-encrypted" if "crypto", "the payload is plaintext although encryption was required";
    /// The file carries no signature, although one was demanded.
    NotSigned => "ac-not-signed" if "crypto", "the file is not signed";
    /// The signature does not match.
    SignatureInvalid => "ac-signature" if "crypto", "the signature does not match: the file was changed, or another key signed it";
    /// The signature is that of a key nobody said to trust.
    UntrustedSigner => "ac-untrusted-signer" if "crypto", "the file is signed by a key that is not among the trusted ones";
    /// Wrong password or key, or damaged ciphertext: which of them, nobody can tell.
    DecryptionFailed => "ac-decryption" if "crypto", "cannot be decrypted: the password or key is another one, or the file was changed";
    /// An encrypted file that does not bind its header and metadata to the payload (strict).
    Unbound => "ac-unbound" if "crypto", "header and metadata are not bound to the encrypted payload and could have been exchanged; read it in compat mode if that does not matter";
    /// Header, metadata or signer are not those the payload was encrypted with.
    Rebound => "ac-rebound" if "crypto", "header, metadata or signer are not those the payload was encrypted with";
    /// Nobody trusted vouches for the metadata.
    Unauthenticated => "ac-unauthenticated" if "crypto", "anyone can have written the metadata: demand the signature of a trusted key, or give the password that the file is encrypted with";
    /// The metadata hold no public key for private inference, or something else in its place.
    InferenceKey {
        /// What is wrong with it.
        what: &'static str,
    } => "ac-inference-key" if "crypto", "{what}: ask the model's owner for a file with a public key";
    /// A length does not fit the field the format has for it.
    TooLargeForFormat {
        /// Which part.
        part: &'static str,
        /// Its length.
        len: u64,
        /// Longest the format can say.
        limit: u64,
    } => "ac-too-large", "{part} is {len} bytes long, the format cannot say more than {limit}";
    /// A limit of the reader is exceeded.
    Limit {
        /// What is limited.
        what: &'static str,
        /// Declared or counted.
        found: u64,
        /// Largest accepted.
        limit: u64,
    } => "ac-limit", "{what}: {found}, the limit is {limit}";
    /// A compressed payload claims to become larger than the reader allows for a file of this size.
    Expansion {
        /// Bytes after decompression, as declared.
        declared: u64,
        /// Most accepted for this file.
        allowed: u64,
    } => "ac-expansion", "the payload expands to {declared} bytes, {allowed} are allowed for a file of this size; raise `Limits::expansion` for a file you trust";
    /// The payload's values would take more memory than a file of this size may ask for.
    ModelMemory {
        /// Bytes asked for so far.
        needed: u64,
        /// Most accepted for this file.
        allowed: u64,
    } => "ac-model-memory", "the payload's values take {needed} bytes of memory, {allowed} are allowed for a file of this size; raise `Limits::model_memory` for a file you trust";
    /// The header's uncompressed size is not what the payload has.
    UncompressedSize {
        /// Declared in the header.
        declared: u64,
        /// Found so far.
        actual: u64,
    } => "ac-uncompressed-size", "the header says {declared} bytes after decompression, the payload has {actual}";
    /// The compressed payload is not sound.
    Decompression {
        /// Which algorithm.
        algorithm: &'static str,
        /// What it says.
        reason: &'static str,
    } => "ac-decompression", "{algorithm} payload: {reason}";
    /// This build cannot do it.
    FeatureDisabled {
        /// The cargo feature that can.
        feature: &'static str,
    } => "ac-feature", "this build lacks the feature `{feature}`";
    /// The machine has no room for it.
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    } => "ac-memory", "no memory for {bytes} bytes";
    /// The payload ends inside a value.
    PayloadEnd {
        /// Bytes the value needs.
        needed: u64,
        /// Bytes left.
        available: u64,
    } => "ac-payload-end", "the payload ends inside a value: {needed} bytes needed, {available} left";
    /// The payload goes on after its last value (strict).
    PayloadTrailing {
        /// Bytes left over.
        count: u64,
    } => "ac-payload-trailing", "{count} bytes left over after the last value of the payload";
    /// A length in the payload that its bytes cannot hold.
    Count {
        /// Elements claimed.
        count: u64,
        /// Bytes left for them.
        available: u64,
    } => "ac-count", "{count} elements claimed, {available} bytes left for them";
    /// A truth value that is neither 0 nor 1.
    InvalidBool {
        /// The byte.
        found: u8,
    } => "ac-bool", "a truth value is 0 or 1, not {found}";
    /// The tag of an optional value that is neither 0 nor 1.
    InvalidOption {
        /// The byte.
        found: u8,
    } => "ac-option", "the tag of an optional value is 0 or 1, not {found}";
    /// The number of an alternative that does not exist.
    InvalidVariant {
        /// The number.
        found: u32,
        /// How many alternatives there are.
        n_variants: u32,
    } => "ac-variant", "alternative {found} of {n_variants}";
    /// Text that is not UTF-8.
    InvalidUtf8 => "ac-utf8", "text is not valid UTF-8";
    /// A value that contradicts what the layout says.
    InvalidValue {
        /// What is wrong.
        what: &'static str,
    } => "ac-value", "{what}";
    /// A byte that begins no MessagePack value.
    MetadataMarker {
        /// The byte.
        found: u8,
    } => "ac-metadata-marker", "metadata: byte 0x{found:02X} begins no value";
    /// A metadata value of the wrong type.
    MetadataType {
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    } => "ac-metadata-type", "metadata: {expected} expected, {found} found";
    /// The metadata lack a key they must have.
    MetadataMissing => "ac-metadata-missing", "metadata lack a key that every writer writes";
    /// A metadata key that appears twice (when saving: an extra key that a field has already).
    MetadataDuplicate => "ac-metadata-duplicate", "metadata key appears twice";
    /// The metadata go on after their map (strict).
    MetadataTrailing {
        /// Bytes left over.
        count: u64,
    } => "ac-metadata-trailing", "{count} bytes left over after the metadata";
    /// The metadata would take more memory than their length allows: very many tiny values.
    MetadataTooDense {
        /// Bytes of memory needed so far.
        needed: u64,
        /// Most allowed.
        allowed: u64,
    } => "ac-metadata-dense", "metadata of very many small values: {needed} bytes of memory needed, {allowed} allowed; raise `Limits::metadata_memory` for a file you trust";
    /// A user's type refuses to be written or read.
    Custom {
        /// What it says.
        message: Box<str>,
    } => "ac-custom", "{message}";
    /// Something the payload's layout cannot express.
    Unsupported {
        /// What.
        what: &'static str,
    } => "ac-unsupported", "the payload's layout has no {what}";
    // Version 2.
    /// The checksum of a header of version 2 does not match: it is damaged.
    HeaderChecksum {
        /// Stored in the header.
        expected: u32,
        /// Computed over its bytes.
        actual: u32,
    } => "ac-v2-header-checksum", "checksum of the header does not match: expected {expected:08X}, got {actual:08X}";
    /// The file says that its tensors are stored column by column; every reader refuses that.
    ColumnMajor => "ac-v2-column-major", "the tensors are marked as column-major, which no reader accepts: import the model again";
    /// Everything after the header is one compressed block.
    WholeCompressed {
        /// The algorithm its flag names.
        algorithm: &'static str,
    } => "ac-v2-compressed", "everything after the header is one {algorithm} block: inflate the file first (`v2::Stored`)";
    /// A part does not stand where the format puts it.
    Misplaced {
        /// Which part.
        part: &'static str,
        /// Where the header or the index says it is.
        found: u64,
        /// Where it belongs (in compat mode: before what it cannot be).
        expected: u64,
    } => "ac-v2-misplaced", "{part} at {found}, expected at {expected}";
    /// A tensor whose bytes are not aligned.
    Misaligned {
        /// Declared offset, relative to the data section.
        offset: u64,
        /// What it has to be a multiple of.
        align: u64,
    } => "ac-v2-misaligned", "tensor offset {offset} is not a multiple of {align}";
    /// A padding byte that is not zero (strict).
    Padding => "ac-v2-padding", "padding that is not zero";
    /// Bytes after the footer, or of a damaged one.
    TrailingBytes {
        /// How many.
        count: u64,
    } => "ac-v2-trailing", "{count} bytes follow the tensor data, a footer has 4";
    /// The number of an element type no specification lists (strict, and for writing without a length).
    UnknownDtype {
        /// The number.
        found: u8,
    } => "ac-v2-dtype", "unknown element type {found}";
    /// More dimensions than the format writes.
    TooManyDimensions {
        /// How many.
        found: usize,
    } => "ac-v2-dimensions", "tensor of {found} dimensions, the format allows 8";
    /// A tensor name longer than the format keeps.
    NameTooLong {
        /// Its length.
        len: usize,
    } => "ac-v2-name", "tensor name of {len} bytes, the format keeps 256";
    /// Two tensors of one name.
    DuplicateTensor => "ac-v2-duplicate-tensor", "duplicate tensor name";
    /// The index is not in the order of the names.
    IndexOrder => "ac-v2-order", "tensor index is not sorted by name";
    /// The size of a tensor or of the file does not fit 64 bits.
    SizeOverflow => "ac-v2-overflow", "size overflows 64 bits";
    /// The declared size is not what element type and shape need.
    SizeMismatch {
        /// Declared.
        declared: u64,
        /// From type and shape.
        computed: u64,
    } => "ac-v2-size", "tensor declared as {declared} bytes, its type and shape need {computed}";
    /// No tensor of this name.
    TensorNotFound => "ac-v2-not-found", "tensor not found";
    /// A typed view of other elements.
    DtypeMismatch {
        /// The tensor's type.
        found: tensor_dtype::AprType,
        /// What was asked for.
        expected: &'static str,
    } => "ac-v2-dtype-mismatch", "tensor holds {found}, not {expected}";
    /// The bytes are not aligned in memory for a view without a copy; read them element by element.
    UnalignedView {
        /// Alignment the element type needs.
        align: usize,
    } => "ac-v2-view", "data is not aligned to {align} bytes in memory: read it element by element";
    /// A view of multi-byte elements on a big-endian host; read them element by element.
    ForeignEndian => "ac-v2-endian", "data is little-endian, this machine is not: read it element by element";
    /// Bytes (or elements) given and needed differ.
    DataLength {
        /// Needed.
        needed: u64,
        /// Given.
        given: u64,
    } => "ac-v2-data-length", "{given} given, {needed} needed";
    /// Data for more tensors than were laid out, or for fewer.
    DataCount {
        /// Tensors laid out.
        needed: usize,
        /// Slices given.
        given: usize,
    } => "ac-v2-data-count", "data for {given} tensors given, {needed} needed";
    /// A flag that does not describe the file that is going to be written.
    FlagNotWritten {
        /// The flags concerned.
        flags: crate::v2::Flags,
    } => "ac-v2-flag", "flags {flags:?} cannot be set: what they stand for is not written";
    /// Not JSON.
    JsonSyntax => "ac-v2-json", "invalid JSON";
    /// A JSON object that names a key twice.
    DuplicateKey => "ac-v2-duplicate-key", "key appears twice";
    /// A JSON value of another type.
    JsonType {
        /// What belongs here.
        expected: &'static str,
    } => "ac-v2-json-type", "{expected} expected";
    /// A JSON object lacks a member.
    MissingKey {
        /// Its key.
        key: &'static str,
    } => "ac-v2-missing-key", "`{key}` is missing";
    /// A shard's file name could lead out of the folder of its manifest.
    ShardName => "ac-v2-shard-name", "the file name of a shard is not a plain name";
    /// A shard manifest that contradicts itself.
    ShardManifest {
        /// What does not fit.
        what: &'static str,
    } => "ac-v2-manifest", "shard manifest: {what}";
}
