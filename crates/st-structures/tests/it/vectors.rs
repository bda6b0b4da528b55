//! What safestructures 1.0.0 wrote: read to the values it reads, and written again.

use alloc::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use st_core::{Dtype, SafeTensors};
use st_structures::{Dataclass, Entry, Node, SCHEMA_KEY, Structure, Tensor, VERSION_KEY};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/structures")
}

/// The names of the vectors with what is known about them.
fn sidecars() -> Vec<(String, Value)> {
    let entries = fs::read_dir(folder().join("files")).expect("it is in the repository");
    let names =
        entries.map(|entry| entry.expect("it can be listed").file_name().into_string().expect("text"));
    let vectors = names.filter_map(|name| name.strip_suffix(".vector.json").map(str::to_owned));
    let sidecar = |name: String| {
        let text = fs::read(folder().join(format!("files/{name}.vector.json"))).expect("it is a file");
        (name, serde_json::from_slice(&text).expect("it is JSON"))
    };
    vectors.map(sidecar).collect()
}

/// A node in the form of the sidecars.
fn facts(node: &Node<'_>) -> Value {
    let pair = |entry: &Entry<'_>| json!([facts(&entry.key), facts(&entry.value)]);
    let list = |items: &[Node<'_>]| items.iter().map(facts).collect::<Value>();
    match node {
        Node::None => json!({"none": null}),
        Node::Bool(value) => json!({"bool": value}),
        Node::Int(value) => json!({"int": value.to_string()}),
        Node::Float(value) if value.is_nan() => json!({"float": "nan"}),
        Node::Float(value) if value.is_infinite() => json!({"float": value.to_string()}),
        Node::Float(value) => json!({"float": format!("{value:?}")}),
        Node::Complex(re, im) => json!({"complex": format!("({re}+{im}j)")}),
        Node::Str(text) => json!({"str": text}),
        Node::List(items) => json!({"list": list(items)}),
        Node::Tuple(items) => json!({"tuple": list(items)}),
        Node::Set(items) => json!({"set": list(items)}),
        Node::Dict(entries) => json!({"dict": entries.iter().map(pair).collect::<Value>()}),
        Node::Dataclass(Dataclass { name: None, fields }) => {
            json!({"dataclass": fields.iter().map(|(name, value)| json!([name, facts(value)])).collect::<Value>()})
        }
        Node::Tensor(tensor) => json!({"ndarray": tensor_facts(&tensor.view())}),
        other => panic!("safestructures does not write {other:?}"),
    }
}

fn tensor_facts(tensor: &st_core::TensorView<'_>) -> Value {
    let name = match tensor.dtype() {
        Dtype::Bool => "bool",
        Dtype::U8 => "uint8",
        Dtype::I8 => "int8",
        Dtype::I16 => "int16",
        Dtype::I32 => "int32",
        Dtype::I64 => "int64",
        Dtype::F16 => "float16",
        Dtype::F32 => "float32",
        Dtype::F64 => "float64",
        other => panic!("not among the vectors: {other}"),
    };
    let value = |value: f64| match tensor.dtype() {
        Dtype::Bool => json!(value == 1.0),
        Dtype::F16 | Dtype::F32 | Dtype::F64 => json!(format!("{value:?}")),
        _ => json!(value as i64),
    };
    let values: Value = tensor.to_f64().expect("real numbers").map(value).collect();
    json!({"dtype": name, "shape": tensor.shape(), "values": values})
}

#[test]
fn every_vector_is_listed_and_read_to_its_values() {
    let files = sidecars();
    // More may be added.
    assert!(files.len() >= 12, "{}", files.len());
    assert_eq!(fs::read_dir(folder().join("files")).unwrap().count(), 2 * files.len());
    for (name, entry) in files {
        let file = fs::read(folder().join("files").join(&name)).unwrap();
        assert_eq!(entry["size"], file.len(), "{name}");
        let structure = Structure::from_bytes(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(facts(&structure.root), entry["loads"], "{name}");
    }
}

/// The same schema; the same bytes where the random order of metadata was the sorted one.
#[test]
fn what_is_read_is_written_again_as_it_was() {
    let mut equal = 0;
    for (name, entry) in sidecars() {
        let file = fs::read(folder().join("files").join(&name)).unwrap();
        let again = Structure::from_bytes(&file).unwrap().to_vec().unwrap();
        let tensors = SafeTensors::from_bytes(&again).unwrap();
        let metadata = tensors.header().metadata().unwrap();
        assert_eq!(metadata.get(SCHEMA_KEY), entry["schema"].as_str(), "{name}");
        assert_eq!(metadata.get(VERSION_KEY), Some("1.0.0"));
        let before = SafeTensors::from_bytes(&file).unwrap();
        assert!(tensors.iter().eq(before.iter()), "{name}");
        let sorted = before.header().metadata().unwrap().iter().map(|(key, _)| key).is_sorted();
        if sorted {
            assert!(again == file, "{name}");
            equal += 1;
        }
    }
    assert!(equal >= 3, "{equal}");
}

#[test]
fn types_of_rust_read_what_python_wrote() {
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Io<'a> {
        #[serde(borrow)]
        input_ids: Tensor<&'a [u8]>,
        cache: Vec<(Tensor, Tensor)>,
        cfg: Config,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    struct Config {
        lr: f32,
        layers: u8,
        act: String,
    }
    let file = fs::read(folder().join("files/mixed_model_io.safetensors")).unwrap();
    let io: Io<'_> = st_structures::from_bytes(&file).unwrap();
    assert!(io.input_ids.view().elements::<i64>().unwrap().eq([1, 2, 3]));
    assert!(io.cache[0].1.view().elements::<f32>().unwrap().eq([1.0, 1.0]));
    assert_eq!(io.cfg, Config { lr: 0.001, layers: 12, act: "gelu".into() });

    #[derive(Deserialize, PartialEq, Debug)]
    struct Point {
        x: i64,
        y: f64,
    }
    let file = fs::read(folder().join("files/nested_dataclass.safetensors")).unwrap();
    let points: BTreeMap<String, Vec<Point>> = st_structures::from_bytes(&file).unwrap();
    assert_eq!(points["p"], [Point { x: 1, y: 2.0 }, Point { x: 4, y: 5.0 }]);

    let file = fs::read(folder().join("files/tuple_keys.safetensors")).unwrap();
    let entries: std::collections::HashMap<(u8, u8), serde::de::IgnoredAny> =
        st_structures::from_bytes(&file).unwrap();
    assert!(entries.contains_key(&(0, 1)) && entries.contains_key(&(1, 0)));
}
