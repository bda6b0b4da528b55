//! Payloads as bytes: protected and unprotected without being decoded.

use apr_container::v1::Flags;
use apr_container::{
    Compression, Error, License, ModelType, Protection, RawModel, ReadOptions, SaveOptions, load_from_bytes,
    load_from_bytes_with, to_vec, verify_signature,
};
use apr_crypto::{Access, OsRandom, Password, RecipientSecret, Signer, SigningKey};
use proptest::prelude::*;

use crate::sample::Sample;

const KIND: ModelType = ModelType::Custom;

fn options(compression: Compression) -> SaveOptions<'static> {
    let mut options = SaveOptions::default().with_compression(compression).with_created_at(1_795_241_427);
    options.quality = Some(90);
    options.metadata.license = Some(License { licensee: Some("Example".into()), ..License::default() });
    options.metadata.custom.insert("team".into(), "planes");
    options
}

fn raw<'k>(file: &[u8], access: &Access<'k>) -> Result<(RawModel, Option<Signer<'k>>), Error> {
    let model = RawModel::open(file, access, &ReadOptions::STRICT)?;
    Ok((model, verify_signature(file, access.trust(), &ReadOptions::STRICT)?))
}

/// Recomputes the checksum.
fn reseal(mut file: Vec<u8>) -> Vec<u8> {
    let body = file.len() - 4;
    let crc = crc32fast::hash(&file[..body]);
    file[body..].copy_from_slice(&crc.to_le_bytes());
    file
}

#[test]
fn a_file_comes_back_byte_for_byte() {
    let (recipient, signer) = (RecipientSecret::from_bytes(&[7; 32]), SigningKey::from_seed(&[1; 32]));
    let (to, by, password) = (recipient.public(), signer.verifying_key(), Password::from("p"));
    let plain = Protection::default();
    for compression in Compression::KNOWN {
        for count in [0, 300] {
            let model = Sample::new(count);
            let file = to_vec(&model, KIND, &options(compression)).unwrap();
            let (opened, signer_found) = raw(&file, &Access::default()).unwrap();
            assert_eq!((opened.to_vec().unwrap(), signer_found), (file.clone(), None));
            for (lock, access) in [
                (plain.with_password(&password), Access::default().with_password(&password)),
                (plain.for_recipient(&to), Access::default().with_recipient(&recipient)),
            ] {
                let locked = opened.to_vec_protected(&lock.signed_by(&signer), &mut OsRandom).unwrap();
                let access = access.with_trust(&by);
                let (again, who) = raw(&locked, &access).unwrap();
                assert_eq!((again.to_vec().unwrap(), who), (file.clone(), Some(Signer::Trusted(by, None))));
                // What was protected unseen is a protected file like any other.
                let typed = load_from_bytes_with::<Sample>(&locked, KIND, access).unwrap();
                assert_eq!(typed, model);
            }
        }
    }
}

#[test]
fn a_payload_of_an_unknown_type_is_protected_too() {
    let mut file = to_vec(&Sample::new(3), KIND, &options(Compression::None)).unwrap();
    // A type that no specification lists, flags without effect.
    file[6..8].copy_from_slice(&0x7777_u16.to_le_bytes());
    file[21] |= Flags::QUANTIZED.0 | Flags::HAS_MODEL_CARD.0;
    let file = reseal(file);
    let recipient = RecipientSecret::from_bytes(&[7; 32]);
    let (opened, _) = raw(&file, &Access::default()).unwrap();
    assert_eq!(opened.model_type(), ModelType(0x7777));
    let locked = opened
        .to_vec_protected(&Protection::default().for_recipient(&recipient.public()), &mut OsRandom)
        .unwrap();
    assert_eq!(locked[21], file[21] | Flags::ENCRYPTED.0);
    let (again, _) = raw(&locked, &Access::default().with_recipient(&recipient)).unwrap();
    assert_eq!(again.payload(), opened.payload());
    assert_eq!(again.to_vec().unwrap(), file);
}

#[test]
fn protection_is_replaced_as_a_whole() {
    let (one, two) = (RecipientSecret::from_bytes(&[7; 32]), RecipientSecret::from_bytes(&[8; 32]));
    let file = to_vec(&Sample::new(3), KIND, &options(Compression::None)).unwrap();
    let seal = |file: &[u8], access: &Access<'_>, to: &RecipientSecret| {
        let protection = Protection::default();
        let model = raw(file, access).unwrap().0;
        model.to_vec_protected(&protection.for_recipient(&to.public()), &mut OsRandom).unwrap()
    };
    let first = seal(&file, &Access::default(), &one);
    let second = seal(&first, &Access::default().with_recipient(&one), &two);
    assert_eq!(raw(&second, &Access::default().with_recipient(&one)).unwrap_err().code(), "ac-decryption");
    let opened = raw(&second, &Access::default().with_recipient(&two)).unwrap().0;
    assert_eq!(opened.to_vec().unwrap(), file);
}

#[test]
fn metadata_can_be_changed_on_the_way() {
    let file = to_vec(&Sample::new(3), KIND, &options(Compression::None)).unwrap();
    let mut opened = raw(&file, &Access::default()).unwrap().0;
    opened.metadata.license = None;
    let changed = opened.to_vec().unwrap();
    assert_eq!(changed[21] & Flags::LICENSED.0, 0, "the flag follows the metadata");
    assert_eq!(load_from_bytes::<Sample>(&changed, KIND).unwrap(), Sample::new(3));
}

#[test]
fn requirements_are_those_of_loading() {
    let (recipient, signer) = (RecipientSecret::from_bytes(&[7; 32]), SigningKey::from_seed(&[1; 32]));
    let by = signer.verifying_key();
    let file = to_vec(&Sample::new(3), KIND, &options(Compression::None)).unwrap();
    let model = raw(&file, &Access::default()).unwrap().0;
    let (none, key) = (Access::default(), Access::default().with_recipient(&recipient));
    let code = |file: &[u8], access: &Access<'_>| raw(file, access).unwrap_err().code();
    assert_eq!(code(&file, &key), "ac-not-encrypted");
    assert_eq!(code(&file, &none.with_trust(&by)), "ac-not-signed");
    let to = recipient.public();
    let locked = model.to_vec_protected(&Protection::default().for_recipient(&to), &mut OsRandom).unwrap();
    assert_eq!(code(&locked, &none), "ac-encrypted");
    let signed = model.to_vec_protected(&Protection::default().signed_by(&signer), &mut OsRandom).unwrap();
    assert_eq!(code(&signed, &none), "ac-signed");
    let mut changed = signed.clone();
    changed[40] ^= 1;
    // Before the metadata are looked into: the signature is what is wrong with them.
    assert_eq!(code(&reseal(changed), &none.with_trust(&by)), "ac-signature");
}

proptest! {
    #[test]
    fn any_change_is_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..6),
        compression in 0_u8..4,
    ) {
        let recipient = RecipientSecret::from_bytes(&[7; 32]);
        let to = recipient.public();
        let file = to_vec(&Sample::new(20), KIND, &options(Compression(compression))).unwrap();
        let model = raw(&file, &Access::default()).unwrap().0;
        let locked = model.to_vec_protected(&Protection::default().for_recipient(&to), &mut OsRandom).unwrap();
        let mut changed = locked.clone();
        for (place, value) in changes {
            let idx = place.index(locked.len() - 4);
            changed[idx] ^= value;
        }
        prop_assume!(changed != locked);
        let changed = reseal(changed);
        let access = Access::default().with_recipient(&recipient);
        prop_assert!(raw(&changed, &access).is_err());
        let _ = RawModel::open(&changed, &access, &ReadOptions::COMPAT);
        let _ = RawModel::open(&changed, &Access::default(), &ReadOptions::COMPAT);
    }
}
