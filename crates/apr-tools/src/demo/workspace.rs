//! The folder the demonstration works in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use durable_file::StagedDir;

use crate::error::{CODE_OUTPUT_EXISTS, Failure};

/// A folder that ends under the name the user wants to keep, or not at all.
pub(super) enum Workspace {
    Kept(StagedDir),
    Temporary(Temporary),
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
            None => Ok(Self::Temporary(Temporary::create()?)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept(staged) => staged.path(),
            Self::Temporary(temporary) => &temporary.path,
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

/// A folder that is removed with everything in it.
pub(super) struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn create() -> Result<Self, Failure> {
        let mut attempt = 0_u32;
        loop {
            let path = std::env::temp_dir().join(format!("apr-demo-{}-{attempt}", process::id()));
            // Made exclusively, so it is this process's own whatever was there before.
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
                Err(error) => return Err(Failure::io("create a temporary folder", &path, &error)),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A temporary folder that does not go away is no reason to fail.
        let _ = fs::remove_dir_all(&self.path);
    }
}
