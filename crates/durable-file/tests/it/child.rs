//! A second process: this test binary again, told by the environment what to do.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{self, Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use durable_file::{Replacement, Scratch, StagedDir};

const ROLE: &str = "DURABLE_FILE_TEST_ROLE";
const PATH: &str = "DURABLE_FILE_TEST_PATH";

/// What the second process does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Writes half a file, says so, and waits to be killed.
    HoldFile,
    /// Fills half a folder, says so, and waits to be killed.
    HoldFolder,
    /// Saves a file below the folder, begins others of each kind, abandons all, and tries to go on.
    Abandon,
    /// Saves `new` and ends.
    #[cfg(unix)]
    Save,
    /// Writes 32 MiB, which must fail, prints the error, goes on all the same and prints the code of the commit's.
    #[cfg(unix)]
    SaveAnyway,
}

/// A command that runs `role` on `path`.
pub(crate) fn command(role: Role, path: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    adopt(&mut command, role, path);
    command
}

/// The same after a line of shell: for what a process can only change for itself.
#[cfg(unix)]
pub(crate) fn command_after(line: &str, role: Role, path: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{line}; exec \"$0\" \"$@\"")]).arg(env::current_exe().unwrap());
    adopt(&mut command, role, path);
    command
}

fn adopt(command: &mut Command, role: Role, path: &Path) {
    command
        .args(["--exact", "child::role", "--nocapture"])
        .env(ROLE, format!("{role:?}"))
        .env(PATH, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
}

/// Starts a process that is in the middle of a save when this returns.
pub(crate) fn busy(role: Role, path: &Path) -> Child {
    let mut child = command(role, path).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("holding") {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "the child ended early");
    }
    child
}

pub(crate) fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Not a test of its own: where the second process arrives.
#[test]
fn role() {
    let (Ok(role), Some(path)) = (env::var(ROLE), env::var_os(PATH)) else { return };
    let path = Path::new(&path);
    let hold = || {
        println!("holding");
        thread::sleep(core::time::Duration::from_secs(60));
    };
    match role.as_str() {
        "HoldFile" => {
            let mut replacement = Replacement::create(path).unwrap();
            replacement.write_all(b"half").unwrap();
            hold();
        }
        "HoldFolder" => {
            let staged = StagedDir::create(path).unwrap();
            std::fs::write(staged.path().join("half"), b"half").unwrap();
            hold();
        }
        "Abandon" => abandon(path),
        "SaveAnyway" => {
            let much = vec![1; 32 << 20];
            println!("{}", durable_file::write(path, &much).unwrap_err());
            let mut replacement = Replacement::create(path).unwrap();
            replacement.write_all(&much).unwrap_err();
            println!("{}", replacement.commit().unwrap_err().code());
        }
        _ => durable_file::write(path, b"new").unwrap(),
    }
}

/// Prints what was put in place, then `went on` for each thread that could create or commit something afterwards.
fn abandon(folder: &Path) {
    durable_file::write(&folder.join("done"), b"new").unwrap();
    let replacements: Vec<_> = ["old", "fresh"]
        .map(|name| {
            let mut replacement = Replacement::create(&folder.join(name)).unwrap();
            replacement.write_all(b"half").unwrap();
            replacement
        })
        .into();
    let staged = StagedDir::create(&folder.join("step")).unwrap();
    durable_file::write(&staged.path().join("part"), b"whole").unwrap();
    let mut inside = Replacement::create(&staged.path().join("half")).unwrap();
    inside.write_all(b"half").unwrap();
    let mut scratch = Scratch::create(folder, "scratch").unwrap();
    scratch.write_all(b"spooled").unwrap();

    for placed in thread::spawn(durable_file::abandon_all).join().unwrap() {
        println!("placed {}", placed.file_name().unwrap().display());
    }
    let (went_on, wait) = mpsc::channel();
    let mut attempts: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    for replacement in replacements {
        attempts.push(Box::new(move || replacement.commit().unwrap()));
    }
    attempts.push(Box::new(move || staged.commit().unwrap()));
    let path = folder.join("another");
    attempts.push(Box::new(move || durable_file::write(&path, b"late").unwrap()));
    for attempt in attempts {
        let went_on = went_on.clone();
        thread::spawn(move || {
            attempt();
            went_on.send(()).unwrap();
        });
    }
    if wait.recv_timeout(core::time::Duration::from_millis(200)).is_ok() {
        println!("went on");
    }
    process::exit(0);
}
