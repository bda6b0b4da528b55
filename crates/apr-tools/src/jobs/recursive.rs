//! `apr convert --recursive`: another spelling of `apr batch`.

use std::ffi::{OsStr, OsString};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, CommandFactory as _};

use super::plan::SAME_OUTPUT;
use crate::cli::Cli;
use crate::error::{CODE_OUTPUT_EXISTS, Failure};
use crate::terminal::escape;

const OPTION: &str = "recursive";
/// What `batch` is told itself.
const OWN: [&str; 6] = ["input", "output", "to", OPTION, "jobs", "force"];

/// The command line of `apr batch` that does what this one asks for, if it converts a folder.
///
/// None of one that is not valid, which the parser tells.
pub(crate) fn as_batch(args: &[OsString]) -> Option<Vec<OsString>> {
    if !args.iter().any(|arg| arg == "--recursive") {
        return None;
    }
    let mut tree = Cli::command();
    let matches = tree.try_get_matches_from_mut(args).ok()?;
    let ("convert", convert) = matches.subcommand()? else { return None };
    if !convert.get_flag(OPTION) {
        return None;
    }
    let format = convert.get_raw("format")?.next()?.to_str()?;
    let ending = if format.starts_with("apr") { "apr" } else { format };
    let value = |id| convert.get_raw(id).and_then(|mut values| values.next()).map(OsStr::to_owned);
    let is_global = |arg: &Arg| tree.get_arguments().any(|global| global.get_id() == arg.get_id());
    let command = tree.find_subcommand("convert")?;
    let (globals, own): (Vec<&Arg>, Vec<&Arg>) = command.get_arguments().partition(|arg| is_global(arg));
    let own = own.into_iter().filter(|arg| !OWN.contains(&arg.get_id().as_str()));

    let mut words = vec![OsString::from("apr")];
    words.extend(globals.into_iter().flat_map(|arg| given(arg, convert)));
    words.extend([
        OsString::from("batch"),
        joined("from", &value("input")?),
        joined("to", &value("output").or_else(|| value("to"))?),
    ]);
    words.extend(convert.get_flag("force").then(|| OsString::from("--force")));
    words.extend(value("jobs").map(|jobs| joined("jobs", &jobs)));
    words.extend(["--", "convert", "{in}"].map(OsString::from));
    words.push(format!("{{out}}.{ending}").into());
    words.extend(own.flat_map(|arg| given(arg, convert)));
    Some(words)
}

/// The failure of such a command line, whose advice is for `convert`: what has options of `batch` names the command of `batch`.
pub(crate) fn of_recursive(failure: Failure, batch: &[OsString]) -> Failure {
    let shown = |word: &str| match word.split_once('=').filter(|_| word.starts_with("--")) {
        Some((option, value)) => format!("{option}={}", escape::word(value)),
        None => escape::word(word),
    };
    let line = |options: &str, output: &str| {
        let words = batch.iter().map(|word| match &*word.to_string_lossy() {
            "batch" => format!("batch{options}"),
            word => shown(&word.replacen("{out}.", output, 1)),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    if failure.advice().is_some_and(|advice| advice == SAME_OUTPUT) {
        let help = format!("`{}` keeps them apart", line("", "{to}/{path}."));
        return failure.help(help);
    }
    if failure.code() == CODE_OUTPUT_EXISTS {
        let help = format!(
            "--force replaces outputs that are there; `{}` leaves out their inputs",
            line(" --skip-existing", "{out}.")
        );
        return failure.help(help);
    }
    failure
}

/// An argument as it was given, in one spelling.
fn given(arg: &Arg, matches: &ArgMatches) -> Vec<OsString> {
    let id = arg.get_id().as_str();
    let (Some(name), Some(ValueSource::CommandLine)) = (arg.get_long(), matches.value_source(id)) else {
        return Vec::new();
    };
    match arg.get_action() {
        ArgAction::SetTrue => vec![format!("--{name}").into()],
        _ => matches.get_raw(id).into_iter().flatten().map(|value| joined(name, value)).collect(),
    }
}

fn joined(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(value);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_batch() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let line = "apr --json convert in out --recursive --format apr2 --select a* --jobs 4 --select=b --no-metadata --color never --force";
        let expected = "apr --json --color=never batch --from=in --to=out --force --jobs=4 -- convert {in} {out}.apr --format=apr2 --select=a* \
                        --select=b --no-metadata";
        let mut found = as_batch(&words(line)).unwrap();
        let mut expected = words(expected);
        // The order of options is that of their declaration.
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        for line in [
            "apr convert in out",
            "apr convert in out -o out",
            "apr convert in --recursive",
            "apr check --recursive",
            "apr convert in out --recursive --x",
        ] {
            assert_eq!(as_batch(&words(line)), None, "{line}");
        }
    }
}
