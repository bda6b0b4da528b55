//! `conformance` and `bench`: our code next to the reference implementations.

use crate::process::{cargo, command, step};
use crate::task::{Outcome, Session};
use crate::workspace::build_program;

/// Prints the matrix and writes `docs/conformance.md`; with `--check`, fails if the page would change.
pub(crate) fn conformance(session: &mut Session, args: &[String]) -> Outcome {
    let program = build_program(session, "conformance", "conformance")?;
    step(command(session, program, &[]).args(args))
}

/// Measures the rows named in `args` (their first words will do), or all.
pub(crate) fn bench(session: &mut Session, args: &[String]) -> Outcome {
    step(cargo(session, &["bench", "--manifest-path", "benches/Cargo.toml", "--"]).args(args))
}
