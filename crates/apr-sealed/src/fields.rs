//! Integers and strings of directory and metadata.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// What is wrong with a field.
pub(crate) type What = &'static str;

/// Appends a number: seven bits a byte, the lowest first, the highest bit set on all but the last.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a string after its length.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Metadata: texts under their keys, in the order of the keys.
pub(crate) fn put_texts(out: &mut Vec<u8>, texts: &BTreeMap<String, String>) {
    for (key, value) in texts {
        put_text(out, key);
        put_text(out, value);
    }
}

/// Fields that have not been read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'d> {
    rest: &'d [u8],
}

impl<'d> Fields<'d> {
    pub(crate) fn new(rest: &'d [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, What> {
        let (byte, rest) = self.rest.split_first().ok_or("it ends inside a field")?;
        self.rest = rest;
        Ok(*byte)
    }

    /// An integer in its canonical encoding.
    pub(crate) fn number(&mut self) -> Result<u64, What> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err("a number above 64 bits");
            }
            number |= bits << shift;
            if byte < 0x80 {
                return if byte == 0 && shift > 0 { Err("a number with leading zeros") } else { Ok(number) };
            }
        }
        Err("a number above 64 bits")
    }

    pub(crate) fn bytes(&mut self) -> Result<&'d [u8], What> {
        let len = usize::try_from(self.number()?).ok();
        let (bytes, rest) =
            len.and_then(|len| self.rest.split_at_checked(len)).ok_or("a field reaches past the end")?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<&'d str, What> {
        core::str::from_utf8(self.bytes()?).map_err(|_| "text that is not UTF-8")
    }

    /// All that is left, as metadata. Keys ascend: each is there once, and equal metadata are equal bytes.
    pub(crate) fn texts(mut self) -> Result<BTreeMap<String, String>, What> {
        let mut entries: Vec<(String, String)> = Vec::new();
        while !self.is_empty() {
            let (key, value) = (self.text()?, self.text()?);
            if key.is_empty() {
                return Err("metadata under an empty key");
            }
            if entries.last().is_some_and(|(last, _)| last.as_str() >= key) {
                return Err("metadata keys that do not ascend");
            }
            entries.push((key.into(), value.into()));
        }
        Ok(entries.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn numbers_have_one_spelling() {
        for number in [0, 1, 0x7f, 0x80, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX, 1 << 63] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            let mut fields = Fields::new(&bytes);
            assert_eq!((fields.number(), fields.is_empty()), (Ok(number), true));
        }
        let long = [0xff; 10];
        for bytes in [&[0x80, 0][..], &[0xff, 0x00], &[0x80], &[], &long] {
            assert!(Fields::new(bytes).number().is_err(), "{bytes:?}");
        }
        let mut over = vec![0xff; 9];
        over.push(2);
        assert!(Fields::new(&over).number().is_err());
    }

    #[test]
    fn metadata_have_one_spelling() {
        let texts = [("a", "1"), ("b", ""), ("c", "\u{e4}")];
        let texts: BTreeMap<String, String> = texts.map(|(key, value)| (key.into(), value.into())).into();
        let mut bytes = Vec::new();
        put_texts(&mut bytes, &texts);
        assert_eq!(Fields::new(&bytes).texts().unwrap(), texts);
        for wrong in [&b"\x01b\0\x01a\0"[..], b"\x01a\0\x01a\0", b"\0\0", b"\x01a", b"\x05a\0", b"\x01\xff\0"]
        {
            assert!(Fields::new(wrong).texts().is_err(), "{wrong:?}");
        }
    }
}
