//! Runs the matrix; see the library.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, panic};

use conformance::matrix::Suite;
use conformance::vectors::{Vectors, folder, text};
use conformance::{apr, gguf, huge, judge, official, reading, sharded, slices};

const USAGE: &str = "\
usage: conformance [--check] [--huge]    run the matrix, write docs/conformance.md
       conformance judge FILE...         print the sidecars of new vectors

  --check   do not write; fail if docs/conformance.md differs from what would be written
  --huge    also run the headers of 40 to 100 MB (half a minute in a release build, 1 GiB); not on the page";

const INTRO: &str = "\
# Conformance

Written by `cargo run -p conformance`; do not edit. Each cell counts the vectors for which a reader or
writer gave the result that the sidecar of the vector in `crates/conformance/vectors` expects, and shows that result. Any other
result fails the run, so every cell on this page is as expected. Headers of 40 to 100 MB are generated and tested by
`cargo run --release -p conformance -- --huge`.

Where strict and compat differ, the field `strict` of the sidecar has the result of the strict reader.
[README.md](../crates/conformance/README.md) describes the sidecars and how to add a vector.
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
        ["judge", files @ ..] if !files.is_empty() => print_sidecars(files),
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
    let ran = Vectors::load().and_then(|vectors| Ok((suites(&vectors)?, vectors)));
    let (suites, vectors) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = show(&suites);
    let page = page(&suites);
    if with_huge {
        failed |= show(&[huge::suite(&vectors)]);
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
fn suites(vectors: &Vectors) -> Result<Vec<Suite>, conformance::vectors::Error> {
    let mut suites = vec![reading::suite(vectors)?, slices::suite(vectors)?, sharded::suite(vectors)?];
    let vectors = apr::vectors::Vectors::load()?;
    suites.extend([
        apr::v1::suite(&vectors)?,
        apr::protected::suite(&vectors)?,
        apr::models::suite(&vectors)?,
        apr::exports::suite(&vectors)?,
        apr::v2::suite(&vectors)?,
        apr::hostile::suite(&vectors)?,
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

/// Prints the sidecars of files, as far as the official crate and our readers know them, to be reviewed and kept.
fn print_sidecars(files: &[&str]) -> ExitCode {
    for file in files {
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::FAILURE;
            }
        };
        let sidecar = match relative(file).split_once('/') {
            Some(("hostile", _)) => apr::hostile::sidecar(&bytes),
            Some(("files" | "parser", _)) => gguf::sidecar(&bytes),
            _ => judge::sidecar(&bytes),
        };
        print!("{}", sidecar.as_object().map(text).unwrap_or_default());
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
