//! JSON texts of answers.
//!
//! Numbers that JavaScript's JSON cannot carry are objects with one key: `{"$f64": "<16 hexadecimal digits>"}`, the bits of a float,
//! and `{"$i64": "<decimal>"}`, an integer beyond 2^53. Keys of files that begin with `$` get one more.

use alloc::string::String;
use core::fmt::Write as _;

/// Integers that a double holds exactly.
const EXACT: u64 = 1 << 53;

/// An object or a list that is being written.
#[derive(Debug)]
pub(crate) struct Json {
    text: String,
    close: char,
    is_empty: bool,
}

impl Json {
    pub(crate) fn object() -> Self {
        Self { text: String::from("{"), close: '}', is_empty: true }
    }

    pub(crate) fn list() -> Self {
        Self { text: String::from("["), close: ']', is_empty: true }
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push(self.close);
        self.text
    }

    fn separate(&mut self) {
        if !self.is_empty {
            self.text.push(',');
        }
        self.is_empty = false;
    }

    /// The key of the next value.
    pub(crate) fn key(&mut self, key: &str) {
        self.separate();
        quote(&mut self.text, key);
        self.text.push(':');
    }

    /// A key out of a file.
    pub(crate) fn foreign_key(&mut self, key: &str) {
        self.separate();
        match key.starts_with('$') {
            true => quote(&mut self.text, &["$", key].concat()),
            false => quote(&mut self.text, key),
        }
        self.text.push(':');
    }

    /// A text behind a key that was written.
    pub(crate) fn bare_text(&mut self, value: &str) {
        quote(&mut self.text, value);
    }

    /// JSON that is written already, behind a key that was written.
    pub(crate) fn bare(&mut self, json: &str) {
        self.text.push_str(json);
    }

    /// JSON that is written already, as the value of a key.
    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        self.key(key);
        self.text.push_str(json);
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        quote(&mut self.text, value);
    }

    pub(crate) fn optional(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(key, value),
            None => self.raw(key, "null"),
        }
    }

    pub(crate) fn truth(&mut self, key: &str, value: bool) {
        self.raw(key, if value { "true" } else { "false" });
    }

    pub(crate) fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        integer(&mut self.text, value);
    }

    /// An element of a list.
    pub(crate) fn item(&mut self, json: &str) {
        self.separate();
        self.text.push_str(json);
    }

    pub(crate) fn text_item(&mut self, value: &str) {
        self.separate();
        quote(&mut self.text, value);
    }

    pub(crate) fn number_item(&mut self, value: u64) {
        self.separate();
        integer(&mut self.text, value);
    }
}

/// Digits of an integer; a double in JavaScript.
fn integer(out: &mut String, value: u64) {
    let _ = write!(out, "{value}");
}

/// An integer that keeps all of its digits.
pub(crate) fn exact(value: i128) -> String {
    let mut out = String::new();
    let _ = match value.unsigned_abs() <= u128::from(EXACT) {
        true => write!(out, "{}", value as i64),
        false if value < 0 => write!(out, "{{\"$i64\":\"{}\"}}", value as i64),
        false => write!(out, "{{\"$i64\":\"{}\"}}", value as u64),
    };
    out
}

/// The bits of a float.
pub(crate) fn float(value: f64) -> String {
    let mut out = String::new();
    let _ = write!(out, "{{\"$f64\":\"{:016x}\"}}", value.to_bits());
    out
}

/// Text in quotation marks.
pub(crate) fn quoted(value: &str) -> String {
    let mut out = String::new();
    quote(&mut out, value);
    out
}

fn quote(out: &mut String, value: &str) {
    json_scan::push_string(out, value, json_scan::Escape::Minimal);
}
