//! Malicious files.

use core::hint::black_box;

use apr_container::v2::{Index, Magic, Stored};
use apr_container::{Error as AprError, Expect, ReadOptions, inspect_from, load_from_bytes_with};
use apr_models::LinearRegression;
use serde_json::{Value, json};

use super::vectors::{self, Vectors};
use crate::digest::sha256_hex;
use crate::matrix::{Outcome, Suite};
use crate::vectors::{Error, StrictVerdict as Verdict};

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
pub fn suite(vectors: &Vectors) -> Result<Suite, Error> {
    let mut suite = Suite::new("apr: hostile files", ABOUT, COLUMNS);
    for vector in &vectors.hostile {
        let bytes = vectors::read(&vector.name)?;
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
        None => inspect_from(&file, options).map(drop),
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

/// The sidecar of a new malicious file, but for what a reader should do and why. To be reviewed before it is kept.
///
/// # Examples
///
/// ```
/// let sidecar = conformance::apr::hostile::sidecar(b"");
/// assert_eq!((&sidecar["size"], &sidecar["container"]), (&0.into(), &"apr-v1".into()));
/// assert_eq!(sidecar["strict"]["load"]["code"], "ac-too-small");
/// ```
#[must_use]
pub fn sidecar(file: &[u8]) -> Value {
    let verdict = |found: Result<(), AprError>| match found {
        Ok(()) => "accept".into(),
        Err(error) => match error.offset() {
            Some(offset) => json!({"code": error.code(), "offset": offset}),
            None => json!({"code": error.code()}),
        },
    };
    let level = |options: ReadOptions| json!({"load": verdict(load(file, &options)), "inspect": verdict(inspect(file, &options))});
    let container = if Magic::of(file).is_some() { "apr-v2" } else { "apr-v1" };
    json!({
        "size": file.len(),
        "sha256": sha256_hex(file),
        "container": container,
        "suggested": "",
        "why": "",
        "strict": level(ReadOptions::STRICT),
        "compat": level(ReadOptions::COMPAT),
    })
}
