//! `apr completions`: scripts that complete commands and options in a shell.

use alloc::borrow::Cow;
use std::io::Write;

use clap::Command;
use clap_complete::Shell;
use serde::Serialize;

use crate::error::{Exit, Failure};
use crate::report::Report;
use crate::terminal::Console;

const AFTER_HELP: &str = "Put the script where your shell looks for it, for example\n\
    ~/.local/share/bash-completion/completions/apr or ~/.config/fish/completions/apr.fish.\n\n\
    Examples:\n  apr completions bash\n  apr completions zsh --json\n\n\
    Exit codes: 0 success, 2 unknown shell.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The shell to complete in.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// A script.
#[derive(Serialize)]
struct CompletionsReport<'a> {
    shell: String,
    script: Cow<'a, str>,
}

impl Report for CompletionsReport<'_> {
    const SCHEMA: &'static str = "apr.completions/1";
}

/// Runs `apr completions` for the tree of commands.
///
/// # Errors
///
/// If standard output does not take the script.
pub(crate) fn run(args: &Args, mut command: Command, console: &mut Console) -> Result<Exit, Failure> {
    let shell = args.shell;
    // Generated into memory: the generator panics where a closed pipe refuses a write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "apr", &mut script);
    if console.is_json() {
        let script = String::from_utf8_lossy(&script);
        console.report(&CompletionsReport { shell: shell.to_string(), script })?;
    } else {
        console.text(|out, _| out.write_all(&script))?;
    }
    Ok(Exit::Success)
}
