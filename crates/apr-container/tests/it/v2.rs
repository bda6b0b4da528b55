//! Version 2.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod damage;
mod hostile;
mod peer;
mod properties;
mod reading;
mod shards;
mod stored;
mod writing;

use std::path::Path;

use apr_container::ReadOptions;
use apr_container::v2::{AprType, Container, Header, TensorView, WriteOptions, to_vec};

const BOTH: [ReadOptions; 2] = [ReadOptions::STRICT, ReadOptions::COMPAT];

/// A file that another implementation wrote, or that was made to be refused.
fn vector(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/apr");
    std::fs::read(folder.join(name)).expect("the vector is there")
}

/// A small file with tensors of three types, one of them empty.
fn sample() -> Vec<u8> {
    let weights = [1.0f32, -2.5, 3.0].map(f32::to_le_bytes);
    let views = [
        TensorView::new("w", AprType::F32, &[3], weights.as_flattened()),
        TensorView::new("b", AprType::I8, &[2, 2], &[1, 2, 3, 0xFF]),
        TensorView::new("nothing", AprType::F64, &[0, 3], &[]),
    ];
    to_vec(&views.map(Result::unwrap), &WriteOptions::default()).unwrap()
}

/// Changes a file and makes both checksums fit again.
fn edited(file: &[u8], edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut file = file.to_vec();
    file.truncate(file.len() - 4);
    edit(&mut file);
    let mut checked = file[..40].to_vec();
    checked.extend_from_slice(&file[44..64]);
    let checksum = crc32(&checked).to_le_bytes();
    file[40..44].copy_from_slice(&checksum);
    let footer = crc32(&file).to_le_bytes();
    file.extend_from_slice(&footer);
    file
}

/// The checksum, one bit at a time.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn code(file: &[u8], options: &ReadOptions) -> &'static str {
    match Container::from_bytes_with(file, options) {
        Ok(_) => "accepted",
        Err(error) => error.code(),
    }
}

fn header(file: &[u8]) -> Header {
    Header::from_bytes(file, &ReadOptions::COMPAT).unwrap()
}
