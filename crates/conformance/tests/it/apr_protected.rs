//! Encrypted and signed files of the peers, opened with the keys the manifest has.

use apr_container::{
    Access, Container, Error, Expect, Generation, ReadOptions, Signer, Trust, encode_payload_to_vec,
    open_protected,
};
use apr_crypto::{Password, RecipientSecret, VerifyingKey};
use apr_models::AnyModel;
use conformance::apr::manifest::{Content, Manifest, Protection, read};
use conformance::digest::sha256_hex;
use serde_json::Value;

struct Keys {
    password: Password,
    recipient: RecipientSecret,
    signer: VerifyingKey,
}

fn keys() -> Keys {
    let manifest: Value = serde_json::from_slice(&read("manifest.json").unwrap()).unwrap();
    let key = |kind: &str, name: &str| manifest["keys"][kind][name].as_str().unwrap().to_owned();
    let bytes = |text: String| -> [u8; 32] {
        let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect::<Vec<_>>().try_into().unwrap()
    };
    let recipient = RecipientSecret::from_bytes(&bytes(key("recipient", "x25519_secret_hex")));
    assert_eq!(recipient.public().as_bytes(), &bytes(key("recipient", "x25519_public_hex")));
    Keys {
        password: Password::new(key("password", "password")),
        recipient,
        signer: VerifyingKey::from_bytes(&bytes(key("signed", "ed25519_public_hex"))).unwrap(),
    }
}

fn open<'k>(
    file: &[u8],
    access: Access<'k>,
    options: &ReadOptions,
) -> Result<(AnyModel, Option<Signer<'k>>), Error> {
    let opened = open_protected::<AnyModel>(file, Expect::AnyKnown, &access, options)?;
    Ok((opened.model, opened.signer))
}

/// The payload of each is the recorded one. Strict reading misses the binding that the peers do not write.
#[test]
fn every_protected_file_of_the_peers_is_opened_and_no_changed_one() {
    let (manifest, keys) = (Manifest::load().unwrap(), keys());
    let mut counts = [0; 3];
    let mut by_hand = 0;
    for file in &manifest.files {
        let Content::First(facts) = &file.content else { continue };
        let none = Access::default();
        let (idx, access) = match facts.protection {
            Protection::Password => (0, none.with_password(&keys.password)),
            Protection::Recipient => (1, none.with_recipient(&keys.recipient)),
            Protection::Signed => (2, none.with_trust(&keys.signer)),
            _ => continue,
        };
        counts[idx] += 1;
        let bytes = read(&file.name).unwrap();
        let strict = open(&bytes, access, &ReadOptions::STRICT);
        let opened = open(&bytes, access, &ReadOptions::COMPAT);
        if facts.protection == Protection::Signed {
            assert!(strict.is_ok() || opened.is_err(), "{}", file.name);
        } else {
            assert_eq!(strict.unwrap_err().code(), "ac-unbound", "{}", file.name);
        }
        let payload = manifest.payload(&facts.payload).unwrap();
        match opened {
            Ok((model, signer)) => {
                let generation = Generation::from_version(file.peer.rsplit(' ').next().unwrap()).unwrap();
                let found = encode_payload_to_vec(&model, generation).unwrap();
                assert_eq!(sha256_hex(&found), payload.sha256, "{}", file.name);
                let expected = (idx == 2).then_some(Signer::Trusted(None));
                assert_eq!(signer, expected);
            }
            // A type of the peer's tests alone.
            Err(error) => {
                assert_eq!(error.code(), "am-unknown-model", "{}: {error}", file.name);
                by_hand += 1;
            }
        }
        // One bit of the payload, with the checksum made right again.
        let mut changed = bytes.clone();
        changed[32
            + Container::from_bytes_with(&bytes, &ReadOptions::COMPAT).unwrap().metadata_bytes().len()
            + 20] ^= 1;
        let body = changed.len() - 4;
        let crc = conformance::apr::seal::crc32(&[&changed[..body]]);
        changed[body..].copy_from_slice(&crc.to_le_bytes());
        assert!(open(&changed, access, &ReadOptions::COMPAT).is_err(), "{}", file.name);
        if let Ok((_, signer)) = open(&bytes, none.with_trust(Trust::Anyone), &ReadOptions::COMPAT) {
            assert_eq!(signer, Some(Signer::Unknown(keys.signer)));
        }
    }
    assert_eq!(counts, [26, 21, 33]);
    assert_eq!(by_hand, 0);
}
