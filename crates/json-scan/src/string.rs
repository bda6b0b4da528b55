//! Strings of a text, unescaped on demand.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::scanner::{Check, Scanner};

/// A string of a JSON text without its quotes: its escapes are checked but not resolved.
#[derive(Clone, Copy, Debug)]
pub struct RawStr<'t> {
    pub(crate) raw: &'t str,
    pub(crate) escaped: bool,
}

impl<'t> RawStr<'t> {
    /// The characters between the quotes, escapes included.
    #[must_use]
    pub const fn raw(self) -> &'t str {
        self.raw
    }

    /// The value of the string. A lone surrogate, which only [`Check::Syntax`] accepts, becomes U+FFFD.
    #[must_use]
    pub fn unescape(self) -> Cow<'t, str> {
        if self.escaped {
            Cow::Owned(Unescape { rest: self.raw, lone_surrogate: false }.collect())
        } else {
            Cow::Borrowed(self.raw)
        }
    }

    /// The value of the string; `None` if it has a lone surrogate.
    #[must_use]
    pub fn try_unescape(self) -> Option<Cow<'t, str>> {
        if !self.escaped {
            return Some(Cow::Borrowed(self.raw));
        }
        let mut chars = Unescape { rest: self.raw, lone_surrogate: false };
        let text = chars.by_ref().collect();
        (!chars.lone_surrogate).then_some(Cow::Owned(text))
    }

    /// Appends the value of the string.
    pub fn unescape_into(self, out: &mut String) {
        if self.escaped {
            out.extend(Unescape { rest: self.raw, lone_surrogate: false });
        } else {
            out.push_str(self.raw);
        }
    }

    /// Whether `text` is the value of the string.
    #[inline]
    #[must_use]
    pub fn is(self, text: &str) -> bool {
        if self.escaped {
            Unescape { rest: self.raw, lone_surrogate: false }.eq(text.chars())
        } else {
            self.raw == text
        }
    }
}

/// The value of a string literal with its quotes; `None` for any other text and for a literal with a lone surrogate.
#[must_use]
pub fn unescape(literal: &str) -> Option<Cow<'_, str>> {
    let mut scanner = Scanner::new(literal, Check::Values);
    let raw = scanner.bare_string().ok()?;
    if scanner.rest().is_empty() { raw.try_unescape() } else { None }
}

/// Characters of a string whose escapes have been checked.
struct Unescape<'t> {
    rest: &'t str,
    lone_surrogate: bool,
}

impl Unescape<'_> {
    fn next_char(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let taken = chars.next();
        self.rest = chars.as_str();
        taken
    }

    fn hex4(&mut self) -> u32 {
        (0..4)
            .fold(0, |code, _| code * 16 + self.next_char().and_then(|c| c.to_digit(16)).unwrap_or_default())
    }

    /// The rest of the pair whose high surrogate has been taken.
    fn pair(&mut self, high: u32) -> u32 {
        let mut after = Self { rest: self.rest, lone_surrogate: false };
        if after.next_char() != Some('\\') || after.next_char() != Some('u') {
            return high;
        }
        let low = after.hex4();
        if !is_low_surrogate(low) {
            return high;
        }
        self.rest = after.rest;
        0x1_0000 + ((high - 0xd800) << 10 | (low - 0xdc00))
    }
}

impl Iterator for Unescape<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let plain = self.next_char()?;
        if plain != '\\' {
            return Some(plain);
        }
        Some(match self.next_char()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let mut code = self.hex4();
                if is_high_surrogate(code) {
                    code = self.pair(code);
                }
                char::from_u32(code).unwrap_or_else(|| {
                    self.lone_surrogate = true;
                    char::REPLACEMENT_CHARACTER
                })
            }
            itself => itself,
        })
    }
}

pub(crate) const fn is_high_surrogate(code: u32) -> bool {
    code >> 10 == 0xd800 >> 10
}

pub(crate) const fn is_low_surrogate(code: u32) -> bool {
    code >> 10 == 0xdc00 >> 10
}
