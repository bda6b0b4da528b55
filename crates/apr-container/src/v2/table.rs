//! The entries of the tensor index.

use alloc::string::String;
use alloc::vec::Vec;

use located_error::Subject;

use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v2;
use crate::v2::dtype::check_len;
use tensor_dtype::AprType;

/// Maximum length of a name that readers in circulation keep, in bytes.
pub(crate) const MAX_NAME_LEN: usize = 256;
/// Maximum number of dimensions that writers in circulation write.
pub(crate) const MAX_RANK: usize = 8;
/// Length of an entry without name and dimensions.
const MIN_ENTRY_LEN: u64 = 20;
/// Longest index accepted, so that every offset in it fits 32 bits.
const MAX_INDEX_LEN: u64 = 1 << 30;

/// A tensor.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// From the start of the data section.
    pub(crate) offset: u64,
    /// Bytes without padding.
    pub(crate) len: u64,
    name_start: u32,
    name_len: u32,
    shape_start: u32,
    rank: u8,
    pub(crate) dtype: AprType,
    pub(crate) stored_dtype: u8,
}

/// Entries, sorted by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// All names one after the other.
    names: String,
    /// All dimensions one after the other.
    dims: Vec<u64>,
    pub(crate) records: Vec<Record>,
}

impl Table {
    pub(crate) fn name(&self, record: &Record) -> &str {
        let start = record.name_start as usize;
        self.names.get(start..start + record.name_len as usize).unwrap_or_default()
    }

    pub(crate) fn shape(&self, record: &Record) -> &[u64] {
        let start = record.shape_start as usize;
        self.dims.get(start..start + usize::from(record.rank)).unwrap_or_default()
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.records.binary_search_by(|record| self.name(record).cmp(name)).ok()
    }

    /// Maximum length of the entries of a valid index.
    pub(crate) fn len_max(n_tensors: u32, options: &ReadOptions) -> u64 {
        let variable = match options.is_strict() {
            true => MAX_NAME_LEN + MAX_RANK * 8,
            false => usize::from(u16::MAX) + usize::from(u8::MAX) * 8,
        };
        u64::from(n_tensors) * (MIN_ENTRY_LEN + variable as u64)
    }

    /// Reads the entries at the beginning of `bytes`; also returns their length. Offsets of errors count from `bytes`.
    pub(crate) fn read(bytes: &[u8], n_tensors: u32, options: &ReadOptions) -> Result<(Self, usize), Error> {
        let (found, limit) = (u64::from(n_tensors), options.limits.tensors);
        if found > limit {
            return Err(ErrorKind::Limit { what: "number of tensors", found, limit }.into());
        }
        let (needed, available) = (found * MIN_ENTRY_LEN, bytes.len() as u64);
        if needed > available {
            return Err(ErrorKind::Truncated { part: "tensor index", needed, available }.at(0));
        }
        if available > MAX_INDEX_LEN {
            let what = "length of the tensor index";
            return Err(ErrorKind::Limit { what, found: available, limit: MAX_INDEX_LEN }.into());
        }
        let mut table = Self::default();
        // An entry that exists takes at least 20 bytes of file, a record 40 of memory.
        let bytes_needed = found * size_of::<Record>() as u64;
        let no_memory = |_| ErrorKind::OutOfMemory { bytes: bytes_needed };
        table.records.try_reserve_exact(n_tensors as usize).map_err(no_memory)?;
        let mut cursor = Cursor { rest: bytes, at: 0 };
        for _ in 0..n_tensors {
            let at = cursor.at as u64;
            table.read_entry(&mut cursor, options).map_err(|error| match error.offset() {
                Some(_) => error,
                None => error.moved_to(at),
            })?;
        }
        Ok((table, cursor.at))
    }

    fn read_entry(&mut self, cursor: &mut Cursor<'_>, options: &ReadOptions) -> Result<(), Error> {
        let name_len = u16::from_le_bytes(cursor.array()?);
        let name = cursor.take(name_len.into())?;
        let name_start = self.names.len();
        match core::str::from_utf8(name) {
            Ok(name) => self.names.push_str(name),
            // A name that its writer truncated within a character.
            Err(_) if !options.is_strict() => push_lossy(&mut self.names, name),
            Err(error) => {
                return Err(ErrorKind::InvalidUtf8.at((cursor.at - name.len() + error.valid_up_to()) as u64));
            }
        }
        let name = self.names.get(name_start..).unwrap_or_default();
        let named = |kind: v2::ErrorKind| Err(Error::from(kind).about(Subject::tensor(name)));
        if options.is_strict() && name.len() > MAX_NAME_LEN {
            return named(v2::ErrorKind::NameTooLong { len: name.len() });
        }
        if let Some(last) = self.records.last() {
            match self.name(last).cmp(name) {
                core::cmp::Ordering::Less => {}
                core::cmp::Ordering::Equal => return named(v2::ErrorKind::DuplicateTensor),
                core::cmp::Ordering::Greater => return named(v2::ErrorKind::IndexOrder),
            }
        }
        let [stored_dtype, rank] = cursor.array()?;
        if options.is_strict() && usize::from(rank) > MAX_RANK {
            return named(v2::ErrorKind::TooManyDimensions { found: rank.into() });
        }
        let dims = cursor.take(usize::from(rank) * 8)?;
        let (offset, len) = (u64::from_le_bytes(cursor.array()?), u64::from_le_bytes(cursor.array()?));

        let dtype = AprType::from_stored(stored_dtype);
        let shape_start = self.dims.len();
        self.dims.extend(dims.chunks_exact(8).map(|dim| dim.try_into().map_or(0, u64::from_le_bytes)));
        let shape = self.dims.get(shape_start..).unwrap_or_default();
        check_len(dtype, shape, len).map_err(|error| error.about(Subject::tensor(name)))?;
        self.records.push(Record {
            offset,
            len,
            // Both offsets fit: lossy names are at most three times as long as the index.
            name_start: name_start as u32,
            name_len: name.len() as u32,
            shape_start: shape_start as u32,
            rank,
            dtype,
            stored_dtype,
        });
        Ok(())
    }
}

/// Appends the entry of a tensor.
pub(crate) fn push_entry(
    out: &mut Vec<u8>,
    name: &str,
    dtype: AprType,
    shape: &[u64],
    offset: u64,
    len: u64,
) {
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&[dtype.0, shape.len() as u8]);
    shape.iter().chain([&offset, &len]).for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
}

/// Appends a string, with a replacement character for each invalid UTF-8 sequence.
fn push_lossy(out: &mut String, mut text: &[u8]) {
    while let Err(error) = core::str::from_utf8(text) {
        let (sound, rest) = text.split_at(error.valid_up_to());
        out.push_str(core::str::from_utf8(sound).unwrap_or_default());
        out.push(char::REPLACEMENT_CHARACTER);
        text = rest.get(error.error_len().unwrap_or(rest.len())..).unwrap_or_default();
    }
    out.push_str(core::str::from_utf8(text).unwrap_or_default());
}

/// Reads fields and keeps the offset.
struct Cursor<'b> {
    rest: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    fn take(&mut self, len: usize) -> Result<&'b [u8], Error> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            let (needed, available) = (len as u64, self.rest.len() as u64);
            return Err(ErrorKind::Truncated { part: "tensor index", needed, available }.into());
        };
        self.rest = rest;
        self.at += len;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().unwrap_or([0; N]))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::limits::Limits;

    const BOTH: [ReadOptions; 2] = [ReadOptions::STRICT, ReadOptions::COMPAT];

    fn entry(name: &str) -> Vec<u8> {
        let mut out = Vec::new();
        push_entry(&mut out, name, AprType::U8, &[3], 64, 3);
        out
    }

    fn refusal(bytes: &[u8], n_tensors: u32, options: &ReadOptions) -> (&'static str, Option<u64>) {
        let error = Table::read(bytes, n_tensors, options).unwrap_err();
        (error.code(), error.offset())
    }

    #[test]
    fn entries_round_trip() {
        let mut bytes = Vec::new();
        push_entry(&mut bytes, "", AprType::F32, &[], 0, 4);
        push_entry(&mut bytes, "é", AprType::AprQ4, &[2, 35], 64, 54);
        let len = bytes.len();
        bytes.push(0);
        let (table, used) = Table::read(&bytes, 2, &ReadOptions::STRICT).unwrap();
        assert_eq!(used, len);
        let [scalar, matrix] = &table.records[..] else { panic!("two entries") };
        assert_eq!((table.name(scalar), table.shape(scalar), scalar.len), ("", &[][..], 4));
        assert_eq!((table.name(matrix), table.shape(matrix), matrix.offset), ("é", &[2, 35][..], 64));
        assert_eq!((table.find("é"), table.find(""), table.find("x")), (Some(1), Some(0), None));
    }

    #[test]
    fn an_entry_cut_anywhere_is_refused() {
        let bytes = entry("name");
        for len in 0..bytes.len() {
            for options in &BOTH {
                assert_eq!(refusal(&bytes[..len], 1, options).0, "ac-truncated", "{len}");
            }
        }
    }

    #[test]
    fn counts_are_compared_with_the_bytes_before_anything_is_allocated() {
        let limits = Limits { tensors: u64::MAX, ..Limits::DEFAULT };
        for options in BOTH {
            assert_eq!(refusal(&entry("a"), u32::MAX, &options.with_limits(limits)).0, "ac-truncated");
            assert_eq!(refusal(&entry("a"), u32::MAX, &options).0, "ac-limit");
        }
    }

    #[test]
    fn the_longest_entries_fit() {
        for (options, name_len, rank) in [(BOTH[0], 256, 8), (BOTH[1], 65_535, 255)] {
            let mut bytes = Vec::new();
            push_entry(&mut bytes, &"n".repeat(name_len), AprType::U8, &vec![1; rank], 0, 1);
            assert_eq!(Table::len_max(3, &options), 3 * bytes.len() as u64);
            assert_eq!(Table::read(&bytes, 1, &options).unwrap().1, bytes.len());
        }
    }

    #[test]
    fn names_come_once_and_in_order() {
        for options in &BOTH {
            let second = |name: &str| {
                let bytes = [entry("b"), entry(name)].concat();
                refusal(&bytes, 2, options)
            };
            assert_eq!(second("b"), ("ac-v2-duplicate-tensor", Some(29)));
            assert_eq!(second("a"), ("ac-v2-order", Some(29)));
        }
    }

    #[test]
    fn long_and_broken_names_are_for_compat() {
        let long = entry(&"n".repeat(257));
        assert_eq!(refusal(&long, 1, &ReadOptions::STRICT), ("ac-v2-name", Some(0)));
        assert!(Table::read(&long, 1, &ReadOptions::COMPAT).is_ok());
        assert!(Table::read(&entry(&"n".repeat(256)), 1, &ReadOptions::STRICT).is_ok());
        let mut cut = entry("a!");
        cut[3] = 0xC3;
        assert_eq!(refusal(&cut, 1, &ReadOptions::STRICT), ("ac-utf8", Some(3)));
        let (table, _) = Table::read(&cut, 1, &ReadOptions::COMPAT).unwrap();
        assert_eq!(table.name(&table.records[0]), "a\u{FFFD}");
    }

    #[test]
    fn shapes_have_to_fit_the_length() {
        let mut ranks = Vec::new();
        push_entry(&mut ranks, "r", AprType::U8, &[1; 9], 0, 1);
        assert_eq!(refusal(&ranks, 1, &ReadOptions::STRICT), ("ac-v2-dimensions", Some(0)));
        assert!(Table::read(&ranks, 1, &ReadOptions::COMPAT).is_ok());
        for options in &BOTH {
            let cases: [(&[u64], u64, &str); 3] = [
                (&[3], 2, "ac-v2-size"),
                (&[u64::MAX, u64::MAX], 1, "ac-v2-overflow"),
                (&[1 << 63], u64::MAX, "ac-v2-size"),
            ];
            for (shape, len, code) in cases {
                let mut bytes = vec![];
                push_entry(&mut bytes, "s", AprType::I8, shape, 0, len);
                assert_eq!(refusal(&bytes, 1, options).0, code);
            }
        }
    }

    #[test]
    fn former_numbers_of_types_are_understood_and_remembered() {
        let mut bytes = entry("a");
        bytes[3] = 2;
        bytes[21] = 6;
        let (table, _) = Table::read(&bytes, 1, &ReadOptions::STRICT).unwrap();
        let record = &table.records[0];
        assert_eq!((record.dtype, record.stored_dtype), (AprType::Bf16, 2));
    }
}
