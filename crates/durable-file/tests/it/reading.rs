//! Regular files, up to a cap, whole.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use durable_file::{ErrorKind, Operation, open_regular, read};

use crate::scratch::Scratch;

#[test]
fn the_cap_is_the_last_length_accepted() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read(&path, u64::MAX).unwrap(), b"12345");
    assert_eq!(read(&path, 5).unwrap(), b"12345");
    let error = read(&path, 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge { len: 5, max: 4 });
    assert_eq!(error.to_string(), format!("{} has at least 5 bytes, the limit is 4", path.display()));
    fs::write(&path, "").unwrap();
    assert_eq!(read(&path, 0).unwrap(), b"");
}

#[test]
fn an_open_file_is_handed_over() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "12345").unwrap();
    let open = open_regular(&path, 5).unwrap();
    assert_eq!((open.len(), open.is_empty()), (5, false));
    assert_eq!(open.file().metadata().unwrap().len(), 5);
    let mut content = String::new();
    open.into_file().read_to_string(&mut content).unwrap();
    assert_eq!(content, "12345");
}

#[test]
fn growth_and_shrinking_are_noticed() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "12345").unwrap();
    let open = open_regular(&path, 100).unwrap();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"678").unwrap();
    assert_eq!(open.into_bytes().unwrap_err().kind(), ErrorKind::Changed { expected: 5, found: 6 });

    let open = open_regular(&path, 100).unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(3).unwrap();
    assert_eq!(open.into_bytes().unwrap_err().kind(), ErrorKind::Changed { expected: 8, found: 3 });
}

#[test]
fn a_missing_file_is_an_error_that_says_so() {
    let error = read(Path::new("no/such/file"), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io { operation: Operation::Open });
    assert_eq!(error.to_string(), "cannot open no/such/file: not found, check the path");
}

#[test]
fn a_length_that_no_memory_holds_is_an_error() {
    let scratch = Scratch::new();
    let path = scratch.join("sparse");
    let file = fs::File::create(&path).unwrap();
    // File systems differ in how long a sparse file may be.
    let Some(len) = [1 << 62, 1 << 46, 1 << 43].into_iter().find(|len| file.set_len(*len).is_ok()) else {
        return;
    };
    if Vec::<u8>::new().try_reserve_exact(usize::try_from(len + 1).unwrap_or(usize::MAX)).is_ok() {
        // This system promises memory it does not have.
        return;
    }
    let error = read(&path, u64::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory { len });
}
