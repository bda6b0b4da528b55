//! Any body of a request for predictions has an answer; numbers are read as serde_json reads them, texts too.

#![no_main]

use std::sync::LazyLock;

use apr_models::{AnyModel, CountVectorizer, CountVectorizerOptions, OutputKind, StandardScaler};
use apr_serve::{Model, Options};
use libfuzzer_sys::fuzz_target;
use model_file::{Categories, UnknownCategory};
use serde_json::Value;

/// Gives back each row of two numbers as it is.
static ROWS: LazyLock<Model> = LazyLock::new(|| {
    let same = StandardScaler::from_parts(vec![0.0; 2], vec![1.0; 2]).expect("sound parts");
    Model::new(AnyModel::from(same)).expect("it transforms rows")
});

/// The same, of which both features take names of categories.
static CATEGORIES: LazyLock<Model> = LazyLock::new(|| {
    let names = NAMES.map(ToOwned::to_owned).to_vec();
    let categories = Categories { of_features: vec![names; 2], unknown: UnknownCategory::Ignore };
    ROWS.clone().with_categories(&categories).expect("a list for each feature")
});

const NAMES: [&str; 3] = ["1", "true", "nan"];

static TEXTS: LazyLock<Model> = LazyLock::new(|| {
    let counts = CountVectorizer::fit(&["a text with words"], &CountVectorizerOptions::default());
    Model::new(AnyModel::from(counts.expect("words"))).expect("it counts terms")
});

fuzz_target!(|body: &[u8]| {
    let options = Options::default();
    if let Some(found) = answer(&ROWS, body, &options) {
        let expected = rows(body).expect("what is answered is JSON");
        let found = found.as_array().expect("a list");
        assert_eq!(found.len(), expected.len());
        for (found, expected) in
            found.iter().flat_map(|row| row.as_array().expect("a row")).zip(expected.iter().flatten())
        {
            let found = found.to_string().parse::<f32>().expect("a finite number");
            // serde_json rounds to 64 bits first.
            assert!(
                (found - expected).abs() <= expected.abs() * 1e-6 + 1e-44 || expected.is_infinite(),
                "{body:?}"
            );
        }
    } else if let Some(rows) = rows(body) {
        assert!(
            rows.iter().any(|row| row.len() != 2 || row.iter().any(|value| !value.is_finite())),
            "{body:?}"
        );
    }
    let found = answer(&CATEGORIES, body, &options);
    if let Ok(rows) = serde_json::from_slice::<Vec<[String; 2]>>(body) {
        let is_missing = |name: &String| name.trim().is_empty();
        let number =
            |name: &String| NAMES.iter().position(|known| *known == name.trim()).map_or(-1.0, |at| at as f64);
        let expected: Vec<_> = rows.iter().map(|row| row.each_ref().map(number)).collect();
        let is_refused = rows.iter().flatten().any(is_missing);
        assert_eq!(found, (!is_refused).then(|| serde_json::json!(expected)), "{body:?}");
    }
    let is_text = |value: &Value| value.is_string();
    let sound = match serde_json::from_slice(body) {
        Ok(Value::Array(values)) => values.iter().all(is_text),
        Ok(Value::String(_)) => true,
        _ => false,
    };
    // An object with the one field is read as well.
    assert!(!sound || answer(&TEXTS, body, &options).is_some(), "{body:?}");
});

/// The predictions; `None` for a refusal, which is valid as well.
fn answer(model: &Model, body: &[u8], options: &Options) -> Option<Value> {
    match model.answer_json(body, OutputKind::Predictions, options) {
        Ok(answer) => {
            let mut answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
            Some(answer["predictions"].take())
        }
        Err((status, refusal)) => {
            let refusal: Value = serde_json::from_slice(&refusal).expect("a refusal is JSON");
            assert!((400..500).contains(&status) && refusal["error"]["code"].is_string(), "{refusal}");
            None
        }
    }
}

/// The rows, by a reader that builds a tree; an infinite number where a float of 32 bits is too small.
fn rows(body: &[u8]) -> Option<Vec<Vec<f32>>> {
    let mut value: Value = serde_json::from_slice(body).ok()?;
    if let Value::Object(fields) = &mut value {
        value = fields.remove("rows")?;
    }
    let rows = value.as_array()?;
    // From the digits, rounded once.
    let number = |value: &Value| value.is_number().then(|| value.to_string().parse().ok()).flatten();
    if rows.first().is_some_and(Value::is_number) {
        return Some(vec![rows.iter().map(number).collect::<Option<_>>()?]);
    }
    rows.iter().map(|row| row.as_array()?.iter().map(number).collect()).collect()
}
