//! Types of Rust that derive nothing but serde.

use alloc::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use st_core::{Dtype, SafeTensors};
use st_structures::{
    Library, Node, Structs, Structure, Subject, Tensor, WriteOptions, from_bytes, to_vec, to_vec_with,
};

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
enum Activation {
    None,
    Leaky(f32),
    Clamp(f64, f64),
    Spline { knots: Vec<f32>, weight: Tensor },
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Seed(u128);

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Model {
    name: String,
    letter: char,
    seed: Seed,
    unit: (),
    layers: Vec<(Tensor, Option<Tensor>, Activation)>,
    by_step: BTreeMap<i64, f64>,
    scores: BTreeMap<(u8, bool), [i8; 2]>,
}

fn model() -> Model {
    let weight = Tensor::from_f32(&[2, 1], &[1.0, -1.0]).expect("two numbers");
    let knots = vec![0.1, 0.2];
    Model {
        name: "é\n".into(),
        letter: '\u{1f600}',
        seed: Seed(u128::MAX),
        unit: (),
        layers: vec![
            (weight.clone(), None, Activation::None),
            (weight.clone(), Some(weight.clone().with_library(Library::Torch)), Activation::Leaky(0.01)),
            (weight.clone(), None, Activation::Clamp(-1.0, f64::INFINITY)),
            (weight.clone(), None, Activation::Spline { knots, weight }),
        ],
        by_step: [(-1, 0.5), (10, f64::MIN_POSITIVE)].into(),
        scores: [((1, true), [-1, 1])].into(),
    }
}

#[test]
fn a_model_is_read_as_it_was_written() {
    for structs in [Structs::Dict, Structs::Dataclass] {
        let options = WriteOptions { structs, ..WriteOptions::default() };
        let file = to_vec_with(&model(), &options).unwrap();
        assert_eq!(to_vec_with(&model(), &options).unwrap(), file);
        assert_eq!(from_bytes::<Model>(&file).unwrap(), model());
        assert_eq!(SafeTensors::from_bytes(&file).unwrap().len(), 6);
        let structure = Structure::from_bytes(&file).unwrap();
        assert_eq!(structure.root.get("name"), Some(&Node::Str("é\n".into())));
        assert_eq!(structure.to_vec().unwrap(), file);
    }
}

#[test]
fn tensors_are_borrowed_from_the_file() {
    let bytes: Vec<u8> = (0..=255).collect();
    let tensor = Tensor::new(Dtype::U8, &[16, 16], bytes).unwrap();
    let file = to_vec(&vec![tensor.clone(), tensor]).unwrap();
    let read: Vec<Tensor<&[u8]>> = from_bytes(&file).unwrap();
    assert!(read.iter().all(|tensor| file.as_ptr_range().contains(&tensor.data().as_ptr())));
    assert_eq!(read[1].shape(), [16, 16]);
    assert!(from_bytes::<Tensor<&[u8]>>(&to_vec(&1).unwrap()).is_err());
}

#[test]
fn bytes_are_a_tensor_and_lists_are_lists() {
    let file = to_vec(&serde_bytes_like(b"abc")).unwrap();
    assert_eq!(SafeTensors::from_bytes(&file).unwrap().data("0"), Some(&b"abc"[..]));
    assert_eq!(from_bytes::<&[u8]>(&file).unwrap(), b"abc");
    assert_eq!(from_bytes::<Vec<u8>>(&file).unwrap(), b"abc");
    let file = to_vec(&[0.5f32, 2.0]).unwrap();
    assert_eq!(SafeTensors::from_bytes(&file).unwrap().data("null"), Some(&[0; 8][..]));
    assert_eq!(from_bytes::<Vec<f32>>(&file).unwrap(), [0.5, 2.0]);
}

fn serde_bytes_like(bytes: &[u8]) -> impl Serialize {
    struct Bytes(Vec<u8>);
    impl Serialize for Bytes {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.0)
        }
    }
    Bytes(bytes.to_vec())
}

/// Enums that serde reads by looking at the value first see texts and maps, as in JSON.
#[test]
fn untagged_and_tagged_enums_are_read() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    #[serde(untagged)]
    enum Any {
        Number(i64),
        Choice(Activation),
        Text(String),
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    #[serde(tag = "kind")]
    enum Tagged {
        A { x: u8 },
        B,
    }
    let values = (
        vec![Any::Number(7), Any::Choice(Activation::Leaky(0.5)), Any::Text("x".into())],
        Tagged::A { x: 1 },
        Tagged::B,
    );
    let file = to_vec(&values).unwrap();
    assert_eq!(from_bytes::<(Vec<Any>, Tagged, Tagged)>(&file).unwrap(), values);
    // The form that a program without the enum writes.
    let file = to_vec(&(BTreeMap::from([("Leaky", 0.5)]), "None")).unwrap();
    let read: (Activation, Activation) = from_bytes(&file).unwrap();
    assert_eq!(read, (Activation::Leaky(0.5), Activation::None));
}

#[test]
fn scalars_of_numpy_are_numbers() {
    let scalar = |dtype, data: &[u8]| {
        let tensor = Tensor::new(dtype, &[], data.to_vec().into()).unwrap();
        Structure::new(Node::Scalar(tensor)).to_vec().unwrap()
    };
    assert_eq!(from_bytes::<f32>(&scalar(Dtype::F32, &1.5f32.to_le_bytes())).unwrap(), 1.5);
    assert_eq!(from_bytes::<f64>(&scalar(Dtype::F16, &[0, 0x3c])).unwrap(), 1.0);
    assert_eq!(from_bytes::<u64>(&scalar(Dtype::U64, &[255; 8])).unwrap(), u64::MAX);
    assert_eq!(from_bytes::<i64>(&scalar(Dtype::I64, &i64::MIN.to_le_bytes())).unwrap(), i64::MIN);
    assert_eq!(from_bytes::<i8>(&scalar(Dtype::I8, &[255])).unwrap(), -1);
    assert!(from_bytes::<bool>(&scalar(Dtype::Bool, &[1])).unwrap());
    let complex = [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat();
    assert_eq!(from_bytes::<(f64, f64)>(&scalar(Dtype::C64, &complex)).unwrap(), (1.0, 2.0));
    assert_eq!(from_bytes::<Tensor>(&scalar(Dtype::U8, &[7])).unwrap().data(), [7]);
}

#[test]
fn errors_of_types_have_a_path() {
    let file = to_vec(&BTreeMap::from([("layers", vec![(1, "x")])])).unwrap();
    let error = from_bytes::<BTreeMap<String, Vec<(u8, u8)>>>(&file).unwrap_err();
    assert_eq!((error.code(), error.subject().map_or("", Subject::name)), ("ss-custom", ".layers[0][1]"));
    assert_eq!(error.to_string(), "invalid type: string \"x\", expected u8, in `.layers[0][1]`");
    let file = to_vec(&(1, 2, 3)).unwrap();
    assert!(from_bytes::<(u8, u8)>(&file).unwrap_err().to_string().contains("3"));
    let file = to_vec(&Tensor::from_f32(&[1], &[1.0]).unwrap()).unwrap();
    let error = from_bytes::<Vec<f32>>(&file).unwrap_err();
    assert_eq!(error.to_string(), "invalid type: a tensor, expected a sequence");
}
