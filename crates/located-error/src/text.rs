//! Strings of bounded length from untrusted sources.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

/// The beginning of a string, at most `max` bytes, cut between characters.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

/// What `message` displays, at most `max` bytes of it: for messages of other people's types, which may quote a file.
#[must_use]
pub fn bounded(message: &dyn fmt::Display, max: usize) -> Box<str> {
    let mut kept = Bounded { text: String::new(), max };
    // It fails when there is more than is kept.
    let _ = write!(kept, "{message}");
    kept.text.into()
}

struct Bounded {
    text: String,
    max: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kept = cut(text, self.max - self.text.len());
        self.text.push_str(kept);
        if kept.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut(&"é".repeat(200), 255).len(), 254);
        assert_eq!(&*bounded(&"short", 512), "short");
        let long = bounded(&format_args!("a{}b", "é".repeat(1 << 20)), 512);
        assert!(long.len() == 511 && long.starts_with("aéé") && long.ends_with('é'));
    }
}
