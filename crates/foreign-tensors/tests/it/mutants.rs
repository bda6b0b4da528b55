//! Mutants of vectors: refused or read, without a panic and within the bounds on memory and time.

extern crate alloc;

use alloc::collections::BTreeMap;
use core::time::Duration;
use std::path::Path;

use foreign_tensors::{Companions, Error, NoCompanions, Options, read};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use read_at::ReadAt;
use test_meter::{CountingAllocator, CpuTimer};

use crate::vectors::vectors;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

/// A folder in memory.
#[derive(Default)]
struct Memory {
    name: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Companions for Memory {
    fn open(&self, path: &str) -> Result<Box<dyn ReadAt + Send + Sync>, Error> {
        match self.files.get(path) {
            Some(bytes) => Ok(Box::new(bytes.clone())),
            None => NoCompanions.open(path),
        }
    }

    fn file_name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// A source that is not in memory.
struct Remote<'b>(&'b [u8]);

impl ReadAt for Remote<'_> {
    fn total_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        self.0.read_exact_at(offset, out)
    }
}

/// Reads a file and every tensor of it; from memory and through a window the same.
fn judge(name: &str, bytes: &[u8], folder: &Memory) {
    let timer = CpuTimer::start();
    let beside: usize = folder.files.values().map(Vec::len).sum();
    let (model, usage) = HEAP.measure_thread(|| read(&bytes, folder, &Options::default()));
    let bound = (8 << 20) + 24 * (bytes.len() + beside);
    assert!(usage.peak <= bound, "{name}: {usage:?} to open a file of {}", bytes.len());
    let remote = read(&Remote(bytes), folder, &Options::default());
    assert_eq!(format!("{:?}", model.as_ref().ok()), format!("{:?}", remote.as_ref().ok()), "{name}");
    let Ok(model) = model else { return };
    for (entry, json) in model.entries() {
        assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{name}: {entry}: {json}");
    }
    for alias in model.aliases() {
        assert!(model.tensors().iter().any(|tensor| tensor.name() == alias.of), "{name}: {alias:?}");
    }
    for tensor in model.tensors().iter().take(100) {
        let (read, usage) = HEAP.measure_thread(|| tensor.to_vec(&model, &bytes));
        let bound = (64 << 20) + 2 * tensor.byte_len() as usize;
        assert!(usage.peak <= bound, "{name}: {usage:?} for {tensor:?}");
        if let Ok(read) = read {
            assert_eq!(read.len() as u64, tensor.byte_len(), "{name}: {tensor:?}");
            let place = tensor.stored().filter(|(file, _)| *file == 0);
            if let Some(stored) =
                place.and_then(|(_, range)| bytes.get(range.start as usize..range.end as usize))
            {
                assert_eq!(read, stored, "{name}: {tensor:?}");
            }
        }
    }
    let time = timer.elapsed();
    assert!(time < Duration::from_secs(2), "{name}: {time:?}");
}

/// The same of a file without companions.
pub(crate) fn judge_alone(name: &str, bytes: &[u8]) {
    judge(name, bytes, &Memory::default());
}

/// A change of a file.
#[derive(Clone, Debug)]
enum Change {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Large(prop::sample::Index, u32),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Cut(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        8 => (at(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        4 => (at(), 0_u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        2 => (at(), any::<u32>()).prop_map(|(at, number)| Change::Large(at, number)),
        1 => (at(), proptest::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => (at(), 1_usize..20).prop_map(|(at, len)| Change::Remove(at, len)),
        1 => at().prop_map(Change::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let place = |at: &prop::sample::Index| at.index(bytes.len().max(1));
    match change {
        Change::Set(at, byte) => {
            let at = place(at);
            bytes.splice(at..(at + 1).min(bytes.len()), [*byte]);
        }
        Change::Flip(at, bit) => {
            let at = place(at);
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << bit);
        }
        Change::Large(at, number) => {
            let at = place(at);
            bytes.splice(at..(at + 4).min(bytes.len()), number.to_le_bytes());
        }
        Change::Insert(at, new) => {
            let at = place(at);
            bytes.splice(at..at, new.iter().copied());
        }
        Change::Remove(at, len) => {
            let at = place(at);
            bytes.drain(at..(at + len).min(bytes.len()));
        }
        Change::Cut(at) => {
            let at = place(at);
            bytes.truncate(at);
        }
    }
}

/// Reads the vectors below these folders, and mutants of them.
pub(crate) fn survive(below: &[&str]) {
    let mut seeds = Vec::new();
    for vector in vectors(below) {
        if !vector.path.is_file() {
            continue;
        }
        let folder = vector.path.parent().expect("a folder");
        let name = vector.path.file_name().and_then(|name| name.to_str()).expect("a name");
        let mut memory = Memory { name: name.to_owned(), ..Memory::default() };
        add(&mut memory, folder, folder);
        let bytes = std::fs::read(&vector.path).expect("a file");
        judge(&vector.name, &bytes, &memory);
        if bytes.len() < 1 << 16 {
            seeds.push((vector.name, bytes, memory));
        }
    }
    assert!(!seeds.is_empty());
    let strategy = (any::<prop::sample::Index>(), proptest::collection::vec(change(), 1..6));
    // A seed is chosen at random; failures are reported with their changes.
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&strategy, |(seed, changes)| {
        let (name, bytes, memory) = &seeds[seed.index(seeds.len())];
        let mut mutant = bytes.clone();
        changes.iter().for_each(|change| apply(&mut mutant, change));
        judge(name, &mutant, memory);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Adds what is in a folder, unless it is large.
fn add(memory: &mut Memory, root: &Path, folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("inside").to_str().expect("text").to_owned();
        if path.is_dir() {
            add(memory, root, &path);
        } else if !name.ends_with(".vector.json") && path.metadata().expect("a file").len() < 1 << 16 {
            memory.files.insert(name, std::fs::read(&path).expect("a file"));
        }
    }
}

/// Opens a file of many small parts, each of which needs more memory than its bytes.
pub(crate) fn many_parts(name: &str, bytes: &[u8]) {
    let timer = CpuTimer::start();
    let (model, usage) = HEAP.measure_thread(|| read(&bytes, &NoCompanions, &Options::default()));
    let code = model.as_ref().map(|model| model.tensors().len()).map_err(Error::code);
    let bound = (64 << 20) + 24 * bytes.len();
    assert!(usage.peak <= bound, "{name}: {usage:?} for a file of {}: {code:?}", bytes.len());
    let time = timer.elapsed();
    assert!(time < Duration::from_secs(2), "{name}: {time:?}");
}
