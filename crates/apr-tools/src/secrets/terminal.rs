//! Password prompt on the terminal, without echo.

#[cfg(unix)]
use std::sync::{Mutex, PoisonError};

use zeroize::Zeroizing;

use crate::error::{CODE_NO_TERMINAL, Failure};
#[cfg(unix)]
use crate::interruption;

/// Most bytes of a password: what a terminal takes as one line.
pub(super) const MAX_LEN: usize = 4095;

fn no_terminal() -> Failure {
    Failure::new(CODE_NO_TERMINAL, "a password is needed and there is no terminal to ask for it")
}

/// Asks at the terminal of this process, wherever its streams lead, and shows nothing of the answer.
///
/// # Errors
///
/// If there is no terminal, or nothing was typed at it.
#[cfg(unix)]
pub(super) fn ask(prompt: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    let Ok(tty) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Err(no_terminal());
    };
    begin_silence(&tty)?;
    let asked = write!(&tty, "{prompt}: ").and_then(|()| read_line(&tty));
    restore();
    // The line feed that was typed and not shown.
    let _ = writeln!(&tty);
    match asked {
        Ok(Typed::Line(line)) => Ok(line),
        Ok(Typed::Interrupt) => Err(interrupted()),
        Ok(Typed::End) => Err(no_terminal().because("the terminal's input ended")),
        Err(error) => Err(no_terminal().because(error.to_string())),
    }
}

/// Silences the terminal. The lock is held meanwhile: a signal finds either nothing to restore or all of it, and once it has
/// restored the terminal, nothing silences it again.
#[cfg(unix)]
fn begin_silence(tty: &std::fs::File) -> Result<(), Failure> {
    let mut kept = SILENCE.lock().unwrap_or_else(PoisonError::into_inner);
    if interruption::is_ending() {
        drop(kept);
        interruption::wait_if_ending();
        return Err(no_terminal());
    }
    *kept = Some(tty.try_clone().and_then(|tty| Ok(Silence::begin(tty)?)).map_err(|_| no_terminal())?);
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn ask(_prompt: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    Err(no_terminal().because("this version asks on Unix only"))
}

#[cfg(unix)]
enum Typed {
    Line(Zeroizing<Vec<u8>>),
    Interrupt,
    End,
}

/// The letter of Ctrl-C.
#[cfg(unix)]
const INTERRUPT: u8 = 3;

/// One line without its line feed. The buffer has its full capacity from the start: one that grew would leave a copy in freed
/// memory.
#[cfg(unix)]
fn read_line(mut tty: &std::fs::File) -> std::io::Result<Typed> {
    use std::io::Read as _;

    let mut line = Zeroizing::new(vec![0; MAX_LEN + 1]);
    let mut len = 0;
    loop {
        let (_, free) = line.split_at_mut(len);
        let count = match tty.read(free) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let (_, new) = line.split_at(len);
        len += count.min(new.len());
        let typed = line.get(..len).unwrap_or_default();
        if typed.contains(&INTERRUPT) {
            return Ok(Typed::Interrupt);
        }
        let ended = typed.last() == Some(&b'\n') || len == line.len();
        if count == 0 && len == 0 {
            return Ok(Typed::End);
        }
        if ended || count == 0 {
            let end = typed.iter().position(|&byte| byte == b'\n').unwrap_or(len);
            line.truncate(end);
            return Ok(Typed::Line(line));
        }
    }
}

/// Ends as Ctrl-C ends a program: by the signal, so that a shell's loop around it ends too. Returns where that signal is
/// ignored.
#[cfg(unix)]
fn interrupted() -> Failure {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::INT);
    interruption::wait_for_interrupt();
    Failure::new(CODE_NO_TERMINAL, "interrupted while asking for a password")
}

/// The terminal while it is silent.
#[cfg(unix)]
static SILENCE: Mutex<Option<Silence>> = Mutex::new(None);

/// Lets the terminal show what is typed again: after the answer, or before a signal ends the process.
pub(crate) fn restore() {
    #[cfg(unix)]
    drop(SILENCE.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// A terminal that does not show what is typed, until this is dropped.
///
/// Ctrl-C and the like are letters meanwhile (the first ends the line): in a program that handles no signals, one would
/// end it with the terminal still silent.
#[cfg(unix)]
struct Silence {
    tty: std::fs::File,
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl Silence {
    fn begin(tty: std::fs::File) -> rustix::io::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
        let before = tcgetattr(&tty)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ISIG);
        silent.local_modes.insert(LocalModes::ICANON);
        silent.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        // What was typed before the question was seen on the screen, and is no answer to it.
        tcsetattr(&tty, OptionalActions::Flush, &silent)?;
        Ok(Self { tty, before })
    }
}

#[cfg(unix)]
impl Drop for Silence {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(&self.tty, rustix::termios::OptionalActions::Now, &self.before);
    }
}
