//! `scanners`: `apr scan` and other scanners of model files on the same files.

use std::fs;

use crate::process::{command, step};
use crate::python::{self, Packages, environment};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::build_release;

const HARNESS: &str = "xtask/scanners.py";

/// Files with sidecars that say which verdicts are right.
const VECTORS: &str = "crates/conformance/vectors/import";

/// Default number of scans of the large file.
const ROUNDS: &str = "21";

const PACKAGES: Packages = Packages {
    // fickling imports `typing_extensions` without declaring it; modelscan needs `h5py` for HDF5.
    names: &[
        "picklescan==1.0.5",
        "fickling==0.1.12",
        "modelscan==0.8.8",
        "h5py==3.16.0",
        "typing_extensions",
    ],
    check: "import importlib.metadata as m, fickling, h5py\n\
        assert [m.version(name) for name in ('picklescan', 'fickling', 'modelscan')] == ['1.0.5', '0.1.12', '0.8.8']",
    variables: &[],
};

/// Compares verdicts and times, or skips it if there is no Python with the packages.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let rounds = match args {
        [] => ROUNDS,
        [rounds] if rounds.parse::<u32>().is_ok_and(|rounds| rounds > 0) => rounds.as_str(),
        _ => return Err(Failure::Usage("`scanners` takes a number of rounds".to_owned())),
    };
    if cfg!(not(target_os = "linux")) {
        return Err(skipped("needs Linux"));
    }
    python::require(session)?;
    let folder = session.scratch("scanners");
    let python = environment(session, &folder.join("python"), &PACKAGES)?.map_err(skipped)?;
    let apr = build_release(session)?;
    let files = folder.join("files");
    fs::create_dir_all(&files).map_err(|error| format!("{}: {error}", files.display()))?;
    let vectors = session.root().join(VECTORS);
    step(command(session, &python, &["-I", HARNESS]).args([&apr, &vectors, &files]).arg(rounds))
}
