//! Why a file or a payload was refused, and where.

mod model;

use alloc::boxed::Box;

use located_error::{Subject, remedy};

pub use self::model::ModelError;
use crate::compression::id::Compression;
use crate::model_type::ModelType;

pub(crate) const WRITER: &str = "report it to the author of the program that wrote it; `apr check --compat` shows whether other readers accept the file";
const SIZE_LIMIT: &str = "if you trust the file, repeat with --no-size-limit";
const SAVED: &str = "save a smaller model, or one file for each part of it";
const PAYLOAD: &str =
    "check with `apr check FILE`: if the checksum matches, the program that wrote the file is at fault";

located_error::errors! {
    /// Why an operation was refused. Offsets count from the start of the file; inside a payload, from the start of its uncompressed
    /// bytes.
    pub struct Error;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// The file is shorter than a header and a checksum. A download or copy was interrupted.
        TooSmall {
            /// Bytes in the file.
            available: u64,
            /// Bytes the shortest file has.
            needed: u64,
        } = "ac-too-small" (Invalid),
            "file too small: expected at least {needed} bytes, found {available}"
            => remedy::FETCH;
        /// An .apr file begins with `APRN` (version 1), or with `APR` and a zero byte or `APR2` (version 2). This one does not.
        Magic {
            /// The first four bytes.
            found: [u8; 4],
        } = "ac-magic" (Invalid),
            "not an .apr file: it begins with [{:02X}, {:02X}, {:02X}, {:02X}], not with \"APRN\" or \"APR\\0\"", found[0], found[1], found[2], found[3]
            => "check that this is the right file";
        /// The file has version 2, which holds named tensors instead of a model, and was opened as version 1.
        Version2 = "ac-second-generation" (Invalid),
            "expected an .apr file of version 1, found version 2, which holds tensors instead of a model"
            => "list its tensors with `apr tensors FILE`; `apr convert` makes a model of tensors whose names and shapes identify one";
        /// The file has a major version that this library does not know. Its layout may differ anywhere, so no part of it is interpreted.
        UnsupportedVersion {
            /// Major and minor version of the file.
            found: (u8, u8),
            /// Newest version known.
            supported: (u8, u8),
        } = "ac-version" (Unsupported),
            "unsupported version {}.{}: the newest supported version is {}.{}", found.0, found.1, supported.0, supported.1
            => "update apr, or have the file written in version 1.0 or 2.0";
        /// The header has a model type that no specification lists, so that the payload cannot be interpreted.
        UnknownModelType {
            /// Its number.
            found: ModelType,
        } = "ac-unknown-type" (Invalid),
            "unknown model type {found}"
            => "`apr inspect FILE` shows what can be read; update apr if the file was made by a newer program";
        /// The file holds a model of another type than requested.
        ModelTypeMismatch {
            /// Asked for.
            expected: ModelType,
            /// In the file (when saving: of the model).
            found: ModelType,
        } = "ac-wrong-type" (Invalid),
            "model type mismatch: expected {expected}, found {found}"
            => "`apr inspect FILE` shows the type";
        /// The header has a compression that no specification lists.
        UnknownCompression {
            /// Its number.
            found: u8,
        } = "ac-compression" (Invalid),
            "unknown compression {found}"
            => "update apr if the file was made by a newer program, else fetch it again";
        /// Header bytes or flags are set that this version of the format reserves. Strict readers refuse them because their meaning would
        /// be lost.
        Reserved = "ac-reserved" (Invalid),
            "reserved header bytes are not zero"
            => WRITER;
        /// A part of the file extends past its end: the file was truncated, or a length in it is wrong.
        Truncated {
            /// Which part.
            part: &'static str,
            /// Bytes it needs.
            needed: u64,
            /// Bytes there are.
            available: u64,
        } = "ac-truncated" (Invalid),
            "{part}: expected {needed} bytes, {available} available"
            => remedy::FETCH;
        /// Bytes between the payload and the checksum belong to no part of the file. Other readers ignore them; strict readers refuse
        /// them, because they can carry anything.
        Unowned {
            /// How many.
            count: u64,
        } = "ac-unowned" (Invalid),
            "{count} bytes between the payload and the checksum belong to no part of the file"
            => WRITER;
        /// The checksum at the end of the file does not match its bytes: the file is corrupted. Every reader refuses it.
        ChecksumMismatch {
            /// Stored in the file.
            expected: u32,
            /// Computed over its bytes.
            actual: u32,
        } = "ac-checksum" (Verification),
            "checksum mismatch: expected {expected:08X}, found {actual:08X}"
            => remedy::FETCH;
        /// The payload is encrypted. Header and metadata are readable, but not authenticated; the model needs its password or a
        /// recipient's key.
        Encrypted = "ac-encrypted" (Unsupported),
            "the payload is encrypted: a password or a recipient's key is required"
            => "give the key: --identity KEYFILE or --ask-password, where the command has them; else `apr decrypt FILE -o OUT` first";
        /// A program asked for a view of the model without a copy of its values, and the payload is compressed.
        Compressed {
            /// How.
            compression: Compression,
        } = "ac-compressed" (Usage),
            "the payload is compressed ({compression}): a view needs an uncompressed payload"
            => "store it uncompressed (`apr train --compression none`, or `SaveOptions` without compression), or load the model";
        /// The file is signed and its signature was not verified. The public key in the file proves nothing: anyone can sign with a key
        /// of their own.
        SignatureUnchecked = "ac-signed" (Verification),
            "the file is signed: verify it with the signer's key, or allow an unverified signature"
            => "verify it with the publisher's key: --signer KEY, where the command has it, else `apr check FILE --signer KEY` before; --allow-unverified \
                reads the file as if it were not signed";
        /// A password or a key was given and the payload is not encrypted. An attacker can replace an encrypted file by a plain one
        /// without any key.
        NotEncrypted = "ac-not-encrypted" (Verification) if "crypto",
            "the payload is plaintext but encryption was required"
            => "get the file from its publisher again; load it without a key only if it was never meant to be encrypted";
        /// A signature was required and the file has none. It may have been removed.
        NotSigned = "ac-not-signed" (Verification) if "crypto",
            "the file is not signed"
            => "get the signed file from its publisher";
        /// The signature does not belong to these bytes and this key: the file was modified after it was signed, or signed by someone
        /// else.
        SignatureInvalid = "ac-signature" (Verification) if "crypto",
            "invalid signature: the file was modified, or signed by another key"
            => remedy::NOT_AS_SIGNED;
        /// The file is signed, but not by one of the trusted keys. Anyone can sign with a key of their own.
        UntrustedSigner = "ac-untrusted-signer" (Verification) if "crypto",
            "signed by an untrusted key"
            => remedy::PUBLISHER_KEY;
        /// The payload does not decrypt. Authenticated decryption cannot tell a wrong password or key from a modified file.
        DecryptionFailed = "ac-decryption" (Verification) if "crypto",
            "decryption failed: wrong password or key, or the file was modified"
            => remedy::WRONG_KEY;
        /// The program that encrypted the payload did not bind it to its header and metadata: those could have been replaced, and the
        /// ciphertext could decrypt to something else under a second key.
        Unbound = "ac-unbound" (Verification) if "crypto",
            "header and metadata are not bound to the encrypted payload and could have been replaced; read it in compat mode if that does not matter"
            => "if header and metadata do not matter, read the file in compat mode; else have it encrypted again";
        /// The decrypted payload is bound to another header, other metadata or another signer than those in the file: they were replaced.
        Rebound = "ac-rebound" (Verification) if "crypto",
            "header, metadata or signer differ from those that the payload was encrypted with"
            => remedy::FETCH;
        /// The request needs authenticated metadata. These are neither signed by a trusted key nor bound to a payload that is encrypted
        /// with a password: anyone can have written them.
        Unauthenticated = "ac-unauthenticated" (Verification) if "crypto",
            "the metadata are not authenticated: require the signature of a trusted key, or give the password that the file is encrypted with"
            => "get the publisher's public key over a channel you trust and require a signature by it";
        /// The metadata are authenticated but have no usable public key for encrypted requests to the model: `custom.inference_pub_key`
        /// must be a key line `apr-public-1...` or 64 hexadecimal digits.
        InferenceKey {
            /// What is wrong with it.
            what: &'static str,
        } = "ac-inference-key" (Verification) if "crypto",
            "{what}: ask the model's owner for a file with a public key"
            => "ask the model's owner for a file with a public key";
        /// A part of the model is longer than the format can express: lengths in version 1 have 32 bits. Other programs write such a file
        /// anyway, and lose the model.
        TooLargeForFormat {
            /// Which part.
            part: &'static str,
            /// Its length.
            len: u64,
            /// Longest the format can say.
            limit: u64,
        } = "ac-too-large" (Usage),
            "{part} too large: {len} bytes, the format allows {limit}"
            => SAVED;
        /// The file needs more resources than any model is expected to. Limits keep a malicious file from exhausting memory.
        Limit {
            /// What is limited.
            what: &'static str,
            /// Declared or counted.
            found: u64,
            /// Largest accepted.
            limit: u64,
        } = "ac-limit" (Invalid),
            "{what}: {found}, the limit is {limit}"
            => "if you trust the file, read it with the library and higher `Limits`";
        /// A small compressed payload declares a very large size. A malicious file of a few kilobytes could exhaust memory this way; a
        /// model of mostly zeros looks the same.
        Expansion {
            /// Bytes after decompression, as declared.
            declared: u64,
            /// Most accepted for this file.
            allowed: u64,
        } = "ac-expansion" (Invalid),
            "the payload expands to {declared} bytes, the limit for a file of this size is {allowed}; raise `Limits::expansion` for a file you trust"
            => "if you trust the file, repeat with --no-size-limit; beyond 1 GiB, have it stored without compression";
        /// The payload consists of so many small parts that the model would take many times the length of the file in memory.
        ModelMemory {
            /// Bytes asked for so far.
            needed: u64,
            /// Most accepted for this file.
            allowed: u64,
        } = "ac-model-memory" (Invalid),
            "the payload's values take {needed} bytes of memory, the limit for a file of this size is {allowed}; raise `Limits::model_memory` for a file you trust"
            => SIZE_LIMIT;
        /// The uncompressed size in the header is not that of the payload.
        UncompressedSize {
            /// Declared in the header.
            declared: u64,
            /// Found so far.
            actual: u64,
        } = "ac-uncompressed-size" (Invalid),
            "uncompressed size: the header declares {declared} bytes, the payload has {actual}"
            => WRITER;
        /// The compressed payload is invalid.
        Decompression {
            /// Which algorithm.
            algorithm: &'static str,
            /// The message.
            reason: &'static str,
        } = "ac-decompression" (Invalid),
            "{algorithm} payload: {reason}"
            => PAYLOAD;
        /// This program was built without a feature that is needed.
        FeatureDisabled {
            /// The cargo feature that can.
            feature: &'static str,
        } = "ac-feature" (Unsupported),
            "this build lacks the feature `{feature}`"
            => "build apr with its default features";
        /// There is not enough memory for the model.
        OutOfMemory {
            /// Bytes asked for.
            bytes: u64,
        } = "ac-memory" (Io),
            "not enough memory for {bytes} bytes"
            => remedy::MEMORY;
        /// The payload ends inside a value. It is corrupted, has another layout than the metadata state, or does not hold the model type
        /// of the header.
        PayloadEnd {
            /// Bytes the value needs.
            needed: u64,
            /// Bytes left.
            available: u64,
        } = "ac-payload-end" (Invalid),
            "the payload ends inside a value: expected {needed} bytes, found {available}"
            => PAYLOAD;
        /// The payload continues after its last value. Other readers ignore these bytes; strict readers refuse them, because they are a
        /// sign of another layout.
        PayloadTrailing {
            /// Bytes left over.
            count: u64,
        } = "ac-payload-trailing" (Invalid),
            "{count} bytes after the last value of the payload"
            => WRITER;
        /// A list declares more elements than there are bytes left. It is refused before memory is allocated.
        Count {
            /// Elements claimed.
            count: u64,
            /// Bytes left for them.
            available: u64,
        } = "ac-count" (Invalid),
            "{count} elements declared, {available} bytes left"
            => PAYLOAD;
        /// A Boolean value in the payload is neither 0 nor 1.
        InvalidBool {
            /// The byte.
            found: u8,
        } = "ac-bool" (Invalid),
            "invalid bool byte {found}"
            => PAYLOAD;
        /// The tag of an optional value in the payload is neither 0 nor 1.
        InvalidOption {
            /// The byte.
            found: u8,
        } = "ac-option" (Invalid),
            "invalid option tag {found}"
            => PAYLOAD;
        /// The payload has a variant index that its enum does not have.
        InvalidVariant {
            /// The number.
            found: u32,
            /// How many alternatives there are.
            n_variants: u32,
        } = "ac-variant" (Invalid),
            "invalid enum variant {found} (expected < {n_variants})"
            => PAYLOAD;
        /// A string in the file is not valid UTF-8.
        InvalidUtf8 = "ac-utf8" (Invalid),
            "string is not valid UTF-8"
            => PAYLOAD;
        /// A value in the file contradicts others or is out of its range.
        InvalidValue {
            /// What is wrong.
            what: &'static str,
        } = "ac-value" (Invalid),
            "{what}"
            => PAYLOAD;
        /// A byte of the metadata is no MessagePack marker where a value must begin.
        MetadataMarker {
            /// The byte.
            found: u8,
        } = "ac-metadata-marker" (Invalid),
            "metadata: byte 0x{found:02X} is not a MessagePack marker"
            => remedy::FETCH;
        /// A field of the metadata has another type than the format specifies.
        MetadataType {
            /// What belongs there.
            expected: &'static str,
            /// What is there.
            found: &'static str,
        } = "ac-metadata-type" (Invalid),
            "metadata: expected {expected}, found {found}"
            => WRITER;
        /// The metadata lack a key that every writer writes.
        MetadataMissing = "ac-metadata-missing" (Invalid),
            "metadata: a required key is missing"
            => WRITER;
        /// A metadata key occurs twice: readers that use the first value and readers that use the last would disagree.
        MetadataDuplicate = "ac-metadata-duplicate" (Invalid),
            "metadata: duplicate key"
            => WRITER;
        /// Bytes follow the metadata within their part of the file.
        MetadataTrailing {
            /// Bytes left over.
            count: u64,
        } = "ac-metadata-trailing" (Invalid),
            "{count} bytes after the metadata"
            => WRITER;
        /// The metadata consist of very many small values, which take many times their length in memory.
        MetadataTooDense {
            /// Bytes of memory needed so far.
            needed: u64,
            /// Most allowed.
            allowed: u64,
        } = "ac-metadata-dense" (Invalid),
            "the metadata take {needed} bytes of memory, the limit is {allowed}; raise `Limits::metadata_memory` for a file you trust"
            => SIZE_LIMIT;
        /// The type that the payload is decoded to, or encoded from, refuses it.
        Custom {
            /// The message.
            message: Box<str>,
        } = "ac-custom" (Invalid),
            "{message}"
            => PAYLOAD;
        /// A type has parts that the payload layout cannot express.
        Unsupported {
            /// What.
            what: &'static str,
        } = "ac-unsupported" (Usage),
            "the payload layout has no {what}"
            => "store those parts in another way";
        /// The operating system refused to read or write the file.
        Io {
            /// Its error.
            error: std::io::Error,
        } = "ac-io" (Io) if "std" from error,
            "cannot read or write the file"
            => remedy::PATH;
    }

    wrapped {
        /// An error of version 2 of the format.
        V2(crate::v2::Error);
        /// A model's constructor refuses the decoded values.
        Model(ModelError);
        /// An error of a key, a cipher or the source of randomness.
        Crypto(Box<apr_crypto::Error>) if "crypto";
        /// The file cannot be opened or replaced.
        File(durable_file::Error) if "std";
    }
}

impl Error {
    /// The error of a model's constructor about the values of a payload.
    #[must_use]
    pub fn model(error: impl located_error::Located + Send + Sync + 'static) -> Self {
        ModelError(Box::new(error)).into()
    }

    /// The same error at another offset, in place of one that was relative to a part.
    pub(crate) fn moved_to(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// The same error about the outermost subject.
    pub(crate) fn about(mut self, subject: Subject) -> Self {
        self.0.subject = Some(subject);
        self
    }
}

impl ErrorKind {
    /// The kind of an error of version 2 alone.
    #[must_use]
    pub const fn v2(&self) -> Option<&crate::v2::ErrorKind> {
        match self {
            Self::V2(error) => Some(error.kind()),
            _ => None,
        }
    }

    pub(crate) fn at(self, offset: u64) -> Error {
        Error::from(self).at(offset)
    }
}

impl From<crate::v2::ErrorKind> for Error {
    fn from(kind: crate::v2::ErrorKind) -> Self {
        crate::v2::Error::from(kind).into()
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        ErrorKind::Io { error }.into()
    }
}

#[cfg(feature = "crypto")]
impl From<apr_crypto::Error> for Error {
    fn from(error: apr_crypto::Error) -> Self {
        Box::new(error).into()
    }
}

#[cfg(feature = "crypto")]
impl From<read_at::Error> for Error {
    fn from(error: read_at::Error) -> Self {
        apr_crypto::Error::from(error).into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_complete() {
        let problems = located_error::problems(ErrorKind::TABLE, "ac-");
        assert!(problems.is_empty(), "{problems:?}");
        let problems = located_error::problems(crate::v2::ErrorKind::TABLE, "ac-v2-");
        assert!(problems.is_empty(), "{problems:?}");
    }
}
