//! The folder of the demonstration.

use std::path::Path;
use std::process;

use durable_file::StagedDir;

use crate::error::{CODE_OUTPUT_EXISTS, Failure};

/// A folder that ends under the name the user wants to keep, or not at all.
pub(super) enum Workspace {
    Kept(StagedDir),
    /// It never gets a name, so it goes with everything in it.
    Temporary(StagedDir),
}

impl Workspace {
    /// A folder that will become `keep`, or a temporary one.
    ///
    /// # Errors
    ///
    /// If `keep` exists or no folder can be made.
    pub(super) fn create(keep: Option<&Path>) -> Result<Self, Failure> {
        match keep {
            Some(path) if path.symlink_metadata().is_ok() => {
                Err(Failure::new(CODE_OUTPUT_EXISTS, "the folder to keep the files in exists")
                    .in_file(path)
                    .help("choose the name of a new folder"))
            }
            Some(path) => Ok(Self::Kept(StagedDir::create(path)?)),
            None => {
                let name = format!("apr-demo-{}", process::id());
                Ok(Self::Temporary(StagedDir::create(&std::env::temp_dir().join(name))?))
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept(staged) | Self::Temporary(staged) => staged.path(),
        }
    }

    /// Gives the folder its name, or removes it.
    ///
    /// # Errors
    ///
    /// If the folder cannot be kept.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Kept(staged) => Ok(staged.commit()?),
            Self::Temporary(_) => Ok(()),
        }
    }
}
