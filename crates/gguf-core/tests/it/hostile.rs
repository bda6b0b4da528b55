//! Claims that a file cannot keep.

use gguf_core::{Gguf, GgufBuilder, Header, Limits, Prefix, ReadOptions};

fn file(n_tensors: u64, n_keys: u64, rest: &[u8]) -> Vec<u8> {
    [&b"GGUF\x03\0\0\0"[..], &n_tensors.to_le_bytes(), &n_keys.to_le_bytes(), rest].concat()
}

fn text(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text].concat()
}

fn tensor(name: &str, dims: &[u64], number: u32, offset: u64) -> Vec<u8> {
    let dims_bytes: Vec<u8> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
    let rank = (dims.len() as u32).to_le_bytes();
    [&text(name.as_bytes())[..], &rank, &dims_bytes, &number.to_le_bytes(), &offset.to_le_bytes()].concat()
}

fn code(file: &[u8], options: &ReadOptions) -> Result<(), &'static str> {
    Gguf::from_bytes_with(file, options).map(drop).map_err(|error| error.code())
}

/// A sum of sizes beyond 64 bits, over several tensors, each of which is possible.
#[test]
fn sizes_that_overflow_together_are_refused() {
    let huge = [1u64 << 62];
    let mut rest = Vec::new();
    for idx in 0..4 {
        rest.extend(tensor(&format!("t{idx}"), &huge, 24, idx << 62));
    }
    rest.resize(1024, 0);
    let file = file(4, 0, &rest);
    assert_eq!(code(&file, &ReadOptions::STRICT), Err("gg-size"));
    assert_eq!(code(&file, &ReadOptions::COMPAT), Err("gg-size"));
}

#[test]
fn an_empty_dimension_hides_no_overflow() {
    for dims in [&[0, 1 << 62, 1 << 62][..], &[1 << 62, 1 << 62, 0], &[32, 0, 1 << 63]] {
        let row = tensor("t", dims, 0, 0);
        let file = file(1, 0, &[&row[..], &[0; 256]].concat());
        let expected = if dims.contains(&(1 << 63)) { Err("gg-dimension") } else { Ok(()) };
        assert_eq!(code(&file, &ReadOptions::STRICT), expected, "{dims:?}");
        if let Ok(gguf) = Gguf::from_bytes(&file) {
            let info = gguf.tensor("t").unwrap();
            assert_eq!((info.element_count(), info.byte_len()), (0, 0));
        }
    }
}

/// llama.cpp compares names as C strings; so do we, and find each by its whole name.
#[test]
fn names_are_told_apart_before_a_nul() {
    let row = |name: &str, offset| tensor(name, &[8], 0, offset);
    let two = |a: &str, b: &str| file(2, 0, &[&row(a, 0)[..], &row(b, 32), &[0; 128]].concat());
    assert_eq!(code(&two("a\0x", "a\0y"), &ReadOptions::STRICT), Err("gg-name-duplicate"));
    assert_eq!(code(&two("", "\0"), &ReadOptions::COMPAT), Err("gg-name-duplicate"));
    let file = two("a\0x", "b");
    let gguf = Gguf::from_bytes(&file).unwrap();
    assert!(gguf.tensor("a\0x").is_ok() && gguf.tensor("a").is_err());
    assert_eq!(gguf.tensor("c").unwrap_err().code(), "gg-not-found");
}

#[test]
fn limits_come_after_the_file_and_name_themselves() {
    let strict = ReadOptions::STRICT;
    let with = |change: fn(&mut Limits)| {
        let mut options = strict;
        change(&mut options.limits);
        options
    };
    let key = |idx: u8| [&text(&[b'a' + idx])[..], &[8, 0, 0, 0], &text(b"value")].concat();
    let keys = file(0, 3, &(0..3).flat_map(key).collect::<Vec<_>>());
    assert_eq!(code(&keys, &strict), Ok(()));
    assert_eq!(code(&keys, &with(|limits| limits.keys = 2)), Err("gg-limit"));
    assert_eq!(code(&keys, &with(|limits| limits.string_bytes = 4)), Err("gg-limit"));
    assert_eq!(code(&keys, &with(|limits| limits.header_bytes = 60)), Err("gg-limit"));
    let tensors = file(2, 0, &[&tensor("a", &[8], 0, 0)[..], &tensor("b", &[8], 0, 32), &[0; 128]].concat());
    assert_eq!(code(&tensors, &with(|limits| limits.tensors = 1)), Err("gg-limit"));
    let array = [&text(b"k")[..], &[9, 0, 0, 0, 0, 0, 0, 0], &4u64.to_le_bytes(), b"abcd"].concat();
    assert_eq!(code(&file(0, 1, &array), &with(|limits| limits.array_count = 3)), Err("gg-limit"));
    // A header that goes on beyond the limit is not asked for.
    let long = [&text(b"k")[..], &[8, 0, 0, 0], &(1u64 << 29).to_le_bytes()].concat();
    let long = file(0, 1, &long);
    let prefix = |options: &ReadOptions| Header::from_prefix(&long, 1 << 30, options);
    assert!(matches!(prefix(&strict), Ok(Prefix::More { needed }) if needed > 1 << 29));
    assert_eq!(prefix(&with(|limits| limits.header_bytes = 1 << 20)).unwrap_err().code(), "gg-limit");
}

#[test]
fn a_big_endian_file_of_an_unknown_version_is_none() {
    let versions = [(0x0000_0000u32, "gg-version"), (0x0400_0000, "gg-version"), (0x0001_0000, "gg-version")];
    for (version, expected) in versions {
        let file = [&b"GGUF"[..], &version.to_le_bytes(), &[0; 64]].concat();
        assert_eq!(code(&file, &ReadOptions::COMPAT), Err(expected), "{version:#x}");
    }
}

#[test]
fn headers_and_keys_without_a_meaning_are_refused() {
    let (strict, compat) = (ReadOptions::STRICT, ReadOptions::COMPAT);
    assert_eq!(code(b"GGJT\x03\0\0\0\0\0\0\0", &compat), Err("gg-magic"));
    let first = [&b"GGUF\x01\0\0\0"[..], &[0; 8]].concat();
    assert_eq!((code(&first, &strict), code(&first, &compat)), (Err("gg-version-1"), Ok(())));

    let key = [&text(b"k")[..], &[7, 0, 0, 0, 1]].concat();
    let twice = file(0, 2, &key.repeat(2));
    assert_eq!(code(&twice, &compat), Err("gg-key-duplicate"));

    let with = |key: &str, id: u32, value: &[u8]| {
        file(0, 1, &[&text(key.as_bytes())[..], &id.to_le_bytes(), value].concat())
    };
    let nested =
        [&9u32.to_le_bytes()[..], &1u64.to_le_bytes(), &0u32.to_le_bytes(), &1u64.to_le_bytes(), &[7]];
    for (file, refused, tolerated) in [
        (with("", 0, &[1]), "gg-key-empty", Ok(())),
        (with("k", 9, &nested.concat()), "gg-array-nested", Ok(())),
        (with("k", 13, &[1]), "gg-value-type", Err("gg-value-type")),
        (with("general.alignment", 4, &[3, 0, 0, 0]), "gg-alignment", Err("gg-alignment")),
        (with("general.alignment", 5, &[8, 0, 0, 0]), "gg-alignment-type", Err("gg-alignment-type")),
    ] {
        assert_eq!((code(&file, &strict), code(&file, &compat)), (Err(refused), tolerated));
        // What is only tolerated is not written again.
        if let Ok(gguf) = Gguf::from_bytes_with(&file, &compat) {
            assert_eq!(GgufBuilder::copy_of(gguf.header()).unwrap_err().code(), refused);
        }
    }
}

#[test]
fn tensors_that_no_program_can_use_are_refused() {
    let long = "n".repeat(64);
    for (name, dims, number, refused) in [
        (&*long, &[1][..], 0, "gg-name-length"),
        ("t", &[1; 5], 0, "gg-rank"),
        ("t", &[1 << 32, 1 << 32], 0, "gg-elements"),
        ("t", &[32], 4, "gg-type-removed"),
        ("t", &[32], 9_999, "gg-type-unknown"),
    ] {
        let file = file(1, 0, &[&tensor(name, dims, number, 0)[..], &[0; 512]].concat());
        assert_eq!(code(&file, &ReadOptions::STRICT), Err(refused));
    }
    let file = file(1, 0, &[&tensor(&long, &[1], 0, 0)[..], &[0; 512]].concat());
    let gguf = Gguf::from_bytes_with(&file, &ReadOptions::COMPAT).unwrap();
    assert_eq!(GgufBuilder::copy_of(gguf.header()).unwrap_err().code(), "gg-name-length");
}
