//! Users' types: the bytes are bincode's, of the version the format's other implementations use and of its successor.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use apr_container::{
    Error, ModelType, PayloadLayout, SaveOptions, Serde, decode_payload_from_slice, encode_payload_to_vec,
    load_from_bytes, to_vec,
};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A value of every shape as aprender 0.10.0, 0.15.0 and aprender-core 0.72.3 write it: the same bytes.
const KITCHEN_SINK: &str = "\
    c860ea00286beeffffffffffffffff9cd08a006cca88000000000000008000000080a0c8eb85f3cce17f01c3a90a00000000\
    00000068c3a96c6c6f20e4b8960001030000000000000001020309010000000000000074ffff000001000200000000000000\
    0100000000000000610100000001000000000000006202000000040000000000000000000000010000000700000002000000\
    ff05000000000000000300000001010000000000000078000000000000000000000000001000000002000000000000000200\
    000000000000000000000000e03f000000000000e0bf00000000000000004d00000000000000";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Choice {
    Unit,
    New(u32),
    Tup(i8, i64),
    Struct { a: Option<String>, b: bool },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kitchen {
    u8: u8,
    u16: u16,
    u32: u32,
    u64: u64,
    i8: i8,
    i16: i16,
    i32: i32,
    i64: i64,
    f32: f32,
    f64: f64,
    bool: bool,
    char: char,
    string: String,
    none: Option<u16>,
    some: Option<Vec<u8>>,
    pair: (u8, String),
    array: [i16; 3],
    map: BTreeMap<String, u32>,
    choices: Vec<Choice>,
    unit: (),
    u128: u128,
    nested: Box<[Vec<f64>]>,
    usize: usize,
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    encode_payload_to_vec(&Serde(value), PayloadLayout::V0_72).unwrap()
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    decode_payload_from_slice::<Serde<T>>(bytes, PayloadLayout::V0_72, ModelType::Custom)
        .map(|Serde(value)| value)
}

/// All four ways there and back.
#[track_caller]
fn assert_agreement<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let bytes = encode(value);
    assert_eq!(bytes, bincode1::serialize(value).unwrap());
    let legacy = bincode2::config::legacy();
    assert_eq!(bytes, bincode2::serde::encode_to_vec(value, legacy).unwrap());
    assert_eq!(&decode::<T>(&bytes).unwrap(), value);
    assert_eq!(&bincode1::deserialize::<T>(&bytes).unwrap(), value);
    assert_eq!(&bincode2::serde::decode_from_slice::<T, _>(&bytes, legacy).unwrap().0, value);
}

#[test]
fn every_shape_is_read_and_written_as_peers_do() {
    let bytes: Vec<u8> = (0..KITCHEN_SINK.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&KITCHEN_SINK[at..at + 2], 16).unwrap())
        .collect();
    let expected = Kitchen {
        u8: 200,
        u16: 60_000,
        u32: 4_000_000_000,
        u64: u64::MAX,
        i8: -100,
        i16: -30_000,
        i32: -2_000_000_000,
        i64: i64::MIN,
        f32: -0.0,
        f64: 1e308,
        bool: true,
        char: 'é',
        string: "héllo 世".into(),
        none: None,
        some: Some(vec![1, 2, 3]),
        pair: (9, "t".into()),
        array: [-1, 0, 1],
        map: [("a".into(), 1), ("b".into(), 2)].into(),
        choices: vec![
            Choice::Unit,
            Choice::New(7),
            Choice::Tup(-1, 5),
            Choice::Struct { a: Some("x".into()), b: false },
        ],
        unit: (),
        u128: 1 << 100,
        nested: Box::new([vec![0.5, -0.5], vec![]]),
        usize: 77,
    };
    assert_eq!(decode::<Kitchen>(&bytes).unwrap(), expected);
    assert_eq!(encode(&expected), bytes);
    assert_agreement(&expected);
    for len in 0..bytes.len() {
        let error = decode::<Kitchen>(&bytes[..len]).unwrap_err();
        assert!(matches!(error.code(), "ac-payload-end" | "ac-count"), "{len}: {error}");
        assert!(error.offset().is_some_and(|at| at <= len as u64), "{len}: {error}");
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapper(Vec<Unit>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Pair(u8, char);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Tree {
    value: f32,
    #[serde(skip)]
    cache: Option<Vec<f32>>,
    children: Vec<Tree>,
}

#[test]
fn rarer_shapes_agree_as_well() {
    assert_agreement(&Unit);
    assert_agreement(&Wrapper(vec![Unit, Unit, Unit]));
    assert_agreement(&(Pair(1, '\0'), Pair(2, '\u{10FFFF}'), 'ß', '世'));
    assert_agreement(&(i128::MIN, u128::MAX, u8::MAX, i8::MIN));
    assert_agreement(&[(); 3]);
    assert_agreement(&(Some(Some(())), Some(None::<()>), None::<Option<()>>));
    assert_agreement(&BTreeMap::from([((1, 'a'), BTreeSet::from([1_u16, 2])), ((0, 'b'), BTreeSet::new())]));
    assert_agreement(&HashMap::from([("only".to_owned(), [0.5_f32; 4])]));
    assert_agreement(&Ok::<u8, String>(5));
    assert_agreement(&(std::time::Duration::new(5, 6), std::num::NonZeroU32::MIN, 3..5_usize));
    assert_agreement(&std::net::IpAddr::from([127, 0, 0, 1]));
    let leaf = |value| Tree { value, cache: None, children: vec![] };
    assert_agreement(&Tree { value: 0.5, cache: None, children: vec![leaf(1.0), leaf(f32::INFINITY)] });
    assert_eq!(encode(&""), [0; 8]);
    assert!(encode(&()).is_empty());
}

#[test]
fn bytes_in_one_piece_agree() {
    struct Blob(Vec<u8>);
    impl Serialize for Blob {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.0)
        }
    }
    impl<'de> Deserialize<'de> for Blob {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl serde::de::Visitor<'_> for Visitor {
                type Value = Blob;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("bytes")
                }
                fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Blob, E> {
                    Ok(Blob(bytes))
                }
            }
            deserializer.deserialize_bytes(Visitor)
        }
    }
    let blob = Blob((0..5000).map(|idx| idx as u8).collect());
    let bytes = encode(&blob);
    assert_eq!(bytes, bincode1::serialize(&blob).unwrap());
    assert_eq!(decode::<Blob>(&bytes).unwrap().0, blob.0);
}

#[test]
fn a_container_holds_a_users_type_by_reference_and_by_value() {
    let model = BTreeMap::from([("weights".to_owned(), vec![0.5_f32; 3000])]);
    let options = SaveOptions::default().with_created_at(0);
    let file = to_vec(&Serde(&model), ModelType::Custom, &options).unwrap();
    assert_eq!(file, to_vec(&Serde(model.clone()), ModelType::Custom, &options).unwrap());
    let Serde(loaded) =
        load_from_bytes::<Serde<BTreeMap<String, Vec<f32>>>>(&file, ModelType::Custom).unwrap();
    assert_eq!(loaded, model);
}

fn any_choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        Just(Choice::Unit),
        any::<u32>().prop_map(Choice::New),
        any::<(i8, i64)>().prop_map(|(first, second)| Choice::Tup(first, second)),
        any::<(Option<String>, bool)>().prop_map(|(a, b)| Choice::Struct { a, b }),
    ]
}

fn any_kitchen() -> impl Strategy<Value = Kitchen> {
    let numbers = any::<(u8, u16, u32, u64, i8, i16, i32, i64)>();
    let floats = (-1e30_f32..1e30, prop::num::f64::NORMAL | prop::num::f64::ZERO);
    let small =
        any::<(bool, char, String, Option<u16>, Option<Vec<u8>>, (u8, String), [i16; 3], u128, usize)>();
    let map = prop::collection::btree_map(any::<String>(), any::<u32>(), 0..8);
    let choices = prop::collection::vec(any_choice(), 0..8);
    let nested = prop::collection::vec(prop::collection::vec(prop::num::f64::NORMAL, 0..5), 0..5);
    (numbers, floats, small, map, choices, nested).prop_map(
        |(numbers, floats, small, map, choices, nested)| {
            let (u8, u16, u32, u64, i8, i16, i32, i64) = numbers;
            let (f32, f64) = floats;
            let (bool, char, string, none, some, pair, array, u128, usize) = small;
            let nested = nested.into();
            Kitchen {
                u8,
                u16,
                u32,
                u64,
                i8,
                i16,
                i32,
                i64,
                f32,
                f64,
                bool,
                char,
                string,
                none,
                some,
                pair,
                array,
                map,
                choices,
                unit: (),
                u128,
                nested,
                usize,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_value_agrees(value in any_kitchen()) {
        assert_agreement(&value);
    }

    /// What is accepted is what bincode 1.3 accepts when nothing may be left over.
    #[test]
    fn changed_bytes_are_accepted_or_refused_by_both(
        value in any_kitchen(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        longer in prop::collection::vec(any::<u8>(), 0..2),
    ) {
        use bincode1::Options as _;
        let mut bytes = encode(&value);
        for (at, change) in changes {
            let at = at.index(bytes.len());
            bytes[at] = change;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        bytes.extend(longer);
        let options = bincode1::DefaultOptions::new().with_fixint_encoding().reject_trailing_bytes();
        match (decode::<Kitchen>(&bytes), options.deserialize::<Kitchen>(&bytes)) {
            // Compared as bytes: a float may have become no number.
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(encode(&ours), bincode1::serialize(&theirs).unwrap()),
            (Err(error), Err(_)) => prop_assert!(error.offset().is_some()),
            (ours, theirs) => prop_assert!(false, "{:?} {:?}", ours.map(drop), theirs.map(drop)),
        }
    }
}
