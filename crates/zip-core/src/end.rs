//! End records: where the directory is.

use alloc::vec::Vec;

use read_at::{ReadAt, check_range};

use crate::error::{Error, ErrorKind};
use crate::fields::Fields;

const END_LEN: usize = 22;
const LOCATOR_LEN: u64 = 20;
const END64_LEN: u64 = 56;

/// What the end records say.
pub(crate) struct End {
    /// Where the directory is; the rest of the archive moves with it.
    pub(crate) directory: u64,
    pub(crate) directory_len: u64,
    pub(crate) entries: u64,
    /// Bytes before the archive, by which all offsets are too small.
    pub(crate) base: u64,
    /// Where the end records begin, and where the comment ends.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Whether another record could be taken for the end.
    pub(crate) second: bool,
    /// Whether the records agree with each other.
    pub(crate) sound: bool,
}

/// Finds the end record as Python's `zipfile` and PyTorch's miniz do: the last one in the file.
pub(crate) fn find<R: ReadAt + ?Sized>(source: &R) -> Result<End, Error> {
    let total = source.total_len();
    let tail_len = total.min(END_LEN as u64 + u64::from(u16::MAX));
    let tail_start = total - tail_len;
    let mut tail = Vec::new();
    let len = usize::try_from(tail_len).map_err(|_| ErrorKind::OutOfMemory {})?;
    tail.try_reserve_exact(len).map_err(|_| ErrorKind::OutOfMemory {})?;
    tail.resize(len, 0);
    source.read_exact_at(tail_start, &mut tail)?;
    let is_end = |window: &&[u8]| window.starts_with(b"PK\x05\x06");
    let found = tail.windows(END_LEN).enumerate().rev().find(|(_, window)| is_end(window));
    let (idx, record) = found.ok_or(ErrorKind::NoEnd {})?;
    let at = tail_start + idx as u64;

    let mut fields = Fields(record);
    fields.u32();
    let (disk, directory_disk, entries_here, entries) =
        (fields.u16(), fields.u16(), fields.u16(), fields.u16());
    let (directory_len, directory) = (fields.u32(), fields.u32());
    let comment_len = u64::from(fields.u16());
    let mut end = End {
        directory: directory.into(),
        directory_len: directory_len.into(),
        entries: entries.into(),
        base: 0,
        start: at,
        end: (at + END_LEN as u64).saturating_add(comment_len),
        second: false,
        sound: disk == directory_disk && (disk == 0 || disk == u16::MAX) && entries_here == entries,
    };
    end.sound &= end.end <= total;
    end.end = end.end.min(total);
    zip64(source, &mut end)?;
    // Python believes that the directory is before the end records, miniz the offset.
    let place = end.start.saturating_sub(end.directory_len);
    let is_directory = |at: u64| has(source, at, b"PK\x01\x02");
    if place != end.directory && is_directory(end.directory)? {
        if is_directory(place)? {
            end.second = true;
            end.base = place.saturating_sub(end.directory);
            end.directory = place;
        } else {
            end.sound = false;
        }
    } else {
        end.base = place.saturating_sub(end.directory);
        end.sound &= place >= end.directory;
        end.directory = place;
    }
    let most = end.start.checked_sub(end.directory).ok_or(ErrorKind::NoDirectory {})?;
    end.sound &= end.directory_len <= most;
    end.directory_len = end.directory_len.min(most);
    // What is before the directory are members, which may be archives.
    let from = usize::try_from(end.directory.saturating_sub(tail_start)).unwrap_or(usize::MAX);
    let others = tail.get(from..).unwrap_or_default().windows(END_LEN).filter(is_end).count();
    end.second |= others > 1;
    Ok(end)
}

/// Replaces what the end record leaves to the zip64 records.
fn zip64<R: ReadAt + ?Sized>(source: &R, end: &mut End) -> Result<(), Error> {
    let Some(locator) = end.start.checked_sub(LOCATOR_LEN) else { return Ok(()) };
    if !has(source, locator, b"PK\x06\x07")? {
        return Ok(());
    }
    let mut bytes = [0; LOCATOR_LEN as usize];
    source.read_exact_at(locator, &mut bytes)?;
    let mut fields = Fields(bytes.get(8..).unwrap_or_default());
    let declared = fields.u64();
    // Before the locator, or where that says, if nothing is before the archive.
    let adjacent = locator.checked_sub(END64_LEN);
    let mut record = declared;
    if let Some(adjacent) = adjacent
        && has(source, adjacent, b"PK\x06\x06")?
    {
        end.second |= declared != adjacent && has(source, declared, b"PK\x06\x06")?;
        record = adjacent;
    } else if !has(source, declared, b"PK\x06\x06")? {
        end.sound = false;
        return Ok(());
    }
    let mut bytes = [0; END64_LEN as usize];
    if record.checked_add(END64_LEN).is_none_or(|record_end| record_end > locator) {
        end.sound = false;
        return Ok(());
    }
    source.read_exact_at(record, &mut bytes)?;
    let mut fields = Fields(&bytes);
    fields.u32();
    let len = fields.u64();
    fields.u32(); // Versions.
    let (disk, directory_disk) = (fields.u32(), fields.u32());
    let (here, entries, directory_len, directory) = (fields.u64(), fields.u64(), fields.u64(), fields.u64());
    let same = |small: u64, large: u64, limit: u64| small == large || small == limit;
    end.sound &= len.checked_add(12).and_then(|len| len.checked_add(record)) == Some(locator)
        && (disk, directory_disk, here) == (0, 0, entries)
        && same(end.entries, entries, u16::MAX.into())
        && same(end.directory_len, directory_len, u32::MAX.into())
        && same(end.directory, directory, u32::MAX.into());
    (end.entries, end.directory_len, end.directory) = (entries, directory_len, directory);
    end.start = record;
    Ok(())
}

fn has<R: ReadAt + ?Sized>(source: &R, at: u64, signature: &[u8; 4]) -> Result<bool, Error> {
    let mut found = [0; 4];
    if check_range(at, found.len(), source.total_len()).is_err() {
        return Ok(false);
    }
    source.read_exact_at(at, &mut found)?;
    Ok(found == *signature)
}
