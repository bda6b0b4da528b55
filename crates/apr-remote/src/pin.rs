//! Which version of a file is read, and whether an answer is of that version.

use core::ops::Range;
use std::sync::OnceLock;

use ureq::http::HeaderMap;

use crate::error::{Error, ErrorKind};

/// What the first answer says about the version of the file. Later answers have to say the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) len: u64,
    /// A strong ETag; weak ones are the same for different bytes.
    pub(crate) etag: Option<String>,
    /// Where there is no ETag.
    pub(crate) modified: Option<String>,
}

impl Pin {
    pub(crate) fn new(len: u64, headers: &HeaderMap) -> Self {
        let etag = text(headers, "etag").filter(|tag| tag.starts_with('"'));
        let modified = text(headers, "last-modified").filter(|_| etag.is_none());
        Self { len, etag: etag.map(str::to_owned), modified: modified.map(str::to_owned) }
    }

    /// Whether an answer is of a version with the same strong ETag.
    pub(crate) fn has_etag_of(&self, headers: &HeaderMap) -> bool {
        self.etag.is_some() && self.etag == Self::new(self.len, headers).etag
    }

    /// # Errors
    ///
    /// [`ErrorKind::Changed`].
    pub(crate) fn check(&self, other: &Self) -> Result<(), Error> {
        if self == other { Ok(()) } else { Err(ErrorKind::Changed.into()) }
    }
}

/// What a request asks for besides the range.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition<'t> {
    Always,
    /// Only the version with this ETag.
    Same(&'t str),
    /// Only another version than that with this ETag.
    Other(&'t str),
}

/// The version that is read.
#[derive(Debug)]
pub(crate) struct Version {
    known: Pin,
    /// What the server of the bytes has said in this process. Of a commit of the hub that is known without asking it, its ETag may be
    /// another one than in earlier processes, as of another store.
    seen: OnceLock<Pin>,
}

impl Version {
    /// As the server of the bytes has just said.
    pub(crate) fn seen(pin: Pin) -> Self {
        Self { seen: pin.clone().into(), known: pin }
    }

    /// As it was recorded.
    pub(crate) const fn recorded(known: Pin) -> Self {
        Self { known, seen: OnceLock::new() }
    }

    pub(crate) fn pin(&self) -> &Pin {
        self.seen.get().unwrap_or(&self.known)
    }

    pub(crate) fn condition(&self) -> Condition<'_> {
        let tag = self.seen.get().and_then(|pin| pin.etag.as_deref());
        tag.map_or(Condition::Always, Condition::Same)
    }

    /// # Errors
    ///
    /// [`ErrorKind::Changed`].
    pub(crate) fn check(&self, other: Pin) -> Result<(), Error> {
        if other.len != self.known.len {
            return Err(ErrorKind::Changed.into());
        }
        self.seen.get_or_init(|| other.clone()).check(&other)
    }
}

pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The length of the file by the `Content-Range` of a 206, which has to be the range that was asked for, up to the end of the file.
///
/// # Errors
///
/// [`ErrorKind::Range`].
pub(crate) fn total_of(content_range: Option<&str>, asked: &Range<u64>) -> Result<u64, Error> {
    let wrong = |problem| Error::from(ErrorKind::Range { problem });
    let value = content_range.ok_or_else(|| wrong("it has no Content-Range"))?;
    let (first, last, total) = parsed(value).ok_or_else(|| wrong("its Content-Range cannot be read"))?;
    if first != asked.start || total <= last || last != asked.end.min(total) - 1 {
        return Err(wrong("its Content-Range is another range"));
    }
    Ok(total)
}

/// The length of the file by the `Content-Range` of a 416: `bytes */0`.
pub(crate) fn total_of_unsatisfied(content_range: Option<&str>) -> Option<u64> {
    number(content_range?.strip_prefix("bytes */")?)
}

fn parsed(value: &str) -> Option<(u64, u64, u64)> {
    let (range, total) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((number(first)?, number(last)?, number(total)?))
}

/// Whether a text is a number of `len` lower-case hexadecimal digits.
pub(crate) fn is_hex(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Digits alone: `parse` would accept a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ureq::http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_range_that_was_asked_for_is_accepted() {
        assert_eq!(total_of(Some("bytes 0-9/100"), &(0..10)).unwrap(), 100);
        assert_eq!(total_of(Some("bytes 90-99/100"), &(90..200)).unwrap(), 100);
        for value in [
            "bytes 0-9/*",
            "bytes 1-10/100",
            "bytes 0-8/100",
            "bytes 0-10/100",
            "bytes 0-9/9",
            "bytes 0-9/+100",
            "bytes=0-9/100",
            "",
            "bytes 9-0/100",
            "items 0-9/100",
            "bytes 0-99999999999999999999/100",
            "bytes 0-9/0",
        ] {
            assert_eq!(total_of(Some(value), &(0..10)).unwrap_err().code(), "rm-range", "{value}");
        }
        assert_eq!(total_of(None, &(0..10)).unwrap_err().code(), "rm-range");
        assert_eq!(total_of_unsatisfied(Some("bytes */0")), Some(0));
        assert_eq!(total_of_unsatisfied(Some("bytes 0-9/0")), None);
    }

    #[test]
    fn versions_differ_by_tag_date_or_length() {
        let pin = |len, pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            Pin::new(len, &headers)
        };
        let first = pin(9, &[("etag", "\"a\""), ("last-modified", "x")]);
        assert!(first.check(&pin(9, &[("etag", "\"a\""), ("last-modified", "y")])).is_ok());
        for other in [
            pin(9, &[("etag", "\"b\"")]),
            pin(8, &[("etag", "\"a\"")]),
            pin(9, &[]),
            pin(9, &[("etag", "W/\"a\"")]),
        ] {
            assert_eq!(first.check(&other).unwrap_err().code(), "rm-changed");
        }
        let dated = pin(9, &[("etag", "W/\"a\""), ("last-modified", "x")]);
        assert!(dated.check(&pin(9, &[("etag", "W/\"b\""), ("last-modified", "x")])).is_ok());
        assert!(dated.check(&pin(9, &[("last-modified", "y")])).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_is_accepted_is_within_the_file(start in 0_u64..20, len in 1_u64..20, first in 0_u64..20, last in 0_u64..40, total in 0_u64..40) {
            let asked = start..start + len;
            if let Ok(found) = total_of(Some(&format!("bytes {first}-{last}/{total}")), &asked) {
                prop_assert_eq!(found, total);
                prop_assert_eq!(first, start);
                prop_assert_eq!(last + 1, asked.end.min(total));
            }
        }
    }
}
