//! A separate folder for each unit test.

use core::sync::atomic::{AtomicU32, Ordering};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// An empty folder, removed on drop.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    pub(crate) fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("durable-file-unit-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    #[cfg(unix)]
    pub(crate) fn names(&self) -> Vec<std::ffi::OsString> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}
