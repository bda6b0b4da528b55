//! `apr completions`: scripts that complete commands and options in a shell.

use std::ffi::OsStr;
use std::io::Write;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use crate::cli;
use crate::error::{Exit, Failure};
use crate::terminal::Console;

pub(crate) fn command() -> Command {
    Command::new("completions")
        .about("Print a completion script for a shell")
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(value_parser!(Shell))
                .help("The shell to complete in"),
        )
        .after_help(
            "Put the script where your shell looks for it, for example\n\
             ~/.local/share/bash-completion/completions/apr or ~/.config/fish/completions/apr.fish.\n\n\
             Examples:\n  apr completions bash\n  apr completions zsh --json\n\n\
             Exit codes: 0 printed, 2 unknown shell.",
        )
}

/// Accepts any text, and completes those that the function lists: for values whose wrong spellings get an error of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed(pub(crate) fn() -> Vec<&'static str>);

impl TypedValueParser for Listed {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// Runs `apr completions`.
///
/// # Errors
///
/// If standard output does not take the script.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let shell = *matches.get_one::<Shell>("shell").expect("clap requires SHELL");
    // Generated into memory: the generator panics where a closed pipe refuses a write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "apr", &mut script);
    if console.is_json() {
        console.json("apr.completions/1", |json| {
            json.field_str("shell", &shell.to_string())?;
            json.field_str("script", &String::from_utf8_lossy(&script))
        })?;
    } else {
        console.text(|out, _| out.write_all(&script))?;
    }
    Ok(Exit::Success)
}
