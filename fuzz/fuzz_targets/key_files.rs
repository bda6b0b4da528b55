//! Everything that reads keys and signatures as text: an error, or a key whose text is read as the same key.

#![no_main]

use apr_crypto::{
    Argon2Limits, LockedKey, PublicKey, RecipientPublic, RecipientSecret, SecretKey, SigningKey, StoredKey,
    TrustedKeys, VerifyingKey, minisign,
};
use apr_fuzz::Choices;
use apr_fuzz::apr::protected::Repeating;
use libfuzzer_sys::fuzz_target;

/// Costs that a locked key may ask for without taking time: nothing is unlocked here.
const CHEAP: fn() -> Argon2Limits = || Argon2Limits::default().with_memory_kib(8..=1 << 20);

fuzz_target!(|input: &[u8]| {
    read(&String::from_utf8_lossy(input));
    let choices = &mut Choices::new(input);
    let mut text = sample(choices);
    for _ in 0..choices.below(4) {
        change(&mut text, choices);
    }
    read(&text);
});

fn read(text: &str) {
    let limits = CHEAP();
    let fine = |error: &apr_crypto::Error| {
        assert!(error.code().starts_with("cy-") && !error.to_string().is_empty());
        assert!(error.line().is_none_or(|line| line as usize <= text.lines().count().max(1) + 1), "{error}");
    };

    for key in [StoredKey::from_text(text, &limits), StoredKey::from_file_text(text, &limits)] {
        match key.inspect_err(fine) {
            Ok(StoredKey::Open(key)) => secret(&key),
            Ok(StoredKey::Locked(key)) => locked(&key),
            Err(_) => {}
        }
    }
    for key in [text.parse::<PublicKey>(), PublicKey::from_file_text(text), PublicKey::from_spki_pem(text)] {
        if let Ok(key) = key.inspect_err(fine) {
            public(&key);
        }
    }
    if let Ok(key) = SecretKey::from_pkcs8_pem(text).inspect_err(fine) {
        secret(&key);
    }
    if let Ok(key) = text.parse::<RecipientPublic>().inspect_err(fine) {
        assert_eq!(RecipientPublic::from_bytes(key.as_bytes()).expect("checked"), key);
    }
    if let Ok(key) = text.parse::<VerifyingKey>().inspect_err(fine) {
        assert_eq!(VerifyingKey::from_bytes(key.as_bytes()).expect("checked"), key);
    }
    if let Ok(keys) = TrustedKeys::parse(text).inspect_err(fine) {
        let written = keys.to_string();
        let again = TrustedKeys::parse(&written).expect("what we write we read");
        assert_eq!(again.to_string(), written);
        for (name, key) in keys.iter() {
            assert_eq!((keys.key_of(name), keys.name_of(key)), (Some(key), Some(name)));
        }
    }
    if let Ok(key) = minisign::PublicKey::from_text(text).inspect_err(fine) {
        let written = key.to_string();
        let again = minisign::PublicKey::from_text(&written).expect("what we write we read");
        assert_eq!((again.id(), again.key()), (key.id(), key.key()));
    }
    if let Ok(key) = minisign::SecretKey::from_text(text).inspect_err(fine) {
        let written = key.to_text();
        let again = minisign::SecretKey::from_text(written.as_str()).expect("what we write we read");
        assert_eq!(again.public().to_string(), key.public().to_string());
    }
    if let Ok(signature) = minisign::Signature::from_text(text).inspect_err(fine) {
        let written = signature.to_string();
        let again = minisign::Signature::from_text(&written).expect("what we write we read");
        assert_eq!(again.to_string(), written);
        assert_eq!((again.key_id(), again.is_prehashed()), (signature.key_id(), signature.is_prehashed()));
        // Of another key, over something else.
        let key = minisign::SecretKey::from(SigningKey::from_seed(&[9; 32])).public();
        assert!(key.verify_file(b"another file", &signature).is_err());
    }
}

fn public(key: &PublicKey) {
    let text = key.to_string();
    assert_eq!(text.parse::<PublicKey>().expect("what we write we read").to_string(), text);
    let pem = PublicKey::from_spki_pem(&key.to_spki_pem()).expect("what we write we read");
    let file = PublicKey::from_file_text(&key.to_file_text("a comment").expect("one line"));
    assert_eq!([pem, file.expect("what we write we read")].map(|key| key.to_string()), [text.clone(), text]);
}

fn secret(key: &SecretKey) {
    public(&key.public());
    let text = key.to_text();
    let same = |again: SecretKey| assert_eq!(again.to_text().as_str(), text.as_str());
    same(SecretKey::from_pkcs8_pem(key.to_pkcs8_pem().as_str()).expect("what we write we read"));
    let file = key.to_file_text("a comment").expect("one line");
    match StoredKey::from_file_text(file.as_str(), &CHEAP()).expect("what we write we read") {
        StoredKey::Open(again) => same(again),
        StoredKey::Locked(_) => panic!("it was not locked"),
    }
}

fn locked(key: &LockedKey) {
    let text = key.to_text();
    match StoredKey::from_text(&text, &CHEAP()).expect("what we write we read") {
        StoredKey::Locked(again) => assert_eq!(again.to_text(), text),
        StoredKey::Open(_) => panic!("a locked key stays one"),
    }
}

/// A text of one of the kinds, of a key that the input chooses.
fn sample(choices: &mut Choices<'_>) -> String {
    let seed = [choices.byte(); 32];
    let (recipient, signing) = (RecipientSecret::from_bytes(&seed), SigningKey::from_seed(&seed));
    let (receives, verifies) = (recipient.public(), signing.verifying_key());
    let comment = ["", "mine", "a # b"][choices.below(3)];
    match choices.below(12) {
        0 => recipient.to_text().as_str().into(),
        1 => signing.to_text().as_str().into(),
        2 => receives.to_string(),
        3 => verifies.to_string(),
        4 => SecretKey::from(recipient).to_pkcs8_pem().as_str().into(),
        5 => SecretKey::from(signing).to_pkcs8_pem().as_str().into(),
        6 => PublicKey::from(receives).to_spki_pem(),
        7 => format!(
            "# whom we believe\nrelease {verifies}\n\nother {}\n",
            SigningKey::from_seed(&[77; 32]).verifying_key()
        ),
        8 => minisign::PublicKey::from(verifies).to_string(),
        9 => minisign::SecretKey::from(signing).to_text().as_str().into(),
        10 => {
            let hash = [choices.byte(); 64];
            let made = minisign::SecretKey::from(signing).sign(&hash, "untrusted", "trusted");
            made.expect("one line each").to_string()
        }
        _ => SecretKey::from(recipient)
            .to_file_text(comment)
            .map_or_else(|_| format!("{:?}", Repeating(1)), |text| text.as_str().into()),
    }
}

fn change(text: &mut String, choices: &mut Choices<'_>) {
    let mut places = text.char_indices().map(|(at, _)| at);
    let Some(at) = places.nth((choices.below(256) << 1 | choices.below(2)) % text.chars().count().max(1))
    else {
        return;
    };
    match choices.below(7) {
        0 => text.truncate(at),
        1 => text.insert(at, char::from(choices.byte())),
        2 => drop(text.remove(at)),
        3 => text.insert_str(at, choices.pick(["\n", "\r\n", "# x\n", " ", "1", "\u{202E}", "-----", "="])),
        4 => *text = text.to_uppercase(),
        5 => *text = [text.as_str(), text].concat(),
        _ => {
            text.remove(at);
            text.insert(at, choices.pick(['q', 'p', 'A', 'B', '1', '\0']));
        }
    }
}
