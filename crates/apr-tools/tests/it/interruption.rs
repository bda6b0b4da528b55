//! A signal removes what is unfinished, says so in one line, and ends the program by the signal.

use core::time::Duration;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::Sandbox;

/// More than a pipe holds.
const LARGE: usize = 1 << 20;

/// The signals, those left out that these tests were started to ignore: the program ignores them, too.
fn signals() -> Vec<(Signal, &'static str)> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(mask.trim(), 16).unwrap();
    [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM"), (Signal::HUP, "SIGHUP")]
        .into_iter()
        .filter(|(signal, _)| ignored >> (signal.as_raw() - 1) & 1 == 0)
        .collect()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits until the process does what it is waited for.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether the process has a file open whose path contains `part`.
fn has_open(child: &Child, part: &str) -> bool {
    // Before it runs the program, a child has the files of this process open.
    let program = fs::read_link(format!("/proc/{}/exe", child.id()));
    if program.ok() == std::env::current_exe().ok() {
        return false;
    }
    let Ok(open) = fs::read_dir(format!("/proc/{}/fd", child.id())) else { return false };
    open.flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|path| path.to_string_lossy().contains(part))
}

fn end(mut child: Child) -> (ExitStatus, String) {
    // Waiting would close it, and its end is another reason to end.
    let _stdin = child.stdin.take();
    let status = child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (status, said)
}

fn assert_interrupted(child: Child, signal: Signal, line: &str) {
    let (status, said) = end(child);
    assert_eq!(status.signal(), Some(signal.as_raw()), "{status}: {said}");
    assert_eq!(said, format!("apr: interrupted by {line}\n"));
}

#[test]
fn while_standard_input_is_copied_nothing_is_left() {
    let sandbox = Sandbox::with_models();
    let model = sandbox.read("model.safetensors");
    for (signal, name) in signals() {
        let before = sandbox.listing();
        let mut command = sandbox.command(&["convert", "-", "model.gguf", "--force"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(&model[..500]).unwrap();
        until("standard input is spooled", || has_open(&child, "/tmp/"));
        assert_eq!(sandbox.leftovers(), Vec::<std::path::PathBuf>::new(), "the copy has no name");
        send(&child, signal);
        assert_interrupted(child, signal, &format!("{name}: no file was written"));
        assert_eq!(sandbox.listing(), before);
    }
}

#[test]
fn a_file_that_is_half_written_goes_and_the_old_one_stays() {
    let sandbox = Sandbox::with_models();
    for (signal, name) in signals() {
        for old in [false, true] {
            if old {
                sandbox.write("out.csv", b"old");
            }
            let before = sandbox.listing();
            let args = ["predict", "model.apr", "--input", "-", "-o", "out.csv", "--force"];
            let mut child = sandbox.command(&args).stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.as_mut().unwrap().write_all(b"1,2\n3,4\n").unwrap();
            until("the output is begun", || has_open(&child, "work/#"));
            send(&child, signal);
            assert_interrupted(child, signal, &format!("{name}: no file was written"));
            assert_eq!(sandbox.listing(), before);
        }
        fs::remove_file(sandbox.path("out.csv")).unwrap();
    }
}

#[test]
fn an_output_that_goes_to_standard_output_is_said_to_be_incomplete() {
    let sandbox = Sandbox::with_models();
    sandbox.write_large("large.safetensors", LARGE);
    for (signal, name) in signals() {
        let mut child = sandbox.command(&["convert", "large.safetensors", "-"]).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 8]).unwrap();
        send(&child, signal);
        assert_interrupted(child, signal, &format!("{name}: standard output is incomplete"));
    }
}

#[test]
fn signals_that_were_ignored_at_the_start_stay_ignored() {
    let sandbox = Sandbox::with_models();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP INT; exec \"$0\" inspect -", env!("CARGO_BIN_EXE_apr")]);
    command.env("TMPDIR", sandbox.path("../tmp"));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(&sandbox.read("model.safetensors")[..500]).unwrap();
    until("standard input is spooled", || has_open(&child, "/tmp/"));
    send(&child, Signal::HUP);
    send(&child, Signal::INT);
    thread::sleep(Duration::from_millis(50));
    assert!(child.try_wait().unwrap().is_none());
    send(&child, Signal::TERM);
    assert_interrupted(child, Signal::TERM, "SIGTERM: no file was written");
}

/// A pipe into which nothing more can be written.
fn full_pipe() -> (io::PipeReader, io::PipeWriter) {
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(&[0; 1 << 16]).unwrap();
    (reader, writer)
}

#[test]
fn a_standard_error_that_is_not_read_keeps_nothing_alive_and_a_second_signal_ends_at_once() {
    let sandbox = Sandbox::with_models();
    let model = sandbox.read("model.safetensors");
    for second in [false, true] {
        let (_reader, writer) = full_pipe();
        let mut command = sandbox.command(&["inspect", "-"]);
        let mut child = command.stdin(Stdio::piped()).stderr(writer).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(&model[..500]).unwrap();
        until("standard input is spooled", || has_open(&child, "/tmp/"));
        let _stdin = child.stdin.take();
        let start = Instant::now();
        send(&child, Signal::TERM);
        if second {
            thread::sleep(Duration::from_millis(100));
            assert!(child.try_wait().unwrap().is_none(), "it waits to say something");
            send(&child, Signal::TERM);
        }
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
        assert!(second || start.elapsed() >= Duration::from_millis(900), "{:?}", start.elapsed());
        assert!(sandbox.leftovers().is_empty());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_leaves_nothing() {
    let sandbox = Sandbox::empty();
    sandbox.write_large("large.safetensors", 4 << 20);
    let before = sandbox.listing();
    let ran = sandbox.shell("ulimit -f 1000; apr shard large.safetensors -o parts --max-size 2MB");
    assert!(ran.exit == 5 && ran.stderr.contains("df-"), "{ran:?}");
    assert_eq!(sandbox.listing().into_keys().collect::<Vec<_>>(), before.into_keys().collect::<Vec<_>>());
}
