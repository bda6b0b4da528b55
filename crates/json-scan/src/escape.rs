//! Writing strings.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Which characters of a string are escaped. Every choice yields the same value when the text is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// What JSON requires: quotes, backslashes and control characters, as `serde_json` writes them.
    Minimal,
    /// Also DEL and everything beyond ASCII, as Python's `json.dumps` does.
    Ascii,
    /// Also what [`is_hazard`] names: for text that a person reads on a terminal.
    Hazards,
}

/// Whether a character controls a terminal, or hides or reorders what follows it on a screen, instead of being visible.
#[must_use]
pub const fn is_hazard(character: char) -> bool {
    matches!(character,
        // C0, DEL and C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Soft hyphen, Arabic letter mark, Mongolian vowel separator, zero-width characters and directional marks.
        | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        // Line and paragraph separators, bidirectional embeddings and overrides.
        | '\u{2028}'..='\u{202e}'
        // Invisible operators, bidirectional isolates, deprecated formatting.
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        // Tag characters.
        | '\u{e0000}'..='\u{e007f}')
}

/// Appends a string literal, with its quotes.
pub fn push_string(out: &mut String, text: &str, escape: Escape) {
    let done = write(text, Style::Json(escape), out);
    debug_assert_eq!(done, Ok(()), "appending to a string does not fail");
}

/// Appends a string literal, with its quotes, as UTF-8.
pub fn push_string_bytes(out: &mut Vec<u8>, text: &str, escape: Escape) {
    let done = write(text, Style::Json(escape), &mut Utf8(out));
    debug_assert_eq!(done, Ok(()), "appending to a vector does not fail");
}

/// A vector that text is appended to.
struct Utf8<'v>(&'v mut Vec<u8>);

impl fmt::Write for Utf8<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// A string that displays as a JSON string literal.
///
/// ```
/// use json_scan::{Escape, JsonStr};
///
/// assert_eq!(JsonStr("a\"\n\u{202e}é", Escape::Minimal).to_string(), "\"a\\\"\\n\u{202e}é\"");
/// assert_eq!(JsonStr("a\"\n\u{202e}é", Escape::Hazards).to_string(), r#""a\"\n\u202eé""#);
/// assert_eq!(JsonStr("a\"\n\u{202e}é", Escape::Ascii).to_string(), r#""a\"\n\u202e\u00e9""#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct JsonStr<'t>(pub &'t str, pub Escape);

impl fmt::Display for JsonStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, Style::Json(self.1), f)
    }
}

/// A character that displays as its JSON escape sequence, for writers that find what to escape themselves.
///
/// ```
/// use json_scan::JsonEscape;
///
/// assert_eq!(JsonEscape('\n').to_string() + &JsonEscape('\u{e0041}').to_string(), r"\n\udb40\udc41");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct JsonEscape(pub char);

impl fmt::Display for JsonEscape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escape(self.0, Style::Json(Escape::Minimal), f)
    }
}

/// An untrusted name in a message: in quotation marks, [hazards](is_hazard) escaped as in a Rust string literal.
///
/// ```
/// use json_scan::Quoted;
///
/// assert_eq!(Quoted("a \"b\"\n\u{1b}[2Jé").to_string(), r#""a \"b\"\n\u{1b}[2Jé""#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'t>(pub &'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, Style::Quoted, f)
    }
}

/// Untrusted text on a terminal: as it is, but for [hazards](is_hazard), which are escaped as in a Rust string literal.
///
/// ```
/// use json_scan::Visible;
///
/// assert_eq!(Visible("a \"b\"\n\u{1b}[2Jé").to_string(), r#"a "b"\n\u{1b}[2Jé"#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Visible<'t>(pub &'t str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.0, Style::Visible, f)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Json(Escape),
    Quoted,
    Visible,
}

/// What a text is written to: the writer itself, or in a small build a trait object, so that there is one instance of what writes.
#[cfg(not(apr_small))]
macro_rules! out {
    () => { impl fmt::Write };
}
#[cfg(apr_small)]
macro_rules! out {
    () => { dyn fmt::Write + '_ };
}

#[cfg_attr(not(apr_small), inline)]
fn write(text: &str, style: Style, out: &mut out!()) -> fmt::Result {
    let quote = if style == Style::Visible { "" } else { "\"" };
    out.write_str(quote)?;
    let mut rest = text;
    while let Some((at, special)) = next_special(rest, style) {
        let (plain, after) = rest.split_at(at);
        out.write_str(plain)?;
        write_escape(special, style, out)?;
        rest = &after[special.len_utf8()..];
    }
    out.write_str(rest)?;
    out.write_str(quote)
}

/// The first character that is escaped.
#[inline]
fn next_special(text: &str, style: Style) -> Option<(usize, char)> {
    let at = match style {
        // Bytes of longer characters are not among these.
        Style::Json(Escape::Minimal) => text.bytes().position(|byte| matches!(byte, ..0x20 | b'"' | b'\\')),
        Style::Json(Escape::Ascii) => {
            text.bytes().position(|byte| matches!(byte, b'"' | b'\\') || !matches!(byte, b' '..=b'~'))
        }
        Style::Json(Escape::Hazards) | Style::Quoted => {
            text.find(|character| matches!(character, '"' | '\\') || is_hazard(character))
        }
        Style::Visible => text.find(is_hazard),
    }?;
    text[at..].chars().next().map(|character| (at, character))
}

fn write_escape(character: char, style: Style, out: &mut out!()) -> fmt::Result {
    let is_json = matches!(style, Style::Json(_));
    out.write_str(match character {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{8}' if is_json => "\\b",
        '\u{c}' if is_json => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        _ if is_json => {
            return character
                .encode_utf16(&mut [0; 2])
                .iter()
                .try_for_each(|unit| write!(out, "\\u{unit:04x}"));
        }
        _ => return write!(out, "\\u{{{:x}}}", u32::from(character)),
    })
}
