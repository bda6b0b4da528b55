//! Sidecars: beside each vector a JSON object with what is known about it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::field::{Field, Missing};
use super::{Error, folder, json};

/// What the name of a sidecar adds to the name of its vector.
pub const SUFFIX: &str = ".vector.json";

/// What is known about a vector.
#[derive(Clone, Debug)]
pub struct Sidecar {
    /// Path of the vector below the folder of its format.
    pub vector: String,
    /// Where the sidecar lies.
    pub path: PathBuf,
    /// Its fields.
    pub facts: Value,
}

impl Sidecar {
    /// Reads the fields.
    pub(crate) fn read<T>(&self, read: impl Fn(&Field<'_>) -> Result<T, Missing>) -> Result<T, Error> {
        read(&Field::root(&self.facts)).map_err(|missing| Error::missing(self.path.clone(), missing))
    }

    /// Changes a field, and writes the sidecar if that changes it.
    ///
    /// # Errors
    ///
    /// [`Error`] if the sidecar is no object or cannot be written.
    pub fn set(&mut self, key: &str, value: &Value) -> Result<(), Error> {
        let Some(facts) = self.facts.as_object_mut() else {
            return Err(Error::missing(self.path.clone(), Missing(String::new())));
        };
        if facts.insert(key.to_owned(), value.clone()).as_ref() == Some(value) {
            return Ok(());
        }
        fs::write(&self.path, text(facts)).map_err(|error| Error::io(self.path.clone(), error))
    }
}

/// The sidecars of a format, sorted by the names of their vectors.
///
/// # Errors
///
/// [`Error`] if a folder or a sidecar cannot be read.
///
/// # Examples
///
/// ```
/// let sidecars = conformance::vectors::sidecars("gguf")?;
/// assert!(sidecars.iter().any(|sidecar| sidecar.vector == "parser/bad_magic.gguf"));
/// # Ok::<(), conformance::vectors::Error>(())
/// ```
pub fn sidecars(format: &str) -> Result<Vec<Sidecar>, Error> {
    let root = folder(format);
    let mut found = Vec::new();
    collect(&root, "", &mut found).map_err(|error| Error::io(root.clone(), error))?;
    found.sort_unstable();
    let sidecar = |vector: String| {
        let path = root.join(format!("{vector}{SUFFIX}"));
        Ok(Sidecar { facts: json(&path)?, vector, path })
    };
    found.into_iter().map(sidecar).collect()
}

/// Adds the vectors of a folder that have a sidecar. A folder with a sidecar is one vector.
fn collect(folder: &Path, below: &str, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(vector) = name.strip_suffix(SUFFIX) {
            found.push(format!("{below}{vector}"));
        } else if entry.file_type()?.is_dir() && !folder.join(format!("{name}{SUFFIX}")).exists() {
            collect(&entry.path(), &format!("{below}{name}/"), found)?;
        }
    }
    Ok(())
}

/// The text of a sidecar: a line for each field, sorted by name.
///
/// # Examples
///
/// ```
/// let facts = serde_json::json!({"strict": {"code": "st-utf8"}, "size": 8});
/// let text = conformance::vectors::text(facts.as_object().expect("an object"));
/// assert_eq!(text, "{\n  \"size\": 8,\n  \"strict\": {\"code\":\"st-utf8\"}\n}\n");
/// ```
#[must_use]
pub fn text(facts: &Map<String, Value>) -> String {
    let mut lines: Vec<String> =
        facts.iter().map(|(key, value)| format!("  {}: {value}", Value::from(key.as_str()))).collect();
    lines.sort_unstable();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}
