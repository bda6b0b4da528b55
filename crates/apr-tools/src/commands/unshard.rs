//! `apr unshard`: a sharded model joined into one file.

mod gguf;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use st_core::WriteOptions;

use crate::commands::convert;
use crate::commands::shard::gguf::refuse_options;
use crate::error::{Exit, Failure};
use crate::input::{self, Format, Model, Source};
use crate::output::ending::Ending;
use crate::output::rewrite::{self, Job, Plan};
use crate::output::{self, Destination};
use crate::terminal::Console;

pub(crate) fn command() -> Command {
    Command::new("unshard")
        .about("Join the shards of a model into one file")
        .arg(input::input_arg().value_name("DIR").help("A folder with an index of shards, or the index itself; of GGUF files a shard, or their folder"))
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The new file, or `-` for standard output"),
        )
        .arg(
            Arg::new("no-split-keys")
                .long("no-split-keys")
                .action(ArgAction::SetTrue)
                .help("GGUF: take out the keys about shards, which llama-gguf-split leaves in the file"),
        )
        .arg(input::compat_arg())
        .args(convert::layout_args())
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .after_help(
            "A set whose index and shards do not agree is refused. Metadata is taken from the shards; where they \
             disagree, the first one counts.\n\n\
             Shards of a GGUF model are found by their names: give any of them. The new file is that of llama-gguf-split; with \
             --no-split-keys it is the one that was there before.\n\n\
             Examples:\n  apr unshard sharded -o joined.safetensors --dry-run\n  \
             apr unshard sharded/model.safetensors.index.json -o joined.safetensors\n\n\
             Exit codes: 0 written, 2 FILE exists, 3 the set is not sound, 5 I/O, 6 another format.",
        )
}

/// Runs `apr unshard`.
///
/// # Errors
///
/// If the set cannot be read or is not whole, or the output cannot be written.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(shards) = gguf::shards_of(input::path(matches))? {
        return gguf::run(matches, input::path(matches), &shards, console);
    }
    let rules = input::rules_of(matches);
    refuse_options(matches, &["no-split-keys"], "safetensors files")?;
    let destination = Destination::new(matches.get_one::<PathBuf>("output").expect("clap requires -o"));
    let (overwrite, run) = (output::overwrite(matches), output::run_mode(matches));
    destination.check(overwrite, run, console)?;
    Ending::check_output(&destination, Format::SafeTensors)?;
    let model = Model::of_safetensors(Source::open(input::path(matches))?, &rules)?;
    let options =
        WriteOptions { metadata: rewrite::metadata_of(&model, console)?, ..convert::write_options(matches) };
    let tensors = model.tensors()?;
    let plan = Plan::new(tensors.iter().map(|tensor| (tensor.name(), *tensor)), &options)?;
    let job = Job {
        schema: "apr.unshard/1",
        model: &model,
        destination: &destination,
        overwrite,
        run,
        lost: Vec::new(),
    };
    rewrite::write_and_report(&plan, &job, &options, console)?;
    Ok(Exit::Success)
}
