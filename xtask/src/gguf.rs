//! `gguf`: gguf-py reads what `gguf-core` writes.

use std::fs;
use std::path::Path;

use crate::process::{command, step};
use crate::python::{self, Packages, environment};
use crate::task::{Outcome, Session, skipped, without_arguments};
use crate::workspace::build_example;

const JUDGE: &str = "xtask/judge_gguf.py";

/// The format's own library.
const PACKAGES: Packages = Packages {
    names: &["gguf==0.19.0"],
    check: "import importlib.metadata as m, gguf; assert m.version('gguf') == '0.19.0'",
    variables: &[],
};

/// Writes samples and lets gguf-py read them, or skips it if it cannot be had.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("gguf", args)?;
    python::require(session)?;
    let folder = session.scratch("gguf");
    let python = environment(session, &folder.join("python"), &PACKAGES)?.map_err(skipped)?;
    let samples = folder.join("samples");
    write_samples(session, "write_samples", &[&samples])?;
    step(command(session, &python, &["-I", JUDGE]).arg(&samples))
}

/// Lets an example of gguf-core write into a folder, the last of its arguments, which is empty then.
pub(crate) fn write_samples(session: &Session, example: &str, args: &[&Path]) -> Outcome {
    // Files of an earlier run would be judged again.
    if let Some(folder) = args.last().filter(|folder| folder.exists()) {
        fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let program = build_example(session, "gguf-core", example)?;
    step(command(session, program, &[]).args(args))
}
