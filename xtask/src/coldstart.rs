//! `coldstart`: programs of `apr embed` from start to first prediction, compared with Python and scikit-learn.

use std::fs;

use crate::process::{command, step};
use crate::python::{self, Packages, environment};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::{Workspace, build_apr};

const HARNESS: &str = "xtask/coldstart.py";

/// Default number of starts of each program.
const ROUNDS: &str = "40";

const PACKAGES: Packages = Packages {
    names: &["scikit-learn==1.9.1", "numpy"],
    check: "import importlib.metadata as m, sklearn; assert m.version('scikit-learn') == '1.9.1'",
    variables: &[],
};

/// Builds the programs, trains the models and measures, or skips it if there is no Python with the packages.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let rounds = match args {
        [] => ROUNDS,
        [rounds] if rounds.parse::<u32>().is_ok_and(|rounds| rounds > 0) => rounds.as_str(),
        _ => return Err(Failure::Usage("`coldstart` takes a number of starts".to_owned())),
    };
    python::require(session)?;
    let folder = session.scratch("coldstart");
    let python = environment(session, &folder.join("python"), &PACKAGES)?.map_err(skipped)?;
    let (apr, models) = (build_apr(session)?, folder.join("models"));
    fs::create_dir_all(&models).map_err(|error| format!("{}: {error}", models.display()))?;
    let target = Workspace::load(session, "Cargo.toml")?.target_dir.join("coldstart");
    let root = session.root().to_owned();
    step(command(session, &python, &["-I", HARNESS]).args([&apr, &root, &models, &target]).arg(rounds))
}
