//! The text of key files: a comment, a key line.

use alloc::string::String;

use crate::encrypt::password::Argon2Limits;
use crate::error::{Error, ErrorKind};
use crate::keys::stored::{LockedKey, PublicKey, SecretKey, StoredKey};
use crate::secret::SecretText;

/// Maximum length of a key file.
pub(crate) const MAX_TEXT_LEN: usize = 64 * 1024;

impl PublicKey {
    /// The text of a key file: a comment line, if `comment` is not empty, and the key line.
    ///
    /// ```
    /// use apr_crypto::{PublicKey, SigningKey};
    ///
    /// let key = PublicKey::from(SigningKey::from_seed(&[1; 32]).verifying_key());
    /// let text = key.to_file_text("releases of example.org")?;
    /// assert!(text.starts_with("# releases of example.org\napr-verify-1"));
    /// assert_eq!(PublicKey::from_file_text(&text)?, key);
    /// # Ok::<(), apr_crypto::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Comment`] for control or invisible characters in `comment`, [`ErrorKind::TooLong`] beyond 1,000 bytes.
    pub fn to_file_text(&self, comment: &str) -> Result<String, Error> {
        let line = alloc::string::ToString::to_string(self);
        Ok(file_text(comment, &line)?.as_str().into())
    }

    /// The one public key of a text; empty lines and lines that begin with `#` do not count.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoKey`], [`ErrorKind::SecondKey`], [`ErrorKind::TooLong`] beyond 64 KiB, and what the key line has wrong,
    /// with its number.
    pub fn from_file_text(text: &str) -> Result<Self, Error> {
        let (number, line) = key_line(text, "public key")?;
        line.parse().map_err(|error: Error| error.at_line(number))
    }
}

impl SecretKey {
    /// The text of a key file: a comment line, if `comment` is not empty, and the key line.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Comment`] for control or invisible characters in `comment`, [`ErrorKind::TooLong`] beyond 1,000 bytes.
    pub fn to_file_text(&self, comment: &str) -> Result<SecretText, Error> {
        file_text(comment, self.to_text().as_str())
    }
}

impl LockedKey {
    /// The text of a key file: a comment line, if `comment` is not empty, and the key line.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Comment`] for control or invisible characters in `comment`, [`ErrorKind::TooLong`] beyond 1,000 bytes.
    pub fn to_file_text(&self, comment: &str) -> Result<String, Error> {
        Ok(file_text(comment, &self.to_text())?.as_str().into())
    }
}

impl StoredKey {
    /// The one secret key of a text; empty lines and lines that begin with `#` do not count.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoKey`], [`ErrorKind::SecondKey`], [`ErrorKind::TooLong`] beyond 64 KiB, and what the key line has wrong,
    /// with its number.
    pub fn from_file_text(text: &str, limits: &Argon2Limits) -> Result<Self, Error> {
        let (number, line) = key_line(text, "secret key")?;
        Self::from_text(line, limits).map_err(|error| error.at_line(number))
    }
}

fn file_text(comment: &str, line: &str) -> Result<SecretText, Error> {
    check_line(comment)?;
    let mut text = SecretText::with_capacity(comment.len() + line.len() + 4);
    if !comment.is_empty() {
        text.push_str("# ");
        text.push_str(comment);
        text.push_str("\n");
    }
    text.push_str(line);
    text.push_str("\n");
    Ok(text)
}

/// Refuses what would end a line or drive a terminal.
pub(crate) fn check_line(text: &str) -> Result<(), Error> {
    const MAX_LEN: usize = 1000;
    if text.len() > MAX_LEN {
        let (len, limit) = (text.len() as u64, MAX_LEN as u64);
        return Err(ErrorKind::TooLong { what: "the comment", len, limit }.into());
    }
    if text.chars().any(drives_terminals) {
        return Err(ErrorKind::Comment { what: "a line break, control or invisible character" }.into());
    }
    Ok(())
}

/// Control characters, line breaks, and the invisible ones that reorder what is shown or make two names look like one.
pub(crate) fn drives_terminals(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The lines of a text that say something, with their numbers.
pub(crate) fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(|line| line.trim_end_matches([' ', '\t', '\r']));
    (1..).zip(lines).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// The only line of a text that is neither empty nor a comment.
fn key_line<'a>(text: &'a str, expected: &'static str) -> Result<(usize, &'a str), Error> {
    if text.len() > MAX_TEXT_LEN {
        let (len, limit) = (text.len() as u64, MAX_TEXT_LEN as u64);
        return Err(ErrorKind::TooLong { what: "the key file", len, limit }.into());
    }
    let mut lines = lines_of(text);
    let line = lines.next().ok_or(ErrorKind::NoKey { expected })?;
    match lines.next() {
        Some((number, _)) => Err(Error::from(ErrorKind::SecondKey).at_line(number)),
        None => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::*;
    use crate::encrypt::password::{Argon2Cost, Password};
    use crate::encrypt::recipient::RecipientSecret;
    use crate::random::fixed::Seeded;

    fn key() -> SecretKey {
        RecipientSecret::from_bytes(&[3; 32]).into()
    }

    #[test]
    fn texts_there_and_back() {
        let limits = Argon2Limits::default();
        for comment in ["", "buyer 7", "ünï 鍵", "# more"] {
            let text = key().to_file_text(comment).unwrap();
            let StoredKey::Open(found) = StoredKey::from_file_text(text.as_str(), &limits).unwrap() else {
                panic!()
            };
            assert_eq!(found.public(), key().public());
            let text = key().public().to_file_text(comment).unwrap();
            assert_eq!(PublicKey::from_file_text(&text).unwrap(), key().public());
            // As an editor for Windows leaves it.
            let text = format!("\r\n{}\r\n\r\n", text.replace('\n', "  \r\n"));
            assert_eq!(PublicKey::from_file_text(&text).unwrap(), key().public());
        }
    }

    #[test]
    fn locked_keys_there_and_back() {
        let limits = Argon2Limits::default().with_memory_kib(8..=1024);
        let cost = Argon2Cost::new(8, 1, 1, &limits).unwrap();
        let locked = key().lock(&mut Seeded(1), &Password::from("pw"), &cost).unwrap();
        for (comment, begin) in [("", "apr-"), ("buyer", "# buyer\napr-")] {
            let text = locked.to_file_text(comment).unwrap();
            assert!(text.starts_with(begin), "{text}");
            let StoredKey::Locked(found) = StoredKey::from_file_text(&text, &limits).unwrap() else {
                panic!()
            };
            assert_eq!(found.to_text(), locked.to_text());
        }
    }

    #[test]
    fn the_longest_texts_are_taken_and_no_longer_ones() {
        let long = "c".repeat(1000);
        assert!(key().public().to_file_text(&long).unwrap().starts_with(&format!("# {long}\n")));
        assert_eq!(key().public().to_file_text(&(long + "c")).unwrap_err().code(), "cy-too-long");

        let line = key().public().to_file_text("").unwrap();
        let text = |len: usize| format!("{line}#{}", "c".repeat(len - line.len() - 1));
        assert_eq!(PublicKey::from_file_text(&text(65_536)).unwrap(), key().public());
        let refused = PublicKey::from_file_text(&text(65_537)).unwrap_err();
        assert_eq!(refused.kind(), &ErrorKind::TooLong { what: "the key file", len: 65_537, limit: 65_536 });
    }

    #[test]
    fn errors_name_their_line() {
        let line = key().public();
        let kind = |text: &str| {
            PublicKey::from_file_text(text).map_err(|error| (*error.kind(), error.line())).unwrap_err()
        };
        assert_eq!(kind(""), (ErrorKind::NoKey { expected: "public key" }, None));
        assert_eq!(kind("# apr-public-1\n"), (ErrorKind::NoKey { expected: "public key" }, None));
        assert_eq!(kind(&format!("{line}\n#\n{line}\n")), (ErrorKind::SecondKey, Some(3)));
        assert_eq!(kind(&format!("#\n{line}q")), (ErrorKind::Checksum, Some(2)));
        assert_eq!(kind(&format!(" {line}")).1, Some(1));
        let (error, line) = kind(&format!("\n\n{}", key().to_text().as_str()));
        assert_eq!((error.code(), line), ("cy-key-kind", Some(3)));
        assert_eq!(kind(&"#".repeat(MAX_TEXT_LEN + 1)).0.code(), "cy-too-long");
    }

    #[test]
    fn comments_are_one_line() {
        for comment in ["a\nb", "a\rb", "\0", "\u{1b}[31m", "\u{2028}", "\u{85}", "\u{202e}", "\u{200b}"] {
            assert_eq!(key().to_file_text(comment).unwrap_err().code(), "cy-comment", "{comment:?}");
        }
        assert_eq!(key().to_file_text(&"x".repeat(1001)).unwrap_err().code(), "cy-too-long");
    }

    proptest! {
        #[test]
        fn random_text_does_not_panic(text: String) {
            let _ = PublicKey::from_file_text(&text);
            let _ = StoredKey::from_file_text(&text, &Argon2Limits::default());
        }
    }
}
