//! Lists of recipients: who can open the file learns who else can, and may remove one of them by name.

use apr_crypto::{Access, RecipientPublic, RecipientSecret};
use apr_sealed::{Error, RekeyOptions, Rekeying, SealOptions, SealedLimits, SealedReader, StanzaKind};
use sha2::{Digest as _, Sha256};

use super::forgery::{authenticate, context, file_key};
use super::{Seeded, code, header, keys, limits, map, open, read_all, sample, seal};

fn rekey(file: &mut [u8], access: &Access<'_>, options: &RekeyOptions<'_>) -> Result<(), Error> {
    let rekeying = Rekeying::prepare(&*file, access, options, &limits(), &mut Seeded(11))?;
    for (at, bytes) in rekeying.writes() {
        let at = usize::try_from(at).unwrap();
        file[at..at + bytes.len()].copy_from_slice(bytes);
    }
    Ok(())
}

fn listed(file: &[u8], access: &Access<'_>) -> Option<Vec<Option<RecipientPublic>>> {
    open(file, access).unwrap().recipients().map(<[_]>::to_vec)
}

#[test]
fn recipients_are_listed_for_those_who_can_open_the_file() {
    let keys = keys();
    let (plan, content) = sample(100);
    let [alice, bob] = keys.public();
    let options = SealOptions::default().for_recipient(alice).for_recipient(bob);
    for secret in [&keys.alice, &keys.bob] {
        let access = Access::default().with_recipient(secret);
        let file = seal(&plan, &content, &options.clone().with_listed_recipients());
        assert_eq!(read_all(&file, &access).unwrap(), content);
        assert_eq!(listed(&file, &access).unwrap(), [Some(alice), Some(bob)]);
        // The list is no stanza, and its entries are nowhere in the clear.
        assert_eq!(header(&file).stanzas(), [StanzaKind::Recipient; 2]);
        assert!(!file.windows(32).any(|bytes| bytes == alice.as_bytes() || bytes == bob.as_bytes()));
        assert_eq!(listed(&seal(&plan, &content, &options), &access), None);
    }
}

/// The list is a message of its own behind the stanzas, as the specification says.
#[test]
fn a_list_is_that_of_the_specification() {
    let keys = keys();
    let (plan, content) = sample(1);
    let alice = keys.alice.public();
    let file = seal(&plan, &content, &SealOptions::default().for_recipient(alice).with_listed_recipients());
    let slot = map(&file).slots[0].start;
    let stanza = &file[slot + 84..slot + 164];
    let list = &file[slot + 164..];
    assert_eq!(list[..4], [3, 0, 120, 0]);
    let opened = file_key(&file, &keys.alice).open_chunked(&context(&file, "recipients"), &list[4..124]);
    assert_eq!(opened.unwrap(), [&Sha256::digest(stanza)[..16], alice.as_bytes()].concat());
}

#[test]
fn one_of_several_recipients_is_removed_by_name() {
    let keys = keys();
    let (plan, content) = sample(100);
    let [alice, bob] = keys.public();
    let eve = keys.eve.public();
    let options = SealOptions::default().for_recipient(alice).for_recipient(bob).signed_by(&keys.signer);
    let mut file = seal(&plan, &content, &options.with_listed_recipients());
    let access = |secret| Access::default().with_recipient(secret).with_trust(&keys.verifying);
    let [a, b, e] = [&keys.alice, &keys.bob, &keys.eve].map(access);

    // Eve comes and Bob goes in one step; the signature stays valid.
    let change = RekeyOptions::default().without(bob.fingerprint()).for_recipient(eve);
    rekey(&mut file, &a, &change).unwrap();
    assert_eq!(code(open(&file, &b)), "ac-decryption");
    for who in [&a, &e] {
        assert_eq!(read_all(&file, who).unwrap(), content);
        assert_eq!(listed(&file, who).unwrap(), [Some(alice), Some(eve)]);
    }
    let before = file.clone();
    for again in [alice, eve] {
        let change = RekeyOptions::default().for_recipient(again);
        assert_eq!(code(rekey(&mut file, &a, &change)), "ac-sealed-recipient-listed");
        assert_eq!(file, before);
    }
    // One who is removed in the same step comes back.
    let moved = RekeyOptions::default().without(eve.fingerprint()).for_recipient(eve);
    rekey(&mut file.clone(), &a, &moved).unwrap();
    let all = RekeyOptions::default().without(alice.fingerprint()).without(eve.fingerprint());
    for (change, expected) in [(change, "ac-sealed-recipient"), (all, "ac-sealed-no-recipient")] {
        assert_eq!(code(rekey(&mut file, &a, &change)), expected);
        assert_eq!(file, before);
    }
    // Alice hands the file over altogether.
    rekey(&mut file, &a, &RekeyOptions::default().without(alice.fingerprint())).unwrap();
    assert_eq!(code(open(&file, &a)), "ac-decryption");
    assert_eq!(listed(&file, &e).unwrap(), [Some(eve)]);
    // The list then has the remaining recipients only.
    rekey(&mut file, &e, &RekeyOptions::default().for_recipient(bob).without_others()).unwrap();
    assert_eq!(listed(&file, &b).unwrap(), [Some(eve), Some(bob)]);
}

#[test]
fn a_file_without_a_list_removes_no_recipient_by_name() {
    let keys = keys();
    let (plan, content) = sample(1);
    let [alice, bob] = keys.public();
    let mut file = seal(&plan, &content, &SealOptions::default().for_recipient(alice).for_recipient(bob));
    let access = Access::default().with_recipient(&keys.alice);
    let change = RekeyOptions::default().without(bob.fingerprint());
    assert_eq!(code(rekey(&mut file, &access, &change)), "ac-sealed-unlisted");
    // Rekeying makes no list of its own accord: the maker may not have wanted one.
    rekey(&mut file, &access, &RekeyOptions::default().for_recipient(keys.eve.public())).unwrap();
    assert_eq!(listed(&file, &access), None);
}

#[test]
fn a_bound_list_is_the_signers() {
    let keys = keys();
    let (plan, content) = sample(1);
    let [alice, bob] = keys.public();
    let bound = SealOptions::default().for_recipient(alice).for_recipient(bob).signed_by(&keys.signer);
    let mut file = seal(&plan, &content, &bound.with_bound_recipients().with_listed_recipients());
    let access = Access::default().with_recipient(&keys.alice).with_trust(&keys.verifying);
    let change = RekeyOptions::default().without(bob.fingerprint());
    assert_eq!(code(rekey(&mut file, &access, &change)), "ac-sealed-bound");
    rekey(&mut file, &access, &change.signed_by(&keys.signer)).unwrap();
    assert_eq!(listed(&file, &access).unwrap(), [Some(alice)]);

    // A recipient who knows the file key writes another list: the signature is of the old one.
    let key = file_key_of_second_slot(&file, &keys.alice);
    let slot = map(&file).slots[1].start;
    file[slot + 170] ^= 1;
    authenticate(&mut file, &key);
    assert_eq!(code(open(&file, &access)), "ac-signature");
}

/// The rekeyed slot is the second one: it takes the first one's place, whose revision no longer counts.
fn file_key_of_second_slot(file: &[u8], secret: &RecipientSecret) -> apr_crypto::FileKey {
    let mut swapped = file.to_vec();
    let [first, second] = map(file).slots;
    swapped.copy_within(second, first.start);
    file_key(&swapped, secret)
}

/// What a writer that knows no lists makes of one: stanzas that it does not name, a list about stanzas that are gone.
#[test]
fn stanzas_that_the_list_does_not_name_stay() {
    let keys = keys();
    let (plan, content) = sample(1);
    let [alice, bob] = keys.public();
    let options = SealOptions::default().for_recipient(alice).for_recipient(bob).with_listed_recipients();
    let mut file = seal(&plan, &content, &options);
    let key = file_key(&file, &keys.alice);
    let slot = map(&file).slots[0].start;
    // Bob's stanza gives way to one of Eve's.
    let stanza = key.wrap_for(&mut Seeded(5), &keys.eve.public(), &context(&file, "stanza")).unwrap();
    file[slot + 168..slot + 248].copy_from_slice(&stanza.to_bytes());
    authenticate(&mut file, &key);
    let access = Access::default().with_recipient(&keys.alice);
    assert_eq!(listed(&file, &access).unwrap(), [Some(alice), None]);
    for gone in [bob, keys.eve.public()] {
        let change = RekeyOptions::default().without(gone.fingerprint());
        assert_eq!(code(rekey(&mut file.clone(), &access, &change)), "ac-sealed-recipient");
    }
    let more = RekeyOptions::default().for_recipient(bob);
    rekey(&mut file, &access, &more).unwrap();
    assert_eq!(listed(&file, &access).unwrap(), [Some(alice), None, Some(bob)]);
    assert_eq!(read_all(&file, &Access::default().with_recipient(&keys.eve)).unwrap(), content);
}

/// A list that its writer, a recipient, cut off or encrypted to another purpose.
#[test]
fn a_list_that_does_not_open_is_refused() {
    let keys = keys();
    let (plan, content) = sample(1);
    let options = SealOptions::default().for_recipient(keys.alice.public()).with_listed_recipients();
    let file = seal(&plan, &content, &options);
    let (key, slot) = (file_key(&file, &keys.alice), map(&file).slots[0].start);
    let access = Access::default().with_recipient(&keys.alice);
    for (purpose, entries, expected) in
        [("directory", [7; 48].as_slice(), "ac-decryption"), ("recipients", &[7; 47], "ac-sealed-directory")]
    {
        let mut changed = file.clone();
        let list = key.seal_chunked(&mut Seeded(5), &context(&file, purpose), entries).unwrap();
        changed[slot + 166..slot + 168].copy_from_slice(&u16::try_from(list.len()).unwrap().to_le_bytes());
        changed[slot + 12..slot + 16].copy_from_slice(&u32::try_from(88 + list.len()).unwrap().to_le_bytes());
        changed[slot + 168..slot + 168 + 120].fill(0);
        changed[slot + 168..slot + 168 + list.len()].copy_from_slice(&list);
        authenticate(&mut changed, &key);
        assert_eq!(code(open(&changed, &access)), expected, "{purpose}");
    }
}

/// More entries than a record can hold.
#[test]
fn long_lists_are_cut_into_records() {
    let keys = keys();
    let (plan, content) = sample(1);
    let others = (0_u16..1_030).map(|number| {
        let [low, high] = number.to_le_bytes();
        let mut secret = [9; 32];
        (secret[1], secret[2]) = (low, high);
        RecipientSecret::from_bytes(&secret).public()
    });
    let public: Vec<_> = others.chain([keys.alice.public()]).collect();
    let options = public.iter().fold(SealOptions::default(), |options, key| options.for_recipient(*key));
    let file = seal(&plan, &content, &options.clone().with_listed_recipients());
    let access = Access::default().with_recipient(&keys.alice);
    assert_eq!(code(SealedReader::open(&file, &access, &SealedLimits::default())), "ac-sealed-stanzas");
    let wide = SealedLimits { stanzas: 1_031, ..limits() };
    let reader = SealedReader::open(&file, &access, &wide).unwrap();
    let expected: Vec<_> = public.iter().copied().map(Some).collect();
    assert_eq!(reader.recipients().unwrap(), expected);
    // The limit is about trying keys: what anyone can see is seen.
    assert_eq!(header(&file).stanzas().len(), 1_031);
    let more = RekeyOptions::default().for_recipient(keys.bob.public());
    let prepared = Rekeying::prepare(&file, &access, &more, &limits(), &mut Seeded(1));
    assert_eq!(code(prepared), "ac-sealed-stanzas");
}
