//! Indexes of chunks.

use alloc::vec::Vec;

use crate::error::Error;
use crate::hdf5::chunks::{Chunked, Stored};
use crate::hdf5::dense::for_each_record;
use crate::hdf5::file::{Fields, File};
use crate::hdf5::group::for_each_child;
use crate::hdf5::layout::Index;

/// Type of the trees of version 1 of chunks, and of those of version 2 without and with filters.
const TREE_1: u8 = 1;
const TREE_2: u8 = 10;
const TREE_2_FILTERED: u8 = 11;

/// What is called for each chunk, with its position in the grid.
pub(crate) type Take<'t> = &'t mut dyn FnMut(&[u64], Stored) -> Result<(), Error>;

/// Calls `take` for each chunk that was written.
pub(crate) fn for_each_chunk(
    file: &File<'_>,
    dataset: &Chunked,
    address: u64,
    take: Take<'_>,
) -> Result<(), Error> {
    match dataset.index {
        Index::Tree1 => tree_1(file, dataset, address, take),
        Index::Tree2 => tree_2(file, dataset, address, take),
        Index::Single(None) => {
            take(&alloc::vec![0; dataset.shape.len()], Stored { address, len: None, skipped: 0 })
        }
        Index::Single(Some((len, skipped))) => {
            take(&alloc::vec![0; dataset.shape.len()], Stored { address, len: Some(len), skipped })
        }
        Index::Implicit => {
            let numbering = Numbering::new(dataset, false);
            let chunk_len = dataset.chunk_len().unwrap_or(u64::MAX);
            numbering.for_each(file, &mut |position, number| {
                let offset = chunk_len.checked_mul(number).and_then(|offset| offset.checked_add(address));
                let address =
                    offset.ok_or_else(|| Error::malformed("a chunk is beyond the end of the file"))?;
                take(position, Stored { address, len: None, skipped: 0 })
            })
        }
        Index::FixedArray => fixed_array(file, dataset, address, take),
        Index::ExtensibleArray => extensible_array(file, dataset, address, take),
    }
}

/// B-tree of version 1: keys are the length, the filters skipped, and the offset in elements.
fn tree_1(file: &File<'_>, dataset: &Chunked, address: u64, take: Take<'_>) -> Result<(), Error> {
    let rank = dataset.shape.len();
    let (mut position, mut previous) = (Vec::with_capacity(rank), Vec::new());
    let mut is_first = true;
    for_each_child(file, address, TREE_1, 8 + 8 * (rank + 1), &mut |key, address| {
        let mut fields = Fields::new(key);
        let (len, skipped) = (u64::from(fields.u32()?), fields.u32()?);
        core::mem::swap(&mut position, &mut previous);
        position.clear();
        for chunk in &dataset.chunk {
            let offset = fields.length_of(8)?;
            if offset % chunk != 0 {
                return Err(Error::malformed("a chunk begins within another one"));
            }
            position.push(offset / chunk);
        }
        // The library of HDF5 searches: it would find other chunks.
        let in_order = core::mem::take(&mut is_first) || position > previous;
        if len == 0 || !in_order {
            return Err(Error::malformed("the chunks of a dataset are empty or not in order"));
        }
        take(&position, Stored { address, len: Some(len), skipped })
    })
}

/// B-tree of version 2: an address, with filters the length and those skipped, and the position.
fn tree_2(file: &File<'_>, dataset: &Chunked, address: u64, take: Take<'_>) -> Result<(), Error> {
    let rank = dataset.shape.len();
    let address_size = file.frame.address_size;
    let mut position = Vec::with_capacity(rank);
    for_each_record(file, address, &mut |kind, record| {
        let mut fields = Fields::new(record);
        let address = fields.some_address(&file.frame)?;
        let (len, skipped) = match kind {
            TREE_2 => (None, 0),
            TREE_2_FILTERED => {
                let len_size = record.len().checked_sub(address_size + 4 + 8 * rank);
                let len_size = len_size.filter(|size| (1..=8).contains(size));
                let len_size = len_size.ok_or_else(|| Error::malformed("a chunk has no length"))?;
                (Some(fields.length_of(len_size)?), fields.u32()?)
            }
            _ => return Err(Error::malformed("a tree of chunks has another type")),
        };
        position.clear();
        for _ in 0..rank {
            position.push(fields.length_of(8)?);
        }
        take(&position, Stored { address, len, skipped })
    })
}

/// What is called for each chunk, with its position in the grid and its number.
type TakeNumber<'t> = &'t mut dyn FnMut(&[u64], u64) -> Result<(), Error>;

/// The numbers of chunks in arrays: those of the largest shape that the dataset may grow to.
struct Numbering {
    /// By dimension, in the order of the file: chunks there are, and how many numbers one step of the dimension is.
    dims: Vec<(u64, u64)>,
}

impl Numbering {
    /// With `grows`, the one dimension without a limit is the outermost.
    fn new(dataset: &Chunked, grows: bool) -> Self {
        let unlimited = dataset.max.iter().position(Option::is_none).filter(|_| grows);
        let chunks = |idx: usize| {
            let max = dataset.max.get(idx).copied().flatten();
            let shape = dataset.shape.get(idx).copied().unwrap_or(1);
            max.unwrap_or(shape).div_ceil(dataset.chunk.get(idx).copied().unwrap_or(1))
        };
        let mut dims: Vec<(u64, u64)> = dataset.grid().into_iter().map(|chunks| (chunks, 0)).collect();
        let mut step = 1_u64;
        let order = (0..dims.len()).rev().filter(|idx| Some(*idx) != unlimited).chain(unlimited);
        for idx in order {
            if let Some(dim) = dims.get_mut(idx) {
                dim.1 = step;
            }
            step = step.saturating_mul(chunks(idx));
        }
        Self { dims }
    }

    /// Calls `take` for each chunk of the shape, with its position and its number.
    fn for_each(&self, file: &File<'_>, take: TakeNumber<'_>) -> Result<(), Error> {
        if self.dims.iter().any(|(chunks, _)| *chunks == 0) {
            return Ok(());
        }
        let mut position = alloc::vec![0_u64; self.dims.len()];
        loop {
            file.step(1)?;
            let number = position
                .iter()
                .zip(&self.dims)
                .fold(0_u64, |number, (at, (_, step))| number.saturating_add(at.saturating_mul(*step)));
            take(&position, number)?;
            let mut left = self.dims.len();
            loop {
                let Some(idx) = left.checked_sub(1) else { return Ok(()) };
                left = idx;
                let (Some(at), Some((chunks, _))) = (position.get_mut(idx), self.dims.get(idx)) else {
                    return Ok(());
                };
                *at += 1;
                if *at < *chunks {
                    break;
                }
                *at = 0;
            }
        }
    }
}

/// An entry of an array; `None` for a chunk that was not written.
fn entry(file: &File<'_>, bytes: &[u8], filtered: bool) -> Result<Option<Stored>, Error> {
    let mut fields = Fields::new(bytes);
    let Some(address) = fields.address(&file.frame)? else { return Ok(None) };
    if !filtered {
        return Ok(Some(Stored { address, len: None, skipped: 0 }));
    }
    let len_size = fields.rest().len().checked_sub(4).filter(|size| (1..=8).contains(size));
    let len_size = len_size.ok_or_else(|| Error::malformed("a chunk has no length"))?;
    Ok(Some(Stored { address, len: Some(fields.length_of(len_size)?), skipped: fields.u32()? }))
}

/// What both kinds of arrays begin with: whether entries have lengths, and the bytes of an entry.
fn array_head(file: &File<'_>, fields: &mut Fields<'_>) -> Result<(bool, u64), Error> {
    fields.take(4)?;
    let (version, client) = (fields.u8()?, fields.u8()?);
    let size = usize::from(fields.u8()?);
    let filtered = client == 1;
    let sound = match client {
        0 => size == file.frame.address_size,
        _ => size > file.frame.address_size + 4 && size <= file.frame.address_size + 12,
    };
    if version != 0 || client > 1 || !sound {
        return Err(Error::malformed("an array of chunks has an unknown form"));
    }
    Ok((filtered, size as u64))
}

fn missing() -> Error {
    Error::malformed("an array of chunks is too short")
}

/// The block that was read last: neighbours are in the same one.
#[derive(Default)]
struct Block {
    address: u64,
    bytes: Vec<u8>,
}

impl Block {
    /// Bytes of a block of this length, which includes a checksum at its end.
    fn read(&mut self, file: &File<'_>, address: u64, len: u64, signature: &[u8]) -> Result<&[u8], Error> {
        if self.bytes.is_empty() || self.address != address {
            self.bytes = file.read_checked(address, len, signature)?;
            self.address = address;
        }
        Ok(&self.bytes)
    }

    /// An entry of an array in pages. `first` is the address of the first page, `count` the number of entries of all.
    fn entry_in_pages(
        &mut self,
        file: &File<'_>,
        (first, page, count): (u64, u64, u64),
        idx: u64,
        entry_len: u64,
    ) -> Result<&[u8], Error> {
        let number = idx.checked_div(page).ok_or_else(missing)?;
        let before = number.checked_mul(page).ok_or_else(missing)?;
        let in_page = page.min(count.saturating_sub(before));
        let page_len = |entries: u64| entries.checked_mul(entry_len)?.checked_add(4);
        let address = page_len(page).and_then(|len| len.checked_mul(number)?.checked_add(first));
        let (address, len) = (address.ok_or_else(missing)?, page_len(in_page).ok_or_else(missing)?);
        part(self.read(file, address, len, b"")?, (idx - before) * entry_len, entry_len)
    }
}

/// A part of a block.
fn part(block: &[u8], at: u64, len: u64) -> Result<&[u8], Error> {
    let rest = usize::try_from(at).ok().and_then(|at| block.get(at..));
    rest.and_then(|rest| rest.get(..usize::try_from(len).ok()?)).ok_or_else(missing)
}

/// A bit of a map that begins at an offset of a block. The highest bit of a byte is the first of eight.
fn bit(block: &[u8], map: u64, number: u64) -> Result<bool, Error> {
    let byte = part(block, map.saturating_add(number / 8), 1)?.first().copied().unwrap_or(0);
    Ok(byte >> (7 - number % 8) & 1 != 0)
}

fn fixed_array(file: &File<'_>, dataset: &Chunked, address: u64, take: Take<'_>) -> Result<(), Error> {
    let frame = &file.frame;
    let len = 4 + 4 + frame.length_size + frame.address_size + 4;
    let header = file.read_checked(address, len as u64, b"FAHD")?;
    let mut fields = Fields::new(&header);
    let (filtered, entry_len) = array_head(file, &mut fields)?;
    let page_bits = fields.u8()?;
    let count = fields.length(frame)?;
    let Some(block) = fields.address(frame)? else { return Ok(()) };
    let page = 1_u64.checked_shl(page_bits.into()).ok_or_else(missing)?;
    let head = (6 + frame.address_size) as u64;
    let paged = count > page;
    // A map of the pages that were written, or the entries.
    let len = if paged { Some(count.div_ceil(page).div_ceil(8)) } else { count.checked_mul(entry_len) };
    let len = len.and_then(|len| len.checked_add(head + 4)).ok_or_else(missing)?;
    let whole = file.read_checked(block, len, b"FADB")?;
    let mut last = Block::default();
    Numbering::new(dataset, false).for_each(file, &mut |position, number| {
        if number >= count {
            return Err(missing());
        }
        let bytes = if !paged {
            part(&whole, head + number * entry_len, entry_len)?
        } else if bit(&whole, head, number / page)? {
            last.entry_in_pages(file, (block + len, page, count), number, entry_len)?
        } else {
            return Ok(());
        };
        match entry(file, bytes, filtered)? {
            Some(stored) => take(position, stored),
            None => Ok(()),
        }
    })
}

/// The form of an extensible array, and the blocks that were read last.
struct Extensible<'f, 'a> {
    file: &'a File<'f>,
    entry_len: u64,
    /// Entries in the index block.
    in_index: u64,
    /// Entries of the smallest data block.
    min_entries: u64,
    /// Data blocks whose addresses are in the index block.
    blocks_in_index: u64,
    /// Super blocks whose data blocks are in the index block.
    supers_in_index: u64,
    n_supers: u64,
    page: u64,
    /// Bytes of the offset of a block.
    offset_size: u64,
    index: Vec<u8>,
    super_block: Block,
    /// A data block, or what is in front of its pages.
    data_block: Block,
    data_page: Block,
}

fn extensible_array(file: &File<'_>, dataset: &Chunked, address: u64, take: Take<'_>) -> Result<(), Error> {
    let frame = &file.frame;
    let len = 4 + 3 + 5 + 6 * frame.length_size + frame.address_size + 4;
    let header = file.read_checked(address, len as u64, b"EAHD")?;
    let mut fields = Fields::new(&header);
    let (filtered, entry_len) = array_head(file, &mut fields)?;
    let max_bits = u64::from(fields.u8()?);
    let in_index = u64::from(fields.u8()?);
    let min_entries = u64::from(fields.u8()?);
    let min_pointers = u64::from(fields.u8()?);
    let page_bits = fields.u8()?;
    fields.take(6 * frame.length_size)?;
    let Some(index) = fields.address(frame)? else { return Ok(()) };
    if max_bits > 64 || !min_entries.is_power_of_two() || !min_pointers.is_power_of_two() {
        return Err(Error::malformed("an array of chunks has an unknown form"));
    }
    let mut array = Extensible {
        file,
        entry_len,
        in_index,
        min_entries,
        blocks_in_index: 2 * (min_pointers - 1),
        supers_in_index: 2 * u64::from(min_pointers.trailing_zeros()),
        n_supers: 1 + max_bits.saturating_sub(min_entries.trailing_zeros().into()),
        page: 1_u64.checked_shl(page_bits.into()).ok_or_else(missing)?,
        offset_size: max_bits.div_ceil(8),
        index: Vec::new(),
        super_block: Block::default(),
        data_block: Block::default(),
        data_page: Block::default(),
    };
    let n_pointers = array.blocks_in_index + array.n_supers.saturating_sub(array.supers_in_index);
    let index_len = in_index * entry_len + n_pointers * frame.address_size as u64;
    array.index = file.read_checked(index, (6 + frame.address_size + 4) as u64 + index_len, b"EAIB")?;
    Numbering::new(dataset, true).for_each(file, &mut |position, number| match array
        .entry(number)?
        .map(|bytes| entry(file, bytes, filtered))
        .transpose()?
        .flatten()
    {
        Some(stored) => take(position, stored),
        None => Ok(()),
    })
}

/// An address in a block.
fn pointer(file: &File<'_>, block: &[u8], at: u64) -> Result<Option<u64>, Error> {
    let size = file.frame.address_size as u64;
    Fields::new(part(block, at, size)?).address(&file.frame)
}

impl Extensible<'_, '_> {
    /// The entry with a number; `None` if its block was not written.
    fn entry(&mut self, number: u64) -> Result<Option<&[u8]>, Error> {
        let (file, entry_len) = (self.file, self.entry_len);
        let address_size = file.frame.address_size as u64;
        let entries = 6 + address_size;
        let Some(number) = number.checked_sub(self.in_index) else {
            return part(&self.index, entries + number * entry_len, entry_len).map(Some);
        };
        // Super blocks double the number of their data blocks and the length of these in turn.
        let super_idx = (number / self.min_entries).saturating_add(1).ilog2();
        let first = ((1_u64 << super_idx) - 1) * self.min_entries;
        let n_blocks = 1_u64 << (super_idx / 2);
        let block_entries = self.min_entries.checked_mul(1 << super_idx.div_ceil(2)).ok_or_else(missing)?;
        if u64::from(super_idx) >= self.n_supers {
            return Err(missing());
        }
        let (block, in_block) = ((number - first) / block_entries, (number - first) % block_entries);
        let paged = block_entries > self.page;
        let pages = if paged { block_entries.div_ceil(self.page) } else { 0 };
        let pointers = entries + self.in_index * entry_len;
        let head = entries + self.offset_size;
        let data = if u64::from(super_idx) < self.supers_in_index {
            // Data blocks before those of this super block.
            let before = 2 * ((1_u64 << (super_idx / 2)) - 1) + if super_idx % 2 == 1 { n_blocks } else { 0 };
            pointer(file, &self.index, pointers + (before + block) * address_size)?
        } else {
            let skipped = self.blocks_in_index + u64::from(super_idx) - self.supers_in_index;
            let Some(address) = pointer(file, &self.index, pointers + skipped * address_size)? else {
                return Ok(None);
            };
            let maps = n_blocks.checked_mul(pages.div_ceil(8));
            let len = n_blocks.checked_mul(address_size).and_then(|len| len.checked_add(maps?));
            let len = len.and_then(|len| len.checked_add(head + 4)).ok_or_else(missing)?;
            let super_block = self.super_block.read(file, address, len, b"EASB")?;
            // The bits of all blocks follow each other, although space is reserved for whole bytes of each block.
            if paged && !bit(super_block, head, block * pages + in_block / self.page)? {
                return Ok(None);
            }
            pointer(file, super_block, head + maps.unwrap_or(0) + block * address_size)?
        };
        let Some(data) = data else { return Ok(None) };
        if paged {
            self.data_block.read(file, data, head + 4, b"EADB")?;
            let pages = (data + head + 4, self.page, block_entries);
            return self.data_page.entry_in_pages(file, pages, in_block, entry_len).map(Some);
        }
        let len = block_entries.checked_mul(entry_len).and_then(|len| len.checked_add(head + 4));
        let data = self.data_block.read(file, data, len.ok_or_else(missing)?, b"EADB")?;
        part(data, head + in_block * entry_len, entry_len).map(Some)
    }
}
