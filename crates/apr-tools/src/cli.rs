//! The tree of commands and what all of them share.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::PossibleValuesParser;
use clap::builder::styling::{AnsiColor, Effects, Styles};
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::commands::{
    check, completions, convert, decrypt, demo, diff, embed, encrypt, explain, export, inspect, key, keygen,
    license, man, open, predict, quantize, rekey, seal, shard, sign, size, tensors, train, unshard, verify,
};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::terminal::escape;
use crate::terminal::suggest;
use crate::terminal::{ColorChoice, Console, Data, OutputFormat, Verbosity};

/// Runs a command with its arguments.
pub(crate) type Run = fn(&ArgMatches, &mut Console) -> Result<Exit, Failure>;

/// How a command is described and how it is run.
struct Entry {
    name: &'static str,
    describe: fn() -> Command,
    run: Run,
}

/// Every command, in the order of the help page.
const COMMANDS: &[Entry] = &[
    Entry { name: "inspect", describe: inspect::command, run: inspect::run },
    Entry { name: "tensors", describe: tensors::command, run: tensors::run },
    Entry { name: "check", describe: check::command, run: check::run },
    Entry { name: "diff", describe: diff::command, run: diff::run },
    Entry { name: "convert", describe: convert::command, run: convert::run },
    Entry { name: "export", describe: export::command, run: export::run },
    Entry { name: "quantize", describe: quantize::command, run: quantize::run },
    Entry { name: "shard", describe: shard::command, run: shard::run },
    Entry { name: "unshard", describe: unshard::command, run: unshard::run },
    Entry { name: "train", describe: train::command, run: train::run },
    Entry { name: "predict", describe: predict::command, run: predict::run },
    Entry { name: "embed", describe: embed::command, run: embed::run },
    Entry { name: "size", describe: size::command, run: size::run },
    #[cfg(feature = "serve")]
    Entry { name: "serve", describe: crate::commands::serve::command, run: crate::commands::serve::run },
    Entry { name: "keygen", describe: keygen::command, run: keygen::run },
    Entry { name: "key", describe: key::command, run: key::run },
    Entry { name: "encrypt", describe: encrypt::command, run: encrypt::run },
    Entry { name: "decrypt", describe: decrypt::command, run: decrypt::run },
    Entry { name: "seal", describe: seal::command, run: seal::run },
    Entry { name: "open", describe: open::command, run: open::run },
    Entry { name: "rekey", describe: rekey::command, run: rekey::run },
    Entry { name: "license", describe: license::command, run: license::run },
    Entry { name: "sign", describe: sign::command, run: sign::run },
    Entry { name: "verify", describe: verify::command, run: verify::run },
    Entry { name: "demo", describe: demo::command, run: demo::run },
    Entry { name: "explain", describe: explain::command, run: explain::run },
    Entry { name: "completions", describe: completions::command, run: completions::run },
    Entry { name: "man", describe: man::command, run: man::run },
];

pub(crate) fn command() -> Command {
    Command::new("apr")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Inspect, check, compare, convert and shard model files; train small models and ask them")
        .override_usage("apr [OPTIONS] <COMMAND>\n       apr [OPTIONS] <FILE>    (the same as apr inspect FILE)")
        .styles(HELP_STYLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(global_args())
        .subcommands(COMMANDS.iter().map(|entry| (entry.describe)()))
        .after_help(
            "Data goes to standard output, everything else to standard error.\n\n\
             Examples:\n  apr model.safetensors\n  apr check model.safetensors --json\n  apr predict model.apr --input rows.csv\n\n\
             Exit codes: 0 ok, 1 different, 2 usage, 3 invalid input, 4 verification refused, 5 I/O, 6 another \
             format. `apr explain CODE` explains the code of an error.",
        )
}

/// How help is coloured on a terminal: headings, and the words to type.
const HELP_STYLES: Styles = Styles::plain()
    .header(AnsiColor::Yellow.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Yellow.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// Values of `--color`.
const COLORS: [&str; 3] = ["auto", "always", "never"];

fn global_args() -> [Arg; 4] {
    let global =
        |name: &'static str| Arg::new(name).long(name).global(true).help_heading("Options of all commands");
    [
        global("json")
            .action(ArgAction::SetTrue)
            .help("Print one JSON object, errors included, instead of text"),
        global("color")
            .value_name("WHEN")
            .value_parser(PossibleValuesParser::new(COLORS))
            .default_value("auto")
            .help("Colour: auto is on a terminal, unless NO_COLOR is set"),
        global("quiet")
            .short('q')
            .action(ArgAction::SetTrue)
            .conflicts_with("verbose")
            .help("No narration on standard error, only errors"),
        global("verbose").short('v').action(ArgAction::SetTrue).help("Leave nothing out, and narrate more"),
    ]
}

/// Words that people type for commands of other names, in the same sense.
const ALIASES: &[(&str, &str)] =
    &[("info", "inspect"), ("stat", "inspect"), ("list", "tensors"), ("ls", "tensors")];

/// Words that people type for what no command does, and what comes close.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "cat",
        "`apr tensors FILE` lists the tensors; `apr convert FILE OUT --select NAME` takes some of them out",
    ),
    ("download", "apr has no network commands: download with curl, then `apr check FILE`"),
    ("pull", "apr has no network commands: download with curl, then `apr check FILE`"),
    (
        "run",
        "`apr predict MODEL --input ROWS` predicts each row of a table; `apr serve MODEL` does so over HTTP",
    ),
];

/// A first word that is neither a command nor a file.
pub(crate) fn unknown_command(args: &[OsString]) -> Option<Failure> {
    let mut words = args.iter().skip(1).skip_while(|arg| {
        arg.as_encoded_bytes().starts_with(b"-") || COLORS.iter().any(|color| *arg == *color)
    });
    let word = words.next()?.to_str()?;
    if word == "help" || COMMANDS.iter().any(|entry| entry.name == word) || looks_like_file(Path::new(word)) {
        return None;
    }
    let shown = escape::cut(word, 60);
    let failure = Failure::new(CODE_USAGE, format!("`{shown}` is neither a command nor a file"));
    let elsewhere = ELSEWHERE.iter().find(|(known, _)| *known == word).map(|(_, help)| (*help).to_owned());
    let close = || {
        let close = suggest::closest(word, COMMANDS.iter().map(|entry| entry.name))?;
        Some(format!("did you mean `apr {close}`?"))
    };
    let here = || {
        let names = Path::new(".").read_dir().ok()?.flatten().take(1000);
        let names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        Some(format!("did you mean the file {}?", escape::cut(suggest::closest(word, &names)?, 100)))
    };
    let help = elsewhere.or_else(close).or_else(here);
    Some(failure.help(help.unwrap_or_else(|| "`apr --help` lists the commands".to_owned())))
}

/// The function of the command on the command line, and its arguments.
pub(crate) fn chosen(matches: &ArgMatches) -> Option<(Run, &ArgMatches)> {
    let (name, matches) = matches.subcommand()?;
    COMMANDS.iter().find(|entry| entry.name == name).map(|entry| (entry.run, matches))
}

/// The streams as the global options want them.
pub(crate) fn console(matches: &ArgMatches, data: &Data) -> Console {
    let format = if matches.get_flag("json") { OutputFormat::Json } else { OutputFormat::Text };
    let color = color_choice(matches.get_one::<String>("color").map(String::as_str));
    let verbosity = match (matches.get_flag("quiet"), matches.get_flag("verbose")) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    Console::new(data, format, color, verbosity)
}

fn color_choice(value: Option<&str>) -> ColorChoice {
    match value {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// A console for when the command line could not be understood: what can be told of the global options from the words.
pub(crate) fn fallback_console(args: &[OsString], data: &Data) -> Console {
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let format = if has("--json") { OutputFormat::Json } else { OutputFormat::Text };
    let color = args.iter().enumerate().find_map(|(at, arg)| match arg.to_str()? {
        "--color" => args.get(at + 1)?.to_str(),
        arg => arg.strip_prefix("--color="),
    });
    let color = color_choice(color);
    Console::new(data, format, color, Verbosity::Normal)
}

/// Puts `inspect` before a FILE that stands where a command is expected. A word that is neither a command nor looks like
/// a file stays, so that the parser can suggest the command it may have meant.
pub(crate) fn with_default_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        if arg == "--color" {
            at += 2;
        } else if arg == "--" {
            args.insert(at, "inspect".into());
            break;
        } else if arg != "-" && arg.as_encoded_bytes().starts_with(b"-") {
            at += 1;
        } else {
            if arg == "version" && !Path::new(arg).exists() {
                args[at] = "--version".into();
                break;
            }
            if let Some((_, name)) = ALIASES.iter().find(|(alias, _)| arg == alias)
                && !Path::new(arg).exists()
            {
                args[at] = name.into();
                break;
            }
            let is_command = arg == "help" || COMMANDS.iter().any(|entry| arg == entry.name);
            if !is_command && looks_like_file(Path::new(arg)) {
                args.insert(at, "inspect".into());
            }
            break;
        }
    }
    args
}

fn looks_like_file(path: &Path) -> bool {
    let has_mark = path.as_os_str().as_encoded_bytes().iter().any(|b| matches!(b, b'.' | b'/' | b'\\'));
    has_mark || path.as_os_str() == "-" || path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaulted(args: &[&str]) -> Vec<OsString> {
        with_default_command(args.iter().map(OsString::from).collect())
    }

    #[test]
    fn the_tree_is_consistent() {
        command().debug_assert();
        for entry in COMMANDS {
            assert_eq!((entry.describe)().get_name(), entry.name);
        }
    }

    #[test]
    fn every_help_page_has_two_examples() {
        let pages = command();
        for page in pages.get_subcommands().chain([&pages]) {
            let help = page.get_after_help().unwrap().to_string();
            assert!(help.matches("\n  apr ").count() >= 2, "{}", page.get_name());
        }
    }

    #[test]
    fn a_file_is_inspected() {
        assert_eq!(defaulted(&["apr", "m.safetensors"])[1], "inspect");
        assert_eq!(defaulted(&["apr", "--json", "--color", "never", "a/b"])[4], "inspect");
        assert_eq!(defaulted(&["apr", "--", "x"])[1], "inspect");
        assert_eq!(defaulted(&["apr", "-"])[1], "inspect");
        assert_eq!(defaulted(&["apr", "tensors", "x.y"]).len(), 3);
        assert_eq!(defaulted(&["apr", "tensrs", "x.y"])[1], "tensrs");
        assert_eq!(defaulted(&["apr", "--version"]).len(), 2);
        assert_eq!(defaulted(&["apr"]).len(), 1);
    }
}
