//! JSON lines: one object on each line, as pandas, DuckDB and BigQuery write them.
//!
//! The keys of the first object name the columns, in their order. Another line may leave keys out, which are missing values, and may not add
//! any. Numbers keep their digits until a column says how precise they are.

use alloc::collections::BTreeMap;
use core::fmt;
use std::io::{BufRead, Read};

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::csv::{BYTE_ORDER_MARK, MAX_RECORD, Record, SAVE_AS_UTF_8};
use crate::error::{CODE_IO, CODE_TABLE_COLUMNS, CODE_TABLE_SYNTAX, Failure, Place};
use crate::terminal::escape;

/// What to do with a line that is no object of numbers, strings, booleans and nulls.
const ONE_OBJECT: &str = "write one JSON object on each line, without line breaks in it: a missing value is null, not NaN; a comma stands only between pairs";

const NOT_UTF_8: &str = "the text is not UTF-8";

/// What to do with a key that the first line does not have.
const ALL_KEYS: &str = "give the first object all keys, with null where a value is missing";

/// Reads records from a stream.
pub(super) struct JsonLines<R> {
    input: R,
    names: Vec<String>,
    columns: BTreeMap<String, usize>,
    /// Fields of the next record, by column.
    fields: Vec<Option<Cell>>,
    line: u64,
    record: Record,
    repeats: bool,
}

/// A value as a cell.
enum Cell {
    Text(String),
    Boolean(bool),
}

impl<R: BufRead> JsonLines<R> {
    /// Reads the first line, whose keys name the columns.
    pub(super) fn open(input: R) -> Result<Self, Failure> {
        let mut lines = Self {
            input,
            names: Vec::new(),
            columns: BTreeMap::new(),
            fields: Vec::new(),
            line: 0,
            record: Record::default(),
            repeats: false,
        };
        lines.repeats = lines.next()?.is_some();
        Ok(lines)
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The next record, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&Record>, Failure> {
        if core::mem::take(&mut self.repeats) {
            return Ok(Some(&self.record));
        }
        let mut text = Vec::new();
        while text.is_empty() {
            self.line += 1;
            let read = self.input.by_ref().take(MAX_RECORD as u64 + 1).read_until(b'\n', &mut text);
            read.map_err(|error| Failure::new(CODE_IO, format!("read the table: {error}")))?;
            if text.is_empty() {
                return Ok(None);
            }
            if text.len() > MAX_RECORD {
                let what = format!("a record is longer than {} MiB", MAX_RECORD >> 20);
                return Err(self.refused(CODE_TABLE_SYNTAX, what));
            }
            if self.line == 1 && text.starts_with(BYTE_ORDER_MARK) {
                text.drain(..BYTE_ORDER_MARK.len());
            }
            text.truncate(text.trim_ascii_end().len());
        }
        let pairs = pairs(&text).map_err(|what| self.refused(CODE_TABLE_SYNTAX, what))?;
        let is_first = self.names.is_empty();
        if is_first && pairs.is_empty() {
            return Err(self.refused(
                CODE_TABLE_SYNTAX,
                "the first object has no keys, which name the columns".to_owned(),
            ));
        }
        for (key, field) in pairs {
            if is_first {
                self.columns.insert(key.clone(), self.names.len());
                self.names.push(key);
                self.fields.push(Some(field));
                continue;
            }
            let column = self.columns.get(&key).copied();
            let Some(cell) = column.and_then(|column| self.fields.get_mut(column)) else {
                let what = format!("the first line has no key `{}`", escape::cut(&key, 60));
                return Err(self.refused(CODE_TABLE_COLUMNS, what));
            };
            *cell = Some(field);
        }
        self.record.clear(self.line);
        for field in &mut self.fields {
            match field.take() {
                Some(Cell::Text(text)) => self.record.push(&text),
                Some(Cell::Boolean(value)) => self.record.push_boolean(value),
                None => self.record.push(""),
            }
        }
        Ok(Some(&self.record))
    }

    fn refused(&self, code: &'static str, what: String) -> Failure {
        let help = match code {
            CODE_TABLE_COLUMNS => ALL_KEYS,
            _ if what == NOT_UTF_8 => SAVE_AS_UTF_8,
            _ => ONE_OBJECT,
        };
        Failure::new(code, what).placed(Place::line(self.line)).help(help)
    }
}

impl<R: Read> JsonLines<std::io::BufReader<R>> {
    /// Whether the next record has arrived already, so that reading it does not wait.
    pub(super) fn has_buffered(&self) -> bool {
        self.repeats || self.input.buffer().contains(&b'\n')
    }
}

/// Keys and cells of an object in their order.
fn pairs(text: &[u8]) -> Result<Vec<(String, Cell)>, String> {
    let text = core::str::from_utf8(text).map_err(|_| NOT_UTF_8.to_owned())?;
    let mut parser = serde_json::Deserializer::from_str(text);
    let pairs = parser.deserialize_map(Pairs).and_then(|pairs| parser.end().map(|()| pairs));
    let pairs = pairs.map_err(|error| {
        let text = error.to_string();
        // serde_json counts lines of this one line.
        text.split(" at line ").next().unwrap_or_default().to_owned()
    })?;
    let mut keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    let twice = keys.windows(2).find_map(|pair| match pair {
        [one, next] if one == next => Some(one),
        _ => None,
    });
    if let Some(key) = twice {
        return Err(format!("the key `{}` occurs twice", escape::cut(key, 60)));
    }
    let cells = pairs.into_iter().map(|(key, value)| cell(&key, value).map(|cell| (key, cell)));
    cells.collect()
}

/// The cell of a value.
fn cell(key: &str, value: String) -> Result<Cell, String> {
    match value.as_bytes().first() {
        Some(b'"') => {
            serde_json::from_str(&value).map(Cell::Text).map_err(|_| "a string cannot be read".to_owned())
        }
        Some(b'n') => Ok(Cell::Text(String::new())),
        Some(letter @ (b't' | b'f')) => Ok(Cell::Boolean(*letter == b't')),
        Some(b'{' | b'[') => {
            let key = escape::cut(key, 60);
            Err(format!("the value of `{key}` is neither a number, a string, a boolean nor null"))
        }
        _ => Ok(Cell::Text(value)),
    }
}

/// The pairs of an object, each value as its text.
struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            pairs.push((key, map.next_value::<&RawValue>()?.get().to_owned()));
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(text: &str) -> Result<(Vec<String>, Vec<Vec<String>>), Failure> {
        let mut lines = JsonLines::open(BufReader::with_capacity(7, text.as_bytes()))?;
        let names = lines.names().to_vec();
        let mut records = Vec::new();
        while let Some(record) = lines.next()? {
            records.push(record.fields().map(str::to_owned).collect());
        }
        Ok((names, records))
    }

    #[test]
    fn objects_become_records() {
        let text = "{\"b\": 1.50, \"a\": \"x,\\\"y\\u00e9\"}\r\n\n{\"a\":null,\"b\":-1e400}\n{\"b\":true}";
        let (names, records) = read(text).unwrap();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(records, [["1.50", "x,\"yé"], ["-1e400", ""], ["true", ""]]);
        assert_eq!(read("").unwrap(), (vec![], vec![]));
        assert_eq!(read("\u{feff}{\"a\":1}\n{}\n").unwrap().1, [["1"], [""]]);
        let block = read("{}\n{\"a\":1}\n").unwrap_err().block(crate::terminal::Style::PLAIN);
        assert!(block.contains("no keys") && block.contains("line 1"), "{block}");
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_line() {
        for (line, what) in [
            ("{\"a\":1", "EOF"),
            ("{\"a\":NaN}", "null, not NaN"),
            ("{\"a\":1,}", "one JSON object on each line"),
            ("[1]", "expected a JSON object"),
            ("{\"a\":1}{", "trailing"),
            ("{\"a\":1,\"a\":2}", "twice"),
            ("{\"a\":[1]}", "neither a number"),
            ("{\"a\":{}}", "neither a number"),
            ("{\"c\":1}", "no key `c`"),
            ("{\"c\":1}", "give the first object all keys"),
        ] {
            let failure = read(&format!("{{\"a\":1}}\n{line}\n")).unwrap_err();
            let block = failure.block(crate::terminal::Style::PLAIN);
            assert!(block.contains(what) && block.contains("line 2"), "{line}: {block}");
        }
    }
}
