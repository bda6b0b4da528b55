//! Headers that are repaired, and those that are not.

use st_core::{Change, ErrorKind, ReadOptions, Repair, SafeTensors};

const W: &str = r#""w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;

fn file(text: &str, data: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), data].concat()
}

/// The repaired file, which strict reading accepts.
fn repaired(file: &[u8]) -> (Vec<u8>, Vec<Change>) {
    let repair = Repair::new(file, file.len() as u64, &ReadOptions::STRICT).unwrap();
    let data = repair.data_range();
    let bytes = [repair.header_bytes(), &file[data.start as usize..data.end as usize]].concat();
    let read = SafeTensors::from_bytes(&bytes).unwrap();
    assert_eq!(read.header().metadata().is_some(), repair.header().metadata().is_some());
    assert_eq!(repair.header_bytes().len() % 8, 0);
    (bytes, repair.changes().to_vec())
}

fn refused(file: &[u8]) -> &'static str {
    Repair::new(file, file.len() as u64, &ReadOptions::STRICT).unwrap_err().code()
}

#[test]
fn values_of_the_metadata_become_their_json_text() {
    let metadata =
        r#"{"steps":5, "ok":"text", "cfg": {"a":[1,"x"]} ,"half":1.5e-3,"on":true,"no":null,"list":[]}"#;
    let (bytes, changes) = repaired(&file(&format!(r#"{{"__metadata__":{metadata},{W}}}"#), &[1; 8]));
    let read = SafeTensors::from_bytes(&bytes).unwrap();
    let metadata = read.header().metadata().unwrap();
    let values = [
        ("steps", "5"),
        ("ok", "text"),
        ("cfg", r#"{"a":[1,"x"]}"#),
        ("half", "1.5e-3"),
        ("on", "true"),
        ("no", "null"),
        ("list", "[]"),
    ];
    for (key, value) in values {
        assert_eq!(metadata.get(key), Some(value), "{key}");
    }
    assert_eq!(read.tensor("w").unwrap().data(), [1; 8]);
    let found: Vec<_> = changes
        .iter()
        .filter_map(|change| match change {
            Change::MetadataValue { found, .. } => Some(*found),
            _ => None,
        })
        .collect();
    assert_eq!(found, ["a number", "an object", "a number", "a boolean", "null", "an array"]);
}

#[test]
fn padding_and_alignment_are_made_right() {
    let text = format!("{{{W}}}");
    let (bytes, changes) = repaired(&file(&format!("{text}\0\0\0"), &[2; 8]));
    assert_eq!(changes[0], Change::ZeroPadding { count: 3 });
    assert!(bytes.ends_with(&[2; 8]));
    let (_, changes) = repaired(&file(&text, &[2; 8]));
    assert_eq!(changes, [Change::Alignment { from: 8 + text.len() as u64 }]);
    let padded = format!("{text}{}", " ".repeat(text.len().next_multiple_of(8) - text.len()));
    let whole = file(&padded, &[2; 8]);
    assert_eq!(repaired(&whole), (whole, Vec::new()), "nothing to repair");
}

#[test]
fn bytes_after_the_data_are_left_out() {
    let text = format!("{{{W}}}   ");
    for extra in [1, 7, 100] {
        let (bytes, changes) = repaired(&file(&text, &[3; 108][..8 + extra]));
        assert!(changes.contains(&Change::TrailingBytes { count: extra as u64 }), "{changes:?}");
        assert!(bytes.ends_with(&[3; 8]));
    }
}

#[test]
fn what_has_two_readings_or_none_is_refused() {
    let text = format!("{{{W}}}");
    // As many spaces as would align the data: padding that is not counted, or values.
    let spaces = (8 - (8 + text.len()) % 8) % 8;
    assert!(spaces > 0);
    let data = [&b"        "[..spaces], &[4; 8]].concat();
    assert_eq!(refused(&file(&text, &data)), "st-file-length");
    // A file that was cut.
    assert_eq!(refused(&file(&text, &[4; 7])), "st-file-length");
    assert_eq!(refused(&file(&format!("{text}x"), &[4; 8])), "st-json-trailing");
    assert_eq!(refused(&file(&format!(r#"{{"__metadata__":5,{W}}}"#), &[4; 8])), "st-entry-type");
    assert_eq!(refused(&file(&text.replace("[2]", "\"2\""), &[4; 8])), "st-entry-type");
    let twice = r#""__metadata__":{"a":1}"#;
    assert_eq!(refused(&file(&format!("{{{twice},{twice},{W}}}"), &[4; 8])), "st-metadata-duplicate");
    assert_eq!(refused(&file(r#"{"__metadata__":{"a":1"#, &[])), "st-json-end");
    assert_eq!(refused(b"1234"), "st-header-too-small");
    assert_eq!(refused(&file(&text, &[4; 8])[..20]), "st-header-length");
}

#[test]
fn lengths_of_a_file_that_was_cut_are_its_own() {
    // Headers of every length modulo 8.
    for spaces in 0..8 {
        let text = format!("{{{W}}}{}", " ".repeat(spaces));
        let cut = file(&text, &[1; 5]);
        let error = Repair::new(&cut, cut.len() as u64, &ReadOptions::STRICT).unwrap_err();
        let (expected, actual) = (cut.len() as u64 + 3, cut.len() as u64);
        assert_eq!(*error.kind(), ErrorKind::IncompleteFile { expected, actual }, "{spaces}");
    }
}
