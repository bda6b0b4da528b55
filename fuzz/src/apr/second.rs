//! Containers of version 2.

use super::{crc32, seal};
use crate::choices::Choices;

const HEADER_LEN: usize = 64;
const DTYPES: [u8; 16] = [0, 1, 3, 4, 5, 6, 7, 12, 14, 30, 128, 129, 2, 8, 9, 77];

/// Every file that one input encodes.
#[must_use]
pub fn files(input: &[u8]) -> Vec<Vec<u8>> {
    let mut out = vec![input.to_vec()];
    out.extend(mended(input));
    out.push(built(&mut Choices::new(input)));
    out
}

/// The input with the checksums of header and footer made right.
fn mended(input: &[u8]) -> Option<Vec<u8>> {
    let body = if input.starts_with(b"APR") { input.split_last_chunk::<4>()?.0 } else { input };
    let mut file = body.to_vec();
    let header = file.first_chunk_mut::<HEADER_LEN>()?;
    header[..3].copy_from_slice(b"APR");
    if header[3] != b'2' {
        header[3] = 0;
    }
    seal_header(header);
    Some(seal(file))
}

fn seal_header(header: &mut [u8; HEADER_LEN]) {
    let checksum = crc32(&[&header[..40], &header[44..]]);
    header[40..44].copy_from_slice(&checksum.to_le_bytes());
}

struct Tensor {
    name: Vec<u8>,
    dtype: u8,
    shape: Vec<u64>,
    offset: u64,
    len: u64,
}

/// A file that is valid except for rare faults.
fn built(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut tensors: Vec<Tensor> = (0..choices.below(5)).map(|idx| tensor(choices, idx)).collect();
    if !choices.rarely(32) {
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let mut data = Vec::new();
    let mut places: Vec<usize> = (0..tensors.len()).collect();
    if choices.rarely(4) {
        places.reverse();
    }
    for idx in places {
        let tensor = &mut tensors[idx];
        tensor.offset = data.len() as u64;
        if choices.rarely(48) {
            tensor.offset = choices.integer() as u64;
        }
        let len = (tensor.len as usize).min(1 << 12);
        data.extend((0..len).map(|at| at as u8));
        pad(choices, &mut data);
    }
    let mut index = Vec::new();
    for tensor in &tensors {
        let name_len = if choices.rarely(64) { choices.integer() as u16 } else { tensor.name.len() as u16 };
        index.extend_from_slice(&name_len.to_le_bytes());
        index.extend_from_slice(&tensor.name);
        let ndim = if choices.rarely(64) { choices.byte() } else { tensor.shape.len() as u8 };
        index.extend_from_slice(&[tensor.dtype, ndim]);
        tensor.shape.iter().for_each(|dim| index.extend_from_slice(&dim.to_le_bytes()));
        index.extend_from_slice(&tensor.offset.to_le_bytes());
        index.extend_from_slice(&tensor.len.to_le_bytes());
    }
    let metadata = json(choices);
    let metadata_len = metadata.len() as u32;
    let mut body = metadata;
    pad(choices, &mut body);
    let index_offset = HEADER_LEN + body.len();
    body.extend_from_slice(&index);
    pad(choices, &mut body);
    let data_offset = HEADER_LEN + body.len();
    body.extend_from_slice(&data);

    let mut header = [0; HEADER_LEN];
    header[..4].copy_from_slice(b"APR\0");
    if choices.rarely(16) {
        header[3] = b'2';
    }
    header[4..6].copy_from_slice(&[2, 0]);
    header[6..8].copy_from_slice(&[0, 4]);
    header[8..12].copy_from_slice(&(tensors.len() as u32).to_le_bytes());
    header[12..20].copy_from_slice(&64u64.to_le_bytes());
    header[20..24].copy_from_slice(&metadata_len.to_le_bytes());
    header[24..32].copy_from_slice(&(index_offset as u64).to_le_bytes());
    header[32..40].copy_from_slice(&(data_offset as u64).to_le_bytes());
    if choices.rarely(6) {
        match choices.below(8) {
            0 => header[4..6].copy_from_slice(&choices.pick([[2, 1], [3, 0], [1, 0], [0, 0]])),
            1 => header[6..8].copy_from_slice(&[choices.byte(), choices.byte()]),
            2 => header[8..12].copy_from_slice(&(choices.integer() as u32).to_le_bytes()),
            3 => header[12..20].copy_from_slice(&choices.integer().to_le_bytes()),
            4 => header[20..24].copy_from_slice(&(choices.integer() as u32).to_le_bytes()),
            5 => header[24..32].copy_from_slice(&choices.integer().to_le_bytes()),
            6 => header[32..40].copy_from_slice(&choices.integer().to_le_bytes()),
            _ => header[44 + choices.below(20)] = choices.byte(),
        }
    }
    let body = if choices.rarely(8) { compressed(choices, &mut header, &body) } else { body };
    seal_header(&mut header);
    let mut file = [&header[..], &body].concat();
    match choices.below(16) {
        0 => file,
        1 => {
            file.extend_from_slice(&[choices.byte(), 0, 0, 0]);
            file
        }
        _ => seal(file),
    }
}

/// One of the two ways in which files with a compression flag are stored.
fn compressed(choices: &mut Choices<'_>, header: &mut [u8; HEADER_LEN], body: &[u8]) -> Vec<u8> {
    let lz4 = choices.rarely(2);
    header[6] |= if lz4 { 1 } else { 2 };
    match (choices.rarely(4), lz4) {
        (true, _) => body.to_vec(),
        (false, true) => lz4_flex::compress_prepend_size(body),
        (false, false) => zstd::bulk::compress(body, 3).unwrap_or_default(),
    }
}

fn tensor(choices: &mut Choices<'_>, idx: usize) -> Tensor {
    let name = match choices.below(12) {
        0 => Vec::new(),
        1 => vec![b'n'; 250 + choices.below(12)],
        2 => vec![0xC3, choices.byte()],
        3 => b"same".to_vec(),
        _ => format!("layers.{idx}.weight{}", choices.below(3)).into_bytes(),
    };
    let dtype = DTYPES[choices.below(DTYPES.len())];
    let mut shape: Vec<u64> = (0..choices.below(4)).map(|_| choices.below(6) as u64).collect();
    if choices.rarely(48) {
        shape.push(choices.integer() as u64);
    }
    if choices.rarely(48) {
        shape.extend([1; 9]);
    }
    let count = shape.iter().fold(1u64, |count, dim| count.wrapping_mul(*dim));
    let len = match dtype {
        0 | 4 => count.wrapping_mul(4),
        1 | 30 | 2 => count.wrapping_mul(2),
        3 | 5 => count.wrapping_mul(8),
        12 => count.div_ceil(256).wrapping_mul(144),
        14 => count.div_ceil(256).wrapping_mul(210),
        128 | 8 => count.div_ceil(32).wrapping_mul(18),
        129 | 9 => count.wrapping_add(4),
        _ => count,
    };
    let len = if choices.rarely(48) { choices.integer() as u64 } else { len };
    Tensor { name, dtype, shape, offset: 0, len }
}

fn json(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut members = vec!["\"model_type\":\"linear\"".to_owned()];
    for key in ["license", "data_source", "data_license"] {
        let value = choices.pick(["null", "null", "\"MIT\"", "1"]);
        members.push(format!("\"{key}\":{value}"));
    }
    for _ in 0..choices.below(5) {
        let member = choices.pick([
            "\"total_size\":0",
            "\"param_count\":18446744073709551615",
            "\"sharding\":{\"shard_count\":2,\"shard_index\":0,\"total_size\":0,\"pattern\":null}",
            "\"sharding\":null",
            "\"name\":\"tiny\"",
            "\"rope_theta\":1e400",
            "\"my_key\":{\"x\":[1,2,{\"y\":[]}]}",
            "\"my\\u005fkey\":\"\\ud83d\\ude00\"",
            "\"k\":\"\\ud800\"",
            "\"hidden_size\":-0",
            "\"created_at\":\"2026-01-01T00:00:00Z\"",
            "\"\":[[[[[[[[[[]]]]]]]]]]",
        ]);
        members.push(member.to_owned());
    }
    if choices.rarely(16) {
        members.remove(0);
    }
    let mut text = format!("{{{}}}", members.join(",")).into_bytes();
    if choices.rarely(32) {
        let at = choices.below(256) % text.len();
        text[at] = choices.byte();
    }
    text
}

fn pad(choices: &mut Choices<'_>, bytes: &mut Vec<u8>) {
    let to = if choices.rarely(64) { choices.pick([1, 8, 32]) } else { 64 };
    let byte = u8::from(choices.rarely(128));
    bytes.resize(bytes.len().next_multiple_of(to), byte);
}
