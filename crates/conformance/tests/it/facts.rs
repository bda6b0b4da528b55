//! What the sidecars know about the content of each file.

use conformance::vectors::{self, StrictVerdict, TensorFacts, Vector, Vectors};
use conformance::{digest, ours};
use serde_json::Value;
use st_core::{Dtype, Element, Header, ReadOptions, SafeTensors, TensorView};

#[test]
fn content_of_every_accepted_file_is_as_recorded() {
    let vectors = Vectors::load().unwrap();
    let mut tensors = 0;
    for vector in vectors.files.iter().filter(|vector| vector.n_tensors.is_some()) {
        let file = vectors::read(&vector.file).unwrap();
        let mut levels = vec![ReadOptions::COMPAT];
        if vector.strict == StrictVerdict::Accept {
            levels.push(ReadOptions::STRICT);
        }
        for options in levels {
            let read = SafeTensors::from_bytes_with(&file, &options).unwrap();
            check_header(vector, read.header());
            for facts in vector.tensors.iter().flatten() {
                check_tensor(&vector.file, facts, &read, &file);
                tensors += 1;
            }
        }
    }
    assert!(tensors > 300, "only {tensors} tensors were compared");
}

fn check_header(vector: &Vector, header: &Header) {
    let file = &vector.file;
    assert_eq!(Some(header.header_len()), vector.header_len, "{file}");
    assert_eq!(Some(header.len()), vector.n_tensors, "{file}");
    assert_eq!(header.is_empty(), vector.n_tensors == Some(0));
    assert_eq!(header.file_len(), vector.size, "{file}");
    assert_eq!(header.data_start() + header.data_len(), vector.size, "{file}");
    let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let metadata = header.metadata().map(|metadata| metadata.iter().map(pair).collect());
    assert_eq!(metadata, vector.metadata, "{file}");
    if let Some(expected) = &vector.names_sha256 {
        let names: Vec<&str> = header.iter().map(|info| info.name()).collect();
        assert_eq!(digest::sha256_hex(names.join("\n").as_bytes()), *expected, "{file}");
    }
    for (idx, info) in header.iter().enumerate() {
        assert_eq!(header.tensor(info.name()).unwrap().index(), idx, "{file}");
        assert_eq!(header.get(idx).unwrap().name(), info.name(), "{file}");
    }
    assert!(header.get(header.len()).is_none());
}

fn check_tensor(file_name: &str, facts: &TensorFacts, read: &SafeTensors<'_>, file: &[u8]) {
    let context = format!("{file_name}, {:?}", facts.name);
    let info = read.header().tensor(&facts.name).expect(&context);
    assert_eq!(info.dtype().name(), facts.dtype, "{context}");
    assert!(info.shape().iter().map(|dim| *dim as u64).eq(facts.shape.iter().copied()), "{context}");
    assert_eq!(info.data_offsets(), facts.data_offsets, "{context}");
    let (begin, end) = facts.data_offsets;
    assert_eq!(info.file_range(), facts.abs_offset..facts.abs_offset + end - begin, "{context}");
    assert_eq!(info.byte_len(), end - begin, "{context}");

    let view = read.tensor(&facts.name).expect(&context);
    assert_eq!(digest::sha256_hex(view.data()), facts.sha256, "{context}");
    assert_eq!(Some(view.data()), read.data(&facts.name), "{context}");
    let range = info.file_range();
    assert_eq!(view.data(), &file[range.start as usize..range.end as usize], "{context}");
    if let Some(hex) = &facts.hex {
        assert_eq!(base16ct::lower::encode_string(view.data()), *hex, "{context}");
    }
    if let Some(values) = &facts.values {
        check_values(&context, &view, values);
    }
    check_typed_slices(&context, &view);
}

fn check_values(context: &str, view: &TensorView<'_>, values: &[Value]) {
    let found: Vec<Number> = match view.dtype() {
        Dtype::I64 => view.elements::<i64>().unwrap().map(|value| Number::Int(value.into())).collect(),
        Dtype::U64 => view.elements::<u64>().unwrap().map(|value| Number::Int(value.into())).collect(),
        Dtype::Bool | Dtype::U8 | Dtype::I8 | Dtype::U16 | Dtype::I16 | Dtype::U32 | Dtype::I32 => {
            view.to_f64().unwrap().map(|value| Number::Int(value as i128)).collect()
        }
        Dtype::C64 => {
            let parts = view.data().chunks_exact(4).map(|part| f32::from_le_bytes(part.try_into().unwrap()));
            parts.map(|part| Number::float(part.into())).collect()
        }
        _ => view.to_f64().unwrap().map(Number::float).collect(),
    };
    let expected: Vec<Number> = values.iter().flat_map(Number::from_value).collect();
    assert_eq!(found, expected, "{context}");
    if let Ok(single) = view.to_f32() {
        // Every float of at most 32 bits is an f32 exactly.
        let single: Vec<Number> = single.map(|value| Number::float(value.into())).collect();
        assert_eq!(single, expected, "{context}");
    }
}

/// A number that knows whether it is one; floats compare by their bits, and every NaN is the same.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Int(i128),
    Bits(u64),
}

impl Number {
    fn float(value: f64) -> Self {
        Self::Bits(if value.is_nan() { f64::NAN } else { value }.to_bits())
    }

    fn from_value(value: &Value) -> Vec<Self> {
        match value {
            Value::Bool(value) => vec![Self::Int((*value).into())],
            Value::Number(number) => vec![Self::Int(number.to_string().parse().unwrap())],
            Value::String(text) => vec![Self::float(text.parse().unwrap())],
            Value::Array(parts) => parts.iter().flat_map(Self::from_value).collect(),
            _ => panic!("{value} is no number"),
        }
    }
}

/// Zero-copy slices give the same numbers as the iterators wherever the bytes happen to be aligned.
fn check_typed_slices(context: &str, view: &TensorView<'_>) {
    fn check<T: Element + std::fmt::Debug>(context: &str, view: &TensorView<'_>) -> bool {
        let Ok(elements) = view.elements::<T>() else { return false };
        assert_eq!(elements.len(), view.element_count() as usize, "{context}");
        if let Ok(slice) = view.as_slice::<T>() {
            // NaN is not equal to itself: compare what they are made of.
            let bytes = |value: &T| format!("{value:?}");
            assert!(slice.iter().map(bytes).eq(elements.map(|value| bytes(&value))), "{context}");
        }
        true
    }
    let typed = [
        check::<u8>(context, view),
        check::<i8>(context, view),
        check::<u16>(context, view),
        check::<i16>(context, view),
        check::<u32>(context, view),
        check::<i32>(context, view),
        check::<u64>(context, view),
        check::<i64>(context, view),
        check::<f32>(context, view),
        check::<f64>(context, view),
    ];
    assert!(typed.iter().filter(|typed| **typed).count() <= 1, "{context}: an element type for each dtype");
}

#[test]
fn both_levels_read_the_same_where_both_read() {
    for vector in Vectors::load().unwrap().files {
        let file = vectors::read(&vector.file).unwrap();
        if let Ok(strict) = ours::read(&file, &ReadOptions::STRICT) {
            assert_eq!(Ok(strict), ours::read(&file, &ReadOptions::COMPAT), "{}", vector.file);
        }
    }
}

#[test]
fn a_prefix_is_enough_for_the_header() {
    for vector in Vectors::load().unwrap().files {
        let file = vectors::read(&vector.file).unwrap();
        let whole = Header::from_bytes(&file, &ReadOptions::STRICT);
        let Some(first8) = file.first_chunk() else { continue };
        let len = match Header::declared_len(*first8, file.len() as u64, &ReadOptions::STRICT) {
            Ok(len) => len as usize,
            Err(error) => {
                assert_eq!(Some(error), whole.err(), "{}", vector.file);
                continue;
            }
        };
        let prefix = Header::from_prefix(&file[..8 + len], file.len() as u64, &ReadOptions::STRICT);
        match (prefix, whole) {
            (Ok(prefix), Ok(whole)) => assert_eq!(format!("{prefix:?}"), format!("{whole:?}")),
            (prefix, whole) => assert_eq!(prefix.err(), whole.err(), "{}", vector.file),
        }
    }
}

/// The file format of NumPy, version 1: a text of the length at bytes 8 and 9, then the elements.
#[test]
fn tensors_are_the_arrays_numpy_kept() {
    let file = vectors::read("valid/slice_source.safetensors").unwrap();
    let tensors = SafeTensors::from_bytes(&file).unwrap();
    for name in ["f", "i"] {
        let npy = vectors::read(&format!("npy/slice_source.{name}.npy")).unwrap();
        let text_len = usize::from(u16::from_le_bytes([npy[8], npy[9]]));
        assert_eq!(tensors.tensor(name).unwrap().data(), &npy[10 + text_len..], "{name}");
    }
}
