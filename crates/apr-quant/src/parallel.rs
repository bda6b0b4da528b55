//! Quantization and dequantization on all cores.

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

/// Whether a tensor is more than a sequence of blocks: the block types of `.apr` files, with one scale or a padded end.
const fn is_whole(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::AprQ4 | Dtype::AprQ8)
}
