//! Models built here say what scikit-learn says, and models trained here learn what it learns: the cases of
//! `tests/data`, whose README states schema and tolerances.

mod boosting;
mod clusters;
mod growing;
mod held_out;
mod linear;
mod neighbours;
mod networks;
mod pipelines;
mod projections;
mod scalers;
mod text;
mod trees;
mod vectors;

use core::fmt::Debug;
use std::path::Path;

use apr_container::{
    DecodePayload, EncodePayload, PayloadLayout, decode_payload_from_slice, encode_payload_to_vec,
};
use apr_models::{AnyModel, Error, Matrix, Model, Tensors};
use serde_json::Value;

/// One of the JSON files.
pub(crate) fn file(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).with_extension("json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// A case of a model file, and the tables it refers to.
pub(crate) struct Case {
    pub(crate) case: Value,
    table: Value,
}

/// The cases of a model file.
pub(crate) fn cases(model: &str) -> Vec<Case> {
    let tables = file("tables");
    let cases = file(model)["cases"].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
        .into_iter()
        .map(|case| Case { table: tables["tables"][case["table"].as_str().unwrap_or("")].clone(), case })
        .collect()
}

impl Case {
    pub(crate) fn name(&self) -> &str {
        self.case["name"].as_str().unwrap()
    }

    pub(crate) fn part(&self, name: &str) -> &Value {
        &self.case["parts"][name]
    }

    pub(crate) fn expected(&self, name: &str) -> &Value {
        &self.case["expected"][name]
    }

    /// The rows that `which` lists (all if it is null), of the columns that the case uses.
    pub(crate) fn x(&self, which: &str) -> Matrix {
        let x = matrix(&self.table["x"]);
        let all = |count| (0..count).collect();
        let rows: Vec<usize> = self.rows(which).unwrap_or_else(|| all(x.n_rows()));
        let columns: Vec<usize> = self.rows("columns").unwrap_or_else(|| all(x.n_cols()));
        let values = rows.iter().flat_map(|&row| columns.iter().map(move |&col| (row, col)));
        let values = values.map(|(row, col)| x.get(row, col).unwrap()).collect();
        Matrix::from_vec(rows.len(), columns.len(), values).unwrap()
    }

    /// The targets of the rows that `which` lists.
    fn target(&self, which: &str) -> Vec<&Value> {
        let all = self.table["targets"][self.case["target"].as_str().unwrap()].as_array().unwrap();
        match self.rows(which) {
            None => all.iter().collect(),
            Some(rows) => rows.iter().map(|&row| &all[row]).collect(),
        }
    }

    pub(crate) fn classes(&self, which: &str) -> Vec<usize> {
        self.target(which).into_iter().map(whole).collect()
    }

    pub(crate) fn numbers(&self, which: &str) -> Vec<f32> {
        self.target(which).into_iter().map(number).collect()
    }

    /// A list of places, `None` if all are meant.
    pub(crate) fn rows(&self, which: &str) -> Option<Vec<usize>> {
        (!self.case[which].is_null()).then(|| wholes(&self.case[which]))
    }

    /// Proves that values are as near to those expected as the file demands.
    pub(crate) fn close(&self, what: &str, found: &[f64], expected: &Value) {
        self.close_by(what, what, found, expected);
    }

    /// As [`close`](Self::close) by the tolerance of another name.
    pub(crate) fn close_by(&self, what: &str, tolerance: &str, found: &[f64], expected: &Value) {
        let expected = match expected {
            Value::Object(parts) => floats(&parts["data"]),
            Value::Number(_) => vec![number(expected)],
            _ => floats(expected),
        };
        let tolerance = &self.case["tolerance"][tolerance];
        let (abs, rel) = (tolerance["abs"].as_f64().unwrap(), tolerance["rel"].as_f64().unwrap());
        assert_eq!(found.len(), expected.len(), "{}: {what}", self.name());
        for (idx, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
            let (expected, bound) = (f64::from(expected), abs + rel * f64::from(expected).abs());
            assert!(
                (found - expected).abs() <= bound,
                "{}: {what}[{idx}] is {found}, expected {expected} within {bound}",
                self.name()
            );
        }
    }
}

pub(crate) fn number(value: &Value) -> f32 {
    // The README: through float64 to the same bits.
    value.as_f64().unwrap() as f32
}

pub(crate) fn whole(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

pub(crate) fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(number).collect()
}

pub(crate) fn wholes(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(whole).collect()
}

pub(crate) fn matrix(value: &Value) -> Matrix {
    Matrix::from_vec(whole(&value["rows"]), whole(&value["cols"]), floats(&value["data"])).unwrap()
}

pub(crate) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// The model after a way through a payload, a safetensors file and the type that holds any model.
pub(crate) fn reloaded<M>(model: M, from_tensors: fn(&Tensors) -> Result<M, Error>) -> M
where
    M: Model + EncodePayload + DecodePayload + Clone + PartialEq + Debug,
    AnyModel: From<M>,
{
    let payload = encode_payload_to_vec(&model, PayloadLayout::default()).unwrap();
    let decoded: M =
        decode_payload_from_slice(&payload, PayloadLayout::default(), model.model_type()).unwrap();
    assert_eq!(decoded, model);
    let file = model.to_tensors().unwrap().to_safetensors().unwrap();
    let tensors = Tensors::from_safetensors(&file).unwrap();
    assert_eq!(from_tensors(&tensors).unwrap(), model);
    let any: AnyModel =
        decode_payload_from_slice(&payload, PayloadLayout::default(), model.model_type()).unwrap();
    assert_eq!(any, AnyModel::from(model));
    assert_eq!(AnyModel::from_tensors(&tensors).unwrap(), any);
    decoded
}
