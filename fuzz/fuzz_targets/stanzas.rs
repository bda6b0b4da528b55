//! Stanzas, ephemeral keys, roots and proofs of trees, lengths of chunked messages, requests and responses: any bytes are an
//! error or what they were written from, and what was changed proves and opens nothing.

#![no_main]

use apr_crypto::inference::{
    Padding, RequestOptions, decrypt_request, decrypt_response, encrypt_for_model, encrypt_response,
};
use apr_crypto::{
    Argon2Limits, ChunkedLayout, EphemeralPublic, FileKey, LeafLen, PasswordStanza, RecipientStanza,
    TreeAlgorithm, TreeHasher, TreeRoot, VerifiedReader,
};
use apr_fuzz::Choices;
use apr_fuzz::apr::protected::{Repeating, recipient};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    raw(input);
    let choices = &mut Choices::new(input);
    stanza(choices);
    lengths(choices);
    tree(choices);
    inference(choices);
});

/// The bytes as they are.
fn raw(input: &[u8]) {
    let secret = recipient();
    if let Some(bytes) = input.first_chunk::<{ RecipientStanza::LEN }>()
        && let Ok(stanza) = RecipientStanza::from_bytes(bytes)
    {
        assert_eq!(&stanza.to_bytes(), bytes);
        assert!(stanza.unwrap(&secret, b"context").is_err());
    }
    if let Some(bytes) = input.first_chunk::<{ PasswordStanza::LEN }>()
        && let Ok(stanza) = PasswordStanza::from_bytes(bytes, &Argon2Limits::default())
    {
        assert_eq!(&stanza.to_bytes(), bytes);
    }
    if let Some(bytes) = input.first_chunk::<32>()
        && let Ok(key) = EphemeralPublic::from_file(*bytes)
    {
        assert_eq!(&key.to_bytes(), bytes);
        assert!(secret.agree(&key).is_ok() && secret.agree_v1(&key).is_ok());
    }
    if let Some((bytes, rest)) = input.split_first_chunk::<{ TreeRoot::LEN }>()
        && let Ok(root) = TreeRoot::from_bytes(bytes)
    {
        assert_eq!(&root.to_bytes(), bytes);
        let _ = root.outboard_len();
        let offset = rest.first().copied().unwrap_or(0).into();
        if let Ok(leaves) = root.leaves(offset, rest.len() as u64) {
            let _ = root.proof_len(leaves.clone());
            // A root of other content: no bytes here prove to it.
            assert!(root.verify(leaves.clone(), rest, rest).is_err() || rest.is_empty() || leaves.is_empty());
            let _ = root.prove(leaves, &rest);
        }
        if let Ok(reader) = VerifiedReader::new(root, rest, rest) {
            let mut out = vec![0xA5; rest.len()];
            let read = reader.read_exact_at(0, &mut out);
            assert!(read.is_err() && out.iter().all(|byte| *byte == 0) || rest.is_empty());
        }
    }
    assert!(decrypt_request(&secret, b"context", input).is_err());
}

fn flip(bytes: &mut [u8], choices: &mut Choices<'_>) {
    let at = (choices.below(256) << 8 | choices.below(256)) % bytes.len();
    bytes[at] ^= 1 << choices.below(8);
}

/// A stanza with one bit of it changed.
fn stanza(choices: &mut Choices<'_>) {
    let (secret, rng) = (recipient(), &mut Repeating(choices.byte().into()));
    let key = FileKey::from_bytes(&[choices.byte(); 32]);
    let stanza = key.wrap_for(rng, &secret.public(), b"context").expect("randomness");
    let tag = |key: &FileKey| key.mac_key("x").tag(&[]);
    assert_eq!(tag(&stanza.unwrap(&secret, b"context").expect("sound")), tag(&key));
    let mut bytes = stanza.to_bytes();
    flip(&mut bytes, choices);
    let opened = RecipientStanza::from_bytes(&bytes).and_then(|stanza| stanza.unwrap(&secret, b"context"));
    assert!(opened.is_err());
}

/// Lengths of any size, where the arithmetic could overflow.
fn lengths(choices: &mut Choices<'_>) {
    let mut number = || {
        let wide = u64::from_le_bytes(std::array::from_fn(|_| choices.byte()));
        wide >> choices.below(64)
    };
    let (len, offset, count) = (number(), number(), number());
    if let Ok(layout) = ChunkedLayout::of_plaintext(len) {
        assert_eq!(ChunkedLayout::of_sealed(layout.sealed_len()).expect("of a message"), layout);
    }
    if let Ok(layout) = ChunkedLayout::of_sealed(len) {
        assert_eq!(layout.sealed_len(), len);
        assert_eq!(ChunkedLayout::of_plaintext(layout.plaintext_len()).expect("it fits"), layout);
        match layout.sealed_range(offset, count) {
            Ok(range) => {
                assert!(range.start >= 56 && range.start <= range.end && range.end <= len);
                assert!(offset.checked_add(count).is_some_and(|end| end <= layout.plaintext_len()));
                assert!(range.end - range.start >= count);
            }
            Err(_) => assert!(offset.checked_add(count).is_none_or(|end| end > layout.plaintext_len())),
        }
    }
    if let Ok(leaf) = LeafLen::new(len) {
        assert_eq!(leaf.get(), len);
    }
    for algorithm in [TreeAlgorithm::Blake3, TreeAlgorithm::Sha256] {
        let root = TreeRoot::new(algorithm, LeafLen::KIB_16, len, [7; 32]);
        assert_eq!(TreeRoot::from_bytes(&root.to_bytes()).expect("sound").to_bytes(), root.to_bytes());
        if let Ok(leaves) = root.leaves(offset, count) {
            assert!(leaves.start <= leaves.end);
            let _ = root.proof_len(leaves);
        }
        let _ = root.proof_len(offset..count);
    }
}

/// A tree over some content; a proof for some of its leaves; one bit of either changed.
fn tree(choices: &mut Choices<'_>) {
    let algorithm = choices.pick([TreeAlgorithm::Blake3, TreeAlgorithm::Sha256]);
    let leaf = LeafLen::new(1024 << choices.below(3)).expect("a power of two");
    let len = choices.below(12) * 1024 + choices.below(256) * choices.below(8);
    let content: Vec<u8> = (0..len).map(|idx| (idx / 3) as u8).collect();
    let mut hasher = TreeHasher::new(algorithm, leaf);
    let cut = choices.below(len + 1);
    hasher.update(&content[..cut]);
    hasher.update(&content[cut..]);
    let (root, mut outboard) = hasher.finish();
    assert_eq!((root.content_len(), root.outboard_len()), (len as u64, outboard.len() as u64));

    let begin = choices.below(len + 1);
    let count = (choices.below(256) * 32).min(len - begin);
    let leaves = root.leaves(begin as u64, count as u64).expect("inside");
    let mut data = content[leaves.start as usize..leaves.end as usize].to_vec();
    if let Ok(mut proof) = root.prove(leaves.clone(), &outboard) {
        assert_eq!(proof.len(), root.proof_len(leaves.clone()).expect("as proven"));
        root.verify(leaves.clone(), &data, &proof).expect("a proof");
        match choices.below(3) {
            0 if !data.is_empty() => flip(&mut data, choices),
            1 if !proof.is_empty() => flip(&mut proof, choices),
            2 if !proof.is_empty() => drop(proof.pop()),
            _ => proof.push(0),
        }
        assert!(root.verify(leaves, &data, &proof).is_err());
    }
    // A wrong hash beside the content makes reading fail, or was not needed.
    if !outboard.is_empty() {
        flip(&mut outboard, choices);
    }
    let reader = VerifiedReader::new(root, &content[..], &outboard[..]).expect("as long as it says");
    let mut out = vec![0xA5; count];
    match reader.read_exact_at(begin as u64, &mut out) {
        Ok(()) => assert_eq!(out, content[begin..begin + count]),
        Err(_) => assert!(out.iter().all(|byte| *byte == 0)),
    }
}

/// A request and its response, each with one bit changed.
fn inference(choices: &mut Choices<'_>) {
    let (secret, rng) = (recipient(), &mut Repeating(choices.byte().into()));
    let input: Vec<u8> = (0..choices.below(40)).map(|_| choices.byte()).collect();
    let padding = choices.pick([Padding::None, Padding::PowerOfTwo]);
    let options = RequestOptions::default().with_padding(padding).sent_at(choices.byte().into());
    let made = encrypt_for_model(rng, &secret.public(), b"context", &input, &options);
    let (mut request, pending) = made.expect("short");
    let asked = decrypt_request(&secret, b"context", &request).expect("sound");
    assert_eq!(asked.input(), input);
    let mut response = encrypt_response(rng, &asked, &input, padding).expect("short");
    assert_eq!(decrypt_response(&pending, &response).expect("sound"), input);
    flip(&mut request, choices);
    assert!(decrypt_request(&secret, b"context", &request).is_err());
    flip(&mut response, choices);
    assert!(decrypt_response(&pending, &response).is_err());
}
