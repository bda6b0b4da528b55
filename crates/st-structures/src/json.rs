//! The JSON text of a schema: read into a tree that borrows it, written as Python's `json.dumps` does.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

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
    let mut parser = Parser { text, pos: 0, values_left: max_values };
    parser.skip_white_space();
    let value = parser.value(max_depth)?;
    if parser.pos < text.len() { Err(parser.expected("the end")) } else { Ok(value) }
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

struct Parser<'t> {
    text: &'t str,
    pos: usize,
    values_left: u64,
}

impl<'t> Parser<'t> {
    fn expected(&self, expected: &'static str) -> JsonError {
        Error::from(ErrorKind::Json { expected }).at(self.pos as u64).into()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.pos += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.pos += 1;
            self.skip_white_space();
        }
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.text.as_bytes()[self.pos..].starts_with(word.as_bytes());
        if found {
            self.pos += word.len();
        }
        found
    }

    /// A value and the white space behind it.
    fn value(&mut self, depth_left: u16) -> Result<Json<'t>, JsonError> {
        self.values_left = self.values_left.checked_sub(1).ok_or(JsonError::Count)?;
        let value = match self.peek() {
            Some(b'"') => Json::Str(self.string()?),
            Some(b'[') => return self.array(depth_left.checked_sub(1).ok_or(JsonError::Depth)?),
            Some(b'{') => return self.object(depth_left.checked_sub(1).ok_or(JsonError::Depth)?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ if self.word("null") => Json::Null,
            _ if self.word("true") => Json::Bool(true),
            _ if self.word("false") => Json::Bool(false),
            _ => return Err(self.expected("a value")),
        };
        self.skip_white_space();
        Ok(value)
    }

    fn array(&mut self, depth_left: u16) -> Result<Json<'t>, JsonError> {
        self.eat(b'[');
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth_left)?);
            if self.eat(b']') {
                return Ok(Json::Array(items));
            }
            if !self.eat(b',') {
                return Err(self.expected("a comma or a closing bracket"));
            }
        }
    }

    fn object(&mut self, depth_left: u16) -> Result<Json<'t>, JsonError> {
        let start = self.pos;
        self.eat(b'{');
        let mut fields = Vec::new();
        if self.eat(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key"));
            }
            let key = self.string()?;
            self.skip_white_space();
            if !self.eat(b':') {
                return Err(self.expected("a colon"));
            }
            fields.push((key, self.value(depth_left)?));
            if self.eat(b'}') {
                break;
            }
            if !self.eat(b',') {
                return Err(self.expected("a comma or a closing brace"));
            }
        }
        match duplicate(&fields) {
            Some(key) => {
                Err(Error::from(ErrorKind::DuplicateKey { key: cut(key).into() }).at(start as u64).into())
            }
            None => Ok(Json::Object(fields)),
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.pos;
        while let Some(b'0'..=b'9') = self.peek() {
            self.pos += 1;
        }
        self.pos - start
    }

    fn number(&mut self) -> Result<Json<'t>, JsonError> {
        if self.peek() == Some(b'-') {
            self.pos += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let count = self.digits();
        if count == 0 || (leading_zero && count > 1) {
            return Err(self.expected("a number"));
        }
        if self.peek() == Some(b'.') {
            self.pos += 1;
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.pos += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.pos += 1;
            }
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        Ok(Json::Number)
    }

    /// A string, from its opening quote to its closing one.
    fn string(&mut self) -> Result<Cow<'t, str>, JsonError> {
        self.pos += 1;
        let mut unescaped: Option<String> = None;
        loop {
            let bytes = &self.text.as_bytes()[self.pos..];
            let Some(len) = bytes.iter().position(|byte| matches!(byte, ..0x20 | b'"' | b'\\')) else {
                self.pos = self.text.len();
                return Err(self.expected("a closing quote"));
            };
            let plain = &self.text[self.pos..self.pos + len];
            self.pos += len;
            match bytes[len] {
                b'"' => {
                    self.pos += 1;
                    return Ok(match unescaped {
                        None => Cow::Borrowed(plain),
                        Some(text) => Cow::Owned(text + plain),
                    });
                }
                b'\\' => {
                    let text = unescaped.get_or_insert_default();
                    text.push_str(plain);
                    text.push(self.escape()?);
                }
                _ => return Err(self.expected("an escape instead of a control character")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.pos;
        self.pos += 1;
        let letter = self.peek();
        self.pos += 1;
        Ok(match letter {
            Some(itself @ (b'"' | b'\\' | b'/')) => char::from(itself),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hex4(start)?;
                let mut units = [high, 0];
                let pair = (0xd800..0xdc00).contains(&high) && self.word("\\u");
                if pair {
                    units[1] = self.hex4(start)?;
                }
                let mut chars = char::decode_utf16(units.into_iter().take(1 + usize::from(pair)));
                let lone = || Error::from(ErrorKind::LoneSurrogate).at(start as u64);
                chars.next().and_then(Result::ok).ok_or_else(lone)?
            }
            _ => return Err(Error::from(ErrorKind::Json { expected: "an escape" }).at(start as u64).into()),
        })
    }

    fn hex4(&mut self, start: usize) -> Result<u16, JsonError> {
        let digits = self.text.as_bytes().get(self.pos..self.pos + 4).unwrap_or_default();
        let code = digits
            .iter()
            .try_fold(0, |code, &byte| char::from(byte).to_digit(16).map(|digit| code << 4 | digit as u16));
        let wrong = Error::from(ErrorKind::Json { expected: "four hexadecimal digits" }).at(start as u64);
        self.pos += 4;
        code.filter(|_| digits.len() == 4).ok_or(wrong.into())
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

/// Appends a string: printable ASCII as it is, everything else escaped.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(char),
            _ => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    out.push_str("\\u");
                    for shift in [12, 8, 4, 0] {
                        out.push(char::from(b"0123456789abcdef"[usize::from(*unit >> shift & 15)]));
                    }
                }
            }
        }
    }
    out.push('"');
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

    #[test]
    fn strings_are_written_and_read_again() {
        let text = "a\"\\\u{8}\u{c}\n\r\t\u{0}\u{7f}é\u{1f600}/";
        let mut out = String::new();
        push_string(&mut out, text);
        assert_eq!(out, "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u007f\\u00e9\\ud83d\\ude00/\"");
        let Ok(Json::Str(read)) = parse(&out, 1, 1) else { panic!("{out}") };
        assert_eq!(read, text);
    }
}
