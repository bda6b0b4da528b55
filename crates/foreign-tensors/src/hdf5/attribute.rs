//! Attributes, and other values that have a form in JSON.

use alloc::string::String;
use alloc::vec::Vec;

use json_scan::{Escape, Writer};
use tensor_dtype::Dtype;

use crate::error::Error;
use crate::hdf5::datatype::{self, Datatype, Kind};
use crate::hdf5::dense::{FractalHeap, for_each_record};
use crate::hdf5::file::{Fields, File};
use crate::hdf5::header::{Header, kind, shared};
use crate::hdf5::layout::{Dataspace, dataspace};
use crate::tensor::ElementType;

/// Types of the trees of attributes: by name, by order of creation.
const ATTRIBUTES_BY_NAME: u8 = 8;
const ATTRIBUTES_BY_ORDER: u8 = 9;
/// Values that are kept of one attribute or dataset.
const MAX_VALUES: u64 = 1 << 16;

/// A named value of an object.
pub(crate) struct Attribute {
    pub(crate) name: String,
    datatype: Datatype,
    space: Dataspace,
    data: Vec<u8>,
}

/// The attributes of an object. Those that are stored outside of their heap because of their size are counted only.
pub(crate) fn attributes(file: &File<'_>, header: &Header) -> Result<(Vec<Attribute>, u64), Error> {
    let mut found = Vec::new();
    let mut left_out = 0;
    for message in header.all(kind::ATTRIBUTE) {
        if message.shared {
            left_out += 1;
        } else {
            found.push(attribute(file, &message.data)?);
        }
    }
    if let Some(message) = header.first(kind::ATTRIBUTE_INFO) {
        let mut fields = Fields::new(&message.data);
        fields.u8()?;
        if fields.u8()? & 1 != 0 {
            fields.u16()?;
        }
        if let (Some(heap), Some(tree)) = (fields.address(&file.frame)?, fields.address(&file.frame)?) {
            let mut heap = FractalHeap::open(file, heap)?;
            for_each_record(file, tree, &mut |kind, record| {
                if !matches!(kind, ATTRIBUTES_BY_NAME | ATTRIBUTES_BY_ORDER) {
                    return Err(Error::malformed("a tree of attributes has another type"));
                }
                file.step(1)?;
                match heap.object(record)? {
                    Some(data) => found.push(attribute(file, &data)?),
                    None => left_out += 1,
                }
                if found.len() as u64 > file.frame.file_len() / 8 {
                    return Err(Error::malformed(
                        "an object has more attributes than the file has space for",
                    ));
                }
                Ok(())
            })?;
        }
    }
    Ok((found, left_out))
}

fn attribute(file: &File<'_>, data: &[u8]) -> Result<Attribute, Error> {
    let mut fields = Fields::new(data);
    let (version, flags) = (fields.u8()?, fields.u8()?);
    let lens = [fields.u16()?, fields.u16()?, fields.u16()?].map(usize::from);
    let pad = match version {
        1 => 8,
        2 => 1,
        3 => {
            fields.u8()?; // Character set.
            1
        }
        _ => return Err(Error::malformed("an attribute has an unknown version")),
    };
    let [name, datatype, space] = lens.map(|len| len.next_multiple_of(pad));
    let name = fields.take(name)?.split(|byte| *byte == 0).next().unwrap_or(&[]);
    let (datatype, space) = (fields.take(datatype)?, fields.take(space)?);
    let datatype = match version > 1 && flags & 1 != 0 {
        true => datatype::read(&shared(file, datatype, kind::DATATYPE)?)?,
        false => datatype::read(datatype)?,
    };
    let space = match version > 1 && flags & 2 != 0 {
        true => dataspace(&shared(file, space, kind::DATASPACE)?, &file.frame)?,
        false => dataspace(space, &file.frame)?,
    };
    Ok(Attribute {
        name: String::from_utf8_lossy(name).into_owned(),
        datatype,
        space,
        data: fields.rest().to_vec(),
    })
}

impl Attribute {
    /// The value as JSON; `None` if it has no such form.
    pub(crate) fn json(&self, file: &File<'_>) -> Result<Option<String>, Error> {
        json(file, &self.datatype, &self.space, &self.data)
    }

    /// The value, if it is one text.
    pub(crate) fn text(&self, file: &File<'_>) -> Result<Option<String>, Error> {
        let is_text = matches!(self.datatype.kind, Kind::Text | Kind::VarText) && !self.space.is_null;
        if !is_text || !self.space.shape.is_empty() {
            return Ok(None);
        }
        text(file, &self.datatype, Fields::new(&self.data).take(self.datatype.size as usize)?)
    }
}

/// Values as JSON: one, or a list of one dimension. `None` if they have no such form.
pub(crate) fn json(
    file: &File<'_>,
    datatype: &Datatype,
    space: &Dataspace,
    data: &[u8],
) -> Result<Option<String>, Error> {
    if space.is_null {
        return Ok(Some("null".into()));
    }
    let (count, is_list) = match *space.shape.as_slice() {
        [] => (1, false),
        [count] if count <= MAX_VALUES => (count, true),
        _ => return Ok(None),
    };
    let mut json = Writer::compact(Escape::Minimal);
    if is_list {
        json.begin_array();
    }
    let mut fields = Fields::new(data);
    for _ in 0..count {
        let value = fields.take(usize::try_from(datatype.size).unwrap_or(usize::MAX))?;
        match &datatype.kind {
            Kind::Text | Kind::VarText => match text(file, datatype, value)? {
                Some(text) => json.string(&text),
                None => return Ok(None),
            },
            Kind::Number { element: ElementType::Known(dtype), swap }
            | Kind::Enumeration { element: ElementType::Known(dtype), swap } => {
                match number(*dtype, *swap > 1, value) {
                    Some(number) => json.plain(number),
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
    }
    if is_list {
        json.end_array();
    }
    Ok(Some(json.finish()))
}

/// One text; `None` if it is not UTF-8.
fn text(file: &File<'_>, datatype: &Datatype, value: &[u8]) -> Result<Option<String>, Error> {
    let bytes = match datatype.kind {
        Kind::VarText => {
            let mut fields = Fields::new(value);
            let len = fields.u32()?;
            let Some(address) = fields.address(&file.frame)?.filter(|address| len > 0 && *address > 0) else {
                return Ok(Some(String::new()));
            };
            let idx = fields.u32()?;
            let mut object = global_heap_object(file, address, idx)?;
            object.truncate(len as usize);
            object
        }
        _ => value.to_vec(),
    };
    // Padded with NULs, or with spaces.
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = core::str::from_utf8(bytes.get(..end).unwrap_or(&bytes)).ok();
    Ok(text.map(|text| text.trim_end_matches(' ').into()))
}

/// An object of a collection of values of varying length.
fn global_heap_object(file: &File<'_>, address: u64, wanted: u32) -> Result<Vec<u8>, Error> {
    let head_len = 8 + file.frame.length_size as u64;
    let head = file.read(address, head_len)?;
    let found = || {
        let mut fields = Fields::new(&head);
        fields.signature(b"GCOL")?;
        fields.take(4)?;
        let end = address.saturating_add(fields.length(&file.frame)?);
        let mut at = address + head_len;
        while at.saturating_add(head_len) <= end {
            let object = file.read(at, head_len)?;
            let mut fields = Fields::new(&object);
            let idx = fields.u16()?;
            fields.take(6)?;
            let len = fields.length(&file.frame)?;
            if u32::from(idx) == wanted && idx != 0 {
                return file.read(at + head_len, len);
            }
            let padded = len.checked_next_multiple_of(8).unwrap_or(u64::MAX);
            // Free space, which is at the end, has a length of its own with the head.
            if idx == 0 {
                break;
            }
            at = at.saturating_add(head_len).saturating_add(padded);
        }
        Err(Error::malformed("a value of varying length is missing"))
    };
    file.at(address, found())
}

/// A number as JSON; `None` for those that JSON does not have.
fn number(dtype: Dtype, swapped: bool, value: &[u8]) -> Option<String> {
    let mut bytes = [0; 8];
    let out = bytes.get_mut(..value.len())?;
    out.copy_from_slice(value);
    if swapped {
        out.reverse();
    }
    let [b0, b1, b2, b3, ..] = bytes;
    let finite = |value: f64| value.is_finite().then(|| alloc::format!("{value}"));
    Some(match dtype {
        Dtype::Bool => alloc::format!("{}", b0 != 0),
        Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => alloc::format!("{}", u64::from_le_bytes(bytes)),
        Dtype::I8 => alloc::format!("{}", i8::from_le_bytes([b0])),
        Dtype::I16 => alloc::format!("{}", i16::from_le_bytes([b0, b1])),
        Dtype::I32 => alloc::format!("{}", i32::from_le_bytes([b0, b1, b2, b3])),
        Dtype::I64 => alloc::format!("{}", i64::from_le_bytes(bytes)),
        Dtype::F32 => {
            let value = f32::from_le_bytes([b0, b1, b2, b3]);
            return value.is_finite().then(|| alloc::format!("{value}"));
        }
        Dtype::F64 => return finite(f64::from_le_bytes(bytes)),
        _ => return None,
    })
}
