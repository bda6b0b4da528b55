//! Whether a text is JSON (RFC 8259), and where a value in it ends. Nothing recurses: brackets that are open are bits.

use alloc::vec::Vec;

/// The one value in a text, without the white space around it, and how deep arrays and objects are nested in it; else where the
/// text stops being JSON: its length if there is more to come.
pub(super) fn value(text: &str) -> Result<(&str, usize), usize> {
    let mut scan = Scan::new(text);
    scan.skip_white_space();
    let begin = scan.at;
    let depth = scan.run()?;
    let end = scan.at;
    scan.skip_white_space();
    if scan.at < scan.bytes.len() {
        return Err(scan.at);
    }
    // Both ends stand beside ASCII bytes.
    Ok((text.get(begin..end).ok_or(begin)?, depth))
}

/// A place in a text.
pub(super) struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0 }
    }

    /// The next value of a sound text and where it begins, passing over the white space around it; nothing if a bracket is closed
    /// here instead.
    pub(super) fn value(&mut self) -> (&'t str, usize) {
        self.skip_white_space();
        let at = self.at;
        let value = self.run().ok().and_then(|_| self.text.get(at..self.at));
        self.skip_white_space();
        (value.unwrap_or_default(), at)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), usize> {
        if self.eat(byte) { Ok(()) } else { Err(self.at) }
    }

    fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Passes over a value; how deep it is nested.
    fn run(&mut self) -> Result<usize, usize> {
        let mut open = Open::default();
        let mut deepest = 0;
        loop {
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    self.at += 1;
                    self.skip_white_space();
                    let is_object = bracket == b'{';
                    deepest = deepest.max(open.depth() + 1);
                    if !self.eat(closing(is_object)) {
                        open.push(is_object);
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b'n') => self.word(b"null")?,
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                _ => return Err(self.at),
            }
            loop {
                let Some(is_object) = open.last() else { return Ok(deepest) };
                self.skip_white_space();
                if self.eat(b',') {
                    self.skip_white_space();
                    if is_object {
                        self.key()?;
                    }
                    break;
                }
                self.expect(closing(is_object))?;
                open.pop();
            }
        }
    }

    /// A key, its colon, and the white space around that.
    fn key(&mut self) -> Result<(), usize> {
        self.string()?;
        self.skip_white_space();
        self.expect(b':')?;
        self.skip_white_space();
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Result<(), usize> {
        word.iter().try_for_each(|&byte| self.expect(byte))
    }

    fn string(&mut self) -> Result<(), usize> {
        self.expect(b'"')?;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            self.at += plain.unwrap_or(rest.len());
            if !self.eat(b'\\') {
                return self.expect(b'"');
            }
            match self.peek() {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
                Some(b'u') => {
                    self.at += 1;
                    (0..4).try_for_each(|_| self.one(u8::is_ascii_hexdigit))?;
                }
                _ => return Err(self.at),
            }
        }
    }

    fn number(&mut self) -> Result<(), usize> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), usize> {
        self.one(u8::is_ascii_digit)?;
        while self.one(u8::is_ascii_digit).is_ok() {}
        Ok(())
    }

    fn one(&mut self, suits: fn(&u8) -> bool) -> Result<(), usize> {
        match self.peek() {
            Some(byte) if suits(&byte) => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.at),
        }
    }
}

const fn closing(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

/// Brackets that are open, one bit each: whether it is that of an object.
#[derive(Default)]
struct Open {
    full: Vec<u64>,
    /// The innermost bracket is the lowest bit.
    bits: u64,
    depth: u32,
}

impl Open {
    fn push(&mut self, is_object: bool) {
        if self.depth == u64::BITS {
            self.full.push(self.bits);
            self.depth = 0;
        }
        self.bits = self.bits << 1 | u64::from(is_object);
        self.depth += 1;
    }

    fn depth(&self) -> usize {
        self.full.len() * u64::BITS as usize + self.depth as usize
    }

    fn last(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth == 0
            && let Some(bits) = self.full.pop()
        {
            (self.bits, self.depth) = (bits, u64::BITS);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn agrees(text: &str) {
        let other = serde_json::from_str::<&RawValue>(text);
        assert_eq!(
            value(text).ok().map(|(value, _)| value),
            other.as_ref().ok().map(|raw| raw.get()),
            "{text:?}: {other:?}"
        );
    }

    #[test]
    fn faults_are_where_the_text_stops_being_json() {
        for (text, at) in [
            ("", 0),
            (" \n", 2),
            ("{", 1),
            ("[1,", 3),
            ("{\"a\":1,\n\"b\":}", 12),
            ("[1,]", 3),
            ("{\"a\":1,}", 7),
            ("{} {}", 3),
            ("[1}", 2),
            ("01", 1),
            ("-", 1),
            ("1.", 2),
            ("1e+", 3),
            ("nul", 3),
            ("tru1", 3),
            ("\"\\x\"", 2),
            ("\"\\u12g4\"", 5),
            ("\"a\nb\"", 2),
            ("\"a", 2),
        ] {
            assert_eq!(value(text), Err(at), "{text:?}");
            agrees(text);
        }
    }

    #[test]
    fn brackets_of_any_depth_are_told_apart() {
        for count in [1, 31, 32, 33, 64, 65, 1000] {
            let open = "[{\"a\":".repeat(count);
            let close = "}]".repeat(count);
            assert!(value(&[&open, "1", &close].concat()).is_ok(), "{count}");
            assert_eq!(value(&[&open, "1]", &close].concat()), Err(open.len() + 1), "{count}");
        }
    }

    /// Pieces that make JSON, or nearly.
    fn pieces() -> impl Strategy<Value = String> {
        const PIECES: [&str; 34] = [
            "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\":", "\\", "\\u00e9", "\\ud800", "\\n", "0",
            "1", "-", ".", "e", "E5", "+", "1.5e-3", "null", "true", "false", "nul", " ", "\n", "\t",
            "\u{1}", "\u{7f}", "é", "[]", "{}", "[1,2]",
        ];
        prop::collection::vec(prop::sample::select(&PIECES[..]), 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn takes_what_serde_json_takes(text in pieces()) {
            agrees(&text);
        }

        #[test]
        fn any_text_is_judged_alike(text in ".*") {
            agrees(&text);
        }
    }
}
