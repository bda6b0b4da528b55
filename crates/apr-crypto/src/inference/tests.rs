//! Requests and responses against the specification, tampering, confusion and repetition.

use alloc::format;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::hex::hex;
use crate::random::fixed::{Bytes, Seeded};

const CONTEXT: &[u8] = b"ctx";
const NOW: u64 = 1_795_241_427;

fn owner() -> RecipientSecret {
    RecipientSecret::from_bytes(&[0x22; 32])
}

fn asked(input: &[u8], options: &RequestOptions) -> (Vec<u8>, PendingRequest) {
    encrypt_for_model(&mut Seeded(3), &owner().public(), CONTEXT, input, options).unwrap()
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    *result.map(drop).unwrap_err().kind()
}

/// Computed by an implementation of `docs/private-inference.md` in Python, over OpenSSL.
#[test]
fn messages_are_those_of_the_specification() {
    let random = [[0x11; 32].as_slice(), &[0x33; 16], &[0x44; 12]].concat();
    let options =
        RequestOptions::default().sent_at(NOW).with_padding(Padding::Multiple(NonZeroU32::new(48).unwrap()));
    let made = encrypt_for_model(&mut Bytes(&random), &owner().public(), CONTEXT, b"input", &options);
    let (request, pending) = made.unwrap();
    let expected = "6170722d61736b017b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13444444444444444444\
                    444444b49cf21fef7809b45b538f5c9b501720d466db27f409a40b61d397ce2123c96163ae434974ae138e114b8bc6a9\
                    5d8014f207cdf3d856bc72c95589f75247479c";
    assert_eq!(request, hex(expected));
    let opened = decrypt_request(&owner(), CONTEXT, &request).unwrap();
    assert_eq!((opened.input(), opened.token().id()), (b"input".as_slice(), &[0x33; 16]));
    assert_eq!(opened.token().sent_at(), Some(NOW));

    let response = encrypt_response(&mut Bytes(&[0x55; 12]), &opened, b"output", Padding::None).unwrap();
    let expected = "6170722d616e7301555555555555555555555555ee3fa9b8b01a87d59e8a244f6947a1dafb77a5a1550bee24c8b0f10881\
                    9b";
    assert_eq!(response, hex(expected));
    assert_eq!(decrypt_response(&pending, &response).unwrap(), b"output");
}

type Open<'a> = &'a dyn Fn(&[u8]) -> Result<(), Error>;

#[test]
fn every_bit_and_every_length_counts() {
    let (request, pending) = asked(b"37.2", &RequestOptions::default());
    let opened = decrypt_request(&owner(), CONTEXT, &request).unwrap();
    let response = encrypt_response(&mut Seeded(4), &opened, b"0.93", Padding::None).unwrap();
    let open_request = |bytes: &[u8]| decrypt_request(&owner(), CONTEXT, bytes).map(drop);
    let open_response = |bytes: &[u8]| decrypt_response(&pending, bytes).map(drop);
    let directions: [(&[u8], Open<'_>, &str); 2] =
        [(&request, &open_request, REQUEST), (&response, &open_response, RESPONSE)];
    for (good, open, expected) in directions {
        open(good).unwrap();
        let mut bytes = good.to_vec();
        for bit in 0..good.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let kind = kind(open(&bytes));
            let right = match bit / 8 {
                0..8 => kind == ErrorKind::Message { expected },
                // A changed ephemeral key can leave its canonical encoding.
                8..40 if expected == REQUEST => matches!(kind, ErrorKind::Open | ErrorKind::InvalidKey),
                _ => kind == ErrorKind::Open,
            };
            assert!(right, "bit {bit}: {kind}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let front = good.len() - if expected == REQUEST { 36 } else { 12 };
        for len in 0..good.len() {
            let kind = kind(open(&good[..len]));
            let short = kind == ErrorKind::Message { expected } && len < front;
            assert!(short || kind == ErrorKind::Open, "{len}: {kind}");
        }
        let longer = [good, b"\0"].concat();
        assert_eq!(kind(open(&longer)), ErrorKind::Open);
    }
}

#[test]
fn other_keys_contexts_directions_and_requests_open_nothing() {
    let rng = &mut Seeded(8);
    let public = owner().public();
    let options = RequestOptions::default();
    let (one, pending_one) = encrypt_for_model(rng, &public, CONTEXT, b"same", &options).unwrap();
    let (two, pending_two) = encrypt_for_model(rng, &public, CONTEXT, b"same", &options).unwrap();
    assert_eq!(kind(decrypt_request(&RecipientSecret::from_bytes(&[9; 32]), CONTEXT, &one)), ErrorKind::Open);
    assert_eq!(kind(decrypt_request(&owner(), b"ctX", &one)), ErrorKind::Open);
    assert_eq!(kind(decrypt_request(&owner(), b"", &one)), ErrorKind::Open);
    // The ciphertext of one request under the ephemeral key of another.
    let mixed = [&one[..40], &two[40..]].concat();
    assert_eq!(kind(decrypt_request(&owner(), CONTEXT, &mixed)), ErrorKind::Open);

    let opened = decrypt_request(&owner(), CONTEXT, &one).unwrap();
    let response = encrypt_response(rng, &opened, b"0.93", Padding::None).unwrap();
    assert_eq!(decrypt_response(&pending_one, &response).unwrap(), b"0.93");
    assert_eq!(kind(decrypt_response(&pending_two, &response)), ErrorKind::Open);
    // A request thrown back as its own response, and the other way round.
    let thrown = [&RESPONSE_MAGIC, &one[40..]].concat();
    assert_eq!(kind(decrypt_response(&pending_one, &thrown)), ErrorKind::Open);
    assert_eq!(kind(decrypt_request(&owner(), CONTEXT, &response)), ErrorKind::Message { expected: REQUEST });
    let weak = [&REQUEST_MAGIC, [0; 32].as_slice(), &one[40..]].concat();
    assert_eq!(kind(decrypt_request(&owner(), CONTEXT, &weak)), ErrorKind::WeakKey);
}

#[test]
fn padded_messages_of_one_bucket_are_of_one_length() {
    let unit = NonZeroU32::new(1_000).unwrap();
    let lengths = |padding: Padding, lens: &[usize]| -> Vec<usize> {
        let options = RequestOptions::default().with_padding(padding);
        lens.iter().map(|len| asked(&[1; 3_000][..*len], &options).0.len() - 68).collect()
    };
    // Thirty-two bytes of token and length go with the input.
    assert_eq!(lengths(Padding::None, &[0, 1, 968]), [32, 33, 1_000]);
    assert_eq!(lengths(Padding::Multiple(unit), &[0, 968, 969]), [1_000, 1_000, 2_000]);
    assert_eq!(lengths(Padding::PowerOfTwo, &[0, 224, 225, 3_000]), [256, 256, 512, 4_096]);
    let opened = decrypt_request(&owner(), CONTEXT, &asked(b"x", &RequestOptions::default()).0).unwrap();
    let answers = [0, 5, 248].map(|len| {
        encrypt_response(&mut Seeded(1), &opened, &[2; 300][..len], Padding::PowerOfTwo).unwrap().len()
    });
    assert_eq!(answers, [292; 3]);
}

/// A body that only its sender can have made, and that is none: refused without a panic.
#[test]
fn lengths_and_padding_inside_are_checked() {
    let body = |len: u64, rest: &[u8]| [[7; 24].as_slice(), &len.to_le_bytes(), rest].concat();
    let good = Body::new(body(3, b"abc\0\0"), 24).unwrap();
    assert_eq!((good.fields(), good.content()), ([7; 24].as_slice(), b"abc".as_slice()));
    for bytes in [
        body(3, b"abc\0\x01"),
        body(6, b"abc\0\0"),
        body(u64::MAX, b"abc"),
        [7; 24].to_vec(),
        [7; 31].to_vec(),
        [7; 23].to_vec(),
        Vec::new(),
    ] {
        assert!(Body::new(bytes, 24).is_none());
    }
    // The same through the public function.
    let rng = &mut Seeded(5);
    let (ephemeral, agreement) = owner().public().agree(rng).unwrap();
    let key = direction(&agreement, REQUEST_INFO, CONTEXT);
    let sealed = key.seal(rng, &REQUEST_MAGIC, &[1; 30]).unwrap();
    let request = [&REQUEST_MAGIC, ephemeral.to_bytes().as_slice(), &sealed].concat();
    assert_eq!(kind(decrypt_request(&owner(), CONTEXT, &request)), ErrorKind::Message { expected: REQUEST });
}

fn token(sent_at: u64, id: u8) -> ReplayToken {
    ReplayToken::from_bytes(&[[id; 16].as_slice(), &sent_at.to_le_bytes()].concat()[..].try_into().unwrap())
}

#[test]
fn a_request_is_admitted_once() {
    assert!(ReplayGuard::new(10, 300).is_empty());
    let mut guard = ReplayGuard::new(10, 300);
    assert!(guard.is_empty());
    guard.admit(&token(NOW, 1), NOW).unwrap();
    assert_eq!(kind(guard.admit(&token(NOW, 1), NOW)), ErrorKind::Replay);
    guard.admit(&token(NOW, 2), NOW).unwrap();
    guard.admit(&token(NOW - 300, 1), NOW).unwrap();
    guard.admit(&token(NOW + 300, 1), NOW).unwrap();
    assert_eq!((guard.len(), guard.is_empty()), (4, false));
    for sent_at in [0, 1, NOW - 301, NOW + 301, u64::MAX] {
        let stale = ErrorKind::Stale { sent_at, earliest: NOW - 300, latest: NOW + 300 };
        assert_eq!(kind(guard.admit(&token(sent_at, 9), NOW)), stale);
    }
    // Forgotten when it could not come again, however the clock is set afterwards.
    guard.admit(&token(NOW + 301, 3), NOW + 301).unwrap();
    assert_eq!(guard.len(), 2);
    let stale = ErrorKind::Stale { sent_at: NOW, earliest: NOW + 1, latest: NOW + 601 };
    assert_eq!(kind(guard.admit(&token(NOW, 1), NOW)), stale);
    assert_eq!(format!("{guard:?}"), "ReplayGuard { capacity: 10, window: Some(300), len: 2, .. }");
}

#[test]
fn a_full_guard_refuses_and_forgets_nothing() {
    for mut guard in [ReplayGuard::new(2, 300), ReplayGuard::without_clock(2)] {
        guard.admit(&token(NOW, 1), NOW).unwrap();
        guard.admit(&token(NOW, 2), NOW).unwrap();
        assert_eq!(kind(guard.admit(&token(NOW, 3), NOW)), ErrorKind::ReplayGuardFull { capacity: 2 });
        assert_eq!(kind(guard.admit(&token(NOW, 1), NOW)), ErrorKind::Replay);
    }
    let mut guard = ReplayGuard::without_clock(2);
    guard.admit(&token(0, 1), 0).unwrap();
    assert_eq!(kind(guard.admit(&token(0, 1), u64::MAX)), ErrorKind::Replay);
    let mut none = ReplayGuard::new(0, 300);
    assert_eq!(kind(none.admit(&token(NOW, 1), NOW)), ErrorKind::ReplayGuardFull { capacity: 0 });
}

/// What the process before the restart may have admitted, and what it cannot have.
#[test]
fn a_restarted_guard_refuses_what_it_cannot_know() {
    let mut guard = ReplayGuard::new(10, 300).not_before(NOW + 301);
    for sent_at in [NOW - 1, NOW, NOW + 300] {
        assert!(matches!(kind(guard.admit(&token(sent_at, 1), NOW + 100)), ErrorKind::Stale { .. }));
    }
    guard.admit(&token(NOW + 301, 1), NOW + 301).unwrap();
}

#[test]
fn nothing_to_see_in_debug() {
    let (request, pending) = asked(b"37.2", &RequestOptions::default());
    let opened = decrypt_request(&owner(), CONTEXT, &request).unwrap();
    assert_eq!(opened.token().sent_at(), None);
    assert_eq!(format!("{pending:?} {opened:?}"), "PendingRequest(..) Request(..)");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_input_there_and_any_output_back(
        input in prop::collection::vec(any::<u8>(), 0..600),
        output in prop::collection::vec(any::<u8>(), 0..600),
        context in prop::collection::vec(any::<u8>(), 0..40),
        unit in 1_u32..400,
        seed in any::<u32>(),
    ) {
        let rng = &mut Seeded(seed.into());
        for padding in [Padding::None, Padding::PowerOfTwo, Padding::Multiple(NonZeroU32::new(unit).unwrap())] {
            let options = RequestOptions::default().with_padding(padding);
            let (request, pending) =
                encrypt_for_model(rng, &owner().public(), &context, &input, &options).unwrap();
            let opened = decrypt_request(&owner(), &context, &request).unwrap();
            prop_assert_eq!(opened.input(), &input[..]);
            let response = encrypt_response(rng, &opened, &output, padding).unwrap();
            prop_assert_eq!(&decrypt_response(&pending, &response).unwrap(), &output);
        }
    }

    #[test]
    fn any_bytes_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decrypt_request(&owner(), CONTEXT, &bytes).is_err());
        if let Some(front) = bytes.first_chunk_mut() {
            *front = REQUEST_MAGIC;
        }
        prop_assert!(decrypt_request(&owner(), CONTEXT, &bytes).is_err());
    }
}
