//! `firmware`: the program for a microcontroller in `crates/conformance/firmware`, in QEMU.

use core::time::Duration;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::process::{cargo, command, display, find_tool, stdout_of, step};
use crate::task::{Failure, Outcome, Session, skipped, without_arguments};
use crate::workspace::{Workspace, build_example};

const FOLDER: &str = "crates/conformance/firmware";

pub(crate) const TARGET: &str = "thumbv7em-none-eabi";

/// A board of QEMU with the processor that the program is built for. The program's output goes to standard output.
const MACHINE: [&str; 16] = [
    "-machine",
    "lm3s6965evb",
    "-cpu",
    "cortex-m4",
    "-display",
    "none",
    "-monitor",
    "none",
    "-serial",
    "none",
    "-chardev",
    "stdio,id=debugger",
    "-semihosting-config",
    "enable=on,target=native,chardev=debugger",
    "-kernel",
    "firmware",
];

/// Longest run. The program takes a third of a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Most bytes that each step may have on the heap at a time, and in flash: what `docs/embedded.md` promises.
const BUDGETS: [(&str, u64); 6] = [
    ("heap verified", 0),
    ("heap linear checked", 512),
    ("heap linear in place", 0),
    ("heap linear loaded", 512),
    ("heap forest loaded", 1024),
    ("flash", 256 << 10),
];

/// Writes the models, builds the program with them, runs it, and compares its output with that of this machine.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("firmware", args)?;
    let Some(qemu) = find_tool(session, "qemu-system-arm") else {
        return Err(skipped("needs qemu-system-arm"));
    };
    if !has_target(session, TARGET) {
        return Err(skipped(format!("needs `rustup target add {TARGET}`")));
    }
    let models = session.scratch("firmware");
    fs::create_dir_all(&models).map_err(|error| format!("{}: {error}", models.display()))?;
    let program = build_example(session, "conformance", "firmware_models")?;
    let expected = stdout_of(command(session, program, &[]).arg(&models))?;

    let target = Workspace::load(session, "Cargo.toml")?.target_dir.join("firmware");
    let mut build = cargo(session, &["build", "--release", "--quiet", "--locked", "--target-dir"]);
    build.arg(&target).current_dir(session.root().join(FOLDER)).env("FIRMWARE_MODELS", &models);
    // Flags meant for the workspace (coverage, sanitizers) would take the place of those of the board.
    step(build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS"))?;

    let folder = target.join(TARGET).join("release");
    let said = run_for(command(session, qemu, &MACHINE).current_dir(&folder), PATIENCE)?;
    judge(&said, &expected)?;
    println!("firmware: as on this machine, bit for bit\n{}", said.trim_end());
    Ok(())
}

/// Whether rustup's library for `target` is installed.
pub(crate) fn has_target(session: &Session, target: &str) -> bool {
    let args = ["--print", "target-libdir", "--target", target];
    stdout_of(&mut command(session, "rustc", &args))
        .is_ok_and(|folder| fs::exists(folder.trim()).unwrap_or(false))
}

/// The output of a program that must exit with status 0 within this time.
fn run_for(command: &mut Command, patience: Duration) -> Result<String, Failure> {
    let name = display(command);
    let failed = |what: String| Failure::from(format!("`{name}`: {what}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let start = Instant::now();
    let ended = loop {
        match child.try_wait().map_err(|error| failed(error.to_string()))? {
            None if start.elapsed() < patience => thread::sleep(Duration::from_millis(20)),
            ended => break ended,
        }
    };
    if ended.is_none() {
        child.kill().map_err(|error| failed(error.to_string()))?;
    }
    // It prints a few lines: they fit the pipe.
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match ended {
        None => Err(failed(format!("did not end in {patience:?}\n{said}"))),
        Some(status) if !status.success() => Err(failed(format!("{status}\n{said}"))),
        Some(_) => Ok(said),
    }
}

/// Compares lines that this machine expects, and figures with their budgets.
fn judge(said: &str, expected: &str) -> Outcome {
    for line in expected.lines() {
        if !said.lines().any(|found| found == line) {
            return Err(format!("the firmware does not say `{line}`:\n{said}").into());
        }
    }
    for (what, budget) in BUDGETS {
        let figure = said.lines().find_map(|line| {
            line.strip_prefix(what)?.strip_prefix(": ")?.strip_suffix(" bytes")?.parse::<u64>().ok()
        });
        match figure {
            Some(figure) if figure <= budget => {}
            Some(figure) => return Err(format!("{what}: {figure} bytes, {budget} are allowed").into()),
            None => return Err(format!("the firmware does not say `{what}`:\n{said}").into()),
        }
    }
    match said.lines().any(|line| line == "heap at the end: 0 bytes") {
        true => Ok(()),
        false => Err(format!("something is left on the heap:\n{said}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_beyond_its_budget_is_told() {
        let figures: String =
            BUDGETS.iter().map(|(what, budget)| format!("{what}: {budget} bytes\n")).collect();
        let sound = format!("linear: 00\n{figures}heap at the end: 0 bytes\n");
        judge(&sound, "linear: 00\n").unwrap();
        assert!(judge(&sound, "linear: 01\n").is_err());
        assert!(judge(&sound.replace("heap linear loaded: 512", "heap linear loaded: 513"), "").is_err());
        assert!(judge(&sound.replace("flash", "ram"), "").is_err());
        assert!(judge(&sound.replace("end: 0", "end: 16"), "").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let error = run_for(Command::new("sleep").arg("60"), Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
        assert!(run_for(&mut Command::new("false"), PATIENCE).is_err());
    }
}
