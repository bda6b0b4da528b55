//! Sources of passwords.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use apr_crypto::{Argon2Limits, Password, constant_time_eq};
use clap::Args;
use zeroize::Zeroizing;

use super::key_file::refuse_exposed;
use super::limits::{Limits, PasswordCost, parse_cost};
use super::process::keep_secrets;
use super::terminal::{self, MAX_LEN};
use crate::error::{CODE_NO_TERMINAL, CODE_PASSWORD, Failure};
use crate::terminal::escape::Visible;

/// What a password is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To put something under it: asked twice, and not empty.
    Lock,
    /// To open what is under it.
    Open,
}

/// Where a password comes from: at most one of these options.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PasswordArgs {
    /// Ask for the password at the terminal.
    #[arg(long, help_heading = HEADING, conflicts_with_all = ["password_file", "password_fd"])]
    ask_password: bool,
    /// Take the password from this file, which only its owner may be able to read.
    #[arg(long, value_name = "PATH", help_heading = HEADING, conflicts_with = "password_fd")]
    password_file: Option<PathBuf>,
    /// Take the password from this open file descriptor: its first line.
    #[arg(long, value_name = "N", value_parser = descriptor, help_heading = HEADING)]
    password_fd: Option<u32>,
}

/// Where the password of a key file comes from: the terminal, unless an option says otherwise.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct KeyPasswordArgs {
    /// Maximum memory and passes of a password [default: 256MiB:8; for a key file 1GiB].
    #[arg(long, value_name = "SIZE:PASSES", value_parser = parse_cost, help_heading = HEADING)]
    pub(super) max_password_cost: Option<PasswordCost>,
    /// Take the password of a locked key file from this file instead of the terminal.
    #[arg(long, value_name = "PATH", help_heading = HEADING, conflicts_with = "key_password_fd")]
    key_password_file: Option<PathBuf>,
    /// Take the password of a locked key file from this open file descriptor.
    #[arg(long, value_name = "N", value_parser = descriptor, help_heading = HEADING)]
    key_password_fd: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source<'a> {
    Terminal,
    File(&'a Path),
    Descriptor(u32),
}

pub(crate) const HEADING: &str = "Keys and passwords";

impl PasswordArgs {
    /// Whether one of the options was given.
    pub(crate) fn is_given(&self) -> bool {
        self.ask_password || self.password_file.is_some() || self.password_fd.is_some()
    }

    /// Whether standard input is where the password comes from, so that nothing else can.
    pub(crate) fn takes_stdin(&self) -> bool {
        self.password_fd == Some(0)
    }

    /// The password, asked for at the terminal if no option says otherwise. `whose` completes the question `password of`.
    ///
    /// # Errors
    ///
    /// If there is none, it is too long or has several lines; if it is to lock something: if it is empty, or is not the same the
    /// second time it is asked for.
    pub(crate) fn read(&self, whose: &str, purpose: Purpose) -> Result<Password, Failure> {
        Source::of(self.password_file.as_deref(), self.password_fd).read(whose, purpose)
    }
}

impl KeyPasswordArgs {
    /// Whether standard input is where the password comes from, so that nothing else can.
    pub(crate) fn takes_stdin(&self) -> bool {
        self.key_password_fd == Some(0)
    }

    /// What a key file may cost.
    pub(super) fn limits(&self) -> Argon2Limits {
        Limits::new(self.max_password_cost, None).of_keys()
    }

    /// The password that unlocks the key file at `path`.
    ///
    /// # Errors
    ///
    /// If there is none, it is too long or has several lines.
    pub(super) fn read(&self, path: &Path) -> Result<Password, Failure> {
        let source = Source::of(self.key_password_file.as_deref(), self.key_password_fd);
        source.read(&path.to_string_lossy(), Purpose::Open)
    }
}

impl<'a> Source<'a> {
    fn of(file: Option<&'a Path>, descriptor: Option<u32>) -> Self {
        file.map(Self::File).or(descriptor.map(Self::Descriptor)).unwrap_or(Self::Terminal)
    }

    fn read(self, whose: &str, purpose: Purpose) -> Result<Password, Failure> {
        keep_secrets();
        let password = match self {
            Self::Terminal => return ask(whose, purpose),
            Self::File(path) => from_file(path)?,
            Self::Descriptor(number) => from_descriptor(number)?,
        };
        if purpose == Purpose::Lock && password.is_empty() {
            return Err(empty());
        }
        Ok(Password::new(password))
    }
}

fn descriptor(text: &str) -> Result<u32, &'static str> {
    // 1 and 2 are for writing.
    match text.parse() {
        Ok(1 | 2) => Err("1 and 2 are for output: take 0, 3 or above"),
        Ok(number) if number <= 0x7fff_ffff => Ok(number),
        _ => Err("a number is needed, 0 or from 3 on"),
    }
}

fn empty() -> Failure {
    Failure::new(CODE_PASSWORD, "the password is empty")
}

fn ask(whose: &str, purpose: Purpose) -> Result<Password, Failure> {
    let whose = Visible(whose);
    if purpose == Purpose::Open {
        return terminal::ask(&format!("Password of {whose}")).map(taken);
    }
    let first = terminal::ask(&format!("New password of {whose}"))?;
    if first.is_empty() {
        return Err(empty());
    }
    let second = terminal::ask("Once more")?;
    if !constant_time_eq(&first, &second) {
        return Err(Failure::new(CODE_PASSWORD, "the two passwords differ"));
    }
    Ok(taken(first))
}

/// The bytes themselves, not a copy of them.
fn taken(mut text: Zeroizing<Vec<u8>>) -> Password {
    Password::new(core::mem::take(&mut *text))
}

fn from_file(path: &Path) -> Result<Vec<u8>, Failure> {
    // Longer by a line end, and by a byte that is too much.
    let regular = durable_file::open_regular(path, MAX_LEN as u64 + 3)?;
    refuse_exposed(regular.file(), path)?;
    let mut text = Zeroizing::new(regular.into_bytes()?);
    cut_line_end(&mut text);
    if text.contains(&b'\n') {
        let what = "the password file has several lines: a password is one";
        return Err(Failure::new(CODE_PASSWORD, what).in_file(path));
    }
    if text.len() > MAX_LEN {
        return Err(too_long().in_file(path));
    }
    Ok(core::mem::take(&mut *text))
}

fn from_descriptor(number: u32) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: &io::Error| {
        Failure::new(CODE_NO_TERMINAL, format!("no password from file descriptor {number}"))
            .because(error.to_string())
    };
    let is_terminal = || {
        Failure::new(
            CODE_NO_TERMINAL,
            format!("file descriptor {number} is a terminal, which shows what is typed"),
        )
        .help("leave the option out: the password is then asked for and not shown")
    };
    let line = if number == 0 {
        let input = io::stdin().lock();
        if input.is_terminal() {
            return Err(is_terminal());
        }
        first_line(input)
    } else {
        // Opened anew by its name: a number cannot be made a file without unsafe code.
        let file = File::open(format!("/dev/fd/{number}")).map_err(|error| unreadable(&error))?;
        if file.is_terminal() {
            return Err(is_terminal());
        }
        first_line(file)
    };
    line.map_err(|error| unreadable(&error))?.ok_or_else(too_long)
}

/// The bytes before the first line feed; `None` if there are too many. Reads single bytes: later bytes are for another reader,
/// and the writer may keep the pipe open.
fn first_line(mut input: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut line = Zeroizing::new(Vec::with_capacity(MAX_LEN + 2));
    let mut byte = Zeroizing::new([0]);
    while line.len() <= MAX_LEN + 1 {
        match input.read(&mut *byte) {
            Ok(0) => break,
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if byte[0] == b'\n' {
            break;
        }
    }
    cut_line_end(&mut line);
    Ok((line.len() <= MAX_LEN).then(|| core::mem::take(&mut *line)))
}

fn cut_line_end(line: &mut Vec<u8>) {
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    }
}

fn too_long() -> Failure {
    Failure::new(CODE_PASSWORD, format!("the password is longer than {MAX_LEN} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_at_its_line_feed() {
        for (input, line) in [
            (&b"pass word\nnext\n"[..], &b"pass word"[..]),
            (b"pass\r\n", b"pass"),
            (b"pass\r", b"pass\r"),
            (b"\npass\n", b""),
            (b"", b""),
            (b" \xff ", b" \xff "),
        ] {
            assert_eq!(first_line(input).unwrap().unwrap(), line);
        }
        let long = [b'x'; MAX_LEN];
        assert_eq!(first_line(&long[..]).unwrap().unwrap(), long);
        assert_eq!(first_line(&[&long[..], b"\n"].concat()[..]).unwrap().unwrap(), long);
        assert_eq!(first_line(&[b'x'; MAX_LEN + 1][..]).unwrap(), None);
        assert_eq!(first_line(&[b'x'; 1 << 20][..]).unwrap(), None);
    }

    #[test]
    fn what_follows_the_line_is_left() {
        let mut input = &b"pass\nrest"[..];
        first_line(&mut input).unwrap();
        assert_eq!(input, b"rest");
    }
}
