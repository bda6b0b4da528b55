//! Decryption with fixed keys: changes by someone without the keys are refused, what anyone can encrypt is an error or a model,
//! and of a message in chunks no byte is read that was changed.

#![no_main]

use apr_container::v1::Container;
use apr_container::{
    Compression, Expect, LoadOptions, PayloadLayout, ReadOptions, UncheckedSignature, authenticate,
    encode_payload_to_vec, load_from_bytes_with,
};
use apr_crypto::Access;
use apr_crypto::{AesKey, ChunkedLayout, ChunkedReader, FileKey, RecipientSecret, SigningKey};
use apr_fuzz::Choices;
use apr_fuzz::apr::protected::{Repeating, by_anybody, changed, model, recipient, signer, sound};
use apr_models::AnyModel;
use libfuzzer_sys::fuzz_target;
use read_at::ReadAt as _;

const TOLERANT: ReadOptions = ReadOptions::COMPAT.with_unchecked_signature(UncheckedSignature::Allow);

fuzz_target!(|input: &[u8]| {
    let keys = Keys { secret: recipient(), signer: signer() };
    keys.open(input);
    let choices = &mut Choices::new(input);
    let signed = choices.rarely(2);
    let compression = choices.pick([Compression::None, Compression::LZ4, Compression::ZstdDefault]);
    keys.refuse(&sound(compression, signed), choices, signed);
    if let Some(file) = by_anybody(input) {
        keys.open(&file);
    }
    one_message(choices);
    chunks(choices);
});

struct Keys {
    secret: RecipientSecret,
    signer: SigningKey,
}

impl Keys {
    /// Any file: an error of ours, or a model.
    fn open(&self, file: &[u8]) {
        let access = Access::default().with_recipient(&self.secret);
        for options in [ReadOptions::STRICT, TOLERANT] {
            let options = LoadOptions { read: options, access };
            match load_from_bytes_with::<AnyModel>(file, Expect::AnyKnown, options) {
                Ok(model) => {
                    let _ = encode_payload_to_vec(&model, PayloadLayout::V0_72);
                }
                Err(error) => {
                    let code = error.code();
                    assert!(["ac-", "am-", "cy-"].iter().any(|prefix| code.starts_with(prefix)), "{code}");
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        // No trusted key signed it, whatever its content.
        let known = self.signer.verifying_key();
        let authentic = authenticate(file, &Access::default().with_trust(&known), &TOLERANT);
        assert!(authentic.is_err() || Container::from_bytes_with(file, &TOLERANT).is_ok());
    }

    /// A valid file that was changed without the keys.
    fn refuse(&self, good: &[u8], choices: &mut Choices<'_>, signed: bool) {
        let file = changed(good, choices);
        let known = self.signer.verifying_key();
        let mut access = Access::default().with_recipient(&self.secret);
        if signed {
            access = access.with_trust(&known);
        }
        let open = |file: &[u8], options: &ReadOptions| {
            let options = LoadOptions { read: *options, access };
            load_from_bytes_with::<AnyModel>(file, Expect::AnyKnown, options)
        };
        assert!(open(good, &ReadOptions::STRICT).is_ok());
        if file == good {
            return;
        }
        assert!(open(&file, &ReadOptions::STRICT).is_err(), "changed, and accepted");
        // The tolerant reader passes over bytes that belong to nothing. What it hands out is as it was.
        if let Ok(opened) = open(&file, &TOLERANT) {
            let encoded =
                |model: &AnyModel| encode_payload_to_vec(model, PayloadLayout::V0_72).expect("sound");
            let expected = encode_payload_to_vec(&model(), PayloadLayout::V0_72).expect("sound");
            assert_eq!(encoded(&opened), expected);
            let parts = |file: &[u8]| {
                let container = Container::from_bytes_with(file, &TOLERANT).expect("it was opened");
                (container.header().to_bytes(), container.metadata_bytes().to_vec())
            };
            assert_eq!(parts(&file), parts(good));
        }
        if signed {
            let trust = Access::default().with_trust(&known);
            if let Ok(authentic) = authenticate(&file, &trust, &TOLERANT) {
                let before = Container::from_bytes(good).and_then(|good| good.metadata()).expect("sound");
                assert_eq!(authentic.metadata(), &before);
            }
        }
    }
}

/// Bytes that do not come from this key open under it nowhere, and one bit is enough.
fn one_message(choices: &mut Choices<'_>) {
    let key = AesKey::from_bytes(&[3; 32]);
    let plain: Vec<u8> = (0..choices.below(80)).map(|_| choices.byte()).collect();
    let header: Vec<u8> = (0..choices.below(8)).map(|_| choices.byte()).collect();
    let rng = &mut Repeating(u64::from(choices.byte()));
    let mut sealed = key.seal(rng, &header, &plain).expect("short");
    assert_eq!(key.open(&header, &sealed).expect("sound"), plain);
    assert!(key.open(b"", &plain).is_err());
    let at = choices.below(sealed.len());
    sealed[at] ^= 1 << choices.below(8);
    assert!(key.open(&header, &sealed).is_err());
    sealed.truncate(at);
    assert!(key.open(&header, &sealed).is_err());
}

/// A message in chunks, changed at one place: what opens is what was sealed, and what does not leaves zeros.
fn chunks(choices: &mut Choices<'_>) {
    const CHUNK: usize = 16_384;
    let key = FileKey::from_bytes(&[5; 32]);
    let len = choices.below(4) * CHUNK + choices.below(256) * choices.below(64);
    let fill = choices.byte();
    let plain: Vec<u8> = (0..len).map(|idx| (idx / 7) as u8 ^ fill).collect();
    let mut sealed = key.seal_chunked(&mut Repeating(fill.into()), b"header", &plain).expect("short");
    let whole = sealed.len();
    let at = (choices.below(256) << 8 | choices.below(256)) % whole;
    match choices.below(6) {
        0 => sealed.truncate(at),
        1 => sealed.extend_from_slice(&plain[..at.min(len)]),
        2 => sealed.rotate_left(at),
        3 if whole > 56 + 2 * (CHUNK + 16) => {
            let (one, two) = sealed[56..56 + 2 * (CHUNK + 16)].split_at_mut(CHUNK + 16);
            one.swap_with_slice(two);
        }
        4 => {}
        _ => sealed[at] ^= 1 << choices.below(8),
    }
    if let Ok(layout) = ChunkedLayout::of_sealed(sealed.len() as u64) {
        assert_eq!(layout.sealed_len(), sealed.len() as u64);
    }
    match key.open_chunked(b"header", &sealed) {
        Ok(opened) => assert_eq!(opened, plain),
        Err(error) => assert!(["cy-open", "cy-chunked-length"].contains(&error.code()), "{error}"),
    }
    assert!(key.open_chunked(b"headex", &sealed).is_err());
    let Ok(reader) = ChunkedReader::open(&sealed, &key, b"header") else { return };
    // The last chunk is authentic, and with it the length.
    assert_eq!(reader.total_len(), len as u64);
    for _ in 0..4 {
        let begin = (choices.below(256) << 8 | choices.below(256)) % (len + 1);
        let count = (choices.below(256) * choices.below(256)).min(len - begin);
        let mut out = vec![0xA5; count];
        match reader.read_exact_at(begin as u64, &mut out) {
            Ok(()) => assert_eq!(out, plain[begin..begin + count]),
            Err(_) => assert!(out.iter().all(|byte| *byte == 0)),
        }
        assert!(reader.read_exact_at(begin as u64, &mut vec![0; len - begin + 1]).is_err());
    }
}
