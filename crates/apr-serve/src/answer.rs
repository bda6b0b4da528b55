//! Predictions as JSON and as raw numbers.

use apr_models::{Float, Label, Predictions, Terms};

use crate::model::Model;
use crate::request::RawKind;
use crate::write;

#[cfg(feature = "msgpack")]
pub(crate) mod msgpack;

/// Appends the predictions to an open JSON array.
pub(crate) fn to_json(
    model: &Model,
    terms: Option<&Terms<'_>>,
    predictions: &Predictions,
    out: &mut Vec<u8>,
) {
    for idx in 0..predictions.len() {
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        one_to_json(model, terms, predictions, idx, out);
    }
}

fn one_to_json(
    model: &Model,
    terms: Option<&Terms<'_>>,
    predictions: &Predictions,
    idx: usize,
    out: &mut Vec<u8>,
) {
    let class_at = |classes: &[usize]| classes.get(idx).copied().unwrap_or_default();
    match predictions {
        Predictions::Values(values) => write::float(values.get(idx).unwrap_or(Float::F32(0.0)), out),
        Predictions::Rows { values, n_columns } => {
            out.push(b'[');
            write::list(values.row(idx, *n_columns), out, write::float);
            out.push(b']');
        }
        Predictions::Classes(classes) => label(model, class_at(classes), out),
        Predictions::Probabilities { classes, values, n_columns } => {
            out.extend_from_slice(b"{\"class\":");
            label(model, class_at(classes), out);
            out.extend_from_slice(b",\"probabilities\":");
            let pairs = values.row(idx, *n_columns).enumerate();
            object(pairs, out, |column, out| {
                quoted(model.any().class_of_column(column), out, |class, out| label(model, class, out));
            });
            out.push(b'}');
        }
        Predictions::Outliers(marks) => write::plain(marks.get(idx).copied().unwrap_or_default(), out),
        Predictions::Terms(rows) => object(rows.row(idx), out, |column, out| {
            write::string(terms.and_then(|terms| terms.get(column)).unwrap_or_default(), out);
        }),
        _ => out.extend_from_slice(b"null"),
    }
}

/// Appends the predictions as little-endian numbers; returns their type and the number per row. Weights of terms have no such
/// form.
pub(crate) fn to_raw(predictions: &Predictions, out: &mut Vec<u8>) -> (RawKind, usize) {
    let mut floats = |values: &mut dyn Iterator<Item = f32>| {
        values.for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        RawKind::Floats
    };
    match predictions {
        Predictions::Values(values) => (floats(&mut values.iter().map(Float::to_f32)), 1),
        Predictions::Outliers(marks) => (floats(&mut marks.iter().map(|&mark| mark as f32)), 1),
        Predictions::Rows { values, n_columns } | Predictions::Probabilities { values, n_columns, .. } => {
            (floats(&mut values.iter().map(Float::to_f32)), *n_columns)
        }
        Predictions::Classes(classes) => {
            // There are not 2^32 classes.
            classes.iter().for_each(|&class| out.extend_from_slice(&(class as u32).to_le_bytes()));
            (RawKind::Classes, 1)
        }
        _ => (RawKind::Floats, 0),
    }
}

/// A class by its name, or its label in the type it has.
fn label(model: &Model, class: usize, out: &mut Vec<u8>) {
    match model.label(class) {
        Some(Label::Integer(value)) => write::plain(value, out),
        Some(Label::Text(text)) => write::string(text, out),
        Some(Label::Boolean(value)) => write::plain(value, out),
        Some(Label::Number(value)) => write::wide(value, out),
        _ => out.extend_from_slice(b"null"),
    }
}

/// As a JSON key: other types than strings get quotes.
fn quoted<T>(value: T, out: &mut Vec<u8>, write: impl FnOnce(T, &mut Vec<u8>)) {
    let begin = out.len();
    write(value, out);
    if out.get(begin) != Some(&b'"') {
        out.insert(begin, b'"');
        out.push(b'"');
    }
}

fn object(
    pairs: impl Iterator<Item = (usize, Float)>,
    out: &mut Vec<u8>,
    mut key: impl FnMut(usize, &mut Vec<u8>),
) {
    out.push(b'{');
    write::list(pairs, out, |(column, value), out| {
        key(column, out);
        out.push(b':');
        write::float(value, out);
    });
    out.push(b'}');
}
