//! Elements of a view, from ranges of its source that are read in order.

use alloc::vec::Vec;

use super::load::Loader;
use crate::error::Error;
use crate::tensors::input::Input;
use crate::tensors::view::{Axis, View};

/// Bytes of the source that are read at once where elements do not follow each other.
const BUDGET: u64 = 8 << 20;
/// How many elements may be read for one that is used, before fewer are read at once.
const OVERREAD: u64 = 4;

/// Reads views, with the block that was read last.
#[derive(Debug, Default)]
pub(super) struct Gatherer {
    loader: Loader,
    /// The view and the number of the block.
    which: Option<(View, u64)>,
    block: Vec<u8>,
    span: Vec<u8>,
}

impl Gatherer {
    /// Fills `out` with elements of the view from `first` on, as they are stored.
    pub(super) fn gather<E: From<Error>>(
        &mut self,
        view: &View,
        input: &Input,
        first: u64,
        out: &mut [u8],
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let size = input.stored_dtype().block_bytes();
        let axes = view.joined();
        let level = level(&axes, size as u64);
        let (outer, inner) = axes.split_at(level);
        let block_len = count(inner);
        let is_run = matches!(inner, [Axis { stride: 1, .. }]);
        let mut first = first;
        let mut rest = out;
        while !rest.is_empty() && block_len > 0 {
            let (block, within) = (first / block_len, first % block_len);
            let len = (block_len - within).min((rest.len() / size) as u64);
            let (piece, after) = rest.split_at_mut(len as usize * size);
            let base = view.offset() + offset_of(outer, block);
            if is_run {
                self.loader.load(input, base + within, piece, read)?;
            } else {
                self.load_block(view, input, (block, base), inner, read)?;
                let begin = within as usize * size;
                if let Some(found) = self.block.get(begin..begin + piece.len()) {
                    piece.copy_from_slice(found);
                }
            }
            rest = after;
            first += len;
        }
        Ok(())
    }

    /// Reads a block, unless it is the last one that was read.
    fn load_block<E: From<Error>>(
        &mut self,
        view: &View,
        input: &Input,
        (number, base): (u64, u64),
        inner: &[Axis],
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.which.as_ref().is_some_and(|(last, block)| *block == number && last == view) {
            return Ok(());
        }
        self.which = None;
        let size = input.stored_dtype().block_bytes();
        self.span.clear();
        self.span.resize(span(inner) as usize * size, 0);
        self.loader.load(input, base, &mut self.span, read)?;
        self.block.clear();
        self.block.reserve(count(inner) as usize * size);
        copy(&self.span, inner, 0, size, &mut self.block);
        self.which = Some((view.clone(), number));
        Ok(())
    }
}

/// Appends the elements of these axes, of which there are as many as a view has.
fn copy(span: &[u8], axes: &[Axis], at: u64, size: usize, out: &mut Vec<u8>) {
    let range =
        |at: u64, len: u64| span.get(at as usize * size..(at + len) as usize * size).unwrap_or_default();
    match axes {
        [] => out.extend_from_slice(range(at, 1)),
        [Axis { len, stride: 1 }] => out.extend_from_slice(range(at, *len)),
        [axis, rest @ ..] => {
            (0..axis.len).for_each(|idx| copy(span, rest, at + idx * axis.stride, size, out));
        }
    }
}

/// The first axis of what is read at once: as much as the budget allows, as long as not too much is read for nothing.
fn level(axes: &[Axis], size: u64) -> usize {
    let is_dense = |level: &usize| {
        let inner = &axes[*level..];
        span(inner) <= count(inner).saturating_mul(OVERREAD)
    };
    let fits = |level: &usize| span(&axes[*level..]).saturating_mul(size) <= BUDGET;
    let mut dense = (0..axes.len()).filter(is_dense);
    dense.clone().find(fits).or(dense.next_back()).unwrap_or(0)
}

/// Elements from the first to the last.
fn span(axes: &[Axis]) -> u64 {
    axes.iter().fold(1, |span, axis| span + axis.len.saturating_sub(1) * axis.stride)
}

fn count(axes: &[Axis]) -> u64 {
    axes.iter().map(|axis| axis.len).product()
}

/// Where the block of this number begins.
fn offset_of(outer: &[Axis], block: u64) -> u64 {
    let mut rest = block;
    outer.iter().rev().fold(0, |offset, axis| {
        let idx = rest % axis.len;
        rest /= axis.len;
        offset + idx * axis.stride
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn axis(len: u64, stride: u64) -> Axis {
        Axis { len, stride }
    }

    #[test]
    fn blocks_are_as_large_as_the_budget_allows() {
        // Halves of heads of 128 rows of 8,192 elements: a head at once.
        let heads = [axis(64, 1 << 20), axis(64, 8192), axis(2, 64 * 8192), axis(8192, 1)];
        assert_eq!(level(&heads, 2), 1);
        // Of a small model all heads at once.
        assert_eq!(level(&[axis(4, 1 << 10), axis(4, 128), axis(2, 512), axis(128, 1)], 2), 0);
        // Queries of all heads, then keys: runs of a head, because all between them are not wanted.
        assert_eq!(level(&[axis(3, 1 << 20), axis(64, 3 << 20), axis(1 << 20, 1)], 2), 2);
        // A transposed matrix, whatever its size: its columns are not read one by one.
        assert_eq!(level(&[axis(8192, 1), axis(8192, 8192)], 4), 0);
        assert_eq!(offset_of(&[axis(3, 100), axis(5, 7)], 11), 207);
    }
}
