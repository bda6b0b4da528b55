//! The tree of commands and their common options.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::styling::{AnsiColor, Effects, Styles};
use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum as _};

use crate::commands::{
    check, completions, convert, decrypt, demo, diff, embed, encrypt, explain, export, inspect, key, keygen,
    license, man, open, predict, quantize, rekey, scan, seal, shard, sign, size, tensors, train, unshard,
    verify,
};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::terminal::escape;
use crate::terminal::suggest;
use crate::terminal::{ColorChoice, Console, Data, OutputFormat, Verbosity};

/// The program.
#[derive(Debug, Parser)]
#[command(name = "apr", version, styles = HELP_STYLES, after_help = AFTER_HELP)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(
    override_usage = "apr [OPTIONS] <COMMAND>\n       apr [OPTIONS] <FILE>    (the same as apr inspect FILE)"
)]
#[command(
    about = "Inspect, check, compare, convert and shard model files; train small models and predict with them"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "Data goes to standard output, everything else to standard error.\n\n\
    Examples:\n  apr model.safetensors\n  apr check model.safetensors --json\n  apr predict model.apr --input rows.csv\n\n\
    Exit codes: 0 success, 1 different, 2 usage, 3 invalid input, 4 verification failed, 5 I/O, 6 another \
    format. `apr explain CODE` explains the code of an error.";

/// Options of all commands.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Options of all commands")]
pub(crate) struct GlobalArgs {
    /// Print one JSON object, errors included, instead of text.
    #[arg(long, global = true)]
    json: bool,
    /// Colour: auto is on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    color: ColorChoice,
    /// No narration on standard error, only errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Leave nothing out, and narrate more.
    #[arg(short, long, global = true)]
    verbose: bool,
}

/// Every command, in the order of the help page.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Inspect(inspect::Args),
    Tensors(tensors::Args),
    Check(check::Args),
    Scan(scan::Args),
    Diff(diff::Args),
    Convert(convert::Args),
    Export(export::Args),
    Quantize(quantize::Args),
    Shard(shard::Args),
    Unshard(unshard::Args),
    Train(train::Args),
    Predict(predict::Args),
    Embed(embed::Args),
    Size(size::Args),
    #[cfg(feature = "serve")]
    Serve(crate::commands::serve::Args),
    Keygen(keygen::Args),
    Key(key::Args),
    Encrypt(encrypt::Args),
    Decrypt(decrypt::Args),
    Seal(seal::Args),
    Open(open::Args),
    Rekey(rekey::Args),
    License(license::Args),
    Sign(sign::Args),
    Verify(verify::Args),
    Demo(demo::Args),
    Explain(explain::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    ///
    /// Whatever ends it.
    pub(crate) fn run(&self, console: &mut Console) -> Result<Exit, Failure> {
        match self {
            Self::Inspect(args) => inspect::run(args, console),
            Self::Tensors(args) => tensors::run(args, console),
            Self::Check(args) => check::run(args, console),
            Self::Scan(args) => scan::run(args, console),
            Self::Diff(args) => diff::run(args, console),
            Self::Convert(args) => convert::run(args, console),
            Self::Export(args) => export::run(args, console),
            Self::Quantize(args) => quantize::run(args, console),
            Self::Shard(args) => shard::run(args, console),
            Self::Unshard(args) => unshard::run(args, console),
            Self::Train(args) => train::run(args, console),
            Self::Predict(args) => predict::run(args, console),
            Self::Embed(args) => embed::run(args, console),
            Self::Size(args) => size::run(args, console),
            #[cfg(feature = "serve")]
            Self::Serve(args) => crate::commands::serve::run(args, console),
            Self::Keygen(args) => keygen::run(args, console),
            Self::Key(args) => key::run(args, console),
            Self::Encrypt(args) => encrypt::run(args, console),
            Self::Decrypt(args) => decrypt::run(args, console),
            Self::Seal(args) => seal::run(args, console),
            Self::Open(args) => open::run(args, console),
            Self::Rekey(args) => rekey::run(args, console),
            Self::License(args) => license::run(args, console),
            Self::Sign(args) => sign::run(args, console),
            Self::Verify(args) => verify::run(args, console),
            Self::Demo(args) => demo::run(args, console),
            Self::Explain(args) => explain::run(args, console),
            Self::Completions(args) => completions::run(args, Cli::command(), console),
            Self::Man(args) => man::run(args, Cli::command(), console),
        }
    }
}

/// How help is coloured on a terminal: headings, and the words to type.
const HELP_STYLES: Styles = Styles::plain()
    .header(AnsiColor::Yellow.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Yellow.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// Words that people type for commands of other names, in the same sense.
const ALIASES: &[(&str, &str)] =
    &[("info", "inspect"), ("stat", "inspect"), ("list", "tensors"), ("ls", "tensors")];

/// Words that are not commands, and the related command.
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
        arg.as_encoded_bytes().starts_with(b"-")
            || arg.to_str().is_some_and(|word| ColorChoice::from_str(word, false).is_ok())
    });
    let word = words.next()?.to_str()?;
    if is_command(word) || looks_like_file(Path::new(word)) {
        return None;
    }
    let shown = escape::cut(word, 60);
    let failure = Failure::new(CODE_USAGE, format!("`{shown}` is neither a command nor a file"));
    let elsewhere = ELSEWHERE.iter().find(|(known, _)| *known == word).map(|(_, help)| (*help).to_owned());
    let close = || {
        let close = suggest::closest(word, names())?;
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

impl GlobalArgs {
    /// The streams as these options want them.
    pub(crate) fn console(self, data: &Data) -> Console {
        let format = if self.json { OutputFormat::Json } else { OutputFormat::Text };
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        };
        Console::new(data, format, self.color, verbosity)
    }
}

/// A console for an invalid command line, with the global options that can be recognized in it.
pub(crate) fn fallback_console(args: &[OsString], data: &Data) -> Console {
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let format = if has("--json") { OutputFormat::Json } else { OutputFormat::Text };
    let color = args.iter().enumerate().find_map(|(at, arg)| match arg.to_str()? {
        "--color" => args.get(at + 1)?.to_str(),
        arg => arg.strip_prefix("--color="),
    });
    let color = color.and_then(|color| ColorChoice::from_str(color, false).ok()).unwrap_or_default();
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
            if !arg.to_str().is_some_and(is_command) && looks_like_file(Path::new(arg)) {
                args.insert(at, "inspect".into());
            }
            break;
        }
    }
    args
}

/// Names of the commands.
fn names() -> Vec<String> {
    Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

fn is_command(word: &str) -> bool {
    word == "help" || Command::has_subcommand(word)
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
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_page_has_two_examples() {
        let pages = Cli::command();
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
