//! Containers of version 1.

use apr_container::v1::Container;
use apr_container::{Compression, EncodePayload, Error, PayloadWriter, SaveOptions, to_vec};

use super::{msgpack, payload, seal};
use crate::choices::Choices;

const HEADER_LEN: usize = 32;

/// Every file that one input encodes.
#[must_use]
pub fn files(input: &[u8]) -> Vec<Vec<u8>> {
    let mut out = vec![input.to_vec()];
    out.extend(mended(input));
    out.push(built(&mut Choices::new(input)));
    out
}

/// The input as header, metadata and payload, whose lengths and checksum are made to fit.
fn mended(input: &[u8]) -> Option<Vec<u8>> {
    let (header, rest) = input.split_first_chunk::<HEADER_LEN>()?;
    // A vector brings a checksum of its own.
    let rest = if input.starts_with(b"APRN") { rest.split_last_chunk::<4>()?.0 } else { rest };
    let mut file = header.to_vec();
    file[..4].copy_from_slice(b"APRN");
    file[4..6].copy_from_slice(&[1, header[5] % 2]);
    let field =
        |at: usize| header[at..at + 4].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let signature_len = if header[21] & 2 != 0 { 96 } else { 0 };
    let available = rest.len().checked_sub(signature_len)?;
    let metadata_len = if field(8) <= available { field(8) } else { field(8) % (available + 1) };
    let payload_len = available - metadata_len;
    file[8..12].copy_from_slice(&(metadata_len as u32).to_le_bytes());
    file[12..16].copy_from_slice(&(payload_len as u32).to_le_bytes());
    if header[20] == 0 {
        file[16..20].copy_from_slice(&(payload_len as u32).to_le_bytes());
    }
    Some(seal([&file, rest].concat()))
}

/// A payload that no model has to make.
struct Raw(Vec<u8>);

impl EncodePayload for Raw {
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.bytes_raw(&self.0)
    }
}

/// A file that is valid except for rare faults.
fn built(choices: &mut Choices<'_>) -> Vec<u8> {
    let (model_type, layout, payload) = payload::any(choices);
    let compression = choices.pick([
        Compression::None,
        Compression::None,
        Compression::ZstdDefault,
        Compression::LZ4,
        Compression::ZstdMax,
    ]);
    let options = SaveOptions::default().with_compression(compression).with_layout(layout).with_created_at(0);
    let file = to_vec(&Raw(payload), model_type, &options).expect("any payload can be saved");
    let container = Container::from_bytes(&file).expect("what we write we read");
    let mut header = container.header().to_bytes();
    let mut stored = container.payload().plain().expect("nothing is encrypted").stored().to_vec();
    let mut metadata = match choices.below(4) {
        0 => msgpack::metadata(choices),
        _ => container.metadata_bytes().to_vec(),
    };
    if choices.rarely(8) {
        flip(choices, &mut stored);
    }
    if choices.rarely(16) {
        flip(choices, &mut metadata);
    }
    let extra = if choices.rarely(32) { choices.below(100) } else { 0 };
    let mut set = |at: usize, value: u32| header[at..at + 4].copy_from_slice(&value.to_le_bytes());
    set(8, metadata.len() as u32);
    set(12, stored.len() as u32);
    if choices.rarely(16) {
        let at = choices.pick([8, 12, 16, 16]);
        set(at, choices.integer() as u32);
    }
    if choices.rarely(4) {
        match choices.below(6) {
            0 => header[4..6].copy_from_slice(&choices.pick([[1, 1], [0, 0], [2, 0], [1, 9]])),
            1 => header[6..8].copy_from_slice(&[choices.byte(), choices.pick([0, 0, 1])]),
            2 => header[20] = choices.pick([0, 1, 2, 3, 4, 255]),
            3 => header[21] = choices.byte(),
            4 => header[22] = choices.byte(),
            _ => header[23 + choices.below(9)] = 1,
        }
    }
    let signature = if header[21] & 2 != 0 { 96 } else { 0 };
    seal([&header[..], &metadata, &stored, &vec![0x5A; signature + extra]].concat())
}

fn flip(choices: &mut Choices<'_>, bytes: &mut Vec<u8>) {
    let at = (choices.below(256) << 8 | choices.below(256)) % bytes.len().max(1);
    match choices.below(4) {
        0 => bytes.truncate(at),
        1 => bytes.extend_from_slice(&[choices.byte(), 0, 1]),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << choices.below(8);
            }
        }
    }
}
