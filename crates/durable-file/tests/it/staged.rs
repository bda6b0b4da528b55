//! A folder appears whole or not at all.

use std::fs;

use durable_file::{ErrorKind, Operation, StagedDir};

use crate::scratch::{Scratch, names};

#[test]
fn a_folder_appears_with_all_it_holds() {
    let scratch = Scratch::new();
    let path = scratch.join("step_1");
    let staged = StagedDir::create(&path).unwrap();
    fs::write(staged.path().join("a"), "A").unwrap();
    fs::create_dir_all(staged.path().join("sub/deeper")).unwrap();
    fs::write(staged.path().join("sub/deeper/b"), "B").unwrap();
    fs::create_dir(staged.path().join("empty")).unwrap();
    assert!(!path.exists());
    staged.commit().unwrap();
    assert_eq!(names(&path), ["a", "empty", "sub"]);
    assert_eq!(fs::read(path.join("sub/deeper/b")).unwrap(), b"B");
    assert_eq!(scratch.names(), ["step_1"]);
}

#[test]
fn dropped_without_commit_nothing_is_left() {
    let scratch = Scratch::new();
    let staged = StagedDir::create(&scratch.join("step")).unwrap();
    fs::create_dir(staged.path().join("sub")).unwrap();
    fs::write(staged.path().join("sub/file"), "x").unwrap();
    drop(staged);
    assert!(scratch.names().is_empty());
}

#[test]
fn a_name_that_exists_is_refused_at_once_and_at_the_commit() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("empty")).unwrap();
    fs::create_dir(scratch.join("full")).unwrap();
    fs::write(scratch.join("full/file"), "old").unwrap();
    fs::write(scratch.join("file"), "old").unwrap();
    let before = scratch.names();
    for name in ["empty", "full", "file"] {
        let path = scratch.join(name);
        assert_eq!(StagedDir::create(&path).unwrap_err().kind(), ErrorKind::Exists, "{name}");
        // The same, taken while the folder was being filled.
        let aside = scratch.join("aside");
        fs::rename(&path, &aside).unwrap();
        let staged = StagedDir::create(&path).unwrap();
        fs::write(staged.path().join("new"), "new").unwrap();
        fs::rename(&aside, &path).unwrap();
        assert_eq!(staged.commit().unwrap_err().kind(), ErrorKind::Exists, "{name}");
        assert_eq!(scratch.names(), before);
    }
    assert_eq!(names(&scratch.join("full")), ["file"]);
    assert!(names(&scratch.join("empty")).is_empty());
}

#[cfg(unix)]
#[test]
fn links_are_refused_and_not_followed() {
    use durable_file::FileKind;
    use std::os::unix::fs::symlink;
    let scratch = Scratch::new();
    fs::write(scratch.join("outside"), "precious").unwrap();
    let staged = StagedDir::create(&scratch.join("step")).unwrap();
    symlink("../outside", staged.path().join("link")).unwrap();
    let error = staged.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRegular { what: FileKind::Symlink });
    assert_eq!(scratch.names(), ["outside"]);
    assert_eq!(fs::read(scratch.join("outside")).unwrap(), b"precious");
}

#[test]
fn a_missing_parent_is_an_error() {
    let scratch = Scratch::new();
    let error = StagedDir::create(&scratch.join("no/step")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io { operation: Operation::OpenFolder });
}

#[test]
fn a_staged_folder_that_was_taken_away_is_an_error() {
    let scratch = Scratch::new();
    let staged = StagedDir::create(&scratch.join("step")).unwrap();
    fs::remove_dir(staged.path()).unwrap();
    let error = staged.commit().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io { .. }), "{error}");
    assert!(scratch.names().is_empty());
}

#[test]
fn writers_of_different_folders_do_not_disturb_each_other() {
    let scratch = Scratch::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let scratch = &scratch;
            scope.spawn(move || {
                for save in 0..25 {
                    let staged = StagedDir::create(&scratch.join(format!("{writer}-{save}"))).unwrap();
                    fs::write(staged.path().join("file"), [writer; 1000]).unwrap();
                    staged.commit().unwrap();
                }
            });
        }
    });
    assert_eq!(scratch.names().len(), 100);
}
