//! What a GGUF file may cost: 8 MiB and 24 times its length, whatever it claims.

use conformance::gguf;
use gguf_core::{Gguf, GgufBuilder, Header, ReadOptions};

use super::{HEAP, Worst};

pub(crate) fn heap_is_bounded() {
    let mut worst = Worst::default();
    for vector in gguf::vectors().unwrap() {
        let mut file = gguf::read(&vector).unwrap();
        judge(&vector.file, &file, &mut worst);
        if file.len() > 400 {
            continue;
        }
        for at in 0..file.len() {
            let old = file[at];
            for new in [0, 0x7f, 0xff, old ^ 1] {
                file[at] = new;
                judge(&vector.file, &file, &mut worst);
            }
            file[at] = old;
        }
    }
    worst.print("GGUF files");

    let mut worst = Worst::default();
    for (name, file) in dense_headers() {
        judge(name, &file, &mut worst);
    }
    worst.print("GGUF headers");
    a_list_of_tokens_is_not_copied();
}

fn judge(name: &str, file: &[u8], worst: &mut Worst) {
    for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
        let (_, usage) = HEAP.measure(|| Gguf::from_bytes_with(file, &options).is_ok());
        worst.judge(name, usage, file.len());
        // A short beginning of a file that claims to be long.
        let (_, usage) = HEAP.measure(|| Header::from_prefix(file, 1 << 40, &options).is_ok());
        worst.judge(name, usage, file.len());
    }
}

/// Headers of a megabyte of the shortest entries and rows.
fn dense_headers() -> Vec<(&'static str, Vec<u8>)> {
    let preamble = |version: u32, n_tensors: u64, n_keys: u64| {
        let counts: Vec<u8> = match version {
            1 => [n_tensors as u32, n_keys as u32].iter().flat_map(|count| count.to_le_bytes()).collect(),
            _ => [n_tensors, n_keys].iter().flat_map(|count| count.to_le_bytes()).collect(),
        };
        [&b"GGUF"[..], &version.to_le_bytes(), &counts].concat()
    };
    let text = |version: u32, idx: u32| {
        let digits = idx.to_le_bytes();
        let digits = &digits[..if idx < 256 {
            1
        } else if idx < 65_536 {
            2
        } else {
            3
        }];
        match version {
            1 => [&(digits.len() as u32).to_le_bytes()[..], digits].concat(),
            _ => [&(digits.len() as u64).to_le_bytes()[..], digits].concat(),
        }
    };
    let keys = |version: u32| {
        let entry = |idx| [text(version, idx), vec![0; 5]].concat();
        [preamble(version, 0, 70_000), (0..70_000).flat_map(entry).collect()].concat()
    };
    let tensors = |version: u32| {
        // Scalars of no bytes would be fewest; names tell them apart, and each takes its place.
        let row = |idx: u32| {
            [text(version, idx), vec![1, 0, 0, 0], vec![0; if version == 1 { 16 } else { 20 }]].concat()
        };
        [preamble(version, 50_000, 0), (0..50_000).flat_map(row).collect(), vec![0; 64]].concat()
    };
    vec![
        ("70,000 keys", keys(3)),
        ("70,000 keys, version 1", keys(1)),
        ("50,000 tensors", tensors(3)),
        ("50,000 tensors, version 1", tensors(1)),
    ]
}

/// A vocabulary costs nothing until it is looked at, and then a word at a time.
fn a_list_of_tokens_is_not_copied() {
    let tokens: Vec<String> = (0..49_152).map(|idx| format!("token {idx}")).collect();
    let mut builder = GgufBuilder::new();
    builder.set_texts("tokenizer.ggml.tokens", tokens.iter().map(String::as_str)).unwrap();
    let file = builder.layout().unwrap().to_vec(&[]).unwrap();
    let (count, usage) = HEAP.measure(|| {
        let gguf = Gguf::from_bytes(&file).unwrap();
        let array = gguf.get("tokenizer.ggml.tokens").and_then(|value| value.as_array()).unwrap();
        array.iter().filter(|value| value.as_str().is_some_and(|text| text.ends_with('7'))).count()
    });
    assert_eq!(count, 4915);
    assert!(usage.peak <= 1024, "{usage:?}");
}
