//! `deny` and `mutants`: external tools.

use crate::process::{cargo, command, find_tool, path_with, step, succeeds};
use crate::task::{Outcome, Session, skipped};

/// Licences, duplicate versions and sources of every dependency, by `deny.toml`.
pub(crate) fn deny(session: &mut Session, _args: &[String]) -> Outcome {
    let Some(tool) = find_tool(session, "cargo-deny") else {
        return Err(skipped("needs cargo-deny"));
    };
    // cargo-deny reads the sources for every platform, a build only those for its own.
    if !succeeds(&mut cargo(session, &["fetch", "--locked"])) {
        eprintln!("deny: not everything can be fetched; going on with what is here");
    }
    step(&mut command(session, tool, &["--offline", "check", "bans", "licenses", "sources"]))
}

/// Mutation testing: which small changes of the code the tests of `st-core`, or of the named package, detect.
pub(crate) fn mutants(session: &mut Session, args: &[String]) -> Outcome {
    let Some(tool) = find_tool(session, "cargo-mutants") else {
        return Err(skipped("needs cargo-mutants"));
    };
    let out = session.scratch("");
    let mut command = cargo(session, &["mutants", "--output"]);
    command.env("PATH", path_with(&tool)).arg(out);
    if !args.iter().any(|arg| arg == "--package") {
        command.args(["--package", "st-core"]);
    }
    step(command.args(args))
}
