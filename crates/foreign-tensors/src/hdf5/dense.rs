//! Fractal heaps and B-trees of version 2: links and attributes of objects with many of them, and chunks.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::error::Error;
use crate::hdf5::file::{Fields, File, bytes_for};

/// Levels of a tree. A deeper one has more records than any file.
const MAX_DEPTH: u16 = 16;
/// Signature, version, type and checksum of a node.
const NODE_OVERHEAD: u64 = 10;

/// What is called for each record, with the type of the tree.
pub(crate) type Take<'t> = &'t mut dyn FnMut(u8, &[u8]) -> Result<(), Error>;

/// Calls `record` for each record of the tree at an address.
pub(crate) fn for_each_record(file: &File<'_>, address: u64, record: Take<'_>) -> Result<(), Error> {
    let frame = &file.frame;
    let header_len = 4 + 1 + 1 + 4 + 2 + 2 + 2 + frame.address_size + 2 + frame.length_size + 4;
    let header = file.read_checked(address, header_len as u64, b"BTHD")?;
    let mut fields = Fields::new(&header);
    fields.take(5)?;
    let kind = fields.u8()?;
    let node_size = u64::from(fields.u32()?);
    let record_size = u64::from(fields.u16()?);
    let depth = fields.u16()?;
    fields.take(2)?;
    let root = fields.address(frame)?;
    let in_root = u64::from(fields.u16()?);
    let bad = || Error::malformed("the sizes of a B-tree contradict each other");
    if record_size == 0 || depth > MAX_DEPTH {
        return Err(bad());
    }
    let Some(root) = root else { return Ok(()) };

    // Records of a node and of all below it, at most: they decide how wide the counts in pointers are.
    let leaf_max = node_size.checked_sub(NODE_OVERHEAD).ok_or_else(bad)? / record_size;
    let count_size = bytes_for(leaf_max);
    let mut below = leaf_max;
    // By depth: bytes of the count of all records below a child.
    let mut below_sizes = alloc::vec![0];
    for _ in 0..depth {
        let pointer = (frame.address_size + count_size + below_sizes.last().copied().unwrap_or(0)) as u64;
        let max = node_size.checked_sub(NODE_OVERHEAD + pointer).ok_or_else(bad)? / (record_size + pointer);
        below = (max + 1).saturating_mul(below).saturating_add(max);
        below_sizes.push(bytes_for(below));
    }

    let mut nodes = 0;
    let mut pending = alloc::vec![(root, in_root, usize::from(depth))];
    while let Some((address, count, depth)) = pending.pop() {
        nodes += 1;
        let is_leaf = depth == 0;
        let below_size = depth.checked_sub(1).and_then(|depth| below_sizes.get(depth)).copied().unwrap_or(0);
        let pointer = frame.address_size + count_size + below_size;
        let records_len = count.checked_mul(record_size).ok_or_else(bad)?;
        let len = NODE_OVERHEAD + records_len + if is_leaf { 0 } else { (count + 1) * pointer as u64 };
        if records_len > node_size || nodes > file.frame.file_len() / NODE_OVERHEAD {
            return Err(bad());
        }
        let node = file.read_checked(address, len, if is_leaf { b"BTLF" } else { b"BTIN" })?;
        let mut fields = Fields::new(&node);
        fields.take(5)?;
        if fields.u8()? != kind {
            return Err(bad());
        }
        for bytes in fields.take(records_len as usize)?.chunks_exact(record_size as usize) {
            record(kind, bytes)?;
        }
        if let Some(depth) = depth.checked_sub(1) {
            for _ in 0..=count {
                let child = fields.some_address(frame)?;
                let count = fields.length_of(count_size)?;
                fields.take(below_size)?;
                pending.push((child, count, depth));
            }
        }
    }
    Ok(())
}

/// Where objects of varying length are.
pub(crate) struct FractalHeap<'f, 'a> {
    file: &'a File<'f>,
    /// Bytes of an offset in the heap, and of a length.
    offset_size: usize,
    len_size: usize,
    width: u64,
    start_size: u64,
    max_direct: u64,
    /// Rows of the root; 0 if it is a direct block.
    root_rows: u64,
    root: Option<u64>,
    checked_blocks: bool,
    id_len: usize,
    /// Blocks that have been read, by address.
    blocks: BTreeMap<u64, Vec<u8>>,
    bytes: u64,
}

impl<'f, 'a> FractalHeap<'f, 'a> {
    /// Reads the header of the heap.
    pub(crate) fn open(file: &'a File<'f>, address: u64) -> Result<Self, Error> {
        let frame = &file.frame;
        let (offset, length) = (frame.address_size, frame.length_size);
        let len = 4 + 1 + 2 + 2 + 1 + 4 + 12 * length + 3 * offset + 2 + 2 + 2 + 2 + 4;
        let header = file.read_checked(address, len as u64, b"FRHP");
        // With filters, more follows: the checksum is not where it was looked for.
        let header = match header {
            Err(_) if Fields::new(&file.read(address, 9)?.split_off(7)).u16()? > 0 => {
                return Err(Error::unsupported("a compressed heap of HDF5"));
            }
            header => header?,
        };
        let mut fields = Fields::new(&header);
        fields.take(5)?;
        let id_len = usize::from(fields.u16()?);
        fields.u16()?;
        let checked_blocks = fields.u8()? & 2 != 0;
        let max_object = u64::from(fields.u32()?);
        fields.take(length + offset + length + offset + 8 * length)?;
        let width = u64::from(fields.u16()?);
        let start_size = fields.length(frame)?;
        let max_direct = fields.length(frame)?;
        let bits = fields.u16()?;
        fields.u16()?;
        let root = fields.address(frame)?;
        let root_rows = u64::from(fields.u16()?);
        let sound = width > 0
            && start_size.is_power_of_two()
            && max_direct.is_power_of_two()
            && start_size <= max_direct
            && (1..=64).contains(&bits);
        if !sound {
            return Err(Error::malformed("the sizes of a heap contradict each other"));
        }
        Ok(Self {
            file,
            offset_size: usize::from(bits).div_ceil(8),
            len_size: bytes_for(max_direct).min(bytes_for(max_object)),
            width,
            start_size,
            max_direct,
            root_rows,
            root,
            checked_blocks,
            id_len,
            blocks: BTreeMap::new(),
            bytes: 0,
        })
    }

    /// Bytes of an identifier of an object.
    pub(crate) const fn id_len(&self) -> usize {
        self.id_len
    }

    /// The object with an identifier; `None` if it is stored outside of the heap because of its size.
    pub(crate) fn object(&mut self, id: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut fields = Fields::new(id);
        let first = fields.u8()?;
        match first >> 4 & 3 {
            0 => {
                let (offset, len) = (fields.length_of(self.offset_size)?, fields.length_of(self.len_size)?);
                let (block, start) = self.block_of(offset)?;
                let block = self.block(block.0, block.1)?;
                let start = usize::try_from(start).ok();
                let object = start.and_then(|start| block.get(start..)?.get(..usize::try_from(len).ok()?));
                let object = object.ok_or_else(|| Error::malformed("an object reaches beyond its heap"))?;
                Ok(Some(object.to_vec()))
            }
            2 if self.id_len <= 17 => Ok(Some(fields.take(usize::from(first & 15) + 1)?.to_vec())),
            2 => {
                let len = usize::from(first & 15) << 8 | usize::from(fields.u8()?);
                Ok(Some(fields.take(len + 1)?.to_vec()))
            }
            _ => Ok(None),
        }
    }

    /// Size of the blocks of a row.
    fn block_size(&self, row: u64) -> Option<u64> {
        let shift = u32::try_from(row.saturating_sub(1)).ok()?;
        self.start_size.checked_mul(1_u64.checked_shl(shift)?)
    }

    /// Address and size of the direct block with this offset, and the offset in the block.
    fn block_of(&mut self, mut offset: u64) -> Result<((u64, u64), u64), Error> {
        let bad = || Error::malformed("a heap has no block for an object");
        let mut address = self.root.ok_or_else(bad)?;
        let mut rows = self.root_rows;
        if rows == 0 {
            return Ok(((address, self.start_size), offset));
        }
        let frame = &self.file.frame;
        let direct_rows = u64::from(self.max_direct.trailing_zeros() - self.start_size.trailing_zeros()) + 2;
        // Each step leads to smaller blocks.
        for _ in 0..64 {
            let (mut row, mut row_start) = (0, 0_u64);
            let size = loop {
                let size = self.block_size(row).ok_or_else(bad)?;
                let end = size
                    .checked_mul(self.width)
                    .and_then(|len| row_start.checked_add(len))
                    .ok_or_else(bad)?;
                if offset < end {
                    break size;
                }
                (row, row_start) = (row + 1, end);
            };
            if row >= rows {
                return Err(bad());
            }
            let column = (offset - row_start) / size;
            let in_block = (offset - row_start) % size;
            let entries = rows.checked_mul(self.width).ok_or_else(bad)?;
            let prefix = 5 + frame.address_size + self.offset_size;
            let len = entries
                .checked_mul(frame.address_size as u64)
                .and_then(|len| len.checked_add(prefix as u64 + 4));
            let at = usize::try_from(row * self.width + column).ok();
            let at = at.and_then(|idx| idx.checked_mul(frame.address_size));
            let indirect = self.indirect(address, len.ok_or_else(bad)?)?;
            let entry = at.and_then(|at| indirect.get(prefix + at..)).ok_or_else(bad)?;
            address = Fields::new(entry).address(frame)?.ok_or_else(bad)?;
            if row < direct_rows {
                return Ok(((address, size), in_block));
            }
            // Rows of an indirect block: as many as make up its size.
            let first = self.start_size.checked_mul(self.width).ok_or_else(bad)?;
            rows = u64::from((size / first).checked_ilog2().ok_or_else(bad)?) + 1;
            offset = in_block;
        }
        Err(bad())
    }

    fn indirect(&mut self, address: u64, len: u64) -> Result<&[u8], Error> {
        self.keep(address, len, |file| file.read_checked(address, len, b"FHIB"))
    }

    fn block(&mut self, address: u64, len: u64) -> Result<&[u8], Error> {
        let checksum_at = 5 + self.file.frame.address_size + self.offset_size;
        let checked = self.checked_blocks;
        self.keep(address, len, |file| {
            let mut block = file.read(address, len)?;
            file.at(address, Fields::new(&block).signature(b"FHDB"))?;
            if let Some(sum) = block.get_mut(checksum_at..checksum_at + 4).filter(|_| checked) {
                // The sum is that of the block with zeros in its place.
                let stored = Fields::new(sum).u32()?;
                sum.fill(0);
                file.at(address, crate::hdf5::file::check(&block, stored))?;
            }
            Ok(block)
        })
    }

    fn keep(
        &mut self,
        address: u64,
        len: u64,
        read: impl FnOnce(&File<'f>) -> Result<Vec<u8>, Error>,
    ) -> Result<&[u8], Error> {
        if !self.blocks.contains_key(&address) {
            self.bytes = self.bytes.saturating_add(len);
            if self.bytes > self.file.frame.file_len() {
                return Err(Error::malformed("the blocks of a heap overlap"));
            }
            self.blocks.insert(address, read(self.file)?);
        }
        Ok(self.blocks.get(&address).map_or(&[], Vec::as_slice))
    }
}
