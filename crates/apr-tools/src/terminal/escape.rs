//! Text out of files, made safe to show.
//!
//! Names and metadata are written by whoever made the file. Printed raw, they can move the cursor, recolour or
//! hide what follows, or reorder it through bidirectional controls. What is shown is therefore escaped.

use core::fmt::{self, Write as _};
use std::path::Path;

/// Whether a character acts on the terminal or is invisible instead of being shown.
pub(crate) const fn is_hazard(c: char) -> bool {
    matches!(c,
        // C0, DEL and C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Arabic letter mark, Mongolian vowel separator, zero-width characters and directional marks.
        | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        // Line and paragraph separators, bidirectional embeddings and overrides.
        | '\u{2028}'..='\u{202e}'
        // Invisible operators, bidirectional isolates, deprecated formatting.
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        // Tag characters.
        | '\u{e0000}'..='\u{e007f}')
}

/// Shows a string with every hazardous character written as `\n` or `\u{202e}`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| is_hazard(c)) {
            f.write_str(&rest[..at])?;
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            }
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// The string as [`Escaped`] shows it.
pub(crate) fn escaped(text: &str) -> String {
    Escaped(text).to_string()
}

/// The escaped form, cut to `max` characters with a note of how many are missing.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == max {
            let missing = text.chars().count() - max;
            let _ = write!(shown, "... (+{missing} characters)");
            break;
        }
        let _ = write!(shown, "{}", Escaped(c.encode_utf8(&mut [0; 4])));
    }
    shown
}

/// A path for people to read.
pub(crate) fn path(path: &Path) -> String {
    escaped(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_bidi_are_written_out() {
        let hostile = "a\u{1b}[31mb\u{202e}c\u{7f}\u{9b}\n\u{2066}\u{200f}\u{2028}é漢";
        assert_eq!(
            escaped(hostile),
            "a\\u{1b}[31mb\\u{202e}c\\u{7f}\\u{9b}\\n\\u{2066}\\u{200f}\\u{2028}é漢"
        );
        assert!(!escaped(hostile).chars().any(is_hazard));
    }

    #[test]
    fn plain_text_is_unchanged() {
        assert_eq!(escaped("layer.0.w \\ \"x\""), "layer.0.w \\ \"x\"");
        assert_eq!(escaped(""), "");
    }

    #[test]
    fn long_values_say_how_much_is_missing() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("ab\u{1b}def", 3), "ab\\u{1b}... (+3 characters)");
    }
}
