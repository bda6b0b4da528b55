//! Files made to break readers.

use core::hint::black_box;

use apr_container::v2::{Index, Magic, Stored};
use apr_container::{Error as AprError, Expect, ReadOptions, inspect_reader, load_from_bytes_with};
use apr_models::LinearRegression;
use serde_json::{Value, json};

use super::manifest::{self, Manifest};
use crate::digest::sha256_hex;
use crate::manifest::{Error, StrictVerdict as Verdict};
use crate::matrix::{Outcome, Suite};

const COLUMNS: &[&str] = &["load, strict", "load, compat", "inspect, strict", "inspect, compat"];

const ABOUT: &str = "\
Files made to break readers, among them those that kill the peers or make them take gigabytes. Each has to get
the recorded verdict, with its error code and byte offset: rows are what a reader should do. A test bounds the
heap by 8 MiB and 24 times the file for each of them.";

/// Runs every hostile file.
///
/// # Errors
///
/// A vector that cannot be read from disk.
pub fn suite(manifest: &Manifest) -> Result<Suite, Error> {
    let mut suite = Suite::new("apr: hostile files", ABOUT, COLUMNS);
    for vector in &manifest.hostile {
        let bytes = manifest::read(&vector.name)?;
        let version = if vector.second { 2 } else { 1 };
        let row = format!("version {version}: {}", vector.suggested);
        let (strict, compat) = (&ReadOptions::STRICT, &ReadOptions::COMPAT);
        suite.record(
            &row,
            &vector.name,
            [
                judge(&vector.strict.load, load(&bytes, strict)),
                judge(&vector.compat.load, load(&bytes, compat)),
                judge(&vector.strict.inspect, inspect(&bytes, strict)),
                judge(&vector.compat.inspect, inspect(&bytes, compat)),
            ],
        );
    }
    Ok(suite)
}

/// Loads the model in a file of version 1 (a linear regression, if it is any), or reads all tensors of one of
/// the second.
///
/// # Errors
///
/// What the reader says.
pub fn load(file: &[u8], options: &ReadOptions) -> Result<(), AprError> {
    if Magic::of(file).is_none() {
        return load_from_bytes_with::<LinearRegression>(file, Expect::AnyKnown, options).map(drop);
    }
    let stored = Stored::from_bytes(file, options)?;
    let container = stored.container();
    let bytes: usize = container.tensors()?.map(|view| view.data().len()).sum();
    black_box(bytes);
    Ok(())
}

/// Describes a file without a look at its checksum.
///
/// # Errors
///
/// What the reader says.
pub fn inspect(file: &[u8], options: &ReadOptions) -> Result<(), AprError> {
    match Magic::of(file) {
        None => inspect_reader(file, file.len() as u64, options).map(drop),
        Some(_) => Index::from_bytes(file, options).map(drop),
    }
}

fn judge(expected: &Verdict, found: Result<(), AprError>) -> Outcome {
    match (found, expected) {
        (Ok(()), Verdict::Accept) => Outcome::Expected("accepted"),
        (Err(error), Verdict::Refuse { code, offset })
            if error.code() == code && error.offset() == *offset =>
        {
            Outcome::Expected("refused")
        }
        (Ok(()), Verdict::Refuse { code, .. }) => Outcome::Wrong(format!("accepted, expected {code}")),
        (Err(error), _) => Outcome::Wrong(format!(
            "{error} ({} at {:?}), expected {expected:?}",
            error.code(),
            error.offset()
        )),
    }
}

/// What `manifest.json` says about a hostile file, but for the verdict a reader should give and the reason, and what we
/// answer, in the form of `verdicts.json`. To be reviewed before it is kept.
///
/// # Examples
///
/// ```
/// let [entry, verdict] = conformance::apr::hostile::entries("hostile/own_empty.bin", b"");
/// assert_eq!((&entry["size"], &entry["container"]), (&0.into(), &"apr-v1".into()));
/// assert_eq!(verdict["hostile/own_empty.bin"]["strict"]["load"]["code"], "ac-too-small");
/// ```
#[must_use]
pub fn entries(name: &str, file: &[u8]) -> [Value; 2] {
    let verdict = |found: Result<(), AprError>| match found {
        Ok(()) => "accept".into(),
        Err(error) => match error.offset() {
            Some(offset) => json!({"code": error.code(), "offset": offset}),
            None => json!({"code": error.code()}),
        },
    };
    let level = |options: ReadOptions| json!({"load": verdict(load(file, &options)), "inspect": verdict(inspect(file, &options))});
    let container = if Magic::of(file).is_some() { "apr-v2" } else { "apr-v1" };
    let entry = json!({
        "file": name,
        "size": file.len(),
        "sha256": sha256_hex(file),
        "container": container,
        "suggested": "",
        "why": "",
    });
    let answers = json!({"strict": level(ReadOptions::STRICT), "compat": level(ReadOptions::COMPAT)});
    [entry, json!({ name: answers })]
}
