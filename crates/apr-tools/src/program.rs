//! Runs the program: from arguments to an exit code.

use alloc::rc::Rc;
use core::cell::RefCell;
use std::ffi::OsString;
use std::io::Write;
use std::panic::{self, PanicHookInfo};

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::cli::Cli;
use crate::error::{CODE_INTERNAL, CODE_USAGE, Exit, Failure};
use crate::terminal::escape::Visible;
use crate::terminal::{Console, Data, Style, progress};
use crate::{cli, interruption, jobs, secrets, usage};

/// Runs the program with its arguments, the first of which is its name, and gives its exit code.
///
/// It uses what belongs to the process: its standard streams, its environment, its panic hook, which it sets so that a
/// defect is told as every other failure is, and its signals: SIGINT, SIGTERM and SIGHUP remove what is unfinished and end the
/// process, also after this has returned. Call it where the process has nothing else to do.
///
/// # Examples
///
/// ```
/// assert_eq!(apr_tools::run(["apr".into(), "--version".into()]), 0);
/// assert_eq!(apr_tools::run(["apr".into(), "inspect".into(), "no-such-file.gguf".into()]), 5);
/// ```
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    interruption::install();
    let args = args.into_iter().collect();
    secrets::is_the_program();
    panic::set_hook(Box::new(report_panic));
    // Arguments of the run that panicked are not used again.
    let exit = panic::catch_unwind(|| answer(args, &Data::Stdout)).unwrap_or(Exit::Internal);
    interruption::finish();
    exit as u8
}

/// Runs a command as [`run`] does, and gives its exit code with what it says instead of printing it: one JSON object,
/// errors included, as `docs/cli.md` specifies it.
///
/// The process's own streams are used only for what the arguments name: `-` as an input, a password asked for at the terminal.
///
/// # Examples
///
/// ```
/// let (exit, answer) = apr_tools::run_json(["inspect".into(), "no-such-file.gguf".into()]);
/// assert_eq!(exit, 5);
/// assert!(answer.contains(r#""code":"#));
/// ```
pub fn run_json(args: impl IntoIterator<Item = OsString>) -> (u8, String) {
    let words = ["apr", "--json", "--quiet"].map(OsString::from);
    let answered = Rc::new(RefCell::new(Vec::new()));
    let exit = answer(words.into_iter().chain(args).collect(), &Data::Memory(Rc::clone(&answered)));
    (exit as u8, String::from_utf8_lossy(&answered.borrow()).into_owned())
}

fn answer(args: Vec<OsString>, data: &Data) -> Exit {
    if let Err(failure) = secrets::refuse_secrets(&args) {
        return report(&failure, &mut cli::fallback_console(&args, data));
    }
    #[cfg(feature = "remote")]
    let args = crate::remote::without_queries(args);
    let args = cli::with_default_command(args);
    if let Some(failure) = cli::unknown_command(&args) {
        return report(&failure, &mut cli::fallback_console(&args, data));
    }
    let batch = jobs::as_batch(&args);
    let is_recursive = batch.is_some();
    let args = batch.unwrap_or(args);
    let (mut console, result) = match Cli::try_parse_from(&args) {
        Ok(Cli { global, command }) => {
            let mut console = global.console(data);
            #[cfg(feature = "remote")]
            crate::remote::start(global.remote, console.narration());
            let result = command.run(&mut console);
            #[cfg(feature = "remote")]
            crate::remote::finish(&console);
            (console, result)
        }
        Err(error) => {
            let mut console = cli::fallback_console(&args, data);
            let result = usage(error, &args, &mut console);
            (console, result)
        }
    };
    match result {
        Ok(exit) => exit,
        Err(failure) if is_recursive => report(&jobs::of_recursive(failure, &args), &mut console),
        Err(failure) => report(&failure, &mut console),
    }
}

/// What the argument parser has to say: help and version are data, the rest are usage errors.
fn usage(error: clap::Error, args: &[OsString], console: &mut Console) -> Result<Exit, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            console.text(|out, style| match style.is_plain() {
                true => out.write_all(error.render().to_string().as_bytes()),
                false => write!(out, "{}", error.render().ansi()),
            })?;
            Ok(Exit::Success)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Names of files can reach this text through the command line.
            let text = error.render().to_string();
            let lines: Vec<String> = text.lines().map(|line| Visible(line).to_string()).collect();
            Err(Failure::new(CODE_USAGE, "no command is given").instead(lines.join("\n") + "\n"))
        }
        _ => Err(usage::failure(error, args)),
    }
}

/// Shows a failure where the reader looks for it and says how the run ends.
fn report(failure: &Failure, console: &mut Console) -> Exit {
    // What fails because a signal took it away is no failure of its own.
    interruption::wait_if_ending();
    if failure.is_closed_pipe() {
        return Exit::Success;
    }
    if console.is_json() && console.report(&failure.report()).is_ok() {
        return failure.exit();
    }
    console.failure(failure);
    failure.exit()
}

/// A defect, told in the form of every other failure.
fn report_panic(info: &PanicHookInfo<'_>) {
    #[cfg(feature = "tables")]
    if apr_table::catches_panics() {
        return;
    }
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let failure = Failure::new(CODE_INTERNAL, "internal error")
        .because(format!("{} at {place}", info.payload_as_str().unwrap_or("panic")));
    progress::close();
    let _ = std::io::stderr().write_all(failure.block(Style::PLAIN).as_bytes());
}
