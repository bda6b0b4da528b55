//! Every bit, every length.

use std::ops::Range;

use apr_crypto::{Access, Trust};
use apr_sealed::SealOptions;

use super::{cheap, code, keys, limits, map, open, read_all, sample, seal};

fn flip(file: &[u8], bit: usize) -> Vec<u8> {
    let mut changed = file.to_vec();
    changed[bit / 8] ^= 1 << (bit % 8);
    changed
}

/// Flips every bit of `file` outside `spared` and expects a refusal; in `spared` the content or a refusal.
fn every_bit(file: &[u8], content: &[u8], access: &Access<'_>, spared: &[Range<usize>]) {
    for bit in 0..file.len() * 8 {
        let changed = flip(file, bit);
        let read = read_all(&changed, access);
        if spared.iter().any(|range| range.contains(&(bit / 8))) {
            assert!(read.is_err() || read.is_ok_and(|read| read == content));
        } else {
            assert!(read.is_err(), "bit {bit}: {:?}", map(file));
        }
    }
}

/// The one place a sealed file does not protect is the key slot that is not in use: what a crash leaves there must not hurt.
#[test]
fn every_flipped_bit_of_an_encrypted_and_signed_file_is_refused() {
    let keys = keys();
    let (plan, content) = sample(1);
    let options = SealOptions::default().for_recipient(keys.alice.public()).with_capacity_for(1);
    let options = options.with_public("name", "m").with_private("file.name", "m.gguf");
    let file = seal(&plan, &content, &options.clone().signed_by(&keys.signer));
    let access = Access::default().with_recipient(&keys.alice);
    let unused = map(&file).slots[1].clone();
    every_bit(&file, &content, &access.with_trust(&keys.verifying), &[unused]);

    // Without a signature the same.
    let file = seal(&plan, &content, &options);
    let unused = map(&file).slots[1].clone();
    every_bit(&file, &content, &access, &[unused]);
}

#[test]
fn every_flipped_bit_of_a_signed_file_is_refused() {
    let keys = keys();
    let (plan, content) = sample(1);
    let options = SealOptions::default().signed_by(&keys.signer).with_public("name", "m");
    let file = seal(&plan, &content, &options);
    every_bit(&file, &content, &Access::default().with_trust(&keys.verifying), &[]);
    // A caller who trusts the key in the file notices as well, unless it is the key that was changed and signed with: it is not.
    every_bit(&file, &content, &Access::default().with_trust(Trust::Anyone), &[]);
    for bit in 0..file.len() * 8 {
        assert!(apr_sealed::verify(&flip(&file, bit), &keys.verifying, &limits()).is_err(), "bit {bit}");
    }
}

#[test]
fn every_flipped_bit_of_a_password_file_is_refused() {
    let keys = keys();
    let (plan, content) = sample(1);
    let options = SealOptions::default().with_password_at(&keys.password, cheap()).with_capacity_for(0);
    let file = seal(&plan, &content, &options);
    let unused = map(&file).slots[1].clone();
    every_bit(&file, &content, &Access::default().with_password(&keys.password), &[unused]);
}

/// Of a larger file with many leaves and chunks: damage is found when it is read, also where a single part is read.
#[test]
fn damage_in_the_payload_stops_the_reads_that_touch_it() {
    let keys = keys();
    let (plan, content) = sample(20_000);
    let options = SealOptions::default().for_recipient(keys.alice.public()).signed_by(&keys.signer);
    let file = seal(&plan, &content, &options);
    let access = Access::default().with_recipient(&keys.alice).with_trust(&keys.verifying);
    let places = map(&file);
    for at in places.payload.clone().step_by(7_919).chain(places.outboard.clone().step_by(97)) {
        let changed = flip(&file, at * 8);
        assert!(read_all(&changed, &access).is_err(), "byte {at}");
        let Ok(reader) = open(&changed, &access) else { continue };
        let embed = reader.tensor("embed");
        let right = content[5..5 + 320_000] == embed.as_deref().unwrap_or(&content[5..5 + 320_000])[..];
        assert!(right, "what is handed out is right");
        if let Err(error) = embed {
            assert_eq!(
                (error.code(), error.subject().map(apr_sealed::Subject::name)),
                ("ac-signature", Some("embed"))
            );
        }
    }
    // A failed read leaves nothing behind.
    let changed = flip(&file, (places.payload.start + 200_000) * 8);
    let reader = open(&changed, &access).unwrap();
    let mut out = vec![0xaa; 300_000];
    assert_eq!(code(reader.read_part(1, 0, &mut out)), "ac-signature");
    assert!(out.iter().all(|byte| *byte == 0));
    // The tensor beside it is read all the same.
    assert_eq!(reader.tensor("norm").unwrap(), content[320_005..320_011]);
}

#[test]
fn every_shorter_and_every_longer_file_is_refused() {
    let keys = keys();
    let (plan, content) = sample(1);
    let signed = SealOptions::default().signed_by(&keys.signer);
    let both = signed.clone().for_recipient(keys.alice.public());
    let trust = Access::default().with_trust(&keys.verifying);
    for (options, access) in [(signed, trust), (both, trust.with_recipient(&keys.alice))] {
        let file = seal(&plan, &content, &options);
        for len in 0..file.len() {
            let code = code(read_all(&file[..len], &access));
            assert_eq!(code, if len < 8 { "ac-sealed-magic" } else { "ac-sealed-length" }, "{len}");
        }
        for more in [1, 16, 64, 16_400] {
            let longer = [&file[..], &vec![0; more]].concat();
            assert_eq!(code(read_all(&longer, &access)), "ac-sealed-length");
        }
    }
}

/// Cut or prolonged with the header's lengths made to fit: what a careful attacker does.
#[test]
fn lengths_made_to_fit_do_not_help() {
    let keys = keys();
    let (plan, content) = sample(3_000);
    let signed = SealOptions::default().signed_by(&keys.signer);
    let encrypted = SealOptions::default().for_recipient(keys.alice.public());
    let trust = Access::default().with_trust(&keys.verifying);
    let key = Access::default().with_recipient(&keys.alice);
    let both = encrypted.clone().signed_by(&keys.signer);
    for (options, access) in [(signed, trust), (encrypted, key), (both, key.with_trust(&keys.verifying))] {
        let file = seal(&plan, &content, &options);
        let places = map(&file);
        let payload_len = places.payload.len();
        for len in [0, 1, 16_400, 16_456, 32_856, payload_len - 1, payload_len + 1, payload_len + 16_400] {
            let mut changed = file[..places.payload.start].to_vec();
            changed[32..40].copy_from_slice(&(len as u64).to_le_bytes());
            if options_signed(&file) {
                changed[66..74].copy_from_slice(&(len as u64).to_le_bytes());
            }
            let mut payload = file[places.payload.clone()].to_vec();
            payload.resize(len, 0);
            changed.extend(payload);
            let mut outboard = file[places.outboard.clone()].to_vec();
            let leaves = len.div_ceil(16_384);
            let hashes = if options_signed(&file) { 2 * leaves - leaves.count_ones() as usize } else { 0 };
            outboard.resize(32 * hashes, 0);
            changed.extend(outboard);
            let error = open(&changed, &access).unwrap_err();
            assert!(["ac-signature", "ac-decryption"].contains(&error.code()), "{len}: {error}");
        }
    }
}

fn options_signed(file: &[u8]) -> bool {
    file[12] & 1 == 1
}

/// One error for a wrong key and for damage, to the last letter.
#[test]
fn wrong_key_and_damage_are_one_error() {
    let keys = keys();
    let (plan, content) = sample(1);
    let options = SealOptions::default().for_recipient(keys.alice.public());
    let file = seal(&plan, &content, &options);
    let access = Access::default().with_recipient(&keys.alice);
    let wrong = open(&file, &Access::default().with_recipient(&keys.eve)).unwrap_err().to_string();
    let places = map(&file);
    for at in
        [16, places.directory.start, places.directory.end - 1, places.payload.start + 30, file.len() - 1]
    {
        assert_eq!(open(&flip(&file, at * 8), &access).unwrap_err().to_string(), wrong, "byte {at}");
    }
    // A changed stanza with a recomputed checksum.
    let mut changed = flip(&file, (places.slots[0].start + 130) * 8);
    super::forgery::mend(&mut changed);
    assert_eq!(open(&changed, &access).unwrap_err().to_string(), wrong);
}
