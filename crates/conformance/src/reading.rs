//! Single safetensors files through every reader and writer.

use alloc::collections::BTreeSet;

use st_core::{Alignment, ErrorKind, Limits, Order, ReadOptions, WriteOptions};

use crate::content::Content;
use crate::matrix::{Outcome, Suite};
use crate::official::Refusal;
use crate::vectors::{self, Kind, OfficialVerdict, StrictVerdict, Vector, Vectors};
use crate::{official, ours};

const COLUMNS: &[&str] = &[
    "ours, strict",
    "ours, compat",
    "`find`",
    "crate 0.8.0",
    "ours -> crate",
    "crate -> ours",
    "same bytes",
];

const ABOUT: &str = "\
Each file is read by our reader in both strictness levels and by the official crate; a verdict counts when
it is the recorded one, for our strict reader with its error code and byte offset, in compat with the
crate's error variant. `find` looks up every name without building the table and has to agree with it. What
a file holds is then written by us in every order and several alignments and read by the crate, written by
the crate and read by us, and, where the crate's own output is reproducible, written by us with the same
bytes.";

/// Runs every file of the vectors.
///
/// # Errors
///
/// A vector that cannot be read from disk.
pub fn suite(vectors: &Vectors) -> Result<Suite, vectors::Error> {
    let mut suite = Suite::new("safetensors: files", ABOUT, COLUMNS);
    for vector in &vectors.files {
        let file = vectors::read(&vector.file)?;
        let row = match vector.kind {
            Kind::Quirk => "quirk".to_owned(),
            kind => format!("{}: {}", kind.name(), vector.category.replace('_', " ")),
        };
        suite.record(&row, &vector.file, outcomes(vector, &file));
    }
    Ok(suite)
}

fn outcomes(vector: &Vector, file: &[u8]) -> [Outcome; 7] {
    let content = ours::read(file, &ReadOptions::COMPAT).ok();
    let written = |check: fn(&Content<'_>) -> Outcome| content.as_ref().map_or(Outcome::NotApplicable, check);
    [
        strict(&vector.strict, file),
        compat(&vector.official, file),
        Outcome::from_failure("agree", find_disagrees(file)),
        judge(vector, file),
        written(|content| Outcome::from_failure("equal", ours_to_official(content))),
        written(official_to_ours),
        match &content {
            Some(content) if vector.byte_exact => same_bytes(content, file),
            _ => Outcome::NotApplicable,
        },
    ]
}

/// Our strict reader against the recorded verdict.
#[must_use]
pub fn strict(expected: &StrictVerdict, file: &[u8]) -> Outcome {
    match (ours::read(file, &ReadOptions::STRICT), expected) {
        (Ok(_), StrictVerdict::Accept) => Outcome::Expected("read"),
        (Err(error), StrictVerdict::Refuse { code, offset })
            if error.code() == code && error.offset() == *offset =>
        {
            Outcome::Expected("refused")
        }
        (Ok(_), StrictVerdict::Refuse { code, .. }) => Outcome::Wrong(format!("read, expected {code}")),
        (Err(error), _) => {
            Outcome::Wrong(format!("{} at {:?}, expected {expected:?}", error.code(), error.offset()))
        }
    }
}

/// Our compat reader against the crate's recorded verdict.
#[must_use]
pub fn compat(expected: &OfficialVerdict, file: &[u8]) -> Outcome {
    let found = ours::read(file, &ReadOptions::COMPAT);
    match (found, expected) {
        (Ok(_), OfficialVerdict::Accept) => Outcome::Expected("read"),
        (Err(error), OfficialVerdict::Refuse { variant })
            if ours::official_variant(*error.kind()) == Some(variant) =>
        {
            Outcome::Expected("refused")
        }
        (Ok(_), OfficialVerdict::Refuse { variant }) => Outcome::Wrong(format!("read, expected {variant}")),
        (Err(error), _) => Outcome::Wrong(format!("{error}, expected {expected:?}")),
    }
}

/// The crate against its recorded verdict, and its content against ours.
fn judge(vector: &Vector, file: &[u8]) -> Outcome {
    match (official::read(file), &vector.official) {
        (Ok(_), OfficialVerdict::Accept) => Outcome::from_failure("read", compat_disagrees(file)),
        (Err(Refusal::Variant(found)), OfficialVerdict::Refuse { variant }) if found == variant => {
            Outcome::Expected("refused")
        }
        // Its overflow at the end of the file: a panic or a refusal, as it was built.
        (Err(Refusal::Panic), _) if vector.official_panics_when_checked => Outcome::Expected("refused"),
        (found, expected) => {
            Outcome::Wrong(format!("{:?}, expected {expected:?}", found.map(|content| content.tensors.len())))
        }
    }
}

/// Says where [`st_core::find`] disagrees with the strict table of the same file.
///
/// It refuses what the table refuses, apart from what only a table can tell: duplicates, and overlaps where
/// the entries are not listed in file order; and it has no limits.
#[must_use]
pub fn find_disagrees(file: &[u8]) -> Option<String> {
    let table = ours::read(file, &ReadOptions::STRICT);
    let mut names: BTreeSet<&str> = ["", "a", "no such tensor", "__metadata__"].into();
    if let Ok(content) = &table {
        // Every look-up passes over the whole header: of a great many names every n-th has to do, in a fuzzer's build a second.
        const BYTES: usize = 1 << 25;
        let step = (content.tensors.len() * file.len()).div_ceil(BYTES).max(1);
        names.extend(content.tensors.keys().step_by(step).map(String::as_str));
    }
    names.iter().find_map(|name| match (st_core::find(file, name), &table) {
        (Ok(found), Ok(content)) => match (found, content.tensors.get(*name)) {
            (None, None) => None,
            (Some(found), Some(tensor)) => {
                let dims = tensor.shape.iter().map(|dim| *dim as u64);
                let same = found.dtype() == tensor.dtype
                    && found.dims().eq(dims)
                    && core::ptr::eq(found.data(), tensor.data);
                (!same).then(|| format!("{name:?} found with another type, shape or place"))
            }
            (found, _) => Some(format!("{name:?} found: {}", found.is_some())),
        },
        (Err(_), Err(_)) => None,
        (Err(error), Ok(_)) => Some(format!("{name:?}: {error}")),
        (Ok(_), Err(error)) => match error.kind() {
            ErrorKind::DuplicateTensor
            | ErrorKind::DuplicateMetadataKey
            | ErrorKind::LimitExceeded { .. }
            | ErrorKind::InvalidOffsets { .. } => None,
            _ => Some(format!("{name:?} is looked for in spite of: {error}")),
        },
    })
}

/// The first doubles that parser may miss: it multiplies a rounded power of ten, and is off by a few units in the last place.
const NEAR_THE_EDGE: f64 = f64::MAX * (1.0 - 64.0 * f64::EPSILON);

/// Whether a number was refused that is just below the greatest one. The JSON parser under the crate refuses it too, unless it is
/// built to read every digit, as the sidecars of this workspace need.
fn is_at_the_edge(file: &[u8], error: &st_core::Error) -> bool {
    let place = (error.kind(), error.offset().and_then(|at| usize::try_from(at).ok()));
    let (ErrorKind::NumberOutOfRange, Some(at)) = place else { return false };
    let is_part = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let (before, after) = file.split_at_checked(at).unwrap_or_default();
    let begin = at - before.iter().rev().take_while(is_part).count();
    let end = at + after.iter().take_while(is_part).count();
    let number = file.get(begin..end).and_then(|text| core::str::from_utf8(text).ok()?.parse::<f64>().ok());
    number.is_some_and(|number| number.is_finite() && number.abs() > NEAR_THE_EDGE)
}

/// Says where our compat reader differs from the crate in verdict, error variant or content.
#[must_use]
pub fn compat_disagrees(file: &[u8]) -> Option<String> {
    let own = ours::read(file, &ReadOptions::COMPAT);
    let own = own.map_err(|error| (ours::official_variant(*error.kind()), error));
    match (own, official::read(file)) {
        (Ok(own), Ok(theirs)) => {
            let moved = || "a tensor moved".to_owned();
            (own != theirs).then(|| own.difference(&theirs).unwrap_or_else(moved))
        }
        (Err((Some(own), _)), Err(Refusal::Variant(theirs))) if own == theirs => None,
        (Err((_, error)), _) if is_at_the_edge(file, &error) => None,
        // Built with overflow checks it panics where it otherwise refuses.
        (Err((Some("MetadataIncompleteBuffer"), _)), Err(Refusal::Panic)) => None,
        // Among tensors of equal offsets the crate meets a random one first and answers with that one's
        // fault: then one of its answers has to be ours.
        (Err((Some(own), error)), Err(theirs)) => {
            let mut answers = (0..64).map(|_| official::read(file).err());
            let among = answers.any(|answer| answer == Some(Refusal::Variant(own)));
            (!among).then(|| format!("{error}; the crate: {theirs}"))
        }
        (Err((None, error)), _) => Some(format!("not an error of the crate: {error}")),
        (Err((_, error)), Ok(_)) => Some(format!("only the crate reads it: {error}")),
        (Ok(_), Err(theirs)) => Some(format!("only we read it, the crate: {theirs}")),
    }
}

/// Says what the crate does not read back equal from what we write.
#[must_use]
pub fn ours_to_official(content: &Content<'_>) -> Option<String> {
    for order in [Order::Official, Order::ByName, Order::AsGiven] {
        for alignment in [Alignment::B8, Alignment::B64, Alignment::PAGE] {
            let options = WriteOptions { order, alignment, ..WriteOptions::default() };
            let file = match ours::write(content, &options) {
                Ok(file) => file,
                Err(error) => return Some(format!("{order:?}: not written: {error}")),
            };
            match official::read(&file) {
                Ok(read) => {
                    if let Some(text) = content.difference(&read) {
                        return Some(format!("{order:?}: {text}"));
                    }
                }
                Err(refusal) => return Some(format!("{order:?}: the crate refuses: {refusal}")),
            }
            if ours::write(content, &options).as_deref() != Ok(&file[..]) {
                return Some(format!("{order:?}: a second save differs"));
            }
        }
    }
    None
}

/// What we make of what the crate writes: read equal, or refused where the crate cannot read it either.
#[must_use]
pub fn official_to_ours(content: &Content<'_>) -> Outcome {
    let file = match official::write(content) {
        Ok(file) => file,
        Err(refusal) => return Outcome::Wrong(format!("the crate does not write it: {refusal}")),
    };
    let options = ReadOptions { limits: Limits::OFFICIAL, ..ReadOptions::STRICT };
    match (ours::read(&file, &options), official::read(&file)) {
        (Ok(read), Ok(_)) => Outcome::from_failure("equal", content.difference(&read)),
        // Empty metadata and no tensor: its writer forgets that the comma needs something before it.
        (Err(_), Err(_)) => Outcome::Expected("unreadable to both"),
        (Ok(_), Err(refusal)) => Outcome::Wrong(format!("only we read it, the crate: {refusal}")),
        (Err(error), Ok(_)) => Outcome::Wrong(error.to_string()),
    }
}

fn same_bytes(content: &Content<'_>, file: &[u8]) -> Outcome {
    match ours::write(content, &WriteOptions::default()) {
        Ok(written) if written == file => Outcome::Expected("equal"),
        Ok(written) => {
            let at = written.iter().zip(file).position(|(a, b)| a != b);
            Outcome::Wrong(format!("{} bytes for {}, first difference {at:?}", written.len(), file.len()))
        }
        Err(error) => Outcome::Wrong(error.to_string()),
    }
}
