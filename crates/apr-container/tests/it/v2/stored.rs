//! Files compressed as a whole, as one reader in circulation expects them.

use apr_container::v2::{Container, Footer, Inflated, Stored, Warning};
use apr_container::{Expansion, Limits, ReadOptions};

use super::{BOTH, edited, sample, vector};

/// A file with a compression flag, and which header its footer was made for.
fn flagged(file: &[u8], bit: u8, footer_of_the_flag: bool) -> Vec<u8> {
    let with_flag = edited(file, |file| file[6] |= 1 << bit);
    let footer = if footer_of_the_flag { &with_flag } else { file };
    [&with_flag[..file.len() - 4], &footer[file.len() - 4..]].concat()
}

fn lz4(file: &[u8]) -> Vec<u8> {
    let block = lz4_flex::compress_prepend_size(&file[64..]);
    [&file[..64], &block].concat()
}

fn zstd(file: &[u8]) -> Vec<u8> {
    let frame = zstd::encode_all(&file[64..], 3).unwrap();
    [&file[..64], &frame].concat()
}

#[test]
fn blocks_are_recognised_and_inflated() {
    let raw = sample();
    for footer_of_the_flag in [false, true] {
        let files = [
            (lz4(&flagged(&raw, 0, footer_of_the_flag)), "lz4"),
            (zstd(&flagged(&raw, 1, footer_of_the_flag)), "zstd"),
        ];
        for (file, algorithm) in files {
            for options in &BOTH {
                let error = Container::from_bytes_with(&file, options).unwrap_err();
                assert_eq!((error.code(), error.offset()), ("ac-v2-compressed", Some(64)));
                let stored = Stored::from_bytes(&file, options).unwrap();
                assert!(matches!(stored, Stored::Inflated(_)));
                let container = stored.container();
                assert_eq!(container.tensor("w").unwrap().to_f32().unwrap(), [1.0, -2.5, 3.0]);
                assert!(matches!(container.footer(), Footer::Present(_)));
                assert!(container.warnings().eq([Warning::Inflated { algorithm }]));
                assert!(
                    container.tensors().unwrap().eq(Container::from_bytes(&raw).unwrap().tensors().unwrap())
                );
            }
        }
    }
}

#[test]
fn a_block_without_footer_is_read_and_one_with_a_wrong_one_is_not() {
    let raw = flagged(&sample(), 0, true);
    let bare = lz4(&raw[..raw.len() - 4]);
    let stored = Stored::from_bytes(&bare, &ReadOptions::STRICT).unwrap();
    assert_eq!(stored.container().footer(), Footer::Absent);
    let mut wrong = raw;
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    let wrong = lz4(&wrong);
    assert_eq!(Stored::from_bytes(&wrong, &ReadOptions::STRICT).unwrap_err().code(), "ac-checksum");
    let stored = Stored::from_bytes(&wrong, &ReadOptions::COMPAT).unwrap();
    assert!(matches!(stored.container().footer(), Footer::Wrong { .. }));
}

#[test]
fn the_bytes_decide_and_raw_comes_first() {
    for (bit, name) in [(0, "lz4"), (1, "zstd")] {
        let raw = flagged(&sample(), bit, true);
        let stored = Stored::from_bytes(&raw, &ReadOptions::STRICT).unwrap();
        assert!(matches!(stored, Stored::Raw(_)), "{name}");
        assert_eq!(stored.container().len(), 3);
    }
    let lz4flag = vector("f0723v2_lz4flag.apr");
    assert!(matches!(Stored::from_bytes(&lz4flag, &ReadOptions::STRICT), Ok(Stored::Raw(_))));
}

#[test]
fn a_block_that_says_it_is_huge_is_refused_before_memory_is_taken() {
    let mut file = lz4(&flagged(&sample(), 0, true));
    file[64..68].copy_from_slice(&u32::MAX.to_le_bytes());
    for options in &BOTH {
        assert_eq!(Stored::from_bytes(&file, options).unwrap_err().code(), "ac-expansion");
    }
    let bomb = vec![0; 40 << 20];
    let raw = flagged(&sample(), 1, true);
    let bomb = [&raw[..64], &zstd::encode_all(&bomb[..], 3).unwrap()[..]].concat();
    assert_eq!(Stored::from_bytes(&bomb, &ReadOptions::STRICT).unwrap_err().code(), "ac-expansion");
    let limits = Limits { expansion: Expansion { floor: 10, ratio: 0 }, ..Limits::DEFAULT };
    let options = ReadOptions::STRICT.with_limits(limits);
    let small = lz4(&flagged(&sample(), 0, true));
    assert_eq!(Stored::from_bytes(&small, &options).unwrap_err().code(), "ac-expansion");
}

#[test]
fn damaged_blocks_and_unclear_flags_are_refused() {
    let whole = zstd(&flagged(&sample(), 1, true));
    for len in 64..whole.len() {
        assert!(Stored::from_bytes(&whole[..len], &ReadOptions::STRICT).is_err(), "{len}");
    }
    let raw = edited(&sample(), |file| file[6] |= 3);
    let both = lz4(&raw);
    assert_eq!(Stored::from_bytes(&both, &ReadOptions::STRICT).unwrap_err().code(), "ac-reserved");
    assert!(Stored::from_bytes(&both, &ReadOptions::COMPAT).is_ok());
    assert_eq!(Inflated::from_bytes(&sample(), &ReadOptions::STRICT).unwrap_err().code(), "ac-reserved");
    // The content of the block is as untrusted as any file.
    let empty = lz4(&flagged(&sample(), 0, true)[..64]);
    assert_eq!(Stored::from_bytes(&empty, &ReadOptions::STRICT).unwrap_err().code(), "ac-truncated");
}

/// Every single-bit flip of a compressed file is refused too: by the block's own structure or by the footer in it.
#[test]
fn flipped_bits_of_compressed_files_are_refused() {
    let raw = sample();
    let whole = Container::from_bytes(&raw).unwrap();
    for mut file in [lz4(&flagged(&raw, 0, true)), zstd(&flagged(&raw, 1, true))] {
        for bit in 64 * 8..file.len() * 8 {
            file[bit / 8] ^= 1 << (bit % 8);
            if let Ok(stored) = Stored::from_bytes(&file, &ReadOptions::STRICT) {
                // A frame may say the same in another way, never something else.
                let same = stored.container().tensors().unwrap().eq(whole.tensors().unwrap());
                assert!(same, "bit {bit}");
            }
            file[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Compresses a file.
type Pack = fn(&[u8]) -> Vec<u8>;

/// Bit of the flag, and what it announces.
const ALGORITHMS: [(u8, Pack); 2] = [(0, lz4), (1, zstd)];

/// Nothing authenticates a compressed file: with the header's checksum made right, each change is a typed error or a file that
/// can be read.
#[test]
fn no_sealed_change_of_a_compressed_file_makes_a_reader_panic() {
    let (mut tried, mut read) = (0, 0);
    for (bit, pack) in ALGORITHMS {
        let whole = pack(&flagged(&sample(), bit, true));
        for at in 0..whole.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFF, whole[at] ^ 1, !whole[at]] {
                let mut changed = whole.clone();
                changed[at] = value;
                let checksum = super::crc32(&[&changed[..40], &changed[44..64]].concat()).to_le_bytes();
                changed[40..44].copy_from_slice(&checksum);
                for options in &BOTH {
                    tried += 1;
                    let Ok(stored) = Stored::from_bytes(&changed, options) else { continue };
                    read += 1;
                    let container = stored.container();
                    for view in container.tensors().into_iter().flatten() {
                        assert_eq!(container.tensor(view.name()).unwrap(), view);
                        let _ = view.to_f32();
                    }
                }
            }
        }
    }
    eprintln!("{read} of {tried} are read");
    assert!(read > 0 && read < tried);
}

/// The same of changes before compression, where all checksums are right: what is read is what the uncompressed file holds.
#[test]
fn sealed_changes_before_compression_are_read_as_without_it() {
    let (mut tried, mut read) = (0, 0);
    for (bit, pack) in ALGORITHMS {
        let whole = flagged(&sample(), bit, true);
        for at in 0..whole.len() - 4 {
            for value in [0, 1, 0x7F, 0x80, 0xFF, whole[at] ^ 1, !whole[at]] {
                let raw = edited(&whole, |file| file[at] = value);
                let packed = pack(&raw);
                for options in &BOTH {
                    tried += 1;
                    let Ok(Stored::Inflated(inflated)) = Stored::from_bytes(&packed, options) else {
                        continue;
                    };
                    read += 1;
                    let (found, expected) =
                        (inflated.container(), Container::from_bytes_with(&raw, options).unwrap());
                    assert_eq!(found.metadata(), expected.metadata());
                    assert_eq!(found.len(), expected.len());
                    let pairs =
                        found.tensors().into_iter().flatten().zip(expected.tensors().into_iter().flatten());
                    for (found, expected) in pairs {
                        assert_eq!(found, expected, "byte {at} = {value}");
                    }
                }
            }
        }
    }
    eprintln!("{read} of {tried} are read");
    assert!(read > 1000 && read < tried);
}
