//! Quantization and dequantization on all cores.

use alloc::vec::Vec;

use rayon::prelude::*;

use crate::error::Error;
use crate::quantizer::{Quantizer, dequantize};
use tensor_dtype::Dtype;

/// Elements per task: enough to outweigh the cost of a task, few enough for the cache of a core.
const AT_ONCE: usize = 1 << 16;

impl Quantizer<'_> {
    /// As [`quantize`](Self::quantize), on the threads of the current pool. The bytes and the error are the same.
    ///
    /// On an error, `out` may hold blocks after the one with the error.
    ///
    /// # Errors
    ///
    /// As [`quantize`](Self::quantize).
    pub fn quantize_parallel(&self, values: &[f32], row_len: usize, out: &mut [u8]) -> Result<(), Error> {
        let dtype = self.dtype();
        if is_whole(dtype) {
            return self.quantize(values, row_len, out);
        }
        self.check(values, row_len, out)?;
        // Only importance depends on rows.
        let unit = if self.has_importance() { row_len } else { dtype.block_len() };
        let count = (AT_ONCE / unit.max(1)).max(1) * unit.max(1);
        let bytes = count / dtype.block_len() * dtype.block_bytes();
        // One task each: with larger tasks, a delayed core would hold up a quarter of the work.
        let pieces = values.par_chunks(count).zip(out.par_chunks_mut(bytes)).enumerate().with_max_len(1);
        let results = pieces.map(|(idx, (values, out))| {
            let row_len = if self.has_importance() { row_len } else { values.len() };
            self.quantize(values, row_len, out).map_err(|error| error.offset_elements((idx * count) as u64))
        });
        results.find_first(Result::is_err).unwrap_or(Ok(()))
    }
}

/// As [`dequantize`], on the threads of the current pool.
///
/// # Errors
///
/// As [`dequantize`].
pub fn dequantize_parallel(dtype: Dtype, bytes: &[u8], out: &mut [f32]) -> Result<(), Error> {
    if is_whole(dtype) {
        return dequantize(dtype, bytes, out);
    }
    crate::dtype::check_blocks(dtype, bytes, out)?;
    let block_bytes = AT_ONCE / dtype.block_len() * dtype.block_bytes();
    let pieces = out.par_chunks_mut(AT_ONCE).zip(bytes.par_chunks(block_bytes)).with_max_len(1);
    pieces.map(|(out, bytes)| dequantize(dtype, bytes, out)).find_first(Result::is_err).unwrap_or(Ok(()))
}

/// Makes pieces in three stages: `load` and `take` run on the calling thread, in order, and at the same time `make` on the threads of the
/// current pool, for several pieces. A piece has the buffers of one that was taken; as many pieces as the pool has threads are in each
/// stage, of a small pool twice as many.
///
/// # Errors
///
/// The first of the earliest stage of the earliest pieces; what was taken before is the beginning.
pub fn pipelined<T: Default + Send, M: Send, E: From<M>>(
    count: u64,
    mut load: impl FnMut(u64, &mut T) -> Result<(), E>,
    make: impl Fn(u64, &mut T) -> Result<(), M> + Sync,
    mut take: impl FnMut(u64, &mut T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = rayon::current_num_threads();
    let width = threads.max(threads.saturating_mul(2).min(16));
    let mut next = 0;
    let mut fill = |pieces: &mut Pieces<T, M>| -> Result<(), E> {
        (pieces.first, pieces.len) = (next, 0);
        while pieces.len < width && next < count {
            if pieces.slots.len() == pieces.len {
                pieces.slots.push(Slot { piece: T::default(), failure: None });
            }
            load(next, &mut pieces.slots[pieces.len].piece)?;
            pieces.len += 1;
            next += 1;
        }
        Ok(())
    };
    let [mut loaded, mut made, mut free] = core::array::from_fn(|_| Pieces::default());
    fill(&mut loaded)?;
    while loaded.len > 0 || made.len > 0 {
        let make = &make;
        let (taken, filled) = rayon::in_place_scope(|scope| {
            for (number, slot) in loaded.each() {
                scope.spawn(move |_| slot.failure = make(number, &mut slot.piece).err());
            }
            let taken = made.each().try_for_each(|(number, slot)| take(number, &mut slot.piece));
            let filled = if taken.is_ok() { fill(&mut free) } else { Ok(()) };
            (taken, filled)
        });
        taken?;
        if let Some(failure) = loaded.each().find_map(|(_, slot)| slot.failure.take()) {
            return Err(failure.into());
        }
        filled?;
        made.len = 0;
        (made, loaded, free) = (loaded, free, made);
    }
    Ok(())
}

/// Pieces that follow each other.
struct Pieces<T, M> {
    first: u64,
    len: usize,
    slots: Vec<Slot<T, M>>,
}

struct Slot<T, M> {
    piece: T,
    failure: Option<M>,
}

impl<T, M> Default for Pieces<T, M> {
    fn default() -> Self {
        Self { first: 0, len: 0, slots: Vec::new() }
    }
}

impl<T, M> Pieces<T, M> {
    fn each(&mut self) -> impl Iterator<Item = (u64, &mut Slot<T, M>)> {
        (self.first..).zip(&mut self.slots[..self.len])
    }
}

/// Whether a tensor is more than a sequence of blocks: the block types of `.apr` files, with one scale or a padded end.
const fn is_whole(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::AprQ4 | Dtype::AprQ8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_order() {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for count in [0, 1, 2, 5, 6, 7, 100] {
                let mut squares = Vec::new();
                let load = |number, piece: &mut u64| {
                    *piece = number;
                    Ok::<(), u64>(())
                };
                let make = |number, piece: &mut u64| {
                    assert_eq!(number, *piece);
                    *piece *= *piece;
                    Ok::<(), u64>(())
                };
                let take = |_, piece: &mut u64| {
                    squares.push(*piece);
                    Ok(())
                };
                pool.install(|| pipelined(count, load, make, take)).unwrap();
                assert_eq!(squares, (0..count).map(|number| number * number).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_first_failure_ends_it() {
        for fails in [0, 3, 40] {
            for stage in 0..3 {
                let at = |this, number| if this == stage && number >= fails { Err(number) } else { Ok(()) };
                let mut taken = 0;
                let take = |number, _: &mut ()| {
                    at(2, number)?;
                    taken += 1;
                    Ok(())
                };
                let found = pipelined(100, |number, _| at(0, number), |number, _| at(1, number), take);
                assert!(found == Err(fails) && taken <= fails, "{stage} {fails}: {found:?}, {taken}");
            }
        }
    }
}
