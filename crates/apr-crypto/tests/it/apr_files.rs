//! Files of version 1, written by aprender 0.10.0, 0.15.0 and aprender-core 0.72.3. Their keys and passwords are
//! test values; the digests of their payloads were computed by their writers.

use apr_crypto::{
    AesKey, Argon2Cost, EphemeralPublic, Password, RecipientSecret, Salt, Signature, SigningKey, VerifyingKey,
};
use sha2::{Digest, Sha256};

const PASSWORD: &str = "my-strong-password";

/// 0x4b, then eleven more each time.
fn recipient() -> RecipientSecret {
    RecipientSecret::from_bytes(&core::array::from_fn(|idx| (0x4b + 11 * idx).to_le_bytes()[0]))
}

/// 0x11, then seven more each time.
fn signer() -> SigningKey {
    SigningKey::from_seed(&core::array::from_fn(|idx| (0x11 + 7 * idx).to_le_bytes()[0]))
}

/// Header and metadata, payload region, what follows it.
fn parts(file: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (head, rest) = file.split_at(32 + number(8));
    let (payload, rest) = rest.split_at(number(12));
    (head, payload, &rest[..rest.len() - 4])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn password_files_open() {
    let files = [
        (
            &include_bytes!("../../../conformance/vectors/apr/a0150_linreg_none_password.apr")[..],
            "5f095bdaa5815a8347b8058a1bcd3d466ab21955d6fc2982294f9eb910954117",
        ),
        (
            include_bytes!("../../../conformance/vectors/apr/a0723_linreg_none_password.apr"),
            "5f095bdaa5815a8347b8058a1bcd3d466ab21955d6fc2982294f9eb910954117",
        ),
        (
            include_bytes!("../../../conformance/vectors/apr/a0723_moe_none_password.apr"),
            "0840f3ce8de4f3a6f95a895d2fb3e9ad82985ba2a8dfe77fd287a3d9a1300db3",
        ),
    ];
    for (file, digest) in files {
        let (_, region, rest) = parts(file);
        assert!(rest.is_empty());
        let (salt, sealed) = region.split_first_chunk().unwrap();
        let key = |password: &str| {
            Password::from(password).derive_key(&Salt::from_file(*salt), &Argon2Cost::APR_V1).unwrap()
        };
        let payload = key(PASSWORD).open(&[], sealed).unwrap();
        assert_eq!(hex(&Sha256::digest(payload)), digest);
        assert_eq!(key("my-strong-passwore").open(&[], sealed).unwrap_err().code(), "cy-open");
        assert_eq!(key(PASSWORD).open(b"x", sealed).unwrap_err().code(), "cy-open");
    }
}

#[test]
fn recipient_files_open() {
    let public = recipient().public();
    assert_eq!(hex(public.as_bytes()), "50402a10acebe975aa34db026451aa03d437e2da5c2c491316f95906109bf052");
    let files = [
        (
            &include_bytes!("../../../conformance/vectors/apr/a0100_kmeans_none_recipient.apr")[..],
            Some("f4e0493bd14b36cf14e3b6ea32c5fcd8e0af27ca8c282dea71d12f43687b7c4d"),
        ),
        (
            include_bytes!("../../../conformance/vectors/apr/a0150_linreg_none_recipient.apr"),
            Some("5f095bdaa5815a8347b8058a1bcd3d466ab21955d6fc2982294f9eb910954117"),
        ),
        // Compressed: what opens is not the payload yet.
        (include_bytes!("../../../conformance/vectors/apr/a0723_linreg_zstd-max_recipient.apr"), None),
    ];
    for (file, digest) in files {
        let (_, region, _) = parts(file);
        let (ephemeral, rest) = region.split_first_chunk().unwrap();
        let (id, sealed) = rest.split_first_chunk().unwrap();
        assert!(public.has_id(id));
        let ephemeral = EphemeralPublic::from_file(*ephemeral).unwrap();
        let payload = recipient().agree_v1(&ephemeral).unwrap().open(&[], sealed).unwrap();
        match digest {
            Some(digest) => assert_eq!(hex(&Sha256::digest(payload)), digest),
            None => assert_eq!(payload[..4], [0x28, 0xb5, 0x2f, 0xfd]),
        }
        let other = RecipientSecret::from_bytes(&[1; 32]).agree_v1(&ephemeral).unwrap();
        assert_eq!(other.open(&[], sealed).unwrap_err().code(), "cy-open");
        // The newer schedule is another key.
        let bound = recipient().agree(&ephemeral).unwrap().aes_key(b"apr-v1-encrypt");
        assert!(bound.open(&[], sealed).is_err());
    }
}

#[test]
fn signed_files_verify() {
    let key = signer().verifying_key();
    assert_eq!(hex(key.as_bytes()), "36a6eb774495578c3dc995a5d1c82ef48ec6fd446174bdcf37c9964709d60f31");
    let files = [
        &include_bytes!("../../../conformance/vectors/apr/a0150_linreg_none_signed.apr")[..],
        include_bytes!("../../../conformance/vectors/apr/a0723_kmeans_zstd-default_signed.apr"),
    ];
    for file in files {
        let (head, payload, block) = parts(file);
        let (signature, embedded) = block.split_first_chunk().unwrap();
        assert_eq!(VerifyingKey::from_bytes(embedded.try_into().unwrap()).unwrap(), key);
        let signature = Signature::from_bytes(*signature);
        key.verify_parts(&[head, payload], &signature).unwrap();
        key.verify(&file[..head.len() + payload.len()], &signature).unwrap();
        assert_eq!(signer().sign_parts(&[head, payload]), signature);
        assert_eq!(key.verify_parts(&[payload], &signature).unwrap_err().code(), "cy-signature");
        assert!(
            SigningKey::from_seed(&[1; 32])
                .verifying_key()
                .verify_parts(&[head, payload], &signature)
                .is_err()
        );
    }
}

/// What this crate writes in these layouts, it reads; with the peers' keys.
#[test]
fn both_layouts_round_trip() {
    let rng = &mut apr_crypto::OsRandom;
    let salt = Salt::generate(rng).unwrap();
    let key = Password::from(PASSWORD).derive_key(&salt, &Argon2Cost::APR_V1).unwrap();
    let region = [&salt.to_bytes()[..], &key.seal(rng, &[], b"payload").unwrap()].concat();
    assert_eq!(region.len(), 16 + 12 + 7 + 16);
    assert_eq!(key.open(&[], &region[16..]).unwrap(), b"payload");

    let (ephemeral, key) = recipient().public().agree_v1(rng).unwrap();
    let sealed = key.seal(rng, &[], b"payload").unwrap();
    let again = recipient().agree_v1(&EphemeralPublic::from_file(ephemeral.to_bytes()).unwrap()).unwrap();
    assert_eq!(again.open(&[], &sealed).unwrap(), b"payload");
    assert_eq!(sealed.len(), 7 + AesKey::OVERHEAD);
}
