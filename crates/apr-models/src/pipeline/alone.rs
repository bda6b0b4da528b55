//! Parts of pipelines as separate payloads, for tests.

use alloc::vec::Vec;
use core::fmt::Debug;

use apr_container::{
    DecodePayload, EncodePayload, Error, ModelType, PayloadLayout, PayloadReader, PayloadWriter,
    decode_payload_from_slice, encode_payload_to_vec,
};

use super::{NeighboursStep, TextInput, TreesStep};

/// A part that is stored in payloads.
pub(crate) trait Part: Clone + Debug + PartialEq {
    fn write(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error>;

    fn read(input: &mut PayloadReader<'_>) -> Result<Self, Error>;
}

macro_rules! parts {
    ($($part:ty),*) => {
        $(impl Part for $part {
            fn write(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
                self.encode(out)
            }

            fn read(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
                Self::decode(input)
            }
        })*
    };
}

parts!(NeighboursStep, TextInput, TreesStep);

struct Alone<P>(P);

impl<P: Part> EncodePayload for Alone<P> {
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        self.0.write(out)
    }
}

impl<P: Part> DecodePayload for Alone<P> {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        P::read(input).map(Self)
    }
}

/// The bytes of a part.
pub(crate) fn bytes_of<P: Part>(part: &P) -> Vec<u8> {
    encode_payload_to_vec(&Alone(part.clone()), PayloadLayout::V0_72).unwrap()
}

/// The part that bytes are, if they are one and nothing more.
pub(crate) fn read<P: Part>(bytes: &[u8]) -> Result<P, Error> {
    let alone: Alone<P> = decode_payload_from_slice(bytes, PayloadLayout::V0_72, ModelType::Custom)?;
    Ok(alone.0)
}

/// Proves that a part is read as it was written, and not from fewer bytes. What bytes of which one was changed are read as is
/// handed to `passed`, with those bytes.
pub(crate) fn survives_damage<P: Part>(part: &P, mut passed: impl FnMut(P, &[u8])) {
    let bytes = bytes_of(part);
    assert_eq!(read::<P>(&bytes).unwrap(), *part);
    for end in 0..bytes.len() {
        assert!(read::<P>(&bytes[..end]).is_err(), "{end}");
    }
    for place in 0..bytes.len() {
        for mask in [1, 2, 0x80, 0xFF] {
            let mut damaged = bytes.clone();
            damaged[place] ^= mask;
            if let Ok(found) = read(&damaged) {
                passed(found, &damaged);
            }
        }
    }
}
