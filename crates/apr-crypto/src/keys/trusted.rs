//! Trusted-keys list: names for verifying keys.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, ErrorKind};
use crate::keys::text::{drives_terminals, lines_of};
use crate::sign::ed25519::VerifyingKey;

/// Keys this user trusts, each under a name of the user's choice. A text: one `name apr-verify-1...` a line; empty lines
/// and lines that begin with `#` do not count.
///
/// ```
/// use apr_crypto::{SigningKey, TrustedKeys};
///
/// let key = SigningKey::from_seed(&[1; 32]).verifying_key();
/// let trusted = TrustedKeys::parse(&format!("# my list\nalice {key}\n"))?;
/// assert_eq!(trusted.name_of(&key), Some("alice"));
/// assert_eq!(trusted.key_of("alice"), Some(&key));
/// assert_eq!(trusted.name_of(&SigningKey::from_seed(&[2; 32]).verifying_key()), None);
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedKeys {
    entries: Vec<(String, VerifyingKey)>,
}

impl TrustedKeys {
    /// Maximum length of the text.
    pub const MAX_TEXT_LEN: usize = 1 << 20;
    /// Longest name.
    pub const MAX_NAME_LEN: usize = 64;

    /// No keys.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Reads a list.
    ///
    /// # Errors
    ///
    /// With the number of the line: [`ErrorKind::Text`] for a line without two words, [`ErrorKind::Duplicate`] for a name
    /// or key that was there before, what the key line has wrong. [`ErrorKind::TooLong`] beyond 1 MiB.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > Self::MAX_TEXT_LEN {
            let (len, limit) = (text.len() as u64, Self::MAX_TEXT_LEN as u64);
            return Err(ErrorKind::TooLong { what: "the list of trusted keys", len, limit }.into());
        }
        let mut entries = Vec::new();
        for (number, line) in lines_of(text) {
            let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
            let (Some(name), Some(key), None) = (words.next(), words.next(), words.next()) else {
                let what = "a line is a name and a key";
                return Err(
                    Error::from(ErrorKind::Text { format: "a list of trusted keys", what }).at_line(number)
                );
            };
            let key = key.parse::<VerifyingKey>().map_err(|error| error.at_line(number))?;
            check_name(name).map_err(|error| error.at_line(number))?;
            entries.push((name.to_string(), key, number));
        }
        // Sorted, so that a long list does not take the square of its length.
        let mut order: Vec<usize> = (0..entries.len()).collect();
        let mut find =
            |what, same: fn(&Entry, &Entry) -> bool, sort: fn(&Entry, &Entry) -> core::cmp::Ordering| {
                let entry = |idx: &usize| entries.get(*idx);
                order.sort_by(|a, b| {
                    entry(a).zip(entry(b)).map_or(core::cmp::Ordering::Equal, |(a, b)| sort(a, b))
                });
                let pairs = order.iter().zip(order.iter().skip(1));
                let twice = pairs.filter_map(|(a, b)| entry(a).zip(entry(b))).find(|(a, b)| same(a, b));
                match twice {
                    Some((a, b)) => Err(Error::from(ErrorKind::Duplicate { what }).at_line(a.2.max(b.2))),
                    None => Ok(()),
                }
            };
        find("name", |a, b| a.0 == b.0, |a, b| a.0.cmp(&b.0))?;
        find("key", |a, b| a.1 == b.1, |a, b| a.1.as_bytes().cmp(b.1.as_bytes()))?;
        Ok(Self { entries: entries.into_iter().map(|(name, key, _)| (name, key)).collect() })
    }

    /// Adds a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Comment`] for a name with white space, control or invisible characters, an empty one, one that begins
    /// with `#` or has more than 64 bytes; [`ErrorKind::Duplicate`] for a name or key that is there.
    pub fn add(&mut self, name: &str, key: VerifyingKey) -> Result<(), Error> {
        check_name(name)?;
        if self.key_of(name).is_some() {
            return Err(ErrorKind::Duplicate { what: "name" }.into());
        }
        if self.name_of(&key).is_some() {
            return Err(ErrorKind::Duplicate { what: "key" }.into());
        }
        self.entries.push((name.to_string(), key));
        Ok(())
    }

    /// Takes a key off the list; whether it was on it.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(entry, _)| entry != name);
        self.entries.len() < before
    }

    /// The name of a key; none if it is not trusted.
    #[must_use]
    pub fn name_of(&self, key: &VerifyingKey) -> Option<&str> {
        self.entries.iter().find(|(_, entry)| entry == key).map(|(name, _)| name.as_str())
    }

    /// The key of a name.
    #[must_use]
    pub fn key_of(&self, name: &str) -> Option<&VerifyingKey> {
        self.entries.iter().find(|(entry, _)| entry == name).map(|(_, key)| key)
    }

    /// Names and keys, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &VerifyingKey)> {
        self.entries.iter().map(|(name, key)| (name.as_str(), key))
    }

    /// Keys on the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

type Entry = (String, VerifyingKey, usize);

/// The text of the list, as [`parse`](TrustedKeys::parse) reads it. Comments of a text it was read from are lost.
impl fmt::Display for TrustedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(name, key)| writeln!(f, "{name} {key}"))
    }
}

#[cfg(feature = "std")]
impl TrustedKeys {
    /// Reads a list from a file. On Unix, one that group or others may change is refused: a line more is a signer more.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exposed`], [`ErrorKind::NotRegular`], [`ErrorKind::File`], and those of [`parse`](Self::parse).
    pub fn open_file(path: &std::path::Path) -> Result<Self, Error> {
        use crate::keys::file::{Access, read, text_of};
        let text = read(path, Access::Trusted, Self::MAX_TEXT_LEN)?;
        text_of(&text).and_then(Self::parse).map_err(|error| error.in_file(path))
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let what = if name.is_empty() {
        "a name is needed"
    } else if name.len() > TrustedKeys::MAX_NAME_LEN {
        "a name has at most 64 bytes"
    } else if name.starts_with('#') {
        "a name does not begin with `#`"
    } else if name.chars().any(|letter| letter.is_whitespace() || drives_terminals(letter)) {
        "a name has no spaces and no control or invisible characters"
    } else {
        return Ok(());
    };
    Err(ErrorKind::Comment { what }.into())
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::*;
    use crate::sign::ed25519::SigningKey;

    fn key(seed: u8) -> VerifyingKey {
        SigningKey::from_seed(&[seed; 32]).verifying_key()
    }

    #[test]
    fn lists_there_and_back() {
        let mut list = TrustedKeys::new();
        assert!(list.is_empty());
        list.add("zoë", key(1)).unwrap();
        list.add("alice", key(2)).unwrap();
        assert_eq!(TrustedKeys::parse(&list.to_string()).unwrap(), list);
        let names: Vec<&str> = list.iter().map(|(name, _)| name).collect();
        assert_eq!((names, list.len()), (alloc::vec!["zoë", "alice"], 2));
        assert!(list.remove("zoë") && !list.remove("zoë"));
        assert_eq!(list.name_of(&key(1)), None);
        let spaced = format!("#c\r\n\r\n \t alice \t {}  \r\n", key(2));
        assert_eq!(TrustedKeys::parse(&spaced).unwrap(), list);
    }

    #[test]
    fn doubtful_lists_are_refused() {
        let (a, b) = (key(1), key(2));
        let kind = |text: &str| {
            let error = TrustedKeys::parse(text).unwrap_err();
            (error.code(), error.line())
        };
        assert_eq!(kind(&format!("a {a}\nb {b}\na {}", key(3))), ("cy-duplicate", Some(3)));
        assert_eq!(kind(&format!("a {a}\nc {b}\nb {a}")), ("cy-duplicate", Some(3)));
        assert_eq!(kind("a"), ("cy-text", Some(1)));
        assert_eq!(kind(&format!("a {a} b")), ("cy-text", Some(1)));
        assert_eq!(kind(&format!("{a}")), ("cy-text", Some(1)));
        assert_eq!(kind(&format!("{a} a")), ("cy-bech32", Some(1)));
        assert_eq!(kind(&format!("\n{} {a}", "x".repeat(65))), ("cy-comment", Some(2)));
        let secret = SigningKey::from_seed(&[1; 32]).to_text();
        assert_eq!(kind(&format!("a {}", secret.as_str())), ("cy-key-kind", Some(1)));
        assert_eq!(kind(&"#".repeat((1 << 20) + 1)), ("cy-too-long", None));
    }

    #[test]
    fn doubtful_entries_are_refused() {
        let mut list = TrustedKeys::new();
        for name in
            ["", "a b", "a\tb", "a\n", "#a", "\u{1b}", "a\u{a0}b", "a\u{200b}", "\u{202e}a", &"x".repeat(65)]
        {
            assert_eq!(list.add(name, key(1)).unwrap_err().code(), "cy-comment", "{name:?}");
        }
        list.add("a", key(1)).unwrap();
        assert_eq!(list.add("a", key(2)).unwrap_err().kind(), &ErrorKind::Duplicate { what: "name" });
        assert_eq!(list.add("b", key(1)).unwrap_err().kind(), &ErrorKind::Duplicate { what: "key" });
    }

    #[test]
    fn a_long_list_of_one_name_is_refused_quickly() {
        let line = format!("a {}\n", key(1));
        let text = line.repeat((1 << 17) / line.len());
        assert_eq!(TrustedKeys::parse(&text).unwrap_err().code(), "cy-duplicate");
    }

    #[test]
    fn the_longest_are_taken_and_no_longer_ones() {
        let line = format!("{} {}\n", "n".repeat(TrustedKeys::MAX_NAME_LEN), key(1));
        let text = |len: usize| format!("{line}#{}", "c".repeat(len - line.len() - 1));
        let list = TrustedKeys::parse(&text(TrustedKeys::MAX_TEXT_LEN)).unwrap();
        assert!(list.len() == 1 && !list.is_empty() && TrustedKeys::parse("").unwrap().is_empty());
        let refused = TrustedKeys::parse(&text(TrustedKeys::MAX_TEXT_LEN + 1)).unwrap_err();
        assert_eq!(refused.code(), "cy-too-long");
        assert_eq!(TrustedKeys::parse(&format!("n{line}")).unwrap_err().code(), "cy-comment");
    }

    proptest! {
        #[test]
        fn random_text_does_not_panic(text: String) {
            let _ = TrustedKeys::parse(&text);
        }
    }
}
