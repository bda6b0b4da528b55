//! Packages of npm, in a folder of their own.

use std::fs;
use std::path::Path;

use crate::process::{capture, command, find_tool};
use crate::task::{Failure, Session};

/// Puts what the lock file in `from` names into `to`, if it is not there yet; or says why it cannot be had.
///
/// # Errors
///
/// A failure if npm cannot be started or the folder not be written.
pub(crate) fn install(session: &Session, from: &Path, to: &Path) -> Result<Result<(), String>, Failure> {
    let unusable = |error: std::io::Error| Failure::from(format!("{}: {error}", to.display()));
    let lock = fs::read(from.join("package-lock.json")).map_err(unusable)?;
    // Written when all of it is there.
    let record = to.join("installed.json");
    if fs::read(&record).is_ok_and(|installed| installed == lock) {
        return Ok(Ok(()));
    }
    let Some(npm) = find_tool(session, "npm") else {
        return Ok(Err("needs Node.js 20 with npm".to_owned()));
    };
    fs::create_dir_all(to).map_err(unusable)?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(from.join(name), to.join(name)).map_err(unusable)?;
    }
    let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
    let captured = capture(command(session, npm, &words).current_dir(to))?;
    if !captured.success {
        let reason = captured.stderr.lines().rev().find(|line| !line.trim().is_empty());
        return Ok(Err(format!("npm cannot install it ({})", reason.unwrap_or("no reason given").trim())));
    }
    fs::write(record, lock).map_err(unusable)?;
    Ok(Ok(()))
}
