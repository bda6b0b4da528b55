//! Tables of LevelDB: sorted keys and values in blocks with checksums.
//!
//! Source: `table_format.md` of LevelDB; TensorFlow's copy in `tensorflow/core/lib/io`.

use alloc::vec::Vec;
use core::ops::Range;

use crate::error::Error;
use crate::protobuf::Fields;
use crate::reader::{Budget, Reader};

use super::crc::masked;

const FOOTER: u64 = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Bytes after a block: its compression and the checksum.
const TRAILER: u64 = 5;

/// A key, and where its value is.
pub(super) type Pair = (Vec<u8>, Range<u64>);

/// All keys in ascending order.
pub(super) fn read(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Vec<Pair>, Error> {
    let footer =
        reader.len().checked_sub(FOOTER).ok_or_else(|| Error::malformed("the index is too short"))?;
    if u64::from_le_bytes(reader.array(footer + 40)?) != MAGIC {
        return Err(Error::malformed("the index does not end with its magic number").at(footer + 40));
    }
    let mut handles = Fields::new(footer..footer + 40);
    let _metaindex = handle(reader, &mut handles)?;
    let index = handle(reader, &mut handles)?;
    let (mut blocks, mut pairs) = (Vec::new(), Vec::new());
    block(reader, budget, index, footer, &mut blocks)?;
    for (_, value) in blocks {
        let range = handle(reader, &mut Fields::new(value))?;
        block(reader, budget, range, footer, &mut pairs)?;
    }
    Ok(pairs)
}

/// Offset and length of a block.
fn handle(reader: &mut Reader<'_>, from: &mut Fields) -> Result<Range<u64>, Error> {
    let malformed = || Error::malformed("the place of a block is invalid");
    let offset = from.next_packed(reader)?.ok_or_else(malformed)?;
    let len = from.next_packed(reader)?.ok_or_else(malformed)?;
    Ok(offset..offset.checked_add(len).ok_or_else(malformed)?)
}

/// Appends the entries of a block. Keys ascend over all blocks, so that no block is read twice.
fn block(
    reader: &mut Reader<'_>,
    budget: &mut Budget,
    range: Range<u64>,
    footer: u64,
    pairs: &mut Vec<Pair>,
) -> Result<(), Error> {
    let malformed = |problem| Error::malformed(problem).at(range.start);
    if range.end.checked_add(TRAILER).is_none_or(|end| end > footer) || range.end - range.start < 4 {
        return Err(malformed("a block of the index is out of the file"));
    }
    let with_kind = reader.bytes(range.start..range.end + 1)?;
    if masked(&with_kind) != u32::from_le_bytes(reader.array(range.end + 1)?) {
        return Err(malformed("a block of the index does not have its checksum"));
    }
    match with_kind.last() {
        Some(0) => {}
        Some(1) => return Err(Error::unsupported("an index compressed with Snappy")),
        _ => return Err(malformed("a block of the index is compressed in an unknown way")),
    }
    let restarts = u64::from(u32::from_le_bytes(reader.array(range.end - 4)?));
    let entries_end = (range.end - 4).checked_sub(4 * restarts).filter(|end| *end >= range.start);
    let end = entries_end.ok_or_else(|| malformed("a block of the index is too short"))?;
    let mut rest = Fields::new(range.start..end);
    let (mut is_first, mut key) = (true, Vec::new());
    while let Some(shared) = rest.next_packed(reader)? {
        let short = || malformed("an entry of the index is too short");
        let unshared = rest.next_packed(reader)?.ok_or_else(short)?;
        let value_len = rest.next_packed(reader)?.ok_or_else(short)?;
        if shared > key.len() as u64 {
            return Err(malformed("a key of the index shares more than the last one has"));
        }
        let suffix = rest.take(unshared)?;
        budget.take(shared.saturating_add(unshared))?;
        budget.take(32)?;
        key.truncate(shared as usize);
        key.extend_from_slice(&reader.bytes(suffix)?);
        let value = rest.take(value_len)?;
        if pairs.last().is_some_and(|(last, _)| *last >= key) {
            return Err(malformed(if is_first {
                "blocks of the index are not in order"
            } else {
                "keys of the index are not in order"
            }));
        }
        is_first = false;
        pairs.push((key.clone(), value));
    }
    Ok(())
}
