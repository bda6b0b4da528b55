//! The unfinished files of this process, and their removal by an interrupted program.
//!
//! There are two locks. The gate is held for reading while an unfinished file is created or put in place, and for writing by
//! [`abandon_all`], which never releases it: operations in progress complete first, and none begins afterwards. The table of
//! unfinished names is locked only briefly.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::time::Duration;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread;

use crate::folder::{Entry, Folder};
use crate::temp::discard;

/// Maximum number of completed paths that are remembered.
const MAX_PLACED: usize = 64;
/// Attempts to remove a folder that other threads may still write into, and the time between them.
const FOLDER_ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

static GATE: RwLock<()> = RwLock::new(());
static TABLE: Mutex<Table> =
    Mutex::new(Table { next_id: 0, unfinished: BTreeMap::new(), placed: Vec::new() });

struct Table {
    next_id: u64,
    unfinished: BTreeMap<u64, Unfinished>,
    /// The last files and folders that got their final name, oldest first.
    placed: Vec<PathBuf>,
}

/// A temporary name that must not outlive the process.
#[derive(Debug)]
pub(crate) enum Unfinished {
    File { folder: Arc<Folder>, name: OsString, entry: Entry },
    Folder { path: PathBuf },
}

/// Abandons everything that this process has not finished writing: for a program that was interrupted and ends now.
///
/// Temporary files and staged folders are removed. A commit that has begun to put its file in place is completed first,
/// so that every file is the old or the new one, whole. Afterwards nothing can be created or committed any more: other
/// threads that try block forever. Call it from a separate thread, never from a signal handler, and then exit the process.
///
/// Returns what was put in place since the process began: at most the last 64 files and folders, oldest first.
///
/// # Examples
///
/// ```standalone_crate
/// use std::io::Write as _;
///
/// # let path = std::env::temp_dir().join(format!("durable-file-abandon-{}", std::process::id()));
/// let mut replacement = durable_file::Replacement::create(&path)?;
/// replacement.write_all(b"half of")?;
/// assert!(durable_file::abandon_all().is_empty());
/// assert!(!path.exists());
/// # std::process::exit(0);
/// # #[allow(unreachable_code)]
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[must_use]
pub fn abandon_all() -> Vec<PathBuf> {
    // Neither lock is released again.
    core::mem::forget(GATE.write().unwrap_or_else(PoisonError::into_inner));
    let mut table = lock();
    let unfinished = core::mem::take(&mut table.unfinished);
    for unfinished in unfinished.values() {
        unfinished.remove();
        table.forget_placed_in(unfinished);
    }
    let placed = core::mem::take(&mut table.placed);
    core::mem::forget(table);
    placed
}

/// Permission to create an unfinished file or to put it in place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    _gate: RwLockReadGuard<'static, ()>,
}

/// Blocks forever if the process is ending. A thread that holds a pass must not request another.
pub(crate) fn enter() -> Pass {
    Pass { _gate: GATE.read().unwrap_or_else(PoisonError::into_inner) }
}

/// Remembers that `path` got its new content.
pub(crate) fn placed(_: &Pass, path: PathBuf) {
    let mut table = lock();
    if table.placed.len() == MAX_PLACED {
        table.placed.remove(0);
    }
    table.placed.push(path);
}

/// An entry of the table, removed on drop.
#[derive(Debug)]
pub(crate) struct Registration(u64);

impl Registration {
    /// Enters a name that was created under the same pass.
    pub(crate) fn new(_: &Pass, unfinished: Unfinished) -> Self {
        let mut table = lock();
        let id = table.next_id;
        table.next_id += 1;
        table.unfinished.insert(id, unfinished);
        Self(id)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut table = lock();
        if let Some(unfinished) = table.unfinished.remove(&self.0) {
            table.forget_placed_in(&unfinished);
        }
    }
}

fn lock() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    /// Files that were put in place inside a staged folder exist only if that folder does.
    fn forget_placed_in(&mut self, unfinished: &Unfinished) {
        if let Unfinished::Folder { path } = unfinished {
            self.placed.retain(|placed| !placed.starts_with(path));
        }
    }
}

impl Unfinished {
    fn remove(&self) {
        match self {
            Self::File { folder, name, entry } => {
                let found = folder.entry(name);
                if found.is_ok_and(|found| found.is_some_and(|found| found.same_file(entry) != Some(false))) {
                    discard(folder, name);
                }
            }
            Self::Folder { path } => remove_busy_folder(path),
        }
    }
}

/// Another thread may create files in it at the same time.
fn remove_busy_folder(path: &Path) {
    for _ in 0..FOLDER_ATTEMPTS {
        if fs::remove_dir_all(path).is_ok() || path.symlink_metadata().is_err() {
            return;
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::temp::Temp;
    use crate::test_folder::TestFolder;

    #[test]
    fn a_named_temp_is_removed_and_a_file_that_took_its_name_is_not() {
        let scratch = TestFolder::new();
        let folder = Arc::new(Folder::open(scratch.path()).unwrap());
        let (temp, _) = Temp::named(&folder, "m.bin", &enter()).unwrap();
        let name = temp.name.to_os_string();
        let unfinished = Unfinished::File {
            folder: Arc::clone(&folder),
            name: name.clone(),
            entry: Entry::of(&temp.file).unwrap(),
        };
        assert_eq!(scratch.names().first(), Some(&name));
        unfinished.remove();
        assert!(scratch.names().is_empty());
        drop(folder.create_file(&name).unwrap());
        unfinished.remove();
        assert_eq!(scratch.names(), [name]);
    }

    #[test]
    fn a_folder_that_another_thread_fills_is_removed() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("staged");
        fs::create_dir(&path).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| (0..200).all(|idx| fs::write(path.join(format!("{idx}")), "x").is_ok()));
            remove_busy_folder(&path);
        });
        assert!(!path.exists());
    }

    #[test]
    fn the_last_placed_are_remembered_without_those_in_a_folder_that_is_gone() {
        let pass = enter();
        let staged = Registration::new(&pass, Unfinished::Folder { path: "/staged".into() });
        placed(&pass, "/staged/part".into());
        placed(&pass, "/first".into());
        drop(staged);
        assert!(!lock().placed.contains(&PathBuf::from("/staged/part")));
        (0..MAX_PLACED).for_each(|idx| placed(&pass, format!("/{idx}").into()));
        let placed = &lock().placed;
        assert!(
            placed.len() == MAX_PLACED && !placed.iter().any(|path| path.as_os_str() == OsStr::new("/first"))
        );
    }
}
