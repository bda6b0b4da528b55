//! Running other programs: show the command, run it in the project, say which one did not succeed.

use std::env;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::task::{Failure, Outcome, Session};

/// The cargo that runs this program, started in the root of the project.
pub(crate) fn cargo(session: &Session, args: &[&str]) -> Command {
    command(session, env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args)
}

/// Any program, started in the root of the project.
pub(crate) fn command(session: &Session, program: impl AsRef<OsStr>, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(session.root());
    command
}

/// The cargo of the nightly toolchain, or `None` where rustup has none.
pub(crate) fn nightly_cargo(session: &Session, args: &[&str]) -> Option<Command> {
    let mut probe = command(session, "rustup", &["run", "nightly", "rustc", "--version"]);
    succeeds(&mut probe).then(|| {
        let mut cargo = command(session, "rustup", &["run", "nightly", "cargo"]);
        // The outer cargo names itself and its toolchain; the inner one must find its own.
        cargo.args(args).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC");
        cargo
    })
}

/// Runs a step with its output visible.
///
/// # Errors
///
/// A [`Failure::Check`] that names the command if it cannot be started or does not exit with 0.
pub(crate) fn step(command: &mut Command) -> Outcome {
    announce(command);
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}`: {status}", display(command)).into()) }
}

/// Runs a step with its output visible, and hands each line of its standard output to `line` as well.
///
/// # Errors
///
/// As [`step`].
pub(crate) fn step_with_lines(command: &mut Command, mut line: impl FnMut(&str)) -> Outcome {
    announce(command);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_start(command, &error))?;
    if let Some(stdout) = child.stdout.take() {
        for read in BufReader::new(stdout).split(b'\n') {
            let bytes = read.map_err(|error| format!("output of `{}`: {error}", display(command)))?;
            let text = String::from_utf8_lossy(&bytes);
            println!("{text}");
            line(&text);
        }
    }
    let status = child.wait().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}`: {status}", display(command)).into()) }
}

/// What a quiet command printed, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Captured {
    /// It exited with 0.
    pub(crate) success: bool,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// Runs a command without showing its output, whatever it exits with.
///
/// # Errors
///
/// A [`Failure::Check`] if the command cannot be started.
pub(crate) fn capture(command: &mut Command) -> Result<Captured, Failure> {
    capture_with_input(command, "")
}

/// Runs a command that reads `input`, without showing its output, whatever it exits with.
///
/// # Errors
///
/// A [`Failure::Check`] if the command cannot be started.
pub(crate) fn capture_with_input(command: &mut Command, input: &str) -> Result<Captured, Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| cannot_start(command, &error))?;
    // Inputs are small enough for the pipe; a program that does not read its input is none of our business.
    drop(child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().map_err(|error| cannot_start(command, &error))?;
    Ok(Captured {
        success: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The standard output of a quiet command that must succeed.
///
/// # Errors
///
/// A [`Failure::Check`] with the command's own words if it does not exit with 0.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String, Failure> {
    let captured = capture(command)?;
    if captured.success {
        Ok(captured.stdout)
    } else {
        Err(format!("`{}`:\n{}", display(command), captured.stderr.trim_end()).into())
    }
}

/// Whether a quiet command can be started and exits with 0.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    capture(command).is_ok_and(|captured| captured.success)
}

/// Where a program is: in the project's own tool folder, or on `PATH`.
pub(crate) fn find_tool(session: &Session, name: &str) -> Option<PathBuf> {
    let own = session.scratch("tools").join("bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let file_name = format!("{name}{}", env::consts::EXE_SUFFIX);
    core::iter::once(own)
        .chain(env::split_paths(&path))
        .map(|folder| folder.join(&file_name))
        .find(|candidate| is_program(candidate))
}

/// `PATH` with the folder of `tool` in front, so that cargo finds its subcommand.
pub(crate) fn path_with(tool: &Path) -> std::ffi::OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = tool.parent().map(Path::to_path_buf).into_iter().chain(env::split_paths(&path));
    // A folder with a separator in its name cannot be on PATH: then the old one has to do.
    env::join_paths(folders).unwrap_or(path)
}

/// The command as a person would type it.
pub(crate) fn display(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = core::iter::once(program).chain(command.get_args());
    words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// Shows a command that is about to run.
pub(crate) fn announce(command: &Command) {
    eprintln!("$ {}", display(command));
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    format!("`{}` cannot be started: {error}", display(command)).into()
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_quotes_what_a_shell_would_split() {
        let mut command = Command::new("cargo");
        command.args(["test", "two words", ""]);
        assert_eq!(display(&command), "cargo test 'two words' ''");
    }

    #[test]
    fn a_missing_program_is_a_failure_that_names_it() {
        let failure = step(&mut Command::new("no-such-program-here")).expect_err("there is no such program");
        assert!(failure.to_string().contains("no-such-program-here"), "{failure}");
    }
}
