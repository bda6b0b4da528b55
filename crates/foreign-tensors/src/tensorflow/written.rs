//! Writes indexes of checkpoints with sound checksums, for tests and the fuzz target.

use alloc::vec::Vec;

#[allow(unreachable_pub, reason = "the fuzz target includes this file")]
/// The index of these keys, in ascending order, and values.
pub fn index<'p>(pairs: impl IntoIterator<Item = (&'p [u8], &'p [u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    let data: Vec<u8> = pairs.into_iter().flat_map(|(key, value)| entry(key, value)).collect();
    let data = block(&data, &mut out);
    let metaindex = block(&[], &mut out);
    let index = block(&entry(b"\xff", &data), &mut out);
    let mut footer = [metaindex, index].concat();
    footer.resize(40, 0);
    out.extend_from_slice(&footer);
    out.extend_from_slice(&0xdb47_7524_8b80_fb57_u64.to_le_bytes());
    out
}

/// Appends a block, and returns where it is.
fn block(entries: &[u8], out: &mut Vec<u8>) -> Vec<u8> {
    let begin = out.len();
    out.extend_from_slice(entries);
    out.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    let place = [varint(begin), varint(out.len() - begin)].concat();
    out.push(0);
    let crc = out.iter().skip(begin).fold(u32::MAX, |crc, byte| {
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
