//! JSON texts of answers.
//!
//! Numbers that JavaScript's JSON cannot carry are objects with one key: `{"$f64": "<16 hexadecimal digits>"}`, the bits of a float,
//! and `{"$i64": "<decimal>"}`, an integer beyond 2^53. Keys of files that begin with `$` get one more.

use alloc::string::String;
use core::fmt::{self, Write as _};

/// Integers that a double holds exactly.
#[cfg_attr(not(feature = "apr"), allow(dead_code, reason = "for `.apr` files, models and keys"))]
const EXACT: u64 = 1 << 53;

/// JSON that is being written, from its first byte to its last.
#[derive(Debug)]
pub(crate) struct Json(String);

#[cfg_attr(not(feature = "apr"), allow(dead_code, reason = "for `.apr` files, models and keys"))]
impl Json {
    /// An object; [`finish`](Self::finish) ends it.
    pub(crate) fn object() -> Self {
        Self(String::from("{"))
    }

    pub(crate) fn finish(mut self) -> String {
        self.close("}");
        self.0
    }

    /// Begins a list or an object, as a value.
    pub(crate) fn open(&mut self, bracket: &str) {
        self.value(bracket);
    }

    /// Ends it.
    pub(crate) fn close(&mut self, bracket: &str) {
        self.0.push_str(bracket);
    }

    /// A comma, unless this is the first value of a list or object, or the value of a key.
    fn separate(&mut self) {
        if !matches!(self.0.as_bytes().last(), Some(b'{' | b'[' | b':')) {
            self.0.push(',');
        }
    }

    /// The key of the next value.
    pub(crate) fn key(&mut self, key: &str) {
        self.string(key);
        self.0.push(':');
    }

    /// A key out of a file.
    pub(crate) fn foreign_key(&mut self, key: &str) {
        match key.starts_with('$') {
            true => self.key(&format!("${key}")),
            false => self.key(key),
        }
    }

    /// JSON that is written already, as a value.
    pub(crate) fn value(&mut self, json: &str) {
        self.separate();
        self.0.push_str(json);
    }

    /// Text, as a value.
    pub(crate) fn string(&mut self, value: &str) {
        self.separate();
        json_scan::push_string(&mut self.0, value, json_scan::Escape::Minimal);
    }

    /// An integer that is a double in JavaScript, as a value.
    pub(crate) fn integer(&mut self, value: u64) {
        self.separate();
        let _ = write!(self.0, "{value}");
    }

    /// An integer of this magnitude that keeps all of its digits, as a value.
    pub(crate) fn exact(&mut self, value: &dyn fmt::Display, magnitude: u64) {
        self.separate();
        let _ = match magnitude <= EXACT {
            true => write!(self.0, "{value}"),
            false => write!(self.0, "{{\"$i64\":\"{value}\"}}"),
        };
    }

    /// The bits of a float, as a value.
    pub(crate) fn float(&mut self, value: f64) {
        self.separate();
        let _ = write!(self.0, "{{\"$f64\":\"{:016x}\"}}", value.to_bits());
    }

    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        self.key(key);
        self.value(json);
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        self.string(value);
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
        self.integer(value);
    }

    /// A list of texts.
    pub(crate) fn texts<'t>(&mut self, key: &str, texts: impl IntoIterator<Item = &'t str>) {
        self.key(key);
        self.open("[");
        texts.into_iter().for_each(|text| self.string(text));
        self.close("]");
    }
}
