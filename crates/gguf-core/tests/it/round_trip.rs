//! What is written is read back, whatever it is.

use std::collections::BTreeSet;

use gguf_core::Dtype;
use gguf_core::{Endian, Error, Gguf, GgufBuilder, Header, Prefix, ReadOptions, Strictness, Value};
use proptest::prelude::*;

/// A value that the test owns.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Scalar(Value<'static>),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<f64>),
    Small(Vec<i16>),
    Bools(Vec<bool>),
}

impl Owned {
    pub(crate) fn put(&self, builder: &mut GgufBuilder, key: &str) -> Result<(), Error> {
        match self {
            Self::Scalar(value) => builder.set(key, *value),
            Self::Text(text) => builder.set(key, text.as_str()),
            Self::Texts(texts) => builder.set_texts(key, texts.iter().map(String::as_str)),
            Self::Numbers(numbers) => builder.set_numbers(key, numbers),
            Self::Small(numbers) => builder.set_numbers(key, numbers),
            Self::Bools(values) => builder.set_numbers(key, values),
        }
    }

    fn is(&self, found: &Value<'_>) -> bool {
        let elements = || found.as_array().unwrap().iter();
        match self {
            Self::Scalar(value) => format!("{value:?}") == format!("{found:?}"),
            Self::Text(text) => found.as_str() == Some(text),
            Self::Texts(texts) => {
                elements().map(|value| value.as_str().unwrap().to_owned()).eq(texts.iter().cloned())
            }
            Self::Numbers(numbers) => elements()
                .map(|value| value.to_f64().unwrap().to_bits())
                .eq(numbers.iter().map(|x| x.to_bits())),
            Self::Small(numbers) => {
                elements().map(|value| value.to_i64().unwrap()).eq(numbers.iter().map(|x| i64::from(*x)))
            }
            Self::Bools(values) => {
                elements().map(|value| value.as_bool().unwrap()).eq(values.iter().copied())
            }
        }
    }
}

fn owned() -> impl Strategy<Value = Owned> {
    let scalar = prop_oneof![
        any::<u8>().prop_map(Value::U8),
        any::<i8>().prop_map(Value::I8),
        any::<u16>().prop_map(Value::U16),
        any::<i16>().prop_map(Value::I16),
        any::<u32>().prop_map(Value::U32),
        any::<i32>().prop_map(Value::I32),
        any::<f32>().prop_map(Value::F32),
        any::<bool>().prop_map(Value::Bool),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::I64),
        any::<f64>().prop_map(Value::F64),
    ];
    prop_oneof![
        scalar.prop_map(Owned::Scalar),
        any::<String>().prop_map(Owned::Text),
        prop::collection::vec(any::<String>(), 0..5).prop_map(Owned::Texts),
        prop::collection::vec(any::<f64>(), 0..5).prop_map(Owned::Numbers),
        prop::collection::vec(any::<i16>(), 0..5).prop_map(Owned::Small),
        prop::collection::vec(any::<bool>(), 0..5).prop_map(Owned::Bools),
    ]
}

/// Formats, and how many elements make a row of at least one block.
const FORMATS: [Dtype; 8] =
    [Dtype::F32, Dtype::F16, Dtype::I8, Dtype::F64, Dtype::Q4_0, Dtype::Q8_0, Dtype::Q6_K, Dtype::MXFP4];

fn tensors() -> impl Strategy<Value = Vec<(String, Dtype, Vec<u64>)>> {
    let shape = (prop::collection::vec(0u64..4, 0..3), 0u64..3);
    let tensor = ("[a-z.]{1,63}", prop::sample::select(&FORMATS[..]), shape, any::<bool>());
    let tensor = tensor.prop_map(|(name, format, (mut shape, blocks), scalar)| {
        if !scalar || format.block_len() > 1 {
            shape.push(blocks * format.block_len() as u64);
        }
        (name, format, shape)
    });
    prop::collection::vec(tensor, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_file_comes_back(
        keys in prop::collection::vec(("[a-z_.]{1,20}", owned()), 0..8),
        tensors in tensors(),
        alignment in prop::option::of(0u32..13),
        endian in prop::sample::select(&[Endian::Little, Endian::Big][..]),
        fill in any::<u8>(),
    ) {
        let mut builder = GgufBuilder::with_endian(endian);
        for (key, value) in &keys {
            value.put(&mut builder, key).unwrap();
        }
        if let Some(shift) = alignment {
            builder.set("general.alignment", 1u32 << shift).unwrap();
        }
        let mut names = BTreeSet::new();
        let tensors: Vec<_> = tensors.into_iter().filter(|(name, ..)| names.insert(name.clone())).collect();
        for (name, format, shape) in &tensors {
            builder.add_tensor(name, *format, shape).unwrap();
        }
        let layout = builder.layout().unwrap();
        prop_assert_eq!(&builder.layout().unwrap(), &layout);
        let data: Vec<Vec<u8>> = layout.tensors().iter().map(|planned| vec![fill; planned.byte_len as usize]).collect();
        let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let file = layout.to_vec(&slices).unwrap();
        prop_assert_eq!(file.len() as u64, layout.file_len());
        let mut streamed = Vec::new();
        layout.write_streamed(&mut streamed, |planned, sink| data[planned.idx].chunks(7).try_for_each(|piece| sink.write_all(piece))).unwrap();
        prop_assert_eq!(&streamed, &file);

        let strictness = if endian == Endian::Little { Strictness::Strict } else { Strictness::Compat };
        let options = ReadOptions { strictness, ..ReadOptions::default() };
        let gguf = Gguf::from_bytes_with(&file, &options).unwrap();
        prop_assert_eq!((gguf.version(), gguf.endian(), gguf.data_start()), (3, endian, layout.data_start()));
        prop_assert_eq!(gguf.alignment(), alignment.map_or(32, |shift| 1 << shift));
        prop_assert!(gguf.trailing_bytes().is_empty());
        for (idx, (key, value)) in keys.iter().enumerate() {
            // Of equal keys the last one counts, where the first one stands.
            if keys[idx + 1..].iter().all(|(other, _)| other != key) {
                prop_assert!(value.is(&gguf.get(key).unwrap()), "{key}");
            }
        }
        prop_assert_eq!(gguf.tensors().len(), tensors.len());
        for ((name, format, shape), planned) in tensors.iter().zip(layout.tensors()) {
            let info = gguf.tensor(name).unwrap();
            prop_assert_eq!((info.dtype(), info.file_range().start), (*format, planned.offset));
            prop_assert!(info.shape().eq(shape.iter().copied()));
            prop_assert_eq!(info.element_count(), shape.iter().product::<u64>());
            prop_assert_eq!(info.file_range().start % u64::from(gguf.alignment()), 0);
            prop_assert_eq!(gguf.tensor_data(info), Some(&data[planned.idx][..]));
        }

        // A copy is the same file; so is the header from as many bytes as are asked for.
        let copy = GgufBuilder::copy_of(gguf.header()).unwrap();
        prop_assert_eq!(copy.layout().unwrap().to_vec(&slices).unwrap(), file.clone());
        let mut at_hand = 0;
        let header = loop {
            match Header::from_prefix(&file[..at_hand], file.len() as u64, &options).unwrap() {
                Prefix::Header(header) => break header,
                Prefix::More { needed } => {
                    prop_assert!(needed > at_hand as u64 && needed <= gguf.header_len());
                    at_hand = needed as usize;
                }
            }
        };
        prop_assert_eq!(format!("{header:?}"), format!("{:?}", gguf.header()));
        // Every cut is seen.
        for cut in [0, 3, file.len() / 2, file.len().saturating_sub(1)] {
            let cut_in_data = !tensors.is_empty() && gguf.data_len() > 0 || cut < gguf.header_len() as usize;
            if cut_in_data && cut < file.len() {
                prop_assert!(Gguf::from_bytes(&file[..cut]).is_err());
            }
        }
    }
}

#[test]
fn what_cannot_be_written_is_refused_by_name() {
    let mut builder = GgufBuilder::new();
    let code = |result: Result<(), Error>| result.map_err(|error| error.code());
    for key in ["", "a\0b", "a\n", &"k".repeat(65_536)] {
        assert_eq!(code(builder.set(key, 1u8)), Err("gg-key"));
    }
    for name in ["", "a\0b", &"n".repeat(64)] {
        assert_eq!(code(builder.add_tensor(name, Dtype::F32, &[1])), Err("gg-name"));
    }
    for (format, shape, expected) in [
        (Dtype::F32, &[1, 1, 1, 1, 1][..], "gg-rank"),
        (Dtype::AprQ4, &[32], "gg-type-foreign"),
        (Dtype::F32, &[1 << 63], "gg-dimension"),
        (Dtype::F32, &[1 << 32, 1 << 32], "gg-elements"),
        (Dtype::Q4_K, &[2, 128], "gg-row-length"),
        (Dtype::F64, &[1 << 62], "gg-size"),
    ] {
        assert_eq!(code(builder.add_tensor("t", format, shape)), Err(expected));
    }
    assert_eq!(builder, GgufBuilder::new());

    builder.set("general.alignment", 3u32).unwrap();
    assert_eq!(builder.layout().unwrap_err().code(), "gg-alignment");
    builder.set("general.alignment", "32").unwrap();
    assert_eq!(builder.layout().unwrap_err().code(), "gg-alignment-type");
    builder.remove("general.alignment");
    builder.add_tensor("t", Dtype::I8, &[3]).unwrap();
    builder.add_tensor("t", Dtype::I8, &[3]).unwrap();
    assert_eq!(builder.layout().unwrap_err().code(), "gg-name-duplicate");
}

#[test]
fn data_of_another_length_is_refused() {
    let mut builder = GgufBuilder::new();
    builder.add_tensor("t", Dtype::I8, &[3]).unwrap();
    let layout = builder.layout().unwrap();
    assert_eq!(layout.to_vec(&[]).unwrap_err().code(), "gg-data-count");
    assert_eq!(layout.to_vec(&[b"ab"]).unwrap_err().code(), "gg-data-length");
    assert!(layout.write_to(&mut Vec::new(), &[b"abcd"]).is_err());
    for given in [&b"ab"[..], b"abcd"] {
        let error = layout.write_streamed(&mut Vec::new(), |_, sink| sink.write_all(given)).unwrap_err();
        assert!(error.to_string().contains("expected 3 bytes of data"), "{error}");
    }
}

#[test]
fn numbers_are_converted_where_they_fit() {
    let max = u64::MAX;
    for (value, natural, integer, float) in [
        (Value::U8(200), Some(200), Some(200), Some(200.0)),
        (Value::U16(60_000), Some(60_000), Some(60_000), Some(60_000.0)),
        (Value::U32(7), Some(7), Some(7), Some(7.0)),
        (Value::U64(max), Some(max), None, Some(max as f64)),
        (Value::I8(-1), None, Some(-1), Some(-1.0)),
        (Value::I16(300), Some(300), Some(300), Some(300.0)),
        (Value::I32(-7), None, Some(-7), Some(-7.0)),
        (Value::I64(9), Some(9), Some(9), Some(9.0)),
        (Value::F32(0.5), None, None, Some(0.5)),
        (Value::F64(0.25), None, None, Some(0.25)),
        (Value::Bool(true), None, None, None),
        (Value::from("1"), None, None, None),
    ] {
        assert_eq!((value.to_u64(), value.to_i64(), value.to_f64()), (natural, integer, float), "{value:?}");
    }
}
