//! Metadata in MessagePack: an array of fields in their order, or a map.

use msgpack_scan::{Scanner, Token};

use super::invalid;
use crate::cells::Texts;
use crate::error::Error;

/// What a dataset says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// Name.
    pub name: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// Licence, as text.
    pub license: Option<String>,
    /// Tags. Stored contiguously, because a tag may be one byte of the file.
    pub tags: Texts,
    /// Description.
    pub description: Option<String>,
    /// Citation.
    pub citation: Option<String>,
    /// Time of creation.
    pub created_at: Option<String>,
    /// SHA-256 of the payload, as declared.
    pub sha256: Option<String>,
}

/// The fields in their order; the last one may be left out.
const FIELDS: [&str; 8] =
    ["name", "version", "license", "tags", "description", "citation", "created_at", "sha256"];

impl Metadata {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let (mut scanner, mut metadata) = (Scanner::new(bytes), Self::default());
        match scanner.token() {
            Ok(Token::Array(count)) if (7..=8).contains(&count) => {
                for name in FIELDS.into_iter().take(count as usize) {
                    metadata.field(name, &mut scanner)?;
                }
            }
            Ok(Token::Map(count)) => {
                for _ in 0..count {
                    let key = borrowed(&mut scanner)?.ok_or_else(damaged)?;
                    match FIELDS.contains(&key) {
                        true => metadata.field(key, &mut scanner)?,
                        false => scanner.skip().map_err(|_| damaged())?,
                    }
                }
            }
            _ => return Err(damaged()),
        }
        if scanner.is_at_end() { Ok(metadata) } else { Err(damaged()) }
    }

    fn field(&mut self, name: &str, scanner: &mut Scanner<'_>) -> Result<(), Error> {
        let field = match name {
            "name" => &mut self.name,
            "version" => &mut self.version,
            "license" => &mut self.license,
            "description" => &mut self.description,
            "citation" => &mut self.citation,
            "created_at" => &mut self.created_at,
            "sha256" => &mut self.sha256,
            _ => {
                let Ok(Token::Array(count)) = scanner.token() else { return Err(damaged()) };
                // Their number has been compared with the bytes that are left.
                let mut tags = Texts::with_capacity(count as usize);
                for _ in 0..count {
                    tags.push(borrowed(scanner)?.ok_or_else(damaged)?);
                }
                self.tags = tags;
                return Ok(());
            }
        };
        *field = borrowed(scanner)?.map(str::to_owned);
        Ok(())
    }
}

/// A string, or nil.
fn borrowed<'data>(scanner: &mut Scanner<'data>) -> Result<Option<&'data str>, Error> {
    match scanner.token() {
        Ok(Token::Nil) => Ok(None),
        Ok(Token::Text(text)) => core::str::from_utf8(text).map(Some).map_err(|_| damaged()),
        _ => Err(damaged()),
    }
}

fn damaged() -> Error {
    invalid("the metadata are no list or map of texts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_maps_are_read() {
        let none = b"\x97\xc0\xc0\xc0\x90\xc0\xc0\xc0";
        assert_eq!(Metadata::read(none).unwrap(), Metadata::default());
        let named = Metadata::read(b"\x83\xa4name\xa1x\xa4tags\x91\xa1t\xa5other\x92\x01\x02").unwrap();
        assert_eq!((named.name.as_deref(), named.tags), (Some("x"), Texts::from_iter(["t"])));
        // As of the other fields, the last value stands.
        let twice = Metadata::read(b"\x82\xa4tags\x91\xa1t\xa4tags\x92\xa1u\xa0").unwrap();
        assert_eq!(twice.tags.iter().collect::<Vec<_>>(), ["u", ""]);
        for bytes in [
            &b""[..],
            b"\x96\xc0\xc0\xc0\x90\xc0\xc0",
            b"\x97\xc0\xc0\xc0\xc0\xc0\xc0\xc0",
            b"\x97\xc0\xc0\xc0\x90\xc0\xc0\xc0\xc0",
            b"\x97\x01\xc0\xc0\x90\xc0\xc0\xc0",
            b"\x97\xa1\xff\xc0\xc0\x90\xc0\xc0\xc0",
            b"\x81\xc0\xc0",
        ] {
            assert_eq!(Metadata::read(bytes).unwrap_err().code(), "tb-ald", "{bytes:x?}");
        }
    }
}
