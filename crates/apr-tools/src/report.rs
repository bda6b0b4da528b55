//! Reports: what commands print as JSON, specified in `docs/json-schema.md`.

mod layout;
mod list;

use alloc::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use json_scan::JsonEscape;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use self::layout::Indented;
pub(crate) use self::list::{List, write_with_list};
use crate::output::Run;
use crate::terminal::escape::{self, is_hazard};

/// What a command prints as one JSON object.
pub(crate) trait Report: Serialize {
    /// Name and version of its fields: the value of its first field, `schema`.
    const SCHEMA: &'static str;

    /// [`SCHEMA`](Self::SCHEMA), unless several commands share the report.
    fn schema(&self) -> &'static str {
        Self::SCHEMA
    }
}

/// Writes a report as an object that ends in a line feed.
///
/// # Errors
///
/// If `out` refuses the bytes.
pub(crate) fn write<R: Report>(out: &mut impl Write, report: &R) -> io::Result<()> {
    #[derive(Serialize)]
    struct Envelope<'r, R> {
        schema: &'static str,
        #[serde(flatten)]
        report: &'r R,
    }
    let mut json = serde_json::Serializer::with_formatter(&mut *out, Indented::default());
    Envelope { schema: report.schema(), report }.serialize(&mut json)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The first fields of the report of a command that writes a file.
#[derive(Debug, Serialize)]
pub(crate) struct Written<'a> {
    input: Cow<'a, str>,
    output: Cow<'a, str>,
    written: bool,
    bytes: u64,
}

impl<'a> Written<'a> {
    pub(crate) fn new(input: &'a Path, output: &'a Path, run: Run, bytes: u64) -> Self {
        Self { input: path(input), output: path(output), written: run == Run::Write, bytes }
    }
}

/// A path as text; what is not Unicode is replaced.
pub(crate) fn path(path: &Path) -> Cow<'_, str> {
    escape::without_credentials(path.to_string_lossy())
}

/// A number that need not be finite: JSON has no spelling for the others, which become the strings `inf`, `-inf` and `nan`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number(pub(crate) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            finite if finite.is_finite() => serializer.serialize_f64(finite),
            nan if nan.is_nan() => serializer.serialize_str("nan"),
            infinite => serializer.serialize_str(if infinite > 0.0 { "inf" } else { "-inf" }),
        }
    }
}

/// A [`Number`] of 32 bits, in as few digits as it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrow(pub(crate) f32);

impl Serialize for Narrow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.is_finite() {
            true => serializer.serialize_f32(self.0),
            false => Number(self.0.into()).serialize(serializer),
        }
    }
}

/// A list whose elements are made while they are written, so that a million tensors need no second copy.
pub(crate) struct Each<F>(pub(crate) F);

impl<F: Fn() -> I, I: IntoIterator<Item: Serialize>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// An object with fields that are not known in advance, in the order given.
pub(crate) struct Fields<K, V>(pub(crate) Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Fields<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Valid JSON text as a value on one line: white space between its parts is left out, hazards in its strings are escaped.
///
/// # Errors
///
/// If it is not valid.
pub(crate) fn raw(text: &str) -> serde_json::Result<Box<RawValue>> {
    let mut line = String::with_capacity(text.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for c in text.chars() {
        if !in_string && c.is_ascii_whitespace() {
            continue;
        }
        in_string ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        if is_hazard(c) {
            line.push_str(&JsonEscape(c).to_string());
        } else {
            line.push(c);
        }
    }
    RawValue::from_string(line)
}

/// A list on one line whatever its elements are.
pub(crate) struct OneLine<'a, T>(pub(crate) &'a [T]);

impl<T: Serialize> Serialize for OneLine<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = vec![b'['];
        for (idx, element) in self.0.iter().enumerate() {
            if idx > 0 {
                line.extend(b", ");
            }
            let mut json = serde_json::Serializer::with_formatter(&mut line, Indented::default());
            element.serialize(&mut json).map_err(S::Error::custom)?;
        }
        line.push(b']');
        let line = String::from_utf8(line).map_err(S::Error::custom)?;
        RawValue::from_string(line).map_err(S::Error::custom)?.serialize(serializer)
    }
}
