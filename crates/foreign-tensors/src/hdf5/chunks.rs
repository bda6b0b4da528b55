//! Datasets in chunks: their bytes, put together when they are asked for.

use alloc::boxed::Box;
use alloc::vec::Vec;

use read_at::ReadAt;

use crate::error::Error;
use crate::hdf5::file::{File, Frame};
use crate::hdf5::filters::{self, Filter};
use crate::hdf5::index;
use crate::hdf5::layout::Index;
use crate::tensor::{Decode, reserved};

/// Steps of the walk through the index of one dataset.
const STEPS: u64 = 1 << 26;

/// A dataset whose stored bytes are not its elements in order: in chunks, or never written.
#[derive(Debug)]
pub(crate) struct Chunked {
    pub(crate) frame: Frame,
    pub(crate) shape: Vec<u64>,
    pub(crate) max: Vec<Option<u64>>,
    pub(crate) chunk: Vec<u64>,
    /// Bytes of an element.
    pub(crate) width: u64,
    pub(crate) fill: Option<Box<[u8]>>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) index: Index,
    /// Of the index; `None` if nothing was written.
    pub(crate) address: Option<u64>,
    /// Chunks that reach beyond the shape are not filtered.
    pub(crate) edges_unfiltered: bool,
}

/// One chunk as the index has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) address: u64,
    /// Bytes as stored; `None` if they are as many as those of the chunk.
    pub(crate) len: Option<u64>,
    /// A bit for each filter that was not applied.
    pub(crate) skipped: u32,
}

impl Chunked {
    /// Bytes of a chunk.
    pub(crate) fn chunk_len(&self) -> Option<u64> {
        self.chunk.iter().try_fold(self.width, |len, dim| len.checked_mul(*dim))
    }

    /// Chunks in each dimension.
    pub(crate) fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(dim, chunk)| dim.div_ceil(*chunk)).collect()
    }

    fn len(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.width, |len, dim| len.checked_mul(*dim))
    }

    /// All elements with the fill value.
    fn filled(&self) -> Result<Vec<u8>, Error> {
        let len = self.len().ok_or_else(|| Error::view("its size overflows"))?;
        let mut out = reserved(len)?;
        match &self.fill {
            Some(value) if value.len() as u64 == self.width => {
                for _ in 0..len / self.width {
                    out.extend_from_slice(value);
                }
            }
            Some(_) => return Err(Error::malformed("a fill value has another length than its type")),
            None => out.resize(len as usize, 0),
        }
        Ok(out)
    }

    /// The bytes of a chunk, with its filters undone.
    fn chunk_bytes(
        &self,
        file: &File<'_>,
        stored: Stored,
        is_edge: bool,
        len: u64,
    ) -> Result<Vec<u8>, Error> {
        let bytes = file.read(stored.address, stored.len.unwrap_or(len))?;
        let filters = if is_edge && self.edges_unfiltered { &[][..] } else { &self.filters };
        file.at(stored.address, filters::undo(filters, stored.skipped, bytes, len))
    }

    /// Whether there is one chunk only.
    fn is_one_chunk(&self) -> bool {
        self.grid().iter().all(|chunks| *chunks == 1)
    }

    /// The dataset whose only chunk has these bytes.
    fn of_one_chunk(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        if self.shape == self.chunk {
            return Ok(bytes);
        }
        let mut out = self.filled()?;
        self.place(&alloc::vec![0; self.shape.len()], &bytes, &mut out);
        Ok(out)
    }
}

impl Decode for Chunked {
    fn decode(&self, source: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        let file = File::reopen(source, self.frame, STEPS.saturating_add(source.total_len()));
        let chunk_len = self.chunk_len().ok_or_else(|| Error::view("its size overflows"))?;
        let Some(address) = self.address.filter(|_| !self.shape.contains(&0)) else { return self.filled() };
        // One chunk is decompressed before there is memory for the dataset.
        let is_one = self.is_one_chunk();
        let mut out = if is_one { Vec::new() } else { self.filled()? };
        let grid = self.grid();
        let count = grid.iter().fold(1_u64, |count, chunks| count.saturating_mul(*chunks));
        // A bit for each chunk that has been found.
        let mut found = reserved(count / 8 + 1)?;
        found.resize((count / 8 + 1) as usize, 0_u8);
        index::for_each_chunk(&file, self, address, &mut |position, stored| {
            let inside = position.iter().zip(&grid).all(|(at, chunks)| at < chunks);
            // Chunks of what the dataset was before it shrank.
            if !inside || position.len() != grid.len() {
                return Ok(());
            }
            let number = position.iter().zip(&grid).fold(0, |number, (at, chunks)| number * chunks + at);
            if let Some(byte) = found.get_mut((number / 8) as usize) {
                if *byte >> (number % 8) & 1 != 0 {
                    return Err(Error::malformed("a dataset has a chunk twice"));
                }
                *byte |= 1 << (number % 8);
            }
            let is_edge = position
                .iter()
                .zip(&self.chunk)
                .zip(&self.shape)
                .any(|((at, chunk), dim)| (at + 1) * chunk > *dim);
            let bytes = self.chunk_bytes(&file, stored, is_edge, chunk_len)?;
            if is_one {
                out = self.of_one_chunk(bytes)?;
            } else {
                self.place(position, &bytes, &mut out);
            }
            Ok(())
        })?;
        if is_one && out.is_empty() { self.filled() } else { Ok(out) }
    }
}

impl Chunked {
    /// Copies the elements of a chunk that are inside of the shape.
    fn place(&self, position: &[u64], chunk_bytes: &[u8], out: &mut [u8]) {
        let rank = self.shape.len();
        // By dimension: first element of the chunk, and how many of it are inside.
        let inside: Vec<(u64, u64)> = position
            .iter()
            .zip(&self.chunk)
            .zip(&self.shape)
            .map(|((at, chunk), dim)| {
                let start = at.saturating_mul(*chunk);
                (start, dim.saturating_sub(start).min(*chunk))
            })
            .collect();
        let row = inside.last().map_or(1, |(_, count)| *count) * self.width;
        let mut digits = alloc::vec![0_u64; rank.saturating_sub(1)];
        loop {
            let (mut from, mut to) = (0, 0);
            for (idx, (((start, _), chunk), dim)) in
                inside.iter().zip(&self.chunk).zip(&self.shape).enumerate()
            {
                let digit = digits.get(idx).copied().unwrap_or(0);
                from = from * chunk + digit;
                to = to * dim + start + digit;
            }
            let (from, to) = ((from * self.width) as usize, (to * self.width) as usize);
            let row = row as usize;
            if let (Some(from), Some(to)) = (chunk_bytes.get(from..from + row), out.get_mut(to..to + row)) {
                to.copy_from_slice(from);
            }
            // The next row: as an odometer.
            let mut dim = digits.len();
            loop {
                let Some(at) = dim.checked_sub(1) else { return };
                dim = at;
                let (Some(digit), Some((_, count))) = (digits.get_mut(at), inside.get(at)) else { return };
                *digit += 1;
                if *digit < *count {
                    break;
                }
                *digit = 0;
            }
        }
    }
}
