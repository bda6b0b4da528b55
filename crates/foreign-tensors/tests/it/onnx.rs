//! ONNX.

use foreign_tensors::{Companions, Error, Model, NoCompanions, Options, Tensor, onnx};
use read_at::ReadAt;

#[test]
fn every_vector_gives_its_tensors_or_is_refused() {
    crate::vectors::check(&["onnx", "hostile/onnx"]);
}

#[test]
fn mutants_are_refused_or_read_within_bounds() {
    crate::mutants::survive(&["onnx", "hostile/onnx"]);
}

/// One file of 16 bytes.
struct Beside;

impl Companions for Beside {
    fn open(&self, path: &str) -> Result<Box<dyn ReadAt + Send + Sync>, Error> {
        if path == "w.bin" { Ok(Box::new((0..16).collect::<Vec<u8>>())) } else { NoCompanions.open(path) }
    }
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(number < 32 && bytes.len() < 1 << 14);
    let tag = u16::from(number) << 3 | 2;
    let tag = if tag < 0x80 { vec![tag as u8] } else { vec![tag as u8 | 0x80, (tag >> 7) as u8] };
    [&tag[..], &[bytes.len() as u8 | 0x80, (bytes.len() >> 7) as u8], bytes].concat()
}

fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

/// A tensor of this name, type and length, and its other fields.
fn tensor(name: &str, data_type: u8, len: u8, more: &[Vec<u8>]) -> Vec<u8> {
    [number(1, len), number(2, data_type), field(8, name.as_bytes()), more.concat()].concat()
}

fn node(operator: &str, output: &str, name: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let attributes: Vec<u8> = attributes.iter().flat_map(|attribute| field(5, attribute)).collect();
    [field(2, output.as_bytes()), field(3, name.as_bytes()), field(4, operator.as_bytes()), attributes]
        .concat()
}

fn opened(graph: &[Vec<u8>]) -> Result<Model, Error> {
    let file = [number(1, 8), field(7, &graph.concat())].concat();
    onnx::read(&file, &Beside, &Options::default())
}

fn external(keys: &[(&str, &str)]) -> Vec<u8> {
    let pairs = keys
        .iter()
        .map(|(key, value)| field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat()));
    [pairs.collect::<Vec<_>>().concat(), number(14, 1)].concat()
}

/// The code with which one initializer is refused, when it is opened or when it is read.
fn refusal(tensor: &[u8]) -> Option<&'static str> {
    let file = [number(1, 8), field(7, &field(5, tensor))].concat();
    let read = || {
        let model = onnx::read(&file, &Beside, &Options::default())?;
        model.check()?;
        model.tensors().iter().try_for_each(|tensor| tensor.to_vec(&model, &file).map(|_| ()))
    };
    read().err().map(|error| error.code())
}

#[test]
fn tensors_are_refused_whose_data_is_not_what_type_and_shape_say() {
    let raw = |len: usize| field(9, &vec![0; len]);
    for (expected, tensor) in [
        (None, tensor("w", 2, 2, &[raw(2)])),
        (None, tensor("w", 2, 2, &[field(5, &[1, 2])])),
        (None, tensor("w", 2, 2, &[number(5, 1), number(5, 2)])),
        (None, tensor("w", 3, 1, &[field(5, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")])),
        (None, tensor("w", 22, 3, &[field(5, &[0x21, 0x03])])),
        (None, tensor("w", 1, 0, &[raw(0)])),
        (Some("ft-view"), tensor("w", 2, 2, &[raw(1)])),
        (Some("ft-view"), tensor("w", 2, 2, &[raw(3)])),
        (Some("ft-view"), tensor("w", 2, 2, &[])),
        (Some("ft-view"), tensor("w", 2, 2, &[field(5, &[1])])),
        (Some("ft-view"), tensor("w", 2, 2, &[field(5, &[1, 2, 3])])),
        (Some("ft-view"), tensor("w", 1, 2, &[field(4, &[0; 4])])),
        (Some("ft-view"), tensor("w", 1, 2, &[field(4, &[0; 9])])),
        (Some("ft-malformed"), tensor("w", 2, 2, &[field(5, b"\x80\x02\x00")])),
        (Some("ft-malformed"), tensor("w", 9, 1, &[field(5, &[2])])),
        (Some("ft-malformed"), tensor("w", 2, 2, &[raw(2), field(5, &[1, 2])])),
        (Some("ft-malformed"), tensor("w", 2, 2, &[raw(2), raw(2)])),
        (Some("ft-malformed"), tensor("w", 2, 2, &[field(7, &[1, 2])])),
        (Some("ft-malformed"), tensor("w", 2, 2, &[field(5, &[1]), field(7, &[1])])),
        (Some("ft-malformed"), tensor("w", 2, 2, &[raw(2), field(8, b"v")])),
        (Some("ft-malformed"), tensor("w", 0, 2, &[raw(2)])),
        (Some("ft-malformed"), tensor("", 2, 2, &[raw(2)])),
        (
            Some("ft-malformed"),
            tensor("\u{1}", 2, 2, &[raw(2), field(1, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")]),
        ),
        (Some("ft-unsupported"), tensor("w", 2, 2, &[raw(2), field(3, &[])])),
        (Some("ft-tensor-unsupported"), tensor("w", 27, 2, &[raw(2)])),
        (Some("ft-limit"), tensor("w", 2, 1, &[field(1, &[1; 64]), raw(1)])),
        (None, tensor("w", 1, 2, &[external(&[("location", "w.bin"), ("offset", "8"), ("length", "8")])])),
        (None, tensor("w", 1, 4, &[external(&[("location", "w.bin"), ("unknown", "")])])),
        (None, tensor("w", 1, 2, &[external(&[("location", "./w.bin"), ("offset", "8")])])),
        (Some("ft-view"), tensor("w", 1, 2, &[external(&[("location", "w.bin"), ("offset", "9")])])),
        (Some("ft-view"), tensor("w", 1, 2, &[external(&[("location", "w.bin"), ("length", "4")])])),
        (
            Some("ft-view"),
            tensor("w", 1, 2, &[external(&[("location", "w.bin"), ("offset", "18446744073709551615")])]),
        ),
        (Some("ft-malformed"), tensor("w", 1, 2, &[external(&[("offset", "8")])])),
        (
            Some("ft-malformed"),
            tensor("w", 1, 2, &[external(&[("location", "w.bin"), ("location", "v.bin")])]),
        ),
        (Some("ft-malformed"), tensor("w", 1, 2, &[external(&[("location", "w.bin")]), raw(8)])),
        (Some("ft-companion-missing"), tensor("w", 1, 2, &[external(&[("location", "v.bin")])])),
        (Some("ft-companion-path"), tensor("w", 1, 2, &[external(&[("location", "a/../w.bin")])])),
    ] {
        assert_eq!(refusal(&tensor), expected, "{tensor:x?}");
    }
}

#[test]
fn names_of_other_graphs_get_their_path_in_front() {
    let one = |value: u8| tensor("w", 2, 1, &[field(9, &[value])]);
    let branch =
        |name: &str, value: u8| [field(1, name.as_bytes()), field(6, &field(5, &one(value)))].concat();
    let choice = node("If", "y", "cond", &[branch("then_branch", 1), branch("else_branch", 2)]);
    let model = opened(&[field(1, &choice), field(5, &one(0))]).unwrap();
    let names: Vec<&str> = model.tensors().iter().map(Tensor::name).collect();
    assert_eq!(names, ["w", "cond.then_branch.w", "cond.else_branch.w"]);
    assert_eq!(model.notes().len(), 2);
    assert_eq!(opened(&[field(5, &one(0)), field(5, &one(1))]).unwrap_err().code(), "ft-duplicate-name");
}

#[test]
fn ranges_with_two_names_are_aliases() {
    let shared = [external(&[("location", "w.bin"), ("offset", "8")])];
    let both = [field(5, &tensor("b", 1, 2, &shared)), field(5, &tensor("a", 1, 2, &shared))];
    let other_type = field(5, &tensor("c", 6, 2, &shared));
    let model = opened(&[both.concat(), other_type]).unwrap();
    let names: Vec<&str> = model.tensors().iter().map(Tensor::name).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(model.aliases().len(), 1);
    assert_eq!((model.aliases()[0].name.as_str(), model.aliases()[0].of.as_str()), ("b", "a"));
    assert_eq!(model.companions().len(), 1);
}

#[test]
fn constants_are_tensors_or_entries() {
    let constant = |output: &str, kind: &str, value: &[u8]| {
        field(1, &node("Constant", output, "", &[[field(1, kind.as_bytes()), value.to_vec()].concat()]))
    };
    let fill = node(
        "ConstantOfShape",
        "z",
        "",
        &[[field(1, b"value"), field(5, &tensor("", 2, 1, &[field(9, &[7])]))].concat()],
    );
    let foreign =
        [node("Constant", "q", "", &[[field(1, b"value"), field(5, b"")].concat()]), field(7, b"other")]
            .concat();
    let model = opened(&[
        constant("floats", "value_floats", &field(7, &[0; 8])),
        constant("ints", "value_ints", &field(8, &[1, 2, 3])),
        constant("tensor", "value", &field(5, &tensor("inner", 2, 1, &[field(9, &[7])]))),
        constant("int", "value_int", &number(3, 5)),
        constant("float", "value_float", &[0x15, 0, 0, 0xc0, 0x7f]),
        constant("text", "value_string", &field(4, b"a\"b")),
        constant(
            "sparse",
            "sparse_value",
            &field(22, &[field(1, &tensor("v", 1, 1, &[])), number(3, 9)].concat()),
        ),
        field(1, &fill),
        field(
            1,
            &node("LinearRegressor", "l", "", &[[field(1, b"coefficients"), field(7, &[0; 8])].concat()]),
        ),
        field(1, &foreign),
        field(5, &tensor("words", 8, 2, &[field(6, b"x"), field(6, b"y")])),
    ]);
    let model = model.unwrap();
    let shapes: Vec<_> =
        model.tensors().iter().map(|tensor| (tensor.name(), tensor.shape().to_vec())).collect();
    let expected = [("floats", vec![2]), ("ints", vec![3]), ("tensor", vec![1]), ("sparse", vec![9])];
    assert_eq!(shapes, expected);
    let entry =
        |name: &str| model.entries().iter().find(|(other, _)| other == name).map(|(_, json)| json.as_str());
    assert_eq!(entry("int"), Some("5"));
    assert_eq!(entry("float"), Some("\"NaN\""));
    assert_eq!(entry("text"), Some("\"a\\\"b\""));
    assert_eq!(entry("words"), Some("{\"shape\":[2],\"strings\":[\"x\",\"y\"]}"));
    assert_eq!(
        entry("onnx.operators"),
        Some("{\"Constant\":7,\"ConstantOfShape\":1,\"LinearRegressor\":1,\"other.Constant\":1}")
    );
    for text in ["2 tensors in attributes", "1 lists of floats in attributes"] {
        assert!(model.notes().iter().any(|note| note.text.starts_with(text)), "{text}");
    }
    assert_eq!(model.check().unwrap_err().code(), "ft-tensor-unsupported");
}

#[test]
fn models_have_one_graph_and_no_key() {
    let two = [field(7, &[]), field(7, &[])].concat();
    assert_eq!(onnx::read(&two, &Beside, &Options::default()).unwrap_err().code(), "ft-malformed");
    assert_eq!(onnx::read(&number(1, 8), &Beside, &Options::default()).unwrap_err().code(), "ft-malformed");
    let mut options = Options::default();
    options.object = "w".into();
    assert_eq!(onnx::read(&field(7, &[]), &Beside, &options).unwrap_err().code(), "ft-key");
}

/// A field that may be longer than others here.
fn long(number: u8, bytes: &[u8]) -> Vec<u8> {
    let len = [0, 7, 14, 21, 28]
        .map(|shift| (bytes.len() >> shift) as u8 & 0x7f | if shift < 28 { 0x80 } else { 0 });
    [&[number << 3 | 2], &len[..], bytes].concat()
}

#[test]
fn many_small_parts_stay_within_the_bound() {
    let many = |part: &[u8]| part.repeat((1 << 20) / part.len());
    let large = |attributes: &[u8]| long(1, attributes);
    let numbered = |part: &dyn Fn(&str) -> Vec<u8>| {
        (0..1 << 16).flat_map(|at| part(&format!("{at:x}"))).collect::<Vec<u8>>()
    };
    for (name, graph) in [
        ("nodes", many(&large(&[]))),
        ("attributes", large(&many(b"\x2a\x00"))),
        ("graphs", large(&long(5, &many(b"\x32\x00")))),
        ("inputs", many(b"\x5a\x00")),
        ("dims", many(b"\x5a\x0c\x12\x0a\x0a\x08\x12\x06\x0a\x00\x0a\x00\x0a\x00")),
        ("tensors", numbered(&|name| field(5, &tensor(name, 2, 0, &[])))),
        (
            "constants",
            numbered(&|name| {
                field(1, &node("Constant", name, "", &[[field(1, b"value_int"), number(3, 1)].concat()]))
            }),
        ),
    ] {
        let file = [number(1, 8), long(7, &graph)].concat();
        crate::mutants::many_parts(name, &file);
    }
    let metadata = [number(1, 8), field(7, &[]), many(b"\x72\x04\x0a\x00\x12\x00")].concat();
    crate::mutants::many_parts("metadata", &metadata);
}

#[test]
fn truth_values_that_are_neither_0_nor_1_are_noted() {
    for (values, notes) in [(&[0, 1, 1][..], 0), (&[0, 2, 1], 1), (&[0xff; 3], 1), (&[1, 0, 0], 0)] {
        let model = opened(&[field(5, &tensor("b", 9, 3, &[field(9, values)]))]).expect("a model");
        assert_eq!(model.notes().len(), notes, "{values:?}: {:?}", model.notes());
        // Of bytes they are values as others.
        let model = opened(&[field(5, &tensor("b", 2, 3, &[field(9, values)]))]).expect("a model");
        assert_eq!(model.notes().len(), 0);
    }
}
