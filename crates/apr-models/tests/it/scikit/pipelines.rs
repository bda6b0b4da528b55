//! Files that `apr.sklearn.export` wrote say what scikit-learn says: `tests/data/pipelines`.

use std::path::{Path, PathBuf};

use apr_container::{Expect, ReadOptions, load_from_bytes_with};
use apr_models::{AnyModel, Error, Head, Input, Label, Model as _, Pipeline, Samples, Tensors};
use serde_json::Value;

use super::file;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pipelines")
}

fn pipeline(name: &str) -> Pipeline {
    let bytes = std::fs::read(folder().join(name).with_extension("apr")).unwrap();
    let model: AnyModel = load_from_bytes_with(&bytes, Expect::AnyKnown, ReadOptions::STRICT).unwrap();
    // As tensors it is the same model.
    let tensors = model.to_tensors().unwrap().to_safetensors().unwrap();
    assert_eq!(
        AnyModel::from_tensors(&Tensors::from_safetensors(&tensors).unwrap()).unwrap(),
        model,
        "{name}"
    );
    let AnyModel::Pipeline(model) = model else { panic!("{name} is no pipeline") };
    model
}

/// Rows of numbers, or texts.
enum Rows {
    Numbers(Vec<f64>),
    Texts(Vec<String>),
}

impl Rows {
    fn of(case: &Value) -> Self {
        let rows = case["rows"].as_array().unwrap();
        if rows[0].is_string() {
            return Self::Texts(rows.iter().map(|text| text.as_str().unwrap().to_owned()).collect());
        }
        Self::Numbers(rows.iter().flat_map(numbers).collect())
    }

    fn ask(&self, ask: impl FnOnce(Samples<'_>) -> Result<(), Error>) {
        match self {
            Self::Numbers(values) => ask(Samples::F64(values)).unwrap(),
            Self::Texts(texts) => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                ask(Samples::Text(&texts)).unwrap();
            }
        }
    }
}

/// The numbers of an array of any depth; what JSON has no number for is written as null.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        Value::Null => vec![f64::NAN],
        number => vec![number.as_f64().unwrap()],
    }
}

fn assert_near(name: &str, found: &[f64], expected: &Value) {
    let expected = numbers(expected);
    assert_eq!(found.len(), expected.len(), "{name}");
    for (idx, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
        // What is left of sums near 0 is rounding on both sides.
        let bound = 1e-9 * expected.abs() + 1e-12;
        assert!((found - expected).abs() <= bound, "{name}[{idx}] is {found}, expected {expected}");
    }
}

fn is_label(label: Label<'_>, expected: &Value) -> bool {
    match label {
        Label::Integer(label) => expected.as_i64() == Some(label),
        Label::Text(label) => expected.as_str() == Some(label),
        Label::Boolean(label) => expected.as_bool() == Some(label),
        Label::Number(label) => expected.as_f64() == Some(label),
        _ => false,
    }
}

#[test]
fn files_of_scikit_learn_answer_as_it_does() {
    let document = file("pipelines");
    let cases = document["cases"].as_array().unwrap();
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let (model, rows) = (pipeline(name), Rows::of(case));
        let n_rows = case["rows"].as_array().unwrap().len();
        for (output, expected) in case["expected"].as_object().unwrap() {
            let name = format!("{name}, {output}");
            let places = expected.as_array().unwrap();
            let mut out = vec![0.0; numbers_of(expected)];
            match (output.as_str(), model.head()) {
                ("predict", Head::Values { .. }) | ("values", _) => {
                    rows.ask(|rows| model.values_into(rows, &mut out));
                }
                ("predict", _) => {
                    let mut found = vec![0; n_rows];
                    rows.ask(|rows| model.predict_indices_into(rows, &mut found));
                    for (row, (&place, expected)) in found.iter().zip(places).enumerate() {
                        let label = model.label(place).unwrap();
                        assert!(is_label(label, expected), "{name}[{row}] is {label:?}, expected {expected}");
                    }
                    continue;
                }
                ("shares", _) => rows.ask(|rows| model.predict_proba_into(rows, &mut out)),
                ("decisions", _) => rows.ask(|rows| model.decision_function_into(rows, &mut out)),
                ("score_samples", _) => rows.ask(|rows| model.score_samples_into(rows, &mut out)),
                (other, _) => panic!("{other}"),
            }
            assert_near(&name, &out, expected);
        }
    }
    let mut described: Vec<String> =
        cases.iter().map(|case| format!("{}.apr", case["name"].as_str().unwrap())).collect();
    let there = std::fs::read_dir(folder()).unwrap();
    let mut there: Vec<String> =
        there.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    described.sort_unstable();
    there.sort_unstable();
    assert_eq!(there, described);
}

/// How many numbers an array of any depth has.
fn numbers_of(value: &Value) -> usize {
    value.as_array().map_or(1, |values| values.iter().map(numbers_of).sum())
}

#[test]
fn cut_and_changed_files_are_refused() {
    for (idx, case) in file("pipelines")["cases"].as_array().unwrap().iter().enumerate() {
        let name = case["name"].as_str().unwrap();
        let whole = std::fs::read(folder().join(name).with_extension("apr")).unwrap();
        let load = |bytes: &[u8]| {
            load_from_bytes_with::<AnyModel>(bytes, Expect::AnyKnown, &ReadOptions::STRICT).is_ok()
        };
        for place in (idx..whole.len()).step_by(97) {
            assert!(!load(&whole[..place]), "{name} of {place} bytes");
            let mut changed = whole.clone();
            changed[place] ^= 1 << (place % 8);
            assert!(!load(&changed), "{name} with byte {place} changed");
        }
    }
}

#[test]
fn texts_are_asked_for_where_texts_were_fitted() {
    let (texts, rows) = (pipeline("texts"), pipeline("logistic"));
    assert!(matches!(texts.input(), Input::Texts(_)) && matches!(rows.input(), Input::Numbers { .. }));
    let mut places = [0];
    assert_eq!(texts.predict_indices_into(Samples::F64(&[1.0]), &mut places).unwrap_err().code(), "am-part");
    assert_eq!(rows.predict_indices_into(Samples::Text(&["a"]), &mut places).unwrap_err().code(), "am-part");
}
