//! Errors of sealed files.

use alloc::boxed::Box;

use located_error::remedy;

located_error::errors! {
    /// Why an operation was refused. Offsets count from the start of the sealed file.
    pub struct Error;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// A sealed file begins with the bytes 89 41 50 52 53 0D 0A 1A. This one does not.
        Magic = "ac-sealed-magic" (Invalid),
            "not a sealed file: wrong magic bytes"
            => "check that this is the right file; `apr inspect FILE` says what it is";
        /// The sealed file has a version that this library does not know, so no part of it is interpreted.
        UnsupportedVersion {
            /// Version of the file.
            found: u16,
        } = "ac-sealed-version" (Unsupported),
            "unsupported version {found} of a sealed file: the newest supported version is 1"
            => "update apr, or have the file sealed in version 1";
        /// The sealed file is encrypted with algorithms that this library does not know.
        UnknownSuite {
            /// Its number.
            found: u16,
        } = "ac-sealed-suite" (Unsupported),
            "unknown cipher suite {found}: a newer release may support it"
            => "update apr, or have the file sealed with suite 1";
        /// The sealed file requires something of its reader that this library does not know. Ignoring it could mean ignoring a
        /// protection.
        UnknownFlags {
            /// The unknown ones among the critical flags.
            found: u32,
        } = "ac-sealed-flags" (Unsupported),
            "unknown critical flags {found:#06x}: a newer release may support them"
            => "update apr";
        /// The parts that the header describes are longer or shorter than the file: it was truncated, or bytes were appended.
        FileLength {
            /// What the header's lengths add up to.
            declared: u64,
            /// Bytes in the file.
            available: u64,
        } = "ac-sealed-length" (Invalid),
            "the header describes a sealed file of {declared} bytes, found {available}"
            => remedy::FETCH;
        /// Fields in the header of the sealed file contradict each other.
        Header {
            /// What does not fit.
            what: &'static str,
        } = "ac-sealed-header" (Invalid),
            "header of the sealed file: {what}"
            => remedy::FETCH;
        /// The list of tensors and other parts is malformed: a name is missing or occurs twice, or the parts are not as long as the
        /// payload. In a file that opened, its author wrote it so.
        Directory {
            /// What does not fit.
            what: &'static str,
        } = "ac-sealed-directory" (Invalid),
            "directory of the sealed file: {what}"
            => "report it to the author of the program that sealed it";
        /// The sealed file has two slots for its list of recipients, and neither is valid. An interrupted `apr rekey` leaves one of them
        /// valid, so the file was corrupted otherwise.
        KeySlots = "ac-sealed-slots" (Verification),
            "neither key slot of the sealed file is valid"
            => remedy::FETCH;
        /// A sealed file is encrypted, signed or both. With neither, no modification would be detected.
        Unprotected = "ac-sealed-unprotected" (Verification),
            "neither encrypted nor signed"
            => "name a recipient, a password or a signing key; a file that says it has none of them was tampered with";
        /// The file is encrypted with a password and a key was given, or the other way round.
        WrongKeyType {
            /// What opens it.
            expected: &'static str,
        } = "ac-sealed-lock" (Usage),
            "wrong type of key: the file opens with {expected}"
            => "`apr inspect FILE` shows what opens it";
        /// A recipient's key is tried on every stanza of a sealed file, and this one has more of them than the limit: it is malicious, or
        /// has very many recipients.
        TooManyStanzas {
            /// Stanzas of the file.
            found: u64,
            /// Most accepted.
            limit: u64,
        } = "ac-sealed-stanzas" (Verification),
            "{found} stanzas, the limit is {limit}"
            => "if you trust the source of the file, raise the limit: --max-recipients N";
        /// The list of recipients has a fixed capacity, chosen when the file was sealed, which is too small for so many.
        SlotsFull {
            /// Bytes the stanzas need.
            needed: u64,
            /// Bytes there are.
            available: u64,
        } = "ac-sealed-room" (Usage),
            "key slots too small: the stanzas take {needed} bytes, {available} available"
            => "remove recipients, or seal the file again with more capacity";
        /// A stanza of a sealed file does not name its recipient. This file was sealed without the list of recipients, or by a release
        /// that does not write one.
        RecipientsUnlisted = "ac-sealed-unlisted" (Usage),
            "the file does not list its recipients: none can be removed by name"
            => "name those who are to stay: --remove-others with --recipient for each of them";
        /// None of the recipients that the sealed file lists has the key or fingerprint that was given.
        RecipientUnknown = "ac-sealed-recipient" (Usage),
            "no listed recipient has this key"
            => "`apr inspect FILE --identity KEYFILE` lists them";
        /// The sealed file lists a recipient with this key already: a second entry would not open it for anyone else.
        RecipientListed = "ac-sealed-recipient-listed" (Usage),
            "this key is one of a recipient already"
            => "leave it out: its owner can open the file; `apr inspect FILE --identity KEYFILE` lists the recipients";
        /// All recipients of the sealed file were to be removed: its content could never be read again.
        NoRecipientLeft = "ac-sealed-no-recipient" (Usage),
            "no recipient would be left"
            => "keep at least one recipient: remove fewer, or add --recipient KEY; to destroy the file, delete it";
        /// The signature of the file covers the list of its recipients, so that only the signer can change it.
        RecipientsBound = "ac-sealed-bound" (Usage),
            "the list of recipients is signed: changing it needs the signing key of the file"
            => "give the key that signed the file, or ask its owner";
        /// Header bytes or flags are set that this version of the format reserves. Strict readers refuse them because their meaning would
        /// be lost.
        Reserved = "ac-reserved" (Invalid),
            "reserved header bytes are not zero"
            => "report it to the author of the program that sealed the file";
        /// The payload is encrypted. Header and metadata are readable, but not authenticated; the model needs its password or a
        /// recipient's key.
        Encrypted = "ac-encrypted" (Unsupported),
            "the payload is encrypted: a password or a recipient's key is required"
            => "give the key: --identity KEYFILE or --ask-password, where the command has them; else `apr decrypt FILE -o OUT` first";
        /// The file is signed and its signature was not verified. The public key in the file proves nothing: anyone can sign with a key
        /// of their own.
        SignatureUnchecked = "ac-signed" (Verification),
            "the file is signed: verify it with the signer's key, or allow an unverified signature"
            => "verify it with the publisher's key (--signer KEY), or add --allow-unverified to read the file as if it were not signed";
        /// A password or a key was given and the payload is not encrypted. An attacker can replace an encrypted file by a plain one
        /// without any key.
        NotEncrypted = "ac-not-encrypted" (Verification),
            "the payload is plaintext but encryption was required"
            => "get the file from its publisher again; load it without a key only if it was never meant to be encrypted";
        /// A signature was required and the file has none. It may have been removed.
        NotSigned = "ac-not-signed" (Verification),
            "the file is not signed"
            => "get the signed file from its publisher";
        /// The signature does not belong to these bytes and this key: the file was modified after it was signed, or signed by someone
        /// else.
        SignatureInvalid = "ac-signature" (Verification),
            "invalid signature: the file was modified, or signed by another key"
            => remedy::NOT_AS_SIGNED;
        /// The file is signed, but not by one of the trusted keys. Anyone can sign with a key of their own.
        UntrustedSigner = "ac-untrusted-signer" (Verification),
            "signed by an untrusted key"
            => remedy::PUBLISHER_KEY;
        /// The payload does not decrypt. Authenticated decryption cannot tell a wrong password or key from a modified file.
        DecryptionFailed = "ac-decryption" (Verification),
            "decryption failed: wrong password or key, or the file was modified"
            => remedy::WRONG_KEY;
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
        /// There is not enough memory for the model.
        OutOfMemory {
            /// Requested bytes.
            bytes: u64,
        } = "ac-memory" (Io),
            "not enough memory for {bytes} bytes"
            => remedy::MEMORY;
        /// A value in the file contradicts others or is out of its range.
        InvalidValue {
            /// What is wrong.
            what: &'static str,
        } = "ac-value" (Invalid),
            "{what}"
            => remedy::FETCH;
        /// A size does not fit into 64 bits.
        SizeOverflow = "ac-v2-overflow" (Invalid),
            "size overflows 64 bits"
            => remedy::FETCH;
        /// No tensor has this name.
        TensorNotFound = "ac-v2-not-found" (Usage),
            "tensor not found"
            => remedy::TENSOR_NAMES;
        /// The data of a tensor have another length than was laid out, or the file changed while it was read.
        DataLength {
            /// Needed.
            needed: u64,
            /// Given.
            given: u64,
        } = "ac-v2-data-length" (Invalid),
            "data length: expected {needed}, found {given}"
            => remedy::QUIET;
        /// The operating system refused to read or write the file.
        Io {
            /// Its error.
            error: std::io::Error,
        } = "ac-io" (Io) if "std" from error,
            "cannot read or write the file"
            => remedy::PATH;
    }

    wrapped {
        /// An error of a key, a cipher, a tree hash or the source of the bytes.
        Crypto(Box<apr_crypto::Error>);
        /// The file cannot be opened or replaced.
        File(durable_file::Error) if "std";
    }
}

impl ErrorKind {
    pub(crate) fn at(self, offset: u64) -> Error {
        Error::from(self).at(offset)
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        ErrorKind::Io { error }.into()
    }
}

impl From<apr_crypto::Error> for Error {
    fn from(error: apr_crypto::Error) -> Self {
        Box::new(error).into()
    }
}

impl From<read_at::Error> for Error {
    fn from(error: read_at::Error) -> Self {
        apr_crypto::Error::from(error).into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete() {
        let problems = located_error::problems(ErrorKind::TABLE, "ac-");
        assert!(problems.is_empty(), "{problems:?}");
    }
}
