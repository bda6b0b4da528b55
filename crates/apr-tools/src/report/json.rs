//! A writer of JSON text: one value per invocation, fields in the order they are documented.
//!
//! It streams, so listing a million tensors needs no second copy of them, and it escapes what
//! [`escape`](crate::terminal::escape) calls a hazard, so that the output is safe on a terminal too.

use std::io::{self, Write};

use json_scan::{Escape, JsonStr};

use crate::terminal::escape::is_hazard;

/// Writes one JSON value, indented by two spaces; arrays of numbers stay on one line.
#[derive(Debug)]
pub(crate) struct JsonWriter<W> {
    out: W,
    levels: Vec<Level>,
    /// A key was written and its value is still missing.
    after_key: bool,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    layout: Layout,
    empty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Lines,
    OneLine,
}

impl<W: Write> JsonWriter<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, levels: Vec::new(), after_key: false }
    }

    /// Ends the text with a line feed.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        debug_assert!(self.levels.is_empty(), "every object and array is closed");
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    pub(crate) fn object(&mut self) -> io::Result<()> {
        self.open(b"{", Layout::Lines)
    }

    pub(crate) fn end_object(&mut self) -> io::Result<()> {
        self.close(b"}")
    }

    pub(crate) fn array(&mut self) -> io::Result<()> {
        self.open(b"[", Layout::Lines)
    }

    /// An array on one line: shapes.
    pub(crate) fn inline_array(&mut self) -> io::Result<()> {
        self.open(b"[", Layout::OneLine)
    }

    pub(crate) fn end_array(&mut self) -> io::Result<()> {
        self.close(b"]")
    }

    /// Begins a field of the open object.
    pub(crate) fn key(&mut self, key: &str) -> io::Result<()> {
        self.separate()?;
        self.quoted(key)?;
        self.out.write_all(b": ")?;
        self.after_key = true;
        Ok(())
    }

    pub(crate) fn string(&mut self, value: &str) -> io::Result<()> {
        self.separate()?;
        self.quoted(value)
    }

    pub(crate) fn uint(&mut self, value: u64) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "{value}")
    }

    pub(crate) fn int(&mut self, value: i64) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "{value}")
    }

    /// As [`float`](Self::float), with as few digits as a number of 32 bits needs.
    pub(crate) fn narrow_float(&mut self, value: f32) -> io::Result<()> {
        if !value.is_finite() {
            return self.float(value.into());
        }
        self.separate()?;
        write!(self.out, "{value:?}")
    }

    /// A sound JSON text, on one line: white space between its parts is left out, hazards in its strings are escaped.
    pub(crate) fn raw(&mut self, text: &str) -> io::Result<()> {
        self.separate()?;
        let (mut in_string, mut is_escaped) = (false, false);
        for c in text.chars() {
            if !in_string && c.is_ascii_whitespace() {
                continue;
            }
            in_string ^= c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            if is_hazard(c) {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().try_for_each(|unit| write!(self.out, "\\u{unit:04x}"))?;
            } else {
                write!(self.out, "{c}")?;
            }
        }
        Ok(())
    }

    /// A finite number; the others, which JSON cannot express, become the strings `inf`, `-inf` and `nan`.
    pub(crate) fn float(&mut self, value: f64) -> io::Result<()> {
        if value.is_nan() {
            return self.string("nan");
        }
        if value.is_infinite() {
            return self.string(if value > 0.0 { "inf" } else { "-inf" });
        }
        self.separate()?;
        write!(self.out, "{value:?}")
    }

    pub(crate) fn bool(&mut self, value: bool) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "{value}")
    }

    pub(crate) fn null(&mut self) -> io::Result<()> {
        self.separate()?;
        self.out.write_all(b"null")
    }

    /// A string, or null.
    pub(crate) fn field_opt_str(&mut self, key: &str, value: Option<&str>) -> io::Result<()> {
        self.key(key)?;
        match value {
            Some(value) => self.string(value),
            None => self.null(),
        }
    }

    /// A number, or null.
    pub(crate) fn field_opt_float(&mut self, key: &str, value: Option<f64>) -> io::Result<()> {
        self.key(key)?;
        match value {
            Some(value) => self.float(value),
            None => self.null(),
        }
    }

    pub(crate) fn field_str(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.key(key)?;
        self.string(value)
    }

    pub(crate) fn field_uint(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.key(key)?;
        self.uint(value)
    }

    pub(crate) fn field_float(&mut self, key: &str, value: f64) -> io::Result<()> {
        self.key(key)?;
        self.float(value)
    }

    pub(crate) fn field_bool(&mut self, key: &str, value: bool) -> io::Result<()> {
        self.key(key)?;
        self.bool(value)
    }

    pub(crate) fn field_shape(&mut self, key: &str, dims: impl IntoIterator<Item = u64>) -> io::Result<()> {
        self.key(key)?;
        self.inline_array()?;
        for dim in dims {
            self.uint(dim)?;
        }
        self.end_array()
    }

    /// What `write` makes of the value; null if there is none.
    pub(crate) fn field_opt<T>(
        &mut self,
        key: &str,
        value: Option<T>,
        write: impl FnOnce(T, &mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.key(key)?;
        match value {
            Some(value) => write(value, self),
            None => self.null(),
        }
    }

    /// An array of strings, one a line.
    pub(crate) fn field_strings<'a>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<()> {
        self.key(key)?;
        self.array()?;
        for value in values {
            self.string(value)?;
        }
        self.end_array()
    }

    fn open(&mut self, bracket: &[u8], layout: Layout) -> io::Result<()> {
        self.separate()?;
        self.levels.push(Level { layout, empty: true });
        self.out.write_all(bracket)
    }

    fn close(&mut self, bracket: &[u8]) -> io::Result<()> {
        let level = self.levels.pop();
        if level.is_some_and(|level| !level.empty && level.layout == Layout::Lines) {
            self.new_line()?;
        }
        self.out.write_all(bracket)
    }

    /// What stands before a key or an element: nothing, a comma, a new line.
    fn separate(&mut self) -> io::Result<()> {
        if core::mem::take(&mut self.after_key) {
            return Ok(());
        }
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        let first = core::mem::replace(&mut level.empty, false);
        let layout = level.layout;
        if !first {
            self.out.write_all(if layout == Layout::Lines { b"," } else { b", " })?;
        }
        if layout == Layout::Lines { self.new_line() } else { Ok(()) }
    }

    fn new_line(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n")?;
        for _ in 0..self.levels.len() {
            self.out.write_all(b"  ")?;
        }
        Ok(())
    }

    fn quoted(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "{}", JsonStr(text, Escape::Hazards))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(build: impl FnOnce(&mut JsonWriter<&mut Vec<u8>>) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        let mut json = JsonWriter::new(&mut bytes);
        build(&mut json).unwrap();
        json.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn layout_is_fixed() {
        let text = written(|json| {
            json.object()?;
            json.field_str("schema", "x/1")?;
            json.field_shape("shape", [2, 3])?;
            json.key("empty")?;
            json.array()?;
            json.end_array()?;
            json.key("list")?;
            json.array()?;
            json.object()?;
            json.field_bool("ok", true)?;
            json.key("none")?;
            json.null()?;
            json.end_object()?;
            json.end_array()?;
            json.end_object()
        });
        assert_eq!(
            text,
            "{\n  \"schema\": \"x/1\",\n  \"shape\": [2, 3],\n  \"empty\": [],\n  \"list\": [\n    {\n      \
             \"ok\": true,\n      \"none\": null\n    }\n  ]\n}\n"
        );
    }

    #[test]
    fn strings_survive_a_parser_and_hold_no_hazard() {
        let hostile = "q\" b\\ \n\r\t\u{0}\u{1b}\u{7f}\u{9b}\u{202e}\u{2028}\u{e0041}é漢😀";
        let text = written(|json| json.string(hostile));
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), hostile);
        assert!(!text.trim_end().chars().any(is_hazard));
    }

    #[test]
    fn numbers_json_cannot_hold_are_strings() {
        let text = written(|json| {
            json.inline_array()?;
            for value in [0.0, -0.5, 1e-7, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
                json.float(value)?;
            }
            json.end_array()
        });
        assert_eq!(text, "[0.0, -0.5, 1e-7, 1e300, \"inf\", \"-inf\", \"nan\"]\n");
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
}
