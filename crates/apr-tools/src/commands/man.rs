//! `apr man`: manual pages.

use alloc::borrow::Cow;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use serde::Serialize;

use crate::args::WriteArgs;
use crate::error::{CODE_INTERNAL, CODE_OUTPUT_KIND, CODE_USAGE, Exit, Failure};
use crate::output::{self, Run};
use crate::remote;
use crate::report;
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human;

const AFTER_HELP: &str = "Without DIR, the page of apr itself is printed.\n\n\
    Examples:\n  apr man\n  apr man pages --dry-run\n\n\
    Exit codes: 0 success, 2 a page exists, 5 I/O.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Folder for apr.1, apr-inspect.1 and so on; created if missing.
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The same as DIR.
    #[arg(short, long, value_name = "DIR", conflicts_with = "dir")]
    output: Option<PathBuf>,
    #[command(flatten)]
    write: WriteArgs,
}

/// The page of `apr` itself.
#[derive(Serialize)]
struct PageReport<'a> {
    page: &'a str,
    roff: Cow<'a, str>,
}

impl report::Report for PageReport<'_> {
    const SCHEMA: &'static str = "apr.man/1";
}

/// The pages of a folder.
#[derive(Serialize)]
struct PagesReport<'a> {
    output: Cow<'a, str>,
    written: bool,
    pages: Vec<PageLen<'a>>,
}

#[derive(Serialize)]
struct PageLen<'a> {
    page: &'a str,
    bytes: usize,
}

impl report::Report for PagesReport<'_> {
    const SCHEMA: &'static str = "apr.man/1";
}

/// One manual page.
struct Page {
    name: String,
    roff: Vec<u8>,
}

/// Runs `apr man`.
///
/// # Errors
///
/// If a page exists and may not be replaced, or cannot be written.
pub(crate) fn run(args: &Args, command: Command, console: &mut Console) -> Result<Exit, Failure> {
    match args.dir.as_deref().or(args.output.as_deref()) {
        None => print(command, console)?,
        Some(dir) => {
            remote::refuse_folder(dir)?;
            if dir.is_file() {
                return Err(
                    Failure::new(CODE_OUTPUT_KIND, "the output exists and is not a folder").in_file(dir)
                );
            }
            refuse_command(args.dir.as_deref(), &command)?;
            let (overwrite, run) = (args.write.overwrite(), args.write.run());
            let pages = pages(command)?;
            let paths: Vec<PathBuf> = pages.iter().map(|page| dir.join(&page.name)).collect();
            paths.iter().try_for_each(|path| output::check_file(path, overwrite))?;
            if run == Run::Write {
                fs::create_dir_all(dir).map_err(|error| Failure::io("create a folder", dir, &error))?;
                pages
                    .iter()
                    .zip(&paths)
                    .try_for_each(|(page, path)| output::write_file(path, &page.roff, overwrite))?;
            }
            tell(&pages, dir, run, console)?;
        }
    }
    Ok(Exit::Success)
}

/// Refuses the name of a command as DIR: its page is wanted, not a folder of all pages.
fn refuse_command(dir: Option<&Path>, command: &Command) -> Result<(), Failure> {
    let name = dir.and_then(Path::to_str).filter(|name| command.find_subcommand(name).is_some());
    let Some(name) = name else { return Ok(()) };
    let failure =
        Failure::new(CODE_USAGE, format!("`{name}` is a command, and all pages are written to a folder"));
    Err(failure.help(format!(
        "read about the command with `apr {name} --help`; for a folder of this name write `apr man ./{name}`"
    )))
}

fn print(command: Command, console: &mut Console) -> Result<(), Failure> {
    let page = page(command, "apr.1".to_owned())?;
    if console.is_json() {
        return console.report(&PageReport { page: &page.name, roff: String::from_utf8_lossy(&page.roff) });
    }
    console.text(|out, _| out.write_all(&page.roff))
}

fn tell(pages: &[Page], dir: &Path, run: Run, console: &mut Console) -> Result<(), Failure> {
    if console.is_json() {
        let pages = pages.iter().map(|page| PageLen { page: &page.name, bytes: page.roff.len() });
        return console.report(&PagesReport {
            output: report::path(dir),
            written: run == Run::Write,
            pages: pages.collect(),
        });
    }
    let place = escape::path(dir);
    match run {
        Run::Write => {
            console.wrote(format_args!("{} to {place}", human::plural(pages.len() as u64, "page")));
            Ok(())
        }
        Run::Dry => console.text(|out, _| {
            writeln!(out, "would write to {place}:")?;
            pages.iter().try_for_each(|page| {
                writeln!(out, "  {}  {}", page.name, human::bytes(page.roff.len() as u64))
            })
        }),
    }
}

/// The page of `apr` and of each command.
fn pages(mut root: Command) -> Result<Vec<Page>, Failure> {
    // Gives the commands their full names and the global options.
    root.build();
    let mut pages = vec![page(root.clone(), "apr.1".to_owned())?];
    below(&root, "apr", &mut pages)?;
    Ok(pages)
}

/// The pages of the commands of a command, and of theirs.
fn below(command: &Command, name: &str, pages: &mut Vec<Page>) -> Result<(), Failure> {
    let shown = |sub: &&Command| sub.get_name() != "help" && !sub.is_hide_set();
    for sub in command.get_subcommands().filter(shown) {
        let name = format!("{name}-{}", sub.get_name());
        pages.push(page(sub.clone(), format!("{name}.1"))?);
        below(sub, &name, pages)?;
    }
    Ok(())
}

fn page(command: Command, name: String) -> Result<Page, Failure> {
    let mut roff = Vec::new();
    Man::new(command.version(env!("CARGO_PKG_VERSION")))
        .render(&mut roff)
        .map_err(|error| Failure::new(CODE_INTERNAL, format!("manual page {name}: {error}")))?;
    Ok(Page { name, roff })
}
