//! Damaged vectors: never a panic (these tests run with overflow checks), and always the crate's verdict.

use std::hint::black_box;

use conformance::reading::{compat_disagrees, find_disagrees};
use conformance::vectors::{self, Vectors};
use st_core::{Bounds, Index, ReadOptions, SafeTensors};

/// Bytes that mean something in a header, and some that never do.
const BYTES: &[u8] = b"\0\x01\t \"',-.0129:EFU[\\]_e{}\x7f\x80\xc3\xff";

/// Files small enough to be damaged at every byte.
fn small_files() -> Vec<(String, Vec<u8>)> {
    let files = Vectors::load().unwrap().files;
    let files = files.into_iter().filter(|vector| vector.size <= 320);
    let files: Vec<_> = files.map(|vector| (vectors::read(&vector.file).unwrap(), vector.file)).collect();
    assert!(files.len() > 300);
    files.into_iter().map(|(bytes, name)| (name, bytes)).collect()
}

fn check(name: &str, what: &str, file: &[u8]) {
    assert_eq!(compat_disagrees(file), None, "{name}, {what}");
    assert_eq!(find_disagrees(file), None, "{name}, {what}");
    for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
        match SafeTensors::from_bytes_with(file, &options) {
            Ok(tensors) => use_up(&tensors),
            Err(error) => {
                assert!(
                    error.offset().is_none_or(|offset| offset <= file.len() as u64),
                    "{name}, {what}: {error}"
                );
                black_box(error.to_string());
            }
        }
    }
}

fn use_up(tensors: &SafeTensors<'_>) {
    let index = [Index::from(0..1), Index::Ellipsis, Index::Select(-1)];
    for (name, view) in tensors.iter() {
        let counts = (view.to_f32().map_or(0, Iterator::count), view.to_f64().map_or(0, Iterator::count));
        black_box((name, counts));
        for len in 0..=index.len() {
            for bounds in [Bounds::Exact, Bounds::Clamp] {
                black_box(view.slice(&index[..len], bounds).map(|slice| slice.to_vec()).is_ok());
            }
        }
    }
    black_box(format!("{:?}", tensors.header()));
}

/// Numbers around the greatest one, where the crate's verdict depends on how its JSON parser was built: found by the fuzzer.
#[test]
fn numbers_at_the_edge() {
    for number in [
        "17976931348623158e292",
        "1.7976931348623157e308",
        "1.79769313486231580e308",
        "1.7976931348623159e308",
        "-1797693134862315807e290",
        "1e309",
    ] {
        let header = format!(r#"{{"a":{{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":[{number}]}}}}"#);
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.extend_from_slice(&[0; 4]);
        check("numbers at the edge", number, &file);
    }
}

#[test]
fn every_prefix() {
    for (name, file) in small_files() {
        for len in 0..file.len() {
            check(&name, &format!("first {len} bytes"), &file[..len]);
        }
    }
}

#[test]
fn every_byte_replaced() {
    for (name, mut file) in small_files() {
        for at in 0..file.len().min(160) {
            let original = file[at];
            for byte in BYTES.iter().copied().chain([original ^ 1, original ^ 0x20, original.wrapping_add(1)])
            {
                file[at] = byte;
                check(&name, &format!("byte {at} is {byte:#04x}"), &file);
            }
            file[at] = original;
        }
    }
}

/// The length field follows, so that the damage reaches the JSON.
#[test]
fn every_byte_removed_or_doubled() {
    for (name, file) in small_files() {
        let Some((first8, rest)) = file.split_first_chunk::<8>() else { continue };
        let Some(len) = usize::try_from(u64::from_le_bytes(*first8)).ok().filter(|len| *len <= rest.len())
        else {
            continue;
        };
        for at in 0..len {
            let removed = [&(len as u64 - 1).to_le_bytes(), &rest[..at], &rest[at + 1..]].concat();
            check(&name, &format!("byte {at} of the JSON is removed"), &removed);
            let doubled = [&(len as u64 + 1).to_le_bytes(), &rest[..=at], &rest[at..]].concat();
            check(&name, &format!("byte {at} of the JSON is doubled"), &doubled);
        }
    }
}
