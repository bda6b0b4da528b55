//! Damaged `.apr` files: every flipped bit and every lost end is noticed; where the checksums are made right again,
//! whatever is read or refused happens without a panic.

use std::hint::black_box;
use std::{env, fs, process};

use apr_container::v1::Container;
use apr_container::v2::{self, Stored};
use apr_container::{
    Expect, PayloadLayout, ReadOptions, UncheckedSignature, encode_payload_to_vec, inspect_bytes_with,
    inspect_from, load_from_bytes_with, load_with,
};
use apr_models::{AnyModel, Model};
use conformance::apr::seal::{seal, seal_header};
use conformance::apr::vectors::{self, Content, Protection, Vectors};

const LEVELS: [ReadOptions; 2] = [ReadOptions::STRICT, ReadOptions::COMPAT];

/// Plain files that the peers wrote, of less than 400 bytes, which load.
fn plain_files() -> Vec<(String, u8, Vec<u8>)> {
    let files = Vectors::load().unwrap().files;
    let mut found = Vec::new();
    for file in files.into_iter().filter(|file| file.size < 400) {
        let Content::V1(facts) = &file.content else { continue };
        if facts.protection == Protection::Plain && !file.name.contains("kitchen") {
            let bytes = vectors::read(&file.name).unwrap();
            assert!(load(&bytes, &ReadOptions::STRICT), "{}", file.name);
            found.push((file.name, facts.header.compression, bytes));
        }
    }
    found
}

/// One of them for each compression.
fn one_of_each() -> Vec<(String, u8, Vec<u8>)> {
    let files = plain_files();
    (0..4)
        .map(|byte| files.iter().find(|(_, compression, _)| *compression == byte).unwrap().clone())
        .collect()
}

fn second_files() -> Vec<(String, Vec<u8>)> {
    let files = Vectors::load().unwrap().files.into_iter();
    let names = files.filter(|file| matches!(file.content, Content::V2(_))).map(|file| file.name);
    let names = names.chain(["hostile/v2h00_good.bin".to_owned()]);
    names.map(|name| (vectors::read(&name).unwrap(), name)).map(|(bytes, name)| (name, bytes)).collect()
}

fn load(file: &[u8], options: &ReadOptions) -> bool {
    load_from_bytes_with::<AnyModel>(file, Expect::AnyKnown, options).is_ok()
}

/// The file with one bit changed, for each bit.
fn flips(file: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..file.len() * 8).map(|bit| {
        let mut flipped = file.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        (bit, flipped)
    })
}

#[test]
fn every_flipped_bit_is_refused() {
    let mut flipped = 0;
    let files = plain_files();
    for (name, _, file) in &files {
        for (bit, damaged) in flips(file) {
            for options in &LEVELS {
                assert!(!load(&damaged, options), "{name}, bit {bit}, {:?}", options.strictness);
            }
            flipped += 1;
        }
    }
    println!("{} files, {flipped} flipped bits, all refused in both strictness levels", files.len());
    assert!(files.len() > 80 && flipped > 100_000);
    let compressions: Vec<u8> = one_of_each().iter().map(|(_, compression, _)| *compression).collect();
    assert_eq!(compressions, [0, 1, 2, 3]);
}

#[test]
fn every_lost_end_is_refused() {
    let mut cut = 0;
    for (name, _, file) in plain_files() {
        for len in 0..file.len() {
            for options in &LEVELS {
                assert!(!load(&file[..len], options), "{name}, first {len} bytes, {:?}", options.strictness);
            }
            cut += 1;
        }
    }
    println!("{cut} lengths, all refused in both strictness levels");
}

/// The same for files on disk.
#[test]
fn damage_on_disk_is_refused() {
    let path = env::temp_dir().join(format!("conformance-damage-{}.apr", process::id()));
    let refused = |damaged: &[u8], options: &ReadOptions| {
        fs::write(&path, damaged).unwrap();
        load_with::<AnyModel>(&path, Expect::AnyKnown, options).is_err()
    };
    let (mut flipped, mut cut) = (0, 0);
    for (name, _, file) in one_of_each() {
        assert!(!refused(&file, &ReadOptions::STRICT));
        for (bit, damaged) in flips(&file) {
            let options = &LEVELS[bit % 2];
            assert!(refused(&damaged, options), "{name}, bit {bit}, {:?}", options.strictness);
            flipped += 1;
        }
        for len in 0..file.len() {
            assert!(refused(&file[..len], &LEVELS[len % 2]), "{name}, first {len} bytes");
            cut += 1;
        }
    }
    fs::remove_file(&path).unwrap();
    println!("{flipped} flipped bits and {cut} lengths, all refused");
}

/// Uses everything that a file provides, if it could be read.
fn use_up(file: &[u8]) -> bool {
    let mut loaded = false;
    for options in LEVELS {
        let options = options.with_unchecked_signature(UncheckedSignature::Allow);
        black_box(inspect_from(&file, &options).is_ok());
        black_box(
            inspect_bytes_with(file, &options).map(|info| (info.warnings().count(), info.layout())).is_ok(),
        );
        if let Ok(container) = Container::from_bytes_with(file, &options) {
            black_box(container.payload().plain().and_then(|payload| payload.to_vec()).is_ok());
        }
        let model = load_from_bytes_with::<AnyModel>(file, Expect::AnyKnown, &options);
        match model {
            Err(error) => {
                black_box(error.to_string());
            }
            Ok(model) => {
                loaded = true;
                for layout in PayloadLayout::ALL {
                    black_box(encode_payload_to_vec(&model, layout).is_ok());
                }
                let n_features = model.n_features().unwrap_or(3).min(1 << 16);
                let rows = apr_models::Matrix::from_vec(1, n_features, vec![0.5; n_features]);
                black_box(rows.and_then(|rows| model.try_predict(&rows)).is_ok());
                black_box(model.to_tensors().is_ok());
            }
        }
    }
    loaded
}

#[test]
fn flips_with_the_checksum_made_right_never_panic() {
    let (mut read, mut flipped) = (0, 0);
    for (_, _, file) in plain_files() {
        for (bit, mut damaged) in flips(&file) {
            if bit / 8 < file.len() - 4 {
                seal(&mut damaged);
                read += usize::from(use_up(&damaged));
                flipped += 1;
            }
        }
    }
    println!("{read} of {flipped} are read");
    assert!(read > flipped / 4, "most flips change a value, not the structure: {read} of {flipped}");
}

#[test]
fn ends_with_the_checksum_made_right_never_panic() {
    for (_, _, file) in plain_files() {
        for len in 0..file.len() {
            let mut damaged = file[..len].to_vec();
            seal(&mut damaged);
            use_up(&damaged);
        }
    }
}

fn open_second(file: &[u8], options: &ReadOptions) -> bool {
    let Ok(stored) = Stored::from_bytes(file, options) else { return false };
    let container = stored.container();
    if let Ok(tensors) = container.tensors() {
        for view in tensors {
            black_box((view.to_f32().is_ok(), view.elements::<f32>().map(Iterator::count).is_ok()));
            assert_eq!(container.data(view.name()).unwrap().len(), view.data().len());
        }
    }
    black_box((container.metadata().to_json(), container.warnings().count(), format!("{container:?}")));
    true
}

/// The footer is optional in the format: a file that ends exactly where it would begin is whole.
#[test]
fn damage_to_the_second_generation_is_refused() {
    let (mut flipped, mut cut) = (0, 0);
    for (name, file) in second_files() {
        assert!(open_second(&file, &ReadOptions::STRICT), "{name}");
        for (bit, damaged) in flips(&file) {
            assert!(!open_second(&damaged, &ReadOptions::STRICT), "{name}, bit {bit}");
            open_second(&damaged, &ReadOptions::COMPAT);
            flipped += 1;
        }
        for len in 0..file.len() {
            for options in &LEVELS {
                let accepted = open_second(&file[..len], options);
                let without_footer = len == file.len() - 4;
                let told = || v2::Container::from_bytes(&file[..len]).unwrap().footer() == v2::Footer::Absent;
                match options.strictness {
                    apr_container::Strictness::Strict => {
                        assert_eq!(accepted, without_footer, "{name}, first {len} bytes");
                        assert!(!accepted || told());
                    }
                    apr_container::Strictness::Compat => {}
                }
            }
            cut += 1;
        }
    }
    println!("{flipped} flipped bits, {cut} lengths");
}

#[test]
fn flips_of_the_second_generation_with_checksums_made_right_never_panic() {
    let (mut read, mut flipped) = (0, 0);
    for (_, file) in second_files() {
        for (bit, mut damaged) in flips(&file) {
            seal_header(&mut damaged);
            open_second(&damaged, &ReadOptions::COMPAT);
            if bit / 8 < file.len() - 4 {
                seal(&mut damaged);
                for options in &LEVELS {
                    read += usize::from(open_second(&damaged, options));
                }
                flipped += 2;
            }
        }
    }
    println!("{read} of {flipped} are read");
}
