//! The files beside a file.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::client::Client;
use crate::error::Error;
use crate::file::RemoteFile;
use crate::place::Place;

/// Requests at once for the beginnings of files.
const AT_ONCE: usize = 8;

/// The files in the folder of a file that names them, such as the shards of an index. Each is opened once and kept.
#[derive(Debug)]
pub struct Folder {
    client: Arc<Client>,
    /// The file itself.
    index: Place,
    opened: Mutex<BTreeMap<String, Arc<RemoteFile>>>,
}

impl Folder {
    /// That of `file`.
    #[must_use]
    pub fn of(client: Arc<Client>, file: &RemoteFile) -> Self {
        Self { client, index: file.place().clone(), opened: Mutex::default() }
    }

    /// The file of a relative name, below the folder.
    ///
    /// # Errors
    ///
    /// [`Outside`](crate::ErrorKind::Outside) for a name that leads out of the folder, and those of [`Client::open`].
    pub fn file(&self, name: &str) -> Result<Arc<RemoteFile>, Error> {
        let known = self.opened.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(file) = known {
            return Ok(file);
        }
        let file = Arc::new(self.client.open(&self.index.beside(name)?)?);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(opened.entry(name.to_owned()).or_insert(file)))
    }

    /// The files that were opened, by name.
    #[must_use]
    pub fn opened(&self) -> Vec<Arc<RemoteFile>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Opens files, 8 at once. The first failure ends it: who opens that file meets it again.
    pub fn prefetch(&self, names: &[String]) {
        at_once(names, |name| self.file(name).is_ok());
    }
}

/// Calls `open` with each of `all`, 8 at once, until it fails for one.
pub fn at_once<T: Sync>(all: &[T], open: impl Fn(&T) -> bool + Sync) {
    let all = Mutex::new(all.iter());
    let next = || all.lock().ok()?.next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = next() {
                    if !open(one) {
                        // No other one is asked for.
                        while next().is_some() {}
                    }
                }
            });
        }
    });
}
