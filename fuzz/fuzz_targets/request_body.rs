//! Any bytes as the body of a request for predictions in each format but JSON: Arrow IPC, MessagePack, comma-separated values, raw
//! numbers. An answer has a prediction for each row, in each form; an error is one of the body, at a byte in it. Rows of MessagePack are
//! those that rmp-serde reads.

#![no_main]

use std::sync::LazyLock;

use apr_models::{AnyModel, CountVectorizer, CountVectorizerOptions, OutputKind, StandardScaler};
use apr_serve::{Model, Options};
use apr_table::Table;
use libfuzzer_sys::fuzz_target;
use model_file::{Categories, UnknownCategory};
use serde_json::Value;

const MESSAGE_PACK: &str = "application/msgpack";
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// Formats of bodies.
const FORMATS: [&str; 4] = [ARROW, MESSAGE_PACK, "text/csv", "application/octet-stream"];

/// Gives back each row of two numbers as it is.
static ROWS: LazyLock<Model> = LazyLock::new(|| {
    let same = StandardScaler::from_parts(vec![0.0; 2], vec![1.0; 2]).expect("sound parts");
    Model::new(AnyModel::from(same)).expect("it transforms rows")
});

/// The same, with the names that the seeds have.
static NAMED: LazyLock<Model> =
    LazyLock::new(|| ROWS.clone().with_features(vec!["age".to_owned(), "size".to_owned()]));

/// The same, of which the first feature takes names of categories; the seeds have some of them.
static CATEGORIES: LazyLock<Model> = LazyLock::new(|| {
    let names = ["1", "-2", "true"].map(ToOwned::to_owned).to_vec();
    let categories = Categories { of_features: vec![names, Vec::new()], unknown: UnknownCategory::Ignore };
    NAMED.clone().with_categories(&categories).expect("a list for each feature")
});

static TEXTS: LazyLock<Model> = LazyLock::new(|| {
    let counts = CountVectorizer::fit(&["a text with words"], &CountVectorizerOptions::default());
    Model::new(AnyModel::from(counts.expect("words"))).expect("it counts terms")
});

fuzz_target!(init: {
    // The library panics about some inputs, which is an error of the reader; other panics end the run.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| if !apr_table::catches_panics() { report(info) }));
}, |body: &[u8]| {
    for format in FORMATS {
        for model in [&*ROWS, &*NAMED, &*CATEGORIES, &*TEXTS] {
            let Some(json) = answer(model, body, format, "") else { continue };
            if format == FORMATS[3] {
                assert_eq!(json.len(), body.len());
                continue;
            }
            let json: Value = serde_json::from_slice(&json).expect("an answer is JSON");
            let n_rows = json["predictions"].as_array().expect("a list").len();
            let packed = answer(model, body, format, MESSAGE_PACK).expect("it was answered before");
            let packed: Value = rmp_serde::from_slice(&packed).expect("an answer is MessagePack");
            assert_eq!(packed["predictions"].as_array().map(Vec::len), Some(n_rows));
            match answer(model, body, format, ARROW) {
                Some(columns) => assert_eq!(n_rows_of(&columns), n_rows),
                // Weights of terms are no columns.
                None => assert!(std::ptr::eq(model, &*TEXTS)),
            }
        }
    }
    let found = answer(&ROWS, body, MESSAGE_PACK, "").map(|answer| {
        let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        serde_json::from_value::<Vec<[f64; 2]>>(answer["predictions"].clone()).expect("rows of two numbers")
    });
    if let Some(expected) = packed_rows(body) {
        // Rounded to 64 bits first, and infinite where a float of 32 bits is too small.
        let is_answered = expected.iter().all(|row| row.len() == 2 && row.iter().all(|&value| (value as f32).is_finite()));
        let found = found.filter(|_| is_answered).unwrap_or_else(|| {
            assert!(!is_answered, "{body:?}");
            Vec::new()
        });
        let expected = expected.iter().filter(|_| is_answered);
        assert_eq!(found.len(), expected.clone().count());
        for (found, expected) in found.iter().flatten().zip(expected.flatten()) {
            assert!((found - expected).abs() <= expected.abs() * 1e-6 + 1e-44, "{body:?}");
        }
    }
});

/// The answer; `None` for a refusal, which is valid as well.
fn answer(model: &Model, body: &[u8], format: &str, accept: &str) -> Option<Vec<u8>> {
    match model.answer_as(body, format, accept, OutputKind::Predictions, &Options::default()) {
        Ok(answer) => Some(answer),
        Err((status, refusal)) => {
            let refusal: Value = serde_json::from_slice(&refusal).expect("a refusal is JSON");
            let error = &refusal["error"];
            assert!((400..500).contains(&status) && error["code"].is_string(), "{refusal}");
            let place = error["where"].as_str().and_then(|place| place.strip_prefix("byte "));
            if let Some(place) = place.and_then(|place| place.split(',').next()) {
                assert!(place.parse::<usize>().is_ok_and(|at| at <= body.len()), "{refusal}");
            }
            None
        }
    }
}

fn n_rows_of(stream: &[u8]) -> usize {
    let mut table = Table::arrow(stream).expect("an answer is a stream");
    let mut n_rows = 0;
    while let Some(batch) = table.next_batch().expect("all of it") {
        n_rows += batch.n_rows();
    }
    n_rows
}

/// The rows of a list that is all of the body, by a reader that builds a tree; a list of no rows may be one row as well.
fn packed_rows(body: &[u8]) -> Option<Vec<Vec<f64>>> {
    let mut rest = body;
    let rows: Vec<Vec<f64>> = rmp_serde::from_read(&mut rest).ok()?;
    (rest.is_empty() && !rows.is_empty()).then_some(rows)
}
