//! The end of a job: outputs take their places.

use alloc::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::index;
use super::outcome::OutputFile;
use super::plan::Plan;
use super::record::{Record, Store};
use crate::error::{CODE_JOB_OUTPUT, CODE_USAGE, Failure};
use crate::file_digest::hex_sha256;
use crate::output::{self, Overwrite};

/// What of an output is compared with its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verification {
    Length,
    Digest,
}

/// Puts all outputs in their places. Once it has ended, another call changes nothing.
///
/// # Errors
///
/// If an output is not what its record says, its place is taken, or it cannot be moved; the other outputs can be in their places then.
pub(crate) fn finish(plan: &Plan, records: &[Record], verification: Verification) -> Result<(), Failure> {
    let store = Store::of(plan);
    let moves = records.iter().flat_map(|record| {
        let from = store.attempt(&record.attempt).join("all");
        let outputs = record.results.iter().flat_map(|result| &result.outputs);
        outputs.map(move |output| Move {
            output,
            from: from.join(&output.path),
            to: plan.to().join(&output.path),
        })
    });
    let moves: Vec<Move<'_>> = moves.collect();
    let mut places = BTreeSet::new();
    if let Some(twice) = moves.iter().find(|one| !places.insert(&one.to)) {
        return Err(Failure::new(CODE_USAGE, "two tasks have the same output").in_file(&twice.to));
    }
    // Nothing is moved before all are there, and nothing through a link.
    if !store.is_done() {
        moves.iter().try_for_each(|one| durable_file::check_below(plan.to(), &one.output.path))?;
    }
    moves.iter().try_for_each(|one| one.check(verification, plan.overwrite(), store.is_done()))?;
    if !store.is_done() {
        let mut folders = BTreeSet::new();
        for one in &moves {
            let parent = one.to.parent().unwrap_or(Path::new("."));
            if !folders.contains(parent) {
                fs::create_dir_all(parent)
                    .map_err(|error| Failure::io("create the folder", parent, &error))?;
                let above = parent.ancestors().take_while(|folder| folder.starts_with(plan.to()));
                folders.extend(above.map(Path::to_owned));
            }
            one.perform(plan.overwrite())?;
        }
        folders.iter().try_for_each(|folder| durable_file::sync_dir(folder))?;
        index::write(plan, records)?;
        store.set_done()?;
    }
    store.remove_attempts()
}

struct Move<'r> {
    output: &'r OutputFile,
    from: PathBuf,
    to: PathBuf,
}

impl Move<'_> {
    /// Compares the output, wherever it is, with its record. Another process may move it meanwhile.
    fn check(&self, verification: Verification, overwrite: Overwrite, is_done: bool) -> Result<(), Failure> {
        let is_here = self.from.symlink_metadata().is_ok();
        if is_here && !is_done {
            self.check_place(overwrite)?;
        }
        if is_here && self.is_as_recorded(&self.from, verification)?
            || self.is_as_recorded(&self.to, verification)?
        {
            return Ok(());
        }
        let place = if is_here { &self.from } else { &self.to };
        let what = "an output of the job is not what its task has recorded";
        Err(Failure::new(CODE_JOB_OUTPUT, what).in_file(place).help(
            "put it back; or forget the job, and run it again: apr abort PLAN, with `apr batch` DIR/.apr-job/JOB/plan.json",
        ))
    }

    /// Refuses a place with another file.
    fn check_place(&self, overwrite: Overwrite) -> Result<(), Failure> {
        match output::check_file(&self.to, overwrite) {
            Err(failure) if !self.is_placed()? => Err(failure),
            _ => Ok(()),
        }
    }

    fn perform(&self, overwrite: Overwrite) -> Result<(), Failure> {
        let linked = match overwrite {
            Overwrite::Replace => fs::rename(&self.from, &self.to),
            Overwrite::Refuse => fs::hard_link(&self.from, &self.to),
        };
        match linked {
            Ok(()) => {}
            // By an earlier call that was interrupted, or by another one at this moment.
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
                if !self.is_placed()? {
                    output::check_file(&self.to, overwrite)?;
                    return Err(Failure::io("put the output in place", &self.to, &error));
                }
            }
            Err(error) if overwrite == Overwrite::Replace => {
                return Err(Failure::io("put the output in place", &self.to, &error));
            }
            // A file system without links.
            Err(_) => {
                output::check_file(&self.to, overwrite)?;
                fs::rename(&self.from, &self.to)
                    .map_err(|error| Failure::io("put the output in place", &self.to, &error))?;
            }
        }
        match fs::remove_file(&self.from) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::io("remove it", &self.from, &error))
            }
            _ => Ok(()),
        }
    }

    /// Whether the output is in its place, to the byte.
    fn is_placed(&self) -> Result<bool, Failure> {
        self.is_as_recorded(&self.to, Verification::Digest)
    }

    fn is_as_recorded(&self, place: &Path, verification: Verification) -> Result<bool, Failure> {
        let Ok(entry) = fs::symlink_metadata(place) else { return Ok(false) };
        if !entry.is_file() || entry.len() != self.output.bytes {
            return Ok(false);
        }
        match verification {
            Verification::Length => Ok(true),
            Verification::Digest => Ok(hex_sha256(place, |_| {})? == self.output.sha256),
        }
    }
}
