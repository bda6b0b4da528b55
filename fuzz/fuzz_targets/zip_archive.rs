//! Any bytes as an archive, and with an end record for whatever they are: an error, or members inside the file that give at most what they
//! declare; the same from memory and from a reader.

#![no_main]

use libfuzzer_sys::fuzz_target;
use read_at::{Error, ReadAt};
use zip_core::{Archive, Limits};

struct Reader<'a>(&'a [u8]);

impl ReadAt for Reader<'_> {
    fn total_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.0.read_exact_at(offset, out)
    }
}

fuzz_target!(|input: &[u8]| {
    check(input);
    // A directory of up to 255 bytes at the end of the input.
    if let Some((len, rest)) = input.split_first() {
        let at = (rest.len() as u32).saturating_sub((*len).into()).to_le_bytes();
        let end = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &[*len, 0, 0, 0], &at, &[0, 0]].concat();
        check(&[rest, &end].concat());
    }
});

fn check(bytes: &[u8]) {
    let memory = Archive::open(bytes, &Limits::DEFAULT);
    let reader = Archive::open(Reader(bytes), &Limits::DEFAULT);
    let (archive, found) = match (memory, reader) {
        (Ok((archive, found)), Ok((_, same))) => {
            assert_eq!(found, same);
            (archive, found)
        }
        (Err(memory), Err(reader)) => return assert_eq!(memory.kind(), reader.kind()),
        (memory, reader) => panic!("{memory:?} {}", reader.is_ok()),
    };
    assert!(found.iter().all(|finding| finding.offset <= bytes.len() as u64));
    for entry in archive.entries() {
        if let Ok(data) = archive.read(entry, 1 << 16) {
            assert_eq!(data.len() as u64, entry.len_declared());
        }
        if let (Ok(mut member), 0..65_536) = (archive.member(entry), entry.len_declared()) {
            let _ = member.verify();
        }
    }
}
