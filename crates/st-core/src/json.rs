//! Lexing of JSON (RFC 8259) text that is already known to be UTF-8: strings, integers, and skipping
//! values of any kind. One pass, no recursion, no allocation.

use alloc::string::String;

use crate::error::{Error, ErrorKind};

/// Deepest nesting of arrays and objects, counted from the outermost; the limit of the official reader.
pub(crate) const MAX_DEPTH: u8 = 127;

/// What a scanner returns: an error says where in the text it was met.
pub(crate) type Scan<T> = Result<T, Error>;

/// A string as it stands in the text, without its quotes, escapes checked but not resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawStr<'h> {
    raw: &'h str,
    escaped: bool,
}

impl<'h> RawStr<'h> {
    /// Appends the text the string stands for.
    pub(crate) fn unescape_into(self, out: &mut String) {
        if self.escaped {
            out.extend(Unescape { rest: self.raw });
        } else {
            out.push_str(self.raw);
        }
    }

    /// Whether the string stands for `text`.
    pub(crate) fn is(self, text: &str) -> bool {
        if self.escaped { Unescape { rest: self.raw }.eq(text.chars()) } else { self.raw == text }
    }
}

/// Characters of a string whose escapes have been checked.
struct Unescape<'h> {
    rest: &'h str,
}

impl Unescape<'_> {
    fn take(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let taken = chars.next();
        self.rest = chars.as_str();
        taken
    }

    fn hex4(&mut self) -> u32 {
        (0..4).fold(0, |code, _| code * 16 + self.take().and_then(|c| c.to_digit(16)).unwrap_or_default())
    }
}

impl Iterator for Unescape<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let plain = self.take()?;
        if plain != '\\' {
            return Some(plain);
        }
        Some(match self.take()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let mut code = self.hex4();
                if is_high_surrogate(code) {
                    self.take();
                    self.take();
                    code = 0x1_0000 + (code - 0xd800) * 0x400 + (self.hex4() - 0xdc00);
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            itself => itself,
        })
    }
}

const fn is_high_surrogate(code: u32) -> bool {
    code >> 10 == 0xd800 >> 10
}

const fn is_low_surrogate(code: u32) -> bool {
    code >> 10 == 0xdc00 >> 10
}

/// Position in a JSON text.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'h> {
    text: &'h str,
    pos: usize,
}

impl<'h> Scanner<'h> {
    pub(crate) const fn new(text: &'h str) -> Self {
        Self { text, pos: 0 }
    }

    pub(crate) const fn pos(&self) -> usize {
        self.pos
    }

    /// The text from `start` up to here; both ends stand beside ASCII bytes.
    pub(crate) fn text_from(&self, start: usize) -> &'h str {
        &self.text[start..self.pos]
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    pub(crate) fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.pos += 1;
        }
    }

    /// Steps over `byte` and the white space behind it, if it is next.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.pos += 1;
            self.skip_white_space();
        }
        found
    }

    /// Steps over `byte` and the white space behind it.
    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Scan<()> {
        if self.eat(byte) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Steps over `literal` if it is next, nothing else.
    #[inline]
    pub(crate) fn strip(&mut self, literal: &str) -> bool {
        let found = self.text.as_bytes()[self.pos..].starts_with(literal.as_bytes());
        if found {
            self.pos += literal.len();
        }
        found
    }

    /// Steps over `len` bytes, which end beside an ASCII byte.
    pub(crate) fn skip(&mut self, len: usize) {
        self.pos += len;
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'h str {
        &self.text[self.pos..]
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn fault(&self, kind: ErrorKind) -> Error {
        kind.in_text(self.pos)
    }

    #[cold]
    pub(crate) fn unexpected(&self, expected: &'static str) -> Error {
        self.fault(match self.peek() {
            Some(found) => ErrorKind::UnexpectedByte { found, expected },
            None => ErrorKind::UnexpectedEnd { expected },
        })
    }

    /// Checks that only white space is left.
    pub(crate) fn finish(&mut self) -> Scan<()> {
        self.skip_white_space();
        match self.peek() {
            None => Ok(()),
            Some(found) => Err(self.fault(ErrorKind::TrailingBytes { found })),
        }
    }

    /// A string and the white space behind it.
    pub(crate) fn string(&mut self) -> Scan<RawStr<'h>> {
        let string = self.bare_string()?;
        self.skip_white_space();
        Ok(string)
    }

    /// A string where a value of any type could stand, and the white space behind it.
    pub(crate) fn string_value(&mut self) -> Scan<RawStr<'h>> {
        match self.peek() {
            Some(b'"') => self.string(),
            _ => Err(self.fault(ErrorKind::WrongType { expected: "a string" })),
        }
    }

    /// An object key, the colon and the white space around them.
    pub(crate) fn key(&mut self) -> Scan<RawStr<'h>> {
        let key = self.string()?;
        self.expect(b':', "a colon")?;
        Ok(key)
    }

    /// A string, and nothing behind it.
    #[inline]
    pub(crate) fn bare_string(&mut self) -> Scan<RawStr<'h>> {
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
                    at = escape_end(bytes, at)?;
                }
                Some(&found) => {
                    return Err(ErrorKind::ControlCharacter { found }.in_text(at));
                }
                None => {
                    return Err(ErrorKind::UnexpectedEnd { expected: "a closing quote" }.in_text(at));
                }
            }
        }
    }

    /// A non-negative integer below 2^64 and the white space behind it.
    pub(crate) fn integer(&mut self) -> Scan<u64> {
        const EXPECTED: ErrorKind = ErrorKind::WrongType { expected: "an integer from 0 to 2^64 - 1" };
        let start = self.pos;
        let wrong_type = || EXPECTED.in_text(start);
        let mut value = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = u64::from(digit - b'0');
            match value.checked_mul(10).and_then(|value| value.checked_add(digit)) {
                Some(next) => value = next,
                None => return Err(wrong_type()),
            }
            self.pos += 1;
        }
        match self.pos - start {
            0 => return Err(wrong_type()),
            1 => {}
            _ if self.text.as_bytes()[start] == b'0' => {
                return Err(ErrorKind::InvalidNumber.in_text(start));
            }
            _ => {}
        }
        if let Some(b'.' | b'e' | b'E') = self.peek() {
            return Err(wrong_type());
        }
        self.skip_white_space();
        Ok(value)
    }

    /// Any value and the white space behind it, checked as closely as a parser would that keeps it.
    ///
    /// `depth` is the number of arrays and objects already open.
    pub(crate) fn skip_value(&mut self, depth: u8) -> Scan<()> {
        // The innermost level is the lowest bit: whether it is an object.
        let mut objects = 0u128;
        let mut level = depth;
        loop {
            let opened = match self.peek() {
                Some(b'{') => Some(true),
                Some(b'[') => Some(false),
                _ => None,
            };
            if let Some(is_object) = opened {
                if level == MAX_DEPTH {
                    return Err(self.fault(ErrorKind::NestingTooDeep { limit: MAX_DEPTH }));
                }
                level += 1;
                objects = (objects << 1) + u128::from(is_object);
                self.pos += 1;
                self.skip_white_space();
                if self.peek() != Some(if is_object { b'}' } else { b']' }) {
                    if is_object {
                        self.key()?;
                    }
                    continue;
                }
            } else {
                self.skip_scalar()?;
            }
            loop {
                if level == depth {
                    return Ok(());
                }
                let is_object = objects & 1 == 1;
                if self.eat(b',') {
                    if is_object {
                        self.key()?;
                    }
                    break;
                }
                if is_object {
                    self.expect(b'}', "a comma or a closing brace")?;
                } else {
                    self.expect(b']', "a comma or a closing bracket")?;
                }
                level -= 1;
                objects >>= 1;
            }
        }
    }

    fn skip_scalar(&mut self) -> Scan<()> {
        match self.peek() {
            Some(b'"') => {
                self.bare_string()?;
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => {
                if !(self.strip("null") || self.strip("true") || self.strip("false")) {
                    return Err(self.unexpected("a JSON value"));
                }
            }
        }
        self.skip_white_space();
        Ok(())
    }

    fn digit(&mut self) -> Option<u8> {
        let digit = self.peek().filter(u8::is_ascii_digit)?;
        self.pos += 1;
        Some(digit - b'0')
    }

    /// A number of any form that fits a double, judged as the official reader's JSON parser does: it keeps
    /// the leading digits that fit 64 bits and scales them by a power of ten.
    fn number(&mut self) -> Scan<()> {
        let start = self.pos;
        let invalid = || ErrorKind::InvalidNumber.in_text(start);
        if self.peek() == Some(b'-') {
            self.pos += 1;
        }
        let mut decimal = Decimal { significand: 0, exponent: 0, full: false };
        match self.digit() {
            None => return Err(invalid()),
            Some(0) => {
                if self.digit().is_some() {
                    return Err(invalid());
                }
            }
            Some(first) => {
                decimal.significand = u64::from(first);
                while let Some(digit) = self.digit() {
                    decimal.push_integer(digit);
                }
            }
        }
        decimal.full = false;
        if self.peek() == Some(b'.') {
            self.pos += 1;
            let point = self.pos;
            while let Some(digit) = self.digit() {
                decimal.push_fraction(digit);
            }
            if self.pos == point {
                return Err(invalid());
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.pos += 1;
            let negative = self.peek() == Some(b'-');
            if let Some(b'+' | b'-') = self.peek() {
                self.pos += 1;
            }
            let Some(first) = self.digit() else {
                return Err(invalid());
            };
            let mut exponent = i32::from(first);
            let mut overflow = false;
            while let Some(digit) = self.digit() {
                match exponent.checked_mul(10).and_then(|e| e.checked_add(i32::from(digit))) {
                    Some(next) => exponent = next,
                    None => overflow = true,
                }
            }
            decimal.exponent = match (overflow, negative) {
                (true, true) => i32::MIN,
                (true, false) => i32::MAX,
                (false, true) => decimal.exponent.saturating_sub(exponent),
                (false, false) => decimal.exponent.saturating_add(exponent),
            };
        }
        if decimal.is_finite() { Ok(()) } else { Err(ErrorKind::NumberOutOfRange.in_text(start)) }
    }
}

/// The powers of ten that a double holds, from the least that takes some 64-bit integer beyond its range.
const POWERS: [f64; 20] = [
    1e289, 1e290, 1e291, 1e292, 1e293, 1e294, 1e295, 1e296, 1e297, 1e298, 1e299, 1e300, 1e301, 1e302, 1e303,
    1e304, 1e305, 1e306, 1e307, 1e308,
];
const LEAST: i32 = 289;

/// `significand * 10^exponent`.
struct Decimal {
    significand: u64,
    exponent: i32,
    /// A digit did not fit: later ones only scale (integer part) or count for nothing (fraction).
    full: bool,
}

impl Decimal {
    fn push(&mut self, digit: u8) -> bool {
        let next = self.significand.checked_mul(10).and_then(|s| s.checked_add(u64::from(digit)));
        match next {
            Some(next) if !self.full => self.significand = next,
            _ => self.full = true,
        }
        !self.full
    }

    fn push_integer(&mut self, digit: u8) {
        if !self.push(digit) {
            self.exponent = self.exponent.saturating_add(1);
        }
    }

    fn push_fraction(&mut self, digit: u8) {
        if self.push(digit) {
            self.exponent = self.exponent.saturating_sub(1);
        }
    }

    fn is_finite(&self) -> bool {
        if self.significand == 0 || self.exponent < 0 {
            return true;
        }
        // Below that, a double holds even 2^64 times the power.
        let Ok(place) = usize::try_from(self.exponent - LEAST) else { return true };
        POWERS.get(place).is_some_and(|power| (self.significand as f64 * power).is_finite())
    }
}

/// Eight bytes from `at`, the first in the lowest place, zeros behind the end; `None` at the end.
#[inline]
pub(crate) fn load(bytes: &[u8], at: usize) -> Option<u64> {
    let rest = bytes.get(at..)?;
    match rest.first_chunk() {
        Some(word) => Some(u64::from_le_bytes(*word)),
        None if rest.is_empty() => None,
        None => Some(rest.iter().rev().fold(0, |word, byte| word * 256 + u64::from(*byte))),
    }
}

pub(crate) const ONES: u64 = 0x0101_0101_0101_0101;
pub(crate) const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The high bit of each byte that ends the plain part of a string: a quote, a backslash or a control
/// character. Bits above the lowest one set are not reliable.
#[inline]
const fn string_stops(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | quote.wrapping_sub(ONES) & !quote | backslash.wrapping_sub(ONES) & !backslash) & HIGHS
}

/// Checks the escape sequence whose backslash stands at `at`; returns where it ends.
fn escape_end(bytes: &[u8], at: usize) -> Scan<usize> {
    let kind = match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => return Ok(at + 2),
        Some(b'u') => match hex4(bytes, at + 2) {
            Some(code) if is_high_surrogate(code) => {
                let low = match (bytes.get(at + 6), bytes.get(at + 7)) {
                    (Some(b'\\'), Some(b'u')) => hex4(bytes, at + 8),
                    _ => None,
                };
                if low.is_some_and(is_low_surrogate) {
                    return Ok(at + 12);
                }
                ErrorKind::LoneSurrogate
            }
            Some(code) if is_low_surrogate(code) => ErrorKind::LoneSurrogate,
            Some(_) => return Ok(at + 6),
            None => ErrorKind::InvalidEscape,
        },
        _ => ErrorKind::InvalidEscape,
    };
    Err(kind.in_text(at))
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..)?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |code, &byte| Some(code * 16 + char::from(byte).to_digit(16)?))
}
