//! Readers of foreign formats: what has to hold whatever they read.

use foreign_tensors::{Companions, Error, Model, NoCompanions};
use read_at::ReadAt;

/// A folder in which every file has these bytes.
pub struct Folder<'b>(pub &'b [u8]);

impl Companions for Folder<'_> {
    fn open(&self, path: &str) -> Result<Box<dyn ReadAt + Send + Sync>, Error> {
        match NoCompanions.open(path) {
            Err(error) if error.code() == "ft-companion-path" => Err(error),
            _ => Ok(Box::new(self.0.to_vec())),
        }
    }

    fn file_name(&self) -> Option<&str> {
        Some("model.index")
    }
}

/// Tensors have the bytes that their type and shape say, and those that are stored as they are, are bytes of the file.
pub fn check(model: &Result<Model, Error>, file: &[u8]) {
    let Ok(model) = model else { return };
    let _ = model.check();
    for tensor in model.tensors() {
        let Ok(bytes) = tensor.to_vec(model, &file) else { continue };
        assert_eq!(bytes.len() as u64, tensor.byte_len(), "{tensor:?}");
        if let Some((0, range)) = tensor.stored() {
            assert_eq!(bytes, file[range.start as usize..range.end as usize], "{tensor:?}");
        }
    }
    for alias in model.aliases() {
        assert!(model.tensors().iter().any(|tensor| tensor.name() == alias.of), "{alias:?}");
    }
    for (name, json) in model.entries() {
        assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{name}: {json}");
    }
}

/// The index of a checkpoint of TensorFlow with sound checksums: a header, then values under ascending keys.
pub fn index(header: &[u8], values: &[(Vec<u8>, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut data = entry(b"", header);
    values.iter().for_each(|(key, value)| data.extend(entry(key, value)));
    let data = block(&data, &mut out);
    let metaindex = block(&[], &mut out);
    let index = block(&entry(b"\xff", &data), &mut out);
    let mut footer = [metaindex, index].concat();
    footer.resize(40, 0);
    out.extend_from_slice(&footer);
    out.extend_from_slice(b"\x57\xfb\x80\x8b\x24\x75\x47\xdb");
    out
}

/// Appends a block, and returns where it is.
fn block(entries: &[u8], out: &mut Vec<u8>) -> Vec<u8> {
    let begin = out.len();
    out.extend_from_slice(entries);
    out.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    let place = [varint(begin), varint(out.len() - begin)].concat();
    out.push(0);
    let crc = out[begin..].iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    });
    let masked = (!crc).rotate_right(15).wrapping_add(0xa282_ead8);
    out.extend_from_slice(&masked.to_le_bytes());
    place
}

fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0], &varint(key.len())[..], &varint(value.len()), key, value].concat()
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
