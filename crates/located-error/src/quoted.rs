//! Untrusted names in messages.

use core::fmt::{self, Write as _};

/// A string in quotation marks that cannot control a terminal: control characters, and characters that reorder or hide what follows
/// them on a screen, are escaped.
///
/// ```
/// use located_error::Quoted;
///
/// assert_eq!(Quoted("a \"b\"\n\u{1b}[2Jé").to_string(), r#""a \"b\"\n\u{1b}[2Jé""#);
/// assert_eq!(Quoted("\u{61c}\u{202e}\u{e0041}").to_string(), r#""\u{61c}\u{202e}\u{e0041}""#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'t>(pub &'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        Escaped(self.0).fmt(f)?;
        f.write_char('"')
    }
}

/// The characters between the quotation marks.
pub(crate) struct Escaped<'t>(pub(crate) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write_escape(f, character)?,
                '\n' => write_escape(f, 'n')?,
                '\r' => write_escape(f, 'r')?,
                '\t' => write_escape(f, 't')?,
                '\0'..='\u{1f}'
                | '\u{7f}'..='\u{9f}'
                | '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}' => write!(f, "\\u{{{:x}}}", u32::from(character))?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

fn write_escape(f: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    f.write_char('\\')?;
    f.write_char(character)
}
