//! Any bytes: an error, or data that are written and read again the same. Each input is read as a file, and as the schema of
//! a valid one.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use st_core::{Dtype, TensorView};
use st_structures::{
    ErrorKind, Limits, Outline, SCHEMA_KEY, Structure, Tensor, VERSION, VERSION_KEY, from_bytes,
};

fuzz_target!(|input: &[u8]| {
    for file in apr_fuzz::files(input) {
        check(&file);
    }
    if let Ok(schema) = core::str::from_utf8(input) {
        let file = file(schema);
        check(&file);
        let outline = Outline::from_schema(schema, &Limits::DEFAULT);
        assert!(outline.is_ok() || Structure::from_bytes(&file).is_err(), "what is read has an outline");
    }
});

/// A file with this schema and tensors of several shapes.
fn file(schema: &str) -> Vec<u8> {
    let metadata = [(SCHEMA_KEY, schema), (VERSION_KEY, VERSION)];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let options = st_core::WriteOptions { metadata: Some(metadata), ..Default::default() };
    let shapes: [(&str, Dtype, &[usize]); 4] =
        [("0", Dtype::U8, &[8]), ("1", Dtype::F64, &[]), ("2", Dtype::C64, &[]), ("3", Dtype::Bf16, &[2, 2])];
    let tensors = shapes.map(|(name, dtype, shape)| {
        (name, TensorView::new(dtype, shape, &[0x7f; 8]).expect("eight bytes each"))
    });
    st_core::to_vec(&tensors, &options).expect("a sound file")
}

fn check(file: &[u8]) {
    let structure = match Structure::from_bytes(file) {
        Ok(structure) => structure,
        Err(error) => {
            assert!(error.offset().is_none_or(|at| at <= file.len() as u64), "{error}");
            let is_file = matches!(error.kind(), ErrorKind::File { .. });
            assert!(is_file || ErrorKind::CODES.contains(&error.code()));
            let _ = (error.to_string(), error.subject());
            return;
        }
    };
    let again = structure.to_vec().expect("what is read can be written");
    let read = Structure::from_bytes(&again).expect("what we write we read");
    assert_eq!(format!("{read:?}"), format!("{structure:?}"));
    assert!(read.to_vec().as_ref() == Ok(&again));
    assert!(Structure::from_bytes_with(file, &Limits { nodes: 0, ..Limits::DEFAULT }).is_err());

    // Types with and without a place for the data.
    let _ = from_bytes::<serde_json::Value>(file);
    let _ = from_bytes::<Vec<BTreeMap<String, (Tensor, f64)>>>(file);
    let _ = from_bytes::<Vec<Result<Vec<u8>, Tensor<&[u8]>>>>(file);
    if let Ok(value) = from_bytes::<f64>(file) {
        let file = st_structures::to_vec(&value).expect("a number can be written");
        assert_eq!(
            from_bytes::<f64>(&file).map(f64::to_bits),
            Ok(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
        );
    }
}
