//! Whole ways: a file for two recipients and a password, signed; a request and its answer.

use apr_crypto::{
    Argon2Cost, Argon2Limits, ChunkedReader, FileKey, LeafLen, OsRandom, Password, PasswordStanza,
    RecipientSecret, RecipientStanza, SigningKey, TreeAlgorithm, TreeHasher, TrustedKeys, dsse_pae,
};

#[test]
fn one_file_for_many() {
    let rng = &mut OsRandom;
    let (a, b, eve) = (
        RecipientSecret::generate(rng).unwrap(),
        RecipientSecret::generate(rng).unwrap(),
        RecipientSecret::generate(rng).unwrap(),
    );
    let password = Password::from("correct horse battery staple");
    let limits = Argon2Limits::default().with_memory_kib(8..=1024);
    let cost = Argon2Cost::new(64, 1, 1, &limits).unwrap();
    let id = b"sixteen byte id.";

    let file_key = FileKey::generate(rng).unwrap();
    let stanzas = [&a, &b].map(|to| file_key.wrap_for(rng, &to.public(), id).unwrap().to_bytes());
    let locked = file_key.wrap_with_password(rng, &password, &cost, id).unwrap().to_bytes();
    let header = [&stanzas[0][..], &stanzas[1], &locked].concat();
    let mac = file_key.mac_key("example header").tag(&[&header]);
    let content: Vec<u8> = (0..200_000_u32).map(|idx| (idx % 251) as u8).collect();
    let sealed = file_key.seal_chunked(rng, &header, &content).unwrap();

    for (who, stanza) in [(&a, 0), (&b, 1)] {
        let key = RecipientStanza::from_bytes(&stanzas[stanza]).unwrap().unwrap(who, id).unwrap();
        key.mac_key("example header").verify(&[&header], &mac).unwrap();
        let reader = ChunkedReader::open(&sealed, &key, &header).unwrap();
        let mut tensor = vec![0; 1000];
        reader.read_exact_at(123_456, &mut tensor).unwrap();
        assert_eq!(tensor, content[123_456..124_456]);
    }
    let key = PasswordStanza::from_bytes(&locked, &limits).unwrap().unwrap(&password, id).unwrap();
    assert_eq!(key.open_chunked(&header, &sealed).unwrap(), content);
    for stanza in &stanzas {
        let stanza = RecipientStanza::from_bytes(stanza).unwrap();
        assert_eq!(stanza.unwrap(&eve, id).unwrap_err().code(), "cy-open");
    }
    // Another header: the content does not open.
    let other = [&stanzas[1][..], &stanzas[0], &locked].concat();
    assert_eq!(key.open_chunked(&other, &sealed).unwrap_err().code(), "cy-open");
}

#[test]
fn a_signed_root_names_everything_that_is_needed() {
    let signer = SigningKey::from_seed(&[9; 32]);
    let trusted = TrustedKeys::parse(&format!("alice {}", signer.verifying_key())).unwrap();
    let mut hasher = TreeHasher::root_only(TreeAlgorithm::Blake3, LeafLen::MIB_1);
    hasher.update(b"weights");
    let (root, _) = hasher.finish();
    let statement = dsse_pae("application/example", &root.to_bytes());
    let signature = signer.sign(&statement);
    trusted.key_of("alice").unwrap().verify(&statement, &signature).unwrap();
    // The same bytes as another type are another statement.
    let other = dsse_pae("application/other", &root.to_bytes());
    assert!(signer.verifying_key().verify(&other, &signature).is_err());
}

/// A request to the holder of a key, and the answer under a key of its own.
#[test]
fn request_and_answer() {
    let rng = &mut OsRandom;
    let server = RecipientSecret::generate(rng).unwrap();
    let (ephemeral, client) = server.public().agree(rng).unwrap();
    let request = client.aes_key(b"example request").seal(rng, b"model 1", b"input").unwrap();

    let there = server.agree(&ephemeral).unwrap();
    assert_eq!(there.aes_key(b"example request").open(b"model 1", &request).unwrap(), b"input");
    let answer = there.aes_key(b"example answer").seal(rng, b"model 1", b"output").unwrap();
    assert_eq!(client.aes_key(b"example answer").open(b"model 1", &answer).unwrap(), b"output");
    // The request sent back is no answer.
    assert_eq!(client.aes_key(b"example answer").open(b"model 1", &request).unwrap_err().code(), "cy-open");
}
