//! Links stay links; what they lead to is replaced.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use durable_file::{ErrorKind, FileKind, Operation, Replacement, write};

use crate::scratch::Scratch;

fn assert_still_link(path: &Path) {
    assert!(fs::symlink_metadata(path).unwrap().is_symlink(), "{path:?} is no link any more");
}

#[test]
fn the_target_of_a_link_is_replaced() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("real")).unwrap();
    let real = scratch.join("real/m.bin");
    symlink("real/m.bin", scratch.join("relative")).unwrap();
    symlink(&real, scratch.join("absolute")).unwrap();
    symlink("relative", scratch.join("chain")).unwrap();
    symlink("real", scratch.join("folder")).unwrap();
    symlink("../chain", scratch.join("real/up")).unwrap();
    for name in ["relative", "absolute", "chain", "folder/m.bin", "folder/up"] {
        fs::write(&real, "old").unwrap();
        let path = scratch.join(name);
        let replacement = Replacement::create(&path).unwrap();
        assert_eq!(fs::canonicalize(replacement.path()).unwrap(), fs::canonicalize(&real).unwrap());
        drop(replacement);
        write(&path, name.as_bytes()).unwrap();
        assert_eq!(fs::read(&real).unwrap(), name.as_bytes());
        assert_eq!(crate::scratch::names(&scratch.join("real")), ["m.bin", "up"]);
    }
    for name in ["relative", "absolute", "chain", "folder", "real/up"] {
        assert_still_link(&scratch.join(name));
    }
}

#[test]
fn the_target_of_a_dangling_link_is_created() {
    let scratch = Scratch::new();
    symlink("second", scratch.join("first")).unwrap();
    symlink("missing", scratch.join("second")).unwrap();
    write(&scratch.join("first"), b"new").unwrap();
    assert_eq!(fs::read(scratch.join("missing")).unwrap(), b"new");
    assert_still_link(&scratch.join("first"));
    assert_still_link(&scratch.join("second"));
}

#[test]
fn a_link_into_a_missing_folder_is_an_error() {
    let scratch = Scratch::new();
    symlink("no/such", scratch.join("link")).unwrap();
    let error = write(&scratch.join("link"), b"new").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io { operation: Operation::OpenFolder });
    assert_still_link(&scratch.join("link"));
}

#[test]
fn links_in_a_circle_are_an_error() {
    let scratch = Scratch::new();
    symlink("b", scratch.join("a")).unwrap();
    symlink("a", scratch.join("b")).unwrap();
    symlink("self", scratch.join("self")).unwrap();
    for name in ["a", "self"] {
        assert_eq!(write(&scratch.join(name), b"new").unwrap_err().kind(), ErrorKind::SymlinkLoop);
    }
    assert_eq!(scratch.names(), ["a", "b", "self"]);
}

#[test]
fn a_link_to_a_folder_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("real")).unwrap();
    symlink("real", scratch.join("link")).unwrap();
    let error = write(&scratch.join("link"), b"new").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRegular { what: FileKind::Directory });
}

#[test]
fn a_link_that_took_the_name_meanwhile_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(scratch.join("other"), "other").unwrap();
    let replacement = Replacement::create(&path).unwrap();
    symlink("other", &path).unwrap();
    let error = replacement.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRegular { what: FileKind::Symlink });
    assert_eq!(fs::read(scratch.join("other")).unwrap(), b"other");
    assert_eq!(scratch.names(), ["m.bin", "other"]);
}

#[test]
fn a_path_through_a_file_is_an_error() {
    let scratch = Scratch::new();
    fs::write(scratch.join("file"), "").unwrap();
    let error = write(&scratch.join("file/m.bin"), b"new").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io { operation: Operation::Inspect });
}
