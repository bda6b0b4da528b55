//! The header of `.npy`: a literal of Python, which is parsed and never evaluated.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::numpy::element::element;
use crate::numpy::strings::Strings;
use crate::tensor::ElementType;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// NumPy itself reads 10,000 characters.
const MAX_HEADER: u32 = 64 << 10;

/// Brackets within the description of a structure.
const MAX_DEPTH: usize = 8;

/// What a header declares.
#[derive(Debug)]
pub(crate) struct Header {
    /// The type, and whether it is big-endian; or what about it cannot be represented.
    pub(crate) element: Result<(ElementType, bool), String>,
    /// The strings that the elements are.
    pub(super) strings: Option<Strings>,
    /// Whether the elements are in column-major order.
    pub(crate) is_fortran: bool,
    pub(crate) shape: Vec<u64>,
    /// Bytes before the elements.
    pub(crate) len: u64,
}

impl Header {
    /// Reads a header. `next` fills a buffer with the bytes that follow, or says that there are too few.
    pub(crate) fn read(
        mut next: impl FnMut(&mut [u8]) -> Result<bool, Error>,
        void_is_bf16: bool,
    ) -> Result<Self, Error> {
        let cut = || Error::malformed("the file ends inside its header");
        let mut first = [0; 8];
        if !next(&mut first)? {
            return Err(cut());
        }
        let Some(version) = first.strip_prefix(MAGIC) else {
            return Err(Error::malformed("no header of an array"));
        };
        let version = version.first().copied().unwrap_or(0);
        let (len, fixed) = match version {
            1 => {
                let mut len = [0; 2];
                (next(&mut len)?.then(|| u32::from(u16::from_le_bytes(len))), 10)
            }
            2 | 3 => {
                let mut len = [0; 4];
                (next(&mut len)?.then(|| u32::from_le_bytes(len)), 12)
            }
            _ => return Err(Error::unsupported("this version of the .npy format").at(6)),
        };
        let len = len.ok_or_else(cut)?;
        if len > MAX_HEADER {
            return Err(Error::malformed("the header is longer than 64 KiB").at(8));
        }
        let mut text = alloc::vec![0; len as usize];
        if !next(&mut text)? {
            return Err(cut());
        }
        let text = match version {
            3 => {
                String::from_utf8(text).map_err(|_| Error::malformed("the header is not UTF-8").at(fixed))?
            }
            _ => text.into_iter().map(char::from).collect(),
        };
        let mut literal = Literal { text: &text, at: 0 };
        let header = literal.header(void_is_bf16, fixed + u64::from(len));
        header.ok_or_else(|| {
            Error::malformed("the header is not what NumPy writes").at(fixed + literal.at as u64)
        })
    }
}

/// A literal of Python. `None` is what is none.
struct Literal<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Literal<'t> {
    fn header(&mut self, void_is_bf16: bool, len: u64) -> Option<Header> {
        let (mut found, mut is_fortran, mut shape, mut strings) = (None, None, None, None);
        self.expect('{')?;
        while !self.eat('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key {
                "descr" if found.is_none() => {
                    let is_simple = matches!(self.peek()?, '\'' | '"');
                    found = Some(if is_simple {
                        let code = self.string()?;
                        strings = Strings::of(code);
                        element(code, void_is_bf16)
                    } else {
                        self.pass_structure()?;
                        Err(String::from("an array of structures"))
                    });
                }
                "fortran_order" if is_fortran.is_none() => is_fortran = Some(self.boolean()?),
                "shape" if shape.is_none() => shape = Some(self.shape()?),
                _ => return None,
            }
            if !self.eat(',') {
                self.expect('}')?;
                break;
            }
        }
        self.peek().is_none().then_some(())?;
        Some(Header { element: found?, strings, is_fortran: is_fortran?, shape: shape?, len })
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&mut self) -> Option<char> {
        let rest = self.rest().trim_start_matches([' ', '\t', '\n', '\r']);
        self.at = self.text.len() - rest.len();
        rest.chars().next()
    }

    fn eat(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.at += expected.len_utf8();
        }
        found
    }

    fn expect(&mut self, expected: char) -> Option<()> {
        self.eat(expected).then_some(())
    }

    /// A string without escapes.
    fn string(&mut self) -> Option<&'t str> {
        let quote = self.peek().filter(|quote| matches!(quote, '\'' | '"'))?;
        self.at += 1;
        let (text, _) = self.rest().split_once(quote)?;
        if text.contains(['\\', '\n']) {
            return None;
        }
        self.at += text.len() + 1;
        Some(text)
    }

    fn word(&mut self) -> &'t str {
        self.peek();
        let rest = self.rest();
        let len = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        self.at += len;
        rest.get(..len).unwrap_or("")
    }

    fn boolean(&mut self) -> Option<bool> {
        match self.word() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }

    /// A tuple of integers, which Python 2 ends with `L`.
    fn shape(&mut self) -> Option<Vec<u64>> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.eat(')') {
            let word = self.word();
            shape.push(digits(word.strip_suffix('L').unwrap_or(word))?);
            if !self.eat(',') {
                self.expect(')')?;
                // `(4)` is an integer, no tuple.
                return (shape.len() > 1).then_some(shape);
            }
        }
        Some(shape)
    }

    /// The description of a structure: lists and tuples of strings and integers.
    fn pass_structure(&mut self) -> Option<()> {
        let mut depth = 0;
        loop {
            match self.peek()? {
                '[' | '(' => {
                    self.at += 1;
                    depth += 1;
                }
                ']' | ')' if depth > 0 => {
                    self.at += 1;
                    depth -= 1;
                }
                ',' if depth > 0 => self.at += 1,
                '\'' | '"' if depth > 0 => drop(self.string()?),
                _ if depth > 0 => drop(digits(self.word())?),
                _ => return None,
            }
            if depth == 0 {
                return Some(());
            }
            if depth > MAX_DEPTH {
                return None;
            }
        }
    }
}

fn digits(word: &str) -> Option<u64> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Header> {
        Literal { text, at: 0 }.header(false, 0)
    }

    #[test]
    fn spellings_of_numpy_are_read() {
        for text in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
            "{\"shape\":(2,3),\"descr\":\"<f4\" , \"fortran_order\" : False}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}",
        ] {
            let header = parsed(text).unwrap();
            assert_eq!((header.shape, header.is_fortran), ([2, 3].to_vec(), false));
            assert_eq!(header.element.unwrap().0.name(), "F32");
        }
        let header = parsed(
            "{'descr': [('a', '<f4', (2,)), ('b', [('c', '|u1')])], 'fortran_order': True, 'shape': ()}",
        );
        assert!(header.unwrap().element.unwrap_err().contains("structures"));
    }

    #[test]
    fn other_expressions_are_refused() {
        for text in [
            "",
            "{}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (True,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4), }",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (4,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'shape': (4,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'more': 1}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)} + {}",
            "{'descr': '<\\x66', 'fortran_order': False, 'shape': (4,)}",
            "{'descr': [[[[[[[[['a']]]]]]]]], 'fortran_order': False, 'shape': (4,)}",
            "{'descr': __import__('os'), 'fortran_order': False, 'shape': (4,)}",
            "{'descr': '<f4', 'shape': (4,)}",
        ] {
            assert!(parsed(text).is_none(), "{text}");
        }
    }
}
