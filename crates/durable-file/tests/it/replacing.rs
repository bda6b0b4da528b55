//! Old or new, never a mixture, and nothing beside it.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use durable_file::{ErrorKind, FileKind, Operation, Replacement, sync_dir, write};

use crate::scratch::Scratch;

#[test]
fn a_file_is_created_and_replaced() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    for content in [b"first".as_slice(), b"", b"the third is longer"] {
        write(&path, content).unwrap();
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(scratch.names(), ["m.bin"]);
    }
}

#[test]
fn until_the_commit_readers_see_the_old_file() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    let mut replacement = Replacement::create(&path).unwrap();
    replacement.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(replacement.path(), path);
    replacement.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(scratch.names(), ["m.bin"]);
}

#[test]
fn a_reader_that_has_the_old_file_open_keeps_it() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    let mut open = fs::File::open(&path).unwrap();
    write(&path, b"new!").unwrap();
    let mut content = String::new();
    open.read_to_string(&mut content).unwrap();
    assert_eq!(content, "old");
}

#[test]
fn dropped_without_commit_nothing_happened() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    for old in [None, Some("old")] {
        if let Some(old) = old {
            fs::write(&path, old).unwrap();
        }
        let mut replacement = Replacement::create(&path).unwrap();
        replacement.write_all(b"new").unwrap();
        drop(replacement);
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), old);
        assert_eq!(scratch.names().len(), usize::from(old.is_some()));
    }
}

#[test]
fn a_panic_leaves_the_old_file_and_no_temp() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    let inner = path.clone();
    std::thread::spawn(move || {
        let _replacement = Replacement::create(&inner).unwrap();
        panic!("on purpose");
    })
    .join()
    .unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(scratch.names(), ["m.bin"]);
}

#[test]
fn written_bytes_can_be_revisited() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    let mut replacement = Replacement::create(&path).unwrap();
    replacement.write_all(b"????body").unwrap();
    replacement.seek(SeekFrom::Start(0)).unwrap();
    replacement.write_all(b"head").unwrap();
    replacement.flush().unwrap();
    assert_eq!(replacement.file().metadata().unwrap().len(), 8);
    replacement.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"headbody");
}

#[test]
fn what_is_no_file_is_refused_by_name_and_left_alone() {
    let scratch = Scratch::new();
    let path = scratch.join("folder");
    fs::create_dir(&path).unwrap();
    let error = write(&path, b"new").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRegular { what: FileKind::Directory });
    assert_eq!(error.path(), path);
    assert!(path.is_dir());
    assert_eq!(scratch.names(), ["folder"]);
}

#[test]
fn a_folder_that_took_the_name_meanwhile_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    let mut replacement = Replacement::create(&path).unwrap();
    replacement.write_all(b"new").unwrap();
    fs::create_dir(&path).unwrap();
    let error = replacement.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRegular { what: FileKind::Directory });
    assert_eq!(scratch.names(), ["m.bin"]);
}

#[test]
fn an_old_file_that_vanished_meanwhile_does_not_matter() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    let mut replacement = Replacement::create(&path).unwrap();
    replacement.write_all(b"new").unwrap();
    fs::remove_file(&path).unwrap();
    replacement.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn a_missing_folder_is_an_error_that_says_so() {
    let scratch = Scratch::new();
    let error = write(&scratch.join("no/m.bin"), b"new").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io { operation: Operation::OpenFolder });
    assert_eq!(error.io_error().unwrap().kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().contains("check the path"), "{error}");
}

#[test]
fn an_error_of_the_writer_keeps_its_cause() {
    let scratch = Scratch::new();
    let replacement = Replacement::create(&scratch.join("m.bin")).unwrap();
    let error = replacement.write_error(std::io::ErrorKind::StorageFull.into());
    assert_eq!(error.kind(), ErrorKind::Io { operation: Operation::Write });
    assert!(error.to_string().contains("free some space"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_failed_write_is_an_error_and_a_commit_after_it_is_refused() {
    use crate::child::{Role, command_after};
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    // 16 MiB at most (shells count in 512 or 1024 bytes); past that a write fails instead of killing.
    let output = command_after("trap '' XFSZ; ulimit -f 16384", Role::SaveAnyway, &path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("a size limit is reached"), "{said}");
    assert!(said.contains("df-incomplete"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(scratch.names(), ["m.bin"]);
}

#[test]
fn folders_are_synced_or_refused() {
    let scratch = Scratch::new();
    sync_dir(scratch.path()).unwrap();
    sync_dir(Path::new(".")).unwrap();
    let error = sync_dir(&scratch.join("none")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io { operation: Operation::OpenFolder });
    fs::write(scratch.join("file"), "").unwrap();
    assert_eq!(sync_dir(&scratch.join("file")).unwrap_err().code(), "df-io");
}
