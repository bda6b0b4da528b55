//! Sealed files: opened by whom they are for, part by part, and refused after any change.

#![allow(missing_docs, clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod damage;
mod forgery;
mod listed;
mod reading;
mod refusals;
mod rekeying;
mod round_trips;

use std::collections::BTreeMap;
use std::ops::Range;

use apr_crypto::{
    Access, Argon2Cost, Argon2Limits, Password, RecipientPublic, RecipientSecret, Rng, SigningKey,
    VerifyingKey,
};
use apr_sealed::{Error, Part, Plan, SealOptions, SealedHeader, SealedLimits, SealedReader};

/// Reproducible randomness: SplitMix64.
pub(crate) struct Seeded(pub(crate) u64);

impl Rng for Seeded {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), apr_crypto::Error> {
        for bytes in out.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = self.0;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bytes.copy_from_slice(&(word ^ (word >> 31)).to_le_bytes()[..bytes.len()]);
        }
        Ok(())
    }
}

pub(crate) struct Keys {
    alice: RecipientSecret,
    bob: RecipientSecret,
    eve: RecipientSecret,
    signer: SigningKey,
    forger: SigningKey,
    verifying: VerifyingKey,
    forged: VerifyingKey,
    password: Password,
}

pub(crate) fn keys() -> Keys {
    let secret = |byte| RecipientSecret::from_bytes(&[byte; 32]);
    let (signer, forger) = (SigningKey::from_seed(&[1; 32]), SigningKey::from_seed(&[2; 32]));
    let (verifying, forged) = (signer.verifying_key(), forger.verifying_key());
    let password = Password::from("my-strong-password");
    Keys { alice: secret(7), bob: secret(8), eve: secret(9), signer, forger, verifying, forged, password }
}

impl Keys {
    fn public(&self) -> [RecipientPublic; 2] {
        [self.alice.public(), self.bob.public()]
    }
}

/// Limits under which guessing is cheap enough for tests.
pub(crate) fn limits() -> SealedLimits {
    let argon2 = Argon2Limits::default().with_memory_kib(8..=1024 * 1024);
    SealedLimits { argon2, ..SealedLimits::default() }
}

pub(crate) fn cheap() -> Argon2Cost {
    Argon2Cost::new(8, 1, 1, &limits().argon2).unwrap()
}

/// A file of some tensors with bytes around them, and its content.
pub(crate) fn sample(scale: u64) -> (Plan, Vec<u8>) {
    let tensors = [
        (5, Part::tensor("embed", "F32", [4, scale], 16 * scale)),
        (5 + 16 * scale, Part::tensor("norm", "BF16", [3], 6)),
        (20 + 16 * scale, Part::tensor("empty", "F32", [0, 7], 0)),
        (20 + 16 * scale, Part::tensor("head.weight", "Q4_K", [scale], scale)),
    ];
    let len = 40 + 17 * scale;
    (Plan::of_file(len, tensors).unwrap(), content(len))
}

pub(crate) fn content(len: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(len).unwrap()];
    Seeded(len).fill(&mut bytes).unwrap();
    bytes
}

pub(crate) fn seal(plan: &Plan, content: &[u8], options: &SealOptions<'_>) -> Vec<u8> {
    apr_sealed::to_vec(plan, content, options, &mut Seeded(3)).unwrap()
}

pub(crate) fn open<'k, 'f>(file: &'f [u8], access: &Access<'k>) -> Result<SealedReader<'k, &'f [u8]>, Error> {
    SealedReader::open(file, access, &limits())
}

/// Opens a file and reads all of it, every bit.
pub(crate) fn read_all(file: &[u8], access: &Access<'_>) -> Result<Vec<u8>, Error> {
    let reader = open(file, access)?;
    reader.verify_all()?;
    let mut out = Vec::new();
    reader.restore(&mut out)?;
    Ok(out)
}

pub(crate) fn code<T>(result: Result<T, Error>) -> &'static str {
    result.map(|_| ()).unwrap_err().code()
}

/// Where the parts of a file are, computed a second time from the specification.
#[derive(Debug)]
pub(crate) struct Map {
    fixed: Range<usize>,
    root: Range<usize>,
    signer: Range<usize>,
    public: Range<usize>,
    slots: [Range<usize>; 2],
    directory: Range<usize>,
    upper: Range<usize>,
    payload: Range<usize>,
    outboard: Range<usize>,
}

pub(crate) fn map(file: &[u8]) -> Map {
    let u64_at =
        |at: usize| usize::try_from(u64::from_le_bytes(file[at..at + 8].try_into().unwrap())).unwrap();
    let u32_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (payload_len, directory_len, public_len, slot_len) = (u64_at(32), u64_at(40), u32_at(48), u32_at(52));
    let public = 208..208 + public_len;
    let slots = if slot_len == 0 { public.end } else { public.end.next_multiple_of(512) };
    let directory = slots + 2 * slot_len..slots + 2 * slot_len + directory_len;
    // The lowest level of at most 1,024 nodes.
    let mut nodes = if file[12] & 4 == 0 { 0 } else { payload_len.div_ceil(1 << file[57]) };
    while nodes > 1_024 {
        nodes = nodes.div_ceil(2);
    }
    let upper = directory.end..directory.end + 32 * nodes;
    let payload = upper.end.next_multiple_of(64);
    Map {
        fixed: 0..64,
        root: 64..112,
        signer: 112..208,
        public,
        slots: [slots..slots + slot_len, slots + slot_len..slots + 2 * slot_len],
        directory,
        upper,
        payload: payload..payload + payload_len,
        outboard: payload + payload_len..file.len(),
    }
}

pub(crate) fn header(file: &[u8]) -> SealedHeader {
    SealedHeader::read(file, &limits()).unwrap()
}

pub(crate) fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
