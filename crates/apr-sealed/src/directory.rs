//! The directory: private metadata and the list of parts.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::fields::{Fields, What, put_number, put_text, put_texts};
use crate::plan::{Part, PartKind, Plan};

const RAW: u8 = 0;
const TENSOR: u8 = 1;

/// The directory's bytes before encryption.
pub(crate) fn encode(plan: &Plan, private: &BTreeMap<String, String>) -> Vec<u8> {
    let mut texts = Vec::new();
    put_texts(&mut texts, private);
    let mut out = Vec::new();
    put_number(&mut out, texts.len() as u64);
    out.append(&mut texts);
    for part in plan.parts() {
        match part.kind() {
            PartKind::Raw => out.push(RAW),
            PartKind::Tensor => {
                out.push(TENSOR);
                put_text(&mut out, part.name());
                put_text(&mut out, part.dtype());
                put_number(&mut out, part.shape().len() as u64);
                part.shape().iter().for_each(|dim| put_number(&mut out, *dim));
            }
        }
        put_number(&mut out, part.len());
    }
    out
}

/// Private metadata and parts out of an authentic directory.
pub(crate) fn decode(bytes: &[u8], most_parts: usize) -> Result<(BTreeMap<String, String>, Plan), Error> {
    let wrong = |what: What| Error::from(ErrorKind::Directory { what });
    let mut fields = Fields::new(bytes);
    let private = fields.bytes().and_then(|texts| Fields::new(texts).texts()).map_err(wrong)?;
    let mut parts = Vec::new();
    while !fields.is_empty() {
        if parts.len() == most_parts {
            let (found, limit) = (parts.len() as u64 + 1, most_parts as u64);
            return Err(ErrorKind::Limit { what: "parts of a sealed file", found, limit }.into());
        }
        parts.push(part(&mut fields).map_err(wrong)?);
    }
    Ok((private, Plan::new(parts)?))
}

fn part(fields: &mut Fields<'_>) -> Result<Part, What> {
    match fields.byte()? {
        RAW => Ok(Part::raw(fields.number()?)),
        TENSOR => {
            let (name, dtype) = (fields.text()?, fields.text()?);
            // Above that, `Plan` refuses.
            let rank = fields.number()?.min(256);
            let shape: Box<[u64]> = (0..rank).map(|_| fields.number()).collect::<Result<_, _>>()?;
            Ok(Part::tensor(name, dtype, shape, fields.number()?))
        }
        _ => Err("a part of an unknown kind"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_as_it_was_written() {
        let parts = [
            Part::raw(7),
            Part::tensor("model.weight", "BF16", [3, 200], 1200),
            Part::tensor("empty", "F32", [0], 0),
            Part::raw(1 << 40),
        ];
        let plan = Plan::new(parts).unwrap();
        let private: BTreeMap<String, String> = [("file.name".into(), "m.safetensors".into())].into();
        let bytes = encode(&plan, &private);
        assert_eq!(decode(&bytes, 4).unwrap(), (private, plan));
        assert_eq!(decode(&bytes, 3).unwrap_err().code(), "ac-limit");
        for len in 0..bytes.len() {
            // Cut between two parts, it is a directory of fewer parts: its length is authenticated outside.
            let _ = decode(&bytes[..len], 4);
        }
        for wrong in [&b""[..], b"\x01", b"\0\x02\x01", b"\0\0\0", b"\0\x01\x01a\x01b\x80\x80\x01"] {
            assert_eq!(decode(wrong, 4).unwrap_err().code(), "ac-sealed-directory", "{wrong:?}");
        }
    }
}
