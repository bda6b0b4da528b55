//! The scanner.

use crate::error::{Error, ErrorKind};
use crate::nesting::Nesting;
use crate::number::is_finite;
use crate::string::{RawStr, is_high_surrogate, is_low_surrogate};
use crate::word::{load, string_stops};

type Scan<T> = Result<T, Error>;

/// What is checked beyond the syntax of RFC 8259.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nothing: strings may have lone surrogates, numbers any magnitude.
    Syntax,
    /// What a parser that keeps the values checks: strings are sequences of Unicode characters, and numbers that are
    /// [skipped](Scanner::skip_value) are finite as doubles.
    Values,
}

/// A position in a JSON text.
#[derive(Clone, Debug)]
pub struct Scanner<'t> {
    text: &'t str,
    pos: usize,
    check: Check,
}

/// The one value of a text, without the white space around it, and how deeply arrays and objects are nested in it. Any depth is
/// accepted; it costs a bit each.
///
/// # Errors
///
/// If the text is not one JSON value.
pub fn value(text: &str, check: Check) -> Scan<(&str, usize)> {
    let mut scanner = Scanner::new(text, check);
    scanner.skip_white_space();
    let start = scanner.pos;
    let depth = scanner.skip_value(usize::MAX)?;
    let value = scanner.text_from(start);
    scanner.finish()?;
    Ok((value, depth))
}

impl<'t> Scanner<'t> {
    /// A scanner at the start of a text.
    #[must_use]
    pub const fn new(text: &'t str, check: Check) -> Self {
        Self { text, pos: 0, check }
    }

    /// Byte offset of what comes next.
    #[inline]
    #[must_use]
    pub const fn pos(&self) -> usize {
        self.pos
    }

    /// The text from `start`, a former [`pos`](Self::pos), up to here.
    ///
    /// # Panics
    ///
    /// If `start` is not the position of a token before this one.
    #[inline]
    #[must_use]
    pub fn text_from(&self, start: usize) -> &'t str {
        &self.text[start..self.pos]
    }

    /// The text from here on.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'t str {
        &self.text[self.pos..]
    }

    /// The next byte.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    /// Moves over white space.
    #[cfg_attr(not(apr_small), inline)]
    #[cfg_attr(apr_small, inline(never))]
    pub fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.pos += 1;
        }
    }

    /// Moves over `byte`, an ASCII character, and the white space after it, if it is next.
    #[cfg_attr(not(apr_small), inline)]
    #[cfg_attr(apr_small, inline(never))]
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.pos += 1;
            self.skip_white_space();
        }
        found
    }

    /// Moves over `byte`, an ASCII character, and the white space after it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnexpectedByte`], [`ErrorKind::UnexpectedEnd`].
    #[cfg_attr(not(apr_small), inline)]
    #[cfg_attr(apr_small, inline(never))]
    pub fn expect(&mut self, byte: u8, expected: &'static str) -> Scan<()> {
        if self.eat(byte) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Moves over `literal` if it is next, and over nothing else.
    #[inline]
    pub fn strip(&mut self, literal: &str) -> bool {
        let found = self.text.as_bytes()[self.pos..].starts_with(literal.as_bytes());
        if found {
            self.pos += literal.len();
        }
        found
    }

    /// Moves over `len` bytes, which must end at a character boundary.
    #[inline]
    pub const fn advance(&mut self, len: usize) {
        self.pos += len;
    }

    /// The error for something else than `expected` at this position.
    #[cold]
    #[must_use]
    pub fn unexpected(&self, expected: &'static str) -> Error {
        match self.peek() {
            Some(found) => Error::new(ErrorKind::UnexpectedByte { found, expected }, self.pos),
            None => Error::new(ErrorKind::UnexpectedEnd { expected }, self.pos),
        }
    }

    /// Checks that only white space is left.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TrailingBytes`].
    pub fn finish(&mut self) -> Scan<()> {
        self.skip_white_space();
        match self.peek() {
            None => Ok(()),
            Some(found) => Err(Error::new(ErrorKind::TrailingBytes { found }, self.pos)),
        }
    }

    /// A string and the white space after it.
    ///
    /// # Errors
    ///
    /// Those of [`bare_string`](Self::bare_string).
    #[cfg_attr(not(apr_small), inline)]
    #[cfg_attr(apr_small, inline(never))]
    pub fn string(&mut self) -> Scan<RawStr<'t>> {
        let string = self.bare_string()?;
        self.skip_white_space();
        Ok(string)
    }

    /// The key of a member, the colon, and the white space around the colon.
    ///
    /// # Errors
    ///
    /// Those of [`bare_string`](Self::bare_string) and [`expect`](Self::expect).
    #[cfg_attr(not(apr_small), inline)]
    #[cfg_attr(apr_small, inline(never))]
    pub fn key(&mut self) -> Scan<RawStr<'t>> {
        let key = self.string()?;
        self.expect(b':', "a colon")?;
        Ok(key)
    }

    /// A string, without the white space after it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnexpectedByte`], [`ErrorKind::UnexpectedEnd`], [`ErrorKind::ControlCharacter`], [`ErrorKind::InvalidEscape`],
    /// [`ErrorKind::LoneSurrogate`].
    #[cfg_attr(not(apr_small), inline)]
    #[cfg_attr(apr_small, inline(never))]
    pub fn bare_string(&mut self) -> Scan<RawStr<'t>> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        let bytes = self.text.as_bytes();
        let start = self.pos + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            while let Some(word) = load(bytes, at) {
                let stops = string_stops(word);
                if stops != 0 {
                    at += stops.trailing_zeros() as usize / 8;
                    break;
                }
                at += 8;
            }
            match bytes.get(at) {
                Some(b'"') => {
                    self.pos = at + 1;
                    return Ok(RawStr { raw: &self.text[start..at], escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    at = escape_end(bytes, at, self.check)?;
                }
                Some(&found) => return Err(Error::new(ErrorKind::ControlCharacter { found }, at)),
                None => return Err(unterminated(bytes.len())),
            }
        }
    }

    /// An integer from 0 to 2^64 - 1 and the white space after it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotAnInteger`] for any other value, and for a number with a fraction or an exponent;
    /// [`ErrorKind::InvalidNumber`] for leading zeros.
    #[cfg_attr(not(apr_small), inline)]
    #[cfg_attr(apr_small, inline(never))]
    pub fn integer(&mut self) -> Scan<u64> {
        let start = self.pos;
        let mut value = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = u64::from(digit - b'0');
            match value.checked_mul(10).and_then(|value| value.checked_add(digit)) {
                Some(next) => value = next,
                None => return Err(Error::new(ErrorKind::NotAnInteger, start)),
            }
            self.pos += 1;
        }
        match self.pos - start {
            0 => return Err(Error::new(ErrorKind::NotAnInteger, start)),
            1 => {}
            _ if self.text.as_bytes()[start] == b'0' => {
                return Err(Error::within(ErrorKind::InvalidNumber, start, start + 1));
            }
            _ => {}
        }
        if let Some(b'.' | b'e' | b'E') = self.peek() {
            return Err(Error::new(ErrorKind::NotAnInteger, start));
        }
        self.skip_white_space();
        Ok(value)
    }

    /// The characters of a number, of any magnitude.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidNumber`].
    #[cfg_attr(not(apr_small), inline)]
    #[cfg_attr(apr_small, inline(never))]
    pub fn number(&mut self) -> Scan<&'t str> {
        let start = self.pos;
        if self.peek() == Some(b'-') {
            self.pos += 1;
        }
        let integer = self.pos;
        self.digits(start)?;
        if self.pos - integer > 1 && self.text.as_bytes()[integer] == b'0' {
            return Err(Error::within(ErrorKind::InvalidNumber, start, integer + 1));
        }
        if self.peek() == Some(b'.') {
            self.pos += 1;
            self.digits(start)?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.pos += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.pos += 1;
            }
            self.digits(start)?;
        }
        Ok(&self.text[start..self.pos])
    }

    /// One digit or more, of the number that begins at `start`.
    #[cfg_attr(not(apr_small), inline)]
    #[cfg_attr(apr_small, inline(never))]
    fn digits(&mut self, start: usize) -> Scan<()> {
        let first = self.pos;
        while let Some(b'0'..=b'9') = self.peek() {
            self.pos += 1;
        }
        if self.pos == first {
            return Err(Error::within(ErrorKind::InvalidNumber, start, first));
        }
        Ok(())
    }

    /// Calls `member` for each member of an object with its key and the offset of the key, the scanner at the value; `member`
    /// moves over the value and the white space after it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotAnObject`], errors of the syntax, and those of `member`.
    pub fn members<E: From<Error>>(
        &mut self,
        mut member: impl FnMut(&mut Self, RawStr<'t>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.eat(b'{') {
            return Err(Error::new(ErrorKind::NotAnObject, self.pos).into());
        }
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let at = self.pos;
            let key = self.key()?;
            member(self, key, at)?;
            if !self.eat(b',') {
                return Ok(self.expect(b'}', "a comma or a closing brace")?);
            }
        }
    }

    /// Calls `item` for each element of an array with its offset; `item` moves over the element and the white space after it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotAnArray`], errors of the syntax, and those of `item`.
    pub fn items<E: From<Error>>(
        &mut self,
        mut item: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.eat(b'[') {
            return Err(Error::new(ErrorKind::NotAnArray, self.pos).into());
        }
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            let at = self.pos;
            item(self, at)?;
            if !self.eat(b',') {
                return Ok(self.expect(b']', "a comma or a closing bracket")?);
            }
        }
    }

    /// Moves over a value of any type, without the white space after it; returns how deeply arrays and objects are nested in it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooDeep`] for more than `max_depth` arrays and objects within one another, and errors of the syntax.
    pub fn skip_value(&mut self, max_depth: usize) -> Scan<usize> {
        let mut open = Nesting::default();
        let mut deepest = 0;
        loop {
            let bracket = match self.peek() {
                Some(b'{') => Some(true),
                Some(b'[') => Some(false),
                _ => None,
            };
            if let Some(is_object) = bracket {
                if open.depth() == max_depth {
                    return Err(Error::new(ErrorKind::TooDeep, self.pos));
                }
                self.pos += 1;
                self.skip_white_space();
                deepest = deepest.max(open.depth() + 1);
                if self.peek() == Some(closing(is_object)) {
                    self.pos += 1;
                } else {
                    open.push(is_object);
                    if is_object {
                        self.key()?;
                    }
                    continue;
                }
            } else {
                self.skip_scalar()?;
            }
            loop {
                let Some(is_object) = open.innermost() else { return Ok(deepest) };
                self.skip_white_space();
                if self.eat(b',') {
                    if is_object {
                        self.key()?;
                    }
                    break;
                }
                if self.peek() != Some(closing(is_object)) {
                    return Err(self.unexpected(match is_object {
                        true => "a comma or a closing brace",
                        false => "a comma or a closing bracket",
                    }));
                }
                self.pos += 1;
                open.pop();
            }
        }
    }

    fn skip_scalar(&mut self) -> Scan<()> {
        match self.peek() {
            Some(b'"') => self.bare_string().map(drop),
            Some(b'-' | b'0'..=b'9') => {
                let start = self.pos;
                let number = self.number()?;
                if self.check == Check::Values && !is_finite(number) {
                    return Err(Error::new(ErrorKind::NumberOutOfRange, start));
                }
                Ok(())
            }
            Some(b'n') => self.word("null"),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            _ => Err(self.unexpected("a JSON value")),
        }
    }

    fn word(&mut self, word: &'static str) -> Scan<()> {
        if self.strip(word) {
            return Ok(());
        }
        let start = self.pos;
        let same =
            self.rest().bytes().zip(word.bytes()).take_while(|(found, expected)| found == expected).count();
        let kind = self.unexpected("a JSON value").kind();
        Err(Error::within(kind, start, start + same))
    }
}

const fn closing(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

#[cold]
const fn unterminated(len: usize) -> Error {
    Error::new(ErrorKind::UnexpectedEnd { expected: "a closing quote" }, len)
}

/// Checks the escape sequence whose backslash is at `at`; returns where it ends.
fn escape_end(bytes: &[u8], at: usize, check: Check) -> Scan<usize> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let code = hex4(bytes, at, at + 2)?;
            if check == Check::Syntax || !(is_high_surrogate(code) || is_low_surrogate(code)) {
                return Ok(at + 6);
            }
            let lone = Error::within(ErrorKind::LoneSurrogate, at, at + 2);
            let is_pair = is_high_surrogate(code)
                && bytes.get(at + 6..at + 8) == Some(b"\\u")
                && hex4(bytes, at, at + 8).is_ok_and(is_low_surrogate);
            if is_pair { Ok(at + 12) } else { Err(lone) }
        }
        _ => Err(Error::within(ErrorKind::InvalidEscape, at, at + 1)),
    }
}

/// The four hexadecimal digits at `digits`, of the escape sequence at `at`.
fn hex4(bytes: &[u8], at: usize, digits: usize) -> Scan<u32> {
    (digits..digits + 4).try_fold(0, |code, idx| {
        let digit = bytes.get(idx).and_then(|&byte| char::from(byte).to_digit(16));
        digit.map(|digit| code * 16 + digit).ok_or(Error::within(ErrorKind::InvalidEscape, at, idx))
    })
}
