//! Features that take names of categories, in each format of bodies.

use std::path::Path;

use apr_models::{
    Accepts, AnyModel, CountVectorizer, CountVectorizerOptions, Head, Input, LinearRegression, LinearStep,
    Link, OutputShape, Pipeline, Step, ValueKind, Vector,
};
use apr_serve::Model;
use apr_table::{CellType, Cells, ColumnSpec, TableFormat, TableWriter, Values};
use model_file::{Categories, UnknownCategory};
use serde_json::{Value, json};

use crate::client::{Response, Running, line, options, start_with};

const JSON: &str = "application/json";
const CSV: &str = "text/csv";
const ARROW: &str = "application/vnd.apache.arrow.stream";
const MESSAGE_PACK: &str = "application/msgpack";
const RAW: &str = "application/vnd.apr.f32";

const COLOURS: [&str; 8] = ["red", "blue, dark", "1", "1.5", "1.50", "true", "nan", "\u{e9}"];

fn categories(of_features: &[&[&str]], unknown: UnknownCategory) -> Categories {
    let names = |names: &&[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Categories { of_features: of_features.iter().map(names).collect(), unknown }
}

/// y = 1 + 2 size + 0.5 colour, in 64 bits.
fn wide(accepts: Accepts) -> AnyModel {
    let linear = LinearStep::new(1, vec![2.0, 0.5].into(), vec![1.0].into()).unwrap();
    let head = Head::Values { kind: ValueKind::Predictions, link: Link::None, shape: OutputShape::Vector };
    Pipeline::from_parts(Input::Numbers { n_features: 2, accepts }, vec![Step::Linear(linear)], head)
        .unwrap()
        .into()
}

fn coloured(model: AnyModel, unknown: UnknownCategory) -> Model {
    let model = Model::new(model).unwrap().with_features(vec!["size".to_owned(), "colour".to_owned()]);
    model.with_categories(&categories(&[&[], &COLOURS], unknown)).unwrap()
}

/// Predicts the number of the category that is its one feature.
fn numbered(names: &[&str], unknown: UnknownCategory) -> Model {
    let same = LinearRegression::from_parts(Vector::from_vec(vec![1.0]), 0.0).unwrap();
    Model::new(AnyModel::from(same)).unwrap().with_categories(&categories(&[names], unknown)).unwrap()
}

fn send(server: &Running, media_type: &str, body: &[u8]) -> Response {
    server.ask(&format!("POST /predict HTTP/1.1\r\ncontent-type: {media_type}\r\n"), body)
}

fn packed(rows: &Value) -> Vec<u8> {
    rmp_serde::to_vec(rows).unwrap()
}

/// A stream with these columns.
fn stream(columns: Vec<(&str, Values, Option<Vec<bool>>)>) -> Vec<u8> {
    let specs = columns.iter().map(|(name, values, is_valid)| ColumnSpec {
        name: (*name).to_owned(),
        cell_type: match values {
            Values::F32(_) => CellType::F32,
            Values::F64(_) => CellType::F64,
            Values::I64(_) => CellType::I64,
            Values::Bool(_) => CellType::Bool,
            Values::Text(_) => CellType::Text,
        },
        is_nullable: is_valid.is_some(),
    });
    let mut writer = TableWriter::new(Vec::new(), TableFormat::ArrowStream, specs.collect()).unwrap();
    let cells = columns.into_iter().map(|(_, values, is_valid)| Cells { is_valid, ..Cells::from(values) });
    writer.write(cells.collect()).unwrap();
    writer.finish().unwrap()
}

/// The colours, each of size 0.
fn colours(colours: Values) -> Vec<u8> {
    stream(vec![("colour", colours, None), ("size", Values::F64(vec![0.0; 2]), None)])
}

fn texts(texts: [&str; 2]) -> Vec<u8> {
    colours(Values::Text(texts.into_iter().collect()))
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

/// The code, the place and the message of a refusal.
fn refusal(response: &Response) -> (String, String, String) {
    assert_eq!(response.status, 400, "{}", response.text());
    let error = &response.json()["error"];
    let text = |key: &str| error[key].as_str().unwrap().to_owned();
    (response.code(), text("where"), text("message"))
}

#[test]
fn names_are_read_in_each_format() {
    for model in [line(), wide(Accepts::Finite)] {
        let server = start_with(coloured(model, UnknownCategory::Refuse), options());
        for (media_type, body, expected) in [
            (JSON, r#"[[0,"red"],[1,"blue, dark"],[0," red "],[0,"\u00e9"]]"#, json!([1.0, 3.5, 1.0, 4.5])),
            (JSON, "[[0,1],[0,1.5],[0,1.50],[0,true],[0,\"nan\"]]", json!([2.0, 2.5, 3.0, 3.5, 4.0])),
            (JSON, r#"[{"colour":"blue, dark","size":1},{"size":0,"colour":1}]"#, json!([3.5, 2.0])),
            (JSON, r#"{"rows":{"colour":true,"size":0}}"#, json!([3.5])),
            (JSON, r#"{"rows":[0,"red"]}"#, json!([1.0])),
            (JSON, "[ 0 , true ]", json!([3.5])),
            (CSV, "size,colour\n0, red\n1,\"blue, dark\"\n0,1.50\n0,nan\n", json!([1.0, 3.5, 3.0, 4.0])),
            (CSV, "colour,size\ntrue,0\nred,1\n", json!([3.5, 3.0])),
            ("text/csv; header=absent", "0,red\n1,1\n", json!([1.0, 4.0])),
        ] {
            assert_eq!(send(&server, media_type, body.as_bytes()).predictions(), expected, "{body}");
        }
        for (rows, expected) in [
            (json!([[0, "red"], [1, "blue, dark"], [0, " red "]]), json!([1.0, 3.5, 1.0])),
            (json!({"rows": [[0, 1], [0, 1.5], [0, true]]}), json!([2.0, 2.5, 3.5])),
            (json!([{"colour": "\u{e9}", "size": 1}]), json!([6.5])),
            (json!({"rows": {"colour": "red", "size": 0}}), json!([1.0])),
            (json!([0, "red"]), json!([1.0])),
        ] {
            assert_eq!(send(&server, MESSAGE_PACK, &packed(&rows)).predictions(), expected, "{rows}");
        }
        // 1.5 as a float of 32 bits.
        assert_eq!(send(&server, MESSAGE_PACK, b"\x92\0\xca\x3f\xc0\0\0").predictions(), json!([2.5]));
        for (body, expected) in [
            (texts(["red", " blue, dark"]), json!([1.0, 1.5])),
            (colours(Values::I64(vec![1, 1])), json!([2.0, 2.0])),
            (colours(Values::F32(vec![1.5, 1.0])), json!([2.5, 2.0])),
            (colours(Values::Bool(vec![true; 2])), json!([3.5, 3.5])),
        ] {
            assert_eq!(send(&server, ARROW, &body).predictions(), expected);
        }
        // What takes a number takes nothing else.
        assert_eq!(send(&server, JSON, br#"[["1","red"]]"#).code(), "sv-json");
        assert_eq!(send(&server, JSON, br#"[{"size":true,"colour":"red"}]"#).code(), "sv-json");
        assert_eq!(send(&server, CSV, b"size,colour\nred,red\n").code(), "sv-number");
        assert_eq!(send(&server, MESSAGE_PACK, &packed(&json!([["1", "red"]]))).code(), "sv-msgpack");
    }
}

#[test]
fn dictionaries_of_pyarrow_are_the_texts_that_they_stand_for() {
    let server = start_with(numbered(&["beta", "alpha beta"], UnknownCategory::Refuse), options());
    let body = file("dictionary_of_texts.arrows");
    assert_eq!(send(&server, ARROW, &body).predictions(), json!([1.0, 1.0, 1.0, 0.0]));
    // The only row begins with a name.
    assert_eq!(send(&server, JSON, br#"["alpha beta"]"#).predictions(), json!([1.0]));
    assert_eq!(send(&server, MESSAGE_PACK, &packed(&json!(["beta"]))).predictions(), json!([0.0]));

    let of = categories(&[&["false", "true"], &["0.5", "0", "2", "1000000"]], UnknownCategory::Refuse);
    let model = Model::new(line()).unwrap().with_features(vec!["age".to_owned(), "size".to_owned()]);
    let server = start_with(model.with_categories(&of).unwrap(), options());
    let body = file("dictionary.arrows");
    assert_eq!(send(&server, ARROW, &body).predictions(), json!([4.0, 1.0, 3.5, 4.5]));
}

#[test]
fn other_names_are_refused_or_have_the_number_below() {
    let known = "red, blue, dark, 1, 1.5, 1.50, true, nan, \u{e9}";
    let long = format!(r#"[[0,"{}"]]"#, "x".repeat(60_000));
    let cases = [
        (JSON, r#"[[0,"red"],[0,"green"]]"#.as_bytes().to_vec(), "byte 14, row 1, column 1", "green"),
        (JSON, br#"[{"colour":"Red","size":0}]"#.to_vec(), "byte 11, row 0, column 1", "Red"),
        (JSON, b"[0,1.0]".to_vec(), "byte 3, row 0, column 1", "1.0"),
        (JSON, b"[0,false]".to_vec(), "byte 3, row 0, column 1", "false"),
        (JSON, b"[0,-1e999]".to_vec(), "byte 3, row 0, column 1", "-1e999"),
        (JSON, long.into_bytes(), "byte 4, row 0, column 1", &"x".repeat(60)),
        (CSV, b"size,colour\n0,red\n0,0\n".to_vec(), "line 3, column 2", "0"),
        (CSV, b"colour,size\ngreen,0\n".to_vec(), "line 2, column 1", "green"),
        (MESSAGE_PACK, packed(&json!([[0, "green"]])), "byte 3, row 0, column 1", "green"),
        (MESSAGE_PACK, packed(&json!([[0, 2]])), "byte 3, row 0, column 1", "2"),
        (MESSAGE_PACK, b"\x92\0\xcb\x7f\xf0\0\0\0\0\0\0".to_vec(), "byte 2, row 0, column 1", "inf"),
        (ARROW, texts(["red", "green"]), "row 1, column 1", "green"),
        (ARROW, colours(Values::I64(vec![1, 2])), "row 1, column 1", "2"),
    ];
    let server = start_with(coloured(wide(Accepts::Finite), UnknownCategory::Refuse), options());
    for (media_type, body, place, name) in &cases {
        let (code, found, message) = refusal(&send(&server, media_type, body));
        assert_eq!((code.as_str(), found.as_str()), ("sv-category", *place), "{message}");
        assert_eq!(message, format!("`{name}` is none of the categories of the training: {known}"));
    }
    let server = start_with(coloured(wide(Accepts::Finite), UnknownCategory::Ignore), options());
    for (media_type, body, ..) in &cases {
        let found = send(&server, media_type, body).predictions();
        assert_eq!(found.as_array().unwrap().last(), Some(&json!(0.5)));
    }
}

#[test]
fn missing_categories_are_for_models_that_take_them() {
    let nulls = || {
        let names = Values::Text(["red", ""].into_iter().collect());
        stream(vec![("size", Values::F64(vec![0.0; 2]), None), ("colour", names, Some(vec![true, false]))])
    };
    for unknown in [UnknownCategory::Refuse, UnknownCategory::Ignore] {
        for (media_type, body) in [
            (JSON, br#"[[0,null]]"#.to_vec()),
            (JSON, br#"[[0,""]]"#.to_vec()),
            (JSON, br#"[{"colour":" \n","size":0}]"#.to_vec()),
            (CSV, b"size,colour\n0,\n".to_vec()),
            (CSV, b"size,colour\n0,\" \"\n".to_vec()),
            (MESSAGE_PACK, packed(&json!([[0, null]]))),
            (MESSAGE_PACK, b"\x92\0\xca\x7f\xc0\0\0".to_vec()),
            (ARROW, nulls()),
            (ARROW, texts(["red", "  "])),
            (ARROW, colours(Values::F64(vec![1.5, f64::NAN]))),
        ] {
            let server = start_with(coloured(wide(Accepts::Finite), unknown), options());
            let (code, _, message) = refusal(&send(&server, media_type, &body));
            assert_eq!(
                (code.as_str(), message.as_str()),
                ("sv-number", "a missing value, and the model takes none")
            );
            let server = start_with(coloured(wide(Accepts::Missing), unknown), options());
            let found = send(&server, media_type, &body).predictions();
            assert_eq!(found.as_array().unwrap().last(), Some(&json!("nan")));
        }
    }
}

#[test]
fn raw_bodies_have_the_numbers_of_categories() {
    let raw = |accepts: Accepts, unknown: UnknownCategory, values: &[f32]| {
        let body: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        send(&start_with(coloured(wide(accepts), unknown), options()), RAW, &body)
    };
    let (finite, missing) = (Accepts::Finite, Accepts::Missing);
    let found = raw(finite, UnknownCategory::Refuse, &[0.5, 0.0, -0.5, 7.0, 0.0, -0.0]);
    assert_eq!(found.body, [2.0_f32, 3.5, 1.0].map(f32::to_le_bytes).concat());
    for value in [8.0, 0.5, -1.0, -2.0, 1e30, 6.999_999_5] {
        let (code, place, message) = refusal(&raw(finite, UnknownCategory::Refuse, &[0.5, 1.0, 0.5, value]));
        assert_eq!((code.as_str(), place.as_str()), ("sv-category", "row 1, column 1"));
        assert_eq!(message, format!("{value} is not the number of a category: they are 0 to 7"));
    }
    assert_eq!(raw(finite, UnknownCategory::Ignore, &[0.0, -1.0]).body, 0.5_f32.to_le_bytes());
    assert_eq!(raw(finite, UnknownCategory::Ignore, &[0.0, -2.0]).code(), "sv-category");
    assert_eq!(raw(finite, UnknownCategory::Ignore, &[0.0, f32::NAN]).code(), "sv-number");
    assert_eq!(raw(missing, UnknownCategory::Refuse, &[0.0, f32::NAN]).status, 200);
}

#[test]
fn the_server_lists_the_categories() {
    let server = start_with(coloured(line(), UnknownCategory::Refuse), options());
    assert_eq!(server.get("/model").json()["categories"], json!([null, COLOURS]));
    let none = categories(&[&[], &[]], UnknownCategory::Ignore);
    let model = Model::new(line()).unwrap();
    for model in [model.clone(), model.clone().with_categories(&none).unwrap()] {
        let server = start_with(model, options());
        assert_eq!(server.get("/model").json()["categories"], json!(null));
        assert_eq!(server.predict("[1,\"red\"]").code(), "sv-json");
    }
    // They have to be those of the features; a model of texts has no features.
    let of_one = categories(&[&["red"]], UnknownCategory::Refuse);
    assert_eq!(model.with_categories(&of_one).unwrap_err().code(), "am-part-length");
    let counts = CountVectorizer::fit(&["red"], &CountVectorizerOptions::default()).unwrap();
    let model = Model::new(AnyModel::from(counts)).unwrap().with_categories(&of_one).unwrap();
    assert_eq!(start_with(model, options()).predict("[\"red\"]").predictions(), json!([{"red": 1.0}]));
}

#[test]
fn what_is_no_name_is_refused_with_its_place() {
    let server = start_with(coloured(wide(Accepts::Missing), UnknownCategory::Ignore), options());
    for (body, place) in [
        ("[[0,[\"red\"]]]", "byte 4"),
        ("[[0,{\"a\":1}]]", "byte 4"),
        ("[[0,]]", "byte 4"),
        ("[[0,tru]]", "byte 4"),
        ("[[0,NaN]]", "byte 4"),
        ("[[0,truer]]", "byte 8"),
        ("[[0,nullnull]]", "byte 8"),
        ("[[0,01]]", "byte 5"),
        ("[[0,-]]", "byte 5"),
        ("[[0,\"red\"red]]", "byte 9"),
        ("[[0,\"red]]", "byte 10"),
        ("[[0,\"\\ud800\"]]", "byte 7"),
        ("[[0,\"\\x\"]]", "byte 6"),
        ("[[0,\"\t\"]]", "byte 5"),
        ("[[0,", "byte 4"),
    ] {
        let (code, found, _) = refusal(&send(&server, JSON, body.as_bytes()));
        assert_eq!((code.as_str(), found.as_str()), ("sv-json", place), "{body}");
    }
    for (body, place) in [
        (&b"\x92\0\xc4\x01a"[..], "byte 2"),
        (b"\x92\0\xd4\x01a", "byte 2"),
        (b"\x92\0\x91\xa1a", "byte 2"),
        (b"\x92\0\x80", "byte 2"),
        (b"\x92\0\xa1\xff", "byte 2"),
        (b"\x92\0\xdb\xff\xff\xff\xffa", "byte 2"),
        (b"\x92\0", "byte 0"),
    ] {
        let (code, found, _) = refusal(&send(&server, MESSAGE_PACK, body));
        assert_eq!((code.as_str(), found.as_str()), ("sv-msgpack", place), "{body:x?}");
    }
    for (media_type, body) in [(JSON, "[[0,\"red\",1]]"), (JSON, "[[0,\"red\"],[0]]"), (CSV, "0,red,1\n")] {
        assert_eq!(send(&server, media_type, body.as_bytes()).code(), "sv-columns", "{body}");
    }
    assert_eq!(send(&server, CSV, b"size,colour\n0,\"red\n").code(), "sv-csv");
    assert_eq!(send(&server, ARROW, &file("dates.arrows")).code(), "sv-feature");
    // A dictionary does not make names longer than a body may be.
    let server = start_with(numbered(&["red"], UnknownCategory::Ignore), options());
    let response = send(&server, ARROW, &file("long_texts.arrows"));
    assert_eq!((response.status, response.code().as_str()), (413, "sv-body-size"));
}
