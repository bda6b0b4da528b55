//! Memory of the streaming paths, counted by the allocator. A binary of its own: the count is the process's.

// Helpers are not seen as tests, but they fail like tests.
#![allow(clippy::unwrap_used)]

use core::num::NonZeroU64;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use st_core::{Bounds, Dtype, Index, Layout, SlicePlan, TensorSpec, WriteOptions};
use st_mmap::{Checkpoints, SafeTensorsFile, save_layout};
use test_meter::CountingAllocator;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

/// One measurement at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `work` and returns the most heap it used at once.
fn peak(work: impl FnOnce()) -> usize {
    HEAP.measure(work).1.peak
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("st-mmap-memory-{}-{name}", std::process::id()))
}

/// Four tensors of 64 MiB, made on the fly.
fn save_256_mib(path: &std::path::Path) {
    let names = ["a", "b", "c", "d"];
    let specs = names.map(|name| TensorSpec { name, dtype: Dtype::F32, shape: &[1 << 12, 1 << 12] });
    let layout = Layout::new(specs, &WriteOptions::default()).unwrap();
    save_layout(path, &layout, |planned, out| {
        io::copy(&mut io::Read::take(io::repeat(0), planned.byte_len), out).map(drop)
    })
    .unwrap();
}

#[test]
fn streaming_takes_little_memory_whatever_the_size() {
    let _turn = TURN.lock();
    let path = scratch("stream");
    let saving = peak(|| save_256_mib(&path));
    assert!(saving < 1 << 20, "saving took {saving} bytes");

    // Every 1,000th element of each row: single reads and reads over gaps.
    let file = SafeTensorsFile::open(&path).unwrap();
    let every = |step| Index::Range { start: None, stop: None, step: NonZeroU64::new(step).unwrap() };
    for step in [2, 1000, 4095] {
        let plan = SlicePlan::new(Dtype::F32, &[1 << 12, 1 << 12], &[every(64), every(step)], Bounds::Exact)
            .unwrap();
        let mut out = vec![1; plan.byte_len() as usize];
        let slicing = peak(|| file.read_slice("b", &plan, &mut out).unwrap());
        assert!(slicing < 1 << 20, "slicing took {slicing} bytes");
        assert!(out.iter().all(|byte| *byte == 0));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn verifying_a_checkpoint_takes_little_memory() {
    let _turn = TURN.lock();
    let folder = scratch("checkpoint");
    let checkpoints = Checkpoints::new(&folder);
    checkpoints.save(&st_mmap::CheckpointData::default()).unwrap();
    let model = checkpoints.path_of(0).join("model.safetensors");
    save_256_mib(&model);
    let loading = peak(|| {
        let error = checkpoints.load(0).unwrap_err();
        assert_eq!(error.code(), "sm-checksum-mismatch");
    });
    assert!(loading < 2 << 20, "loading took {loading} bytes");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn lying_headers_allocate_nothing() {
    let _turn = TURN.lock();
    let path = scratch("lie");
    // 90 MB of header declared in a file of 100 bytes.
    let mut bytes = 90_000_000u64.to_le_bytes().to_vec();
    bytes.resize(100, b' ');
    std::fs::write(&path, bytes).unwrap();
    let opening = peak(|| assert_eq!(SafeTensorsFile::open(&path).unwrap_err().code(), "st-header-length"));
    assert!(opening < 128 << 10, "opening took {opening} bytes");
    std::fs::remove_file(path).unwrap();
}
