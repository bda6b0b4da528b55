//! External data: ranges of files beside the model.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::ops::Range;

use crate::error::Error;
use crate::files::Companions;
use crate::model::Model;
use crate::protobuf::{Fields, Value};
use crate::reader::{Budget, Reader};
use crate::tensor::Place;

/// Longest key and value.
const MAX_TEXT: u64 = 4096;

/// The files that have been opened: number and length.
pub(super) struct External<'c> {
    companions: &'c dyn Companions,
    open: BTreeMap<String, (usize, u64)>,
}

impl<'c> External<'c> {
    pub(super) fn new(companions: &'c dyn Companions) -> Self {
        Self { companions, open: BTreeMap::new() }
    }

    /// Where `len` bytes of the tensor `name` are.
    pub(super) fn place(
        &mut self,
        reader: &mut Reader<'_>,
        model: &mut Model,
        (entries, name): (&[Range<u64>], &str),
        len: u64,
    ) -> Result<Place, Error> {
        let (mut location, mut offset, mut declared) = (None, None, None);
        for entry in entries {
            let Some((key, value)) = pair(reader, entry.clone(), &mut Budget::new(MAX_TEXT))? else {
                continue;
            };
            let repeated = match key.as_str() {
                "location" => location.replace(value).is_some(),
                "offset" => offset.replace(number(&value)?).is_some(),
                "length" => declared.replace(number(&value)?).is_some(),
                "checksum" => {
                    model.note(name, "the checksum of its external data is not compared");
                    false
                }
                _ => {
                    model.note(name, "an unknown key of external data is ignored");
                    false
                }
            };
            if repeated {
                return Err(Error::malformed("a key of external data is repeated").at(entry.start));
            }
        }
        let location = location.ok_or_else(|| Error::malformed("external data without a location"))?;
        // The folder of the model, written out.
        let location = String::from(location.trim_start_matches("./"));
        if declared.is_some_and(|declared| declared != len) {
            return Err(Error::view("its data has another length than its shape"));
        }
        let (number, available) = match self.open.get(&location) {
            Some(open) => *open,
            None => {
                let source = self.companions.open(&location)?;
                let available = source.total_len();
                let open = (model.add_companion(source), available);
                self.open.insert(location, open);
                open
            }
        };
        let start = offset.unwrap_or(0);
        let end = start.checked_add(len).filter(|end| *end <= available);
        let end = end.ok_or_else(|| Error::view("it reaches beyond the file with its data"))?;
        Ok(Place::Stored(number, start..end))
    }
}

/// A `StringStringEntryProto`.
pub(super) fn pair(
    reader: &mut Reader<'_>,
    range: Range<u64>,
    budget: &mut Budget,
) -> Result<Option<(String, String)>, Error> {
    let (mut key, mut value) = (None, None);
    let mut fields = Fields::new(range);
    while let Some((number, field)) = fields.next(reader)? {
        let slot = match number {
            1 => &mut key,
            2 => &mut value,
            _ => continue,
        };
        if let Value::Bytes(range) = field {
            *slot = Some(reader.text(range, budget)?);
        }
    }
    Ok(key.zip(value))
}

/// A decimal number without a sign.
fn number(text: &str) -> Result<u64, Error> {
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_decimal { text.parse().ok() } else { None };
    number.ok_or_else(|| Error::malformed("offset or length of external data is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        assert_eq!(number("0").unwrap() + number("4096").unwrap(), 4096);
        for text in ["", "-1", "+1", "0x10", "1 ", "18446744073709551616"] {
            assert!(number(text).is_err(), "{text:?}");
        }
    }
}
