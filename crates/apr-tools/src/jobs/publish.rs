//! The end of a job: outputs take their places.

use alloc::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::index;
use super::outcome::OutputFile;
use super::plan::Plan;
use super::record::{Record, Store};
use crate::error::{CODE_JOB_OUTPUT, Failure};
use crate::file_digest::sha256;
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
    // Nothing is moved before all are there.
    moves.iter().try_for_each(|one| one.check(verification, plan.overwrite(), store.is_done()))?;
    if store.is_done() {
        return Ok(());
    }
    let mut folders = BTreeSet::new();
    for one in &moves {
        one.perform(plan.overwrite())?;
        folders.extend(one.to.parent().map(Path::to_owned));
    }
    for folder in folders {
        durable_file::sync_dir(&folder)?;
    }
    index::write(plan, records)?;
    store.set_done()?;
    store.remove_attempts()
}

struct Move<'r> {
    output: &'r OutputFile,
    from: PathBuf,
    to: PathBuf,
}

impl Move<'_> {
    /// Compares the output, wherever it is, with its record.
    fn check(&self, verification: Verification, overwrite: Overwrite, is_done: bool) -> Result<(), Failure> {
        let is_here = self.from.symlink_metadata().is_ok();
        if is_here && !is_done && !self.is_placed()? {
            output::check_file(&self.to, overwrite)?;
        }
        let place = if is_here { &self.from } else { &self.to };
        match self.is_as_recorded(place, verification)? {
            true => Ok(()),
            false => {
                Err(Failure::new(CODE_JOB_OUTPUT, "an output of the job is not what its task has recorded")
                    .in_file(place))
            }
        }
    }

    fn perform(&self, overwrite: Overwrite) -> Result<(), Failure> {
        if self.from.symlink_metadata().is_err() {
            return Ok(());
        }
        let parent = self.to.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(|error| Failure::io("create the folder", parent, &error))?;
        let moving = |error| Failure::io("put in place", &self.to, &error);
        if overwrite == Overwrite::Replace {
            return fs::rename(&self.from, &self.to).map_err(moving);
        }
        match fs::hard_link(&self.from, &self.to) {
            Ok(()) => {}
            // By an earlier call that was interrupted, or by someone else.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if !self.is_placed()? {
                    return output::check_file(&self.to, overwrite);
                }
            }
            // A file system without links.
            Err(_) => {
                output::check_file(&self.to, overwrite)?;
                return fs::rename(&self.from, &self.to).map_err(moving);
            }
        }
        fs::remove_file(&self.from).map_err(|error| Failure::io("remove", &self.from, &error))
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
            Verification::Digest => {
                Ok(base16ct::lower::encode_string(&sha256(place, |_| {})?) == self.output.sha256)
            }
        }
    }
}
