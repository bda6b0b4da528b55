//! Other recipients in place, and every state a crash can leave.

use std::fs;

use apr_crypto::{Access, Password, Trust};
use apr_sealed::{Error, RekeyOptions, Rekeying, SealOptions, SealedLimits, StanzaKind};

use super::{Seeded, cheap, code, header, keys, limits, map, open, read_all, sample, seal};

fn prepare(file: &[u8], access: &Access<'_>, options: &RekeyOptions<'_>) -> Result<Rekeying, Error> {
    Rekeying::prepare(file, access, options, &limits(), &mut Seeded(11))
}

fn apply(rekeying: Result<Rekeying, Error>, file: &mut [u8]) {
    for (at, bytes) in rekeying.unwrap().writes() {
        let at = usize::try_from(at).unwrap();
        file[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

#[test]
fn recipients_come_and_go() {
    let keys = keys();
    let (plan, content) = sample(100);
    let signed = SealOptions::default().for_recipient(keys.alice.public()).signed_by(&keys.signer);
    let mut file = seal(&plan, &content, &signed);
    let access = |secret| Access::default().with_recipient(secret).with_trust(&keys.verifying);
    let (alice, bob, eve) = (access(&keys.alice), access(&keys.bob), access(&keys.eve));
    let before = file.clone();

    // The signature stays valid: it covers what is stored, not for whom.
    let more = RekeyOptions::default().for_recipient(keys.bob.public());
    apply(prepare(&file, &alice, &more), &mut file);
    assert_eq!(header(&file).revision_declared(), 2);
    for who in [&alice, &bob] {
        assert_eq!(read_all(&file, who).unwrap(), content);
    }
    assert_eq!(code(open(&file, &eve)), "ac-decryption");
    let places = map(&file);
    assert_eq!(file[places.directory.start..], before[places.directory.start..]);
    assert_eq!(file[..places.slots[0].start], before[..places.slots[0].start]);
    assert!(file[places.slots[0].clone()].iter().all(|byte| *byte == 0), "the old slot is wiped");

    // Bob hands it on to Eve and removes Alice.
    let instead = RekeyOptions::default().for_recipient(keys.eve.public()).without_others();
    apply(prepare(&file, &bob, &instead), &mut file);
    assert_eq!(header(&file).stanzas().len(), 2);
    assert_eq!(code(open(&file, &alice)), "ac-decryption");
    for who in [&bob, &eve] {
        assert_eq!(read_all(&file, who).unwrap(), content);
    }
    // An old slot can be put back by who has the old file: the page says so.
    file[places.slots[0].start..places.slots[1].end]
        .copy_from_slice(&before[places.slots[0].start..places.slots[1].end]);
    assert_eq!(read_all(&file, &alice).unwrap(), content);
}

#[test]
fn a_password_stands_alone() {
    let keys = keys();
    let (plan, content) = sample(1);
    let mut file = seal(&plan, &content, &SealOptions::default().with_password_at(&keys.password, cheap()));
    let old = Access::default().with_password(&keys.password);
    let more = RekeyOptions::default().for_recipient(keys.bob.public());
    assert_eq!(code(prepare(&file, &old, &more)), "ac-value");
    let new = Password::from("another-password");
    let alone = RekeyOptions::default().with_password_at(&new, cheap());
    assert_eq!(code(prepare(&file, &old, &alone)), "ac-value");
    assert_eq!(
        code(prepare(&file, &old, &alone.clone().without_others().for_recipient(keys.bob.public()))),
        "ac-value"
    );
    let empty = Password::from("");
    let nothing = RekeyOptions::default().with_password(&empty).without_others();
    assert_eq!(code(prepare(&file, &old, &nothing)), "ac-limit");

    apply(prepare(&file, &old, &alone.without_others()), &mut file);
    let access = Access::default().with_password(&new);
    assert_eq!(code(open(&file, &old)), "ac-decryption");
    assert_eq!(read_all(&file, &access).unwrap(), content);

    apply(prepare(&file, &access, &more.without_others()), &mut file);
    assert_eq!(header(&file).stanzas(), [StanzaKind::Recipient]);
    let bob = Access::default().with_recipient(&keys.bob);
    assert_eq!(read_all(&file, &bob).unwrap(), content);
    // No recipient to add and none to remove is a valid change.
    apply(prepare(&file, &bob, &RekeyOptions::default().without_others()), &mut file);
    assert_eq!(header(&file).revision_declared(), 4);
    assert_eq!(read_all(&file, &bob).unwrap(), content);
}

#[test]
fn bound_recipients_are_the_signers() {
    let keys = keys();
    let (plan, content) = sample(1);
    let options = SealOptions::default().for_recipient(keys.alice.public()).signed_by(&keys.signer);
    let mut file = seal(&plan, &content, &options.with_bound_recipients());
    let alice = Access::default().with_recipient(&keys.alice).with_trust(Trust::Anyone);
    let more = RekeyOptions::default().for_recipient(keys.bob.public());
    assert_eq!(code(prepare(&file, &alice, &more)), "ac-sealed-bound");
    assert_eq!(code(prepare(&file, &alice, &more.clone().signed_by(&keys.forger))), "ac-sealed-bound");
    let before = file.clone();
    apply(prepare(&file, &alice, &more.signed_by(&keys.signer)), &mut file);
    let bob = Access::default().with_recipient(&keys.bob).with_trust(&keys.verifying);
    assert_eq!(read_all(&file, &bob).unwrap(), content);

    // A list that a recipient made and authenticated, with the signature of another one or none.
    for signature in [&before[map(&before).slots[0].start + 16..][..64], &[0; 64]] {
        let mut forged = file.clone();
        let slot = map(&forged).slots[1].start;
        forged[slot + 16..slot + 80].copy_from_slice(signature);
        super::forgery::mend(&mut forged);
        assert_eq!(code(open(&forged, &bob)), "ac-signature");
        assert_eq!(code(apr_sealed::verify(&forged, &keys.verifying, &limits())), "ac-signature");
    }
}

#[test]
fn what_cannot_be_rekeyed_says_why() {
    let keys = keys();
    let (plan, content) = sample(1);
    let more = RekeyOptions::default().for_recipient(keys.bob.public());
    let signed = seal(&plan, &content, &SealOptions::default().signed_by(&keys.signer));
    let trust = Access::default().with_trust(&keys.verifying);
    assert_eq!(code(prepare(&signed, &trust, &more)), "ac-not-encrypted");

    let small = SealOptions::default().for_recipient(keys.alice.public()).with_capacity_for(1);
    let file = seal(&plan, &content, &small);
    let alice = Access::default().with_recipient(&keys.alice);
    assert_eq!(code(prepare(&file, &Access::default().with_recipient(&keys.eve), &more)), "ac-decryption");
    let many = (0..4).fold(more.clone(), |options, _| options.for_recipient(keys.bob.public()));
    assert_eq!(code(prepare(&file, &alice, &many)), "ac-sealed-room");
    assert_eq!(code(prepare(&file, &Access::default(), &more)), "ac-encrypted");

    let both = seal(&plan, &content, &small.signed_by(&keys.signer));
    assert_eq!(code(prepare(&both, &alice, &more)), "ac-signed");
    assert_eq!(code(prepare(&both, &alice.with_trust(&keys.forged), &more)), "ac-untrusted-signer");
}

/// Every prefix of both writes, and writes whose sectors reach the medium in another order: the old list or the new one.
#[test]
fn a_crash_leaves_the_old_list_or_the_new_one() {
    let keys = keys();
    let (plan, content) = sample(1);
    let options = SealOptions::default().for_recipient(keys.alice.public()).signed_by(&keys.signer);
    let alice = Access::default().with_recipient(&keys.alice).with_trust(&keys.verifying);
    let bob = Access::default().with_recipient(&keys.bob).with_trust(&keys.verifying);
    let mut file = seal(&plan, &content, &options);
    let instead = RekeyOptions::default().for_recipient(keys.bob.public()).without_others();
    // A second round begins with the slots the other way round, a third with what a crash left.
    for round in 0..3 {
        let rekeying = prepare(&file, &alice, &instead).unwrap();
        let [(new_at, new), (old_at, zeros)] = rekeying.writes();
        let (new_at, old_at) = (usize::try_from(new_at).unwrap(), usize::try_from(old_at).unwrap());
        for len in 0..=new.len() {
            let mut crashed = file.clone();
            crashed[new_at..new_at + len].copy_from_slice(&new[..len]);
            assert_eq!(read_all(&crashed, &alice).unwrap(), content, "round {round}, {len} bytes");
            let bob_can = open(&crashed, &bob).is_ok();
            assert_eq!(bob_can, new[len..] == crashed[new_at + len..new_at + new.len()] || round > 0);
        }
        for sectors in 0..1_u32 << (new.len() / 512) {
            let mut crashed = file.clone();
            for sector in (0..new.len() / 512).filter(|sector| sectors >> sector & 1 == 1) {
                let range = sector * 512..(sector + 1) * 512;
                crashed[new_at + range.start..new_at + range.end].copy_from_slice(&new[range]);
            }
            assert_eq!(read_all(&crashed, &alice).unwrap(), content);
        }
        file[new_at..new_at + new.len()].copy_from_slice(new);
        for len in 0..=zeros.len() {
            let mut crashed = file.clone();
            crashed[old_at..old_at + len].copy_from_slice(&zeros[..len]);
            for who in [&alice, &bob] {
                assert_eq!(read_all(&crashed, who).unwrap(), content, "round {round}, {len} bytes wiped");
            }
        }
        // The next round finds the old slot half wiped.
        file[old_at..old_at + 100 * round].fill(0);
    }
}

#[test]
fn a_file_is_rekeyed_in_place() {
    let keys = keys();
    let (plan, content) = sample(5_000);
    let folder = std::env::temp_dir().join(format!("apr-rekey-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("m.sealed");
    fs::write(&path, seal(&plan, &content, &SealOptions::default().for_recipient(keys.alice.public())))
        .unwrap();
    let alice = Access::default().with_recipient(&keys.alice);
    let instead = RekeyOptions::default().for_recipient(keys.bob.public());
    apr_sealed::rekey(&path, &alice, &instead, &SealedLimits::default()).unwrap();
    let file = fs::read(&path).unwrap();
    for secret in [&keys.alice, &keys.bob] {
        assert_eq!(read_all(&file, &Access::default().with_recipient(secret)).unwrap(), content);
    }
    let eve = Access::default().with_recipient(&keys.eve);
    assert_eq!(code(apr_sealed::rekey(&path, &eve, &instead, &SealedLimits::default())), "ac-decryption");
    assert_eq!(fs::read(&path).unwrap(), file);
    assert_eq!(
        code(apr_sealed::rekey(&folder, &alice, &instead, &SealedLimits::default())),
        "df-not-regular"
    );
    fs::remove_dir_all(&folder).unwrap();
}
