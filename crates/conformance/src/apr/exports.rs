//! Models without their container: bare payloads, exports as safetensors and GGUF.

use apr_container::v1::Container;
use apr_container::{
    DecodePayload, ModelType, PayloadLayout, decode_payload_from_slice, encode_payload_to_vec,
    load_from_bytes, v2,
};
use apr_models::{
    DecisionTreeClassifier, Error as ModelError, KMeans, LinearRegression, LogisticRegression,
    MixtureOfExperts, Model, RandomForestClassifier, Ridge, Tensors,
};
use serde_json::Value;

use super::models::{compare, difference, layout, rows};
use super::recorded::Recorded;
use super::vectors::{self, Content, File, Vectors};
use crate::digest::sha256_hex;
use crate::matrix::{Outcome, Suite};
use crate::vectors::Error;

const COLUMNS: &[&str] = &["read", "values", "written again", "predictions"];

const ABOUT: &str = "\
Payloads that the peers store without a container, models they export as safetensors, and their GGUF files, which
are refused by name here: they are another format. What an export holds has to have the recorded values; a
payload has to be written again with the same bytes, an export so that it holds the same, and both have to
predict what the peers' model predicts.";

/// Runs every file of the peers that is no container.
///
/// # Errors
///
/// A vector that cannot be read from disk.
pub fn suite(vectors: &Vectors) -> Result<Suite, Error> {
    let mut suite = Suite::new("apr: payloads alone and exports", ABOUT, COLUMNS);
    for file in &vectors.files {
        let bytes = vectors::read(&file.name)?;
        let (row, outcomes) = match &file.content {
            Content::Bincode { payload } => {
                let kind = vectors.payload(payload)?.kind.as_str();
                let outcomes = match kind {
                    "LinearRegression" => bincode::<LinearRegression>(vectors, file, payload, &bytes)?,
                    "MixtureOfExperts" => {
                        bincode::<MixtureOfExperts<LinearRegression>>(vectors, file, payload, &bytes)?
                    }
                    _ => unknown(kind),
                };
                (format!("payload alone: {kind}"), outcomes)
            }
            Content::SafeTensors { kind, model, expected } => {
                let case = Export { vectors, bytes: &bytes, model, expected };
                let outcomes = match kind.as_str() {
                    "LinearRegression" => case.check(LinearRegression::from_tensors, &[]),
                    "Ridge" => case.check(Ridge::from_tensors, &[]),
                    "LogisticRegression" => {
                        case.check(LogisticRegression::from_tensors, &["learning_rate", "max_iter", "tol"])
                    }
                    "KMeans" => case.check(KMeans::from_tensors, &["labels"]),
                    "DecisionTreeClassifier" => case.check(DecisionTreeClassifier::from_tensors, &[]),
                    "RandomForestClassifier" => case.check(RandomForestClassifier::from_tensors, &[]),
                    _ => unknown(kind),
                };
                (format!("safetensors: {kind}"), outcomes)
            }
            Content::Gguf => ("GGUF".to_owned(), [refused(&bytes), NA, NA, NA]),
            Content::V1(_) | Content::V2(_) | Content::ShardManifest => continue,
        };
        suite.record(&row, &file.name, outcomes);
    }
    Ok(suite)
}

const NA: Outcome = Outcome::NotApplicable;

fn unknown(kind: &str) -> [Outcome; 4] {
    [Outcome::Wrong(format!("no reader for {kind}")), NA, NA, NA]
}

/// Whatever is asked for an `.apr` file says that this is none.
fn refused(file: &[u8]) -> Outcome {
    let codes = [
        Container::from_bytes(file).err(),
        load_from_bytes::<LinearRegression>(file, ModelType::LinearRegression).err(),
        apr_container::inspect_bytes(file).err(),
        v2::Container::from_bytes(file).err(),
    ];
    match codes.iter().all(|error| error.as_ref().is_some_and(|error| error.code() == "ac-magic")) {
        true => Outcome::Expected("refused"),
        false => Outcome::Wrong(format!("{codes:?}")),
    }
}

fn bincode<M: Recorded>(
    vectors: &Vectors,
    file: &File,
    payload: &str,
    bytes: &[u8],
) -> Result<[Outcome; 4], Error> {
    let facts = vectors.payload(payload)?;
    let layout = layout(&file.peer);
    let model_type = <M as DecodePayload>::MODEL_TYPE.unwrap_or(ModelType::Custom);
    let model = match decode_payload_from_slice::<M>(bytes, layout, model_type) {
        Ok(model) => model.complete(),
        Err(error) => return Ok([Outcome::Wrong(error.to_string()), NA, NA, NA]),
    };
    let recorded = facts.model.as_ref().unwrap_or(&Value::Null);
    let again = encode_payload_to_vec(&model, layout);
    Ok([
        Outcome::from_failure(
            "read",
            (sha256_hex(bytes) != facts.sha256).then(|| "not the recorded bytes".to_owned()),
        ),
        Outcome::from_failure("equal", difference(&model.facts(layout), recorded, "")),
        match again {
            Ok(again) if again == bytes => Outcome::Expected("same bytes"),
            other => Outcome::Wrong(format!("{other:?}")),
        },
        predictions(&model, vectors, &facts.expected),
    ])
}

fn predictions<M: Recorded>(model: &M, vectors: &Vectors, expected: &Value) -> Outcome {
    match model.computed(&rows(vectors)) {
        Ok(computed) => compare(&computed, expected),
        Err(error) => Outcome::Wrong(error.to_string()),
    }
}

/// A model exported as safetensors.
struct Export<'a> {
    vectors: &'a Vectors,
    bytes: &'a [u8],
    model: &'a Value,
    expected: &'a Value,
}

impl Export<'_> {
    /// Compares what both the model and its export hold: `lost` is not among it.
    fn check<M: Recorded + Model>(
        &self,
        from_tensors: fn(&Tensors) -> Result<M, ModelError>,
        lost: &[&str],
    ) -> [Outcome; 4] {
        // Exports of all releases hold of a tree what the oldest layout has.
        let facts = |model: &M| {
            let mut facts = model.facts(PayloadLayout::V0_10);
            if let Some(facts) = facts.as_object_mut() {
                facts.retain(|name, _| !lost.contains(&name.as_str()));
            }
            facts
        };
        let read = |bytes: &[u8]| from_tensors(&Tensors::from_safetensors(bytes)?);
        let model = match read(self.bytes) {
            Ok(model) => model,
            Err(error) => return [Outcome::Wrong(error.to_string()), NA, NA, NA],
        };
        let written = model.to_tensors().and_then(|tensors| tensors.to_safetensors());
        [
            Outcome::Expected("read"),
            Outcome::from_failure("equal", difference(&facts(&model), self.model, "")),
            match written.and_then(|written| read(&written)) {
                Ok(again) if model.facts(PayloadLayout::V0_72) == again.facts(PayloadLayout::V0_72) => {
                    Outcome::Expected("same content")
                }
                Ok(again) => Outcome::Wrong(again.facts(PayloadLayout::V0_72).to_string()),
                Err(error) => Outcome::Wrong(error.to_string()),
            },
            predictions(&model, self.vectors, self.expected),
        ]
    }
}
