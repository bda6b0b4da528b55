//! HDF5: datasets and links whose content is in other files.
//!
//! Messages are found by their bytes, not by a walk through groups: what is found is a superset of what a reader reaches.

use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::Error;
use read_at::ReadAt;

use crate::kept::Kept;
use crate::problem::Problem;
use crate::reader::Reader;

const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// The beginning of a local heap, which has the names of external files.
const HEAP: &[u8] = b"HEAP";

/// Bytes that are searched at once, and how many after them a message may need.
const PIECE: u64 = 1 << 18;
const LONGEST: u64 = 3 << 16;
/// Longest name of a file that is read to its end.
const MAX_PATH: usize = 1024;

/// Where superblocks are: their signature is at 0, or at 512 or a multiple by a power of two, after a user block.
fn superblocks(source: &dyn ReadAt) -> Result<Vec<u64>, Error> {
    // From the end: sources that read ahead of what is read in order would read all of the file.
    let places = (9..64).rev().map(|bits| 1_u64 << bits).chain([0]);
    let mut found = Vec::new();
    for at in places.filter(|at| at.checked_add(8).is_some_and(|end| end <= source.total_len())) {
        let mut start = [0; 8];
        source.read_exact_at(at, &mut start)?;
        if start == *SIGNATURE {
            found.push(at);
        }
    }
    Ok(found)
}

/// Whether it is an HDF5 file.
pub(crate) fn is_hdf5(source: &dyn ReadAt) -> Result<bool, Error> {
    Ok(!superblocks(source)?.is_empty())
}

/// What an HDF5 file takes from other files: offsets and problems, at most `kept` of them.
pub(crate) fn scan(source: &dyn ReadAt, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    let (mut reader, mut found) = (Reader::new(source), Kept::new(kept));
    // The library takes the first one.
    let Some(first) = superblocks(source)?.into_iter().min() else { return Ok(Vec::new()) };
    let (width, base) = superblock(&mut reader, first)?;
    if width != 8 {
        found.add(first, Problem::Unopened { reason: "HDF5 whose addresses do not have 8 bytes" });
    }
    let bases = [first, base];
    let mut at = 0;
    while at < reader.len() {
        let bytes = reader.bytes(at, PIECE + LONGEST)?;
        let first = usize::try_from(PIECE.min(reader.len() - at)).unwrap_or(usize::MAX);
        // Both messages begin with version 1.
        for (idx, _) in bytes.iter().enumerate().take(first).filter(|(_, byte)| **byte == 1) {
            let message = bytes.get(idx..).unwrap_or_default();
            let location = match external_link(message) {
                None if is_storage(source, message, bases)? => Some(String::from("external storage")),
                link => link,
            };
            if let Some(location) = location {
                found.add(at + idx as u64, Problem::ExternalData { location });
            }
        }
        at += PIECE;
    }
    Ok(found.sorted())
}

/// Width of addresses, and the address that they count from.
fn superblock(reader: &mut Reader<'_>, at: u64) -> Result<(u8, u64), Error> {
    let block = reader.bytes(at, 40)?;
    let byte = |idx: usize| block.get(idx).copied().unwrap_or_default();
    let (width, base) = match byte(8) {
        0 => (byte(13), 24),
        1 => (byte(13), 28),
        _ => (byte(9), 12),
    };
    Ok((width, block.get(base..).map_or(0, number)))
}

/// The first 8 bytes as a number, little-endian.
fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Message 7, the list of external files of a dataset: version 1, three reserved bytes, the number of its places and how many of them are used,
/// and the address of the heap that has the names.
fn is_storage(source: &dyn ReadAt, message: &[u8], bases: [u64; 2]) -> Result<bool, Error> {
    let [1, 0, 0, 0, n_places @ .., _, _, _, _, _, _, _, _] = message.get(..16).unwrap_or_default() else {
        return Ok(false);
    };
    let [a, b, c, d] = *n_places else { return Ok(false) };
    let (n_places, n_used) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    if n_used == 0 || n_used > n_places {
        return Ok(false);
    }
    let heap = message.get(8..).map_or(0, number);
    for base in bases {
        let end = |at: &u64| at.checked_add(4).is_some_and(|end| end <= source.total_len());
        let Some(at) = base.checked_add(heap).filter(end) else { continue };
        let mut start = [0; 4];
        source.read_exact_at(at, &mut start)?;
        if start == *HEAP {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Message 6, a link: version 1, flags, type 64, order and encoding if flags say so, the name, and for a link to another file its length, a
/// zero, the file and the object, each with a zero at its end. The file.
fn external_link(message: &[u8]) -> Option<String> {
    let [1, flags @ 8..=31, 64, rest @ ..] = message else { return None };
    let skipped = if flags & 4 == 0 { 0 } else { 8 } + usize::from(flags >> 4);
    let (len, rest) = rest.get(skipped..)?.split_at_checked(1 << (flags & 3))?;
    let len = len.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let rest = rest.get(usize::try_from(len).ok().filter(|len| *len > 0)?..)?;
    let (len, rest) = rest.split_first_chunk()?;
    let (value, end) = rest.get(..usize::from(u16::from_le_bytes(*len)))?.split_last()?;
    let (version, names) = end.split_first()?;
    let file = names.get(..names.len().min(MAX_PATH))?.split(|byte| *byte == 0).next()?;
    let is_link = (*version, *value) == (0, 0) && !file.is_empty();
    is_link.then(|| String::from_utf8_lossy(file).into_owned())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn links_to_other_files_are_found_by_their_message() {
        let value = |names: &[u8]| [&(names.len() as u16 + 1).to_le_bytes(), [0].as_slice(), names].concat();
        let names = value(b"other.h5\0/x\0");
        let file = Some(String::from("other.h5"));
        let with = |head: &[u8], rest: &[u8]| external_link(&[head, rest].concat());
        assert_eq!(with(b"\x01\x08\x40\x03ext", &names), file);
        assert_eq!(with(b"\x01\x18\x40\x01\x03ext", &names), file, "with an encoding");
        assert_eq!(with(b"\x01\x0c\x40\x09\0\0\0\0\0\0\0\x03ext", &names), file, "with an order");
        assert_eq!(with(b"\x01\x09\x40\x03\0ext", &names), file, "a length of 2 bytes");
        assert_eq!(with(b"\x01\x0b\x40\x03\0\0\0\0\0\0\0ext", &names), file, "a length of 8 bytes");
        for head in [
            b"\x02\x08\x40\x03ext".as_slice(),
            b"\x01\x07\x40\x03ext",
            b"\x01\x28\x40\x03ext",
            b"\x01\x08\x01\x03ext",
            b"\x01\x08\x40\x00ext",
        ] {
            assert_eq!(with(head, &names), None, "{}", head.escape_ascii());
        }
        let head = b"\x01\x08\x40\x03ext";
        assert_eq!(with(head, &value(b"other.h5\0/x")), None, "no zero at its end");
        assert_eq!(with(head, &value(b"\0/x\0")), None, "no file");
        assert_eq!(with(head, &names[..names.len() - 1]), None, "cut");
        assert_eq!(with(head, &[&names[..2], &[1], &names[3..]].concat()), None, "another version");
        let long = with(head, &value(&[[b'a'; 2000].as_slice(), &[0]].concat()));
        assert_eq!(long.map(|file| file.len()), Some(MAX_PATH));
    }

    fn storage(n_places: u16, n_used: u16, heap: u64) -> Vec<u8> {
        let (places, used) = (n_places.to_le_bytes(), n_used.to_le_bytes());
        [b"\x01\0\0\0".as_slice(), &places, &used, &heap.to_le_bytes()].concat()
    }

    #[test]
    fn lists_of_external_files_name_a_heap() {
        let file = [b"........HEAP".as_slice()].concat();
        let source = file.as_slice();
        let is_list = |message: &[u8]| is_storage(&source, message, [0, 4]).expect("in memory");
        assert!(is_list(&storage(1, 1, 8)));
        assert!(is_list(&storage(3, 2, 4)), "from another base");
        for other in
            [storage(1, 0, 8), storage(1, 2, 8), storage(1, 1, 7), storage(1, 1, 12), storage(1, 1, u64::MAX)]
        {
            assert!(!is_list(&other), "{other:?}");
        }
        assert!(!is_list(&storage(1, 1, 8)[..15]), "cut");
        assert!(!is_list(&[&[1, 1], &storage(1, 1, 8)[2..]].concat()), "another version");
    }

    #[test]
    fn superblocks_say_where_addresses_count_from() {
        for (version, width_at, base_at) in [(0, 13, 24), (1, 13, 28), (2, 9, 12), (3, 9, 12)] {
            let mut block = vec![0; 40];
            (block[8], block[width_at], block[base_at]) = (version, 8, 77);
            let source = block.as_slice();
            let found = superblock(&mut Reader::new(&source), 0).expect("in memory");
            assert_eq!(found, (8, 77), "{version}");
        }
    }

    /// A file with a superblock of version 2 at `at`, whose addresses count from `base`.
    fn file(at: usize, width: u8, base: u64, len: usize) -> Vec<u8> {
        let mut file = vec![0; len];
        file[at..at + 8].copy_from_slice(SIGNATURE);
        (file[at + 8], file[at + 9]) = (2, width);
        file[at + 12..at + 20].copy_from_slice(&base.to_le_bytes());
        file
    }

    #[test]
    fn messages_are_found_anywhere_in_a_file() {
        let codes = |file: &[u8]| -> Vec<_> {
            let found = scan(&file, 10).expect("in memory");
            found.iter().map(|(at, problem)| (*at, problem.code())).collect()
        };
        let size = 2 * PIECE as usize + 100;
        for at in [60, PIECE as usize - 1, PIECE as usize, size - 16] {
            let mut file = file(0, 8, 0, size);
            file[40..44].copy_from_slice(HEAP);
            file[at..at + 16].copy_from_slice(&storage(1, 1, 40));
            assert_eq!(codes(&file), [(at as u64, "sc-external-data")], "{at}");
        }
        let mut shifted = file(512, 8, 600, 700);
        shifted[640..644].copy_from_slice(HEAP);
        shifted[660..676].copy_from_slice(&storage(1, 1, 40));
        assert_eq!(codes(&shifted), [(660, "sc-external-data")]);
        let link = b"\x01\x08\x40\x03ext\x0d\0\0other.h5\0/x\0";
        shifted[600..600 + link.len()].copy_from_slice(link);
        assert_eq!(codes(&shifted).len(), 2);
        assert_eq!(codes(&file(0, 4, 0, 100)), [(0, "sc-unopened")]);
        assert_eq!(codes(&file(0, 8, 0, 100)), []);
    }
}
