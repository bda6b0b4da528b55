//! Encrypted and signed files: decrypted with the right key, refused after any change.

use std::fs;

use apr_container::v1::{Container, Flags};
use apr_container::{
    Compression, Error, LoadOptions, Metadata, ModelType, Protection, ReadOptions, SaveOptions, Value,
    inspect_bytes, load_as_recipient, load_encrypted, load_from_bytes, load_from_bytes_with, load_verified,
    load_with, save_encrypted, save_for_recipient, save_signed, to_vec, verify_signature,
};
use apr_crypto::{Access, Password, RecipientSecret, Signer, SigningKey, Trust, TrustedKeys};
use proptest::prelude::*;

use crate::sample::Sample;

const KIND: ModelType = ModelType::Custom;

fn options(compression: Compression) -> SaveOptions<'static> {
    SaveOptions::default().with_compression(compression).with_created_at(1_795_241_427).with_name("segments")
}

fn protected(model: &Sample, compression: Compression, protection: &Protection<'_>) -> Vec<u8> {
    to_vec(model, KIND, &options(compression).with_protection(*protection)).unwrap()
}

#[derive(Debug, PartialEq)]
struct Opened<'k> {
    model: Sample,
    signer: Option<Signer<'k>>,
}

fn open<'k>(file: &[u8], access: &Access<'k>) -> Result<Opened<'k>, Error> {
    let model = load_from_bytes_with(file, KIND, access)?;
    Ok(Opened { model, signer: verify_signature(file, access.trust(), &ReadOptions::STRICT)? })
}

fn open_compat(file: &[u8], access: &Access<'_>) -> Result<Sample, Error> {
    load_from_bytes_with(file, KIND, LoadOptions { read: ReadOptions::COMPAT, access: *access })
}

fn code<T>(result: Result<T, Error>) -> &'static str {
    result.map(|_| ()).unwrap_err().code()
}

/// Recomputes the checksum, as any attacker can.
fn reseal(mut file: Vec<u8>) -> Vec<u8> {
    let body = file.len() - 4;
    let crc = crc32fast::hash(&file[..body]);
    file[body..].copy_from_slice(&crc.to_le_bytes());
    file
}

struct Keys {
    recipient: RecipientSecret,
    other: RecipientSecret,
    signer: SigningKey,
    forger: SigningKey,
}

fn keys() -> Keys {
    let (recipient, other) = (RecipientSecret::from_bytes(&[7; 32]), RecipientSecret::from_bytes(&[8; 32]));
    let (signer, forger) = (SigningKey::from_seed(&[1; 32]), SigningKey::from_seed(&[2; 32]));
    Keys { recipient, other, signer, forger }
}

#[test]
fn what_is_protected_is_opened_in_every_compression() {
    let keys = keys();
    let (to, by) = (keys.recipient.public(), keys.signer.verifying_key());
    let password = Password::from("my-strong-password");
    for compression in Compression::KNOWN {
        for count in [0, 300] {
            let model = Sample::new(count);
            let plain = Protection::default();
            for (lock, access) in [
                (plain, Access::default()),
                (plain.with_password(&password), Access::default().with_password(&password)),
                (plain.for_recipient(&to), Access::default().with_recipient(&keys.recipient)),
            ] {
                let file = protected(&model, compression, &lock);
                let opened = open(&file, &access).unwrap();
                assert_eq!(opened, Opened { model: model.clone(), signer: None });

                let file = protected(&model, compression, &lock.signed_by(&keys.signer));
                let opened = open(&file, &access.with_trust(&by)).unwrap();
                let signer = Some(Signer::Trusted(by, None));
                assert_eq!(opened, Opened { model: model.clone(), signer });
                let info = inspect_bytes(&file).unwrap();
                assert_eq!(
                    (info.key_hint().is_some(), info.has_key_commitment()),
                    (info.encrypted, info.encrypted)
                );
                assert_eq!(info.metadata.model_name.as_deref(), Some("segments"));
                assert!(info.signed);
            }
        }
    }
}

#[test]
fn functions_on_files_return_the_model() {
    let keys = keys();
    let model = Sample::new(40);
    let folder = std::env::temp_dir().join(format!("apr-protect-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("m.apr");
    save_encrypted(&model, KIND, &path, SaveOptions::default(), "my-strong-password").unwrap();
    assert_eq!(load_encrypted::<Sample>(&path, KIND, "my-strong-password").unwrap(), model);
    assert_eq!(code(load_encrypted::<Sample>(&path, KIND, "another")), "ac-decryption");
    assert_eq!(code(load_encrypted::<Sample>(&path, ModelType::KMeans, "x")), "ac-wrong-type");
    let error = code(save_encrypted(&model, KIND, &path, SaveOptions::default(), ""));
    assert_eq!(error, "ac-limit");

    save_for_recipient(&model, KIND, &path, SaveOptions::default(), &keys.recipient.public()).unwrap();
    assert_eq!(load_as_recipient::<Sample>(&path, KIND, &keys.recipient).unwrap(), model);
    assert_eq!(code(load_as_recipient::<Sample>(&path, KIND, &keys.other)), "ac-decryption");

    save_signed(&model, KIND, &path, SaveOptions::default(), &keys.signer).unwrap();
    assert_eq!(load_verified::<Sample>(&path, KIND, &keys.signer.verifying_key()).unwrap(), model);
    let forger = keys.forger.verifying_key();
    assert_eq!(code(load_verified::<Sample>(&path, KIND, &forger)), "ac-untrusted-signer");
    let anyone = Access::default().with_trust(Trust::Anyone);
    assert_eq!(load_with::<Sample>(&path, KIND, anyone).unwrap(), model);
    let opened = open(&fs::read(&path).unwrap(), &anyone).unwrap();
    assert_eq!(opened.signer, Some(Signer::Unknown(keys.signer.verifying_key())));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn trusted_keys_name_the_signer() {
    let keys = keys();
    let file = protected(&Sample::new(3), Compression::None, &Protection::default().signed_by(&keys.signer));
    let mut trusted = TrustedKeys::new();
    assert_eq!(code(open(&file, &Access::default().with_trust(&trusted))), "ac-untrusted-signer");
    trusted.add("release", keys.signer.verifying_key()).unwrap();
    trusted.add("nightly", keys.forger.verifying_key()).unwrap();
    let opened = open(&file, &Access::default().with_trust(&trusted)).unwrap();
    assert_eq!(opened.signer, Some(Signer::Trusted(keys.signer.verifying_key(), Some("release"))));
}

#[test]
fn a_signature_is_verified_without_the_key_to_read() {
    let keys = keys();
    let to = keys.recipient.public();
    let both = Protection::default().for_recipient(&to).signed_by(&keys.signer);
    let file = protected(&Sample::new(3), Compression::None, &both);
    let (by, other) = (keys.signer.verifying_key(), keys.forger.verifying_key());
    let verify = |file: &[u8], trust| verify_signature(file, trust, &ReadOptions::STRICT);
    assert_eq!(verify(&file, Trust::Key(&by)).unwrap(), Some(Signer::Trusted(by, None)));
    assert_eq!(verify(&file, Trust::Anyone).unwrap(), Some(Signer::Unknown(by)));
    assert_eq!(verify(&file, Trust::NoSignature).unwrap(), None);
    assert_eq!(code(verify(&file, Trust::Key(&other))), "ac-untrusted-signer");
    let mut changed = file.clone();
    changed[50] ^= 1;
    assert_eq!(code(verify(&changed, Trust::Key(&by))), "ac-checksum");
    assert_eq!(code(verify(&reseal(changed), Trust::Key(&by))), "ac-signature");
}

#[test]
fn a_demand_that_a_file_does_not_meet_is_an_error_of_its_own() {
    let keys = keys();
    let model = Sample::new(3);
    let plain = to_vec(&model, KIND, &options(Compression::None)).unwrap();
    let to = keys.recipient.public();
    let encrypted = protected(&model, Compression::None, &Protection::default().for_recipient(&to));
    let signed = protected(&model, Compression::None, &Protection::default().signed_by(&keys.signer));
    let by = keys.signer.verifying_key();
    let (none, key) = (Access::default(), Access::default().with_recipient(&keys.recipient));
    assert_eq!(code(open(&plain, &none.with_trust(&by))), "ac-not-signed");
    assert_eq!(code(open(&encrypted, &key.with_trust(&by))), "ac-not-signed");
    assert_eq!(code(open(&plain, &key)), "ac-not-encrypted");
    assert_eq!(code(open(&encrypted, &none)), "ac-encrypted");
    assert_eq!(code(open(&signed, &none)), "ac-signed");
    assert_eq!(code(load_from_bytes::<Sample>(&encrypted, KIND)), "ac-encrypted");
    // A password where a recipient's key is needed, and the other way round.
    let password = Password::from("x");
    assert_eq!(code(open(&encrypted, &none.with_password(&password))), "ac-decryption");
    let locked = protected(&model, Compression::None, &Protection::default().with_password(&password));
    assert_eq!(code(open(&locked, &key)), "ac-decryption");
    assert_eq!(open(&locked, &none.with_password(&password)).unwrap().model, model);
}

/// Every bit of a file, with a recomputed checksum. Every length, with and without a new
/// checksum.
#[test]
fn no_bit_can_be_changed_by_recomputing_the_checksum() {
    let keys = keys();
    let (to, by) = (keys.recipient.public(), keys.signer.verifying_key());
    let key = Access::default().with_recipient(&keys.recipient);
    let encrypted = Protection::default().for_recipient(&to);
    for compression in [Compression::None, Compression::ZstdDefault, Compression::LZ4] {
        let model = Sample::new(5);
        for (protection, access) in [
            (encrypted, key),
            (Protection::default().signed_by(&keys.signer), Access::default().with_trust(&by)),
            (encrypted.signed_by(&keys.signer), key.with_trust(&by)),
        ] {
            let file = protected(&model, compression, &protection);
            assert!(open(&file, &access).is_ok());
            for bit in 0..(file.len() - 4) * 8 {
                let mut changed = file.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(open(&reseal(changed), &access).is_err(), "bit {bit}");
            }
            for len in 0..file.len() {
                assert!(open(&file[..len], &access).is_err(), "{len}");
                if len >= 4 {
                    assert!(open(&reseal(file[..len].to_vec()), &access).is_err(), "{len} resealed");
                }
            }
        }
    }
}

/// A file taken apart, to be put together otherwise.
struct Parts {
    header: [u8; 32],
    metadata: Vec<u8>,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

impl Parts {
    fn of(file: &[u8]) -> Self {
        let container = Container::from_bytes(file).unwrap();
        let metadata = container.metadata_bytes().to_vec();
        let payload_len = container.header().payload_len as usize;
        let payload_at = 32 + metadata.len();
        Self {
            header: file[..32].try_into().unwrap(),
            payload: file[payload_at..payload_at + payload_len].to_vec(),
            signature: file[payload_at + payload_len..file.len() - 4].to_vec(),
            metadata,
        }
    }

    fn join(&self) -> Vec<u8> {
        let mut header = self.header;
        header[8..12].copy_from_slice(&(self.metadata.len() as u32).to_le_bytes());
        header[12..16].copy_from_slice(&(self.payload.len() as u32).to_le_bytes());
        reseal([&header, &*self.metadata, &self.payload, &self.signature, &[0; 4]].concat())
    }

    fn set_flags(&mut self, change: impl Fn(u8) -> u8) {
        self.header[21] = change(self.header[21]);
    }

    fn with_metadata(mut self, change: impl FnOnce(&mut Metadata)) -> Self {
        let mut metadata = Metadata::from_msgpack(
            &self.metadata,
            ReadOptions::STRICT.strictness,
            &ReadOptions::STRICT.limits,
        )
        .unwrap();
        change(&mut metadata);
        self.metadata = metadata.to_msgpack().unwrap();
        self
    }

    /// Signed again by another key.
    fn signed_by(mut self, key: &SigningKey) -> Self {
        self.set_flags(|flags| flags | Flags::SIGNED.0);
        self.signature.clear();
        let file = self.join();
        let signature = key.sign(&file[..file.len() - 4]);
        self.signature = [&signature.to_bytes()[..], key.verifying_key().as_bytes()].concat();
        self
    }
}

#[test]
fn a_signature_cannot_be_stripped_replaced_or_replayed() {
    let keys = keys();
    let (to, by) = (keys.recipient.public(), keys.signer.verifying_key());
    let key = Access::default().with_recipient(&keys.recipient);
    let both = Protection::default().for_recipient(&to).signed_by(&keys.signer);
    let file = protected(&Sample::new(5), Compression::None, &both);
    let strip = |file: &[u8]| {
        let mut parts = Parts::of(file);
        parts.signature.clear();
        parts.set_flags(|flags| flags & !Flags::SIGNED.0);
        parts
    };
    // Stripped: noticed with a demand, and without one by the binding.
    let stripped = strip(&file);
    assert_eq!(code(open(&stripped.join(), &key.with_trust(&by))), "ac-not-signed");
    assert_eq!(code(open(&stripped.join(), &key)), "ac-rebound");
    // Signed by someone else: the binding names the first signer.
    let replaced = stripped.signed_by(&keys.forger).join();
    assert_eq!(code(open(&replaced, &key.with_trust(&by))), "ac-untrusted-signer");
    assert_eq!(code(open(&replaced, &key.with_trust(&keys.forger.verifying_key()))), "ac-rebound");
    assert_eq!(code(open(&replaced, &key.with_trust(Trust::Anyone))), "ac-rebound");

    let signed = Protection::default().signed_by(&keys.signer);
    let (one, two) = (Sample::new(5), Sample::new(6));
    let (one, two) =
        (protected(&one, Compression::None, &signed), protected(&two, Compression::None, &signed));
    let mut replayed = Parts::of(&one);
    replayed.signature = Parts::of(&two).signature;
    assert_eq!(code(open(&replayed.join(), &Access::default().with_trust(&by))), "ac-signature");
    // The right key, a signature by another.
    let mut replayed = strip(&one).signed_by(&keys.forger);
    replayed.signature[64..].copy_from_slice(by.as_bytes());
    assert_eq!(code(open(&replayed.join(), &Access::default().with_trust(&by))), "ac-signature");
}

#[test]
fn header_and_metadata_of_an_encrypted_file_cannot_be_exchanged() {
    let keys = keys();
    let to = keys.recipient.public();
    let key = Access::default().with_recipient(&keys.recipient);
    let encrypted = Protection::default().for_recipient(&to);
    let file = protected(&Sample::new(5), Compression::None, &encrypted);
    let other = protected(&Sample::new(6), Compression::None, &encrypted);

    let renamed =
        Parts::of(&file).with_metadata(|metadata| metadata.model_name = Some("forged".into())).join();
    assert_eq!(code(open(&renamed, &key)), "ac-rebound");
    let compat = open_compat(&renamed, &key);
    assert_eq!(code(compat), "ac-rebound", "a binding that is there counts in compat mode, too");

    // The payload of another file for the same recipient.
    let mut spliced = Parts::of(&file);
    spliced.payload = Parts::of(&other).payload;
    assert_eq!(code(open(&spliced.join(), &key)), "ac-decryption");

    // Without its commitment a file could have two meanings: refused, as by other makers' files.
    let bare = Parts::of(&file).with_metadata(|metadata| drop(metadata.custom.remove("apr.commit"))).join();
    assert_eq!(code(open(&bare, &key)), "ac-unbound");
    for wrong in ["", "00", "not hexadecimal", &"ff".repeat(32)] {
        let set = |metadata: &mut Metadata| drop(metadata.custom.insert("apr.commit".into(), wrong));
        assert_eq!(code(open(&Parts::of(&file).with_metadata(set).join(), &key)), "ac-decryption");
    }
    let set = |metadata: &mut Metadata| drop(metadata.custom.insert("apr.commit".into(), Value::from(7)));
    assert_eq!(code(open(&Parts::of(&file).with_metadata(set).join(), &key)), "ac-decryption");
}

#[test]
fn wrong_keys_and_damage_are_one_error() {
    let keys = keys();
    let to = keys.recipient.public();
    let file = protected(&Sample::new(5), Compression::None, &Protection::default().for_recipient(&to));
    let wrong = open(&file, &Access::default().with_recipient(&keys.other)).unwrap_err().to_string();
    let key = Access::default().with_recipient(&keys.recipient);
    let payload_at = 32 + Container::from_bytes(&file).unwrap().metadata_bytes().len();
    // In the ephemeral key, the recipient's number, the nonce, the ciphertext and the tag.
    for at in [0, 31, 33, 41, 53, 60, file.len() - payload_at - 5] {
        let mut damaged = file.clone();
        damaged[payload_at + at] ^= 4;
        assert_eq!(open(&reseal(damaged), &key).unwrap_err().to_string(), wrong, "{at}");
    }
    for len in 0..68 {
        let mut short = Parts::of(&file);
        short.payload.truncate(len);
        assert_eq!(code(open(&short.join(), &key)), "ac-truncated", "{len}");
    }
}

#[test]
fn two_saves_share_nothing_random() {
    let to = keys().recipient.public();
    let password = Password::from("x");
    for protection in
        [Protection::default().for_recipient(&to), Protection::default().with_password(&password)]
    {
        let model = Sample::new(100);
        let one = Parts::of(&protected(&model, Compression::None, &protection)).payload;
        let two = Parts::of(&protected(&model, Compression::None, &protection)).payload;
        let equal = one.iter().zip(&two).filter(|(a, b)| a == b).count();
        // The recipient's number is equal, and a few of the others are by chance.
        assert!(equal < 8 + one.len() / 20, "{equal} of {}", one.len());
    }
}

proptest! {
    #[test]
    fn any_change_is_refused_and_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..6),
        compression in 0_u8..4,
        is_signed in any::<bool>(),
    ) {
        let keys = keys();
        let (to, by) = (keys.recipient.public(), keys.signer.verifying_key());
        let mut protection = Protection::default().for_recipient(&to);
        let mut access = Access::default().with_recipient(&keys.recipient);
        if is_signed {
            protection = protection.signed_by(&keys.signer);
            access = access.with_trust(&by);
        }
        let file = protected(&Sample::new(20), Compression(compression), &protection);
        let mut changed = file.clone();
        for (place, value) in changes {
            let idx = place.index(file.len() - 4);
            changed[idx] ^= value;
        }
        prop_assume!(changed != file);
        let changed = reseal(changed);
        prop_assert!(open(&changed, &access).is_err());
        let _ = open_compat(&changed, &access);
    }
}
