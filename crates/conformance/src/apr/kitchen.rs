//! A user-defined type with every construct of serde's data model, as the reference implementations stored it.

use alloc::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The fields in the order of the payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kitchen {
    unsigned: (u8, u16, u32, u64),
    signed: (i8, i16, i32, i64),
    floats: (f32, f64),
    truth: bool,
    letter: char,
    text: String,
    nothing: Option<u16>,
    something: Option<Vec<u8>>,
    pair: (u8, String),
    array: [i16; 3],
    map: BTreeMap<String, u32>,
    alternatives: Vec<Alternative>,
    unit: (),
    wide: u128,
    nested: Vec<Vec<f64>>,
    size: usize,
}

/// The four forms of an alternative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Alternative {
    Unit,
    New(u32),
    Tuple(i8, i64),
    Struct { a: Option<String>, b: bool },
}

impl Kitchen {
    /// The values in the peers' files, read from their bytes by hand.
    ///
    /// # Examples
    ///
    /// ```
    /// use apr_container::{PayloadLayout, Serde, encode_payload_to_vec};
    /// use conformance::apr::kitchen::Kitchen;
    ///
    /// let payload = encode_payload_to_vec(&Serde(Kitchen::recorded()), PayloadLayout::V0_10)?;
    /// assert_eq!(payload.len(), 238);
    /// # Ok::<(), apr_container::Error>(())
    /// ```
    #[must_use]
    pub fn recorded() -> Self {
        Self {
            unsigned: (200, 60_000, 4_000_000_000, u64::MAX),
            signed: (-100, -30_000, -2_000_000_000, i64::MIN),
            floats: (-0.0, 1e308),
            truth: true,
            letter: 'é',
            text: "héllo 世".to_owned(),
            nothing: None,
            something: Some(vec![1, 2, 3]),
            pair: (9, "t".to_owned()),
            array: [-1, 0, 1],
            map: BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]),
            alternatives: vec![
                Alternative::Unit,
                Alternative::New(7),
                Alternative::Tuple(-1, 5),
                Alternative::Struct { a: Some("x".to_owned()), b: false },
            ],
            unit: (),
            wide: 1 << 100,
            nested: vec![vec![0.5, -0.5], vec![]],
            size: 77,
        }
    }
}
