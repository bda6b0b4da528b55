//! What is written, and what is not.

use apr_container::v2::{
    AprType, Container, Flags, Layout, Metadata, Order, Sharding, TensorSpec, TensorView, WriteOptions, save,
    to_vec, write_to,
};
use apr_container::{Error, ErrorKind, ReadOptions};
use apr_container::{Subject, v2};

use super::{header, sample};

fn spec<'a>(name: &'a str, dtype: AprType, shape: &'a [u64]) -> TensorSpec<'a> {
    TensorSpec::new(name, dtype, shape)
}

#[test]
fn refusals_name_the_tensor() {
    let long = "n".repeat(257);
    let cases = [
        (spec(&long, AprType::U8, &[1]), "ac-v2-name"),
        (spec("r", AprType::U8, &[1; 9]), "ac-v2-dimensions"),
        (spec("o", AprType::F64, &[1 << 61]), "ac-v2-overflow"),
        (spec("m", AprType::U8, &[u64::MAX]), "ac-v2-overflow"),
        (spec("t", AprType(77), &[1]), "ac-v2-dtype"),
        (TensorSpec { byte_len: Some(3), ..spec("s", AprType::F32, &[1]) }, "ac-v2-size"),
        (spec("twice", AprType::U8, &[1]), "ac-v2-duplicate-tensor"),
    ];
    for (refused, code) in cases {
        for order in [Order::ByName, Order::AsGiven] {
            let options = WriteOptions { order, ..WriteOptions::default() };
            let specs = [spec("twice", AprType::U8, &[1]), refused];
            let error = Layout::new(specs, &options).unwrap_err();
            assert_eq!(error.code(), code);
            let name = &refused.name[..refused.name.len().min(256)];
            assert_eq!(error.subject().map(Subject::name), Some(name));
        }
    }
}

#[test]
fn flags_promise_nothing_that_is_not_there() {
    let refused =
        [Flags::LZ4, Flags::ZSTD, Flags::ENCRYPTED, Flags::SIGNED, Flags::COLUMN_MAJOR, Flags(1 << 13)];
    for flags in refused {
        let options = WriteOptions { flags: flags.with(Flags::QUANTIZED), ..WriteOptions::default() };
        let error = Layout::new([], &options).unwrap_err();
        assert!(
            matches!(error.kind().v2(), Some(v2::ErrorKind::FlagNotWritten { flags: found }) if *found == flags)
        );
    }
    let mut options = WriteOptions { flags: Flags::HAS_VOCAB, ..WriteOptions::default() };
    options.metadata.sharding = Some(Sharding { shard_count: 1, ..Sharding::default() });
    let file = to_vec(&[], &options).unwrap();
    let expected = Flags::HAS_VOCAB.with(Flags::ROW_MAJOR).with(Flags::SHARDED);
    assert_eq!(header(&file).flags(), expected);
}

#[test]
fn data_has_to_be_what_was_declared() {
    let layout = Layout::new([spec("a", AprType::U8, &[3])], &WriteOptions::default()).unwrap();
    let code = |result: Result<Vec<u8>, Error>| result.unwrap_err().code();
    assert_eq!(code(layout.to_vec(&[])), "ac-v2-data-count");
    assert_eq!(code(layout.to_vec(&[b"ab"])), "ac-v2-data-length");
    let mut out = Vec::new();
    assert_eq!(layout.write_to(&mut out, &[b"abcd"]).unwrap_err().code(), "ac-v2-data-length");
    assert!(out.is_empty());
    for given in [&b"ab"[..], b"abcd"] {
        let mut sink = Vec::new();
        let streamed = layout.write_streamed(&mut sink, |_, sink| Ok(sink.write_all(given)?));
        let error = streamed.unwrap_err();
        let given = given.len() as u64;
        assert!(
            matches!(error.kind().v2(), Some(v2::ErrorKind::DataLength { needed: 3, given: found }) if *found == given)
        );
    }
}

#[test]
fn all_functions_write_the_same_bytes() {
    let bytes = [1u8; 200];
    let views = [
        TensorView::new("z", AprType::U8, &[100], &bytes[..100]).unwrap(),
        TensorView::new("a", AprType::AprQ4, &[3, 32], &bytes[..54]).unwrap(),
    ];
    for order in [Order::ByName, Order::AsGiven] {
        let options = WriteOptions { metadata: Metadata::new("m"), order, ..WriteOptions::default() };
        let whole = to_vec(&views, &options).unwrap();
        let mut written = Vec::new();
        write_to(&mut written, &views, &options).unwrap();
        assert!(whole == written);

        let layout = Layout::new(views.map(TensorSpec::from), &options).unwrap();
        assert!(whole.starts_with(layout.prefix_bytes()) && whole.len() as u64 == layout.file_len());
        let mut streamed = Vec::new();
        layout
            .write_streamed(&mut streamed, |tensor, sink| {
                for byte in views[tensor.input_idx].data() {
                    assert_eq!(sink.write(&[*byte])?, 1);
                }
                sink.flush()?;
                Ok(())
            })
            .unwrap();
        assert!(whole == streamed);
        assert!(Container::from_bytes(&whole).unwrap().tensors().unwrap().eq([views[1], views[0]]));
    }
}

#[test]
fn saving_replaces_a_file_whole_or_not_at_all() {
    let path = std::env::temp_dir().join(format!("apr-container-v2-it-{}", std::process::id()));
    let bytes = vec![9u8; 300_000];
    let views = [TensorView::new("w", AprType::U8, &[300_000], &bytes).unwrap()];
    save(&path, &views, &WriteOptions::default()).unwrap();
    let saved = std::fs::read(&path).unwrap();
    assert!(saved == to_vec(&views, &WriteOptions::default()).unwrap());

    let layout = Layout::new(views.map(TensorSpec::from), &WriteOptions::default()).unwrap();
    let failed = layout.save_streamed(&path, |_, sink| {
        sink.write_all(&bytes[..1000])?;
        Err(Error::from(std::io::Error::other("the source is gone")))
    });
    assert_eq!(failed.unwrap_err().code(), "ac-io");
    assert!(std::fs::read(&path).unwrap() == saved);
    std::fs::remove_file(&path).unwrap();
    let missing = std::env::temp_dir().join("apr-container-no-such-folder").join("x.apr");
    let error = save(&missing, &views, &WriteOptions::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File(_)));
}

#[test]
fn a_file_that_was_read_is_written_with_what_it_had() {
    let file = sample();
    let container = Container::from_bytes(&file).unwrap();
    let views: Vec<_> = container.tensors().unwrap().collect();
    let mut options = WriteOptions::like(container.index());
    assert!(to_vec(&views, &options).unwrap() == file);
    options.metadata.author = Some("someone".into());
    let changed = to_vec(&views, &options).unwrap();
    let container = Container::from_bytes_with(&changed, &ReadOptions::STRICT).unwrap();
    assert_eq!(container.metadata().author.as_deref(), Some("someone"));
}
