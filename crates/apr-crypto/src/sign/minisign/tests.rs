//! Files of minisign, and malformed variants of them.

use alloc::format;
use alloc::string::{String, ToString};

use proptest::prelude::*;

use super::*;
use crate::sign::ed25519::SigningKey;

/// Written by minisign 0.11: `-G -W`, `-S -t .. -c ..` over the five letters and the line feed of `hello`, `-S -l`.
const SECRET: &str = "untrusted comment: minisign encrypted secret key\n\
    RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA6XzJih0neNMrB1l2z6Cc6PJxtli3kE+Tq5GTeulOD0jp\
    n7y1koWf6rPSPQuO7Hx1tBkEZTryG8DYsM5VHjRAu7B6w2C5s3C2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
const PUBLIC: &str = "untrusted comment: minisign public key D378271D8AC97CE9\n\
    RWTpfMmKHSd407PSPQuO7Hx1tBkEZTryG8DYsM5VHjRAu7B6w2C5s3C2\n";
const PREHASHED: &str = "untrusted comment: my comment\n\
    RUTpfMmKHSd40+LxjJvs/z+ZvFJPOfBwOC/RCMmthRxz6MgdiR09eG1Z0pofa7kqjTPlH84XvMrhdBAZ5OifgXPqXnUHZ5FbpAo=\n\
    trusted comment: trusted ünï\n\
    UuWj991U64gLBYilcd5OtT6n9UKV7Kiq1SG7fqFOo+hEEgdWyY+Szjx1fIOP7KqI0ds5VZ9pVoUOuljNBUJpBA==\n";
const LEGACY: &str = "untrusted comment: signature from minisign secret key\n\
    RWTpfMmKHSd40yqnz3lfdYLuIwO5c12MkCNxQyLtcVWP6yLO+nSvasMiiziU9WuTNAKvBy45oGtAr8NafCdyEFdo1jpX5MdJzws=\n\
    trusted comment: timestamp:1795261181\tfile:f\n\
    cooCFAnXwxDI1lGVrnNnKLAyW8fK5y0GNuDsQ408z4uRYqC0nQ21t6itckDr8+NxUHQ+3RZ+8wqiFfkfRzH8Bg==\n";
const FILE: &[u8] = b"hello\n";

fn hash(data: &[u8]) -> [u8; 64] {
    let mut hash = Prehash::default();
    hash.update(data);
    hash.finish()
}

#[test]
fn files_of_minisign_are_read_and_written() {
    let public = PublicKey::from_text(PUBLIC).unwrap();
    assert_eq!(public.to_string(), PUBLIC);
    assert_eq!(public.id().to_string(), "D378271D8AC97CE9");
    assert_eq!(KeyId([0xe0, 0xf0, 0xfc, 0xa7, 0xbb, 0x5e, 0x12, 0x06]).to_string(), "6125EBBA7FCF0E0");
    assert_eq!(PublicKey::from_text(PUBLIC.lines().nth(1).unwrap()).unwrap(), public);
    assert_eq!(PublicKey::from_text(&PUBLIC.replace('\n', "\r\n")).unwrap(), public);
    let secret = SecretKey::from_text(SECRET).unwrap();
    assert_eq!(secret.public(), public);
    assert_eq!(secret.to_text().as_str().lines().nth(1), SECRET.lines().nth(1));
    for text in [PREHASHED, LEGACY] {
        assert_eq!(Signature::from_text(text).unwrap().to_string(), text);
    }
    // The same signature from the same key, file and comments.
    let ours = secret.sign(&hash(FILE), "trusted ünï", "my comment").unwrap();
    assert_eq!(ours.to_string(), PREHASHED);
    assert_eq!((ours.untrusted_comment(), ours.key_id()), ("my comment", public.id()));
}

#[test]
fn signatures_of_minisign_are_checked() {
    let public = PublicKey::from_text(PUBLIC).unwrap();
    let signature = Signature::from_text(PREHASHED).unwrap();
    assert!(signature.is_prehashed());
    assert_eq!(public.verify(&hash(FILE), &signature).unwrap(), "trusted ünï");
    assert_eq!(public.verify_file(FILE, &signature).unwrap(), "trusted ünï");
    assert_eq!(public.verify_file(b"hello", &signature).unwrap_err().kind(), &ErrorKind::Signature);

    let legacy = Signature::from_text(LEGACY).unwrap();
    assert!(!legacy.is_prehashed());
    assert_eq!(public.verify_file(FILE, &legacy).unwrap(), "timestamp:1795261181\tfile:f");
    assert_eq!(public.verify_file(b"hello", &legacy).unwrap_err().kind(), &ErrorKind::Signature);
    assert_eq!(public.verify(&hash(FILE), &legacy).unwrap_err().code(), "cy-text");
    // One kind does not pass for the other.
    let claimed = Signature::from_text(&PREHASHED.replace("RUTpf", "RWTpf")).unwrap();
    assert_eq!(public.verify_file(FILE, &claimed).unwrap_err().kind(), &ErrorKind::Signature);
    assert_eq!(public.verify_file(&hash(FILE), &claimed).unwrap(), "trusted ünï");
}

#[test]
fn files_of_either_kind_are_checked_in_any_pieces() {
    let public = PublicKey::from_text(PUBLIC).unwrap();
    for (text, comment) in [(PREHASHED, "trusted ünï"), (LEGACY, "timestamp:1795261181\tfile:f")] {
        let signature = Signature::from_text(text).unwrap();
        for len in 1..=FILE.len() {
            let check = |pieces: &mut dyn Iterator<Item = &[u8]>| {
                let mut verification = public.verification(&signature).unwrap();
                pieces.for_each(|piece| verification.update(piece));
                verification.finish()
            };
            assert_eq!(check(&mut FILE.chunks(len)).unwrap(), comment);
            assert_eq!(check(&mut FILE.chunks(len).skip(1)).unwrap_err().kind(), &ErrorKind::Signature);
        }
        let other = SigningKey::from_seed(&[9; 32]).verifying_key();
        assert_eq!(PublicKey::from(other).verification(&signature).unwrap_err().kind(), &ErrorKind::KeyId);
    }
}

#[test]
fn changed_signatures_are_refused() {
    let public = PublicKey::from_text(PUBLIC).unwrap();
    let check = |text: &str| {
        Signature::from_text(text).and_then(|made| public.verify_file(FILE, &made).map(String::from))
    };
    assert_eq!(
        check(&PREHASHED.replace("trusted ünï", "trusted uni")).unwrap_err().kind(),
        &ErrorKind::Signature
    );
    assert_eq!(check(&PREHASHED.replace("ünï\n", "ünï \n")).unwrap_err().kind(), &ErrorKind::Signature);
    // The untrusted comment is not signed.
    assert!(check(&PREHASHED.replace("my comment", "yours")).is_ok());
    // Another key's id; another key under this id.
    let other = SecretKey::from(SigningKey::from_seed(&[1; 32]));
    let made = other.sign(&hash(FILE), "", "").unwrap();
    assert_eq!(public.verify_file(FILE, &made).unwrap_err().kind(), &ErrorKind::KeyId);
    let posing = SecretKey::new(public.id(), SigningKey::from_seed(&[1; 32]));
    let made = posing.sign(&hash(FILE), "", "").unwrap();
    assert_eq!(public.verify_file(FILE, &made).unwrap_err().kind(), &ErrorKind::Signature);
    // Every bit of both signatures.
    for line in [1, 3] {
        let lines: Vec<&str> = PREHASHED.lines().collect();
        let good = Base64::decode_vec(lines[line]).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut lines = lines.clone();
            let changed = Base64::encode_string(&bytes);
            lines[line] = &changed;
            assert!(check(&lines.join("\n")).is_err(), "line {line} bit {bit}");
        }
    }
}

/// A second spelling of the last letter's unused bits would be a second signature.
#[test]
fn base64_has_one_spelling() {
    for text in [PREHASHED, LEGACY] {
        assert!(text.contains("A==\n") || text.contains("g==\n"));
        for (good, bad) in [("A==\n", "B==\n"), ("Bg==\n", "Bh==\n"), ("BA==\n", "BP==\n")] {
            if text.contains(good) {
                assert_eq!(
                    Signature::from_text(&text.replace(good, bad)).unwrap_err().code(),
                    "cy-text",
                    "{bad}"
                );
            }
        }
    }
}

#[test]
fn malformed_texts_are_refused() {
    let signatures = [
        String::new(),
        PREHASHED.lines().take(3).collect::<Vec<_>>().join("\n"),
        PREHASHED.replace("untrusted comment: ", "comment: "),
        PREHASHED.replace("\ntrusted comment: ", "\ntrusted: "),
        PREHASHED.replace("RUTp", "RVTp"),
        PREHASHED.replace("RUTp", "AUTp"),
        PREHASHED.replace("RUTp", "RU p"),
        PREHASHED.replace("RUTp", ""),
        PREHASHED.replace("RUTp", "RUTpRUTp"),
        format!("{PREHASHED}x"),
        format!("{PREHASHED}{PREHASHED}"),
        format!("{}{PREHASHED}", "x".repeat(MAX_TEXT_LEN)),
    ];
    for text in signatures {
        assert_eq!(Signature::from_text(&text).unwrap_err().code(), "cy-text", "{text}");
    }
    for text in ["", "RWTp", "untrusted comment: x", &format!("{PUBLIC}x"), &PUBLIC.replace("RWTp", "RUTp")] {
        assert_eq!(PublicKey::from_text(text).unwrap_err().code(), "cy-text", "{text}");
    }
    let weak = format!("{}\n", Base64::encode_string(&[&b"Ed12345678"[..], &[0; 32]].concat()));
    assert_eq!(PublicKey::from_text(&weak).unwrap_err().code(), "cy-weak-key");

    let secret = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Base64::decode_vec(SECRET.lines().nth(1).unwrap()).unwrap();
        edit(&mut bytes);
        *SecretKey::from_text(&format!("{UNTRUSTED}x\n{}", Base64::encode_string(&bytes))).unwrap_err().kind()
    };
    assert_eq!(secret(&|bytes| bytes[2..4].copy_from_slice(b"Sc")), ErrorKind::MinisignPassword);
    assert_eq!(secret(&|bytes| bytes[70] ^= 1), ErrorKind::KeyMismatch);
    assert_eq!(secret(&|bytes| bytes[100] ^= 1), ErrorKind::KeyMismatch);
    for edit in [
        &(|bytes: &mut Vec<u8>| bytes[0] ^= 1) as &dyn Fn(&mut Vec<u8>),
        &|bytes| bytes[3] = 9,
        &|bytes| bytes[5] = 9,
        &|bytes| bytes.push(0),
        &|bytes| bytes.truncate(157),
    ] {
        assert_eq!(secret(edit).code(), "cy-text");
    }
    assert!(SecretKey::from_text(SECRET.lines().nth(1).unwrap()).is_err());
    assert!(SecretKey::from_text("untrusted comment: x").is_err());
}

#[test]
fn comments_are_one_line() {
    let key = SecretKey::from(SigningKey::from_seed(&[1; 32]));
    assert_eq!(key.sign(&[0; 64], "a\nb", "").unwrap_err().code(), "cy-comment");
    assert_eq!(key.sign(&[0; 64], "", "a\rb").unwrap_err().code(), "cy-comment");
    assert_eq!(key.sign(&[0; 64], &"x".repeat(1001), "").unwrap_err().code(), "cy-too-long");
    assert_eq!(key.public().id().0[..], key.public().key().fingerprint().as_bytes()[..8]);
    assert!(!format!("{key:?}").contains("[1, 1"));
    assert_eq!(PublicKey::new(key.public().id(), *key.public().key()), PublicKey::from(*key.public().key()));
    assert_eq!(key.into_key().expose_seed(), &[1; 32]);
}

proptest! {
    #[test]
    fn texts_there_and_back(seed: [u8; 32], id: [u8; 8], trusted in "[ -~é]{0,50}", untrusted in "[ -~]{0,50}", data: Vec<u8>) {
        let key = SecretKey::new(KeyId(id), SigningKey::from_seed(&seed));
        prop_assert_eq!(SecretKey::from_text(key.to_text().as_str()).unwrap().public(), key.public());
        prop_assert_eq!(PublicKey::from_text(&key.public().to_string()).unwrap(), key.public());
        let made = key.sign(&hash(&data), &trusted, &untrusted).unwrap();
        let read = Signature::from_text(&made.to_string()).unwrap();
        prop_assert_eq!(&read, &made);
        prop_assert_eq!(key.public().verify_file(&data, &read).unwrap(), &trusted);
    }

    #[test]
    fn random_text_does_not_panic(text: String, at: prop::sample::Index, letter: char) {
        for good in [SECRET, PUBLIC, PREHASHED, LEGACY] {
            let mut letters: Vec<char> = good.chars().collect();
            let at = at.index(letters.len());
            letters[at] = letter;
            let changed: String = letters.into_iter().collect();
            for text in [&text, &changed] {
                let _ = SecretKey::from_text(text);
                let _ = PublicKey::from_text(text);
                let _ = Signature::from_text(text);
            }
        }
    }
}
