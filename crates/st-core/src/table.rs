//! Builds and validates the table of a [`Header`](crate::Header).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use json_scan::{Check, RawStr, Scanner};

use crate::dtype::checked_byte_len;
use crate::error::{Error, ErrorKind};
use crate::grammar::{Entry, METADATA_KEY, Scan, Visit, skip_value, visit_header};
use crate::header::LENGTH_FIELD;
use crate::limits::{Limits, ReadOptions, Strictness};
use crate::name_index::{Duplicate, NameIndex, Names, hash, in_order};
use tensor_dtype::Dtype;

/// A piece of [`Table::strings`]. Headers are shorter than 4 GiB, and so is what they unescape to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

/// A tensor.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) name: Span,
    name_hash: u32,
    shape_start: u32,
    rank: u32,
    pub(crate) dtype: Dtype,
    /// Overruled by a later tensor of the same name.
    dropped: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Names, keys and values one after the other.
    strings: String,
    /// All dimensions one after the other.
    dims: Vec<usize>,
    /// In file order.
    pub(crate) records: Vec<Record>,
    /// Keys and values.
    pub(crate) metadata: Option<Vec<[Span; 2]>>,
}

impl Table {
    pub(crate) fn text(&self, span: Span) -> &str {
        &self.strings[span.start as usize..][..span.len as usize]
    }

    pub(crate) fn shape(&self, record: &Record) -> &[usize] {
        &self.dims[record.shape_start as usize..][..record.rank as usize]
    }

    fn push_text(&mut self, text: RawStr<'_>) -> Span {
        let start = self.strings.len();
        text.unescape_into(&mut self.strings);
        Span { start: start as u32, len: (self.strings.len() - start) as u32 }
    }

    fn metadata_key(&self, idx: u32) -> &str {
        self.metadata.as_ref().map_or("", |items| self.text(items[idx as usize][0]))
    }

    /// Places of the metadata's items, sorted by key.
    fn metadata_order(&self) -> Vec<u32> {
        in_order(self.metadata.as_ref().map_or(0, Vec::len) as u32, &|idx| self.metadata_key(idx))
    }

    /// The first item, in the order of the text, whose key another one had before it.
    fn repeated_key(&self, order: &[u32]) -> Option<u32> {
        let mut first = None;
        for pair in order.windows(2) {
            if self.metadata_key(pair[0]) == self.metadata_key(pair[1])
                && first.is_none_or(|idx| pair[1] < idx)
            {
                first = Some(pair[1]);
            }
        }
        first
    }

    /// Index of a key in the metadata.
    pub(crate) fn find_metadata(&self, order: &[u32], key: &str) -> Option<usize> {
        let place = order.binary_search_by(|&idx| self.metadata_key(idx).cmp(key)).ok()?;
        order.get(place).map(|&idx| idx as usize)
    }
}

impl Names for Table {
    fn count(&self) -> usize {
        self.records.len()
    }

    fn name(&self, idx: u32) -> &str {
        self.text(self.records[idx as usize].name)
    }

    fn hash(&self, idx: u32) -> u32 {
        self.records[idx as usize].name_hash
    }
}

/// Parses a header text into a table in file order, with the index of its names and the order of its metadata by key.
pub(crate) fn read(text: &str, options: &ReadOptions) -> Result<(Table, NameIndex, Vec<u32>), Error> {
    let mut builder = Builder::new(text.len(), options.limits);
    visit_header(text, options.strictness, &mut builder).map_err(|error| error.shifted(LENGTH_FIELD))?;
    let mut table = builder.table;
    let strict = options.strictness == Strictness::Strict;

    let mut metadata_order = table.metadata_order();
    if let Some(second) = table.repeated_key(&metadata_order) {
        if strict {
            let at = locate(text, Wanted::MetadataItem(second));
            return Err(Error::from(ErrorKind::DuplicateMetadataKey).at(at));
        }
        keep_last_keys(&mut table, &metadata_order);
        metadata_order = table.metadata_order();
    }

    let mut index = match NameIndex::new(&table) {
        Ok(index) => index,
        Err(Duplicate(_, second)) if strict => {
            let at = locate(text, Wanted::Tensor(second));
            return Err(Error::from(ErrorKind::DuplicateTensor).of_tensor(table.name(second)).at(at));
        }
        Err(_) => {
            keep_last_tensors(&mut table);
            distinct(NameIndex::new(&table))
        }
    };
    let offsets = |record: &Record| (record.begin, record.end);
    if !table.records.is_sorted_by_key(offsets) {
        // Tensors without bytes stay in the order of the text, which that of their names in memory is.
        let place = |record: &Record| (offsets(record), record.name.start, record.name.len);
        table.records.sort_unstable_by_key(place);
        index = distinct(NameIndex::new(&table));
    }
    Ok((table, index, metadata_order))
}

fn distinct(index: Result<NameIndex, Duplicate>) -> NameIndex {
    index.expect("names that occur more than once have been dropped")
}

/// Of tensors of the same name, keeps the last.
fn keep_last_tensors(table: &mut Table) {
    let order = in_order(table.records.len() as u32, &|idx| table.name(idx));
    for pair in order.windows(2) {
        let overruled = table.name(pair[0]) == table.name(pair[1]);
        table.records[pair[0] as usize].dropped = overruled;
    }
    table.records.retain(|record| !record.dropped);
}

/// Of metadata items of the same key, keeps the last.
fn keep_last_keys(table: &mut Table, order: &[u32]) {
    let mut is_overruled = vec![false; order.len()];
    for pair in order.windows(2) {
        is_overruled[pair[0] as usize] = table.metadata_key(pair[0]) == table.metadata_key(pair[1]);
    }
    let mut overruled = is_overruled.into_iter();
    if let Some(items) = &mut table.metadata {
        items.retain(|_| overruled.next() == Some(false));
    }
}

/// Proves what a [`Header`](crate::Header) promises.
pub(crate) fn check(table: &Table, text: &str, header_len: u64, file_len: u64) -> Result<(), Error> {
    let mut expected = 0;
    for (idx, record) in (0..).zip(&table.records) {
        expected = check_record(table, record, expected).map_err(|kind| {
            let name = table.name(idx);
            let at = locate(text, Wanted::Named(name));
            Error::from(kind).of_tensor(name).at(at)
        })?;
    }
    let described = (LENGTH_FIELD + header_len).checked_add(expected);
    if described == Some(file_len) {
        Ok(())
    } else {
        let expected = described.unwrap_or(u64::MAX);
        Err(ErrorKind::IncompleteFile { expected, actual: file_len }.into())
    }
}

/// Returns where the next tensor has to begin.
fn check_record(table: &Table, record: &Record, expected: u64) -> Result<u64, ErrorKind> {
    let Record { begin, end, .. } = *record;
    if begin != expected || end < begin {
        return Err(ErrorKind::InvalidOffsets { begin, end, expected });
    }
    let computed = checked_byte_len(record.dtype, table.shape(record))?;
    if end - begin != computed {
        return Err(ErrorKind::SizeMismatch { declared: end - begin, computed });
    }
    Ok(end)
}

/// Length of a text for which memory is reserved at once, in bytes.
const SHORT_TEXT: usize = 1 << 16;
/// Length of the entry of a small model's tensor.
const TYPICAL_ENTRY: usize = 80;

struct Builder {
    text_len: usize,
    limits: Limits,
    table: Table,
    shape_start: usize,
}

impl Builder {
    fn new(text_len: usize, limits: Limits) -> Self {
        let mut table = Table::default();
        if text_len <= SHORT_TEXT {
            table.strings.reserve(text_len / 2);
            table.records.reserve(text_len / TYPICAL_ENTRY + 1);
            table.dims.reserve(text_len / TYPICAL_ENTRY * 2 + 4);
        }
        Self { text_len, limits, table, shape_start: 0 }
    }

    /// Reserves memory for a long header whose other entries are like its first.
    fn reserve(&mut self, first: &Entry<'_>, name_len: usize) {
        let rest = self.text_len - first.at - first.text_len;
        let more = (rest / first.text_len + 1).min(self.limits.tensors);
        // A dimension takes at least two bytes of text, a name at least its own length.
        self.table.records.reserve(more);
        self.table.dims.reserve((self.table.dims.len() * more).min(rest / 2));
        self.table.strings.reserve((name_len * more).min(rest));
    }
}

fn exceeded(limit: &'static str, max: usize, at: usize) -> Error {
    ErrorKind::LimitExceeded { limit, max: max as u64 }.in_text(at)
}

impl<'h> Visit<'h> for Builder {
    fn metadata_begins(&mut self) {
        self.table.metadata = Some(Vec::new());
    }

    fn metadata(&mut self, key: RawStr<'h>, value: RawStr<'h>, at: usize) -> Scan<()> {
        let item = [self.table.push_text(key), self.table.push_text(value)];
        let items = self.table.metadata.get_or_insert_default();
        items.push(item);
        let first = items[0][0].start as usize;
        if self.table.strings.len() - first > self.limits.metadata_bytes {
            return Err(exceeded("bytes of metadata", self.limits.metadata_bytes, at));
        }
        Ok(())
    }

    #[inline]
    fn shape_begins(&mut self) {
        self.table.dims.truncate(self.shape_start);
    }

    #[inline]
    fn dim(&mut self, dim: u64, at: usize) -> Scan<()> {
        if self.table.dims.len() - self.shape_start == self.limits.rank {
            return Err(exceeded("dimensions of a tensor", self.limits.rank, at));
        }
        let Ok(dim) = usize::try_from(dim) else {
            return Err(ErrorKind::SizeOverflow.in_text(at));
        };
        self.table.dims.push(dim);
        Ok(())
    }

    #[inline]
    fn tensor(&mut self, entry: Entry<'h>) -> Scan<()> {
        if self.table.records.len() == self.limits.tensors {
            return Err(exceeded("number of tensors", self.limits.tensors, entry.at));
        }
        let name = self.table.push_text(entry.name);
        if name.len as usize > self.limits.name_bytes {
            return Err(exceeded("bytes of a tensor name", self.limits.name_bytes, entry.at));
        }
        if self.table.records.is_empty() && self.text_len > SHORT_TEXT {
            self.reserve(&entry, name.len as usize);
        }
        let rank = self.table.dims.len() - self.shape_start;
        let record = Record {
            begin: entry.begin,
            end: entry.end,
            name,
            name_hash: hash(self.table.text(name)),
            shape_start: self.shape_start as u32,
            rank: rank as u32,
            dtype: entry.dtype,
            dropped: false,
        };
        self.table.records.push(record);
        self.shape_start += rank;
        Ok(())
    }
}

/// What [`locate`] looks for.
#[derive(Clone, Copy)]
enum Wanted<'n> {
    /// The last tensor of this name.
    Named(&'n str),
    /// The n-th tensor of the text.
    Tensor(u32),
    /// The n-th item of the metadata.
    MetadataItem(u32),
}

/// Byte offset in the file of a part of a header text that has been read before. Only errors need to know,
/// so the table does not remember.
fn locate(text: &str, wanted: Wanted<'_>) -> u64 {
    let place = place_of(&mut Scanner::new(text, Check::Values), wanted);
    debug_assert!(place.is_ok(), "this text was accepted before");
    LENGTH_FIELD + place.unwrap_or_default() as u64
}

fn place_of(scanner: &mut Scanner<'_>, wanted: Wanted<'_>) -> Scan<usize> {
    let (mut tensors, mut found) = (0, 0);
    scanner.skip_white_space();
    scanner.eat(b'{');
    while scanner.peek() == Some(b'"') {
        let at = scanner.pos();
        let name = scanner.key()?;
        if name.is(METADATA_KEY) {
            if let Wanted::MetadataItem(nth) = wanted
                && scanner.eat(b'{')
            {
                for _ in 0..nth {
                    scanner.key()?;
                    skip_value(scanner, 2)?;
                    scanner.eat(b',');
                }
                return Ok(scanner.pos());
            }
        } else {
            let is_wanted = match wanted {
                Wanted::Named(wanted) => name.is(wanted),
                Wanted::Tensor(nth) => nth == tensors,
                Wanted::MetadataItem(_) => false,
            };
            if is_wanted {
                found = at;
            }
            tensors += 1;
        }
        // The header object is open.
        skip_value(scanner, 1)?;
        scanner.eat(b',');
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    /// Growing by doubling would end far above the counts chosen here.
    #[test]
    fn long_headers_are_given_room_once() {
        let count = 2100;
        let mut text = String::from("{");
        for idx in 1000..1000 + count {
            let comma = if idx == 1000 { "" } else { "," };
            text += &format!(r#"{comma}"layer.{idx}":{{"dtype":"U8","shape":[2,0,3],"data_offsets":[0,0]}}"#);
        }
        text.push('}');
        let (table, ..) = read(&text, &ReadOptions::STRICT).unwrap();
        let roughly = |capacity: usize, needed: usize| (needed..needed + needed / 50).contains(&capacity);
        assert!(roughly(table.records.capacity(), count));
        assert!(roughly(table.dims.capacity(), 3 * count));
        assert!(roughly(table.strings.capacity(), 10 * count));
    }

    /// There is only this entry: no memory is reserved for others.
    #[test]
    fn one_long_entry_is_given_no_room() {
        let ones = ["0"; 70_000].join(",");
        let text = format!(r#"{{"a":{{"dtype":"U8","shape":[{ones}],"data_offsets":[0,0]}}}}"#);
        let (table, ..) = read(&text, &ReadOptions::COMPAT).unwrap();
        assert!(table.records.capacity() <= 4);
        assert!(table.dims.capacity() <= 1 << 17);
    }
}
