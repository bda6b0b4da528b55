//! Formatting of JSON: indented by two spaces, lists of numbers on one line.
//!
//! What [`escape`](crate::terminal::escape) calls a hazard is escaped, so that the text is safe on a terminal too.

use std::io::{self, Write};

use json_scan::JsonEscape;
use serde_json::ser::{CharEscape, Formatter};

use crate::terminal::escape::is_hazard;

/// The layout of an open object or list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// Elements on one line; also what has no element yet.
    OneLine,
    /// One line for each element.
    Lines,
}

/// Indented JSON.
#[derive(Clone, Debug, Default)]
pub(super) struct Indented {
    levels: Vec<Level>,
    /// Whether the next value is the first of a list, whose layout it decides.
    decides: bool,
}

impl Indented {
    /// Inside an element of a list that is a field of the report.
    pub(super) fn in_list_of_report() -> Self {
        Self { levels: vec![Level::Lines; 2], decides: false }
    }

    fn new_line<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.levels.len()).try_for_each(|_| out.write_all(b"  "))
    }

    /// Begins a value that is no number: a list of such values takes a line for each.
    fn begin_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if !core::mem::take(&mut self.decides) {
            return Ok(());
        }
        self.begin_line(out)
    }

    fn begin_line<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if let Some(level) = self.levels.last_mut() {
            *level = Level::Lines;
        }
        self.new_line(out)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        if self.levels.pop() == Some(Level::Lines) {
            self.new_line(out)?;
        }
        out.write_all(bracket)
    }
}

impl Formatter for Indented {
    fn write_f32<W: ?Sized + Write>(&mut self, out: &mut W, value: f32) -> io::Result<()> {
        write!(out, "{value:?}")
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        write!(out, "{value:?}")
    }

    fn begin_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin_value(out)?;
        out.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, hazard)) = rest.char_indices().find(|&(_, c)| is_hazard(c)) {
            out.write_all(&rest.as_bytes()[..at])?;
            write!(out, "{}", JsonEscape(hazard))?;
            rest = &rest[at + hazard.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        let character = match escape {
            CharEscape::Quote => '"',
            CharEscape::ReverseSolidus => '\\',
            CharEscape::Solidus => return out.write_all(b"/"),
            CharEscape::LineFeed => '\n',
            CharEscape::CarriageReturn => '\r',
            CharEscape::Tab => '\t',
            CharEscape::Backspace => '\u{8}',
            CharEscape::FormFeed => '\u{c}',
            CharEscape::AsciiControl(byte) => char::from(byte),
        };
        write!(out, "{}", JsonEscape(character))
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin_value(out)?;
        self.levels.push(Level::OneLine);
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.decides = first;
        match self.levels.last() {
            _ if first => Ok(()),
            Some(Level::Lines) => {
                out.write_all(b",")?;
                self.new_line(out)
            }
            _ => out.write_all(b", "),
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.decides = false;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin_value(out)?;
        self.levels.push(Level::OneLine);
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.begin_line(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_raw_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        self.begin_value(out)?;
        out.write_all(fragment.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::json;

    use super::*;
    use crate::report::{Number, OneLine};

    fn written(value: &impl Serialize) -> String {
        let mut bytes = Vec::new();
        let mut json = serde_json::Serializer::with_formatter(&mut bytes, Indented::default());
        value.serialize(&mut json).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn layout_is_fixed() {
        let value =
            json!({"a": "x/1", "b": [2, 3], "c": [], "d": [{"ok": true}], "e": ["x", [1.5]], "f": {}});
        assert_eq!(
            written(&value),
            "{\n  \"a\": \"x/1\",\n  \"b\": [2, 3],\n  \"c\": [],\n  \"d\": [\n    {\n      \"ok\": true\n    }\n  \
             ],\n  \"e\": [\n    \"x\",\n    [1.5]\n  ],\n  \"f\": {}\n}"
        );
        let lines = BTreeMap::from([("list", OneLine(&["a", "b"]))]);
        assert_eq!(written(&lines), "{\n  \"list\": [\"a\", \"b\"]\n}");
    }

    #[test]
    fn strings_survive_a_parser_and_hold_no_hazard() {
        let hostile = "q\" b\\ \n\r\t\u{0}\u{8}\u{1b}\u{7f}\u{9b}\u{202e}\u{2028}\u{e0041}é漢😀";
        let text = written(&hostile);
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), hostile);
        assert!(!text.chars().any(is_hazard));
    }

    #[test]
    fn numbers_json_cannot_hold_are_strings() {
        let numbers = [0.0, -0.5, 1e-7, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(Number);
        assert_eq!(written(&numbers), "[0.0, -0.5, 1e-7, 1e300, \"inf\", \"-inf\", \"nan\"]");
    }
}
