//! Repairs headers that every reader refuses although their meaning is clear.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use json_scan::{Check, Escape, Scanner, push_string};

use crate::error::{Error, ErrorKind};
use crate::grammar::{METADATA_KEY, skip_value};
use crate::header::{Header, LENGTH_FIELD};
use crate::limits::ReadOptions;

/// Alignment of the data section, as writers give it.
const ALIGNMENT: u64 = 8;

/// White space and the zero bytes with which some writers pad a header.
const PADDING: [char; 5] = ['\0', ' ', '\t', '\n', '\r'];

/// A header that takes the place of a defective one, and the data section that it describes.
///
/// Repaired are values of `__metadata__` that are not strings, which become their JSON text; a header that is padded with zero bytes; a
/// data section that does not begin on a multiple of 8 bytes; and bytes after the last tensor, which are left out. Types, shapes and
/// offsets of tensors are never changed.
///
/// ```
/// use st_core::{Change, ReadOptions, Repair};
///
/// let text = br#"{"__metadata__":{"steps":5},"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
/// let file = [&(text.len() as u64).to_le_bytes()[..], text, &[7]].concat();
/// let repair = Repair::new(&file, file.len() as u64, &ReadOptions::STRICT)?;
/// assert_eq!(repair.header().metadata().and_then(|metadata| metadata.get("steps")), Some("5"));
/// assert_eq!(repair.changes(), [Change::MetadataValue { key: "steps".into(), found: "a number" }]);
/// # Ok::<(), st_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Repair {
    header: Header,
    bytes: Vec<u8>,
    data: Range<u64>,
    changes: Vec<Change>,
}

/// A defect that was repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A value of the metadata was not a string.
    MetadataValue {
        /// Its key.
        key: String,
        /// Type of the value.
        found: &'static str,
    },
    /// The header was padded with zero bytes.
    ZeroPadding {
        /// Their number.
        count: u64,
    },
    /// The data section did not begin on a multiple of 8 bytes.
    Alignment {
        /// Its first byte.
        from: u64,
    },
    /// Bytes after the last tensor.
    TrailingBytes {
        /// Their number.
        count: u64,
    },
}

impl Change {
    /// A stable identifier.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::MetadataValue { .. } => "metadata-value",
            Self::ZeroPadding { .. } => "zero-padding",
            Self::Alignment { .. } => "alignment",
            Self::TrailingBytes { .. } => "trailing-bytes",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MetadataValue { key, found } => {
                write!(f, "the metadata value of {key:?} was {found} and is now its JSON text")
            }
            Self::ZeroPadding { count } => {
                write!(f, "zero bytes at the end of the header are now spaces: {count}")
            }
            Self::Alignment { from } => {
                write!(f, "the data began at byte {from}, which is not a multiple of {ALIGNMENT}")
            }
            Self::TrailingBytes { count } => write!(f, "bytes after the last tensor are left out: {count}"),
        }
    }
}

impl Repair {
    /// Repairs the header of a file of `file_len` bytes. `prefix` holds the length field and the JSON text, and, if the file is longer,
    /// the eight bytes that follow them.
    ///
    /// # Errors
    ///
    /// Those of [`Header::from_prefix`] for what cannot be repaired, or not in one way only: [`ErrorKind::IncompleteFile`] for
    /// a file that was cut, and for one with fewer than eight bytes too many of which the first in the data section are spaces, which may be padding of the header.
    pub fn new(prefix: &[u8], file_len: u64, options: &ReadOptions) -> Result<Self, Error> {
        let Some((first8, rest)) = prefix.split_first_chunk::<8>() else {
            return Err(ErrorKind::HeaderTooSmall { available: prefix.len() as u64 }.into());
        };
        let len = Header::declared_len(*first8, file_len, options)?;
        let split = usize::try_from(len).ok().and_then(|len| rest.split_at_checked(len));
        let Some((text, next)) = split else {
            let kind = ErrorKind::InvalidHeaderLength { len, available: rest.len() as u64 };
            return Err(Error::from(kind).at(0));
        };
        let text = core::str::from_utf8(text).map_err(|error| {
            Error::from(ErrorKind::InvalidUtf8).at(LENGTH_FIELD + error.valid_up_to() as u64)
        })?;
        let mut changes = Vec::new();
        let padded = text.trim_end_matches(PADDING);
        let zeros = text.get(padded.len()..).unwrap_or_default().matches('\0').count() as u64;
        let mut text = with_text_values(padded, &mut changes)?;
        if zeros > 0 {
            changes.push(Change::ZeroPadding { count: zeros });
        }
        let old_start = LENGTH_FIELD + len;
        if !old_start.is_multiple_of(ALIGNMENT) {
            changes.push(Change::Alignment { from: old_start });
        }
        while !(LENGTH_FIELD + text.len() as u64).is_multiple_of(ALIGNMENT) {
            text.push(' ');
        }
        let bytes = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
        let new_start = bytes.len() as u64;
        // No overflow: the header lies inside the file.
        let mut data_len = file_len - old_start;
        let read = |data_len: u64| Header::from_prefix(&bytes, new_start.saturating_add(data_len), options);
        let header = match read(data_len) {
            Err(error) => match error.kind() {
                ErrorKind::IncompleteFile { expected, actual } if actual > expected => {
                    let count = actual - expected;
                    if may_be_padding(old_start, count, next) {
                        let expected = file_len - count;
                        return Err(ErrorKind::IncompleteFile { expected, actual: file_len }.into());
                    }
                    changes.push(Change::TrailingBytes { count });
                    data_len -= count;
                    read(data_len)?
                }
                // In lengths of the old file, whose header may be shorter or longer than the new one.
                ErrorKind::IncompleteFile { expected, .. } => {
                    let expected = expected.saturating_sub(new_start).saturating_add(old_start);
                    return Err(ErrorKind::IncompleteFile { expected, actual: file_len }.into());
                }
                _ => return Err(error),
            },
            Ok(header) => header,
        };
        Ok(Self { header, bytes, data: old_start..old_start + data_len, changes })
    }

    /// The repaired header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Its bytes, with the length field: what the new file begins with.
    #[must_use]
    pub fn header_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Range of the data section in the old file.
    #[must_use]
    pub fn data_range(&self) -> Range<u64> {
        self.data.clone()
    }

    /// The changes, empty for a file that needs no repair.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

/// Whether as many bytes as the file has too many may be padding that the length of the header does not count.
fn may_be_padding(start: u64, count: u64, next: &[u8]) -> bool {
    let first = usize::try_from(count).ok().and_then(|count| next.get(..count));
    count < ALIGNMENT
        && (start + count).is_multiple_of(ALIGNMENT)
        && first.is_some_and(|first| first.iter().all(|byte| *byte == b' '))
}

/// The text with values of `__metadata__` that are not strings as their JSON text.
fn with_text_values(text: &str, changes: &mut Vec<Change>) -> Result<String, Error> {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut scanner = Scanner::new(text, Check::Values);
    scanner.skip_white_space();
    scanner
        .members(|scanner, key, _| {
            if !key.is(METADATA_KEY) || scanner.peek() != Some(b'{') {
                return skip_value(scanner, 1);
            }
            scanner.members(|scanner, key, _| {
                let start = scanner.pos();
                let found = match scanner.peek() {
                    Some(b'"') => None,
                    Some(b'{') => Some("an object"),
                    Some(b'[') => Some("an array"),
                    Some(b't' | b'f') => Some("a boolean"),
                    Some(b'n') => Some("null"),
                    _ => Some("a number"),
                };
                skip_value(scanner, 2)?;
                let Some(found) = found else { return Ok::<(), Error>(()) };
                let value = scanner.text_from(start).trim_ascii_end();
                out.push_str(text.get(copied..start).unwrap_or_default());
                push_string(&mut out, value, Escape::Minimal);
                copied = start + value.len();
                changes.push(Change::MetadataValue { key: key.unescape().into_owned(), found });
                Ok(())
            })?;
            Ok(())
        })
        .map_err(|error: Error| error.shifted(LENGTH_FIELD))?;
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(out)
}
