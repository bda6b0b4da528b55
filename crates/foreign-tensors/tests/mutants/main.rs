//! Damaged vectors: an error or a model, no panic, in bounded memory. One test, because the allocator counts all threads together.

#![allow(clippy::unwrap_used)]

#[allow(unreachable_pub, reason = "public where it lives")]
#[path = "../../../conformance/src/heap.rs"]
mod heap;

use std::path::{Path, PathBuf};

use foreign_tensors::{NoCompanions, Options, read};
use heap::{CountingAllocator, Usage};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

/// Folders of vectors.
const FOLDERS: [&str; 4] = ["hdf5", "keras", "hostile/hdf5", "hostile/keras"];
/// Longer vectors are left out.
const MAX_LEN: usize = 64 << 10;
/// Damaged copies of each vector; the variable `MUTANTS` sets another number.
const MUTANTS: u64 = 60;

/// Of listing the tensors: bytes, and bytes for each byte of the file.
const LISTED: (usize, usize) = (8 << 20, 24);
/// Of reading a tensor, beside twice its length.
const TENSOR: usize = 64 << 20;

/// A sequence of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize).checked_rem(limit).unwrap_or(0)
    }
}

fn vectors() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import");
    let mut found = Vec::new();
    for folder in FOLDERS {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let is_vector = !path.to_str().unwrap().ends_with(".vector.json");
            if path.is_file() && is_vector && path.metadata().unwrap().len() <= MAX_LEN as u64 {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Changes a few bytes, mostly of structures: near bytes that are not 0.
fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        let values =
            [0, 1, 2, 0x7f, 0x80, 0xff, numbers.below(256) as u8, bytes.get(at).map_or(0, |byte| byte ^ 1)];
        match numbers.below(12) {
            0 => bytes.truncate(at),
            1 => {
                let from = numbers.below(bytes.len());
                let len = numbers.below(64).min(bytes.len() - from).min(bytes.len() - at);
                bytes.copy_within(from..from + len, at);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = values[numbers.below(values.len())];
                }
            }
        }
    }
}

fn judge(name: &str, usage: Usage, most: usize) {
    assert!(usage.peak <= most, "{name}: {usage:?}, allowed {most}");
}

fn check(name: &str, bytes: &[u8]) {
    let (model, usage) = HEAP.measure(|| read(&bytes, &NoCompanions, &Options::default()));
    judge(name, usage, LISTED.0 + LISTED.1 * bytes.len());
    let Ok(model) = model else { return };
    for tensor in model.tensors() {
        let (read, usage) = HEAP.measure(|| tensor.to_vec(&model, &bytes));
        judge(name, usage, 2 * tensor.byte_len() as usize + TENSOR);
        if let Ok(read) = read {
            assert_eq!(read.len() as u64, tensor.byte_len(), "{name} {tensor:?}");
        }
    }
}

#[test]
fn damaged_vectors_are_refused_or_read_in_bounded_memory() {
    let mutants = std::env::var("MUTANTS").ok().and_then(|number| number.parse().ok()).unwrap_or(MUTANTS);
    let mut numbers = Numbers(mutants);
    for path in vectors() {
        let original = std::fs::read(&path).unwrap();
        let name = path.display().to_string();
        check(&name, &original);
        for mutant in 0..mutants {
            let mut bytes = original.clone();
            damage(&mut bytes, &mut numbers);
            check(&format!("{name}, mutant {mutant}"), &bytes);
        }
    }
}
