//! `apr man`: manual pages.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_mangen::Man;

use crate::cli;
use crate::error::{CODE_INTERNAL, Exit, Failure};
use crate::output::{self, Run};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human;

pub(crate) fn command() -> Command {
    Command::new("man")
        .about("Print the manual page of apr, or write the pages of all commands to a folder")
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Folder for apr.1, apr-inspect.1 and so on; it is made if it is missing"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("dir")
                .help("The same as DIR"),
        )
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .after_help(
            "Without DIR, the page of apr itself is printed.\n\n\
             Examples:\n  apr man\n  apr man pages --dry-run\n\n\
             Exit codes: 0 done, 2 a page exists, 5 I/O.",
        )
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
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    match matches.get_one::<PathBuf>("dir").or_else(|| matches.get_one("output")) {
        None => print(console)?,
        Some(dir) => {
            let (overwrite, run) = (output::overwrite(matches), output::run_mode(matches));
            let pages = pages()?;
            let paths: Vec<PathBuf> = pages.iter().map(|page| dir.join(&page.name)).collect();
            paths.iter().try_for_each(|path| output::check_file(path, overwrite))?;
            if run == Run::Write {
                fs::create_dir_all(dir).map_err(|error| Failure::io("create a folder", dir, &error))?;
                pages
                    .iter()
                    .zip(&paths)
                    .try_for_each(|(page, path)| output::write_file(path, &page.roff, overwrite))?;
            }
            report(&pages, dir, run, console)?;
        }
    }
    Ok(Exit::Success)
}

fn print(console: &mut Console) -> Result<(), Failure> {
    let page = page(cli::command(), "apr.1".to_owned())?;
    if console.is_json() {
        return console.json("apr.man/1", |json| {
            json.field_str("page", &page.name)?;
            json.field_str("roff", &String::from_utf8_lossy(&page.roff))
        });
    }
    console.text(|out, _| out.write_all(&page.roff))
}

fn report(pages: &[Page], dir: &std::path::Path, run: Run, console: &mut Console) -> Result<(), Failure> {
    if console.is_json() {
        return console.json("apr.man/1", |json| {
            json.field_str("output", &dir.to_string_lossy())?;
            json.field_bool("written", run == Run::Write)?;
            json.key("pages")?;
            json.array()?;
            for page in pages {
                json.object()?;
                json.field_str("page", &page.name)?;
                json.field_uint("bytes", page.roff.len() as u64)?;
                json.end_object()?;
            }
            json.end_array()
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
fn pages() -> Result<Vec<Page>, Failure> {
    let mut root = cli::command();
    // Gives the commands their full names and the global options.
    root.build();
    let mut pages = vec![page(root.clone(), "apr.1".to_owned())?];
    for sub in root.get_subcommands().filter(|sub| sub.get_name() != "help") {
        pages.push(page(sub.clone(), format!("apr-{}.1", sub.get_name()))?);
    }
    Ok(pages)
}

fn page(command: Command, name: String) -> Result<Page, Failure> {
    let mut roff = Vec::new();
    Man::new(command.version(env!("CARGO_PKG_VERSION")))
        .render(&mut roff)
        .map_err(|error| Failure::new(CODE_INTERNAL, format!("manual page {name}: {error}")))?;
    Ok(Page { name, roff })
}
