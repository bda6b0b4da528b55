//! Runs a command, sends it a signal, and checks the remaining files.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use crate::interrupt::command::{Command, SETUP, write_inputs};
use crate::process::succeeds;
use crate::reliability::lab::Chance;
use crate::reliability::scene::names;
use crate::task::{Failure, Session};
use crate::workspace::build_apr;

/// The old output.
const OLD: &[u8] = b"what was there before";

/// The signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Int,
    Term,
    Kill,
}

impl Signal {
    pub(crate) const ALL: [Self; 3] = [Self::Int, Self::Term, Self::Kill];

    const fn number(self) -> i32 {
        match self {
            Self::Int => 2,
            Self::Term => 15,
            Self::Kill => 9,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Int => "INT",
            Self::Term => "TERM",
            Self::Kill => "KILL",
        }
    }
}

/// Those that are not ignored here, and so by the program.
pub(crate) fn signals() -> Vec<Signal> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    Signal::ALL.into_iter().filter(|signal| ignored >> (signal.number() - 1) & 1 == 0).collect()
}

/// The program and its folder.
#[derive(Debug)]
pub(crate) struct Bench {
    program: PathBuf,
    root: PathBuf,
}

/// How the rounds of a command came out.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Ended before the signal.
    in_time: u32,
    /// Ended by the signal, with the old output.
    interrupted: u32,
    /// Ended by the signal, with the new output in place.
    complete: u32,
    /// Ended by the signal before the program could handle it.
    before_main: u32,
    /// After SIGKILL: complete temporary files, second links to the old file, staged folders.
    left: [u32; 3],
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { in_time, interrupted, complete, before_main, left: [temps, links, folders] } = self;
        write!(f, "{in_time} | {interrupted} | {complete} | {before_main} | ")?;
        write!(f, "{temps} complete temps, {links} links to the old file, {folders} folders |")
    }
}

/// One round.
struct Round<'a> {
    command: &'a Command,
    signal: Signal,
    has_old: bool,
    /// Length of the whole output; of a folder, of its files together.
    whole: u64,
}

impl Bench {
    /// Builds the program and makes its inputs.
    pub(crate) fn new(session: &Session) -> Result<Self, Failure> {
        let program = build_apr(session)?;
        let root = session.scratch("interrupt").join(process::id().to_string());
        let bench = Self { program, root };
        let made =
            ["in", "work", "tmp"].iter().try_for_each(|name| fs::create_dir_all(bench.root.join(name)));
        made.and_then(|()| write_inputs(session.root(), &bench.root.join("in")))
            .map_err(|error| error.to_string())?;
        for args in SETUP {
            bench.must(args)?;
        }
        Ok(bench)
    }

    /// Interrupts a command `rounds` times.
    pub(crate) fn interrupt(
        &self,
        command: &Command,
        rounds: u32,
        signals: &[Signal],
        broken: &mut Vec<String>,
    ) -> Result<Tally, Failure> {
        let args = self.args(command);
        let mut times = Vec::new();
        for _ in 0..3 {
            self.prepare(command, false)?;
            let start = Instant::now();
            self.must(&args)?;
            times.push(start.elapsed());
        }
        times.sort();
        let whole = length(&self.output(command));
        let (mut chance, mut tally) = (Chance::new(), Tally::default());
        for (idx, signal) in (0..rounds).zip(signals.iter().copied().cycle()) {
            let has_old = command.replaces && (idx / signals.len() as u32) % 2 == 1;
            self.prepare(command, has_old)?;
            let round = Round { command, signal, has_old, whole };
            let mut complain = |what: String| {
                let old = if has_old { "over a file" } else { "where nothing is" };
                broken.push(format!("{} {old}, SIG{}: {what}", command.name, signal.name()));
            };
            let moment = chance.up_to(times[1].mul_f64(1.1));
            let (status, said, exposed) = self.disturbed(&args, has_old, signal, moment)?;
            exposed.into_iter().for_each(|name| complain(format!("others could read {name}")));
            self.judge(&round, status, &said, &mut tally, &mut complain);
            // The next save removes what SIGKILL left.
            if signal == Signal::Kill && !names(&self.root.join("work")).is_empty() {
                self.remove_output(command);
                self.must(&args)?;
                let left = names(&self.root.join("work"));
                if left != [command.output] {
                    complain(format!("after the next save there is {left:?}"));
                }
            }
        }
        Ok(tally)
    }

    fn judge(
        &self,
        round: &Round<'_>,
        status: ExitStatus,
        said: &str,
        tally: &mut Tally,
        complain: &mut impl FnMut(String),
    ) {
        let output = self.output(round.command);
        let is_new = length(&output) == round.whole && !is_old(&output);
        let is_old = if round.has_old { is_old(&output) } else { !output.exists() };
        let left: Vec<_> =
            names(&self.root.join("work")).into_iter().filter(|name| name != round.command.output).collect();
        let spooled = names(&self.root.join("tmp"));
        if !spooled.is_empty() {
            complain(format!("{spooled:?} in the folder for temporary files"));
        }
        match (status.code(), status.signal()) {
            (Some(0), _) if is_new => tally.in_time += 1,
            (None, Some(9)) if round.signal == Signal::Kill && (is_new || is_old) => {
                *(if is_new { &mut tally.complete } else { &mut tally.interrupted }) += 1;
                for name in left {
                    self.leftover(round, &name, tally, complain);
                }
                return;
            }
            (None, Some(number)) if number == round.signal.number() && said.is_empty() && is_old => {
                tally.before_main += 1;
            }
            (None, Some(number)) if number == round.signal.number() => {
                let line = |end: &str| format!("apr: interrupted by SIG{}: {end}\n", round.signal.name());
                let is_line = said == line("no file was written");
                // Notes from before the signal may come first.
                let names_output =
                    said.ends_with(" was written before\n") && said.contains("apr: interrupted by SIG");
                match (is_line && is_old, names_output && is_new) {
                    (true, _) => tally.interrupted += 1,
                    (_, true) => tally.complete += 1,
                    _ => complain(format!("old {is_old}, new {is_new}, said {said:?}")),
                }
            }
            _ => complain(format!("{status}, old {is_old}, new {is_new}, said {said:?}")),
        }
        if !left.is_empty() {
            complain(format!("{left:?} left"));
        }
    }

    /// What SIGKILL may leave: a complete temporary file, the second link to the old one, the folder of `shard`.
    fn leftover(&self, round: &Round<'_>, name: &str, tally: &mut Tally, complain: &mut impl FnMut(String)) {
        let path = self.root.join("work").join(name);
        let [temps, links, folders] = &mut tally.left;
        let is_folder = round.command.name == "shard" && name.ends_with(".df-dir");
        if name.ends_with(".df-new") && length(&path) == round.whole && round.has_old {
            *temps += 1;
        } else if name.ends_with(".df-old") && is_old(&path) {
            *links += 1;
        } else if is_folder {
            *folders += 1;
        } else {
            complain(format!("{name} of {} bytes left", length(&path)));
        }
    }

    /// Runs the command and sends the signal. Returns its exit status, its output, and temporary files that others could read.
    fn disturbed(
        &self,
        args: &[String],
        has_old: bool,
        signal: Signal,
        moment: Duration,
    ) -> Result<(ExitStatus, String, Vec<String>), Failure> {
        let mut command = self.command(args);
        if has_old {
            command.arg("--force");
        }
        let ended = AtomicBool::new(false);
        let exposed = Mutex::new(Vec::new());
        let failed = |error: std::io::Error| Failure::from(error.to_string());
        thread::scope(|scope| {
            let mut child = command.spawn().map_err(failed)?;
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let seen = exposed_in(&self.root.join("work"));
                    exposed.lock().expect("nothing panics with it").extend(seen);
                    thread::sleep(Duration::from_micros(500));
                }
            });
            thread::sleep(moment);
            let result = send(&child, signal).and_then(|()| {
                let mut said = String::new();
                if let Some(mut stderr) = child.stderr.take() {
                    stderr.read_to_string(&mut said).map_err(failed)?;
                }
                Ok((child.wait().map_err(failed)?, said))
            });
            ended.store(true, Ordering::Relaxed);
            let (status, said) = result?;
            let mut exposed = core::mem::take(&mut *exposed.lock().expect("nothing panics with it"));
            exposed.dedup();
            Ok((status, said, exposed))
        })
    }

    /// Empties the working folder, or puts an old output there that only its owner may read.
    fn prepare(&self, command: &Command, has_old: bool) -> Result<(), Failure> {
        let work = self.root.join("work");
        let prepare = || {
            fs::remove_dir_all(&work)?;
            fs::create_dir(&work)?;
            if has_old {
                fs::write(self.output(command), OLD)?;
                fs::set_permissions(self.output(command), Permissions::from_mode(0o600))?;
            }
            Ok(())
        };
        prepare().map_err(|error: std::io::Error| error.to_string().into())
    }

    fn output(&self, command: &Command) -> PathBuf {
        self.root.join("work").join(command.output)
    }

    fn remove_output(&self, command: &Command) {
        let output = self.output(command);
        _ = fs::remove_file(&output).or_else(|_| fs::remove_dir_all(&output));
    }

    fn args(&self, command: &Command) -> Vec<String> {
        let output = format!("work/{}", command.output);
        command.args.iter().map(|&arg| if arg == "OUT" { output.clone() } else { arg.to_owned() }).collect()
    }

    fn command(&self, args: &[impl AsRef<std::ffi::OsStr>]) -> process::Command {
        let mut command = process::Command::new(&self.program);
        command.args(args).arg("--quiet").current_dir(&self.root).env("TMPDIR", self.root.join("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn must(&self, args: &[impl AsRef<std::ffi::OsStr> + fmt::Debug]) -> Result<(), Failure> {
        let output = self.command(args).output().map_err(|error| error.to_string())?;
        let says = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("apr {args:?}: {says}").into()) }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.root);
    }
}

fn send(child: &Child, signal: Signal) -> Result<(), Failure> {
    let pid = child.id().to_string();
    // It may have ended: then there is no such process, which is as well.
    _ = succeeds(process::Command::new("kill").args(["-s", signal.name(), &pid]));
    Ok(())
}

fn is_old(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes == OLD)
}

/// Bytes of a file, or of the files of a folder together; 0 if there is nothing.
fn length(path: &Path) -> u64 {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| length(&entry.path())).sum(),
        Err(_) => path.metadata().map_or(0, |found| found.len()),
    }
}

/// Temporary files in a folder that others than their owner may read.
fn exposed_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let temps = entries.filter(|entry| entry.file_name().to_string_lossy().contains(".df-new"));
    temps
        .filter(|entry| entry.metadata().is_ok_and(|found| found.mode() & 0o077 != 0))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}
