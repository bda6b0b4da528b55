//! What is read, and how much of a file it takes.

use apr_container::Subject;
use apr_container::v2::{AprType, Container, Footer, Header, Index, Json, TensorView, WriteOptions, to_vec};
use apr_container::{Error, ErrorKind, Limits, ReadOptions};

use super::{BOTH, header, sample};

#[test]
fn an_index_reads_nothing_after_itself() {
    let file = sample();
    let data_offset = header(&file).data_offset_declared();
    for options in &BOTH {
        let mut reads = Vec::new();
        let index = Index::read(file.len() as u64, options, |offset, bytes| {
            reads.push((offset, bytes.len()));
            bytes.copy_from_slice(&file[offset as usize..][..bytes.len()]);
            Ok(())
        })
        .unwrap();
        assert_eq!(reads[0], (0, Header::LEN));
        assert!(reads.iter().all(|&(offset, len)| offset + len as u64 <= data_offset), "{reads:?}");
        assert_eq!(index.len(), 3);
        assert_eq!(index.data_start(), data_offset);
        assert_eq!(index.data_end() + 4, index.file_len());

        let needed = Index::prefix_len(&file[..64], file.len() as u64, options).unwrap();
        assert_eq!(needed, data_offset);
        let prefix = &file[..needed as usize];
        assert_eq!(Index::from_prefix(prefix, file.len() as u64, options).unwrap().len(), 3);
        let error = Index::from_prefix(&prefix[..prefix.len() - 1], file.len() as u64, options).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Truncated { part: "prefix", .. }));
    }
}

#[test]
fn errors_of_the_source_are_handed_on() {
    let failing = |_: u64, _: &mut [u8]| Err(Error::from(std::io::Error::other("unplugged")));
    let error = Index::read(100, &ReadOptions::STRICT, failing).unwrap_err();
    assert_eq!(error.code(), "ac-io");
}

/// The length of the file is part of what is proven: a short one is noticed without its end being read.
#[test]
fn a_short_file_is_noticed_from_its_beginning() {
    let file = sample();
    let data_offset = header(&file).data_offset_declared() as usize;
    for len in data_offset..file.len() - 4 {
        let found = Index::from_prefix(&file[..data_offset], len as u64, &ReadOptions::STRICT);
        assert_eq!(found.unwrap_err().code(), "ac-truncated");
    }
}

#[test]
fn a_file_without_a_look_at_its_end() {
    let mut file = sample();
    let last = file.len() - 1;
    file[last] ^= 1;
    let index = Index::from_bytes(&file, &ReadOptions::STRICT).unwrap();
    let container = Container::without_checksum(index.clone(), &file, &ReadOptions::STRICT).unwrap();
    assert_eq!((container.footer(), container.warnings().count()), (Footer::Unchecked, 0));
    assert_eq!(container.data("b").unwrap(), [1, 2, 3, 0xFF]);
    let error = Container::without_checksum(index, &file[1..], &ReadOptions::STRICT).unwrap_err();
    assert_eq!(error.code(), "ac-v2-data-length");
}

#[test]
fn tensors_are_found_by_name_and_in_order() {
    let file = sample();
    let container = Container::from_bytes(&file).unwrap();
    let names: Vec<_> = container.tensors().unwrap().map(|view| view.name().to_owned()).collect();
    assert_eq!(names, ["b", "nothing", "w"]);
    assert_eq!((container.len(), container.is_empty()), (3, false));
    assert_eq!(container.tensor("nothing").unwrap().to_f32().unwrap_err().code(), "ac-v2-dtype-mismatch");
    assert!(container.tensor("nothing").unwrap().elements::<f64>().unwrap().next().is_none());
    let error = container.tensor("W\u{1b}").unwrap_err();
    assert_eq!((error.code(), error.subject().map(Subject::name)), ("ac-v2-not-found", Some("W\u{1b}")));
    assert!(!error.to_string().contains('\u{1b}'));
    // The bytes outlive the container.
    let data = {
        let container = Container::from_bytes(&file).unwrap();
        container.data("b").unwrap()
    };
    assert_eq!(data, [1, 2, 3, 0xFF]);
}

#[test]
fn slices_lie_in_the_file_where_it_is_aligned() {
    let file = sample();
    let container = Container::from_bytes(&file).unwrap();
    let view = container.tensor("w").unwrap();
    match view.as_slice::<f32>() {
        Ok(slice) => assert_eq!(slice, [1.0, -2.5, 3.0]),
        Err(error) => assert_eq!(error.code(), "ac-v2-view"),
    }
    assert_eq!(container.tensor("b").unwrap().as_slice::<i8>().unwrap(), [1, 2, 3, -1]);
    assert_eq!(view.as_slice::<i32>().unwrap_err().code(), "ac-v2-dtype-mismatch");
}

#[test]
fn limits_hold() {
    let file = sample();
    let refusal = |limits: Limits| {
        let options = ReadOptions::STRICT.with_limits(limits);
        Container::from_bytes_with(&file, &options).unwrap_err().code()
    };
    assert_eq!(refusal(Limits { tensors: 2, ..Limits::DEFAULT }), "ac-limit");
    assert_eq!(refusal(Limits { metadata_bytes: 20, ..Limits::DEFAULT }), "ac-limit");
    assert_eq!(refusal(Limits { metadata_depth: 0, ..Limits::DEFAULT }), "ac-limit");
    assert_eq!(refusal(Limits { metadata_memory: 0, ..Limits::DEFAULT }), "ac-metadata-dense");
}

#[test]
fn metadata_that_are_no_json_have_a_place_in_the_file() {
    let mut options = WriteOptions::default();
    options.metadata.other.insert("k".into(), Json::from("value"));
    let file = to_vec(&[], &options).unwrap();
    let at = file.windows(7).position(|window| window == b"\"value\"").unwrap();
    let file = super::edited(&file, |file| file[at] = b'x');
    for options in &BOTH {
        let error = Container::from_bytes_with(&file, options).unwrap_err();
        assert_eq!((error.code(), error.offset()), ("ac-v2-json", Some(at as u64)));
    }
}

#[test]
fn debug_shows_what_is_inside_and_not_the_bytes() {
    let file = sample();
    let text = format!("{:?}", Container::from_bytes(&file).unwrap());
    assert!(text.contains("\"nothing\"") && text.contains("ROW_MAJOR") && text.len() < 1500, "{text}");
    let bytes = [0; 4];
    let view = TensorView::new("x", AprType::F32, &[1], &bytes).unwrap();
    assert_eq!(format!("{view:?}"), r#"TensorView { name: "x", dtype: F32, shape: [1], bytes: 4 }"#);
}
