//! What is accepted, and what it means.

use st_core::{Dtype, Header, ReadOptions, SafeTensors, find};

use crate::file;

#[test]
fn the_smallest_files() {
    for header in ["{}", "{} \n\t\r ", "{ }", r#"{"__metadata__":null}"#, r#"{"__metadata__":{ } }"#] {
        let bytes = file(header, b"");
        let parsed = Header::from_bytes(&bytes, &ReadOptions::STRICT).expect(header);
        assert!(parsed.is_empty());
        assert!(SafeTensors::from_bytes(&bytes).unwrap().is_empty());
        assert_eq!(parsed.file_len(), bytes.len() as u64);
        assert_eq!(parsed.metadata().is_some(), header.contains("{ } }"));
        assert!(parsed.tensor("a").is_none());
    }
}

#[test]
fn white_space_and_field_order_are_free() {
    let header = " \r\n{ \"a\\u0062\" :\t{ \"shape\" : [ 2 , 1 ] , \"extra\" : { \"x\" : [ null , true , false , \"\\n\" , { } , [ ] ] } , \
                  \"data_offsets\" : [ 0 , 4 ] , \"d\\u0074ype\" : \"\\u0046\\u00316\" } , \"__metadata__\" : { \"k\" : \"v\" , \"l\" : \"\" } } ";
    let parsed = Header::from_bytes(&file(header, b"1234"), &ReadOptions::COMPAT).unwrap();
    let info = parsed.tensor("ab").unwrap();
    assert_eq!((info.dtype(), info.shape(), info.data_offsets()), (Dtype::F16, &[2, 1][..], (0, 4)));
    let metadata = parsed.metadata().unwrap();
    assert_eq!((metadata.len(), metadata.is_empty()), (2, false));
    assert_eq!(metadata.iter().collect::<Vec<_>>(), [("k", "v"), ("l", "")]);
    assert_eq!((metadata.get("k"), metadata.get("l"), metadata.get("m")), (Some("v"), Some(""), None));
}

#[test]
fn escapes_are_resolved() {
    let header = r#"{"__metadata__":{"\"\\\/\b\f\n\r\t\u00e9\u20AC\ud83d\ude00\udbff\udfff":"\u0000"}}"#;
    let parsed = Header::from_bytes(&file(header, b""), &ReadOptions::STRICT).unwrap();
    let metadata: Vec<_> = parsed.metadata().unwrap().iter().collect();
    assert_eq!(metadata, [("\"\\/\u{8}\u{c}\n\r\té€😀\u{10ffff}", "\0")]);
}

#[test]
fn file_order_is_the_order_of_offsets() {
    let header = r#"{"z":{"dtype":"U8","shape":[1],"data_offsets":[3,4]},"y":{"dtype":"U8","shape":[0],"data_offsets":[3,3]},"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"w":{"dtype":"U8","shape":[0],"data_offsets":[3,3]}}"#;
    let bytes = file(header, b"abcd");
    let tensors = SafeTensors::from_bytes(&bytes).unwrap();
    let names: Vec<_> = tensors.iter().map(|(name, view)| (name, view.data())).collect();
    assert_eq!(names, [("x", &b"abc"[..]), ("y", b""), ("w", b""), ("z", b"d")]);
    assert_eq!((tensors.len(), tensors.is_empty(), tensors.iter().len()), (4, false, 4));
    for (idx, info) in tensors.header().iter().enumerate() {
        assert_eq!(info.index(), idx);
        assert_eq!(tensors.header().tensor(info.name()).unwrap().index(), idx);
        assert_eq!(tensors.header().get(idx).unwrap().name(), info.name());
        assert_eq!(find(&bytes, info.name()).unwrap().unwrap().data(), tensors.data(info.name()).unwrap());
    }
    let start = 8 + header.len() as u64;
    let header_ref = tensors.header();
    let z = header_ref.tensor("z").unwrap();
    assert_eq!((z.file_range(), z.byte_len(), z.element_count()), (start + 3..start + 4, 1, 1));
    let x = header_ref.tensor("x").unwrap();
    assert_eq!((x.file_range(), x.byte_len(), x.element_count()), (start..start + 3, 3, 3));
    assert_eq!(
        (header_ref.header_len(), header_ref.data_start(), header_ref.data_len()),
        (start - 8, start, 4)
    );
    assert_eq!(header_ref.file_len(), bytes.len() as u64);
    assert!(header_ref.get(4).is_none());
    assert_eq!(header_ref.into_iter().len(), 4);
}

#[test]
fn prefix_is_enough_for_the_header() {
    let header = r#"{"a":{"dtype":"F64","shape":[1000,1000],"data_offsets":[0,8000000]}}"#;
    let mut prefix = file(header, b"");
    let len = prefix.len() as u64 + 8_000_000;
    let declared = Header::declared_len(*prefix.first_chunk().unwrap(), len, &ReadOptions::STRICT).unwrap();
    assert_eq!(declared, header.len() as u64);
    prefix.extend_from_slice(b"the tensors begin here");
    let parsed = Header::from_prefix(&prefix, len, &ReadOptions::STRICT).unwrap();
    assert_eq!(parsed.tensor("a").unwrap().byte_len(), 8_000_000);
}

#[test]
fn data_outlives_the_container() {
    let bytes = file(r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#, b"hi");
    let data = {
        let tensors = SafeTensors::from_bytes(&bytes).unwrap();
        assert!(tensors.data("b").is_none());
        tensors.data("a").unwrap()
    };
    assert_eq!(data, b"hi");
}

#[test]
fn parts_have_to_fit_each_other() {
    let bytes = file(r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#, b"hi");
    let header = Header::from_bytes(&bytes, &ReadOptions::STRICT).unwrap();
    assert_eq!(SafeTensors::from_parts(header.clone(), b"yo").unwrap().data("a"), Some(&b"yo"[..]));
    assert_eq!(SafeTensors::from_parts(header.clone(), b"you").unwrap_err().code(), "st-data-length");
    assert!(header.tensor("a").unwrap().view(b"y").is_none());
    assert_eq!(header.tensor("a").unwrap().view(b"you").unwrap().data(), b"yo");
}

#[test]
fn missing_tensors_are_named() {
    let bytes = file("{}", b"");
    let tensors = SafeTensors::from_bytes(&bytes).unwrap();
    let error = tensors.tensor("encoder.weight").unwrap_err();
    assert_eq!(error.to_string(), "tensor not found, tensor \"encoder.weight\"");
}

#[test]
fn names_of_every_length_are_found() {
    // Around the words and pairs of words the hash and the scanner work in.
    let mut entries = String::new();
    for len in 0..70 {
        let name = "é".repeat(len / 2) + &"x".repeat(len % 2);
        entries += &format!(r#","{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{len},{}]}}"#, len + 1);
    }
    let bytes = file(&format!("{{{}}}", &entries[1..]), &[0; 70]);
    let header = Header::from_bytes(&bytes, &ReadOptions::STRICT).unwrap();
    for (len, info) in header.iter().enumerate() {
        assert_eq!(info.name().len(), len);
        assert_eq!(header.tensor(info.name()).map(|found| found.index()), Some(len));
        assert_eq!(find(&bytes, info.name()).unwrap().map(|found| found.data().len()), Some(1));
    }
}

/// Memory for long headers is reserved from their first entry, whatever follows it.
#[test]
fn long_headers_are_read() {
    let entry = |name: &str, shape: &str, at: usize| {
        format!(r#","{name}":{{"dtype":"U8","shape":{shape},"data_offsets":[{at},{}]}}"#, at + 1)
    };
    let ones = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    for (first_rank, other_rank, first_name) in [(2, 2, 1), (1, 3, 1), (900, 0, 1), (0, 1, 60_000)] {
        let mut entries = entry(&"n".repeat(first_name), &ones(first_rank), 0);
        for idx in 1..2000 {
            entries += &entry(&format!("layers.{idx}.weight"), &ones(other_rank), idx);
        }
        let bytes = file(&format!("{{{}}}", &entries[1..]), &[7; 2000]);
        let header = Header::from_bytes(&bytes, &ReadOptions::STRICT).unwrap();
        assert_eq!(header.len(), 2000);
        for (idx, info) in header.iter().enumerate() {
            assert_eq!(info.shape().len(), if idx == 0 { first_rank } else { other_rank });
            assert_eq!(header.tensor(info.name()).map(|found| found.index()), Some(idx));
        }
    }
}

#[test]
fn integers_of_every_length_are_read() {
    // Zero first, so that the product stays zero.
    let mut dims = vec![0u64];
    for digits in 1..20 {
        dims.extend([
            10u64.pow(digits - 1),
            10u64.pow(digits) - 1,
            1_234_567_890_123_456_789 / 10u64.pow(19 - digits),
        ]);
    }
    dims.extend([u64::MAX, 0]);
    let list = dims.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    for space in ["", " "] {
        let header = format!(r#"{{"a":{{{space}"dtype":"U8","shape":[{list}],"data_offsets":[0,0]}}}}"#);
        let bytes = file(&header, b"");
        let parsed = Header::from_bytes(&bytes, &ReadOptions::STRICT).unwrap();
        assert!(parsed.tensor("a").unwrap().shape().iter().map(|&dim| dim as u64).eq(dims.iter().copied()));
        assert!(find(&bytes, "a").unwrap().unwrap().dims().eq(dims.iter().copied()));
    }
}

#[test]
fn found_tensors_carry_type_and_dimensions() {
    let bytes = file(
        r#"{"__metadata__":{"a":"b"},"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"a":{ "dtype":"I16","shape": [ 1, 2 ] ,"data_offsets":[4,8]}}"#,
        b"12345678",
    );
    let scalar = find(&bytes, "s").unwrap().unwrap();
    assert_eq!((scalar.dtype(), scalar.dims().count(), scalar.data()), (Dtype::F32, 0, &b"1234"[..]));
    let matrix = find(&bytes, "a").unwrap().unwrap();
    assert_eq!((matrix.dtype(), matrix.data()), (Dtype::I16, &b"5678"[..]));
    assert!(matrix.dims().eq([1, 2]));
    assert!(find(&bytes, "__metadata__").unwrap().is_none());
}

#[test]
fn debug_shows_the_table() {
    let bytes =
        file(r#"{"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#, b"hi");
    let tensors = SafeTensors::from_bytes(&bytes).unwrap();
    assert_eq!(
        format!("{tensors:?}"),
        "Header { header_len: 78, metadata: Some({\"k\": \"v\"}), tensors: [TensorInfo { name: \"a\", dtype: U8, \
         shape: [2], data_offsets: (0, 2) }] }"
    );
    let view = tensors.tensor("a").unwrap();
    assert_eq!(format!("{view:?}"), "TensorView { dtype: U8, shape: [2], bytes: 2 }");
}
