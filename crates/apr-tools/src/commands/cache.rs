//! `apr cache`: the blocks of URLs that are kept on disk.

use alloc::borrow::Cow;
use core::time::Duration;
use std::io::Write as _;
use std::time::UNIX_EPOCH;

use apr_remote::{BlockCache, CachedObject, Removed};
use serde::Serialize;

use crate::error::{CODE_IO, Exit, Failure};
use crate::remote;
use crate::report::{self, Report};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{self, plural, unix_time};
use crate::terminal::table::{Align, Table};

const AFTER_HELP: &str = "Commands keep what they read of URLs with --block-cache or APR_BLOCK_CACHE=1; nothing is kept otherwise. The folder is APR_BLOCK_CACHE, \
    else apr/blocks in the user's folder of caches.\n\n\
    Examples:\n  apr cache list\n  apr cache clear --older-than 30\n\n\
    Exit codes: 0 success, 2 usage, or others can write into the folder, 5 I/O.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Debug, clap::Subcommand)]
enum CacheCommand {
    List(ListArgs),
    Clear(ClearArgs),
}

const LIST_AFTER_HELP: &str = "Sizes are those on disk. An object that is read again within an hour keeps its time.\n\n\
    Examples:\n  apr cache list\n  apr cache list --json\n\n\
    Exit codes: 0 success, 2 others can write into the folder, 5 I/O.";

/// List the objects of which blocks are kept, and their sizes.
#[derive(Debug, clap::Args)]
#[command(after_help = LIST_AFTER_HELP)]
struct ListArgs {}

const CLEAR_AFTER_HELP: &str = "Files that are not of this cache stay. Commands that are running request again what they need.\n\n\
    Examples:\n  apr cache clear\n  apr cache clear --older-than 30\n\n\
    Exit codes: 0 success, 2 usage, or others can write into the folder, 5 I/O.";

/// Remove all blocks, or those that were not used for some days.
#[derive(Debug, clap::Args)]
#[command(after_help = CLEAR_AFTER_HELP)]
struct ClearArgs {
    /// Only what was not used for so many days.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    older_than: Option<u32>,
}

#[derive(Serialize)]
struct ListReport<'a> {
    folder: Cow<'a, str>,
    limit: u64,
    blocks: u64,
    bytes: u64,
    objects: Vec<ObjectReport<'a>>,
}

#[derive(Serialize)]
struct ObjectReport<'a> {
    url: Option<&'a str>,
    blocks: u64,
    bytes: u64,
    used_unix: u64,
}

impl<'a> ObjectReport<'a> {
    fn of(object: &'a CachedObject) -> Self {
        let CachedObject { url, blocks, bytes, .. } = object;
        Self { url: url.as_deref(), blocks: *blocks, bytes: *bytes, used_unix: used(object) }
    }
}

/// In seconds since 1970.
fn used(object: &CachedObject) -> u64 {
    object.used.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

impl Report for ListReport<'_> {
    const SCHEMA: &'static str = "apr.cache/1";
}

#[derive(Serialize)]
struct ClearReport<'a> {
    folder: Cow<'a, str>,
    blocks: u64,
    bytes: u64,
    remaining: u64,
}

impl Report for ClearReport<'_> {
    const SCHEMA: &'static str = "apr.cache-clear/1";
}

/// Runs `apr cache`.
///
/// # Errors
///
/// If the folder cannot be read, or others can write into it.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let cache = remote::block_cache()?;
    let in_folder = |error: apr_remote::Error| Failure::from(error).in_file(cache.folder());
    match &args.command {
        CacheCommand::List(ListArgs {}) => list(&cache, &cache.list().map_err(in_folder)?, console)?,
        CacheCommand::Clear(ClearArgs { older_than }) => {
            let days = older_than.map_or(0, |days| u64::from(days) * 86_400);
            let removed = cache.clear(Duration::from_secs(days)).map_err(in_folder)?;
            let Removed { blocks, bytes, remaining } = removed;
            if console.is_json() {
                let folder = report::path(cache.folder());
                console.report(&ClearReport { folder, blocks, bytes, remaining })?;
            } else {
                let (blocks, bytes) = (plural(blocks, "block"), human::bytes(bytes));
                let folder = escape::path(cache.folder());
                console.text(|out, _| writeln!(out, "{folder}: {blocks} removed, {bytes}"))?;
            }
            if remaining > 0 {
                if console.is_json() {
                    return Ok(Exit::Io);
                }
                let what = format!("{} could not be removed", plural(remaining, "file"));
                let failure = Failure::new(CODE_IO, what).in_file(cache.folder());
                return Err(failure.help("give this user the right to write the folders below, and repeat"));
            }
        }
    }
    Ok(Exit::Success)
}

fn list(cache: &BlockCache, objects: &[CachedObject], console: &mut Console) -> Result<(), Failure> {
    let blocks = objects.iter().map(|object| object.blocks).sum();
    let bytes = objects.iter().map(|object| object.bytes).sum();
    if console.is_json() {
        let folder = report::path(cache.folder());
        let objects = objects.iter().map(ObjectReport::of).collect();
        return console.report(&ListReport { folder, limit: cache.limit(), blocks, bytes, objects });
    }
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Left]);
    table.row(["OBJECT", "BLOCKS", "SIZE", "USED"]);
    for object in objects {
        let url = object.url.as_deref().map_or_else(|| "unknown".to_owned(), escape::escaped);
        table.row([url, human::grouped(object.blocks), human::bytes(object.bytes), unix_time(used(object))]);
    }
    console.text(|out, style| {
        let count = plural(objects.len() as u64, "object");
        let (blocks, size) = (plural(blocks, "block"), human::bytes(bytes));
        let folder = style.bold(&escape::path(cache.folder()));
        writeln!(out, "{folder}: {count}, {blocks}, {size} of at most {}", human::bytes(cache.limit()))?;
        let mut lines = table.lines().into_iter();
        if let Some(head) = lines.next().filter(|_| !objects.is_empty()) {
            writeln!(out, "\n{}", style.bold(&head))?;
        }
        lines.try_for_each(|line| writeln!(out, "{line}"))
    })
}
