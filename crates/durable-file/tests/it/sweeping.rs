//! What dead writers left goes; what living ones need stays; what is not ours is not touched.

use core::time::Duration;
use std::fs;
use std::thread;

use durable_file::{Replacement, StagedDir, write};

use crate::child::{Role, busy, kill};
use crate::scratch::Scratch;

/// A temp of `m.bin`, as a save has it where files without names do not exist, or in the middle of a commit.
const TEMP: &str = ".m.bin.00000000000000ff.df-new";

#[test]
fn a_killed_writer_leaves_nothing_that_the_next_save_does_not_sweep() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    fs::write(&path, "old").unwrap();
    kill(busy(Role::HoldFile, &path));
    #[cfg(target_os = "linux")]
    assert_eq!(scratch.names(), ["m.bin"]);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    fs::write(scratch.join(TEMP), "half").unwrap();
    write(&path, b"new").unwrap();
    assert_eq!(scratch.names(), ["m.bin"]);
}

#[test]
fn the_temp_of_a_living_writer_stays() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    let temp = fs::File::create(scratch.join(TEMP)).unwrap();
    temp.lock().unwrap();
    write(&path, b"new").unwrap();
    assert_eq!(scratch.names(), [TEMP, "m.bin"], "the other writer is at work");
    drop(temp);
    sweep_until(&scratch, &["m.bin"]);
}

#[test]
fn the_temp_of_a_living_writer_in_this_process_stays() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    let slow = Replacement::create(&path).unwrap();
    write(&path, b"fast").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"fast");
    slow.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"", "the last rename wins");
    assert_eq!(scratch.names(), ["m.bin"]);
}

#[test]
fn the_way_back_of_a_killed_writer_is_swept() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    let (new, old) = (".m.bin.00000000000000ff.df-new", ".m.bin.00000000000000ff.df-old");
    // Killed between link and rename: temp and way back are there.
    fs::write(&path, "old").unwrap();
    fs::write(scratch.join(new), "new").unwrap();
    fs::hard_link(&path, scratch.join(old)).unwrap();
    write(&path, b"newer").unwrap();
    assert_eq!(scratch.names(), ["m.bin"]);
    // Killed after the rename: only the way back is there.
    fs::write(scratch.join(old), "old").unwrap();
    write(&path, b"newest").unwrap();
    assert_eq!(scratch.names(), ["m.bin"]);
    // And the target was removed since.
    fs::remove_file(&path).unwrap();
    fs::write(scratch.join(old), "old").unwrap();
    write(&path, b"again").unwrap();
    assert_eq!(scratch.names(), ["m.bin"]);
}

#[test]
fn the_way_back_of_a_living_writer_stays() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    let (new, old) = (".m.bin.00000000000000ff.df-new", ".m.bin.00000000000000ff.df-old");
    fs::write(&path, "old").unwrap();
    fs::write(scratch.join(old), "old").unwrap();
    // Before the rename the lock is on the temp.
    let temp = fs::File::create(scratch.join(new)).unwrap();
    temp.lock().unwrap();
    drop(Replacement::create(&path).unwrap());
    assert_eq!(scratch.names(), [new, old, "m.bin"]);
    // After the rename the same lock is on the target.
    fs::rename(scratch.join(new), &path).unwrap();
    drop(Replacement::create(&path).unwrap());
    assert_eq!(scratch.names(), [old, "m.bin"]);
    drop(temp);
    sweep_until(&scratch, &["m.bin"]);
}

/// Begins saves of `m.bin` until only `names` are left. A process that another test starts in this moment may hold a copy
/// of a lock until it becomes its own program.
fn sweep_until(scratch: &Scratch, names: &[&str]) {
    for _ in 0..100 {
        drop(Replacement::create(&scratch.join("m.bin")).unwrap());
        if scratch.names() == names {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("what a dead writer left stays: {:?}", scratch.names());
}

#[test]
fn files_of_others_are_not_touched() {
    let scratch = Scratch::new();
    let others = [
        ".m.bin.00000000000000ff.tmp",
        ".m.bin.ff.df-new",
        ".other.bin.00000000000000ff.df-new",
        "m.bin.00000000000000ff.df-new",
    ];
    for name in others {
        fs::write(scratch.join(name), "mine").unwrap();
    }
    write(&scratch.join("m.bin"), b"new").unwrap();
    drop(StagedDir::create(&scratch.join("step")).unwrap());
    assert_eq!(scratch.names().len(), others.len() + 1);
}

#[cfg(unix)]
#[test]
fn planted_leftovers_do_no_harm() {
    use std::os::unix::fs::symlink;
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    let victim = scratch.join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(scratch.join("victims")).unwrap();
    fs::write(scratch.join("victims/file"), "precious").unwrap();
    symlink("victim", scratch.join(".m.bin.0000000000000001.df-new")).unwrap();
    symlink("victim", scratch.join(".m.bin.0000000000000002.df-old")).unwrap();
    symlink("victims", scratch.join(".step.0000000000000003.df-dir")).unwrap();
    fs::create_dir(scratch.join(".m.bin.0000000000000004.df-new")).unwrap();
    fs::write(scratch.join(".step.0000000000000005.df-dir"), "a file").unwrap();
    write(&path, b"new").unwrap();
    drop(StagedDir::create(&scratch.join("step")).unwrap());
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(scratch.join("victims/file")).unwrap(), b"precious");
}

#[test]
fn the_folder_of_a_killed_writer_is_swept_by_the_next_one_in_the_parent() {
    let scratch = Scratch::new();
    kill(busy(Role::HoldFolder, &scratch.join("step_1")));
    assert_eq!(scratch.names().len(), 1);
    let child = busy(Role::HoldFolder, &scratch.join("step_2"));
    assert_eq!(scratch.names().len(), 1, "swept, and the new one is there");
    let staged = StagedDir::create(&scratch.join("step_3")).unwrap();
    assert_eq!(scratch.names().len(), 2, "the living one stays");
    staged.commit().unwrap();
    kill(child);
    drop(StagedDir::create(&scratch.join("step_4")).unwrap());
    assert_eq!(scratch.names(), ["step_3"]);
}
