//! An interrupted program leaves nothing unfinished, and what it had finished stays.

use std::fs;

use durable_file::Scratch as ScratchFile;

use crate::child::{Role, command};
use crate::scratch::Scratch;

#[test]
fn what_is_unfinished_goes_and_nothing_begins_afterwards() {
    let scratch = Scratch::new();
    fs::write(scratch.join("old"), "old").unwrap();
    let output = command(Role::Abandon, scratch.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(scratch.names(), ["done", "old"], "{said}");
    assert_eq!(fs::read(scratch.join("old")).unwrap(), b"old");
    let placed: Vec<_> = said.lines().filter(|line| line.starts_with("placed")).collect();
    assert_eq!(placed, ["placed done"], "a file in a staged folder that is gone is not there");
    assert!(!said.contains("went on"), "{said}");
}

#[test]
fn a_scratch_file_can_be_opened_by_its_path_and_goes_with_its_handle() {
    let scratch = Scratch::new();
    let file = ScratchFile::create(scratch.path(), "stdin").unwrap();
    fs::write(file.path(), "content").unwrap();
    assert_eq!(fs::read(file.path()).unwrap(), b"content");
    drop(file);
    assert!(scratch.names().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_being_written_has_no_name_and_one_reader() {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;

    let scratch = Scratch::new();
    let file = ScratchFile::create(scratch.path(), "stdin").unwrap();
    let mut replacement = durable_file::Replacement::create(&scratch.join("m.bin")).unwrap();
    replacement.write_all(b"secret").unwrap();
    for file in [file.file(), replacement.file()] {
        let found = file.metadata().unwrap();
        assert_eq!((found.nlink(), found.mode() & 0o777), (0, 0o600));
    }
    assert!(scratch.names().is_empty());
}
