//! Authenticated metadata: the inference key that a client may use, and freshness of the values generated for each file.

use std::collections::HashSet;

use apr_container::v1::Container;
use apr_container::{
    AuthenticMetadata, Error, ModelType, Protection, ReadOptions, SaveOptions, UncheckedSignature, Value,
    authenticate, to_vec,
};
use apr_crypto::{Access, Password, RecipientSecret, Signer, SigningKey, Trust, TrustedKeys};

use crate::sample::Sample;

const KIND: ModelType = ModelType::Custom;

fn owner() -> RecipientSecret {
    RecipientSecret::from_bytes(&[5; 32])
}

fn options() -> SaveOptions<'static> {
    SaveOptions::default().with_created_at(1_795_241_427).with_inference_key(&owner().public())
}

fn protected(protection: &Protection<'_>) -> Vec<u8> {
    to_vec(&Sample::new(3), KIND, &options().with_protection(*protection)).unwrap()
}

fn authentic<'k>(file: &[u8], access: &Access<'k>) -> Result<AuthenticMetadata<'k>, Error> {
    authenticate(file, access, &ReadOptions::STRICT)
}

fn code<T>(result: Result<T, Error>) -> &'static str {
    result.map(drop).unwrap_err().code()
}

#[test]
fn a_trusted_signature_authenticates_the_key_also_of_a_file_that_cannot_be_decrypted() {
    let (maker, buyer) = (SigningKey::from_seed(&[1; 32]), RecipientSecret::from_bytes(&[7; 32]).public());
    let known = maker.verifying_key();
    let mut trusted = TrustedKeys::new();
    trusted.add("maker", known).unwrap();
    let password = Password::from("x");
    for lock in [
        Protection::default(),
        Protection::default().for_recipient(&buyer),
        Protection::default().with_password(&password),
    ] {
        let file = protected(&lock.signed_by(&maker));
        let by_key = authentic(&file, &Access::default().with_trust(&known)).unwrap();
        assert_eq!(by_key.inference_key().unwrap().public(), &owner().public());
        assert_eq!(by_key.signer(), Some(Signer::Trusted(maker.verifying_key(), None)));
        assert_eq!(by_key.metadata(), &Container::from_bytes(&file).unwrap().metadata().unwrap());
        let by_name = authentic(&file, &Access::default().with_trust(&trusted)).unwrap();
        assert_eq!(by_name.signer(), Some(Signer::Trusted(maker.verifying_key(), Some("maker"))));
    }
}

#[test]
fn a_password_authenticates_the_key() {
    let (password, untrusted) = (Password::from("x"), SigningKey::from_seed(&[2; 32]));
    let access = Access::default().with_password(&password);
    let file = protected(&Protection::default().with_password(&password));
    let opened = authentic(&file, &access).unwrap();
    assert_eq!(opened.inference_key().unwrap().public(), &owner().public());
    assert_eq!(opened.signer(), None);
    assert_eq!(
        code(authentic(&file, &Access::default().with_password(&Password::from("y")))),
        "ac-decryption"
    );
    // The signature of an untrusted key makes no difference.
    let file = protected(&Protection::default().with_password(&password).signed_by(&untrusted));
    assert_eq!(authentic(&file, &access.with_trust(Trust::Anyone)).unwrap().signer(), None);
    assert_eq!(code(authentic(&file, &access)), "ac-signed");
}

/// Every other author of the entry.
#[test]
fn nothing_else_authenticates_the_key() {
    let (maker, untrusted) = (SigningKey::from_seed(&[1; 32]), SigningKey::from_seed(&[2; 32]));
    let buyer = RecipientSecret::from_bytes(&[7; 32]);
    let (to, known, password) = (buyer.public(), maker.verifying_key(), Password::from("x"));
    let none = Access::default();
    let plain = to_vec(&Sample::new(3), KIND, &options()).unwrap();
    let for_buyer = protected(&Protection::default().for_recipient(&to));
    let by_untrusted = protected(&Protection::default().signed_by(&untrusted));
    let by_maker = protected(&Protection::default().signed_by(&maker));
    let cases = [
        (&plain, none, "ac-unauthenticated"),
        (&plain, none.with_trust(&known), "ac-not-signed"),
        (&plain, none.with_password(&password), "ac-not-encrypted"),
        (&plain, none.with_recipient(&buyer), "ac-unauthenticated"),
        (&for_buyer, none, "ac-unauthenticated"),
        (&for_buyer, none.with_recipient(&buyer), "ac-unauthenticated"),
        (&for_buyer, none.with_trust(&known), "ac-not-signed"),
        (&by_untrusted, none.with_trust(Trust::Anyone), "ac-unauthenticated"),
        (&by_untrusted, none.with_trust(&known), "ac-untrusted-signer"),
        (&by_maker, none, "ac-signed"),
    ];
    for (idx, (file, access, expected)) in cases.into_iter().enumerate() {
        assert_eq!(code(authentic(file, &access)), expected, "{idx}");
    }
    // An unverified signature authenticates nothing, in compat mode neither.
    for tolerant in
        [ReadOptions::COMPAT, ReadOptions::STRICT.with_unchecked_signature(UncheckedSignature::Allow)]
    {
        for file in [&plain, &for_buyer, &by_maker] {
            assert_eq!(code(authenticate(file, &none, &tolerant)), "ac-unauthenticated");
        }
    }
}

#[test]
fn an_exchanged_key_is_refused() {
    let (maker, password) = (SigningKey::from_seed(&[1; 32]), Password::from("x"));
    let known = maker.verifying_key();
    let (ours, theirs) = (owner().public().to_string(), RecipientSecret::from_bytes(&[6; 32]).public());
    let theirs = theirs.to_string();
    let signed = Access::default().with_trust(&known);
    let locked = Access::default().with_password(&password);
    for (file, access, expected) in [
        (protected(&Protection::default().signed_by(&maker)), signed, "ac-signature"),
        (protected(&Protection::default().with_password(&password)), locked, "ac-rebound"),
    ] {
        let at = file.windows(ours.len()).position(|window| window == ours.as_bytes()).unwrap();
        let mut changed = file.clone();
        changed[at..at + theirs.len()].copy_from_slice(theirs.as_bytes());
        let body = changed.len() - 4;
        let crc = crc32fast::hash(&changed[..body]);
        changed[body..].copy_from_slice(&crc.to_le_bytes());
        for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
            assert_eq!(code(authenticate(&changed, &access, &options)), expected);
        }
    }
}

/// A file of another maker's, encrypted with the password but bound to nothing: its payload opens in compat mode, its
/// metadata are not authenticated.
#[test]
fn a_password_authenticates_nothing_it_is_not_bound_to() {
    let file = include_bytes!("../../../conformance/vectors/apr/a0150_linreg_none_password.apr");
    let password = Password::from("my-strong-password");
    let access = Access::default().with_password(&password);
    assert_eq!(code(authenticate(file, &access, &ReadOptions::COMPAT)), "ac-unbound");
}

#[test]
fn a_key_that_is_none_is_an_error() {
    let maker = SigningKey::from_seed(&[1; 32]);
    let known = maker.verifying_key();
    let hex: String = owner().public().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let line = owner().public().to_string();
    let cases = [
        (Some(Value::from(hex.as_str())), true),
        (Some(Value::from(line.to_uppercase().as_str())), true),
        (Some(Value::from(&hex[..62])), false),
        (Some(Value::from("0".repeat(64).as_str())), false),
        (Some(Value::from("f".repeat(64).as_str())), false),
        (Some(Value::from(line.replacen('q', "p", 1).as_str())), line.find('q').is_none()),
        (Some(Value::from(known.to_string().as_str())), false),
        (Some(Value::from(7)), false),
        (None, false),
    ];
    for (value, is_key) in cases {
        let mut options = options();
        options.metadata.custom.remove("inference_pub_key");
        options.metadata.custom.extend(value.clone().map(|value| ("inference_pub_key".to_owned(), value)));
        options.protection = Protection::default().signed_by(&maker);
        let file = to_vec(&Sample::new(1), KIND, &options).unwrap();
        let key = authentic(&file, &Access::default().with_trust(&known)).unwrap().inference_key();
        match key {
            Ok(key) => assert!(is_key && key.public() == &owner().public(), "{value:?}"),
            Err(error) => assert!(!is_key && error.code() == "ac-inference-key", "{value:?}: {error}"),
        }
    }
}

/// 400 files of one model for one recipient: no ephemeral key, nonce, commitment or ciphertext twice. `apr-crypto` tests
/// 10,000 of each by itself.
#[test]
fn nothing_of_a_file_repeats_in_the_next() {
    let to = RecipientSecret::from_bytes(&[7; 32]).public();
    let mut seen = HashSet::new();
    for _ in 0..400 {
        let file = protected(&Protection::default().for_recipient(&to));
        let container = Container::from_bytes(&file).unwrap();
        let metadata = container.metadata().unwrap();
        let apr_container::v1::Payload::Encrypted(payload) = container.payload() else { panic!("encrypted") };
        let (ephemeral, rest) = payload.stored().split_at(32);
        let (nonce, ciphertext) = rest[8..].split_at(12);
        for part in [
            ephemeral,
            nonce,
            &ciphertext[..16],
            &ciphertext[ciphertext.len() - 16..],
            metadata.custom["apr.commit"].as_str().unwrap().as_bytes(),
        ] {
            assert!(seen.insert(part.to_vec()), "{part:02x?}");
        }
    }
}

/// A server compares the key that the metadata name with its own.
#[test]
fn a_model_names_one_key_or_none() {
    let (key, other) = (owner().public(), RecipientSecret::from_bytes(&[6; 32]).public());
    let mut metadata = options().metadata;
    assert_eq!(
        (metadata.names_inference_key(&key), metadata.names_inference_key(&other)),
        (Some(true), Some(false))
    );
    metadata.set_inference_key(&other);
    assert_eq!(
        (metadata.names_inference_key(&key), metadata.names_inference_key(&other)),
        (Some(false), Some(true))
    );
    metadata.custom.insert("inference_pub_key".into(), Value::from("no key"));
    assert_eq!(metadata.names_inference_key(&key), Some(false));
    metadata.custom.remove("inference_pub_key");
    assert_eq!(metadata.names_inference_key(&key), None);
}
