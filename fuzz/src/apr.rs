//! How the fuzzer's bytes become `.apr` files, metadata and payloads.
//!
//! Each input is read as it is, with its lengths and checksums mended, and as the decisions of generators whose output is
//! valid except for a rare, chosen fault.

pub mod first;
pub mod msgpack;
pub mod payload;
pub mod protected;
pub mod second;

use crc32fast::Hasher;

/// CRC-32 of the parts as one.
#[must_use]
pub fn crc32(parts: &[&[u8]]) -> u32 {
    let mut hasher = Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Appends the checksum of everything before it.
fn seal(mut file: Vec<u8>) -> Vec<u8> {
    let checksum = crc32(&[&file]);
    file.extend_from_slice(&checksum.to_le_bytes());
    file
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use apr_container::v2::Stored;
    use apr_container::{
        Expect, Limits, Metadata, PayloadLayout, ReadOptions, Strictness, decode_payload_from_slice,
        load_from_bytes_with,
    };
    use apr_models::AnyModel;

    use super::*;
    use crate::Choices;

    /// Pseudo-random bytes; the same every time.
    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    /// How many of 2,000 inputs are read, and how many errors there are in the others.
    fn tally(read: impl Fn(&[u8]) -> Result<(), &'static str>) -> (usize, usize) {
        let (mut accepted, mut codes) = (0, BTreeSet::new());
        for seed in 0..2_000 {
            match read(&bytes(seed, 400)) {
                Ok(()) => accepted += 1,
                Err(code) => drop(codes.insert(code)),
            }
        }
        (accepted, codes.len())
    }

    #[test]
    fn generated_files_are_sound_often_and_unsound_in_many_ways() {
        let first = tally(|input| {
            let file = first::files(input).pop().expect("the generated one is the last");
            load_from_bytes_with::<AnyModel>(&file, Expect::AnyKnown, &ReadOptions::STRICT)
                .map(drop)
                .map_err(|error| error.code())
        });
        let second = tally(|input| {
            let file = second::files(input).pop().expect("the generated one is the last");
            Stored::from_bytes(&file, &ReadOptions::STRICT).map(drop).map_err(|error| error.code())
        });
        let metadata = tally(|input| {
            let bytes = msgpack::metadata(&mut Choices::new(input));
            Metadata::from_msgpack(&bytes, Strictness::Strict, &Limits::DEFAULT)
                .map(drop)
                .map_err(|error| error.code())
        });
        for (accepted, codes) in [first, second, metadata] {
            assert!(accepted > 200 && codes >= 8, "{accepted} accepted, {codes} errors");
        }
    }

    /// Files under the fixed keys open; those that were changed nearly never do, for many reasons; those that anybody made
    /// reach the decoders.
    #[test]
    fn protected_files_are_opened_and_refused() {
        use apr_container::{Compression, LoadOptions};
        use apr_crypto::Access;

        let secret = protected::recipient();
        let access = Access::default().with_recipient(&secret);
        let open = |file: &[u8], options: &ReadOptions| {
            let options = LoadOptions { read: *options, access };
            load_from_bytes_with::<AnyModel>(file, Expect::AnyKnown, options)
                .map(drop)
                .map_err(|error| error.code())
        };
        let sound = protected::sound(Compression::None, false);
        assert_eq!(open(&sound, &ReadOptions::STRICT), Ok(()));
        let (opened, codes) =
            tally(|input| open(&protected::changed(&sound, &mut Choices::new(input)), &ReadOptions::STRICT));
        assert!(opened < 20 && codes >= 5, "{opened} opened, {codes} errors");
        let (opened, codes) =
            tally(|input| open(&protected::by_anybody(input).ok_or("none")?, &ReadOptions::COMPAT));
        assert!(opened > 100 && codes >= 5, "{opened} opened, {codes} errors");
    }

    #[test]
    fn every_model_is_generated_in_every_layout() {
        for kind in &payload::KINDS {
            for layout in PayloadLayout::ALL {
                let models = (0..300).filter(|&seed| {
                    let payload = kind.payload(&mut Choices::new(&bytes(seed, 400)), layout);
                    decode_payload_from_slice::<AnyModel>(&payload, layout, kind.model_type).is_ok()
                });
                let count = models.count();
                // Without a name `AnyModel` is choosy; the targets ask for each type by itself as well.
                assert!(count > 5, "{}, {layout}: {count} of 300", kind.name);
            }
        }
    }
}
