//! The offsets of the parts of a file: the only module that compares declared offsets and lengths with the length of the file.

use alloc::vec::Vec;
use core::ops::Range;

use located_error::Subject;

use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v2;
use crate::v2::dtype;
use crate::v2::header::{ALIGN, FOOTER_LEN, Header, aligned};
use crate::v2::table::{Record, Table};

/// Metadata and tensor index, both within the file, one after the other.
pub(crate) struct Sections {
    /// In strict reading, with the padding after it.
    pub(crate) metadata: Range<u64>,
    /// The space before the data, as far as the entries can fill it, and the padding after them.
    pub(crate) index: Range<u64>,
}

impl Sections {
    pub(crate) fn new(header: &Header, file_len: u64, options: &ReadOptions) -> Result<Self, Error> {
        let (found, limit) = (u64::from(header.metadata_len), options.limits.metadata_bytes);
        if found > limit {
            return Err(ErrorKind::Limit { what: "length of the metadata", found, limit }.at(20));
        }
        let inside = |part, end: Option<u64>, at| match end {
            Some(end) if end <= file_len => Ok(end),
            _ => {
                let (needed, available) = (end.unwrap_or(u64::MAX), file_len);
                Err(ErrorKind::Truncated { part, needed, available }.at(at))
            }
        };
        let placed = |part, found, first: Option<u64>, at| {
            let expected = first.unwrap_or(u64::MAX);
            let fits = if options.is_strict() { found == expected } else { found >= expected };
            if fits { Ok(()) } else { Err(v2::ErrorKind::Misplaced { part, found, expected }.at(at)) }
        };

        let begin = header.metadata_offset;
        placed("metadata", begin, Some(Header::LEN as u64), 12)?;
        let end = inside("metadata", begin.checked_add(found), 12)?;

        let index = header.index_offset;
        placed("tensor index", index, if options.is_strict() { aligned(end) } else { Some(end) }, 24)?;
        inside("tensor index", Some(index), 24)?;
        let metadata = begin..if options.is_strict() { index } else { end };

        let data = inside("tensor data", Some(header.data_offset), 32)?;
        if data < index {
            return Err(v2::ErrorKind::Misplaced { part: "tensor data", found: data, expected: index }.at(32));
        }
        let len_max = Table::len_max(header.n_tensors, options) + (ALIGN - 1);
        Ok(Self { metadata, index: index..index + len_max.min(data - index) })
    }
}

/// The extent of the tensors, from the start of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Where the last tensor ends.
    pub(crate) end: u64,
    /// Where its padding ends.
    pub(crate) padded_end: u64,
    /// Whether tensors share bytes.
    pub(crate) overlaps: bool,
}

/// Checks that every tensor is within the file and at a valid offset.
pub(crate) fn extent(
    header: &Header,
    table: &Table,
    file_len: u64,
    options: &ReadOptions,
) -> Result<Extent, Error> {
    let by_offset = |record: &Record| (record.offset, record.len);
    let mut extent = Extent { end: header.data_offset, padded_end: header.data_offset, overlaps: false };
    if table.records.is_sorted_by_key(by_offset) {
        for record in &table.records {
            extent.append(header, table, record, file_len, options)?;
        }
    } else {
        let mut order: Vec<&Record> = table.records.iter().collect();
        order.sort_unstable_by_key(|record| by_offset(record));
        for record in order {
            extent.append(header, table, record, file_len, options)?;
        }
    }
    if options.is_strict() {
        let (needed, available) = (extent.padded_end, file_len);
        let Some(tail) = available.checked_sub(needed) else {
            return Err(ErrorKind::Truncated { part: "tensor data", needed, available }.into());
        };
        if tail != 0 && tail != FOOTER_LEN {
            return Err(v2::ErrorKind::TrailingBytes { count: tail }.at(needed));
        }
    }
    Ok(extent)
}

impl Extent {
    /// Adds a tensor that begins after the previous one begins.
    fn append(
        &mut self,
        header: &Header,
        table: &Table,
        record: &Record,
        file_len: u64,
        options: &ReadOptions,
    ) -> Result<(), Error> {
        let refuse = |error: Error| Err(error.about(Subject::tensor(table.name(record))));
        let begin = header.data_offset.checked_add(record.offset);
        let end = begin.and_then(|begin| begin.checked_add(record.len));
        let (Some(begin), Some(end), Some(padded_end)) = (begin, end, end.and_then(aligned)) else {
            return refuse(v2::ErrorKind::SizeOverflow.into());
        };
        let (place, align) = match options.is_strict() {
            true => (record.offset, ALIGN),
            false => (begin, dtype::align(record.dtype)),
        };
        if !place.is_multiple_of(align) {
            return refuse(v2::ErrorKind::Misaligned { offset: record.offset, align }.into());
        }
        if end > file_len {
            return refuse(
                ErrorKind::Truncated { part: "tensor data", needed: end, available: file_len }.into(),
            );
        }
        if options.is_strict() && begin != self.padded_end {
            let (found, expected) = (record.offset, self.padded_end - header.data_offset);
            return refuse(v2::ErrorKind::Misplaced { part: "tensor", found, expected }.into());
        }
        self.overlaps |= record.len > 0 && begin < self.end;
        self.end = self.end.max(end);
        self.padded_end = self.padded_end.max(padded_end);
        Ok(())
    }
}
