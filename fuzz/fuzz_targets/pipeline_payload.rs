//! Any payload as a pipeline: refused, or a model that answers any rows and texts and is written and read again unchanged.

#![no_main]

use apr_container::v1::Container;
use apr_container::{
    ModelType, PayloadLayout, ReadOptions, decode_payload_from_slice, encode_payload_to_vec,
};
use apr_fuzz::{Choices, pipeline};
use apr_models::{Model, Pipeline, Samples};
use libfuzzer_sys::fuzz_target;

/// Values of the widest rows that are asked: a width that no step contradicts may be any.
const WIDEST: usize = 1 << 12;

/// Rows asked at once: more than go through trees together.
const N_ROWS: usize = 9;

fuzz_target!(|input: &[u8]| {
    // A vector: its payload alone is of interest here, so its checksum need not match.
    if let Ok(container) = Container::from_bytes_with(input, &ReadOptions::COMPAT) {
        let _ = container
            .payload()
            .plain()
            .and_then(|payload| payload.decode::<Pipeline>())
            .map(|model| ask(&model));
    }
    check(input);
    check(&pipeline::changed(&mut Choices::new(input)));
});

fn check(payload: &[u8]) {
    let read = |payload: &[u8]| {
        decode_payload_from_slice::<Pipeline>(payload, PayloadLayout::default(), ModelType::Custom)
    };
    let Ok(model) = read(payload) else { return };
    let again = encode_payload_to_vec(&model, PayloadLayout::default()).expect("what was read is written");
    assert_eq!(read(&again).expect("what is written is read"), model);
    ask(&model);
}

fn ask(model: &Pipeline) {
    let Some(n_features) = model.n_features() else {
        let texts = ["To be, or not to be", "", "\u{e9}a\u{301} \u{ac00}  to\u{fb01}"];
        answers(model, Samples::Text(&texts), texts.len());
        let _ = model.transform_texts(&texts);
        return;
    };
    if n_features > WIDEST {
        return;
    }
    for value in [0.0, f64::NAN, f64::INFINITY, 1e300] {
        // Rows that differ in their first value.
        let mut rows = vec![value; N_ROWS * n_features];
        rows.chunks_exact_mut(n_features).zip(-4..).for_each(|(row, first)| row[0] = first.into());
        answers(model, Samples::F64(&rows), N_ROWS);
    }
}

fn answers(model: &Pipeline, rows: Samples<'_>, n_rows: usize) {
    let mut places = vec![0; n_rows];
    if model.predict_indices_into(rows, &mut places).is_ok() {
        assert!(places.iter().all(|&place| model.label(place).is_some()));
    }
    let zeros = |width: Option<usize>| vec![0.0; n_rows * width.unwrap_or(0)];
    let _ = model.values_into(rows, &mut zeros(Some(model.n_outputs())));
    let _ = model.predict_proba_into(rows, &mut zeros(model.n_probabilities()));
    let _ = model.decision_function_into(rows, &mut zeros(model.n_decisions()));
    let _ = model.score_samples_into(rows, &mut zeros(Some(1)));
}
