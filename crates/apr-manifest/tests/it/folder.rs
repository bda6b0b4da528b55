//! Folders that go away with their test, and the vectors.

use std::fs;
use std::path::{Path, PathBuf};

use apr_crypto::p256::{SigningKey, VerifyingKey};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("apr-manifest-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// With the files of a folder among the vectors.
    pub(crate) fn copy_of(source: &str, name: &str) -> Self {
        let folder = Self::new(name);
        copy(&vector(source), &folder.0);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

pub(crate) fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/signatures").join(name)
}

pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(vector(name)).unwrap()
}

pub(crate) fn public_key() -> VerifyingKey {
    VerifyingKey::from_pem(&text("p256.pub")).unwrap()
}

pub(crate) fn secret_key() -> SigningKey {
    SigningKey::from_pem(&text("p256.pem")).unwrap()
}
