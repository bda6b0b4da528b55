//! Watches the file of a model for changes.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use crate::model::Model;
use crate::succession::{Rollback, Succession};

/// A file whose changes replace the model.
///
/// Changes are detected by device, inode, length and times, checked once a second. Make one *before* the model is loaded for
/// the first time: a change in between is noticed then.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    seen: Option<Stamp>,
    looked: Instant,
    /// How often to look.
    pub interval: Duration,
    /// Whether another model may take other inputs.
    pub shape: Shape,
    /// Whether a signed model may take over from a newer one.
    pub succession: Succession,
}

/// Whether a new model must have the same input as the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The number of values of a row, or texts.
    #[default]
    Keep,
    /// Anything.
    MayChange,
}

/// What happened while a server ran.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e, E> {
    /// The model was replaced.
    Reloaded {
        /// It.
        model: &'e Model,
        /// Its number, counted from 1.
        load_count: u64,
    },
    /// The file changed and contains no model that can be served; the old one stays.
    NotLoaded(E),
    /// The file changed, and its model takes something else.
    OtherShape {
        /// The input of the old one.
        expected: String,
        /// The input of the new one.
        found: String,
    },
    /// The file changed, and its signed model must not take over from the one that is served.
    RolledBack(Rollback),
    /// The server stops; so many connections are open.
    Draining {
        /// Connections.
        open: usize,
    },
}

/// Identity of a file, to detect a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// Device and inode; seconds and nanoseconds of the change.
    place: [i128; 4],
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        Some(Self { len: meta.len(), modified: meta.modified().ok(), place: place(&meta) })
    }
}

#[cfg(unix)]
fn place(meta: &fs::Metadata) -> [i128; 4] {
    use std::os::unix::fs::MetadataExt as _;
    [meta.dev().into(), meta.ino().into(), meta.ctime().into(), meta.ctime_nsec().into()]
}

#[cfg(not(unix))]
fn place(_meta: &fs::Metadata) -> [i128; 4] {
    [0; 4]
}

impl Watch {
    /// Checks a file, or a folder whose entry changes.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let seen = Stamp::of(&path);
        Self {
            path,
            seen,
            looked: Instant::now(),
            interval: Duration::from_secs(1),
            shape: Shape::Keep,
            succession: Succession::Newer,
        }
    }

    /// Whether the file has changed since the last check. A removed file has not.
    pub(crate) fn has_changed(&mut self) -> bool {
        if self.looked.elapsed() < self.interval {
            return false;
        }
        self.look()
    }

    /// The same, whenever that was.
    pub(crate) fn look(&mut self) -> bool {
        self.looked = Instant::now();
        let found = Stamp::of(&self.path);
        if found.is_none() || found == self.seen {
            return false;
        }
        self.seen = found;
        true
    }

    /// Whether it is still the checked file.
    pub(crate) fn is_as_seen(&self) -> bool {
        Stamp::of(&self.path) == self.seen
    }
}
