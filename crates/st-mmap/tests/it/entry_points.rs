//! Opening and reading.

use core::time::Duration;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Instant;

use proptest::prelude::*;
use st_core::{Bounds, Dtype, Index, ReadOptions, SlicePlan, TensorView, WriteOptions};
use st_mmap::{
    Advice, Arena, Error, ErrorKind, MappedSafeTensors, Mapping, SafeTensorsFile, ShardedSafeTensors,
    Subject, save,
};

use crate::scratch::{Scratch, noise, save_bytes};

/// Opens through every entry point and returns the errors.
fn refusals(path: &Path) -> Vec<Error> {
    vec![
        MappedSafeTensors::open(path).unwrap_err(),
        SafeTensorsFile::open(path).unwrap_err(),
        ShardedSafeTensors::open(path).unwrap_err(),
    ]
}

#[test]
fn every_entry_point_gives_the_same_tensors() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    let (wide, narrow) = (noise(8 * 60, 1), noise(7, 2));
    let tensors = [
        ("wide", TensorView::new(Dtype::F64, &[5, 12], &wide).unwrap()),
        ("narrow", TensorView::new(Dtype::U8, &[7], &narrow).unwrap()),
        ("empty", TensorView::new(Dtype::F32, &[0, 3], &[]).unwrap()),
        ("scalar", TensorView::new(Dtype::I16, &[], &[1, 2]).unwrap()),
    ];
    save(&path, &tensors, &WriteOptions::default()).unwrap();

    let file = SafeTensorsFile::open(&path).unwrap();
    let mapped = MappedSafeTensors::open(&path).unwrap();
    let mut arena = Arena::new();
    let loaded = file.load(&mut arena).unwrap();
    let single = ShardedSafeTensors::open(&path).unwrap();
    assert_eq!(file.header().len(), tensors.len());
    assert_eq!(file.file_len(), std::fs::metadata(&path).unwrap().len());
    assert_eq!(mapped.bytes(), std::fs::read(&path).unwrap());
    assert_eq!(Mapping::open(&path).unwrap().bytes(), mapped.bytes());
    assert_eq!(mapped.iter().len(), tensors.len());
    assert!(loaded.iter().map(|(name, _)| name).eq(single.names()));
    for (name, view) in tensors {
        let mut read = vec![0; view.data().len()];
        file.read_tensor(name, &mut read).unwrap();
        assert_eq!(read, view.data());
        for other in [mapped.tensor(name), loaded.tensor(name), single.tensor(name)].map(Result::unwrap) {
            assert_eq!(
                (other.dtype(), other.shape(), other.data()),
                (view.dtype(), view.shape(), view.data())
            );
        }
    }
    for ((a_name, a), (b_name, b)) in mapped.iter().zip(loaded.iter()) {
        assert_eq!((a_name, a.data()), (b_name, b.data()));
    }
    assert!(
        !loaded.tensor("wide").unwrap().as_slice::<f64>().unwrap().is_empty(),
        "aligned for a typed view"
    );
}

#[test]
fn an_unknown_tensor_is_named_with_its_file() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    save_bytes(&path, 10);
    let file = SafeTensorsFile::open(&path).unwrap();
    let mapped = file.map().unwrap();
    let single = ShardedSafeTensors::open(&path).unwrap();
    for error in [
        file.read_tensor("nope", &mut []).unwrap_err(),
        mapped.tensor("nope").unwrap_err(),
        mapped.advise_tensor("nope", Advice::Normal).unwrap_err(),
        single.tensor("nope").unwrap_err(),
    ] {
        assert_eq!(
            (error.code(), error.subject().map(Subject::name), error.path()),
            ("st-not-found", Some("nope"), Some(&*path))
        );
    }
}

#[test]
fn special_files_are_errors_within_milliseconds() {
    let scratch = Scratch::new();
    let fifo = scratch.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    let mut paths = vec![scratch.path().to_path_buf(), "/dev/null".into(), "/dev/zero".into()];
    if made.is_ok_and(|status| status.success()) {
        paths.push(fifo);
    }
    for path in paths.iter().filter(|path| path.exists()) {
        let start = Instant::now();
        let mut errors = vec![
            MappedSafeTensors::open(path).unwrap_err(),
            SafeTensorsFile::open(path).unwrap_err(),
            Mapping::open(path).unwrap_err(),
            st_mmap::set_metadata(path, None).unwrap_err(),
        ];
        if !path.is_dir() {
            errors.push(ShardedSafeTensors::open(path).unwrap_err());
        }
        assert!(start.elapsed() < Duration::from_millis(500), "{}", path.display());
        for error in errors {
            assert_eq!(error.code(), "df-not-regular", "{error}");
            assert_eq!(error.path(), Some(path.as_path()));
        }
    }
}

#[test]
fn missing_empty_and_damaged_files_are_typed_errors() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    for error in refusals(&path) {
        assert!(error.is_not_found(), "{error}");
    }
    let mut good = 3u64.to_le_bytes().to_vec();
    good.extend(b"{} ");
    let mut too_long = u64::MAX.to_le_bytes().to_vec();
    too_long.extend(b"{}");
    let mut past_end = 4u64.to_le_bytes().to_vec();
    past_end.extend(b"{} ");
    let mut trailing = good.clone();
    trailing.push(0);
    let cases: [(&[u8], &str); 5] = [
        (b"", "st-header-too-small"),
        (b"1234567", "st-header-too-small"),
        (&too_long, "st-header-too-large"),
        (&past_end, "st-header-length"),
        (&trailing, "st-file-length"),
    ];
    for (bytes, code) in cases {
        std::fs::write(&path, bytes).unwrap();
        for error in refusals(&path) {
            assert_eq!((error.code(), error.path()), (code, Some(path.as_path())), "{error}");
        }
    }
    std::fs::write(&path, good).unwrap();
    assert!(MappedSafeTensors::open(&path).unwrap().header().is_empty());
    assert_eq!(Mapping::open(&path).unwrap().bytes().len(), 11);
    std::fs::write(&path, b"").unwrap();
    assert_eq!(Mapping::open(&path).unwrap().bytes(), b"");
    Mapping::open(&path).unwrap().advise(Advice::WillNeed).unwrap();
}

#[test]
fn headers_longer_than_the_first_read_are_fetched_in_full() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    let names: Vec<String> = (0..5000).map(|idx| format!("a.rather.long.tensor.name.{idx}")).collect();
    let bytes = [3];
    let view = TensorView::new(Dtype::U8, &[1], &bytes).unwrap();
    let tensors: Vec<_> = names.iter().map(|name| (name.as_str(), view)).collect();
    save(&path, &tensors, &WriteOptions::default()).unwrap();
    let file = SafeTensorsFile::open(&path).unwrap();
    assert!(file.header().header_len() > 100_000);
    assert_eq!(file.map().unwrap().tensor(&names[4999]).unwrap().data(), bytes);
}

#[test]
fn read_options_decide_strictness_and_limits() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    let mut bytes = 10u64.to_le_bytes().to_vec();
    bytes.extend(b"  {}      ");
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(SafeTensorsFile::open(&path).unwrap_err().code(), "st-strict-whitespace");
    assert!(SafeTensorsFile::open_with(&path, &ReadOptions::COMPAT).is_ok());
    assert!(MappedSafeTensors::open_with(&path, &ReadOptions::COMPAT).is_ok());
    assert!(ShardedSafeTensors::open_with(&path, &ReadOptions::COMPAT).is_ok());
    let mut tight = ReadOptions::COMPAT;
    tight.limits.header_bytes = 9;
    assert_eq!(SafeTensorsFile::open_with(&path, &tight).unwrap_err().code(), "st-header-too-large");
}

#[test]
fn a_file_that_shrinks_is_an_error_and_not_a_signal() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    save_bytes(&path, 40 << 20);
    let file = SafeTensorsFile::open(&path).unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(30 << 20).unwrap();

    let mut buffer = vec![0; 40 << 20];
    let plan = SlicePlan::new(Dtype::U8, &[40 << 20], &[(31 << 20..32 << 20).into()], Bounds::Exact).unwrap();
    let errors = [
        file.read_tensor("w", &mut buffer).unwrap_err(),
        file.read_range("w", 31 << 20..32 << 20, &mut buffer[..1 << 20]).unwrap_err(),
        file.read_slice("w", &plan, &mut buffer[..1 << 20]).unwrap_err(),
        file.read_data_at(31 << 20, &mut buffer[..1 << 20]).unwrap_err(),
        file.load(&mut Arena::new()).unwrap_err(),
        file.map().unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.code(), error.path()), ("sm-shrunk", Some(path.as_path())), "{error}");
    }
    file.read_range("w", 0..1 << 20, &mut buffer[..1 << 20]).unwrap();
}

#[test]
fn ranges_and_buffers_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    let data = save_bytes(&path, 100);
    let file = SafeTensorsFile::open(&path).unwrap();
    let mut buffer = [0; 100];
    for len in [0, 99] {
        let error = file.read_tensor("w", &mut buffer[..len]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BufferLength { needed: 100, .. }), "{error}");
    }
    file.read_range("w", 10..20, &mut buffer[..10]).unwrap();
    assert_eq!(buffer[..10], data[10..20]);
    file.read_range("w", 100..100, &mut []).unwrap();
    #[allow(clippy::reversed_empty_ranges)]
    for range in [90..101, 101..101, 20..10, 0..u64::MAX, u64::MAX..0] {
        let error = file.read_range("w", range, &mut buffer[..11]).unwrap_err();
        assert_eq!(error.code(), "sm-range");
    }
    assert_eq!(file.read_range("w", 0..5, &mut buffer[..4]).unwrap_err().code(), "sm-buffer-length");

    file.read_data_at(90, &mut buffer[..10]).unwrap();
    assert_eq!(buffer[..10], data[90..]);
    file.read_data_at(100, &mut []).unwrap();
    for offset in [91, 100, u64::MAX] {
        assert_eq!(file.read_data_at(offset, &mut buffer[..10]).unwrap_err().code(), "sm-range");
    }

    let larger = SlicePlan::new(Dtype::U8, &[200], &[(150..160).into()], Bounds::Exact).unwrap();
    assert_eq!(file.read_slice("w", &larger, &mut buffer[..10]).unwrap_err().code(), "sm-range");
    let plan = SlicePlan::new(Dtype::U8, &[100], &[(50..60).into()], Bounds::Exact).unwrap();
    assert_eq!(file.read_slice("w", &plan, &mut buffer[..9]).unwrap_err().code(), "sm-buffer-length");
}

#[test]
fn an_arena_is_reused_aligned_and_bounded() {
    let scratch = Scratch::new();
    let (small, large) = (scratch.join("small.safetensors"), scratch.join("large.safetensors"));
    let small_data = save_bytes(&small, 1000);
    let large_data = save_bytes(&large, 3 << 20);
    let mut arena = Arena::new();
    let loaded = SafeTensorsFile::open(&large).unwrap();
    let first = loaded.load(&mut arena).unwrap();
    assert_eq!(first.tensor("w").unwrap().data(), large_data);
    let place = first.data().as_ptr();
    assert_eq!(place.align_offset(64), 0);
    let capacity = arena.capacity();
    for _ in 0..3 {
        let small = SafeTensorsFile::open(&small).unwrap();
        let loaded = small.load(&mut arena).unwrap();
        drop(small);
        assert_eq!(loaded.tensor("w").unwrap().data(), small_data, "independent of the file");
        assert_eq!(loaded.data().as_ptr(), place, "the same pages");
    }
    assert_eq!(arena.capacity(), capacity);

    let mut bounded = Arena::with_limit(1 << 20);
    let error = SafeTensorsFile::open(&large).unwrap().load(&mut bounded).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ArenaLimit { limit: 0x10_0000, .. }), "{error}");
    assert_eq!(error.path(), Some(large.as_path()));
    assert_eq!(bounded.capacity(), 0);
}

#[test]
fn parallel_load_equals_the_file_around_chunk_boundaries() {
    const CHUNK: usize = 8 << 20;
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    let mut arena = Arena::new();
    // The header moves the data: sizes around multiples of the chunk hit the boundary on both sides.
    for len in [0, 1, CHUNK - 1, 2 * CHUNK - 200, 2 * CHUNK, 2 * CHUNK + 1, 3 * CHUNK - 72, 3 * CHUNK + 5] {
        let data = save_bytes(&path, len);
        let file = SafeTensorsFile::open(&path).unwrap();
        assert!(file.load(&mut arena).unwrap().data() == data, "{len}");
    }
}

#[test]
fn threads_share_one_reader() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    let data = save_bytes(&path, 1 << 16);
    let file = SafeTensorsFile::open(&path).unwrap();
    let mapped = file.map().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (file, mapped, data) = (&file, &mapped, &data);
            scope.spawn(move || {
                for turn in 0..2000u64 {
                    let start = (turn * 7919 + thread * 31) % 60_000;
                    let mut buffer = [0; 512];
                    file.read_range("w", start..start + 512, &mut buffer).unwrap();
                    let expected = &data[start as usize..start as usize + 512];
                    assert_eq!(buffer, expected);
                    assert_eq!(&mapped.tensor("w").unwrap().data()[start as usize..][..512], expected);
                }
            });
        }
    });
}

#[test]
fn advice_is_accepted() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    save_bytes(&path, 1 << 20);
    let mapped = MappedSafeTensors::open(&path).unwrap();
    for advice in [Advice::Normal, Advice::Random, Advice::Sequential, Advice::WillNeed] {
        mapped.advise(advice).unwrap();
        mapped.advise_tensor("w", advice).unwrap();
    }
    // Kernels before Linux 5.14 refuse it.
    if let Err(error) = mapped.advise(Advice::PopulateRead) {
        assert_eq!(error.code(), "sm-io");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn populating_a_shortened_map_is_an_error_and_not_a_signal() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    save_bytes(&path, 1 << 20);
    let mapped = MappedSafeTensors::open(&path).unwrap();
    if mapped.advise(Advice::PopulateRead).is_ok() {
        OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
        assert_eq!(mapped.advise(Advice::PopulateRead).unwrap_err().code(), "sm-io");
    }
}

/// A shortened map, as `docs/files.md` states: the process dies of SIGBUS.
#[cfg(target_os = "linux")]
#[test]
fn touching_a_shortened_map_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;

    const SIGBUS: i32 = 7;
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    save_bytes(&path, 1 << 20);
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "entry_points::child_that_touches_a_shortened_map"])
        .env("ST_MMAP_SHORTENED_MAP", &path)
        .output()
        .unwrap();
    assert_eq!(child.status.signal(), Some(SIGBUS), "{child:?}");
}

/// Does something only as the child of the test above.
#[cfg(target_os = "linux")]
#[test]
fn child_that_touches_a_shortened_map() {
    let Some(path) = std::env::var_os("ST_MMAP_SHORTENED_MAP") else {
        return;
    };
    let mapped = MappedSafeTensors::open(&path).unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let sum: u64 = mapped.tensor("w").unwrap().data().iter().map(|byte| u64::from(*byte)).sum();
    panic!("survived: {sum}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Slices read by position are those of the tensor in memory, whatever gaps are between their ranges.
    #[test]
    fn slices_equal_slices_in_memory(
        rows in 1usize..40, columns in 1usize..3000, depth in 1usize..20,
        row in (0i64..40, 0i64..40, 1u64..4), column in (0i64..3000, 0i64..3000, 1u64..900),
        last in proptest::option::of(0i64..20),
    ) {
        let scratch = Scratch::new();
        let path = scratch.join("m.safetensors");
        let shape = [rows, columns, depth];
        let data = noise(rows * columns * depth * 2, 9);
        let view = TensorView::new(Dtype::I16, &shape, &data).unwrap();
        save(&path, &[("w", view)], &WriteOptions::default()).unwrap();

        let range = |(start, stop, step): (i64, i64, u64)| Index::Range {
            start: Some(start), stop: Some(stop), step: step.try_into().unwrap(),
        };
        let mut index = vec![range(row), range(column)];
        index.extend(last.filter(|last| (*last as usize) < depth).map(Index::Select));
        let plan = SlicePlan::new(Dtype::I16, &shape, &index, Bounds::Clamp).unwrap();
        let mut read = vec![0; plan.byte_len() as usize];
        SafeTensorsFile::open(&path).unwrap().read_slice("w", &plan, &mut read).unwrap();
        let expected = view.slice(&index, Bounds::Clamp).unwrap().to_vec();
        prop_assert!(read == expected);
    }
}
