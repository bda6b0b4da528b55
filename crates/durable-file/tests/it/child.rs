//! A second process: this test binary again, told by the environment what to do.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use durable_file::{Replacement, StagedDir};

const ROLE: &str = "DURABLE_FILE_TEST_ROLE";
const PATH: &str = "DURABLE_FILE_TEST_PATH";

/// What the second process does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Writes half a file, says so, and waits to be killed.
    HoldFile,
    /// Fills half a folder, says so, and waits to be killed.
    HoldFolder,
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
        std::thread::sleep(core::time::Duration::from_secs(60));
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
