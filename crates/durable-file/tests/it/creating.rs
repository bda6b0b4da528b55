//! Creating never replaces a file, not even one that another process creates meanwhile.

use std::fs;
use std::io::Write as _;
use std::sync::Barrier;
use std::thread;

use durable_file::{ErrorKind, Replacement};

use crate::scratch::Scratch;

#[test]
fn a_name_that_exists_is_refused_at_once() {
    let scratch = Scratch::new();
    fs::write(scratch.join("file"), "old").unwrap();
    fs::create_dir(scratch.join("folder")).unwrap();
    for name in ["file", "folder"] {
        assert_eq!(Replacement::create_new(&scratch.join(name)).unwrap_err().kind(), ErrorKind::Exists);
    }
    assert_eq!(fs::read(scratch.join("file")).unwrap(), b"old");
    assert_eq!(scratch.names(), ["file", "folder"]);
}

#[cfg(unix)]
#[test]
fn a_dangling_link_counts_as_taken() {
    let scratch = Scratch::new();
    std::os::unix::fs::symlink("none", scratch.join("link")).unwrap();
    assert_eq!(Replacement::create_new(&scratch.join("link")).unwrap_err().kind(), ErrorKind::Exists);
}

#[test]
fn a_name_that_was_taken_meanwhile_is_refused_at_the_commit() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    let mut replacement = Replacement::create_new(&path).unwrap();
    replacement.write_all(b"new").unwrap();
    fs::write(&path, "somebody else's").unwrap();
    assert_eq!(replacement.commit().unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(fs::read(&path).unwrap(), b"somebody else's");
    assert_eq!(scratch.names(), ["m.bin"]);
}

#[test]
fn of_many_creators_exactly_one_succeeds() {
    let scratch = Scratch::new();
    for round in 0..50 {
        let path = scratch.join(format!("m{round}"));
        let start = Barrier::new(4);
        let winners: Vec<usize> = thread::scope(|scope| {
            let creators: Vec<_> = (0..4)
                .map(|who| {
                    let (path, start) = (&path, &start);
                    scope.spawn(move || {
                        let mut replacement = Replacement::create_new(path).unwrap();
                        replacement.write_all(&[who as u8; 1000]).unwrap();
                        start.wait();
                        match replacement.commit() {
                            Ok(()) => Some(who),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Exists);
                                None
                            }
                        }
                    })
                })
                .collect();
            creators.into_iter().filter_map(|creator| creator.join().unwrap()).collect()
        });
        assert_eq!(winners.len(), 1, "round {round}");
        assert_eq!(fs::read(&path).unwrap(), [winners[0] as u8; 1000]);
    }
    assert_eq!(scratch.names().len(), 50);
}
