//! Runs the matrix; see the library.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, panic};

use conformance::manifest::{Manifest, folder};
use conformance::matrix::Suite;
use conformance::{apr, gguf, huge, judge, official, reading, sharded, slices};

const USAGE: &str = "\
usage: conformance [--check] [--huge]    run the matrix, write docs/conformance.md
       conformance judge FILE...         print manifest entries of new vectors

  --check   do not write; fail if docs/conformance.md differs from what would be written
  --huge    also run the headers of 40 to 100 MB (half a minute in a release build, 1 GiB); not on the page";

const INTRO: &str = "\
# Conformance

Written by `cargo run -p conformance`; do not edit. Each cell counts the vectors for which a reader or
writer gave the result that the manifest in `crates/conformance/vectors` expects, and shows that result. Any other
result fails the run, so every cell on this page is as expected. Headers of 40 to 100 MB are generated and tested by
`cargo run --release -p conformance -- --huge`.

Where strict and compat differ, `verdicts.json` next to the vectors has the result of the strict reader.

## Adding a vector

1. Put the file into `crates/conformance/vectors/safetensors/own/valid` or `own/invalid`; a malicious `.apr`
   file into `vectors/apr/hostile`, with a name that begins with `own_`; a GGUF file into `vectors/gguf/parser`.
2. `cargo run -p conformance -- judge FILE` prints its two entries: what the file is, for `OWN.json` (`.apr`: the list `hostile` of
   `manifest.json`), and the result of our reader, for `verdicts.json`. Review them: each reader can be wrong, ours too.
   The entry of a malicious file needs two more fields: what a reader should do, and why.
3. `cargo run -p conformance` writes this page; `cargo test -p conformance` also checks the heap bound.

Files of reference implementations are not added by hand: `vectors/apr/make_manifest.py` copies them with the facts that their
writer recorded, and keeps the entries of `own_` files. An unlisted file, or one with another digest, fails the tests.
";

fn main() -> ExitCode {
    // The official crate's panics are judged, not reported.
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !official::is_running() {
            report(info);
        }
    }));

    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["judge", files @ ..] if !files.is_empty() => print_entries(files),
        flags if flags.iter().all(|flag| ["--check", "--huge"].contains(flag)) => {
            run(flags.contains(&"--check"), flags.contains(&"--huge"))
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(check: bool, with_huge: bool) -> ExitCode {
    let ran = Manifest::load().and_then(|manifest| Ok((suites(&manifest)?, manifest)));
    let (suites, manifest) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = show(&suites);
    let page = page(&suites);
    if with_huge {
        failed |= show(&[huge::suite(&manifest)]);
    }
    let path = page_path();
    if failed {
        eprintln!("{} is left as it is", path.display());
    } else if !check {
        if let Err(error) = fs::write(&path, &page) {
            eprintln!("{}: {error}", path.display());
            failed = true;
        }
    } else if fs::read(&path).ok().as_deref() != Some(page.as_bytes()) {
        eprintln!("{} is not up to date: run `cargo run -p conformance`", path.display());
        failed = true;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Every table of the page; a format adds its own here.
fn suites(manifest: &Manifest) -> Result<Vec<Suite>, conformance::manifest::Error> {
    let mut suites = vec![reading::suite(manifest)?, slices::suite(manifest)?, sharded::suite(manifest)?];
    let manifest = apr::manifest::Manifest::load()?;
    suites.extend([
        apr::v1::suite(&manifest)?,
        apr::protected::suite(&manifest)?,
        apr::models::suite(&manifest)?,
        apr::exports::suite(&manifest)?,
        apr::v2::suite(&manifest)?,
        apr::hostile::suite(&manifest)?,
        gguf::suite()?,
    ]);
    Ok(suites)
}

/// Prints tables and what is wrong in them; returns whether anything is.
fn show(suites: &[Suite]) -> bool {
    let mut wrong = false;
    for suite in suites {
        println!("{suite}");
        for failure in suite.failures() {
            eprintln!("wrong: {failure}");
            wrong = true;
        }
    }
    wrong
}

fn page(suites: &[Suite]) -> String {
    let tables: Vec<String> = suites.iter().map(ToString::to_string).collect();
    format!("{INTRO}\n{}", tables.join("\n"))
}

fn page_path() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    root.join("docs").join("conformance.md")
}

/// Prints what the official crate and ours say about files, in the manifests' form, to be reviewed and kept.
fn print_entries(files: &[&str]) -> ExitCode {
    for file in files {
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::FAILURE;
            }
        };
        let name = relative(file);
        let entries = match name.split_once('/') {
            Some(("hostile", _)) => apr::hostile::entries(&name, &bytes),
            Some(("files" | "parser", _)) => gguf::entries(&name, &bytes),
            _ => judge::entries(&name, &bytes),
        };
        for entry in entries {
            println!("{entry}");
        }
    }
    ExitCode::SUCCESS
}

fn relative(file: &str) -> String {
    let full = fs::canonicalize(file).unwrap_or_else(|_| file.into());
    let short = ["safetensors", "apr", "gguf"].into_iter().find_map(|format| {
        let base = fs::canonicalize(folder(format)).ok()?;
        full.strip_prefix(base).map(Path::to_owned).ok()
    });
    short.unwrap_or(full).to_string_lossy().into_owned()
}
