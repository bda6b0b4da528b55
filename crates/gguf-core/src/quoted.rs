//! Names of strangers in texts for people.

use core::fmt::{self, Write as _};

/// A text in quotation marks that cannot steer a terminal: control characters, and those that reorder or hide what follows them
/// on a screen, are escaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoted<'t>(pub(crate) &'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write_escape(f, character)?,
                '\n' => write_escape(f, 'n')?,
                '\r' => write_escape(f, 'r')?,
                '\t' => write_escape(f, 't')?,
                '\0'..='\u{1f}'
                | '\u{7f}'..='\u{9f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}' => write!(f, "\\u{{{:x}}}", u32::from(character))?,
                _ => f.write_char(character)?,
            }
        }
        f.write_char('"')
    }
}

fn write_escape(f: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    f.write_char('\\')?;
    f.write_char(character)
}
