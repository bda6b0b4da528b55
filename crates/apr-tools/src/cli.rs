//! The tree of commands and their common options.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::styling::{AnsiColor, Effects, Styles};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, CommandFactory as _, FromArgMatches, Parser, Subcommand, ValueEnum as _};

#[cfg(feature = "bench")]
use crate::commands::bench;
#[cfg(feature = "serve")]
use crate::commands::serve;
use crate::commands::{
    abort, batch, check, checkpoint, compatible, completions, convert, decrypt, demo, diff, distill, dump,
    embed, encrypt, explain, export, finish, inspect, key, keygen, license, man, open, plan, predict,
    quantize, rekey, run_task, scan, score, seal, shard, sign, size, status, tensors, train, unshard, verify,
};
#[cfg(feature = "remote")]
use crate::commands::{cache, get, put};
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
    #[cfg(feature = "remote")]
    #[command(flatten)]
    pub(crate) remote: crate::remote::RemoteArgs,
}

/// Declares the commands once: the enum, its parser, and what each runs. The arguments of a command are described to the parser when it is
/// chosen: describing those of all commands takes longer than most commands.
macro_rules! commands {
    ($($(#[$cfg:meta])* $variant:ident, $module:ident, $name:literal, $about:literal $(, $tree:expr)?;)*) => {
        /// Every command, in the order of the help page.
        #[derive(Debug)]
        pub(crate) enum Command {
            $($(#[$cfg])* $variant($module::Args),)*
        }

        impl Command {
            /// Runs the command.
            ///
            /// # Errors
            ///
            /// Whatever ends it.
            pub(crate) fn run(&self, console: &mut Console) -> Result<Exit, Failure> {
                match self {
                    $($(#[$cfg])* Self::$variant(args) => $module::run(args, $($tree,)? console),)*
                }
            }
        }

        impl FromArgMatches for Command {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Self::from_arg_matches_mut(&mut matches.clone())
            }

            fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
                let missing = || clap::Error::new(ErrorKind::MissingSubcommand);
                let (name, mut matches) = matches.remove_subcommand().ok_or_else(missing)?;
                match name.as_str() {
                    $($(#[$cfg])* $name => $module::Args::from_arg_matches_mut(&mut matches).map(Self::$variant),)*
                    _ => Err(missing()),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl Subcommand for Command {
            fn augment_subcommands(tree: clap::Command) -> clap::Command {
                $($(#[$cfg])* let tree = tree.subcommand(
                    clap::Command::new($name).about($about).defer(|outline| {
                        described(&outline, $module::Args::augment_args(clap::Command::new($name)).about($about))
                    }),
                );)*
                tree
            }

            fn augment_subcommands_for_update(tree: clap::Command) -> clap::Command {
                Self::augment_subcommands(tree)
            }

            fn has_subcommand(name: &str) -> bool {
                match name {
                    $($(#[$cfg])* $name => true,)*
                    _ => false,
                }
            }
        }
    };
}

/// A command with its arguments and what the tree gave its outline: names, and the options of all commands, which come last in its help.
fn described(outline: &clap::Command, mut command: clap::Command) -> clap::Command {
    command = command.args(outline.get_arguments()).styles(HELP_STYLES);
    if let Some(name) = outline.get_bin_name() {
        command = command.bin_name(name);
    }
    match outline.get_display_name() {
        Some(name) => command.display_name(name),
        None => command,
    }
}

commands! {
    Inspect, inspect, "inspect", "Show what a model holds: tensors, parameters, types, shapes, metadata, warnings";
    Tensors, tensors, "tensors", "List the tensors of a model in file order";
    Dump, dump, "dump", "Print the values of a tensor, or write them as CSV or NumPy";
    Check, check, "check", "Validate model files, sharded models and checkpoints";
    Checkpoint, checkpoint, "checkpoint", "List, verify, resume, prune and compare the checkpoints of a training";
    Scan, scan, "scan", "Say what loading model files would run, without running it";
    Diff, diff, "diff", "Compare two models tensor by tensor, and their metadata";
    Compatible, compatible, "compatible", "Say whether a model file may replace another, and why not";
    Convert, convert, "convert", "Rewrite a model: another format, order, alignment, names, metadata, a selection of tensors";
    Export, export, "export", "Write a model for other programs: GGUF, safetensors, or a model folder";
    Quantize, quantize, "quantize", "Make a model smaller: quantize its tensors in blocks of few bits, as GGUF, .apr or safetensors";
    #[cfg(feature = "remote")]
    Get, get, "get", "Copy a model from the Hugging Face hub or another server, verified and resumed";
    #[cfg(feature = "remote")]
    Put, put, "put", "Copy files to an object store: S3, Google Cloud Storage, Azure Blob Storage";
    #[cfg(feature = "remote")]
    Cache, cache, "cache", "List or remove the blocks of URLs that are kept on disk";
    Shard, shard, "shard", "Divide a safetensors or GGUF model into several files";
    Unshard, unshard, "unshard", "Join the shards of a model into one file";
    Batch, batch, "batch", "Run a command for many inputs, on this machine: again where it ended, with a report";
    Plan, plan, "plan", "Divide a command over many inputs, or a large conversion, into tasks for many machines";
    RunTask, run_task, "run-task", "Do a task of a job, once or again";
    Status, status, "status", "Say which tasks of a job are done";
    Finish, finish, "finish", "Put the outputs of a job in their places, and report what happened to each input";
    Abort, abort, "abort", "Remove what a job has stored";
    Train, train, "train", "Train a small model on a table or on texts, and save it as an .apr file";
    Predict, predict, "predict", "Predict each row of a table";
    Score, score, "score", "Measure how well a model predicts a column of a table";
    Distill, distill, "distill", "Train a small model on the predictions of a larger one";
    #[cfg(feature = "bench")]
    Bench, bench, "bench", "Measure what file formats cost: size, time, memory";
    Embed, embed, "embed", "Write a program with the model inside: a cargo project, ready to build";
    Size, size, "size", "Estimate the size of an embedded program, and what each feature adds";
    #[cfg(feature = "serve")]
    Serve, serve, "serve", "Serve predictions over HTTP, with hot reload, limits and metrics";
    Keygen, keygen, "keygen", "Generate a key for opening encrypted models, or for signing them";
    Key, key, "key", "Show the public key and the fingerprint of a key";
    Encrypt, encrypt, "encrypt", "Encrypt a model for recipients or under a password, and sign it";
    Decrypt, decrypt, "decrypt", "Decrypt a model with a recipient's key or a password, and verify its signature";
    Seal, seal, "seal", "Encrypt or sign a model of any format and size, so that single tensors can be read";
    Open, open, "open", "Open a sealed file, or read one tensor of it, verified and decrypted";
    Rekey, rekey, "rekey", "Change for whom a sealed file is encrypted, in place, without rewriting its content";
    License, license, "license", "Show, check or set the license in an .apr model: a label, not a lock";
    Sign, sign, "sign", "Put a signature beside a file or a folder, or inside an .apr model";
    Verify, verify, "verify", "Check the signature of a file or a folder";
    Demo, demo, "demo", "Watch a model being trained, saved, verified, and refused when damaged";
    Explain, explain, "explain", "Explain an error code and what to do about it";
    Completions, completions, "completions", "Print a completion script for a shell", Cli::command();
    Man, man, "man", "Print the manual page of apr, or write the pages of all commands to a folder", Cli::command();
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
    ("cat", "`apr tensors FILE` lists the tensors; `apr dump FILE NAME` prints the values of one"),
    ("download", "`apr get URL -o DIR` keeps a copy; commands read URLs as they are: `apr inspect URL`"),
    ("pull", "`apr get URL -o DIR` keeps a copy; commands read URLs as they are: `apr inspect URL`"),
    ("push", "`apr put FOLDER s3://BUCKET/PREFIX` copies files to an object store"),
    ("upload", "`apr put FOLDER s3://BUCKET/PREFIX` copies files to an object store"),
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

pub(crate) fn is_command(word: &str) -> bool {
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
        let mut pages = Cli::command();
        pages.build();
        let commands = pages.get_subcommands().filter(|page| page.get_name() != "help");
        for page in commands.chain([&pages]) {
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
