//! Predictions as MessagePack, in the shapes of JSON; floats are floats, also those that JSON does not have.

use apr_models::{Float, Label, Predictions, Terms};

use crate::model::Model;

/// What an answer begins with: a map of two, the first key, and a list whose length is not known yet.
const BEGIN: &[u8] = b"\x82\xabpredictions\xdd\0\0\0\0";

/// Begins an answer.
pub(crate) fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(BEGIN);
}

/// Ends an answer of so many predictions.
pub(crate) fn end(n_rows: usize, tag: &str, out: &mut Vec<u8>) {
    let len = BEGIN.len();
    if let Some(place) = out.get_mut(len - 4..len) {
        place.copy_from_slice(&(n_rows as u32).to_be_bytes());
    }
    string("model", out);
    string(tag, out);
}

/// Appends the predictions to the list.
pub(crate) fn append(model: &Model, terms: Option<&Terms<'_>>, predictions: &Predictions, out: &mut Vec<u8>) {
    for idx in 0..predictions.len() {
        one(model, terms, predictions, idx, out);
    }
}

fn one(model: &Model, terms: Option<&Terms<'_>>, predictions: &Predictions, idx: usize, out: &mut Vec<u8>) {
    let class_at = |classes: &[usize]| classes.get(idx).copied().unwrap_or_default();
    match predictions {
        Predictions::Values(values) => float(values.get(idx).unwrap_or(Float::F32(0.0)), out),
        Predictions::Rows { values, n_columns } => {
            sized(0xdc, values.row(idx, *n_columns).count(), out);
            values.row(idx, *n_columns).for_each(|value| float(value, out));
        }
        Predictions::Classes(classes) => label(model, class_at(classes), out),
        Predictions::Probabilities { classes, values, n_columns } => {
            out.push(0x82);
            string("class", out);
            label(model, class_at(classes), out);
            string("probabilities", out);
            sized(0xde, values.row(idx, *n_columns).count(), out);
            for (column, value) in values.row(idx, *n_columns).enumerate() {
                string(&key(model, model.any().class_of_column(column)), out);
                float(value, out);
            }
        }
        Predictions::Outliers(marks) => integer(marks.get(idx).copied().unwrap_or_default().into(), out),
        Predictions::Terms(rows) => {
            sized(0xde, rows.row(idx).count(), out);
            for (column, value) in rows.row(idx) {
                string(terms.and_then(|terms| terms.get(column)).unwrap_or_default(), out);
                float(value, out);
            }
        }
        _ => out.push(0xc0),
    }
}

fn label(model: &Model, class: usize, out: &mut Vec<u8>) {
    match model.label(class) {
        Some(Label::Integer(value)) => integer(value, out),
        Some(Label::Text(text)) => string(text, out),
        Some(Label::Boolean(value)) => out.push(0xc2 | u8::from(value)),
        Some(Label::Number(value)) => float(Float::F64(value), out),
        _ => out.push(0xc0),
    }
}

/// The text of a label, which is a key.
fn key(model: &Model, class: usize) -> String {
    match model.label(class) {
        Some(Label::Integer(value)) => value.to_string(),
        Some(Label::Text(text)) => text.to_owned(),
        Some(Label::Boolean(value)) => value.to_string(),
        // As JSON has it.
        Some(Label::Number(value)) => format!("{value:?}"),
        _ => String::new(),
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    match text.len() {
        len @ 0..32 => out.push(0xa0 | len as u8),
        len => sized(0xda, len, out),
    }
    out.extend_from_slice(text.as_bytes());
}

/// A marker with a length of 16 bits, or the one behind it with one of 32. What is longer does not fit into an answer.
fn sized(marker: u8, len: usize, out: &mut Vec<u8>) {
    match u16::try_from(len) {
        Ok(len) => {
            out.push(marker);
            out.extend_from_slice(&len.to_be_bytes());
        }
        Err(_) => {
            out.push(marker + 1);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

fn integer(value: i64, out: &mut Vec<u8>) {
    match i8::try_from(value) {
        Ok(small @ -32..) => out.push(small as u8),
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

fn float(value: Float, out: &mut Vec<u8>) {
    match value {
        Float::F32(value) => {
            out.push(0xca);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Float::F64(value) => {
            out.push(0xcb);
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}
