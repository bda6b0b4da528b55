//! Files of apr-format 0.72.3: read, and made again byte for byte.

use apr_container::ReadOptions;
use apr_container::v2::{
    AprType, Container, Flags, Footer, Layout, Order, TensorSpec, TensorView, Warning, WriteOptions, to_vec,
};

use super::{edited, vector};

fn rewritten(container: &Container<'_>) -> Vec<u8> {
    let views: Vec<TensorView<'_>> = container.tensors().unwrap().collect();
    to_vec(&views, &WriteOptions::like(container.index())).unwrap()
}

#[test]
fn files_are_made_again_byte_for_byte() {
    let names = ["f32_multi", "dtypes", "names", "empty", "shard-00001-of-00002", "shard-00002-of-00002"];
    for name in names {
        let file = vector(&format!("f0723v2_{name}.apr"));
        let container = Container::from_bytes(&file).unwrap();
        assert!(matches!(container.footer(), Footer::Present(_)), "{name}");
        assert_eq!(container.warnings().count(), 0, "{name}");
        assert!(rewritten(&container) == file, "{name}");
    }
}

/// The order of keys the format does not know is random there and sorted here; nothing else differs.
#[test]
fn a_stamped_file_differs_in_the_order_of_unknown_keys_only() {
    let file = vector("f0723v2_stamped.apr");
    let container = Container::from_bytes(&file).unwrap();
    let again = rewritten(&container);
    assert_eq!(again.len(), file.len());
    let theirs: serde_json::Value = serde_json::from_slice(&file[64..64 + 290]).unwrap();
    let ours: serde_json::Value = serde_json::from_slice(&again[64..64 + 290]).unwrap();
    assert_eq!(theirs, ours);
    assert_eq!(container.metadata().other["tokenizer.vocabulary"].text(), r#"["a","b"]"#);
    assert!(file[384..file.len() - 4] == again[384..file.len() - 4]);
}

#[test]
fn a_streamed_file_keeps_the_order_of_its_bytes() {
    let file = vector("f0723v2_streaming.apr");
    let container = Container::from_bytes(&file).unwrap();
    let names: Vec<_> = container.index().iter().map(|info| (info.name(), info.data_offset())).collect();
    assert_eq!(names, [("a", 256), ("b", 128), ("z", 0)]);
    let in_order: Vec<_> = ["z", "b", "a"].map(|name| container.tensor(name).unwrap()).to_vec();
    let options = WriteOptions { order: Order::AsGiven, ..WriteOptions::like(container.index()) };
    assert!(to_vec(&in_order, &options).unwrap() == file);
}

#[test]
fn every_type_is_read() {
    let file = vector("f0723v2_dtypes.apr");
    let container = Container::from_bytes(&file).unwrap();
    let expected = [
        ("t_aprq4", AprType::AprQ4),
        ("t_aprq8", AprType::AprQ8),
        ("t_bf16", AprType::Bf16),
        ("t_f16", AprType::F16),
        ("t_f32", AprType::F32),
        ("t_f64", AprType::F64),
        ("t_i32", AprType::I32),
        ("t_i64", AprType::I64),
        ("t_i8", AprType::I8),
        ("t_q4k", AprType::Q4_K),
        ("t_q6k", AprType::Q6_K),
        ("t_u8", AprType::U8),
    ];
    let found: Vec<_> = container.tensors().unwrap().map(|view| (view.name(), view.dtype())).collect();
    assert_eq!(found, expected);

    // The quantized ones were made of the values of the last, one step of their scale apart at most.
    let exact = container.tensor("t_f32").unwrap().to_f32().unwrap();
    let largest = exact.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    for (name, step) in
        [("t_aprq4", largest / 7.0), ("t_aprq8", largest / 127.0), ("t_bf16", largest / 128.0)]
    {
        let values = container.tensor(name).unwrap().to_f32().unwrap();
        let close = |(value, exact): (&f32, &f32)| (value - exact).abs() <= 0.51 * step;
        assert_eq!(values.len(), exact.len());
        assert!(values.iter().zip(&exact).all(close), "{name}");
    }
    let halves = container.tensor("t_f16").unwrap();
    assert!(halves.to_f32().unwrap().iter().zip(&exact).all(|(half, exact)| (half - exact).abs() < 2e-3));
    assert_eq!(container.tensor("t_q4k").unwrap().to_f32().unwrap_err().code(), "ac-v2-dtype-mismatch");
}

#[test]
fn values_are_those_of_the_manifest() {
    let file = vector("f0723v2_f32_multi.apr");
    let container = Container::from_bytes(&file).unwrap();
    assert!(container.tensor("a.bias").unwrap().elements::<f32>().unwrap().eq([f32::from_bits(0x3EFF_EB80)]));
    let shapes: Vec<_> = container.tensors().unwrap().map(|view| view.shape().to_vec()).collect();
    assert_eq!(shapes, [vec![1], vec![16, 4], vec![], vec![3, 5], vec![0, 4]]);
    let metadata = container.metadata();
    assert_eq!((metadata.model_type.as_str(), metadata.license.as_deref()), ("linear", Some("MIT")));
    assert_eq!(metadata.other["rope_theta"].as_f64(), Some(10000.0));

    let file = vector("f0723v2_names.apr");
    let container = Container::from_bytes(&file).unwrap();
    assert_eq!(container.tensor("héllo/世").unwrap().shape(), [1, 1, 1, 1, 1, 1, 1, 2]);
    assert!(container.header().flags().contains(Flags::QUANTIZED.with(Flags::HAS_VOCAB)));
    assert_eq!(container.tensor(&"n".repeat(256)).unwrap().to_f32().unwrap(), [3.0]);
}

/// One writer sets the flag and compresses nothing. Written again, the flag is gone.
#[test]
fn a_compression_flag_without_compression_is_a_warning() {
    let file = vector("f0723v2_lz4flag.apr");
    let container = Container::from_bytes(&file).unwrap();
    assert!(container.warnings().eq([Warning::NotCompressed { algorithm: "lz4" }]));
    let again = rewritten(&container);
    let back = edited(&again, |file| file[6] |= 1);
    assert!(back == file);
    assert!(Container::from_bytes(&again).unwrap().warnings().next().is_none());
}

/// Files of 2025 begin with another word and number three types differently.
#[test]
fn former_magic_and_former_numbers_are_read_and_renewed() {
    let file = vector("f0723v2_dtypes.apr");
    let former = edited(&file, |file| {
        file[3] = b'2';
        for (name, id) in [("t_aprq4", 8), ("t_aprq8", 9), ("t_bf16", 2)] {
            let at = file.windows(name.len()).position(|window| window == name.as_bytes()).unwrap();
            file[at + name.len()] = id;
        }
    });
    let container = Container::from_bytes(&former).unwrap();
    let info = container.index().tensor("t_bf16").unwrap();
    assert_eq!((info.dtype(), info.stored_dtype()), (AprType::Bf16, 2));
    assert!(container.tensor("t_aprq4").unwrap().to_f32().is_ok());
    assert!(rewritten(&container) == file);
}

#[test]
fn former_numbers_are_not_written() {
    let specs = [TensorSpec::new("x", AprType(2), &[4])];
    // The number says nothing by itself: a writer names today's.
    let error = Layout::new(specs, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.code(), "ac-v2-dtype");
    let carried = [TensorSpec { byte_len: Some(8), ..specs[0] }];
    let file = Layout::new(carried, &WriteOptions::default()).unwrap().to_vec(&[&[0; 8]]).unwrap();
    let container = Container::from_bytes_with(&file, &ReadOptions::STRICT).unwrap();
    assert_eq!(container.index().get(0).unwrap().stored_dtype(), 30);
}
