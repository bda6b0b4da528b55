//! How the targets turn the fuzzer's bytes into files, tensors and indices.
//!
//! A mutated file mostly dies at its length field. So each input is read several ways: as a whole file (test
//! vectors serve as seeds this way), as a file with its length field and data section made to fit, and as
//! the decisions of a generator that writes almost sound headers.

#![forbid(unsafe_code)]

extern crate alloc;

pub mod ald;
pub mod apr;
mod choices;
pub mod foreign;
pub mod gguf;
mod header;
pub mod hf;
pub mod pickle;
pub mod pipeline;
pub mod sealed;

pub use choices::Choices;
pub use header::header;

/// Largest data section made up.
const MAX_DATA: usize = 1 << 16;

/// Every file that one input encodes.
pub fn files(input: &[u8]) -> Vec<Vec<u8>> {
    let mut out = vec![input.to_vec()];
    if let Some((_, rest)) = input.split_first_chunk::<8>() {
        let text_len = rest.iter().rposition(|byte| *byte == b'}').map_or(rest.len(), |at| at + 1);
        let (text, data) = rest.split_at(text_len);
        out.push(file(text, data));
        out.push(file(text, &vec![0; largest_end(text)]));
    }
    let choices = &mut Choices::new(input);
    let (text, data_len) = header(choices);
    let data_len = if choices.rarely(64) { data_len + 1 } else { data_len };
    out.push(file(&text, &vec![0x40; data_len.min(MAX_DATA)]));
    out
}

/// A file with this header text and data section.
fn file(text: &[u8], data: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text, data].concat()
}

/// The largest number in front of a closing bracket, where the end of the last tensor would stand.
fn largest_end(text: &[u8]) -> usize {
    let ends = text.split(|byte| *byte == b']').filter_map(|part| {
        let digits = part.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = part.get(part.len() - digits..)?;
        core::str::from_utf8(digits).ok()?.parse::<usize>().ok()
    });
    ends.filter(|end| *end <= MAX_DATA).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use st_core::{ErrorKind, Header, ReadOptions};

    use super::*;

    /// Pseudo-random bytes; the same every time.
    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    #[test]
    fn generated_headers_are_sound_often_and_unsound_in_many_ways() {
        let mut accepted = [0, 0];
        let mut codes = std::collections::BTreeSet::new();
        for seed in 0..20_000 {
            let (text, data_len) = header(&mut Choices::new(&bytes(seed, 200)));
            let file = file(&text, &vec![0; data_len]);
            for (count, options) in accepted.iter_mut().zip([ReadOptions::STRICT, ReadOptions::COMPAT]) {
                match Header::from_bytes(&file, &options) {
                    Ok(_) => *count += 1,
                    Err(error) => drop(codes.insert(error.code())),
                }
            }
        }
        assert!(accepted[0] > 2_000 && accepted[1] > accepted[0], "{accepted:?}");
        assert!(codes.len() >= 24, "{codes:?} of {:?}", ErrorKind::CODES);
    }

    #[test]
    fn a_vector_is_read_as_it_is_and_mended() {
        let vector = file(b"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", b"abc");
        let mut longer = vector.clone();
        longer.insert(9, b' ');
        let files = files(&longer);
        let accepted = |file: &Vec<u8>| Header::from_bytes(file, &ReadOptions::STRICT).is_ok();
        assert_eq!(files[..3].iter().map(accepted).collect::<Vec<_>>(), [false, true, true]);
        assert!(files[1].ends_with(b"abc"));
    }
}
