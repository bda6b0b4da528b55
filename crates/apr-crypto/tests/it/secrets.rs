//! Secret types: what they do not do, and that what must not repeat does not.

use std::collections::HashSet;
use std::fmt::Debug;

use apr_crypto::{
    AesKey, Agreement, Argon2Cost, Argon2Limits, ChunkedEncryptor, FileKey, LockedKey, MacKey, OsRandom,
    Password, RecipientSecret, Salt, SecretKey, SecretText, SigningKey, StoredKey, inference, minisign,
};

/// Compiles only if `$type` does not have `$trait`: with it, the two candidates for `probe` are ambiguous.
macro_rules! lacks {
    ($($type:ty),* => $bound:path) => {
        $({
            trait Probe<A> {
                fn probe() {}
            }
            impl<T: ?Sized> Probe<()> for T {}
            #[allow(dead_code)]
            struct Has;
            impl<T: ?Sized + $bound> Probe<Has> for T {}
            <$type as Probe<_>>::probe();
        })*
    };
}

#[test]
fn secrets_cannot_be_copied_printed_or_serialized() {
    lacks!(AesKey, FileKey, MacKey, Agreement, Password, RecipientSecret, SigningKey, SecretKey, LockedKey, StoredKey,
        SecretText, minisign::SecretKey, inference::Request, inference::PendingRequest => Clone);
    lacks!(AesKey, FileKey, MacKey, Agreement, Password, RecipientSecret, SigningKey, SecretKey, LockedKey, StoredKey,
        SecretText, minisign::SecretKey, inference::Request, inference::PendingRequest => std::fmt::Display);
    lacks!(AesKey, FileKey, MacKey, Agreement, Password, RecipientSecret, SigningKey, SecretKey, LockedKey, StoredKey,
        SecretText, minisign::SecretKey, inference::Request, inference::PendingRequest => serde::Serialize);
    lacks!(AesKey, FileKey, MacKey, Agreement, Password, RecipientSecret, SigningKey, SecretKey, SecretText,
        minisign::SecretKey => PartialEq);
    lacks!(AesKey, FileKey, MacKey, Agreement, Password, RecipientSecret, SigningKey, SecretKey, SecretText,
        minisign::SecretKey => AsRef<[u8]>);
    #[cfg(feature = "p256")]
    {
        use apr_crypto::p256;
        lacks!(p256::SigningKey => Clone);
        lacks!(p256::SigningKey => std::fmt::Display);
        lacks!(p256::SigningKey => serde::Serialize);
        lacks!(p256::SigningKey => PartialEq);
    }
}

/// No byte of a secret in its `Debug`, in decimal or hexadecimal.
#[test]
fn debug_shows_no_content() {
    fn check(secret: &impl Debug) {
        for text in [format!("{secret:?}"), format!("{secret:#?}")] {
            assert!(
                !text.contains("90") && !text.to_lowercase().contains("5a5a") && text.len() < 60,
                "{text}"
            );
        }
    }
    let bytes = [0x5a; 32];
    let recipient = RecipientSecret::from_bytes(&bytes);
    let (_, agreement) = recipient.public().agree(&mut OsRandom).unwrap();
    check(&agreement);
    check(&agreement.mac_key(b""));
    let texts = (format!("{agreement:?}"), format!("{:?}", agreement.mac_key(b"")));
    assert_eq!(texts, ("Agreement(..)".into(), "MacKey(..)".into()));
    check(&recipient.to_text());
    check(&SecretKey::from(RecipientSecret::from_bytes(&bytes)));
    check(&StoredKey::Open(SigningKey::from_seed(&bytes).into()));
    check(&recipient);
    check(&SigningKey::from_seed(&bytes));
    check(&AesKey::from_bytes(&bytes));
    check(&FileKey::from_bytes(&bytes));
    check(&Password::new(bytes.to_vec()));
    check(&ChunkedEncryptor::new(&FileKey::from_bytes(&bytes), &mut OsRandom, b"", &mut Vec::new()).unwrap());
}

/// 10,000 of each: none twice.
#[test]
fn nothing_random_repeats() {
    let (rng, mut seen) = (&mut OsRandom, HashSet::new());
    let (key, file_key) = (AesKey::generate(rng).unwrap(), FileKey::generate(rng).unwrap());
    let mut note = |bytes: &[u8]| assert!(seen.insert(bytes.to_vec()));
    let mut out = Vec::new();
    let public = RecipientSecret::generate(rng).unwrap().public();
    for _ in 0..10_000 {
        note(&Salt::generate(rng).unwrap().to_bytes());
        let (nonce, _) = key.seal_in_place(rng, b"", &mut []).unwrap();
        note(&nonce.to_bytes());
        out.clear();
        drop(ChunkedEncryptor::new(&file_key, rng, b"", &mut out).unwrap());
        note(&out[..24]);
        // Salt, commitment, key, nonce of a chunked message: all from the salt and the file's key, which is new as well.
        note(&out[24..56]);
        let file_key = FileKey::generate(rng).unwrap();
        note(&file_key.mac_key("x").tag(&[]));
        let stanza = file_key.wrap_for(rng, &public, b"").unwrap().to_bytes();
        note(&stanza[..32]);
        note(&stanza[32..]);
        let (ephemeral, key) = public.agree_v1(rng).unwrap();
        note(&ephemeral.to_bytes());
        note(&key.commitment("x").to_bytes());
    }
    for _ in 0..1_000 {
        note(RecipientSecret::generate(rng).unwrap().expose());
        note(SigningKey::generate(rng).unwrap().expose_seed());
    }
}

/// The public parts of 2,000 requests: ephemeral key, nonce, ciphertext, and the token inside.
#[test]
fn no_request_repeats() {
    let (rng, mut seen) = (&mut OsRandom, HashSet::new());
    let owner = RecipientSecret::generate(rng).unwrap();
    let options = inference::RequestOptions::default();
    for _ in 0..2_000 {
        let (request, _) =
            inference::encrypt_for_model(rng, &owner.public(), b"", b"same", &options).unwrap();
        let token = *inference::decrypt_request(&owner, b"", &request).unwrap().token().id();
        for part in [&request[8..40], &request[40..52], &request[52..], &token] {
            assert!(seen.insert(part.to_vec()));
        }
    }
}

/// Randomness that fails makes everything fail that needs it.
#[test]
fn no_randomness_no_secrets() {
    struct Broken;
    impl apr_crypto::Rng for Broken {
        fn fill(&mut self, _: &mut [u8]) -> Result<(), apr_crypto::Error> {
            Err(apr_crypto::ErrorKind::Randomness.into())
        }
    }
    let rng = &mut Broken;
    let (key, file_key) = (AesKey::from_bytes(&[1; 32]), FileKey::from_bytes(&[1; 32]));
    let recipient = RecipientSecret::from_bytes(&[1; 32]);
    let limits = Argon2Limits::default().with_memory_kib(8..=8);
    let cost = Argon2Cost::new(8, 1, 1, &limits).unwrap();
    let password = Password::from("x");
    let mut buffer = *b"plaintext";
    let mut out = Vec::new();
    let codes = [
        AesKey::generate(rng).unwrap_err(),
        FileKey::generate(rng).unwrap_err(),
        RecipientSecret::generate(rng).unwrap_err(),
        SigningKey::generate(rng).unwrap_err(),
        Salt::generate(rng).unwrap_err(),
        key.seal(rng, b"", b"x").unwrap_err(),
        key.seal_in_place(rng, b"", &mut buffer).unwrap_err(),
        recipient.public().agree(rng).unwrap_err(),
        recipient.public().agree_v1(rng).unwrap_err(),
        file_key.wrap_for(rng, &recipient.public(), b"").unwrap_err(),
        file_key.wrap_with_password(rng, &password, &cost, b"").unwrap_err(),
        file_key.seal_chunked(rng, b"", b"x").unwrap_err(),
        ChunkedEncryptor::new(&file_key, rng, b"", &mut out).unwrap_err(),
        SecretKey::from(RecipientSecret::from_bytes(&[1; 32])).lock(rng, &password, &cost).unwrap_err(),
    ];
    assert!(codes.iter().all(|error| error.code() == "cy-randomness"));
    assert_eq!((&buffer, out.len()), (b"plaintext", 0));
}
