//! A folder that goes away, and tensors to put into it.

use core::sync::atomic::{AtomicU32, Ordering};
use std::path::{Path, PathBuf};

use st_core::{Dtype, TensorView, WriteOptions};

/// An empty folder, removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("st-mmap-it-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Bytes that differ from place to place.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut out = vec![0; len];
    for (at, bytes) in out.chunks_mut(8).enumerate() {
        let word = (at as u64 ^ seed << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        bytes.copy_from_slice(&word.wrapping_mul(0xBF58_476D_1CE4_E5B9).to_le_bytes()[..bytes.len()]);
    }
    out
}

/// Saves one U8 tensor `w` and returns its bytes.
pub(crate) fn save_bytes(path: &Path, len: usize) -> Vec<u8> {
    let data = noise(len, 1);
    let shape = [len];
    let view = TensorView::new(Dtype::U8, &shape, &data).unwrap();
    st_mmap::save(path, &[("w", view)], &WriteOptions::default()).unwrap();
    data
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
