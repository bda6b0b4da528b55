//! Kinds of errors.

const DOWNLOAD: &str =
    "the file is damaged or cut short: fetch it again, or write it again with the program that made it";

#[cfg(feature = "ald")]
use located_error::remedy;

located_error::errors! {
    /// Why a table cannot be read.
    pub struct Error caused by located_error::AnyCause;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// The bytes are no Arrow IPC stream or file: a message breaks a rule of the format, or the file ends inside one.
        Arrow {} = "tb-arrow" (Invalid), "invalid Arrow IPC data" => DOWNLOAD;
        /// Record batches of columns with dictionaries (categorical columns) come before the dictionaries, as in the files that polars 2 writes.
        /// The file is sound; as a stream, in which dictionaries come first, the same table is read.
        LateDictionaries {} = "tb-late-dictionaries" (Unsupported), "Arrow IPC files with record batches before their dictionaries are not supported"
            => "write the table as a stream (`write_ipc_stream` of polars) or as Parquet";
        /// The file is no Parquet file, or a page of it cannot be decoded.
        Parquet {} = "tb-parquet" (Invalid), "invalid Parquet data" => DOWNLOAD;
        /// Parts of the footer of a Parquet file say different things about its columns or rows: values would be read as another type, or shifted
        /// against those of other columns.
        ParquetFooter {
            /// The contradiction.
            what: &'static str,
        } = "tb-parquet-footer" (Invalid), "the footer of the Parquet file contradicts itself: {what}" => DOWNLOAD;
        /// The pages of the file are compressed in a way that is not read: Brotli or LZO.
        Compression {} = "tb-compression" (Unsupported), "the compression of the Parquet file is not supported"
            => "write it with Snappy, gzip, LZ4 or zstd";
        /// A page holds byte arrays whose lengths are encoded as differences.
        Encoding {} = "tb-encoding" (Unsupported), "the encoding of a page is not supported: delta lengths of byte arrays"
            => "write the file with plain or dictionary encoding of strings";
        /// The footer of the file is encrypted.
        Encrypted {} = "tb-encrypted" (Unsupported), "the Parquet file is encrypted" => "write it without encryption";
        /// The file ends inside a message.
        Truncated {
            /// Bytes that the message takes.
            expected: u64,
            /// Bytes that the file still has.
            found: u64,
        } = "tb-truncated" (Invalid), "truncated: expected {expected} bytes, found {found}" => DOWNLOAD;
        /// A message or the pages of the columns, also when decompressed, are larger than this reader holds at once.
        Limit {
            /// What is limited.
            what: &'static str,
            /// The limit.
            allowed: u64,
            /// What the file declares.
            found: u64,
        } = "tb-limit" (Invalid), "{what} of {found} bytes is more than the limit of {allowed}"
            => "write the table in smaller batches or row groups";
        /// The values of a column are neither numbers nor booleans nor texts: dates, decimals, lists and structures are not read.
        ColumnType {
            /// The name of the type.
            found: &'static str,
        } = "tb-type" (Unsupported), "columns of type {found} are not supported"
            => "leave the column out, or convert it to numbers or text before";
        /// The table, or a batch of it, has other columns than it declared at the beginning.
        Columns {} = "tb-columns" (Invalid), "a batch has other columns than the table" => DOWNLOAD;
        /// A part of an `.ald` dataset breaks a rule of the format.
        Ald {
            /// Which.
            what: &'static str,
        } = "tb-ald" (Invalid) if "ald", "invalid .ald dataset: {what}" => DOWNLOAD;
        /// The major version of an `.ald` dataset is not one that is read.
        AldVersion {
            /// As stored.
            found: u8,
        } = "tb-ald-version" (Unsupported) if "ald", "version {found} of .ald datasets is not supported" => "write it with alimentar 0.2 to 0.4";
        /// The type of an `.ald` dataset is none that the format defines.
        AldType {
            /// As stored.
            found: u16,
        } = "tb-ald-type" (Unsupported) if "ald", "datasets of type {found:#06x} are not supported" => "write it as a tabular dataset";
        /// The compression of an `.ald` dataset is none that the format defines.
        AldCompression {
            /// As stored.
            found: u8,
        } = "tb-ald-compression" (Unsupported) if "ald", "compression {found} of .ald datasets is not supported"
            => "write it with zstd, LZ4 or without compression";
        /// The checksum at the end of an `.ald` dataset matches neither CRC-32 nor the variant that alimentar computes: the file is corrupted.
        AldChecksum {
            /// As stored.
            expected: u32,
            /// As alimentar computes it.
            found: u32,
        } = "tb-ald-checksum" (Verification) if "ald", "checksum mismatch: expected {expected:08X}, found {found:08X}" => remedy::FETCH;
        /// The header of an `.ald` dataset declares another number of rows than there are.
        AldRows {
            /// As declared.
            declared: u64,
            /// How many there are, or were until then.
            found: u64,
        } = "tb-ald-rows" (Invalid) if "ald", "the dataset declares {declared} rows, and has {found}" => DOWNLOAD;
        /// The columns of the payload of an `.ald` dataset are not those that the part before it declares.
        AldSchema {} = "tb-ald-schema" (Invalid) if "ald", "the payload has other columns than the dataset declares" => DOWNLOAD;
        /// The payload of an `.ald` dataset is encrypted. Header, metadata and names of the columns are readable, but not authenticated.
        AldEncrypted {} = "tb-ald-encrypted" (Unsupported) if "ald", "the dataset is encrypted: a password or a recipient's key is required"
            => "give the key: --identity KEYFILE, or a password with --ask-password or --password-file";
        /// A password or a key was given and the `.ald` dataset is not encrypted. An attacker can replace an encrypted file by a plain one
        /// without any key.
        AldNotEncrypted {} = "tb-ald-not-encrypted" (Verification) if "ald", "the dataset is plaintext but encryption was required"
            => "get the file from its publisher again; read it without a key only if it was never meant to be encrypted";
        /// The `.ald` dataset is signed and no key was given to verify the signature with. The public key in the file proves nothing: anyone
        /// can sign with a key of their own.
        AldSigned {} = "tb-ald-signed" (Verification) if "ald", "the dataset is signed: verify it with the signer's key"
            => "verify it with the publisher's key (--signer KEY); --any-signer only shows that it was not changed";
        /// A signature was required and the `.ald` dataset has none. It may have been removed.
        AldNotSigned {} = "tb-ald-not-signed" (Verification) if "ald", "the dataset is not signed"
            => "get the signed file from its publisher; a dataset that was never signed can be converted first: apr convert DATA.ald DATA.parquet";
        /// The signature does not belong to these bytes and this key: the file was modified after it was signed, or signed by someone else.
        AldSignature {} = "tb-ald-signature" (Verification) if "ald", "invalid signature: the dataset was modified, or signed by another key"
            => remedy::NOT_AS_SIGNED;
        /// The `.ald` dataset is signed, but not by one of the trusted keys. Anyone can sign with a key of their own.
        AldUntrusted {} = "tb-ald-untrusted-signer" (Verification) if "ald", "signed by an untrusted key" => remedy::PUBLISHER_KEY;
        /// The payload does not decrypt. Authenticated decryption cannot tell a wrong password or key from a modified file.
        AldDecryption {} = "tb-ald-decryption" (Verification) if "ald", "decryption failed: wrong password or key, or the dataset was modified"
            => remedy::WRONG_KEY;
        /// A payload that is encrypted or signed, or a chunk, is held in memory, and there is not as much.
        AldMemory {
            /// Bytes.
            bytes: u64,
        } = "tb-ald-memory" (Io) if "ald", "there is no memory for {bytes} bytes" => "decrypt and convert it on a larger machine";
        /// Two columns that are to be written have one name: readers find columns by their names.
        DuplicateColumn {} = "tb-duplicate-column" (Invalid), "two columns have one name" => "give each column a name of its own";
        /// The output failed.
        Write {} = "tb-write" (Io), "cannot write the table" => "check that there is space, and that the file can be written";
        /// The source failed.
        Read {} = "tb-read" (Io), "cannot read the table" => "check that the file can be read";
    }
}

impl Error {
    pub(crate) fn caused(kind: ErrorKind, cause: impl core::error::Error + Send + Sync + 'static) -> Self {
        let mut error = Self::from(kind);
        error.0.cause = Some(Box::new(cause));
        error
    }
}

/// Refuses a size above a limit.
pub(crate) fn within(what: &'static str, found: u64, allowed: u64) -> Result<(), Error> {
    match found <= allowed {
        true => Ok(()),
        false => Err(ErrorKind::Limit { what, allowed, found }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(located_error::problems(ErrorKind::TABLE, "tb-"), [""; 0]);
    }
}
