//! The state of a folder before a save, and the permitted states afterwards.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::reliability::lab::{Content, Ending, Lab, ended};
use crate::task::Failure;

/// The mode of the old file: unlike what any umask would give.
const MODE: u32 = 0o640;
/// Leftovers of a killed writer: a temp and a backup.
const LEFTOVERS: [&str; 2] = [".m.bin.00000000000000ff.df-new", ".m.bin.00000000000000ff.df-old"];

/// A situation in which something is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    /// Over a file.
    Replace,
    /// Where nothing is.
    Fresh,
    /// Where nothing may be.
    Create,
    /// Over a file at the end of a symbolic link.
    Link,
    /// Over a file, with leftovers of a killed writer.
    Leftover,
    /// A folder of files.
    Folder,
}

/// What is at the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// The old content, with the old mode.
    Old,
    /// The new content, with the mode it should have.
    New,
    /// Anything else.
    Torn(String),
}

impl Scene {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Replace, Self::Fresh, Self::Create, Self::Link, Self::Leftover, Self::Folder];

    /// For the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Replace => "over a file",
            Self::Fresh => "where nothing is",
            Self::Create => "`create_new`",
            Self::Link => "through a link",
            Self::Leftover => "beside a dead writer's temps",
            Self::Folder => "a folder",
        }
    }

    /// For the saver.
    pub(crate) const fn mode(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Folder => "folder",
            _ => "replace",
        }
    }

    /// What is at the target before the save.
    pub(crate) const fn before(self) -> Found {
        match self {
            Self::Fresh | Self::Create | Self::Folder => Found::Nothing,
            Self::Replace | Self::Link | Self::Leftover => Found::Old,
        }
    }

    /// The path to give to the saver.
    pub(crate) fn path(self, lab: &Lab) -> PathBuf {
        if self == Self::Link { lab.path("run/link") } else { self.target(lab) }
    }

    /// Where the content arrives.
    pub(crate) fn target(self, lab: &Lab) -> PathBuf {
        lab.path("run/here/m.bin")
    }

    /// Restores the situation.
    pub(crate) fn prepare(self, lab: &Lab, old: &Content) -> Result<(), Failure> {
        let run = lab.clear("run")?;
        self.fill(&run, &self.target(lab), old).map_err(|error| format!("{}: {error}", run.display()).into())
    }

    fn fill(self, run: &Path, target: &Path, old: &Content) -> io::Result<()> {
        fs::create_dir(run.join("here"))?;
        if self.before() == Found::Old {
            fs::write(target, &old.bytes)?;
            fs::set_permissions(target, Permissions::from_mode(MODE))?;
        }
        if self == Self::Link {
            symlink("here/m.bin", run.join("link"))?;
        }
        if self == Self::Leftover {
            fs::write(run.join("here").join(LEFTOVERS[0]), "half")?;
            fs::hard_link(target, run.join("here").join(LEFTOVERS[1]))?;
        }
        Ok(())
    }

    /// What is at the target now.
    pub(crate) fn look(self, lab: &Lab, old: &Content, new: &Content) -> Found {
        let target = self.target(lab);
        if self == Self::Folder {
            return look_at_folder(&target, new);
        }
        if self == Self::Link && !lab.path("run/link").is_symlink() {
            return Found::Torn("the link is gone".to_owned());
        }
        let content = match fs::read(&target) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Torn(error.to_string()),
        };
        let mode = fs::metadata(&target).map_or(0, |found| found.permissions().mode() & 0o7777);
        if self.before() == Found::Old && mode != MODE {
            return Found::Torn(format!("mode {mode:o}"));
        }
        if content == old.bytes {
            Found::Old
        } else if content == new.bytes {
            Found::New
        } else {
            Found::Torn(format!("{} bytes, neither old nor new", content.len()))
        }
    }

    /// Unwanted names beside the target; those that this scene created are not counted.
    pub(crate) fn strangers(self, lab: &Lab) -> Vec<String> {
        let planted = |name: &str| self == Self::Leftover && LEFTOVERS.contains(&name);
        names(&lab.path("run/here")).into_iter().filter(|name| name != "m.bin" && !planted(name)).collect()
    }

    /// Saves once more, undisturbed, and returns what is wrong then: it must remove all leftovers.
    pub(crate) fn recover(self, lab: &Lab, new: &Content) -> Result<Option<String>, Failure> {
        let target = self.target(lab);
        if matches!(self, Self::Create | Self::Folder) {
            // These never replace, so the next save needs the place.
            _ = fs::remove_file(&target);
            _ = fs::remove_dir_all(&target);
        }
        let (ending, _) = ended(lab.save(&self.path(lab), new, self.mode()).spawn())?;
        let left = names(&lab.path("run/here"));
        Ok(if ending != Ending::Saved {
            Some(format!("the next save: {ending:?}"))
        } else if left != ["m.bin"] {
            Some(format!("after the next save there is {left:?}"))
        } else {
            None
        })
    }
}

fn look_at_folder(target: &Path, new: &Content) -> Found {
    if !target.exists() {
        return Found::Nothing;
    }
    let contents = ["content", "inner/content"];
    if names(target) == ["content", "inner"]
        && names(&target.join("inner")) == ["content"]
        && contents.iter().all(|name| fs::read(target.join(name)).is_ok_and(|bytes| bytes == new.bytes))
    {
        Found::New
    } else {
        Found::Torn("the folder is not whole".to_owned())
    }
}

/// Sorted names in a folder; for one that cannot be listed, a name that no test expects.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return vec!["(cannot be listed)".to_owned()] };
    let mut names: Vec<_> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
