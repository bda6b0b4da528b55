//! Escaping of text from files for the terminal.
//!
//! Names and metadata come from the file, which is untrusted. Printed as they are, they could move the cursor, change colours,
//! hide text, or reorder it with bidirectional controls. Everything from a file is therefore escaped.

use alloc::borrow::Cow;
use core::fmt::Write as _;
use std::path::Path;

pub(crate) use json_scan::{Visible, is_hazard};

use super::suggest::is_url;

/// Most characters of a path in a message: more than those of paths that people type.
const MAX_PATH: usize = 400;

/// Most names that are listed.
const MAX_NAMES: usize = 10;

/// The string as [`Visible`] shows it.
pub(crate) fn escaped(text: &str) -> String {
    Visible(text).to_string()
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
        let _ = write!(shown, "{}", Visible(c.encode_utf8(&mut [0; 4])));
    }
    shown
}

/// The first names of a list, escaped.
pub(crate) fn some_of(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| cut(name, 100)).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A path for people to read.
pub(crate) fn path(path: &Path) -> String {
    escaped(&without_credentials(path.to_string_lossy()))
}

/// A path in a message: a very long one is cut.
pub(crate) fn short_path(path: &Path) -> String {
    cut(&without_credentials(path.to_string_lossy()), MAX_PATH)
}

/// A text as a word of a shell's command line, in quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A text as a word of a command line that may be copied: in quotes where a shell would take it for more or less than a word.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text.into() } else { quoted(text) }
}

/// A path as a word of a command line, for people to read.
pub(crate) fn path_word(path: &Path) -> String {
    escaped(&word(&without_credentials(path.to_string_lossy())))
}

/// A text; if it is a URL, without the user name and the password in it. No URL with these is read, and a message may be kept in a log.
pub(crate) fn without_credentials(text: Cow<'_, str>) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://").filter(|_| is_url(&text)) else { return text };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        // A revision is after it.
        Some(_) if scheme.eq_ignore_ascii_case("hf") => text,
        Some(host) => format!("{scheme}://***{}", &rest[host..]).into(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_urls_are_not_shown() {
        for (text, expected) in [
            ("http://user:word@host:1/a@b?c", "http://***@host:1/a@b?c"),
            ("ftp://a:b@c@host/", "ftp://***@host/"),
        ] {
            assert_eq!(path(Path::new(text)), expected);
        }
        for text in
            ["https://host/a@b", "https://host?a@b", "hf://org/name@main/f", "hf://name@main", "a@b", ""]
        {
            assert_eq!(path(Path::new(text)), text);
        }
    }

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
    fn words_of_command_lines_are_one_word() {
        for plain in ["llama-bpe", "a/b.gguf", "hf://org/name@main"] {
            assert_eq!(word(plain), plain);
        }
        assert_eq!(word(""), "''");
        assert_eq!(word("x; touch pwned"), "'x; touch pwned'");
        assert_eq!(word("it's $(a)"), "'it'\\''s $(a)'");
        assert_eq!(path_word(Path::new("a b/\u{1b}")), "'a b/\\u{1b}'");
    }

    #[test]
    fn long_values_say_how_much_is_missing() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("ab\u{1b}def", 3), "ab\\u{1b}... (+3 characters)");
    }
}
