//! Files like those people have: a mixture-of-experts checkpoint of BF16 matrices.

use memmap2::{MmapMut, MmapOptions};
use st_core::{Dtype, Layout, TensorSpec, WriteOptions};

/// Shape of every tensor of a [`sparse_file`].
const SHAPE: [usize; 2] = [4096, 4096];

/// Names of the tensors of a checkpoint, in the order a model lists them.
#[must_use]
pub fn names(count: usize) -> Vec<String> {
    let parts = ["gate_proj", "up_proj", "down_proj"];
    let name = |idx: usize| {
        let (expert, part) = (idx / 3 % 64, parts[idx % 3]);
        format!("model.layers.{}.mlp.experts.{expert}.{part}.weight", idx / 192)
    };
    (0..count).map(name).collect()
}

/// The header of a checkpoint, as official writers make it.
///
/// # Panics
///
/// If the header would be too long for any reader.
#[must_use]
pub fn checkpoint(count: usize) -> Layout {
    let names = names(count);
    let specs = names.iter().map(|name| TensorSpec { name, dtype: Dtype::Bf16, shape: &SHAPE });
    Layout::new(specs, &WriteOptions::default()).expect("fewer than 700,000 tensors")
}

/// A whole checkpoint, 32 MiB a tensor, of which only the header takes memory: the rest is address space.
///
/// # Panics
///
/// If the system does not lend that much address space.
#[must_use]
pub fn sparse_file(layout: &Layout) -> MmapMut {
    let len = usize::try_from(layout.file_len()).expect("a 64-bit machine");
    let map = MmapOptions::new().len(len).no_reserve_swap().map_anon();
    let mut map = map.expect("address space that is never touched");
    let header = layout.header_bytes();
    map[..header.len()].copy_from_slice(header);
    map
}
