//! `lint`: formatting, clippy, the documentation build, and the rules of `tidy`.

use crate::process::{cargo, stdout_of, step};
use crate::task::{Outcome, Session};
use crate::tidy;

/// Workspaces of their own, each with its lock file.
const BESIDE: [&str; 5] =
    ["fuzz", "benches", "benches/candle", "benches/peers", "crates/conformance/firmware"];

/// Runs every check, also after one has failed, and names the failed ones.
pub(crate) fn run(session: &mut Session, _args: &[String]) -> Outcome {
    let mut failed = Vec::new();
    let mut note = |name: &str, outcome: Outcome| {
        if let Err(failure) = outcome {
            failed.push(format!("{name}: {failure}"));
        }
    };
    note("tidy", tidy::check(session));
    note("fmt", step(&mut cargo(session, &["fmt", "--all", "--", "--check"])));
    for beside in BESIDE {
        let manifest = format!("{beside}/Cargo.toml");
        note("fmt", step(&mut cargo(session, &["fmt", "--manifest-path", &manifest, "--", "--check"])));
        let words = ["metadata", "--locked", "--format-version=1", "--manifest-path", &manifest];
        note("lock file", stdout_of(&mut cargo(session, &words)).map(drop));
    }
    // `--locked`: a change of the manifests comes with its lock file.
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"];
    note("clippy", step(&mut cargo(session, &clippy)));
    let doc = ["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"];
    note("doc", step(cargo(session, &doc).env("RUSTDOCFLAGS", "-D warnings")));
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}
