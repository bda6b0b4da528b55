//! The GGUF format: vectors through our reader and writer, beside what llama.cpp, gguf-py and candle answered.

use alloc::collections::BTreeMap;
use std::fs;

use gguf_core::{Error as GgufError, Gguf, GgufBuilder, Header, ReadOptions, Strictness, TensorInfo};
use serde_json::{Value as Json, json};

use crate::digest::sha256_hex;
use crate::matrix::{Outcome, Suite};
use crate::vectors::{
    Error, Field, Missing, Sidecar, StrictVerdict as Verdict, folder, sidecars, strict_verdict,
};

const FORMAT: &str = "gguf";

/// Field of a sidecar with what candle answers to the file: `read`, with every tensor; `refused`, by an error; or `panics`.
/// `cargo xtask candle --write` writes it.
pub const CANDLE: &str = "candle_0_11_1";

const COLUMNS: &[&str] = &[
    "llama.cpp",
    "gguf-py 0.19.0",
    "candle 0.11.1",
    "ours, strict",
    "strict, header",
    "ours, compat",
    "written",
    "same bytes",
];

const ABOUT: &str = "\
Files of the reference's programs, and small files made to break readers. The first three columns are what llama.cpp
0c1e57098 (with the data) and gguf-py 0.19.0 answered when the vectors were made, and what candle 0.11.1 answers with every
tensor read (`cargo xtask candle`). Strict has to answer as llama.cpp does, with the recorded code and offset, the header
alone as it does for the metadata; compat as `docs/gguf.md` says. What is read is written again and has to be read equal;
the reference's own files of version 3 have to get the same bytes.";

/// A vector and what is known about it.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Path below `vectors/gguf`.
    pub file: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// llama.cpp's result for the metadata and for the data; `None` if it was not run.
    pub llama: Option<[bool; 2]>,
    /// What gguf-py answered.
    pub gguf_py: Option<&'static str>,
    /// candle's result; `None` if it was not run.
    pub candle: Option<&'static str>,
    /// What we answer in strict and compat reading.
    pub verdicts: [Verdict; 2],
}

/// Every vector.
///
/// # Errors
///
/// [`Error`] names the file and the entry that is missing or malformed.
pub fn vectors() -> Result<Vec<Vector>, Error> {
    let read = |sidecar: Sidecar| sidecar.read(|facts| Vector::from_facts(&sidecar.vector, facts));
    sidecars(FORMAT)?.into_iter().map(read).collect()
}

impl Vector {
    fn from_facts(file: &str, facts: &Field<'_>) -> Result<Self, Missing> {
        let accepts = |key: &str| facts.find(key).map(|field| field.value == "accept");
        let gguf_py = facts.find("gguf_py_0_19").map(|field| field.text()).transpose()?;
        let gguf_py = gguf_py.map(|verdict| match verdict.as_str() {
            "accept" => "read",
            hangs if hangs.starts_with("timeout") => "hangs",
            _ => "refused",
        });
        let candle = facts.find(CANDLE).map(|field| field.text()).transpose()?;
        let candle = candle.map(|answer| match answer.as_str() {
            "read" => "read",
            "panics" => "panics",
            _ => "refused",
        });
        Ok(Self {
            file: file.to_owned(),
            sha256: facts.get("sha256")?.text()?,
            llama: accepts("llama_metadata_only").zip(accepts("llama_with_data")).map(|(a, b)| [a, b]),
            gguf_py,
            candle,
            verdicts: [strict_verdict(&facts.get("strict")?)?, strict_verdict(&facts.get("compat")?)?],
        })
    }
}

/// The bytes of a vector.
///
/// # Errors
///
/// [`Error`] if the file cannot be read.
pub fn read(vector: &Vector) -> Result<Vec<u8>, Error> {
    let path = folder(FORMAT).join(&vector.file);
    fs::read(&path).map_err(|error| Error::io(path, error))
}

/// Runs every vector.
///
/// # Errors
///
/// A vector that cannot be read from disk.
pub fn suite() -> Result<Suite, Error> {
    let mut suite = Suite::new("gguf", ABOUT, COLUMNS);
    for vector in vectors()? {
        let bytes = read(&vector)?;
        suite.record(row(&vector.file), &vector.file, outcomes(&vector, &bytes));
    }
    Ok(suite)
}

/// What a vector is about, by the first word of its name.
fn row(file: &str) -> &'static str {
    let Some(name) = file.strip_prefix("parser/") else { return "files of the reference" };
    match name.split('_').next().unwrap_or_default() {
        "ok" => "sound",
        "align" | "off" | "last" | "pad" => "alignment and offsets",
        "arr" | "bool" | "kv" | "str" => "values",
        "key" => "keys",
        "name" => "tensor names",
        "dim" | "dims" | "q4" | "type" => "shapes and types",
        "n" => "counts",
        "trunc" => "cut off",
        _ => "magic and version",
    }
}

fn outcomes(vector: &Vector, file: &[u8]) -> [Outcome; 8] {
    let recorded = |read: bool| Outcome::Expected(if read { "read" } else { "refused" });
    let [strict, compat] = &vector.verdicts;
    let found = read_both(file);
    let strict_outcome = match vector.llama {
        Some([_, llama]) if llama != found[0].is_ok() => {
            Outcome::Wrong(format!("llama.cpp says otherwise: {:?}", found[0]))
        }
        _ => judge(strict, &found[0]),
    };
    let widest = Gguf::from_bytes_with(file, &ReadOptions::COMPAT).ok();
    let same = match &widest {
        Some(gguf) if vector.file.starts_with("files/") && gguf.version() == 3 => {
            Outcome::from_failure("equal", same_bytes(gguf, file))
        }
        _ => Outcome::NotApplicable,
    };
    [
        vector.llama.map_or(Outcome::NotApplicable, |[_, read]| recorded(read)),
        vector.gguf_py.map_or(Outcome::NotApplicable, Outcome::Expected),
        vector.candle.map_or(Outcome::NotApplicable, Outcome::Expected),
        strict_outcome,
        header(vector, file),
        judge(compat, &found[1]),
        widest.map_or(Outcome::NotApplicable, |gguf| written(&gguf)),
        same,
    ]
}

/// Reads a file in both levels: strict, compat.
///
/// # Errors
///
/// Those of the levels.
pub fn read_both(file: &[u8]) -> [Result<(), GgufError>; 2] {
    [ReadOptions::STRICT, ReadOptions::COMPAT].map(|options| Gguf::from_bytes_with(file, &options).map(drop))
}

fn judge(expected: &Verdict, found: &Result<(), GgufError>) -> Outcome {
    match (found, expected) {
        (Ok(()), Verdict::Accept) => Outcome::Expected("read"),
        (Err(error), Verdict::Refuse { code, offset })
            if error.code() == code && error.offset() == *offset =>
        {
            Outcome::Expected("refused")
        }
        (found, _) => Outcome::Wrong(format!("{found:?}, expected {expected:?}")),
    }
}

fn header(vector: &Vector, file: &[u8]) -> Outcome {
    let found = Header::from_bytes(file, &ReadOptions::STRICT);
    match (vector.llama, &found) {
        (Some([llama, _]), found) if llama != found.is_ok() => {
            Outcome::Wrong(format!("llama.cpp says otherwise: {found:?}"))
        }
        (_, Ok(header)) => match from_growing_prefix(file) {
            Some(grown) if grown == *header => Outcome::Expected("read"),
            grown => Outcome::Wrong(format!("another header from a prefix: {grown:?}")),
        },
        (_, Err(_)) => Outcome::Expected("refused"),
    }
}

/// The header, from as many bytes as are asked for and no more.
fn from_growing_prefix(file: &[u8]) -> Option<Header<'_>> {
    let mut at_hand = 0;
    loop {
        match Header::from_prefix(file.get(..at_hand)?, file.len() as u64, &ReadOptions::STRICT).ok()? {
            gguf_core::Prefix::Header(header) => return Some(header),
            gguf_core::Prefix::More { needed } if needed > at_hand as u64 => at_hand = needed as usize,
            gguf_core::Prefix::More { .. } => return None,
        }
    }
}

/// The file as our writer puts it.
///
/// # Errors
///
/// What cannot be written.
pub fn rewrite(gguf: &Gguf<'_>) -> Result<Vec<u8>, GgufError> {
    let data: Vec<&[u8]> =
        gguf.tensors().iter().map(|info| gguf.tensor_data(info).unwrap_or_default()).collect();
    GgufBuilder::copy_of(gguf.header())?.layout()?.to_vec(&data)
}

fn same_bytes(gguf: &Gguf<'_>, file: &[u8]) -> Option<String> {
    match rewrite(gguf) {
        Ok(written) if written == file => None,
        Ok(written) => {
            let at = written.iter().zip(file).position(|(a, b)| a != b);
            Some(format!("{} bytes for {}, first difference {at:?}", written.len(), file.len()))
        }
        Err(error) => Some(error.to_string()),
    }
}

fn written(gguf: &Gguf<'_>) -> Outcome {
    let file = match rewrite(gguf) {
        Ok(file) => file,
        // What only compat reading accepts is not written.
        Err(error) => {
            let known = ["gg-array-nested", "gg-key-empty", "gg-name-length", "gg-rank"];
            return match known.contains(&error.code()) {
                true => Outcome::Expected("refused"),
                false => Outcome::Wrong(error.to_string()),
            };
        }
    };
    let strictness = match gguf.endian() {
        gguf_core::Endian::Little => Strictness::Strict,
        gguf_core::Endian::Big => Strictness::Compat,
    };
    match Gguf::from_bytes_with(&file, &ReadOptions { strictness, ..ReadOptions::default() }) {
        Ok(again) => Outcome::from_failure("equal", difference(gguf, &again)),
        Err(error) => Outcome::Wrong(format!("what we write we do not read: {error}")),
    }
}

/// Says how the content of two files differs.
#[must_use]
pub fn difference(one: &Gguf<'_>, other: &Gguf<'_>) -> Option<String> {
    let entries = |gguf: &Gguf<'_>| -> BTreeMap<Vec<u8>, String> {
        // NaN is not equal to itself; its digits are.
        let entry = |entry: &gguf_core::Entry<'_>| (entry.key().as_bytes().to_vec(), text(&entry.value()));
        gguf.entries().iter().map(entry).collect()
    };
    if entries(one) != entries(other) || one.entries().len() != other.entries().len() {
        return Some("other keys or values".to_owned());
    }
    if one.tensors().len() != other.tensors().len() {
        return Some("other tensors".to_owned());
    }
    let same = |(a, b): (&TensorInfo<'_>, &TensorInfo<'_>)| {
        (a.name(), a.dims(), a.dtype()) == (b.name(), b.dims(), b.dtype())
            && one.tensor_data(a) == other.tensor_data(b)
    };
    let mut pairs = one.tensors().iter().zip(other.tensors());
    pairs.find(|(a, b)| !same((a, b))).map(|(a, _)| format!("tensor {:?}", a.name()))
}

/// A value with all its elements.
fn text(value: &gguf_core::Value<'_>) -> String {
    match value.as_array() {
        Some(array) => format!(
            "{}{:?}",
            array.element_type(),
            array.iter().map(|value| text(&value)).collect::<Vec<_>>()
        ),
        None => format!("{value:?}"),
    }
}

/// The sidecar of a new file, as far as our readers know it.
///
/// # Examples
///
/// ```
/// let sidecar = conformance::gguf::sidecar(b"");
/// assert_eq!(sidecar["size"], 0);
/// assert_eq!(sidecar["strict"]["code"], "gg-truncated");
/// ```
#[must_use]
pub fn sidecar(file: &[u8]) -> Json {
    let [strict, compat] = read_both(file).map(|found| match found {
        Ok(()) => "accept".into(),
        Err(error) => json!({"code": error.code(), "offset": error.offset()}),
    });
    json!({"size": file.len(), "sha256": sha256_hex(file), "strict": strict, "compat": compat})
}
