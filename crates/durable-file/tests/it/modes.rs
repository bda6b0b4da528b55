//! Who may read the file is what it was, or what the umask says; never more.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use durable_file::{Replacement, write};

use crate::child::{Role, command, command_after};
use crate::scratch::Scratch;

/// A user and a group without privileges; any number does.
const NOBODY: u32 = 65_534;
const SOME_GROUP: u32 = 12_345;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn run(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Only root can give files away; elsewhere such a test has nothing to stand on.
fn is_root(scratch: &Scratch) -> bool {
    let root = fs::metadata(scratch.path()).unwrap().uid() == 0;
    if !root {
        eprintln!("not root: owners are not tested");
    }
    root
}

#[test]
fn a_new_file_has_the_mode_that_the_umask_leaves() {
    let scratch = Scratch::new();
    for (umask, expected) in [("000", 0o666), ("022", 0o644), ("027", 0o640), ("077", 0o600)] {
        let path = scratch.join(umask);
        run(command_after(&format!("umask {umask}"), Role::Save, &path));
        assert_eq!(mode(&path), expected, "umask {umask}");
    }
    // And like any other file made by this process.
    fs::write(scratch.join("plain"), "").unwrap();
    write(&scratch.join("ours"), b"").unwrap();
    assert_eq!(mode(&scratch.join("ours")), mode(&scratch.join("plain")));
    Replacement::create_new(&scratch.join("created")).unwrap().commit().unwrap();
    assert_eq!(mode(&scratch.join("created")), mode(&scratch.join("plain")));
}

#[test]
fn a_replaced_file_keeps_its_mode_whatever_the_umask() {
    let scratch = Scratch::new();
    for old in [0o600, 0o644, 0o666, 0o640, 0o444, 0o400, 0o755, 0o000, 0o1644, 0o4755, 0o2755] {
        for umask in ["000", "077"] {
            let path = scratch.join(format!("{old:o}-{umask}"));
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(old)).unwrap();
            run(command_after(&format!("umask {umask}"), Role::Save, &path));
            assert_eq!(mode(&path), old, "umask {umask}");
        }
    }
}

#[test]
fn a_change_of_mode_during_the_save_counts() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    let replacement = Replacement::create(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    replacement.commit().unwrap();
    assert_eq!(mode(&path), 0o640);
    // A file that vanished is remembered.
    let replacement = Replacement::create(&path).unwrap();
    fs::remove_file(&path).unwrap();
    replacement.commit().unwrap();
    assert_eq!(mode(&path), 0o640);
}

#[test]
fn while_a_file_is_being_replaced_nobody_else_reads_the_temp() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let mut replacement = Replacement::create(&path).unwrap();
    replacement.write_all(b"secret").unwrap();
    assert_eq!(replacement.file().metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn root_keeps_owner_and_group() {
    let scratch = Scratch::new();
    if !is_root(&scratch) {
        return;
    }
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    chown(&path, Some(NOBODY), Some(SOME_GROUP)).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o6750)).unwrap();
    write(&path, b"new").unwrap();
    let new = fs::metadata(&path).unwrap();
    assert_eq!((new.uid(), new.gid(), new.mode() & 0o7777), (NOBODY, SOME_GROUP, 0o6750));
}

#[test]
fn who_cannot_keep_the_owner_gives_nobody_more_than_before() {
    let scratch = Scratch::new();
    if !is_root(&scratch) {
        return;
    }
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o777)).unwrap();
    // Old owner, old group and mode; then what the new file has after a save by `NOBODY`, who is not a member of `SOME_GROUP`.
    let cases = [
        ((0, SOME_GROUP, 0o640), (NOBODY, NOBODY, 0o600)),
        ((0, SOME_GROUP, 0o664), (NOBODY, NOBODY, 0o644)),
        ((0, SOME_GROUP, 0o666), (NOBODY, NOBODY, 0o666)),
        ((0, SOME_GROUP, 0o6775), (NOBODY, NOBODY, 0o755)),
        ((0, NOBODY, 0o4660), (NOBODY, NOBODY, 0o660)),
        ((NOBODY, NOBODY, 0o4640), (NOBODY, NOBODY, 0o4640)),
    ];
    for ((uid, gid, old), expected) in cases {
        let path = scratch.join("m.bin");
        fs::write(&path, "old").unwrap();
        chown(&path, Some(uid), Some(gid)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(old)).unwrap();
        let mut child = command(Role::Save, &path);
        child.uid(NOBODY).gid(NOBODY);
        run(child);
        let new = fs::metadata(&path).unwrap();
        assert_eq!((new.uid(), new.gid(), new.mode() & 0o7777), expected, "was {old:o}");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_member_of_the_group_keeps_the_group() {
    let scratch = Scratch::new();
    if !is_root(&scratch) {
        return;
    }
    // A folder that hands its own group down, so that temp and old file differ in the group.
    chown(scratch.path(), Some(NOBODY), Some(SOME_GROUP)).unwrap();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o2777)).unwrap();
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    chown(&path, Some(0), Some(NOBODY)).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o2660)).unwrap();
    let mut child = command(Role::Save, &path);
    child.uid(NOBODY).gid(NOBODY);
    run(child);
    let new = fs::metadata(&path).unwrap();
    assert_eq!((new.uid(), new.gid(), new.mode() & 0o7777), (NOBODY, NOBODY, 0o2660));
}

#[test]
fn a_dead_temp_that_may_only_be_read_is_swept() {
    let scratch = Scratch::new();
    if !is_root(&scratch) {
        return;
    }
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o777)).unwrap();
    let leftover = scratch.join(".m.bin.00000000000000ff.df-new");
    fs::write(&leftover, "").unwrap();
    fs::set_permissions(&leftover, Permissions::from_mode(0o444)).unwrap();
    let mut child = command(Role::Save, &scratch.join("m.bin"));
    child.uid(NOBODY).gid(NOBODY);
    run(child);
    assert_eq!(scratch.names(), ["m.bin"]);
}

#[test]
fn a_folder_that_may_not_be_written_is_an_error_and_the_old_file_stays() {
    let scratch = Scratch::new();
    if !is_root(&scratch) {
        return;
    }
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let mut child = command(Role::Save, &path);
    child.uid(NOBODY).gid(NOBODY);
    let output = child.output().unwrap();
    assert!(!output.status.success());
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("CreateTemp"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
}
