//! Answers as JSON and as raw numbers.

use apr_models::{Answers, Label, Terms};

use crate::model::Model;
use crate::write;

/// What the numbers of a raw answer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawKind {
    /// 32-bit floats.
    Floats,
    /// 32-bit whole numbers without a sign.
    Classes,
}

/// Appends the answers to an open JSON array.
pub(crate) fn to_json(model: &Model, terms: Option<&Terms<'_>>, answers: &Answers, out: &mut Vec<u8>) {
    for idx in 0..answers.len() {
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        one_to_json(model, terms, answers, idx, out);
    }
}

fn one_to_json(model: &Model, terms: Option<&Terms<'_>>, answers: &Answers, idx: usize, out: &mut Vec<u8>) {
    let term = |number: usize| terms.and_then(|terms| terms.get(number)).unwrap_or_default();
    match answers {
        Answers::Numbers(values) => write::narrow(at(values, idx), out),
        Answers::Wide(values) => write::wide(at(values, idx), out),
        Answers::Outliers(marks) => write::plain(at(marks, idx), out),
        Answers::Classes(classes) => class(model, at(classes, idx), out),
        Answers::Places(places) => label(model, at(places, idx), out),
        Answers::Rows(rows) => {
            array(rows.row(idx).unwrap_or_default().iter().copied(), out, write::narrow);
        }
        Answers::WideRows { values, width } => {
            array(row(values, *width, idx).iter().copied(), out, write::wide);
        }
        Answers::Terms(rows) => {
            let pairs = rows.row(idx).into_iter().flat_map(|row| row.iter());
            object(pairs, out, |number, out| write::string(term(number), out), write::narrow);
        }
        Answers::WideTerms(rows) => {
            let (numbers, values) = rows.row(idx).unwrap_or_default();
            let pairs = numbers.iter().map(|&number| number as usize).zip(values.iter().copied());
            object(pairs, out, |number, out| write::string(term(number), out), write::wide);
        }
        Answers::Probabilities(classes, shares) => {
            out.extend_from_slice(b"{\"class\":");
            class(model, at(classes, idx), out);
            out.extend_from_slice(b",\"probabilities\":");
            let columns = model.any().probability_classes();
            let class_of =
                |column: usize| columns.and_then(|columns| columns.get(column)).copied().unwrap_or(column);
            let pairs = shares.row(idx).unwrap_or_default().iter().copied().enumerate();
            object(
                pairs,
                out,
                |column, out| quoted(class_of(column), out, |number, out| class(model, number, out)),
                write::narrow,
            );
            out.push(b'}');
        }
        Answers::Shares { places, shares, n_probabilities } => {
            out.extend_from_slice(b"{\"class\":");
            label(model, at(places, idx), out);
            out.extend_from_slice(b",\"probabilities\":");
            let pairs = row(shares, *n_probabilities, idx).iter().copied().enumerate();
            object(
                pairs,
                out,
                |place, out| quoted(place, out, |place, out| label(model, place, out)),
                write::wide,
            );
            out.push(b'}');
        }
    }
}

/// Appends the answers as little-endian numbers; gives what they are and how many a row has. Weights of terms have no such form.
pub(crate) fn to_raw(model: &Model, answers: &Answers, out: &mut Vec<u8>) -> (RawKind, usize) {
    let mut floats = |values: &mut dyn Iterator<Item = f32>| {
        values.for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        RawKind::Floats
    };
    match answers {
        Answers::Numbers(values) => (floats(&mut values.iter().copied()), 1),
        Answers::Wide(values) => (floats(&mut values.iter().map(|&value| value as f32)), 1),
        Answers::Outliers(marks) => (floats(&mut marks.iter().map(|&mark| mark as f32)), 1),
        Answers::Rows(rows) | Answers::Probabilities(_, rows) => {
            (floats(&mut rows.as_slice().iter().copied()), rows.n_cols())
        }
        Answers::WideRows { values, width }
        | Answers::Shares { shares: values, n_probabilities: width, .. } => {
            (floats(&mut values.iter().map(|&value| value as f32)), *width)
        }
        Answers::Terms(_) | Answers::WideTerms(_) => (RawKind::Floats, 0),
        Answers::Classes(classes) => (numbers(classes.iter().copied(), out), 1),
        Answers::Places(places) if model.finds_outliers() => {
            (floats(&mut places.iter().map(|&place| if place == 0 { -1.0 } else { 1.0 })), 1)
        }
        Answers::Places(places) => (numbers(places.iter().copied(), out), 1),
    }
}

fn numbers(values: impl Iterator<Item = usize>, out: &mut Vec<u8>) -> RawKind {
    // There are not 2^32 classes.
    values.for_each(|value| out.extend_from_slice(&(value as u32).to_le_bytes()));
    RawKind::Classes
}

/// A class by its name, or its number if it has none.
fn class(model: &Model, number: usize, out: &mut Vec<u8>) {
    match model.class(number) {
        Ok(name) => write::string(name, out),
        Err(number) => write::plain(number, out),
    }
}

/// A label of a pipeline in the type it has.
fn label(model: &Model, place: usize, out: &mut Vec<u8>) {
    match model.label(place) {
        Some(Label::Integer(value)) => write::plain(value, out),
        Some(Label::Text(text)) => write::string(text, out),
        Some(Label::Boolean(value)) => write::plain(value, out),
        Some(Label::Number(value)) => write::wide(value, out),
        _ => out.extend_from_slice(b"null"),
    }
}

/// As a key: what is no string yet gets quotes.
fn quoted<T>(value: T, out: &mut Vec<u8>, write: impl FnOnce(T, &mut Vec<u8>)) {
    let begin = out.len();
    write(value, out);
    if out.get(begin) != Some(&b'"') {
        out.insert(begin, b'"');
        out.push(b'"');
    }
}

fn array<T>(values: impl Iterator<Item = T>, out: &mut Vec<u8>, write: impl FnMut(T, &mut Vec<u8>)) {
    out.push(b'[');
    write::list(values, out, write);
    out.push(b']');
}

fn object<V>(
    pairs: impl Iterator<Item = (usize, V)>,
    out: &mut Vec<u8>,
    mut key: impl FnMut(usize, &mut Vec<u8>),
    mut value: impl FnMut(V, &mut Vec<u8>),
) {
    out.push(b'{');
    write::list(pairs, out, |(number, weight), out| {
        key(number, out);
        out.push(b':');
        value(weight, out);
    });
    out.push(b'}');
}

fn at<T: Copy + Default>(values: &[T], idx: usize) -> T {
    values.get(idx).copied().unwrap_or_default()
}

fn row(values: &[f64], width: usize, idx: usize) -> &[f64] {
    values.chunks_exact(width.max(1)).nth(idx).unwrap_or_default()
}
