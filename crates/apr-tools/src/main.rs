//! `apr`: inspects, checks, compares, converts and shards machine-learning model files, trains small models and asks
//! them.
//!
//! The format is the business of the libraries; this program parses arguments, prints, and chooses exit codes. Its
//! contract is `docs/cli.md`.

#![forbid(unsafe_code)]

extern crate alloc;

mod cli;

mod check;
mod completions;
mod convert;
mod decrypt;
mod demo;
mod diff;
mod encrypt;
mod explain;
mod export;
mod inspect;
mod key;
mod keygen;
mod license;
mod man;
mod open;
mod predict;
mod quantize;
mod rekey;
mod seal;
mod shard;
mod sign;
mod tensors;
mod train;
mod unshard;
mod verify;

mod console;
mod csv;
mod error;
mod foreign;
mod gguf_stream;
mod glob;
mod input;
mod known;
mod metadata;
mod output;
mod render;
mod rewrite;
mod sealed_file;
mod secrets;
mod whole_file;

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

use crate::console::{Console, Style};
use crate::error::{CODE_INTERNAL, CODE_USAGE, Exit, Failure};
use crate::render::escape::Escaped;

fn main() -> ExitCode {
    panic::set_hook(Box::new(report_panic));
    // Arguments of the run that panicked are not used again.
    let exit = panic::catch_unwind(|| run(env::args_os().collect())).unwrap_or(Exit::Internal);
    ExitCode::from(exit as u8)
}

fn run(args: Vec<OsString>) -> Exit {
    if let Err(failure) = secrets::refuse_secrets(&args) {
        return report(&failure, &mut cli::fallback_console(&args));
    }
    let args = cli::with_default_command(args);
    let (mut console, result) = match cli::command().try_get_matches_from(&args) {
        Ok(matches) => {
            let mut console = cli::console(&matches);
            let result = match cli::chosen(&matches) {
                Some((run, matches)) => run(matches, &mut console),
                None => Err(Failure::new(CODE_USAGE, "no command is given")),
            };
            (console, result)
        }
        Err(error) => {
            let mut console = cli::fallback_console(&args);
            let result = usage(&error, &mut console);
            (console, result)
        }
    };
    match result {
        Ok(exit) => exit,
        Err(failure) => report(&failure, &mut console),
    }
}

/// What the argument parser has to say: help and version are data, the rest are usage errors.
fn usage(error: &clap::Error, console: &mut Console) -> Result<Exit, Failure> {
    use clap::error::ErrorKind;
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            console.text(|out, _| out.write_all(text.as_bytes()))?;
            Ok(Exit::Success)
        }
        kind => {
            // Names of files can reach this text through the command line.
            let lines: Vec<String> = text.lines().map(|line| Escaped(line).to_string()).collect();
            let is_help = kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            let what = if is_help { "no command is given" } else { first_line(&lines) };
            let label = console.err_style.red(&format!("error[{CODE_USAGE}]"));
            let block = if is_help {
                lines.join("\n") + "\n"
            } else {
                lines.join("\n").replacen("error:", &format!("{label}:"), 1) + "\n"
            };
            Err(Failure::new(CODE_USAGE, what).instead(block))
        }
    }
}

fn first_line(lines: &[String]) -> &str {
    lines.first().map_or("", |line| line.strip_prefix("error: ").unwrap_or(line))
}

/// Shows a failure where the reader looks for it and says how the run ends.
fn report(failure: &Failure, console: &mut Console) -> Exit {
    if failure.is_closed_pipe() {
        return Exit::Success;
    }
    if console.is_json() {
        let printed = console.json("apr.error/1", |json| {
            json.field_uint("exit", failure.exit() as u64)?;
            json.key("error")?;
            failure.write_json(json)
        });
        if printed.is_ok() {
            return failure.exit();
        }
    }
    console.failure(failure);
    failure.exit()
}

/// A defect, told in the form of every other failure.
fn report_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let failure = Failure::new(CODE_INTERNAL, "internal error")
        .because(format!("{} at {place}", info.payload_as_str().unwrap_or("panic")));
    let _ = std::io::stderr().write_all(failure.block(Style::PLAIN).as_bytes());
}
