//! Pipes, sockets and devices are refused by name, at once, and never opened for long.

use core::time::Duration;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use durable_file::{ErrorKind, FileKind, StagedDir, open_regular, open_regular_for_update, read, write};

use crate::scratch::Scratch;

const AT_ONCE: Duration = Duration::from_millis(100);

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A block device of this machine, if it has one.
fn block_device() -> Option<std::path::PathBuf> {
    use std::os::unix::fs::FileTypeExt as _;
    let mut entries = fs::read_dir("/dev").ok()?.flatten();
    entries.find(|entry| entry.file_type().is_ok_and(|kind| kind.is_block_device())).map(|entry| entry.path())
}

#[test]
fn special_files_are_refused_at_once_for_reading_and_writing() {
    let scratch = Scratch::new();
    mkfifo(&scratch.join("fifo"));
    symlink("fifo", scratch.join("link")).unwrap();
    let _listener = UnixListener::bind(scratch.join("socket")).unwrap();
    let mut cases = vec![
        (scratch.join("fifo"), FileKind::Fifo),
        (scratch.join("link"), FileKind::Fifo),
        (scratch.join("socket"), FileKind::Socket),
        (scratch.path().to_path_buf(), FileKind::Directory),
        ("/dev/zero".into(), FileKind::CharDevice),
        ("/dev/tty".into(), FileKind::CharDevice),
    ];
    cases.extend(block_device().map(|path| (path, FileKind::BlockDevice)));
    for (path, what) in cases {
        let start = Instant::now();
        let errors = [
            open_regular(&path, u64::MAX).unwrap_err(),
            open_regular_for_update(&path, u64::MAX).unwrap_err(),
            read(&path, u64::MAX).unwrap_err(),
            write(&path, b"new").unwrap_err(),
        ];
        assert!(start.elapsed() < AT_ONCE, "{path:?} took {:?}", start.elapsed());
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::NotRegular { what }, "{path:?}");
            assert_eq!(error.code(), "df-not-regular");
            assert!(error.to_string().contains(&what.to_string()), "{error}");
        }
    }
    assert_eq!(scratch.names(), ["fifo", "link", "socket"]);
}

#[test]
fn a_planted_pipe_does_not_hold_up_a_sweep() {
    let scratch = Scratch::new();
    mkfifo(&scratch.join(".m.bin.00000000000000ff.df-new"));
    mkfifo(&scratch.join(".m.bin.00000000000000fe.df-old"));
    let start = Instant::now();
    write(&scratch.join("m.bin"), b"new").unwrap();
    assert!(start.elapsed() < 10 * AT_ONCE, "{:?}", start.elapsed());
}

#[test]
fn a_pipe_in_a_staged_folder_is_refused_at_once() {
    let scratch = Scratch::new();
    let staged = StagedDir::create(&scratch.join("step")).unwrap();
    fs::create_dir(staged.path().join("inner")).unwrap();
    mkfifo(&staged.path().join("inner/pipe"));
    let start = Instant::now();
    let error = staged.commit().unwrap_err();
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert_eq!(error.kind(), ErrorKind::NotRegular { what: FileKind::Fifo });
    assert!(error.path().ends_with("inner/pipe"), "{error}");
    assert!(scratch.names().is_empty());
}

#[test]
fn a_file_under_proc_is_read_though_it_says_0() {
    let path = Path::new("/proc/self/status");
    if !path.exists() {
        return;
    }
    let file = open_regular(path, 1 << 20).unwrap();
    assert!(file.is_empty());
    assert!(String::from_utf8(file.into_bytes().unwrap()).unwrap().contains("Name:"));
    let error = read(path, 16).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge { len: 17, max: 16 });
}
