//! Kinds of errors.

const DOWNLOAD: &str =
    "the file is damaged or cut short: fetch it again, or write it again with the program that made it";

located_error::errors! {
    /// Why a table cannot be read.
    pub struct Error caused by located_error::AnyCause;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// The bytes are no Arrow IPC stream or file: a message breaks a rule of the format, or the file ends inside one.
        Arrow {} = "tb-arrow" (Invalid), "invalid Arrow IPC data" => DOWNLOAD;
        /// The file is no Parquet file, or a page of it cannot be decoded.
        Parquet {} = "tb-parquet" (Invalid), "invalid Parquet data" => DOWNLOAD;
        /// The pages of the file are compressed in a way that is not read: gzip, Brotli or LZO.
        Compression {} = "tb-compression" (Unsupported), "the compression of the Parquet file is not supported"
            => "write it with Snappy, LZ4 or zstd";
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
        ColumnType {} = "tb-type" (Unsupported), "the type of the column is not supported"
            => "leave the column out, or convert it to numbers or text before";
        /// The table, or a batch of it, has other columns than it declared at the beginning.
        Columns {} = "tb-columns" (Invalid), "a batch has other columns than the table" => DOWNLOAD;
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
