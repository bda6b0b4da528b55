//! JSON that is kept as text, and the members of an object without a tree of it.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt;

use json_scan::{Check, Escape, Scanner};

use crate::error::Error;
use crate::v2;

/// A JSON value as its text: what a reader has no use for survives a rewrite byte for byte.
///
/// ```
/// use apr_container::v2::Json;
///
/// let json = Json::new(" {\"x\": [1, 2]} ")?;
/// assert_eq!(json.text(), "{\"x\": [1, 2]}");
/// assert_eq!(Json::from(7).as_u64(), Some(7));
/// assert_eq!(Json::from("a\n").text(), "\"a\\n\"");
/// assert!(Json::new("{").is_err());
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

impl Json {
    /// Keeps a text that is one JSON value, without the white space around it.
    ///
    /// # Errors
    ///
    /// [`v2::ErrorKind::JsonSyntax`].
    pub fn new(text: &str) -> Result<Self, Error> {
        check(text).map(|(text, _)| Self(text.into()))
    }

    /// Keeps a text known to be one JSON value.
    pub(crate) fn known(text: &str) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The value of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        json_scan::unescape(&self.0)
    }

    /// The value of an integer that is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// The value of a number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        // Of the words and signs that a float is parsed from, JSON has only those of numbers.
        self.0.parse().ok()
    }

    /// The value of a truth value.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        self.0.parse().ok()
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self(value.to_string().into())
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self(value.to_string().into())
    }
}

/// `null` for what is not finite, as JSON knows no other way.
impl From<f64> for Json {
    fn from(value: f64) -> Self {
        let text = if value.is_finite() { format!("{value:?}") } else { "null".to_string() };
        Self(text.into())
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        let mut text = String::new();
        json_scan::push_string(&mut text, value, Escape::Minimal);
        Self(text.into())
    }
}

/// The value in a text, without the white space around it, and the deepest nesting of arrays and objects in it.
pub(crate) fn check(text: &str) -> Result<(&str, usize), Error> {
    Ok(json_scan::value(text, Check::Syntax)?)
}

impl From<json_scan::Error> for Error {
    fn from(error: json_scan::Error) -> Self {
        v2::ErrorKind::JsonSyntax.at(error.offset() as u64)
    }
}

/// A member of an object.
#[derive(Clone, Copy)]
pub(crate) struct Member<'k, 't> {
    pub(crate) key: &'k str,
    /// The text of the value.
    pub(crate) value: &'t str,
    /// Byte offset of the key in the text.
    pub(crate) at: usize,
    /// Byte offset of the value.
    pub(crate) value_at: usize,
}

/// Calls `member` for each member of the object in a text that has been [checked](check).
///
/// # Errors
///
/// Those of `member`; [`v2::ErrorKind::JsonType`] if the text is not an object, [`v2::ErrorKind::JsonSyntax`] for a key with a lone
/// surrogate.
pub(crate) fn members<'t>(
    text: &'t str,
    mut member: impl FnMut(Member<'_, 't>) -> Result<(), Error>,
) -> Result<(), Error> {
    each_member(text, &mut member)
}

/// [`members`], compiled once for all callers.
fn each_member<'t>(
    text: &'t str,
    member: &mut dyn FnMut(Member<'_, 't>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut scanner = Scanner::new(text, Check::Syntax);
    if scanner.peek() != Some(b'{') {
        return Err(v2::ErrorKind::JsonType { expected: "an object" }.into());
    }
    scanner.members(|scanner, key, at| {
        let key = key.try_unescape().ok_or(v2::ErrorKind::JsonSyntax.at(at as u64))?;
        let (value, value_at) = value(scanner)?;
        member(Member { key: &key, value, at, value_at })
    })
}

/// Calls `item` for each element of the array in a text that has been [checked](check).
///
/// # Errors
///
/// Those of `item`; [`v2::ErrorKind::JsonType`] if the text is not an array.
pub(crate) fn items<'t>(
    text: &'t str,
    mut item: impl FnMut(&'t str, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut scanner = Scanner::new(text, Check::Syntax);
    if scanner.peek() != Some(b'[') {
        return Err(v2::ErrorKind::JsonType { expected: "an array" }.into());
    }
    scanner.items(|scanner, _| {
        let (value, at) = value(scanner)?;
        item(value, at)
    })
}

/// The text of the next value, and its byte offset.
fn value<'t>(scanner: &mut Scanner<'t>) -> Result<(&'t str, usize), Error> {
    let at = scanner.pos();
    scanner.skip_value(usize::MAX)?;
    let value = scanner.text_from(at);
    scanner.skip_white_space();
    Ok((value, at))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use json_scan::push_string;
    use proptest::prelude::*;

    use super::*;

    fn listed(text: &str) -> Vec<(String, String, usize)> {
        let mut found = Vec::new();
        members(check(text).unwrap().0, |Member { key, value, at, value_at }| {
            assert!(text[value_at..].starts_with(value));
            found.push((key.into(), value.into(), at));
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn members_are_found_whatever_stands_around_them() {
        assert!(listed("{}").is_empty() && listed("{ }").is_empty());
        let text =
            "{ \"a\" : 1 ,\n\"b\\\"{\":\"}]\\\\\", \"\\u0063\":{\"x\":[\"]\",{}]} , \"d\":[],\"e\":-1e3}";
        let found = listed(text);
        let pairs: Vec<_> = found.iter().map(|(key, value, _)| (key.as_str(), value.as_str())).collect();
        let expected =
            [("a", "1"), ("b\"{", "\"}]\\\\\""), ("c", "{\"x\":[\"]\",{}]}"), ("d", "[]"), ("e", "-1e3")];
        assert_eq!(pairs, expected);
        assert!(found.iter().all(|(_, _, at)| text[*at..].starts_with('"')));
    }

    #[test]
    fn items_are_found() {
        let mut found = Vec::new();
        items("[ 1,[2,\",\"] , {\"a\":[]},null]", |item, _| {
            found.push(item);
            Ok(())
        })
        .unwrap();
        assert_eq!(found, ["1", "[2,\",\"]", "{\"a\":[]}", "null"]);
        items("[ ]", |_, _| Err(v2::ErrorKind::JsonSyntax.into())).unwrap();
    }

    #[test]
    fn other_values_are_refused_by_type() {
        let kind = |result: Result<(), Error>| result.unwrap_err().code();
        assert_eq!(kind(members("[]", |_| Ok(()))), "ac-v2-json-type");
        assert_eq!(kind(items("{}", |_, _| Ok(()))), "ac-v2-json-type");
    }

    #[test]
    fn half_a_surrogate_pair_is_no_key() {
        let (text, _) = check(r#"{"\ud800":1}"#).unwrap();
        assert_eq!(members(text, |_| Ok(())).unwrap_err().offset(), Some(1));
    }

    #[test]
    fn depth_counts_brackets_outside_strings() {
        let depth = |text| check(text).unwrap().1;
        assert_eq!(depth("1"), 0);
        assert_eq!(depth(r#"{"[[[\"[":[{}],"b":{}}"#), 3);
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(depth(&deep), 100_000);
    }

    #[test]
    fn faults_have_a_place() {
        let error = Json::new("{\"a\":1,\n\"b\":}").unwrap_err();
        assert_eq!((error.code(), error.offset()), ("ac-v2-json", Some(12)));
        assert_eq!(Json::new("").unwrap_err().offset(), Some(0));
    }

    #[test]
    fn values_are_read_and_made() {
        let values =
            [Json::from(true), Json::from(0.1), Json::from(f64::NAN), Json::from(1e300), Json::from("é\"")];
        let texts = values.each_ref().map(Json::text);
        assert_eq!(texts, ["true", "0.1", "null", "1e300", "\"é\\\"\""]);
        for value in &values {
            assert_eq!(&Json::new(value.text()).unwrap(), value);
        }
        let [truth, tenth, null, huge, text] = values;
        assert_eq!((truth.as_bool(), tenth.as_f64(), null.is_null()), (Some(true), Some(0.1), true));
        assert_eq!((huge.as_f64(), text.as_str().as_deref()), (Some(1e300), Some("é\"")));
        assert_eq!((text.as_u64(), tenth.as_u64(), truth.as_f64(), tenth.as_str()), (None, None, None, None));
    }

    proptest! {
        /// What is found is what `serde_json` would find.
        #[test]
        fn agrees_with_serde_json(pairs in prop::collection::btree_map(".*", (".*", any::<i64>()), 0..6)) {
            let mut text = String::from("{ ");
            for (idx, (key, (inner, number))) in pairs.iter().enumerate() {
                text += if idx == 0 { "" } else { " ,\t" };
                push_string(&mut text, key, Escape::Minimal);
                text += " : {\"v\":[";
                push_string(&mut text, inner, Escape::Minimal);
                text += &format!(", {number}]}} ");
            }
            text.push('}');
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let found = listed(&text);
            prop_assert_eq!(found.len(), value.as_object().unwrap().len());
            for (key, raw, _) in found {
                let found: serde_json::Value = serde_json::from_str(&raw).unwrap();
                prop_assert_eq!(Some(&found), value.get(&key));
            }
        }

        #[test]
        fn any_text_is_json_or_an_error(text in ".*") {
            if let Ok((json, _)) = check(&text) {
                let _ = members(json, |_| Ok(()));
                let _ = items(json, |_, _| Ok(()));
            }
        }
    }
}
