//! `apr unshard`: joins a sharded model into one file.

mod gguf;

use std::path::PathBuf;

use st_core::WriteOptions;

use crate::args::{CompatArg, LayoutArgs, WriteArgs};
use crate::commands::shard::gguf::refuse_options;
use crate::error::{Exit, Failure};
use crate::input::{Format, Model, Source};
use crate::output::Output;
use crate::output::ending::Ending;
use crate::output::rewrite::{self, Job, Plan};
use crate::terminal::Console;

const AFTER_HELP: &str = "A set whose index and shards do not agree is refused. Metadata is taken from the shards; where they \
    disagree, the first one counts.\n\n\
    Shards of a GGUF model are found by their names: give any of them. The new file is that of llama-gguf-split; with \
    --no-split-keys it is the one that was there before.\n\n\
    Examples:\n  apr unshard sharded -o joined.safetensors --dry-run\n  \
    apr unshard sharded/model.safetensors.index.json -o joined.safetensors\n\n\
    Exit codes: 0 success, 2 FILE exists, 3 invalid set, 5 I/O, 6 another format.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A folder with an index of shards, or the index itself; of GGUF files a shard, or their folder.
    #[arg(value_name = "DIR")]
    input: PathBuf,
    /// The new file, or `-` for standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// GGUF: take out the keys about shards, which llama-gguf-split leaves in the file.
    #[arg(long)]
    no_split_keys: bool,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// Runs `apr unshard`.
///
/// # Errors
///
/// If the set cannot be read or is not whole, or the output cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(shards) = gguf::shards_of(&args.input)? {
        return gguf::run(args, &shards, console);
    }
    refuse_options(&[("no-split-keys", args.no_split_keys)], "safetensors files")?;
    let Output { destination, overwrite, run } = args.write.output([&args.input], &args.output, console)?;
    Ending::check_output(&destination, Format::SafeTensors)?;
    let model = Model::of_safetensors(Source::open(&args.input)?, &args.compat.rules())?;
    model.tell_notes(console);
    let options = WriteOptions { metadata: rewrite::metadata_of(&model, console)?, ..args.layout.options() };
    let tensors = model.tensors()?;
    let plan = Plan::new(tensors.iter().map(|tensor| (tensor.name(), *tensor)), &options)?;
    let job = Job {
        schema: "apr.unshard/1",
        model: &model,
        destination: &destination,
        overwrite,
        run,
        lost: Vec::new(),
        repaired: Vec::new(),
    };
    rewrite::write_and_report(&plan, &job, &options, console)?;
    Ok(Exit::Success)
}
