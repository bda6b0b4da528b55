//! Writing.

use alloc::collections::BTreeMap;
use std::io;

use proptest::prelude::*;
use st_core::{Dtype, Layout, TensorSpec, TensorView, WriteOptions};
use st_mmap::{ErrorKind, MappedSafeTensors, SafeTensorsFile, Subject, save, save_layout, set_metadata};

use crate::scratch::{Scratch, names, noise, save_bytes};

fn metadata(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn saved_bytes_are_those_of_to_vec_whatever_the_sizes() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    let data: Vec<Vec<u8>> = [0, 1, 100, 1000, 300_000, 5, 262_144, 7, 2_000_000, 3]
        .iter()
        .enumerate()
        .map(|(seed, len)| noise(*len, seed as u64))
        .collect();
    let shapes: Vec<[usize; 1]> = data.iter().map(|data| [data.len()]).collect();
    let names: Vec<String> = (0..data.len()).map(|idx| format!("t{idx}")).collect();
    let tensors: Vec<_> = names
        .iter()
        .zip(&shapes)
        .zip(&data)
        .map(|((name, shape), data)| (name.as_str(), TensorView::new(Dtype::U8, shape, data).unwrap()))
        .collect();
    let options = WriteOptions { metadata: Some(metadata(&[("a", "b")])), ..WriteOptions::default() };
    save(&path, &tensors, &options).unwrap();
    assert!(std::fs::read(&path).unwrap() == st_core::to_vec(&tensors, &options).unwrap());

    let specs =
        tensors.iter().map(|(name, view)| TensorSpec { name, dtype: view.dtype(), shape: view.shape() });
    let layout = Layout::new(specs, &options).unwrap();
    let streamed = scratch.join("s.safetensors");
    save_layout(&streamed, &layout, |planned, out| {
        data[planned.input_idx].chunks(777).try_for_each(|piece| out.write_all(piece))
    })
    .unwrap();
    assert!(std::fs::read(&streamed).unwrap() == std::fs::read(&path).unwrap());
}

#[test]
fn nothing_is_left_of_a_failed_save() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    save_bytes(&path, 10);
    let old = std::fs::read(&path).unwrap();
    let layout =
        Layout::new([TensorSpec { name: "w", dtype: Dtype::U8, shape: &[4] }], &WriteOptions::default())
            .unwrap();

    let few = save_layout(&path, &layout, |_, out| out.write_all(&[1, 2, 3])).unwrap_err();
    let many = save_layout(&path, &layout, |_, out| out.write_all(&[1, 2, 3, 4, 5])).unwrap_err();
    assert_eq!((few.code(), many.code()), ("st-data-length", "st-data-length"));
    let other = save_layout(&path, &layout, |_, _| Err(io::Error::other("source is gone"))).unwrap_err();
    assert_eq!(other.io_error().map(ToString::to_string), Some("source is gone".to_owned()));
    let ours = SafeTensorsFile::open(&path).unwrap();
    let ours = save_layout(&path, &layout, |_, _| Ok(ours.read_tensor("nope", &mut [])?)).unwrap_err();
    assert_eq!(
        (ours.code(), ours.subject().map(Subject::name)),
        ("st-not-found", Some("nope")),
        "our own error comes back as it is"
    );
    let view = TensorView::new(Dtype::U8, &[0], &[]).unwrap();
    let twice = save(&path, &[("w", view), ("w", view)], &WriteOptions::default()).unwrap_err();
    assert_eq!((twice.code(), twice.path()), ("st-duplicate-tensor", Some(path.as_path())));
    let nowhere = save(scratch.join("no/such/folder"), &[("w", view)], &WriteOptions::default()).unwrap_err();
    assert_eq!(nowhere.code(), "df-io");

    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(names(scratch.path()), ["m.safetensors"]);
}

#[cfg(unix)]
#[test]
fn saving_over_a_mapped_file_keeps_the_map() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    let data = save_bytes(&path, 100_000);
    let mapped = MappedSafeTensors::open(&path).unwrap();
    let tensors = [("v", mapped.tensor("w").unwrap())];
    save(&path, &tensors, &WriteOptions::default()).unwrap();
    assert!(mapped.tensor("w").unwrap().data() == data);
    assert!(MappedSafeTensors::open(&path).unwrap().tensor("v").unwrap().data() == data);
}

#[test]
fn metadata_is_changed_in_place_if_there_is_room() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    let data = noise(1000, 3);
    let view = TensorView::new(Dtype::U8, &[1000], &data).unwrap();
    save(&path, &[("w", view)], &WriteOptions { header_room: 64, ..WriteOptions::default() }).unwrap();
    let len = std::fs::metadata(&path).unwrap().len();
    let held = SafeTensorsFile::open(&path).unwrap();

    let first = metadata(&[("format", "pt"), ("é", "\"\n")]);
    set_metadata(&path, Some(&first)).unwrap();
    set_metadata(&path, Some(&first)).unwrap();
    let file = MappedSafeTensors::open(&path).unwrap();
    let read = file.header().metadata().unwrap();
    assert_eq!((read.len(), read.get("format"), read.get("é")), (2, Some("pt"), Some("\"\n")));
    assert_eq!(file.tensor("w").unwrap().data(), data);

    let before = std::fs::read(&path).unwrap();
    let error = set_metadata(&path, Some(&metadata(&[("long", &"x".repeat(200))]))).unwrap_err();
    match error.kind() {
        ErrorKind::Format(inner) => {
            assert!(
                matches!(inner.kind(), st_core::ErrorKind::NoHeaderRoom { missing } if (1..200).contains(missing))
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read(&path).unwrap(), before, "nothing was written");

    set_metadata(&path, None).unwrap();
    assert!(SafeTensorsFile::open(&path).unwrap().header().metadata().is_none());
    assert_eq!(std::fs::metadata(&path).unwrap().len(), len);
    let mut read = vec![0; 1000];
    held.read_tensor("w", &mut read).unwrap();
    assert_eq!(read, data, "an open reader goes on");
    assert_eq!(names(scratch.path()), ["m.safetensors"]);
}

#[test]
fn metadata_of_a_damaged_file_is_not_touched() {
    let scratch = Scratch::new();
    let path = scratch.join("m.safetensors");
    std::fs::write(&path, b"not a model at all").unwrap();
    assert!(set_metadata(&path, None).unwrap_err().code().starts_with("st-"));
    assert_eq!(std::fs::read(&path).unwrap(), b"not a model at all");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_saved_is_read(
        tensors in proptest::collection::btree_map(
            "[ -~é]{0,20}",
            (proptest::sample::select(Dtype::ELEMENTS.to_vec()), proptest::collection::vec(0usize..6, 0..4)),
            0..8,
        ),
        metadata in proptest::option::of(proptest::collection::btree_map(".{0,9}", ".{0,9}", 0..3)),
    ) {
        let mut owned = Vec::new();
        for (seed, (name, (dtype, shape))) in tensors.into_iter().enumerate() {
            // Shapes that end inside a byte are for other tests.
            if let Ok(len) = dtype.byte_len(&shape) && name != "__metadata__" {
                owned.push((name, dtype, shape, noise(len as usize, seed as u64)));
            }
        }
        let views: Vec<_> = owned
            .iter()
            .map(|(name, dtype, shape, data)| (name.as_str(), TensorView::new(*dtype, shape, data).unwrap()))
            .collect();
        let scratch = Scratch::new();
        let path = scratch.join("m.safetensors");
        let options = WriteOptions { metadata: metadata.clone(), ..WriteOptions::default() };
        save(&path, &views, &options).unwrap();
        let mapped = MappedSafeTensors::open(&path).unwrap();
        prop_assert_eq!(mapped.header().len(), views.len());
        for (name, view) in &views {
            let read = mapped.tensor(name).unwrap();
            prop_assert_eq!((read.dtype(), read.shape(), read.data()), (view.dtype(), view.shape(), view.data()));
        }
        let read = mapped.header().metadata();
        let read = read.map(|read| read.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect::<BTreeMap<_, _>>());
        prop_assert_eq!(read.unwrap_or_default(), metadata.unwrap_or_default());
    }
}
