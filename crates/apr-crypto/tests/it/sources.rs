//! Sources that fail, lie, or change.

use std::cell::Cell;
use std::io;

use apr_crypto::{
    ChunkedReader, ErrorKind, FileKey, LeafLen, OsRandom, TreeAlgorithm, TreeHasher, VerifiedReader,
};
use read_at::{Error, FileSource, ReadAt, Window};

/// Fails at the n-th read.
struct Failing<'a>(&'a [u8], Cell<u32>);

impl ReadAt for Failing<'_> {
    fn total_len(&self) -> u64 {
        self.0.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.1.set(self.1.get().wrapping_sub(1));
        if self.1.get() == 0 {
            return Err(Error::from_source(io::Error::other("line is down")));
        }
        self.0.read_exact_at(offset, out)
    }
}

/// Claims another length than it has.
struct Lying<'a>(&'a [u8], u64);

impl ReadAt for Lying<'_> {
    fn total_len(&self) -> u64 {
        self.1
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.0.read_exact_at(offset, out)
    }
}

fn sealed(len: usize) -> (FileKey, Vec<u8>) {
    let key = FileKey::generate(&mut OsRandom).unwrap();
    let sealed = key.seal_chunked(&mut OsRandom, b"", &vec![5; len]).unwrap();
    (key, sealed)
}

#[test]
fn errors_of_a_source_come_through_and_leave_no_plaintext() {
    let (key, sealed) = sealed(300_000);
    let source = Failing(&sealed, Cell::new(0));
    for n in 1..=2 {
        source.1.set(n);
        let error = ChunkedReader::open(&source, &key, b"").unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Source);
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "line is down");
    }
    source.1.set(0);
    let reader = ChunkedReader::open(&source, &key, b"").unwrap();
    for n in 1..=3 {
        source.1.set(n);
        let mut out = vec![9; 200_000];
        assert_eq!(reader.read_exact_at(100, &mut out).unwrap_err().code(), "cy-source");
        assert!(out.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_length_that_is_not_true_is_refused() {
    let (key, sealed) = sealed(50_000);
    let total = sealed.len() as u64;
    for len in [total + 16_400, total + 1, total - 1, total - 16_400, 1 << 40, u64::MAX, 0, 72] {
        assert!(ChunkedReader::open(Lying(&sealed, len), &key, b"").is_err(), "{len}");
    }
    // A longest possible message is not allocated for.
    let longest = 56 + (1_u64 << 38) * 16_400 - 1;
    assert_eq!(ChunkedReader::open(Lying(&sealed, longest), &key, b"").unwrap_err().code(), "cy-range");
}

#[test]
fn files_and_windows_are_sources() {
    let (key, sealed) = sealed(100_000);
    let path = std::env::temp_dir().join(format!("apr-crypto-source-{}", std::process::id()));
    std::fs::write(&path, [b"header"[..].to_vec(), sealed.clone(), b"footer".to_vec()].concat()).unwrap();
    let file = FileSource::new(std::fs::File::open(&path).unwrap()).unwrap();
    let window = Window::new(&file, 6, sealed.len() as u64).unwrap();
    let reader = ChunkedReader::open(window, &key, b"").unwrap();
    let mut out = vec![0; 40_000];
    reader.read_exact_at(30_000, &mut out).unwrap();
    assert_eq!(out, vec![5; 40_000]);
    // One byte off.
    let window = Window::new(&file, 5, sealed.len() as u64).unwrap();
    assert_eq!(ChunkedReader::open(window, &key, b"").unwrap_err().code(), "cy-open");
    std::fs::remove_file(&path).unwrap();
}

/// Encrypted, and the ciphertext under a tree hash: each reader over the other.
#[test]
fn readers_stand_on_each_other() {
    let (key, sealed) = sealed(500_000);
    let mut hasher = TreeHasher::new(TreeAlgorithm::Blake3, LeafLen::KIB_16);
    hasher.update(&sealed);
    let (root, outboard) = hasher.finish();
    let mut bad = sealed.clone();
    bad[300_000] ^= 1;
    for (content, works) in [(&sealed, true), (&bad, false)] {
        let verified = VerifiedReader::new(root, content, &outboard).unwrap();
        let reader = ChunkedReader::open(verified, &key, b"").unwrap();
        let mut out = vec![0; 1000];
        reader.read_exact_at(0, &mut out).unwrap();
        assert_eq!(out, vec![5; 1000]);
        let read = reader.read_exact_at(300_000, &mut out);
        assert_eq!(read.map_err(|error| error.code()), if works { Ok(()) } else { Err("cy-tree") });
    }
}
