//! Forgeries: recomputed checksums, codes and signatures, parts of other files inserted.

use apr_crypto::{Access, FileKey, RecipientSecret, RecipientStanza, Signer, SigningKey, Trust, dsse_pae};
use apr_sealed::{Part, Plan, SealOptions};
use sha2::{Digest as _, Sha256};

use super::{Keys, Seeded, code, content, keys, limits, map, open, read_all, sample, seal};

/// Makes the checksums of the key slots right, as anyone can.
pub(crate) fn mend(file: &mut [u8]) {
    for slot in map(file).slots {
        if file[slot.clone()].iter().any(|byte| *byte != 0) {
            let checksum = Sha256::digest(&file[slot.start..slot.end - 32]);
            file[slot.end - 32..slot.end].copy_from_slice(&checksum);
        }
    }
}

/// Signs the file as its header now is, as anyone can with a key of their own.
fn sign(file: &mut [u8], key: &SigningKey) {
    let places = map(file);
    let public = *key.verifying_key().as_bytes();
    file[112..144].copy_from_slice(&public);
    let (metadata, directory) =
        (Sha256::digest(&file[places.public]), Sha256::digest(&file[places.directory]));
    let message = [&file[..64], &metadata, &directory, &file[64..106], &public].concat();
    let signature = key.sign(&dsse_pae("application/vnd.apr.sealed.v1", &message));
    file[144..208].copy_from_slice(&signature.to_bytes());
}

/// What binds messages to a file, written down a second time.
pub(crate) fn context(file: &[u8], purpose: &str) -> [u8; 32] {
    let public = &file[map(file).public];
    let label = format!("apr-sealed-v1 {purpose}\0");
    Sha256::digest([label.as_bytes(), &file[..64], &file[112..144], public].concat()).into()
}

/// The file key, which every recipient can obtain.
pub(crate) fn file_key(file: &[u8], secret: &RecipientSecret) -> FileKey {
    let slot = map(file).slots[0].start;
    let stanza: [u8; 80] = file[slot + 84..slot + 164].try_into().unwrap();
    RecipientStanza::from_bytes(&stanza).unwrap().unwrap(secret, &context(file, "stanza")).unwrap()
}

/// Makes the code of the first slot right, as every recipient can.
pub(crate) fn authenticate(file: &mut [u8], key: &FileKey) {
    let places = map(file);
    let slot = places.slots[0].clone();
    let parts = [&file[..64], &file[64..208], &file[places.public], &file[slot.start..slot.end - 64]];
    let code = key.mac_key("apr-sealed-v1 header").tag(&parts);
    file[slot.end - 64..slot.end - 32].copy_from_slice(&code);
    mend(file);
}

/// What an attacker does to a file.
type Change<'c> = &'c dyn Fn(&mut [u8]);

/// Signed, encrypted, both: two files of the same shape each.
fn pairs(keys: &Keys) -> Vec<(Access<'_>, Vec<u8>, Vec<u8>)> {
    let (plan, content) = sample(3_000);
    let other: Vec<u8> = content.iter().map(|byte| !byte).collect();
    let options = SealOptions::default;
    let trust = Access::default().with_trust(&keys.verifying);
    let key = Access::default().with_recipient(&keys.alice);
    let alice = keys.alice.public();
    let ways = [
        (trust, options().signed_by(&keys.signer)),
        (key, options().for_recipient(alice)),
        (key.with_trust(&keys.verifying), options().for_recipient(alice).signed_by(&keys.signer)),
    ];
    let make = |options: &SealOptions<'_>, bytes: &[u8], seed| {
        let options = options.clone().with_public("version", if seed == 1 { "1" } else { "2" });
        apr_sealed::to_vec(&plan, bytes, &options, &mut Seeded(seed)).unwrap()
    };
    ways.map(|(access, options)| (access, make(&options, &content, 1), make(&options, &other, 2))).into()
}

#[test]
fn parts_of_another_file_are_refused() {
    let keys = keys();
    for (access, file, other) in pairs(&keys) {
        let places = map(&file);
        let regions = [
            places.fixed.clone(),
            16..32,
            places.root.clone(),
            places.signer.clone(),
            112..144,
            144..208,
            64..208,
            places.public.clone(),
            places.slots[0].clone(),
            0..208,
            0..places.slots[0].start,
            0..places.slots[1].end,
            0..places.directory.end,
            places.directory.clone(),
            places.payload.clone(),
            places.payload.start..places.payload.start + 16_456,
            places.payload.start + 56..places.payload.start + 16_456,
            places.outboard.clone(),
            places.payload.start..file.len(),
            places.directory.start..file.len(),
            places.slots[0].start..file.len(),
        ];
        for region in regions.into_iter().filter(|region| !region.is_empty()) {
            if file[region.clone()] == other[region.clone()] {
                continue;
            }
            let mut spliced = file.clone();
            spliced[region.clone()].copy_from_slice(&other[region.clone()]);
            assert!(read_all(&spliced, &access).is_err(), "{region:?} of {places:?}");
        }
    }
}

#[test]
fn chunks_cannot_be_moved_or_doubled() {
    let keys = keys();
    for (access, file, _) in pairs(&keys).into_iter().skip(1) {
        let first = map(&file).payload.start + 56;
        let chunk = |idx: usize| first + idx * 16_400..first + (idx + 1) * 16_400;
        for (from, to, swap) in [(0, 1, true), (1, 0, false), (0, 2, false), (1, 2, true)] {
            let mut changed = file.clone();
            changed.copy_within(chunk(from), chunk(to).start);
            if swap {
                changed[chunk(from)].copy_from_slice(&file[chunk(to)]);
            }
            assert!(read_all(&changed, &access).is_err());
            let read = open(&changed, &access).and_then(|reader| reader.tensor("embed"));
            assert!(["ac-signature", "ac-decryption"].contains(&code(read)));
        }
    }
}

/// Without its signature an encrypted file does not open, and a signed one is nothing.
#[test]
fn a_signature_cannot_be_taken_off() {
    let keys = keys();
    let [(_, signed, _), _, (access, both, _)] = <[_; 3]>::try_from(pairs(&keys)).unwrap();
    let strip = |file: &[u8]| {
        let mut file = file[..map(file).outboard.start].to_vec();
        file[12] &= !1;
        file[56..58].fill(0);
        file[64..208].fill(0);
        file
    };
    assert_eq!(code(open(&strip(&signed), &Access::default())), "ac-sealed-unprotected");
    assert_eq!(code(open(&strip(&both), &access)), "ac-not-signed");
    let without_trust = Access::default().with_recipient(&keys.alice);
    assert_eq!(code(open(&strip(&both), &without_trust)), "ac-decryption");
    // Nor is a file with a signature read as if it had none.
    assert_eq!(code(open(&both, &without_trust)), "ac-signed");
    assert_eq!(code(open(&signed, &Access::default())), "ac-signed");
}

#[test]
fn another_signature_shows() {
    let keys = keys();
    let [(trust, mut signed, _), (key, encrypted, _), (access, mut both, _)] =
        <[_; 3]>::try_from(pairs(&keys)).unwrap();
    let anyone = Access::default().with_trust(Trust::Anyone);
    sign(&mut both, &keys.forger);
    assert_eq!(code(open(&both, &access)), "ac-untrusted-signer");
    // The signature is valid, but the content was encrypted for a file of another signer.
    apr_sealed::verify(&both, &keys.forged, &limits()).unwrap();
    assert_eq!(code(open(&both, &anyone.with_recipient(&keys.alice))), "ac-decryption");
    let forged = Access::default().with_recipient(&keys.alice).with_trust(&keys.forged);
    assert_eq!(code(open(&both, &forged)), "ac-decryption");

    // What is in the clear, anyone can sign: a caller who accepts any key learns which key it was, and nothing else.
    sign(&mut signed, &keys.forger);
    assert_eq!(code(open(&signed, &trust)), "ac-untrusted-signer");
    assert_eq!(open(&signed, &anyone).unwrap().signer(), Some(Signer::Unknown(keys.forged)));

    // An unsigned encrypted file cannot be signed afterwards by someone who cannot open it.
    assert_eq!(code(open(&encrypted, &key.with_trust(&keys.verifying))), "ac-not-signed");
}

/// The key in the file replaced by the trusted one, with the forger's signature under it.
#[test]
fn a_trusted_name_on_a_forged_signature_is_refused() {
    let keys = keys();
    let (access, mut file, _) = pairs(&keys).swap_remove(0);
    let start = map(&file).payload.start;
    file[start] ^= 1;
    sign(&mut file, &keys.forger);
    file[112..144].copy_from_slice(keys.verifying.as_bytes());
    assert_eq!(code(open(&file, &access)), "ac-signature");
    // A public key of small order is refused.
    file[112..144].copy_from_slice(&[0; 32]);
    assert_eq!(code(open(&file, &Access::default().with_trust(Trust::Anyone))), "ac-signature");
}

/// A recipient knows the file key, but not how to sign.
#[test]
fn recipients_cannot_change_what_is_signed() {
    let keys = keys();
    let (access, file, _) = pairs(&keys).swap_remove(2);
    let key = file_key(&file, &keys.alice);
    let places = map(&file);
    // The content encrypted again with the same key, with valid authentication codes.
    let context = context(&file, "payload");
    let content = key.open_chunked(&context, &file[places.payload.clone()]).unwrap();
    let changed: Vec<u8> = content.iter().map(|byte| byte ^ 1).collect();
    let payload = key.seal_chunked(&mut Seeded(1), &context, &changed).unwrap();
    let mut forged = file.clone();
    forged[places.payload.clone()].copy_from_slice(&payload);
    authenticate(&mut forged, &key);
    assert_eq!(code(open(&forged, &access).and_then(|reader| reader.tensor("embed"))), "ac-signature");
    assert_eq!(code(read_all(&forged, &access)), "ac-signature");
    // The head alone, which no part's own leaves need: it selects the key of all chunks. The last chunk alone is refused where it is read: the
    // length, for which it would stand, is signed.
    let (head, chunk) = (56, 16_384 + 16);
    let last = head + (payload.len() - head - 1) / chunk * chunk;
    for (has_head, has_last) in [(true, false), (false, true), (true, true)] {
        let mut forged = file.clone();
        for (range, _) in
            [(0..head, has_head), (last..payload.len(), has_last)].into_iter().filter(|(_, has)| *has)
        {
            forged[places.payload.clone()][range.clone()].copy_from_slice(&payload[range]);
        }
        authenticate(&mut forged, &key);
        let opened = open(&forged, &access);
        match opened {
            Ok(reader) if !has_head => {
                assert_eq!(code(reader.verify_all()), "ac-signature");
                assert_eq!(code(read_all(&forged, &access)), "ac-signature");
            }
            opened => assert_eq!(code(opened), "ac-signature"),
        }
    }
    // Public metadata too.
    let mut forged = file.clone();
    forged[places.public.end - 1] = b'9';
    authenticate(&mut forged, &key);
    assert_eq!(code(open(&forged, &access)), "ac-signature");
}

#[test]
fn stanzas_are_authenticated_together() {
    let keys = keys();
    let (plan, content) = sample(1);
    let [alice, bob] = keys.public();
    let options = SealOptions::default().for_recipient(alice).for_recipient(bob);
    let file = seal(&plan, &content, &options);
    let slots = map(&file).slots;
    let stanza = |idx: usize| slots[0].start + 80 + idx * 84..slots[0].start + 164 + idx * 84;
    let [a, b] = [0, 1].map(|idx| file[stanza(idx)].to_vec());
    for secret in [&keys.alice, &keys.bob] {
        let access = Access::default().with_recipient(secret);
        // Swapped, doubled, one taken away, the revision raised.
        let changes: [Change<'_>; 5] = [
            &|file| file[stanza(0)].copy_from_slice(&b),
            &|file| file[stanza(1)].copy_from_slice(&a),
            &|file| {
                file[stanza(0)].copy_from_slice(&b);
                file[stanza(1)].copy_from_slice(&a);
            },
            &|file| {
                file[stanza(1)].fill(0);
                file[slots[0].start + 8] = 1;
                file[slots[0].start + 12] = 84;
            },
            &|file| file[slots[0].start] += 1,
        ];
        for change in changes {
            let mut changed = file.clone();
            change(&mut changed);
            mend(&mut changed);
            assert_eq!(code(open(&changed, &access)), "ac-decryption");
        }
        // A slot with a wrong checksum is ignored.
        let mut changed = file.clone();
        changed[stanza(0)].copy_from_slice(&b);
        assert_eq!(code(open(&changed, &access)), "ac-sealed-slots");
    }
    // The order of the two slots does not matter.
    let mut swapped = file.clone();
    swapped[slots[0].clone()].copy_from_slice(&file[slots[1].clone()]);
    swapped[slots[1].clone()].copy_from_slice(&file[slots[0].clone()]);
    assert_eq!(read_all(&swapped, &Access::default().with_recipient(&keys.alice)).unwrap(), content);
    // A zeroed slot with a higher revision and a valid checksum is ignored: the recipient still opens the file.
    let mut blocked = file.clone();
    blocked[slots[1].start] = 9;
    mend(&mut blocked);
    assert_eq!(read_all(&blocked, &Access::default().with_recipient(&keys.alice)).unwrap(), content);
}

/// Stanzas of kinds to come are passed over, and kept.
#[test]
fn unknown_stanzas_are_passed_over() {
    let keys = keys();
    let (plan, content) = sample(1);
    let [alice, bob] = keys.public();
    let mut file = seal(&plan, &content, &SealOptions::default().for_recipient(alice).for_recipient(bob));
    let key = file_key(&file, &keys.alice);
    let second = map(&file).slots[0].start + 164;
    file[second] = 77;
    authenticate(&mut file, &key);
    assert_eq!(read_all(&file, &Access::default().with_recipient(&keys.alice)).unwrap(), content);
    assert_eq!(code(open(&file, &Access::default().with_recipient(&keys.bob))), "ac-decryption");
    let kinds = super::header(&file);
    assert_eq!(kinds.stanzas()[1], apr_sealed::StanzaKind::Other(77));
}

/// The magic bytes of another format do not open a sealed file.
#[test]
fn other_magic_is_refused() {
    let keys = keys();
    let (_, file, _) = pairs(&keys).swap_remove(0);
    for magic in [&b"APRN"[..], b"APR2", b"APR\0"] {
        let mut downgraded = file.clone();
        downgraded[..4].copy_from_slice(magic);
        assert_eq!(code(open(&downgraded, &Access::default())), "ac-sealed-magic");
    }
}

/// A directory that only its maker can write is still looked at with care.
#[test]
fn an_authentic_directory_that_lies_is_refused() {
    let keys = keys();
    let plan = Plan::new([Part::tensor("a", "U8", [4], 4)]).unwrap();
    let file = seal(&plan, &content(4), &SealOptions::default().signed_by(&keys.signer));
    let access = Access::default().with_trust(&keys.verifying);
    let directory = map(&file).directory;
    assert_eq!(file[directory.clone()], *b"\0\x01\x01a\x02U8\x01\x04\x04");
    for (lie, expected) in [
        (*b"\0\x01\x01a\x02U8\x01\x04\x05", "ac-sealed-directory"),
        (*b"\0\x01\x01a\x02U8\x01\x04\x03", "ac-sealed-directory"),
        (*b"\0\x01\x01a\x02U8\xff\x04\x04", "ac-sealed-directory"),
        (*b"\0\x02\x01a\x02U8\x01\x04\x04", "ac-sealed-directory"),
        (*b"\x09\x01\x01a\x02U8\x01\x04\x04", "ac-sealed-directory"),
        (*b"\0\x01\x7fa\x02U8\x01\x04\x04", "ac-sealed-directory"),
        (*b"\0\x00\x04\x00\x00\x00\x00\x00\x00\x00", "ac-sealed-directory"),
    ] {
        let mut lying = file.clone();
        lying[directory.clone()].copy_from_slice(&lie);
        sign(&mut lying, &keys.signer);
        assert_eq!(code(open(&lying, &access)), expected, "{lie:?}");
    }
}
