//! What is written is read, for trees of every kind of node.

use alloc::borrow::Cow;

use proptest::prelude::*;
use st_core::Dtype;
use st_structures::{Dataclass, Entry, EnumNode, Factory, Library, NamedTuple, Node, Structure, Tensor};

fn word() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_]{0,4}", any::<String>()]
}

fn leaf() -> impl Strategy<Value = Node<'static>> {
    let tensor = || {
        let library = prop::sample::select(&Library::ALL[..]);
        (prop::collection::vec(any::<u8>(), 0..9), library).prop_map(|(data, library)| {
            let shape = [data.len(), 1];
            Tensor::new(Dtype::I8, &shape, Cow::Owned(data)).expect("as many").with_library(library)
        })
    };
    let scalar = any::<[u8; 8]>().prop_map(|data| {
        Node::Scalar(Tensor::new(Dtype::I64, &[], Cow::Owned(data.to_vec())).expect("eight bytes"))
    });
    prop_oneof![
        Just(Node::None),
        any::<bool>().prop_map(Node::Bool),
        any::<i128>().prop_map(Node::Int),
        "-?[1-9][0-9]{40,60}".prop_map(Node::BigInt),
        any::<f64>().prop_map(Node::Float),
        (any::<f64>(), any::<f64>()).prop_map(|(re, im)| Node::Complex(re, im)),
        word().prop_map(Node::Str),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| Node::Bytes(Cow::Owned(bytes))),
        tensor().prop_map(Node::Tensor),
        scalar,
    ]
}

fn node() -> impl Strategy<Value = Node<'static>> {
    leaf().prop_recursive(5, 60, 6, |inner| {
        let items = || prop::collection::vec(inner.clone(), 0..5);
        let keys = prop_oneof![
            word().prop_map(Node::Str),
            any::<i64>().prop_map(|key| Node::Int(key.into())),
            prop::collection::vec(any::<bool>().prop_map(Node::Bool), 0..4).prop_map(Node::Tuple),
        ];
        let entries = prop::collection::vec((keys, inner.clone()), 0..5).prop_map(|pairs| {
            let mut entries: Vec<_> = pairs.into_iter().map(|(key, value)| Entry::new(key, value)).collect();
            entries.sort_by(|a, b| a.label.cmp(&b.label));
            entries.dedup_by(|a, b| a.label == b.label);
            entries
        });
        let fields = prop::collection::btree_map(word(), inner.clone(), 0..5)
            .prop_map(|fields| fields.into_iter().collect::<Vec<_>>());
        prop_oneof![
            items().prop_map(Node::List),
            items().prop_map(Node::Tuple),
            items().prop_map(Node::Set),
            items().prop_map(Node::FrozenSet),
            (items(), any::<Option<u64>>()).prop_map(|(items, maxlen)| Node::Deque(items, maxlen)),
            (entries, 0..4).prop_map(|(entries, kind)| match kind {
                0 => Node::Dict(entries),
                1 => Node::OrderedDict(entries),
                2 => Node::Counter(entries),
                _ => Node::DefaultDict(entries, Some(Factory::List)),
            }),
            (fields, any::<Option<String>>()).prop_map(|(fields, name)| match name {
                Some(name) if name.len() % 2 == 0 => Node::NamedTuple(NamedTuple { name, fields }),
                name => Node::Dataclass(Dataclass { name, fields }),
            }),
            (word(), word(), inner).prop_map(|(name, variant, value)| {
                Node::Enum(Box::new(EnumNode { name, variant, value }))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_tree(root in node(), key in "[a-z]{1,3}") {
        let mut structure = Structure::new(root);
        structure.metadata.insert(key, "\u{0}\"é".into());
        let file = structure.to_vec().unwrap();
        let read = Structure::from_bytes(&file).unwrap();
        prop_assert_eq!(read.to_vec().unwrap(), file.clone());
        // NaN is no reason not to compare the rest: the text of both trees is the same.
        prop_assert_eq!(format!("{read:?}"), format!("{structure:?}"));
        structure.deserialize::<serde::de::IgnoredAny>().unwrap();
    }

    #[test]
    fn any_json(value in json()) {
        let file = st_structures::to_vec(&value).unwrap();
        prop_assert_eq!(st_structures::from_bytes::<serde_json::Value>(&file).unwrap(), value);
    }

    #[test]
    fn any_schema_text(schema in "\\PC{0,60}") {
        let file = crate::file(&schema, "1.0.0");
        prop_assert!(Structure::from_bytes(&file).is_err());
    }
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300).prop_map(|value| json!(value)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}
