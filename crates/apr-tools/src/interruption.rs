//! Interruption by signals.
//!
//! Everything unfinished is removed, one line on standard error says what stays, and the process ends by the signal itself: a
//! shell reports 130, 143 or 129, and a loop around the program ends too. A second signal ends the process at once.
//! Only [`run`](crate::run) installs this; a program that calls [`run_json`](crate::run_json) keeps its own handlers.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use crate::secrets::restore_terminal;
use crate::terminal::escape;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as system;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as system;

/// How long the line may wait for a standard error that is not read.
const LINE_PATIENCE: Duration = Duration::from_secs(1);
/// How long the end of what is elsewhere may take.
const ELSEWHERE_PATIENCE: Duration = Duration::from_secs(5);
/// Most names in the line.
const MAX_NAMES: usize = 3;

/// How far the program is.
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "only the server handles signals itself"))]
enum Phase {
    /// It works; what a signal asks for goes to the function, if there is one.
    Running(Option<TakenOver>),
    /// A signal ends it.
    Ending,
    /// The work is done: what is left of the process is its exit code.
    Finished,
}

type TakenOver = Box<dyn Fn(Asked) + Send>;

/// What a signal requests from a command that handles signals itself.
#[cfg_attr(not(all(unix, feature = "serve")), allow(dead_code, reason = "SIGHUP exists on Unix only"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Stop,
    /// SIGHUP.
    Reload,
}

static PHASE: Mutex<Phase> = Mutex::new(Phase::Running(None));
/// Whether a file is being written to standard output.
static STREAMING: AtomicBool = AtomicBool::new(false);
/// Files that were changed in place, see [`in_place`]. Locked while one is.
static IN_PLACE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What a signal has to end elsewhere, by number, and the next number.
static ELSEWHERE: Mutex<(BTreeMap<u64, AtSignal>, u64)> = Mutex::new((BTreeMap::new(), 0));

type AtSignal = Box<dyn FnOnce() + Send>;

/// Until it is dropped, a signal ends something elsewhere before it ends the process, see [`on_signal`].
#[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "only uploads are elsewhere"))]
#[derive(Debug)]
pub(crate) struct OnSignal(u64);

impl Drop for OnSignal {
    fn drop(&mut self) {
        lock(&ELSEWHERE).0.remove(&self.0);
    }
}

/// Remembers what a signal has to end elsewhere: an upload, for example.
#[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "only uploads are elsewhere"))]
pub(crate) fn on_signal(end: impl FnOnce() + Send + 'static) -> OnSignal {
    let mut elsewhere = lock(&ELSEWHERE);
    elsewhere.1 += 1;
    let number = elsewhere.1;
    elsewhere.0.insert(number, Box::new(end));
    OnSignal(number)
}

/// Ends what is elsewhere, as far as there is time.
fn end_elsewhere() {
    let all = core::mem::take(&mut lock(&ELSEWHERE).0);
    if all.is_empty() {
        return;
    }
    let (ended, wait) = mpsc::channel();
    let end = move || {
        all.into_values().for_each(|end| end());
        let _ = ended.send(());
    };
    if thread::Builder::new().spawn(end).is_ok() {
        let _ = wait.recv_timeout(ELSEWHERE_PATIENCE);
    }
}

fn phase() -> MutexGuard<'static, Phase> {
    lock(&PHASE)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to handle signals, but for those that this process was started to ignore.
pub(crate) fn install() {
    *phase() = Phase::Running(None);
    system::install();
}

/// Whether signals are handled here.
#[cfg(feature = "serve")]
pub(crate) fn is_installed() -> bool {
    system::is_installed()
}

/// Lets a command handle signals from now on, those too that this process was started to ignore.
#[cfg(feature = "serve")]
pub(crate) fn take_over(handler: impl Fn(Asked) + Send + 'static) {
    enter(Phase::Running(Some(Box::new(handler))));
    system::add_ignored();
}

/// Ends the run: a signal that comes later finds nothing to interrupt. Does not return if one ends the process already.
pub(crate) fn finish() {
    enter(Phase::Finished);
}

/// Enters a phase, unless a signal ends the process already: then waits for that.
fn enter(next: Phase) {
    let mut now = phase();
    if matches!(*now, Phase::Ending) {
        drop(now);
        wait();
    }
    *now = next;
}

/// Waits for the end of the process if a signal ends it.
pub(crate) fn wait_if_ending() {
    if is_ending() {
        wait();
    }
}

/// Whether a signal ends the process.
pub(crate) fn is_ending() -> bool {
    matches!(*phase(), Phase::Ending)
}

/// Waits for the end of the process that a signal sent by the caller brings, if SIGINT is handled here.
pub(crate) fn wait_for_interrupt() {
    if system::handles_interrupt() {
        wait();
    }
}

fn wait() -> ! {
    loop {
        thread::park();
    }
}

/// Writes files that are not put in place by `durable-file`. A signal waits until all of them are written.
///
/// # Errors
///
/// Those of `write`.
pub(crate) fn in_place<E>(files: &[&Path], write: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    wait_if_ending();
    let mut written = lock(&IN_PLACE);
    write()?;
    written.extend(files.iter().map(|&path| path.to_owned()));
    Ok(())
}

/// Remembers that a file goes to standard output, where nothing can be taken back.
pub(crate) fn output_is_stdout() {
    STREAMING.store(true, Ordering::Relaxed);
}

/// Handles a signal, on a thread of its own: `end` ends the process as the signal does by default.
fn obey(name: &str, asked: Asked, second_ends: impl FnOnce(), end: impl FnOnce()) {
    {
        let mut phase = phase();
        match &*phase {
            Phase::Running(Some(handler)) => return handler(asked),
            Phase::Running(None) => *phase = Phase::Ending,
            Phase::Ending => return,
            Phase::Finished => return second_ends(),
        }
    }
    second_ends();
    // Held until the end: no other file is begun.
    let mut in_place = lock(&IN_PLACE);
    end_elsewhere();
    let placed = [core::mem::take(&mut *in_place), durable_file::abandon_all()].concat();
    restore_terminal();
    say(line(name, &placed, STREAMING.load(Ordering::Relaxed)));
    end();
}

/// Files to remove.
fn line(signal: &str, placed: &[PathBuf], streaming: bool) -> String {
    let names: Vec<_> = placed.iter().take(MAX_NAMES).map(|path| escape::path(path).to_string()).collect();
    let names = names.join(", ");
    let what = match placed.len() {
        _ if streaming => "standard output is incomplete".to_owned(),
        0 => "no file was written".to_owned(),
        1 => format!("{names} was written before"),
        len if len <= MAX_NAMES => format!("{names} were written before"),
        len => format!("{names} and {} more were written before", len - MAX_NAMES),
    };
    format!("apr: interrupted by {signal}: {what}\n")
}

/// Prints the last line. Standard error stays locked, so that nothing comes after it; a reader that does not read does not
/// keep the process alive.
fn say(line: String) {
    let (said, wait) = mpsc::channel();
    let print = move || {
        let mut out = io::stderr().lock();
        // In place of a progress line.
        let clear = if out.is_terminal() { "\r\u{1b}[2K" } else { "" };
        let _ = out.write_all(format!("{clear}{line}").as_bytes());
        let _ = said.send(());
        self::wait();
    };
    if thread::Builder::new().spawn(print).is_ok() {
        let _ = wait.recv_timeout(LINE_PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_stays() {
        let paths =
            |count: usize| (0..count).map(|idx| PathBuf::from(format!("/m{idx}"))).collect::<Vec<_>>();
        let said = |count, streaming| line("SIGINT", &paths(count), streaming);
        assert_eq!(said(0, false), "apr: interrupted by SIGINT: no file was written\n");
        assert_eq!(said(0, true), "apr: interrupted by SIGINT: standard output is incomplete\n");
        assert_eq!(said(1, false), "apr: interrupted by SIGINT: /m0 was written before\n");
        assert_eq!(said(3, false), "apr: interrupted by SIGINT: /m0, /m1, /m2 were written before\n");
        assert!(said(9, false).ends_with("/m2 and 6 more were written before\n"));
    }
}
