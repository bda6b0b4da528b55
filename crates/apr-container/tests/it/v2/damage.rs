//! Damage of every kind is noticed, and nothing makes a reader panic.

use std::io::{self, Read};

use apr_container::ReadOptions;
use apr_container::v2::{Container, Footer, Index, Stored};

use super::{BOTH, code, sample, vector};

fn samples() -> [Vec<u8>; 4] {
    [sample(), vector("f0723v2_dtypes.apr"), vector("f0723v2_streaming.apr"), vector("f0723v2_lz4flag.apr")]
}

#[test]
fn every_flipped_bit_is_refused() {
    for mut file in samples() {
        for bit in 0..file.len() * 8 {
            file[bit / 8] ^= 1 << (bit % 8);
            let found = code(&file, &ReadOptions::STRICT);
            assert_ne!(found, "accepted", "bit {bit}");
            // What is not damaged in the header is called by its name.
            let expected: &[&str] = match bit / 8 {
                0..4 => &["ac-magic"],
                4..64 => &["ac-v2-header-checksum"],
                // The index of a file of another length.
                _ => &["ac-checksum", "ac-truncated", "ac-v2-compressed"],
            };
            assert!(expected.contains(&found), "bit {bit}: {found}");
            let _ = Container::from_bytes_with(&file, &ReadOptions::COMPAT);
            let _ = Stored::from_bytes(&file, &ReadOptions::COMPAT);
            file[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Only the footer can be lost unnoticed, since files without one are in circulation; that there is none is reported.
#[test]
fn every_truncation_is_refused_but_the_loss_of_the_footer() {
    for file in samples() {
        for len in 0..file.len() {
            for options in &BOTH {
                let cut = &file[..len];
                let found = Container::from_bytes_with(cut, options);
                if len == file.len() - 4 {
                    assert_eq!(found.unwrap().footer(), Footer::Absent);
                } else if options == &ReadOptions::STRICT {
                    assert!(found.is_err(), "{len} of {}", file.len());
                }
                assert!(Index::from_bytes(cut, options).is_err() || len + 68 > file.len());
                let _ = Stored::from_bytes(cut, options);
            }
        }
    }
}

#[test]
fn added_bytes_are_refused() {
    for mut file in samples() {
        for byte in [0, 1, 0xFF] {
            file.push(byte);
            assert_ne!(code(&file, &ReadOptions::STRICT), "accepted");
            file.pop();
        }
    }
}

/// With the checksums made to fit again, whatever the index says leads to a verdict.
#[test]
fn no_sealed_change_of_the_index_makes_a_reader_panic() {
    let file = sample();
    for at in 4..file.len() - 4 {
        for value in [0, 1, 0x7F, 0x80, 0xFF, file[at] ^ 1] {
            let file = super::edited(&file, |file| file[at] = value);
            for options in &BOTH {
                let Ok(stored) = Stored::from_bytes(&file, options) else { continue };
                let container = stored.container();
                for view in container.tensors().into_iter().flatten() {
                    assert_eq!(container.tensor(view.name()).unwrap(), view);
                    let _ = view.to_f32();
                }
            }
        }
    }
}

/// Gives a few bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.1.min(out.len());
        self.0.read(&mut out[..len])
    }
}

#[test]
fn a_file_read_once_is_judged_as_one_in_memory() {
    let agree = |file: &[u8]| {
        for options in &BOTH {
            let Ok(index) = Index::from_bytes(file, options) else { continue };
            let whole = Container::from_bytes_with(file, options);
            let whole = whole.map(|container| container.footer()).map_err(|error| error.to_string());
            for step in [1, 63, usize::MAX] {
                let once = index.verify(Drip(file, step), options).map_err(|error| error.to_string());
                assert_eq!(once, whole);
            }
        }
    };
    for mut file in samples() {
        agree(&file);
        agree(&file[..file.len() - 4]);
        for at in 64..file.len() - 4 {
            file[at] ^= 0x10;
            agree(&file);
            file[at] ^= 0x10;
            agree(&super::edited(&file, |file| file[at] ^= 0x10));
        }
        let index = Index::from_bytes(&file, &ReadOptions::STRICT).unwrap();
        let short = index.verify(&file[..file.len() - 1], &ReadOptions::STRICT);
        assert_eq!(short.unwrap_err().code(), "ac-truncated");
        file.push(0);
        let long = index.verify(file.as_slice(), &ReadOptions::STRICT);
        assert_eq!(long.unwrap_err().code(), "ac-v2-trailing");
    }
}
