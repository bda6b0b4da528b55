//! Any tensors and options: refused, or written so that both readers give the same tensors back.

#![no_main]

use std::collections::BTreeMap;

use apr_fuzz::Choices;
use conformance::content::{Content, Tensor};
use conformance::{official, ours};
use libfuzzer_sys::fuzz_target;
use st_core::{Alignment, Dtype, ErrorKind, Header, Layout, Order, ReadOptions, TensorSpec, WriteOptions};

fuzz_target!(|input: &[u8]| {
    let choices = &mut Choices::new(input);
    let data: Vec<u8> = input.iter().cycle().take(4096 * usize::from(!input.is_empty())).copied().collect();
    let options = WriteOptions {
        metadata: metadata(choices),
        alignment: Alignment::new(8 << choices.below(14)).expect("a power of two from 8 to 65,536"),
        order: choices.pick([Order::Official, Order::ByName, Order::AsGiven]),
        header_room: choices.below(256),
    };
    let given: Vec<(String, Dtype, Vec<usize>)> = (0..choices.below(8))
        .map(|_| {
            let dtype = Dtype::ELEMENTS[choices.below(Dtype::ELEMENTS.len())];
            (text(choices), dtype, (0..choices.below(5)).map(|_| choices.below(6)).collect())
        })
        .collect();
    let specs = given.iter().map(|(name, dtype, shape)| TensorSpec { name, dtype: *dtype, shape });
    let layout = match Layout::new(specs.clone(), &options) {
        Ok(layout) => layout,
        Err(error) => return assert!(refused_rightly(&given, *error.kind()), "{error}: {given:?}"),
    };
    assert_eq!(Layout::new(specs, &options).as_ref(), Ok(&layout));

    let mut slices: Vec<&[u8]> = vec![&[]; given.len()];
    for planned in layout.tensors() {
        let Some(slice) = data.get(..planned.byte_len as usize) else { return };
        slices[planned.input_idx] = slice;
    }
    let file = layout.to_vec(&slices).expect("every slice is as long as planned");
    assert_eq!(layout.file_len(), file.len() as u64);
    assert!(file.starts_with(layout.header_bytes()));
    assert_eq!(layout.header_bytes().len() % options.alignment.bytes() as usize, 0);

    let mut streamed = Vec::new();
    let pulled = layout.write_streamed(&mut streamed, |planned, sink| {
        slices[planned.input_idx].chunks(7).try_for_each(|piece| sink.write_all(piece))
    });
    assert!(pulled.is_ok() && streamed == file);

    let read = ours::read(&file, &ReadOptions::STRICT).expect("what we write we read");
    let expected = given.iter().zip(&slices).map(|((name, dtype, shape), data)| {
        let begin = read.tensors.get(name).map_or(0, |tensor| tensor.begin);
        (name.clone(), Tensor { dtype: *dtype, shape: shape.clone(), begin, data })
    });
    let expected = Content { tensors: expected.collect(), metadata: options.metadata.clone() };
    assert_eq!(read, expected);
    assert_eq!(official::read(&file), Ok(expected.clone()));
    // The crate's own bytes are random with two metadata entries or more, and not JSON with none and no tensor.
    let reproducible = match &expected.metadata {
        None => true,
        Some(metadata) => metadata.len() == 1 || metadata.is_empty() && !given.is_empty(),
    };
    if reproducible {
        let ours = ours::write(&expected, &WriteOptions::default()).expect("laid out before");
        assert_eq!(official::write(&expected), Ok(ours), "the official bytes");
    }
    edit(choices, &file, &expected);
});

/// Changes the metadata in place.
fn edit(choices: &mut Choices<'_>, file: &[u8], content: &Content<'_>) {
    let header = Header::from_bytes(file, &ReadOptions::STRICT).expect("read before");
    let metadata = metadata(choices);
    match header.with_metadata(metadata.as_ref()) {
        Ok(start) => {
            assert_eq!(start.len() as u64, header.data_start());
            let edited = [&start, &file[start.len()..]].concat();
            let read = ours::read(&edited, &ReadOptions::STRICT).expect("an edit keeps a file sound");
            assert_eq!((read.tensors, read.metadata), (content.tensors.clone(), metadata));
        }
        Err(error) => {
            let ErrorKind::NoHeaderRoom { missing } = *error.kind() else { panic!("{error}") };
            // With exactly that limit it would have fitted.
            let options = WriteOptions { metadata, order: Order::AsGiven, ..WriteOptions::default() };
            let specs = header.iter().map(|info| TensorSpec {
                name: info.name(),
                dtype: info.dtype(),
                shape: info.shape(),
            });
            let needed = Layout::new(specs, &options).expect("the same tensors").header_bytes().len() as u64;
            assert_eq!((header.data_start() + missing).next_multiple_of(8), needed);
        }
    }
}

fn refused_rightly(given: &[(String, Dtype, Vec<usize>)], kind: ErrorKind) -> bool {
    let bits = |(_, dtype, shape): &(String, Dtype, Vec<usize>)| {
        shape.iter().product::<usize>() * dtype.bits() as usize
    };
    match kind {
        ErrorKind::DuplicateTensor => given
            .iter()
            .enumerate()
            .any(|(idx, (name, ..))| given[..idx].iter().any(|(other, ..)| other == name)),
        ErrorKind::ReservedName => given.iter().any(|(name, ..)| name == "__metadata__"),
        ErrorKind::PartialByte { .. } => given.iter().any(|tensor| !bits(tensor).is_multiple_of(8)),
        _ => false,
    }
}

fn metadata(choices: &mut Choices<'_>) -> Option<BTreeMap<String, String>> {
    (!choices.rarely(3)).then(|| (0..choices.below(5)).map(|_| (text(choices), text(choices))).collect())
}

fn text(choices: &mut Choices<'_>) -> String {
    if choices.rarely(200) {
        return "__metadata__".to_owned();
    }
    let piece = |choices: &mut Choices<'_>| match choices.byte() {
        ascii @ 0..=127 => char::from(ascii),
        _ => choices.pick(['a', 'é', '"', '\\', '\u{2028}', '\u{ffff}', '😀', '\u{10ffff}']),
    };
    (0..choices.below(20)).map(|_| piece(choices)).collect()
}
