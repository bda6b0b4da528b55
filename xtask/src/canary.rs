//! `canary`: generated files that `apr scan` calls safe do nothing when their loaders read them.

use crate::process::{command, step};
use crate::python::{self, Packages, environment};
use crate::python_package::TORCH;
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::build_apr;

const HARNESS: &str = "xtask/canary/fuzz.py";

/// Default duration.
const SECONDS: u32 = 600;

/// Runs below this many seconds take less time than the large loaders take to be installed: they use these where they are there.
const SHORT: u32 = 300;

/// The loaders that are always there.
const LOADERS: Packages = Packages {
    names: &["numpy", "joblib", "scikit-learn", "jinja2", "PyYAML"],
    check: "import joblib, jinja2, numpy, sklearn, yaml",
    variables: &[],
};

/// The large ones.
const LARGE: [Packages; 2] = [
    Packages { names: TORCH, check: "import torch", variables: &[] },
    Packages {
        names: &["keras"],
        check: "import importlib.metadata as m; m.version('keras')",
        variables: &[],
    },
];

/// Generates and loads files for the number of seconds in `args`, with the seed after it.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let numbers: Option<Vec<u32>> = args.iter().map(|arg| arg.parse().ok()).collect();
    let (seconds, seed) = match numbers.as_deref() {
        Some([]) => (SECONDS, 1),
        Some([seconds]) => (*seconds, 1),
        Some([seconds, seed]) => (*seconds, *seed),
        _ => return Err(Failure::Usage("`canary` takes a number of seconds, and a seed".to_owned())),
    };
    if cfg!(not(target_os = "linux")) {
        return Err(skipped("needs Linux"));
    }
    python::require(session)?;
    let folder = session.scratch("canary");
    let python = environment(session, &folder.join("python"), &LOADERS)?.map_err(skipped)?;
    if seconds >= SHORT {
        for packages in &LARGE {
            if let Err(why) = environment(session, &folder.join("python"), packages)? {
                session.skip("canary of some loaders", why);
            }
        }
    }
    let apr = build_apr(session)?;
    let mut fuzz = command(session, &python, &[HARNESS]);
    fuzz.arg(&apr).args(["--seconds", &seconds.to_string(), "--seed", &seed.to_string(), "--out"]);
    step(fuzz.arg(folder.join("findings")))
}
