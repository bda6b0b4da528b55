//! Every name a file system takes can be replaced, and swept afterwards.

use std::fs;
use std::path::Path;

use durable_file::{ErrorKind, Replacement, StagedDir, write};

use crate::child::{Role, busy, kill};
use crate::scratch::Scratch;

#[test]
fn long_and_unusual_names_are_replaced_and_swept() {
    let longest_umlauts = "ä".repeat(127) + "b";
    let names = [
        "x".repeat(255),
        longest_umlauts,
        "x".repeat(96),
        "x".repeat(97),
        "模型 .safetensors".to_owned(),
        "-rf".to_owned(),
        ".hidden".to_owned(),
        "a\nb\"'\\*?".to_owned(),
        "ends.df-new".to_owned(),
        "~".to_owned(),
    ];
    for name in names {
        let scratch = Scratch::new();
        let path = scratch.join(&name);
        fs::write(&path, "old").unwrap();
        kill(busy(Role::HoldFile, &path));
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(scratch.names(), [name.as_str()]);
    }
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_replaced_and_swept() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let scratch = Scratch::new();
    let path = scratch.join(OsStr::from_bytes(b"model\xff\xfe.bin"));
    write(&path, b"old").unwrap();
    kill(busy(Role::HoldFile, &path));
    write(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(scratch.names().len(), 1);
}

#[test]
fn paths_without_a_file_name_are_refused() {
    let scratch = Scratch::new();
    let slash = |name: &str| scratch.join(name).into_os_string().into_string().unwrap();
    let cases = ["".to_owned(), slash("new/"), slash("new/."), slash("new/.."), slash("m.bin") + "/"];
    for path in cases.iter().map(Path::new) {
        for error in [
            write(path, b"new").unwrap_err(),
            Replacement::create_new(path).unwrap_err(),
            StagedDir::create(path).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::NoFileName, "{path:?}");
        }
    }
    assert_eq!(Replacement::create_new(Path::new("/")).unwrap_err().kind(), ErrorKind::NoFileName);
    assert!(scratch.names().is_empty());
}

#[test]
fn names_of_our_own_form_are_refused() {
    let scratch = Scratch::new();
    for suffix in ["new", "old", "dir"] {
        let path = scratch.join(format!(".m.bin.0123456789abcdef.df-{suffix}"));
        for error in [
            write(&path, b"new").unwrap_err(),
            Replacement::create_new(&path).unwrap_err(),
            StagedDir::create(&path).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::ReservedName);
        }
    }
}

#[test]
fn a_relative_path_means_the_folder_of_the_start() {
    // Only the value is looked at: changing the working directory would disturb the other tests.
    let replacement = Replacement::create(Path::new("durable-file-relative.tmp")).unwrap();
    assert!(replacement.path().is_absolute());
    assert_eq!(replacement.path(), std::env::current_dir().unwrap().join("durable-file-relative.tmp"));
}

#[cfg(unix)]
#[test]
fn a_relative_path_in_a_folder_that_is_gone_is_an_error() {
    use crate::child::command_after;
    let scratch = Scratch::new();
    let gone = scratch.join("gone");
    fs::create_dir(&gone).unwrap();
    let line = format!("cd '{0}' && rmdir '{0}'", gone.display());
    let output = command_after(&line, Role::Save, Path::new("m.bin")).output().unwrap();
    assert!(!output.status.success());
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Inspect"), "{said}");
}
