//! What is refused, and how.

use st_structures::{
    Entry, ErrorKind, Limits, Node, Structure, Subject, Tensor, WriteOptions, from_bytes, to_vec, to_vec_with,
};

use crate::file;

/// Code and path of the refusal of a schema.
fn refusal(schema: &str) -> (&'static str, String) {
    let file = file(schema, "1.0.0");
    let error = Structure::from_bytes(&file).expect_err(schema);
    assert!(error.offset().is_none_or(|at| at <= schema.len() as u64), "{error}");
    assert!(ErrorKind::CODES.contains(&error.code()), "{error}");
    (error.code(), error.subject().map_or("", Subject::name).to_owned())
}

#[test]
fn schemas_are_refused_with_code_and_path() {
    let table = [
        ("", "ss-json", ""),
        ("[1", "ss-json", ""),
        ("{\"data_type\": \"int\", \"value\": \"1\"} x", "ss-json", ""),
        ("{\"data_type\": \"str\", \"value\": \"\\ud800\"}", "ss-json-surrogate", ""),
        ("null", "ss-type", ""),
        ("7", "ss-type", ""),
        ("{}", "ss-field-missing", ""),
        ("{\"data_type\": \"int\"}", "ss-field-missing", ""),
        ("{\"data_type\": 1, \"value\": \"1\"}", "ss-type", ""),
        ("{\"data_type\": \"int\", \"data_type\": \"int\", \"value\": \"1\"}", "ss-duplicate", ""),
        ("{\"data_type\": \"int\", \"value\": \"1\", \"extra\": null}", "ss-field-unknown", ""),
        ("{\"data_type\": \"int\", \"value\": 1}", "ss-type", ""),
        ("{\"data_type\": \"int\", \"value\": \"1.0\"}", "ss-number", ""),
        ("{\"data_type\": \"int\", \"value\": \"\"}", "ss-number", ""),
        ("{\"data_type\": \"float\", \"value\": \"one\"}", "ss-number", ""),
        ("{\"data_type\": \"complex\", \"value\": \"(1+2j\"}", "ss-number", ""),
        ("{\"data_type\": \"bool\", \"value\": \"True\"}", "ss-type", ""),
        ("{\"data_type\": \"NoneType\", \"value\": \"\"}", "ss-type", ""),
        ("{\"data_type\": \"str\", \"value\": null}", "ss-type", ""),
        ("{\"data_type\": \"list\", \"value\": {}}", "ss-type", ""),
        (
            "{\"data_type\": \"list\", \"value\": [{\"data_type\": \"os.system\", \"value\": \"ls\"}]}",
            "ss-data-type",
            "[0]",
        ),
        ("{\"data_type\": \"this.foo\", \"value\": null}", "ss-data-type", ""),
        ("{\"data_type\": \"bytes\", \"value\": \"0\"}", "ss-data-type", ""),
        ("{\"data_type\": \"apr:unknown\", \"value\": \"0\"}", "ss-data-type", ""),
        ("{\"data_type\": \"numpy.ndarray\", \"value\": \"1\"}", "ss-tensor", ""),
        ("{\"data_type\": \"numpy.ndarray\", \"value\": 0}", "ss-type", ""),
        ("{\"data_type\": \"apr:scalar\", \"value\": \"0\"}", "ss-tensor-shape", ""),
        ("{\"data_type\": \"dict\", \"value\": {}}", "ss-field-missing", ""),
        ("{\"data_type\": \"dict\", \"value\": {\"a\": null}, \"keys\": {}}", "ss-keys", ""),
        ("{\"data_type\": \"dict\", \"value\": {}, \"keys\": {\"a\": null}}", "ss-keys", ""),
        ("{\"data_type\": \"dict\", \"value\": {\"a\": null}, \"keys\": {\"b\": null}}", "ss-keys", ""),
        ("{\"data_type\": \"dict\", \"value\": {\"a\": null}, \"keys\": {\"a\": null}}", "ss-type", ".a"),
        (
            "{\"data_type\": \"dict\", \"value\": {\"a\": null, \"a\": null}, \"keys\": {\"a\": null}}",
            "ss-duplicate",
            "",
        ),
        ("{\"data_type\": \"apr:deque\", \"value\": [], \"maxlen\": \"-1\"}", "ss-number", ""),
        (
            "{\"data_type\": \"apr:defaultdict\", \"value\": {}, \"keys\": {}, \"factory\": \"os.getcwd\"}",
            "ss-data-type",
            "",
        ),
        ("{\"data_type\": \"apr:namedtuple\", \"value\": {}}", "ss-field-missing", ""),
        (
            "{\"data_type\": \"apr:enum\", \"name\": \"E\", \"variant\": \"A\", \"value\": null}",
            "ss-type",
            ".A",
        ),
    ];
    for (schema, code, path) in table {
        assert_eq!(refusal(schema), (code, path.to_owned()), "{schema}");
    }
}

#[test]
fn versions_and_files_without_schema_are_refused() {
    let none = "{\"data_type\": \"None\", \"value\": null}";
    assert_eq!(Structure::from_bytes(&file(none, "1.0.0")).unwrap().root, Node::None);
    for version in ["", "99", "1.0", "1.0.00", "2.0.0"] {
        let file = file(none, version);
        let error = Structure::from_bytes(&file).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::UnknownVersion { found: version.into() });
    }
    let bytes = |metadata: Option<&str>| {
        let metadata = metadata.map(|key| [(key.to_owned(), none.to_owned())].into());
        let options = st_core::WriteOptions { metadata, ..Default::default() };
        st_core::to_vec(&[], &options).unwrap()
    };
    let code = |file: &[u8]| from_bytes::<()>(file).unwrap_err().code();
    assert_eq!(code(&bytes(None)), "ss-no-schema");
    assert_eq!(code(&bytes(Some("format"))), "ss-no-schema");
    assert_eq!(code(&bytes(Some(st_structures::SCHEMA_KEY))), "ss-no-version");
    assert_eq!(code(b"GGUF"), "st-header-too-small");
}

fn nested(levels: usize) -> String {
    let open = "{\"data_type\": \"list\", \"value\": [".repeat(levels);
    open + &"]}".repeat(levels)
}

#[test]
fn depth_and_number_of_nodes_are_bounded() {
    let deepest = file(&nested(128), "1.0.0");
    let structure = Structure::from_bytes(&deepest).unwrap();
    assert!(structure.to_vec().is_ok());
    assert!(from_bytes::<serde::de::IgnoredAny>(&deepest).is_ok());
    assert_eq!(refusal(&nested(129)).0, "ss-depth");
    assert_eq!(refusal(&nested(100_000)).0, "ss-depth");
    let arrays = "{\"data_type\": \"list\", \"value\": ".to_owned() + &"[".repeat(100_000);
    assert_eq!(refusal(&arrays).0, "ss-depth");
    let unbounded = Limits { depth: 255, ..Limits::DEFAULT };
    assert_eq!(
        Structure::from_bytes_with(&file(&nested(129), "1.0.0"), &unbounded).unwrap_err().code(),
        "ss-depth"
    );
    let deeper = Structure::new(Node::List(vec![structure.root]));
    assert_eq!(deeper.to_vec().unwrap_err().code(), "ss-depth");

    let item = "{\"data_type\": \"NoneType\", \"value\": null}";
    let many = format!("{{\"data_type\": \"list\", \"value\": [{}]}}", [item; 9].join(", "));
    let many = file(&many, "1.0.0");
    let with = |nodes| Structure::from_bytes_with(&many, &Limits { nodes, ..Limits::DEFAULT });
    assert!(with(10).is_ok());
    for nodes in [0, 1, 4, 9] {
        assert_eq!(with(nodes).unwrap_err().code(), "ss-nodes", "{nodes}");
    }
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let code = |root| Structure::new(root).to_vec().unwrap_err().code();
    let key = |key| Entry::new(key, Node::None);
    assert_eq!(code(Node::Dict(vec![key(Node::Int(1)), key(Node::Str("1".into()))])), "ss-key-collision");
    assert_eq!(code(Node::BigInt("1e9".into())), "ss-number");
    let row = Tensor::from_f32(&[1], &[1.0]).unwrap();
    assert_eq!(code(Node::Scalar(row.into())), "ss-tensor-shape");
    assert_eq!(Tensor::from_f32(&[2], &[1.0]).unwrap_err().code(), "st-data-length");

    let options = WriteOptions {
        metadata: [(st_structures::VERSION_KEY.to_owned(), String::new())].into(),
        ..WriteOptions::default()
    };
    assert_eq!(to_vec_with(&1, &options).unwrap_err().code(), "ss-reserved-key");
    let map: std::collections::HashMap<Option<String>, u8> = [(None, 1), (Some("None".to_owned()), 2)].into();
    assert_eq!(to_vec(&map).unwrap_err().code(), "ss-key-collision");
}

/// Every truncation and every changed byte of a file is an error or another value, never a panic.
#[test]
fn damaged_files_never_panic() {
    let value = (1, "two", [Some(3.5), None], Tensor::from_f32(&[2], &[1.0, 2.0]).unwrap());
    let file = to_vec(&value).unwrap();
    for len in 0..file.len() {
        assert!(Structure::from_bytes(&file[..len]).is_err());
    }
    for idx in 0..file.len() {
        for byte in [0, b'"', b'{', b']', b'\\', b'9', 0xff] {
            let mut damaged = file.clone();
            damaged[idx] = byte;
            if let Ok(structure) = Structure::from_bytes(&damaged) {
                let again = structure.to_vec().unwrap();
                assert_eq!(Structure::from_bytes(&again).unwrap().to_vec().unwrap(), again);
            }
        }
    }
}
