//! Users' types: what is refused, with bounded memory, time and stack.

use std::collections::BTreeMap;

use apr_container::{
    Error, ErrorKind, Limits, ModelType, PayloadLayout, ReadOptions, SaveOptions, Serde,
    encode_payload_to_vec, load_from_bytes_with, to_vec,
};
use serde::de::DeserializeOwned;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Serialize};

use crate::serde_codec::{Choice, decode, encode};

#[track_caller]
fn assert_refused<T: DeserializeOwned>(bytes: &[u8], code: &str, at: u64) -> Error {
    let error = decode::<T>(bytes).map(drop).unwrap_err();
    assert_eq!((error.code(), error.offset()), (code, Some(at)), "{error}");
    error
}

fn claim(len: u64) -> [u8; 8] {
    len.to_le_bytes()
}

#[test]
fn claimed_lengths_are_compared_with_the_bytes_left() {
    for len in [9, 1 << 32, 1 << 46, 1 << 63, u64::MAX] {
        let bytes = [&claim(len)[..], b"12345678"].concat();
        assert_refused::<String>(&bytes, "ac-count", 0);
        assert_refused::<serde_json::value::Value>(&bytes, "ac-unsupported", 0);
    }
    for len in [1 << 32, 1 << 63, u64::MAX] {
        let bytes = [&claim(len)[..], b"12345678"].concat();
        assert_refused::<Vec<u8>>(&bytes, "ac-count", 0);
        assert_refused::<Vec<[f64; 32]>>(&bytes, "ac-count", 0);
        assert_refused::<BTreeMap<String, u8>>(&bytes, "ac-count", 0);
        assert_refused::<Vec<()>>(&bytes, "ac-count", 0);
    }
    // Elements might take no bytes: these are noticed when they run out.
    assert_refused::<Vec<u32>>(&[&claim(3)[..], &[0; 8]].concat(), "ac-payload-end", 16);
}

#[test]
fn elements_without_bytes_are_counted_over_the_whole_payload() {
    assert_eq!(decode::<Vec<()>>(&claim(1 << 20)).unwrap().len(), 1 << 20);
    let error = assert_refused::<Vec<()>>(&claim((1 << 20) + 1), "ac-count", 0);
    assert!(matches!(error.kind(), ErrorKind::Count { .. }), "{error}");
    // Lists of them, each within the bound.
    let lists = [&claim(3)[..], &claim(1 << 19), &claim(1 << 19), &claim(1 << 19)].concat();
    let error = decode::<Vec<Vec<()>>>(&lists).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Count { .. } | ErrorKind::Limit { .. }), "{error}");
    // Bytes that follow the list do not raise the bound.
    let followed = [claim((1 << 20) + 4), claim(0)].concat();
    let error = assert_refused::<(Vec<()>, u64)>(&followed, "ac-limit", 8);
    assert!(matches!(error.kind(), ErrorKind::Limit { limit: 0x10_0000, .. }), "{error}");
    assert_refused::<(BTreeMap<(), ()>, u64)>(&followed, "ac-limit", 8);

    let limits = Limits { empty_elements: 2, ..Limits::DEFAULT };
    let file = to_vec(&Serde(vec![(); 3]), ModelType::Custom, &SaveOptions::default()).unwrap();
    let read = |limits| {
        let options = ReadOptions::STRICT.with_limits(limits);
        load_from_bytes_with::<Serde<Vec<()>>>(&file, ModelType::Custom, &options)
            .map(|Serde(units)| units.len())
    };
    assert_eq!(read(limits).unwrap_err().code(), "ac-count");
    assert_eq!(read(Limits { empty_elements: 3, ..Limits::DEFAULT }).unwrap(), 3);
}

#[derive(Debug, Serialize, Deserialize)]
struct Chain {
    next: Option<Box<Chain>>,
}

/// Stands for itself without a single byte.
#[derive(Debug, Serialize, Deserialize)]
struct Endless(Box<Endless>);

#[derive(Debug, Serialize, Deserialize)]
enum Nested {
    Leaf,
    Inner(Box<Nested>),
}

#[derive(Debug, Serialize, Deserialize)]
struct Branches {
    branches: Vec<Branches>,
}

#[test]
fn types_that_contain_themselves_do_not_exhaust_the_stack() {
    let error = assert_refused::<Chain>(&[1; 1_000_000], "ac-limit", 64);
    assert!(matches!(error.kind(), ErrorKind::Limit { limit: 128, .. }), "{error}");
    assert_refused::<Endless>(&[], "ac-limit", 0);
    assert_refused::<Nested>(&[1, 0, 0, 0].repeat(100_000), "ac-limit", 512);
    assert!(matches!(
        decode::<Nested>(&[&[1, 0, 0, 0].repeat(127)[..], &[0; 4]].concat()),
        Ok(Nested::Inner(_))
    ));
    // Each level announces as many elements as there are bytes; memory for them is not given at every level.
    let greedy = claim(1000).repeat(2000);
    let error = decode::<Branches>(&greedy).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { .. }), "{error}");

    let limits = Limits { payload_depth: 3, ..Limits::DEFAULT };
    let file = |depth: usize| {
        let mut nested = Nested::Leaf;
        for _ in 1..depth {
            nested = Nested::Inner(Box::new(nested));
        }
        to_vec(&Serde(nested), ModelType::Custom, &SaveOptions::default()).unwrap()
    };
    let read = |depth| {
        let options = ReadOptions::STRICT.with_limits(limits);
        load_from_bytes_with::<Serde<Nested>>(&file(depth), ModelType::Custom, &options)
    };
    assert!(read(3).is_ok());
    assert!(matches!(read(4).unwrap_err().kind(), ErrorKind::Limit { found: 4, limit: 3, .. }));
}

#[test]
fn values_that_no_type_has_are_refused() {
    assert_refused::<bool>(&[2], "ac-bool", 0);
    assert_refused::<Option<u8>>(&[2, 0], "ac-option", 0);
    let error = assert_refused::<(u8, Choice)>(&[0, 4, 0, 0, 0], "ac-custom", 1);
    assert!(error.to_string().contains("variant index"), "{error}");
    assert_refused::<String>(&[&claim(2)[..], b"\xff\xfe"].concat(), "ac-utf8", 0);
    for invalid in
        [&b"\x80"[..], b"\xc1\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xc3\x28"]
    {
        assert_refused::<char>(invalid, "ac-utf8", 0);
    }
    assert_refused::<char>(b"\xf0\x9f", "ac-payload-end", 2);
    let error = assert_refused::<std::num::NonZeroU8>(&[0], "ac-custom", 1);
    assert!(error.to_string().contains("nonzero"), "{error}");
    assert_refused::<u16>(&[0, 0, 0], "ac-payload-trailing", 2);
    assert_eq!(decode::<f32>(&[0, 0, 0xA0, 0x7F]).unwrap().to_bits(), 0x7FA0_0000);
}

#[test]
fn types_that_need_a_self_describing_format_are_refused() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Untagged {
        Number(u8),
    }
    #[derive(Debug, Serialize, Deserialize)]
    struct Flattened {
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }
    let error = assert_refused::<Untagged>(&encode(&Untagged::Number(1)), "ac-unsupported", 0);
    assert!(error.to_string().contains("untagged"), "{error}");
    assert_refused::<serde::de::IgnoredAny>(&[0], "ac-unsupported", 0);
    struct Key;
    impl<'de> Deserialize<'de> for Key {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_identifier(serde::de::IgnoredAny).map(|_| Self)
        }
    }
    assert_refused::<(u8, Key)>(&[0], "ac-unsupported", 1);
    let refused = |error: Error| (error.code(), error.to_string().contains("not known beforehand"));
    let flattened = Flattened { rest: BTreeMap::new() };
    assert_eq!(
        refused(encode_payload_to_vec(&Serde(flattened), PayloadLayout::V0_72).unwrap_err()),
        ("ac-unsupported", true)
    );
}

#[test]
fn what_a_type_says_when_it_refuses_to_be_written_is_passed_on() {
    struct Refusing;
    impl Serialize for Refusing {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("weights are on another machine"))
        }
    }
    struct Lying(usize);
    impl Serialize for Lying {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut list = serializer.serialize_seq(Some(self.0))?;
            list.serialize_element(&1_u8)?;
            list.end()
        }
    }
    struct LyingMap;
    impl Serialize for LyingMap {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(0))?;
            map.serialize_entry(&1_u8, &2_u8)?;
            map.end()
        }
    }
    fn refusal<T: Serialize>(value: T) -> Error {
        encode_payload_to_vec(&Serde(value), PayloadLayout::V0_72).unwrap_err()
    }
    let error = refusal(Refusing);
    assert_eq!((error.code(), error.to_string().as_str()), ("ac-custom", "weights are on another machine"));
    assert!(encode_payload_to_vec(&Serde(Lying(1)), PayloadLayout::V0_72).is_ok());
    assert_eq!(refusal(Lying(0)).code(), "ac-value");
    assert_eq!(refusal(Lying(2)).code(), "ac-value");
    assert_eq!(refusal(LyingMap).code(), "ac-value");
}
