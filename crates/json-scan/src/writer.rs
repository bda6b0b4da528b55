//! Writing values.

use alloc::string::String;
use core::fmt::{Display, Write as _};

use crate::escape::{Escape, push_string};

/// Writes one JSON value, compact or indented by two spaces. The caller closes what it opens, and gives each member of an object a key.
///
/// ```
/// use json_scan::{Escape, Writer};
///
/// let mut json = Writer::compact(Escape::Minimal);
/// json.begin_object();
/// json.key("name").string("a");
/// json.key("shape").begin_array();
/// json.plain(2).plain(3);
/// json.end_array();
/// json.end_object();
/// assert_eq!(json.finish(), r#"{"name":"a","shape":[2,3]}"#);
/// ```
#[derive(Clone, Debug)]
pub struct Writer {
    text: String,
    escape: Escape,
    /// Nesting, of the indented form.
    depth: Option<usize>,
    /// Whether a comma is due before the next member or element.
    comma: bool,
    /// Whether a key was written whose value is due.
    after_key: bool,
}

impl Writer {
    /// A writer without white space.
    #[must_use]
    pub const fn compact(escape: Escape) -> Self {
        Self { text: String::new(), escape, depth: None, comma: false, after_key: false }
    }

    /// A writer of one member or element a line, as `json.dumps(..., indent=2)`.
    #[must_use]
    pub const fn indented(escape: Escape) -> Self {
        Self { text: String::new(), escape, depth: Some(0), comma: false, after_key: false }
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }

    /// Opens an object.
    pub fn begin_object(&mut self) {
        self.open('{');
    }

    /// Closes an object.
    pub fn end_object(&mut self) {
        self.close('}');
    }

    /// Opens an array.
    pub fn begin_array(&mut self) {
        self.open('[');
    }

    /// Closes an array.
    pub fn end_array(&mut self) {
        self.close(']');
    }

    /// The key of the next value.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.separate();
        push_string(&mut self.text, key, self.escape);
        self.text.push_str(if self.depth.is_some() { ": " } else { ":" });
        self.after_key = true;
        self
    }

    /// A string.
    pub fn string(&mut self, value: &str) -> &mut Self {
        self.separate();
        push_string(&mut self.text, value, self.escape);
        self
    }

    /// A value whose `Display` is JSON: an integer, a boolean, a text that is JSON already.
    pub fn plain(&mut self, value: impl Display) -> &mut Self {
        self.separate();
        // Appending to a string does not fail.
        let _ = write!(self.text, "{value}");
        self
    }

    /// `null`.
    pub fn null(&mut self) -> &mut Self {
        self.plain("null")
    }

    fn open(&mut self, bracket: char) {
        self.separate();
        self.text.push(bracket);
        self.depth = self.depth.map(|depth| depth + 1);
        self.comma = false;
    }

    fn close(&mut self, bracket: char) {
        self.depth = self.depth.map(|depth| depth.saturating_sub(1));
        if self.comma {
            self.new_line();
        }
        self.text.push(bracket);
        self.comma = true;
    }

    fn separate(&mut self) {
        if core::mem::take(&mut self.after_key) {
            self.comma = true;
            return;
        }
        if self.comma {
            self.text.push(',');
        }
        if self.depth.is_some_and(|depth| depth > 0) {
            self.new_line();
        }
        self.comma = true;
    }

    fn new_line(&mut self) {
        if let Some(depth) = self.depth {
            self.text.push('\n');
            self.text.extend(core::iter::repeat_n("  ", depth));
        }
    }
}
