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
    /// The model, and files that decide with it.
    paths: Vec<PathBuf>,
    seen: Vec<Option<Stamp>>,
    looked: Instant,
    /// When the last file was refused, if it was.
    refused: Option<Instant>,
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
    /// The number of values of a row, their names where both models have them, and which are names of categories; or texts.
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
        Self {
            paths: Vec::new(),
            seen: Vec::new(),
            looked: Instant::now(),
            refused: None,
            interval: Duration::from_secs(1),
            shape: Shape::Keep,
            succession: Succession::Newer,
        }
        .with(path)
    }

    /// Checks another file, too, whose change can make the model one that is taken: its signature.
    #[must_use]
    pub fn with(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(path.into());
        self.seen = self.stamps();
        self
    }

    fn stamps(&self) -> Vec<Option<Stamp>> {
        self.paths.iter().map(|path| Stamp::of(path)).collect()
    }

    /// Whether a file has changed since the last check. A removed model has not.
    pub(crate) fn has_changed(&mut self) -> bool {
        self.looked.elapsed() >= self.interval && self.look()
    }

    /// The same, whenever that was. A model that was refused is tried again, unless that was just now.
    pub(crate) fn look_again(&mut self) -> bool {
        let is_due = self.refused.is_some_and(|refused| refused.elapsed() >= self.interval);
        self.look() || is_due
    }

    fn look(&mut self) -> bool {
        self.looked = Instant::now();
        let found = self.stamps();
        let is_there = found.first().is_some_and(Option::is_some);
        if !is_there || found == self.seen {
            return false;
        }
        self.seen = found;
        true
    }

    /// Remembers whether the model was refused.
    pub(crate) fn set_refused(&mut self, is_refused: bool) {
        self.refused = is_refused.then(Instant::now);
    }

    /// Whether they are still the checked files.
    pub(crate) fn is_as_seen(&self) -> bool {
        self.stamps() == self.seen
    }
}
