//! Parses the JSON of a schema into a borrowing tree.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use json_scan::{Check, Scanner};

use crate::error::{Error, ErrorKind, cut};

/// A JSON value. Objects keep the order of the text; no two keys of one are equal.
#[derive(Debug)]
pub(crate) enum Json<'t> {
    Null,
    Bool(bool),
    /// Of no use to a schema, so its value is not kept.
    Number,
    Str(Cow<'t, str>),
    Array(Vec<Json<'t>>),
    Object(Vec<(Cow<'t, str>, Json<'t>)>),
}

/// Reads a text, with at most `max_depth` arrays and objects within each other and `max_values` values.
pub(crate) fn parse(text: &str, max_depth: u16, max_values: u64) -> Result<Json<'_>, JsonError> {
    let mut scanner = Scanner::new(text, Check::Values);
    scanner.skip_white_space();
    let value = Parser { values_left: max_values }.value(&mut scanner, max_depth)?;
    scanner.finish()?;
    Ok(value)
}

/// Why a text was refused.
#[derive(Debug)]
pub(crate) enum JsonError {
    /// Too deep; the caller knows in which unit.
    Depth,
    /// Too many values.
    Count,
    /// Anything else.
    Syntax(Error),
}

impl From<Error> for JsonError {
    fn from(error: Error) -> Self {
        Self::Syntax(error)
    }
}

impl From<json_scan::Error> for JsonError {
    fn from(error: json_scan::Error) -> Self {
        use json_scan::ErrorKind as Kind;
        let expected = match error.kind() {
            Kind::LoneSurrogate => {
                return Error::from(ErrorKind::LoneSurrogate).at(error.start() as u64).into();
            }
            Kind::InvalidNumber => {
                return Error::from(ErrorKind::Json { expected: "a digit" }).at(error.offset() as u64).into();
            }
            Kind::UnexpectedByte { expected, .. } | Kind::UnexpectedEnd { expected } => expected,
            Kind::ControlCharacter { .. } => "an escaped control character",
            Kind::InvalidEscape => "a valid escape sequence",
            Kind::TrailingBytes { .. } => "the end of the schema",
            _ => "a JSON value",
        };
        Error::from(ErrorKind::Json { expected }).at(error.start() as u64).into()
    }
}

struct Parser {
    values_left: u64,
}

impl Parser {
    /// A value and the white space after it.
    fn value<'t>(&mut self, scanner: &mut Scanner<'t>, depth_left: u16) -> Result<Json<'t>, JsonError> {
        self.values_left = self.values_left.checked_sub(1).ok_or(JsonError::Count)?;
        let inner = || depth_left.checked_sub(1).ok_or(JsonError::Depth);
        let value = match scanner.peek() {
            Some(b'"') => Json::Str(scanner.bare_string()?.unescape()),
            Some(b'[') => return self.array(scanner, inner()?),
            Some(b'{') => return self.object(scanner, inner()?),
            Some(b'-' | b'0'..=b'9') => {
                scanner.number()?;
                Json::Number
            }
            _ if scanner.strip("null") => Json::Null,
            _ if scanner.strip("true") => Json::Bool(true),
            _ if scanner.strip("false") => Json::Bool(false),
            _ => return Err(scanner.unexpected("a JSON value").into()),
        };
        scanner.skip_white_space();
        Ok(value)
    }

    fn array<'t>(&mut self, scanner: &mut Scanner<'t>, depth_left: u16) -> Result<Json<'t>, JsonError> {
        let mut items = Vec::new();
        scanner.items(|scanner, _| {
            items.push(self.value(scanner, depth_left)?);
            Ok::<_, JsonError>(())
        })?;
        Ok(Json::Array(items))
    }

    fn object<'t>(&mut self, scanner: &mut Scanner<'t>, depth_left: u16) -> Result<Json<'t>, JsonError> {
        let start = scanner.pos();
        let mut fields = Vec::new();
        scanner.members(|scanner, key, _| {
            fields.push((key.unescape(), self.value(scanner, depth_left)?));
            Ok::<_, JsonError>(())
        })?;
        match duplicate(&fields) {
            Some(key) => {
                Err(Error::from(ErrorKind::DuplicateKey { key: cut(key).into() }).at(start as u64).into())
            }
            None => Ok(Json::Object(fields)),
        }
    }
}

/// A key that occurs twice.
fn duplicate<'k>(fields: &'k [(Cow<'_, str>, Json<'_>)]) -> Option<&'k str> {
    // Nodes have few fields: comparing each with each needs no memory.
    if fields.len() <= 4 {
        let mut pairs = fields.iter().enumerate();
        let twice = pairs.find(|(idx, (key, _))| fields[..*idx].iter().any(|(other, _)| other == key));
        return twice.map(|(_, (key, _))| &**key);
    }
    let mut keys: Vec<&str> = fields.iter().map(|(key, _)| &**key).collect();
    keys.sort_unstable();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn code(text: &str) -> &'static str {
        match parse(text, 4, 100) {
            Ok(_) => "read",
            Err(JsonError::Depth) => "depth",
            Err(JsonError::Count) => "count",
            Err(JsonError::Syntax(error)) => {
                assert!(error.offset().is_some_and(|at| at <= text.len() as u64), "{error}");
                error.code()
            }
        }
    }

    #[test]
    fn texts_are_read_or_refused() {
        for good in ["null", " [ ] ", "{}", "{\"a\":[1, -0.5e+3, true]}\n", "[[[[]]]]", "\"\\ud83d\\ude00\""]
        {
            assert_eq!(code(good), "read", "{good}");
        }
        for bad in [
            "",
            "nul",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "01",
            "1.",
            "-",
            "1e",
            "\"",
            "\"\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "[",
            "null null",
            "NaN",
            "+1",
            "\"\\",
            "\"\\u",
        ] {
            assert_eq!(code(bad), "ss-json", "{bad}");
        }
        for lone in ["\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud800x\""] {
            assert_eq!(code(lone), "ss-json-surrogate", "{lone}");
        }
        assert_eq!(code("{\"a\":1,\"\\u0061\":2}"), "ss-duplicate");
        assert_eq!(code("{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"a\":1}"), "ss-duplicate");
        assert_eq!(code("[[[[[]]]]]"), "depth");
        assert_eq!(code(&format!("[{}1]", "1,".repeat(99))), "count");
    }
}
