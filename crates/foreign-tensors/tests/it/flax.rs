//! Flax.

use foreign_tensors::{Error, Model, NoCompanions, Options, Tensor, flax};

#[test]
fn every_vector_gives_its_tensors_or_is_refused() {
    crate::vectors::check(&["flax", "hostile/flax"]);
}

#[test]
fn mutants_are_refused_or_read_within_bounds() {
    crate::mutants::survive(&["flax", "hostile/flax"]);
}

fn text(text: &str) -> Vec<u8> {
    [&[0xd9, text.len() as u8], text.as_bytes()].concat()
}

fn extension(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[0xc7, bytes.len() as u8, kind], bytes].concat()
}

/// An array, or a scalar, of one dimension or none.
fn array(kind: u8, shape: &[u8], dtype: &str, bytes: &[u8]) -> Vec<u8> {
    let shape = [&[0x90 | shape.len() as u8], shape].concat();
    extension(kind, &[&[0x93], &shape[..], &text(dtype), &[0xc4, bytes.len() as u8], bytes].concat())
}

fn object(pairs: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let content: Vec<u8> =
        pairs.iter().flat_map(|(key, value)| [text(key), value.clone()].concat()).collect();
    [&[0x80 | pairs.len() as u8], &content[..]].concat()
}

fn opened(bytes: &[u8], key: &str) -> Result<Model, Error> {
    let mut options = Options::default();
    options.object = key.into();
    flax::read(&bytes, &NoCompanions, &options)
}

#[test]
fn values_that_are_no_tensors_are_entries() {
    let bytes = object(&[
        ("w", array(1, &[2], "float16", &[0; 4])),
        ("step", array(3, &[], "int32", &[4, 0, 0, 0])),
        ("half", array(3, &[], "float16", &[0; 2])),
        ("brain", array(3, &[], "bfloat16", &[0xc0, 0x3f])),
        ("z", extension(2, &[&[0x92, 0xcb, 0x3f, 0xf0], &[0; 6][..], &[0x02]].concat())),
        ("list", vec![0x93, 0xc3, 0xc0, 0xff]),
        ("text", text("a\"b")),
        ("empty", vec![0x80]),
        ("bytes", vec![0xc4, 1, 0]),
    ]);
    let model = opened(&bytes, "").unwrap();
    let names: Vec<&str> = model.tensors().iter().map(Tensor::name).collect();
    assert_eq!(names, ["w", "half"]);
    let entries: Vec<(&str, &str)> =
        model.entries().iter().map(|(name, json)| (name.as_str(), json.as_str())).collect();
    let expected = [
        ("step", "4"),
        ("brain", "1.5"),
        ("z", "{\"real\":1,\"imag\":2}"),
        ("list.0", "true"),
        ("list.1", "null"),
        ("list.2", "-1"),
        ("text", "\"a\\\"b\""),
        ("empty", "{}"),
    ];
    assert_eq!(entries, expected);
    assert_eq!(model.notes().len(), 1);
}

#[test]
fn a_key_chooses_a_nested_object() {
    let inner = object(&[("w", array(1, &[1], "uint8", &[7]))]);
    let bytes = object(&[("params", object(&[("a", inner.clone())])), ("paramsb", inner)]);
    for (key, expected) in [
        ("", &["params.a.w", "paramsb.w"][..]),
        ("params", &["a.w"]),
        ("params.a", &["w"]),
        ("params.a.w", &["w"]),
    ] {
        let model = opened(&bytes, key).unwrap();
        let names: Vec<&str> = model.tensors().iter().map(Tensor::name).collect();
        assert_eq!(names, expected, "{key}");
    }
    let error = opened(&bytes, "model").unwrap_err();
    assert_eq!(error.code(), "ft-key");
    assert!(error.to_string().contains("params, paramsb"), "{error}");
}

#[test]
fn chunks_are_put_together_by_their_numbers() {
    let chunk = |bytes: &[u8]| array(1, &[bytes.len() as u8], "uint8", bytes);
    let chunked = |shape: &[(&str, Vec<u8>)], chunks: &[(&str, Vec<u8>)]| {
        let whole =
            [("__msgpack_chunked_array__", vec![0xc3]), ("shape", object(shape)), ("chunks", object(chunks))];
        object(&[("w", object(&whole)), ("v", chunk(&[9]))])
    };
    let shape = [("0", vec![2]), ("1", vec![2])];
    let bytes = chunked(&shape, &[("1", chunk(&[3, 4])), ("0", chunk(&[1, 2]))]);
    let model = opened(&bytes, "").unwrap();
    assert_eq!(model.tensors()[0].shape(), [2, 2]);
    assert_eq!(model.tensors()[0].to_vec(&model, &bytes).unwrap(), [1, 2, 3, 4]);
    assert_eq!(model.tensors()[1].name(), "v");
    let other = array(1, &[2], "int8", &[0; 2]);
    for (shape, chunks) in [
        (&shape[..], &[("0", chunk(&[1, 2]))][..]),
        (&shape, &[("0", chunk(&[1, 2])), ("2", chunk(&[3, 4]))]),
        (&shape, &[("0", chunk(&[1, 2])), ("0", chunk(&[3, 4]))]),
        (&shape, &[("0", chunk(&[1, 2])), ("1", other)]),
        (&shape, &[]),
        (&shape[1..], &[("0", chunk(&[1, 2]))]),
    ] {
        assert!(opened(&chunked(shape, chunks), "").is_err(), "{shape:?} {chunks:?}");
    }
}

#[test]
fn other_files_are_refused() {
    let sound = object(&[("w", array(1, &[1], "uint8", &[7]))]);
    assert!(opened(&sound, "").is_ok());
    let deep = [[0x91].repeat(65), vec![0xc0]].concat();
    for (bytes, code) in [
        ([&sound[..], &[0xc0]].concat(), "ft-malformed"),
        (object(&[("w", text("PLACEHOLDER://w"))]), "ft-unsupported"),
        (object(&[("w", array(1, &[2], "uint8", &[7]))]), "ft-view"),
        (object(&[("w", array(1, &[0], "uint8", &[7]))]), "ft-view"),
        (
            object(&[
                ("a.b", array(1, &[1], "uint8", &[7])),
                ("a", object(&[("b", array(1, &[1], "uint8", &[7]))])),
            ]),
            "ft-duplicate-name",
        ),
        (vec![0x81, 0xc0, 0xc0], "ft-malformed"),
        (deep, "ft-limit"),
        (Vec::new(), "ft-malformed"),
    ] {
        assert_eq!(opened(&bytes, "").map_err(|error| error.code()).err(), Some(code), "{bytes:x?}");
    }
    for bytes in [array(1, &[1], "int4", &[7]), array(1, &[2], "float4_e2m1fn", &[7, 7]), extension(9, &[0])]
    {
        let model = opened(&object(&[("w", bytes)]), "").unwrap();
        assert_eq!(model.check().unwrap_err().code(), "ft-tensor-unsupported");
    }
}

#[test]
fn many_small_values_stay_within_the_bound() {
    for (name, value) in [("nil", &[0xc0][..]), ("empty", &[0x80]), ("arrays", &array(1, &[0], "uint8", &[]))]
    {
        let count = (1 << 20) / value.len();
        let list =
            [&[0x81, 0xa1, b'w', 0xdd], &(count as u32).to_be_bytes()[..], &value.repeat(count)].concat();
        crate::mutants::many_parts(name, &list);
    }
}
