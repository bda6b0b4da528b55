//! A Python with packages of the registry, in a folder of its own.

use std::path::{Path, PathBuf};

use crate::process::{capture, command, display, succeeds};
use crate::task::{Failure, Outcome, Session, skipped};

/// What is missing where there is no Python.
pub(crate) const NEEDED: &str = "needs python3";

/// Python packages of a reference implementation.
#[derive(Debug)]
pub(crate) struct Packages {
    /// As the registry's client takes them, the one that matters first.
    pub(crate) names: &'static [&'static str],
    /// A program that fails unless they are there in the right version.
    pub(crate) check: &'static str,
    /// For the registry's client and what it builds.
    pub(crate) variables: &'static [(&'static str, &'static str)],
}

/// Looks for a Python.
///
/// # Errors
///
/// [`Failure::Skipped`] if there is none.
pub(crate) fn require(session: &Session) -> Outcome {
    if succeeds(&mut command(session, "python3", &["--version"])) { Ok(()) } else { Err(skipped(NEEDED)) }
}

/// The Python with the packages, made in `folder` if it is not there; or why it cannot be had.
pub(crate) fn environment(
    session: &Session,
    folder: &Path,
    packages: &Packages,
) -> Result<Result<PathBuf, String>, Failure> {
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let has_packages =
        || python.exists() && succeeds(&mut command(session, &python, &["-I", "-c", packages.check]));
    if has_packages() {
        return Ok(Ok(python));
    }
    if !succeeds(command(session, "python3", &["-m", "venv"]).arg(folder)) {
        return Ok(Err("needs Python with venv".into()));
    }
    let words =
        ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--retries=2"];
    let mut pip = command(session, &python, &words);
    pip.args(packages.names).envs(packages.variables.iter().copied());
    eprintln!("$ {}", display(&pip));
    let installed = capture(&mut pip)?;
    Ok(if has_packages() {
        Ok(python)
    } else {
        let line = installed.stderr.lines().rev().find(|line| !line.trim().is_empty());
        let name = packages.names.first().unwrap_or(&"a package");
        Err(format!("{name} cannot be installed ({})", line.unwrap_or("no reason given").trim()))
    })
}
