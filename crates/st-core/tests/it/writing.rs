//! Writers: bytes, options, refusals.

use std::collections::BTreeMap;
use std::io::{self, Write};

use st_core::{
    Alignment, Dtype, Error, ErrorKind, Header, Layout, Order, ReadOptions, SafeTensors, Subject, TensorSpec,
    TensorView, WriteOptions, to_vec, write_to,
};

use crate::file;

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn spec<'a>(name: &'a str, dtype: Dtype, shape: &'a [usize]) -> TensorSpec<'a> {
    TensorSpec { name, dtype, shape }
}

#[test]
fn bytes_are_the_official_writers() {
    let empty = to_vec(&[], &WriteOptions::default()).unwrap();
    assert_eq!(empty, file("{}      ", b""));

    let view = TensorView::new(Dtype::I8, &[2, 1], b"hi").unwrap();
    let scalar = TensorView::new(Dtype::F64, &[], b"12345678").unwrap();
    let metadata = Some(pairs(&[("b", "\u{1f}\u{7f}\"\\/é"), ("a", "\n\r\t\u{8}\u{c}\0")]));
    let options = WriteOptions { metadata, ..WriteOptions::default() };
    let written = to_vec(&[("z", view), ("a\n", view), ("m", scalar)], &options).unwrap();
    let header = concat!(
        r#"{"__metadata__":{"a":"\n\r\t\b\f\u0000","b":"\u001f"#,
        "\u{7f}",
        r#"\"\\/é"},"m":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"#,
        r#""a\n":{"dtype":"I8","shape":[2,1],"data_offsets":[8,10]},"z":{"dtype":"I8","shape":[2,1],"data_offsets":[10,12]}}"#,
    );
    let padded = header.to_owned() + &" ".repeat(header.len().next_multiple_of(8) - header.len());
    assert_eq!(written, file(&padded, b"12345678hihi"));
}

#[test]
fn an_empty_map_is_an_empty_object() {
    let options = WriteOptions { metadata: Some(BTreeMap::new()), ..WriteOptions::default() };
    assert_eq!(to_vec(&[], &options).unwrap(), file(r#"{"__metadata__":{}}     "#, b""));
    let view = TensorView::new(Dtype::U8, &[0], b"").unwrap();
    let written = to_vec(&[("a", view)], &options).unwrap();
    assert!(written[8..].starts_with(br#"{"__metadata__":{},"a":{"#));
    assert!(SafeTensors::from_bytes(&written).unwrap().header().metadata().unwrap().is_empty());
}

#[test]
fn orders() {
    let specs = [
        spec("c", Dtype::U8, &[1]),
        spec("a", Dtype::Bool, &[1]),
        spec("d", Dtype::F64, &[1]),
        spec("b", Dtype::U8, &[1]),
    ];
    for (order, expected) in
        [(Order::Official, [2, 3, 0, 1]), (Order::ByName, [1, 3, 0, 2]), (Order::AsGiven, [0, 1, 2, 3])]
    {
        let layout = Layout::new(specs, &WriteOptions { order, ..WriteOptions::default() }).unwrap();
        assert!(layout.tensors().iter().map(|tensor| tensor.input_idx).eq(expected));
        let file = layout.to_vec(&[b"c", b"a", b"dddddddd", b"b"]).unwrap();
        let tensors = SafeTensors::from_bytes(&file).unwrap();
        for (planned, (name, view)) in layout.tensors().iter().zip(tensors.iter()) {
            assert_eq!(name, specs[planned.input_idx].name);
            assert_eq!(view.data()[0], name.as_bytes()[0]);
            assert_eq!(planned.byte_len, view.data().len() as u64);
            let range = tensors.header().tensor(name).unwrap().file_range();
            assert_eq!(range.start, planned.offset);
        }
    }
}

#[test]
fn the_data_section_is_aligned() {
    assert_eq!(Alignment::default(), Alignment::B8);
    assert_eq!([Alignment::B64.bytes(), Alignment::PAGE.bytes()], [64, 4096]);
    for (bytes, accepted) in
        [(0, false), (4, false), (8, true), (12, false), (65_536, true), (131_072, false)]
    {
        assert_eq!(Alignment::new(bytes).map(Alignment::bytes), accepted.then_some(bytes));
    }
    for bytes in [8, 64, 256, 4096] {
        for header_room in [0, 1, 7, 8, 100] {
            let alignment = Alignment::new(bytes).unwrap();
            let plain = Layout::new([spec("a", Dtype::U8, &[3])], &WriteOptions::default()).unwrap();
            let options = WriteOptions { alignment, header_room, ..WriteOptions::default() };
            let layout = Layout::new([spec("a", Dtype::U8, &[3])], &options).unwrap();
            let start = layout.header_bytes().len();
            assert_eq!(start % bytes as usize, 0);
            let text_len = layout.header_bytes().trim_ascii_end().len();
            assert!(start - text_len >= header_room && start - text_len < header_room + bytes as usize);
            assert_eq!(layout.file_len(), start as u64 + 3);
            assert!(start >= plain.header_bytes().len());
            assert!(SafeTensors::from_bytes(&layout.to_vec(&[b"abc"]).unwrap()).is_ok());
        }
    }
}

#[test]
fn layouts_refuse_what_no_reader_could_use() {
    let error = |specs: &[TensorSpec<'_>], options: &WriteOptions| {
        let error = Layout::new(specs.iter().copied(), options).unwrap_err();
        (*error.kind(), error.subject().map(Subject::name).map(str::to_owned))
    };
    let named = |kind, name: &str| (kind, Some(name.to_owned()));
    let default = WriteOptions::default();
    let a = spec("a", Dtype::U8, &[1]);
    assert_eq!(error(&[a, a], &default), named(ErrorKind::DuplicateTensor, "a"));
    let reserved = spec("__metadata__", Dtype::U8, &[1]);
    assert_eq!(error(&[a, reserved], &default), named(ErrorKind::ReservedName, "__metadata__"));
    let overflow = spec("o", Dtype::F64, &[1 << 60, 1]);
    assert_eq!(error(&[a, overflow], &default), named(ErrorKind::SizeOverflow, "o"));
    let odd = spec("f", Dtype::F4, &[1]);
    assert_eq!(error(&[odd], &default), named(ErrorKind::PartialByte { bits: 4 }, "f"));
    // Sixteen times 2^60 bytes, then one byte less, after which the header does not fit.
    let names: Vec<_> = (b'a'..b'q').map(|letter| char::from(letter).to_string()).collect();
    let mut huge: Vec<_> = names.iter().map(|name| spec(name, Dtype::U8, &[1 << 60])).collect();
    assert_eq!(error(&huge, &default), named(ErrorKind::SizeOverflow, "p"));
    huge[15].shape = &[(1 << 60) - 1];
    assert_eq!(error(&huge, &default), (ErrorKind::SizeOverflow, None));
    let header_room = 100_000_000;
    assert_eq!(
        error(&[], &WriteOptions { header_room, ..WriteOptions::default() }).0,
        ErrorKind::HeaderTooLarge { len: 100_000_008, limit: 100_000_000 }
    );
    let just = WriteOptions { header_room: header_room - 2, ..WriteOptions::default() };
    assert_eq!(Layout::new([], &just).unwrap().file_len(), 100_000_008);
    let absurd = WriteOptions { header_room: usize::MAX, ..WriteOptions::default() };
    assert!(matches!(error(&[], &absurd).0, ErrorKind::HeaderTooLarge { .. }));
}

#[test]
fn data_has_to_be_what_was_declared() {
    let layout =
        Layout::new([spec("a", Dtype::U8, &[2]), spec("b", Dtype::U8, &[1])], &WriteOptions::default())
            .unwrap();
    assert_eq!(*layout.to_vec(&[b"ab"]).unwrap_err().kind(), ErrorKind::DataCount { needed: 2, given: 1 });
    let error = layout.to_vec(&[b"ab", b"cd"]).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::DataLength { needed: 1, given: 2 });
    assert_eq!(error.offset(), Some(layout.tensors()[1].offset));
    let mut sink = Vec::new();
    let error = layout.write_to(&mut sink, &[b"a", b"c"]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).unwrap();
    assert_eq!(*inner.kind(), ErrorKind::DataLength { needed: 2, given: 1 });
    assert!(sink.is_empty());
}

#[test]
fn all_ways_write_the_same() {
    let views = [
        ("a", TensorView::new(Dtype::U8, &[2], b"ab").unwrap()),
        ("b", TensorView::new(Dtype::I16, &[1], b"cd").unwrap()),
    ];
    let options = WriteOptions { metadata: Some(pairs(&[("k", "v")])), ..WriteOptions::default() };
    let expected = to_vec(&views, &options).unwrap();
    let mut written = Vec::new();
    write_to(&mut written, &views, &options).unwrap();
    assert_eq!(written, expected);
    let specs = views.iter().map(|(name, view)| spec(name, view.dtype(), view.shape()));
    let layout = Layout::new(specs, &options).unwrap();
    let mut streamed = Vec::new();
    layout
        .write_streamed(&mut streamed, |tensor, sink| {
            let data = views[tensor.input_idx].1.data();
            sink.write_all(&data[..1])?;
            sink.flush()?;
            sink.write_all(&data[1..])
        })
        .unwrap();
    assert_eq!(streamed, expected);
    let duplicate = write_to(&mut Vec::new(), &[views[0], views[0]], &options).unwrap_err();
    assert_eq!(duplicate.to_string(), "duplicate tensor name, tensor \"a\"");
}

#[test]
fn streams_refuse_other_lengths_at_once() {
    let layout = Layout::new([spec("a", Dtype::U8, &[4])], &WriteOptions::default()).unwrap();
    let start = layout.header_bytes().len();
    for (piece, expected_given) in [(&b"abc"[..], 3), (b"abcde", 5)] {
        let mut out = Vec::new();
        let error = layout.write_streamed(&mut out, |_, sink| sink.write_all(piece)).unwrap_err();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).unwrap();
        assert_eq!(*inner.kind(), ErrorKind::DataLength { needed: 4, given: expected_given });
        assert_eq!(inner.offset(), Some(start as u64));
        assert!(out.len() <= start + 4);
    }
    let broken = layout.write_streamed(&mut Vec::new(), |_, _| Err(io::Error::other("source is gone")));
    assert_eq!(broken.unwrap_err().to_string(), "source is gone");
}

/// Takes one byte at a time, then fails.
struct Narrow(usize);

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
        Ok(bytes.len().min(1))
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::Error::other("flushed"))
    }
}

#[test]
fn errors_of_the_sink_are_passed_on() {
    let layout = Layout::new([spec("a", Dtype::U8, &[4])], &WriteOptions::default()).unwrap();
    let len = layout.file_len() as usize;
    for capacity in [0, 8, len - 5, len - 1] {
        let error = layout.write_to(&mut Narrow(capacity), &[b"abcd"]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let error =
            layout.write_streamed(&mut Narrow(capacity), |_, sink| sink.write_all(b"abcd")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
    layout.write_streamed(&mut Narrow(len), |_, sink| sink.write_all(b"abcd")).unwrap();
    let error = layout.write_streamed(&mut Narrow(len), |_, sink| sink.flush()).unwrap_err();
    assert_eq!(error.to_string(), "flushed");
}

#[test]
fn metadata_changes_in_place_while_there_is_room() {
    let view = TensorView::new(Dtype::U8, &[2], b"ab").unwrap();
    let options =
        WriteOptions { metadata: Some(pairs(&[("k", "v")])), header_room: 16, ..WriteOptions::default() };
    let mut bytes = to_vec(&[("t", view)], &options).unwrap();
    let header = Header::from_bytes(&bytes, &ReadOptions::STRICT).unwrap();
    let text_len = bytes[..header.data_start() as usize].trim_ascii_end().len();
    let capacity = header.data_start() as usize - text_len;
    for (extra, missing) in [(0, None), (capacity, None), (capacity + 1, Some(1)), (capacity + 9, Some(9))] {
        let metadata = pairs(&[("k", &("v".to_owned() + &"x".repeat(extra)))]);
        match (header.with_metadata(Some(&metadata)), missing) {
            (Ok(start), None) => {
                assert_eq!(start.len() as u64, header.data_start());
                bytes[..start.len()].copy_from_slice(&start);
                let tensors = SafeTensors::from_bytes(&bytes).unwrap();
                assert_eq!(tensors.header().metadata().unwrap().get("k").map(str::len), Some(1 + extra));
                assert_eq!(tensors.tensor("t").unwrap(), view);
            }
            (Err(error), Some(missing)) => assert_eq!(*error.kind(), ErrorKind::NoHeaderRoom { missing }),
            other => panic!("{other:?}"),
        }
    }
    let start = header.with_metadata(None).unwrap();
    assert!(start[8..].starts_with(br#"{"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#));
}
