//! Small arrays of strings: no tensors, but often what describes them.

use alloc::string::String;
use alloc::vec::Vec;

use json_scan::{Escape, Writer};

/// Bytes of the longest array that is read.
pub(crate) const MAX_BYTES: u64 = 4096;

/// Note on arrays that become entries of the metadata.
pub(crate) const STRINGS: &str = "strings or other values of Python: not a tensor";

/// Strings of equal lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strings {
    /// Bytes.
    Bytes(u64),
    /// Characters of four bytes each.
    Characters { len: u64, is_big: bool },
}

impl Strings {
    /// Of a code as `<U5`.
    pub(crate) fn of(code: &str) -> Option<Self> {
        let is_big = code.starts_with('>');
        let code = code.trim_start_matches(['<', '>', '|', '=']);
        let (kind, len) = code.split_at_checked(1)?;
        let len = len.parse().ok().filter(|len| (1..=MAX_BYTES).contains(len))?;
        match kind {
            "S" => Some(Self::Bytes(len)),
            "U" => Some(Self::Characters { len: len * 4, is_big }),
            _ => None,
        }
    }

    /// Bytes of a string.
    pub(crate) const fn len(self) -> u64 {
        match self {
            Self::Bytes(len) | Self::Characters { len, .. } => len,
        }
    }

    /// A string, or a list of them, as JSON; `None` if they are no text.
    pub(crate) fn json(self, shape: &[u64], bytes: &[u8]) -> Option<String> {
        let mut json = Writer::compact(Escape::Minimal);
        match shape {
            [] => drop(json.string(&self.text(bytes)?)),
            [_] => {
                json.begin_array();
                for string in bytes.chunks_exact(usize::try_from(self.len()).ok()?) {
                    json.string(&self.text(string)?);
                }
                json.end_array();
            }
            _ => return None,
        }
        Some(json.finish())
    }

    /// One string, without the zeros that fill it.
    fn text(self, bytes: &[u8]) -> Option<String> {
        let text = match self {
            Self::Bytes(_) => String::from(core::str::from_utf8(bytes).ok()?),
            Self::Characters { is_big, .. } => {
                let (characters, _) = bytes.as_chunks::<4>();
                let code = |bytes: &[u8; 4]| {
                    if is_big { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) }
                };
                let text: Option<Vec<char>> =
                    characters.iter().map(|bytes| char::from_u32(code(bytes))).collect();
                text?.into_iter().collect()
            }
        };
        Some(text.trim_end_matches('\0').into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_text_without_padding() {
        let json = |code: &str, shape: &[u64], bytes: &[u8]| Strings::of(code)?.json(shape, bytes);
        assert_eq!(json("|S3", &[], b"csr").unwrap(), "\"csr\"");
        assert_eq!(json("|S3", &[2], b"a\0\0\"\0\0").unwrap(), r#"["a","\""]"#);
        assert_eq!(
            json("<U2", &[], "é\0\0\0b\0\0\0".replace('é', "\u{1}").as_bytes()).unwrap(),
            r#""\u0001b""#
        );
        assert_eq!(json(">U1", &[], &[0, 1, 0xf6, 0]).unwrap(), "\"😀\"");
        assert_eq!(json("<U1", &[], &[0, 0xd8, 0, 0]), None);
        assert_eq!(json("|S1", &[], &[0xff]), None);
        assert_eq!(json("|S1", &[1, 1], b"a"), None);
        for code in ["|S0", "|S", "<f4", "|O", "|S99999", "<U18446744073709551615"] {
            assert_eq!(Strings::of(code), None, "{code}");
        }
    }
}
