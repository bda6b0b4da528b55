//! Kinds of errors.

const DOWNLOAD: &str =
    "the file is damaged or cut short: fetch it again and compare its SHA-256 with the publisher's";

located_error::errors! {
    /// Why an archive or a member cannot be read. Offsets count from the start of the source.
    pub struct Error caused by located_error::AnyCause;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// There is no end record of a ZIP archive in the last 64 KiB.
        NoEnd {} = "zc-end" (Invalid), "not a ZIP archive: no end record" => "the file is cut short, or it is none: fetch it again and compare its SHA-256 with the publisher's";
        /// The central directory is not where the end record says, nor before it.
        NoDirectory {} = "zc-directory" (Invalid), "the central directory is missing" => DOWNLOAD;
        /// The member's local header or its data are not in the file.
        NoData {} = "zc-data" (Invalid), "the data of the member are missing" => DOWNLOAD;
        /// The method of compression is not supported: neither stored nor deflated.
        Method {
            /// Its number.
            method: u16,
        } = "zc-method" (Unsupported), "compression method {method} is not supported"
            => "unpack the archive with the program that created it and pack it again, stored or deflated";
        /// The member's data are no deflate stream.
        Deflate {} = "zc-deflate" (Invalid), "invalid deflate stream" => DOWNLOAD;
        /// The member has fewer bytes than the directory declares.
        Short {
            /// The size that is declared.
            expected: u64,
            /// The bytes that are there.
            found: u64,
        } = "zc-short" (Invalid), "expected {expected} bytes, found {found}" => DOWNLOAD;
        /// The data of a compressed file are damaged, or need more memory than is allowed.
        Damaged {} = "zc-damaged" (Invalid), "the compressed data cannot be decompressed" => DOWNLOAD;
        /// Bytes follow the compressed data, and are no compressed data.
        Trailing {} = "zc-after" (Invalid), "bytes after the compressed data" => DOWNLOAD;
        /// The decoder is a feature of this library that was left out.
        NoDecoder {
            /// The program whose format it is.
            compression: &'static str,
        } = "zc-decoder" (Unsupported), "no decoder for {compression} is compiled in" => "decompress the file first";
        /// A limit was reached.
        Limit {
            /// The field of `Limits`, or `max` of the call.
            limit: &'static str,
            /// Its value.
            allowed: u64,
            /// What the archive declares.
            found: u64,
        } = "zc-limit" (Invalid), "{found} is more than the limit `{limit}` of {allowed}"
            => "if you trust the file, raise the limit";
        /// Memory for the directory or a member could not be allocated.
        OutOfMemory {} = "zc-memory" (Io), "cannot allocate memory for the archive" => "close other programs";
        /// The source failed.
        Read {} = "zc-read" (Io), "cannot read the archive" => "check that the file can be read";
    }
}

impl From<read_at::Error> for Error {
    fn from(cause: read_at::Error) -> Self {
        let mut error = Self::from(ErrorKind::Read {});
        error.0.cause = Some(alloc::boxed::Box::new(cause));
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(located_error::problems(ErrorKind::TABLE, "zc-"), [""; 0]);
    }
}
