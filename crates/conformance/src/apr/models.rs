//! Payloads of version 1 as models: values, bytes, predictions.

use std::{env, fs, process};

use apr_container::v1::Container;
use apr_container::{
    Compression, EncodePayload, Error as AprError, Expect, ModelType, PayloadLayout, PayloadWriter,
    ReadOptions, SaveOptions, Serde, UncheckedSignature, decode_payload_from_slice, encode_payload_to_vec,
    load_from_bytes_with, load_with, to_vec,
};
use apr_models::{
    AnyModel, Dbscan, DecisionTreeClassifier, DecisionTreeRegressor, ElasticNet, GaussianMixture,
    IsolationForest, KMeans, Lasso, LinearRegression, LogisticRegression, Matrix, MinMaxScaler,
    MixtureOfExperts, Numbers, QuantizedBlock, RandomForestClassifier, RandomForestRegressor, Ridge,
    StandardScaler,
};
use serde_json::Value;

use super::kitchen::Kitchen;
use super::recorded::Recorded;
use super::vectors::{self, Content, Payload, Protection, V1File, Vectors, float_bits};
use crate::digest::sha256_hex;
use crate::matrix::{Outcome, Suite};
use crate::vectors::Error;

const COLUMNS: &[&str] = &[
    "load, strict",
    "load, compat",
    "from disk",
    "`AnyModel`",
    "values",
    "same bytes",
    "saved by us",
    "predictions",
];

const ABOUT: &str = "\
What the containers above hold, loaded as the type it is in the layout its release writes. Strict reading
loads signed files only where an unchecked signature is allowed; nothing loads an encrypted one. Every value
the model shows has to be the recorded one, to the bit; encoded for the same release it has to give the same
payload; saved by us with the same compression and loaded again, too. Predictions, probabilities, scores and
transformed samples have to be the peer's, to the bit or within a relative 1e-6.";

/// Runs every container of version 1.
///
/// # Errors
///
/// A vector that cannot be read from disk.
pub fn suite(vectors: &Vectors) -> Result<Suite, Error> {
    let mut suite = Suite::new("apr, version 1: models", ABOUT, COLUMNS);
    let rows = rows(vectors);
    for file in &vectors.files {
        let Content::V1(facts) = &file.content else { continue };
        let payload = vectors.payload(&facts.payload)?;
        let bytes = vectors::read(&file.name)?;
        let case = Case { file: &bytes, facts, payload, layout: layout(&file.peer), rows: &rows };
        let encrypted = if facts.protection.is_encrypted() { ", encrypted" } else { "" };
        let row = format!("{}{encrypted}", payload.kind);
        let check = KINDS.iter().find(|(kind, _)| *kind == payload.kind).map(|(_, check)| check);
        let unknown = || [(); 8].map(|()| Outcome::Wrong("no reader for this type".to_owned()));
        suite.record(&row, &file.name, check.map_or_else(unknown, |check| check(&case)));
    }
    Ok(suite)
}

/// The samples of every list of predictions.
pub(super) fn rows(vectors: &Vectors) -> Matrix {
    let n_cols = vectors.rows.first().map_or(0, Vec::len);
    Matrix::from_vec(vectors.rows.len(), n_cols, vectors.rows.concat()).expect("rows of one length")
}

/// The layout that a peer writes.
pub(super) fn layout(peer: &str) -> PayloadLayout {
    let version = peer.rsplit(' ').next().unwrap_or_default();
    PayloadLayout::from_version(version).expect("a release in the table of layouts")
}

/// A file and what is known of it.
struct Case<'a> {
    file: &'a [u8],
    facts: &'a V1File,
    payload: &'a Payload,
    layout: PayloadLayout,
    rows: &'a Matrix,
}

type Check = fn(&Case<'_>) -> [Outcome; 8];

/// The Rust type of each name of a payload.
const KINDS: &[(&str, Check)] = &[
    ("LinearRegression", check::<LinearRegression>),
    ("Ridge", check::<Ridge>),
    ("Lasso", check::<Lasso>),
    ("ElasticNet", check::<ElasticNet>),
    ("LogisticRegression", check::<LogisticRegression>),
    ("KMeans", check::<KMeans>),
    ("DecisionTreeClassifier", check::<DecisionTreeClassifier>),
    ("DecisionTreeRegressor", check::<DecisionTreeRegressor>),
    ("RandomForestClassifier", check::<RandomForestClassifier>),
    ("RandomForestRegressor", check::<RandomForestRegressor>),
    ("StandardScaler", check::<StandardScaler>),
    ("MinMaxScaler", check::<MinMaxScaler>),
    ("DBSCAN", check::<Dbscan>),
    ("GaussianMixture", check::<GaussianMixture>),
    ("IsolationForest", check::<IsolationForest>),
    ("MixtureOfExperts", check::<MixtureOfExperts<LinearRegression>>),
    ("Vec<f32>", check::<Numbers>),
    ("QuantizedBlock", check::<QuantizedBlock>),
    ("Kitchen", check::<Serde<Kitchen>>),
];

fn check<M: Recorded>(case: &Case<'_>) -> [Outcome; 8] {
    let protection = case.facts.protection;
    let model_type = ModelType(case.facts.header.model_type);
    let load = |options: &ReadOptions| load_from_bytes_with::<M>(case.file, model_type, options);
    let refusal = match protection {
        Protection::Plain => None,
        Protection::Signed => Some("ac-signed"),
        Protection::Password | Protection::Recipient => Some("ac-encrypted"),
    };
    let strict = outcome_of(refusal, load(&ReadOptions::STRICT));
    let allowing = ReadOptions::STRICT.with_unchecked_signature(UncheckedSignature::Allow);
    let refusal = refusal.filter(|_| protection.is_encrypted());
    let compat = match (outcome_of(refusal, load(&ReadOptions::COMPAT)), outcome_of(refusal, load(&allowing)))
    {
        (compat, allowed) if compat == allowed => compat,
        (compat, allowed) => Outcome::Wrong(format!("{compat:?}, strict and allowed {allowed:?}")),
    };
    let (any, model) = match load(&allowing) {
        Ok(model) => (any_model(&model, case, [&allowing, &ReadOptions::COMPAT]), model.complete()),
        Err(_) => {
            // The payload recorded before encryption still has to decode.
            let disk = from_disk::<M>(case, &allowing, refusal);
            let decode = |bytes: &Vec<u8>| decode_payload_from_slice::<M>(bytes, case.layout, model_type);
            return match case.payload.bytes.as_ref().map(decode) {
                None => [strict, compat, disk, NA, NA, NA, NA, NA],
                Some(Ok(model)) => {
                    let model = model.complete();
                    let [values, bytes, predictions] = content(&model, case);
                    [strict, compat, disk, NA, values, bytes, NA, predictions]
                }
                Some(Err(error)) => [strict, compat, disk, NA, Outcome::Wrong(error.to_string()), NA, NA, NA],
            };
        }
    };
    let disk = from_disk::<M>(case, &allowing, refusal);
    let saved = saved_differs(&model, case).unwrap_or_else(|error| Some(error.to_string()));
    let [values, bytes, predictions] = content(&model, case);
    [strict, compat, disk, any, values, bytes, Outcome::from_failure("equal", saved), predictions]
}

fn content<M: Recorded>(model: &M, case: &Case<'_>) -> [Outcome; 3] {
    [values(model, case), same_bytes(model, case), predictions(model, case)]
}

/// `AnyModel`, which detects the model type of a file; it does not know a user's own type.
fn any_model<M: Recorded>(model: &M, case: &Case<'_>, levels: [&ReadOptions; 2]) -> Outcome {
    let known = AnyModel::NAMES.contains(&model.model_name().unwrap_or_default());
    for options in levels {
        match load_from_bytes_with::<AnyModel>(case.file, Expect::AnyKnown, options) {
            Ok(any) => {
                let same_name = EncodePayload::model_name(&any) == model.model_name();
                let [one, other] =
                    [encode_payload_to_vec(&any, case.layout), encode_payload_to_vec(model, case.layout)];
                if !same_name || one.ok() != other.ok() {
                    return Outcome::Wrong(format!("another model: {:?}", EncodePayload::model_name(&any)));
                }
            }
            Err(error) if known => return Outcome::Wrong(format!("{:?}: {error}", options.strictness)),
            Err(_) => {}
        }
    }
    Outcome::Expected(if known { "found" } else { "refused" })
}

const NA: Outcome = Outcome::NotApplicable;

fn outcome_of<M>(refusal: Option<&str>, loaded: Result<M, AprError>) -> Outcome {
    match (loaded, refusal) {
        (Ok(_), None) => Outcome::Expected("loaded"),
        (Err(error), Some(code)) if error.code() == code => Outcome::Expected("refused"),
        (Ok(_), Some(code)) => Outcome::Wrong(format!("loaded, expected {code}")),
        (Err(error), _) => Outcome::Wrong(error.to_string()),
    }
}

/// Loading from disk gives the same result.
fn from_disk<M: Recorded>(case: &Case<'_>, options: &ReadOptions, refusal: Option<&str>) -> Outcome {
    let path = env::temp_dir().join(format!("conformance-{}-{}.apr", process::id(), sha256_hex(case.file)));
    if let Err(error) = fs::write(&path, case.file) {
        return Outcome::Wrong(format!("{}: {error}", path.display()));
    }
    let loaded = load_with::<M>(&path, Expect::AnyKnown, options);
    let _ = fs::remove_file(&path); // Nothing depends on it.
    match (&loaded, refusal) {
        (Ok(_), None) => {}
        _ => return outcome_of(refusal, loaded),
    }
    match loaded.map(|model| encode_payload_to_vec(&model.complete(), case.layout)) {
        Ok(Ok(bytes)) if sha256_hex(&bytes) == case.payload.sha256 => Outcome::Expected("loaded"),
        other => Outcome::Wrong(format!("another model: {:?}", other.map(|bytes| bytes.is_ok()))),
    }
}

fn values<M: Recorded>(model: &M, case: &Case<'_>) -> Outcome {
    let facts = model.facts(case.layout);
    let difference = match (&case.payload.model, case.payload.expected.get("n")) {
        (Some(recorded), _) => difference(&facts, recorded, ""),
        (None, Some(count)) => rule_difference(&facts, count, &case.payload.expected),
        (None, None) => (!facts.is_null()).then(|| facts.to_string()),
    };
    Outcome::from_failure("equal", difference)
}

/// Where the facts of a model are not those recorded; what only the record knows is compared as bytes.
pub(super) fn difference(found: &Value, recorded: &Value, at: &str) -> Option<String> {
    match (found, recorded) {
        (Value::Object(found), Value::Object(recorded)) => found.iter().find_map(|(key, value)| {
            let at = format!("{at}/{key}");
            recorded.get(key).map_or_else(
                || Some(format!("{at} is not recorded")),
                |recorded| difference(value, recorded, &at),
            )
        }),
        (Value::Array(found), Value::Array(recorded)) if found.len() == recorded.len() => {
            let pairs = found.iter().zip(recorded).enumerate();
            pairs
                .into_iter()
                .find_map(|(idx, (found, recorded))| difference(found, recorded, &format!("{at}/{idx}")))
        }
        (Value::Number(found), Value::Number(recorded)) if found.as_f64() == recorded.as_f64() => None,
        (found, recorded) if found == recorded => None,
        (found, recorded) => Some(format!("{at}: {found}, recorded {recorded}")),
    }
}

/// The coefficients of the large model follow a rule.
fn rule_difference(facts: &Value, count: &Value, expected: &Value) -> Option<String> {
    let count = count.as_u64().unwrap_or_default();
    let coefficients: Vec<f32> = (0..count).map(|idx| (idx % 13) as f32 * 0.25 - 1.0).collect();
    let recorded = serde_json::json!({
        "coefficients": {"data": coefficients},
        "intercept": expected.get("intercept"),
        "fit_intercept": expected.get("fit_intercept"),
    });
    difference(facts, &recorded, "")
}

fn same_bytes<M: Recorded>(model: &M, case: &Case<'_>) -> Outcome {
    Outcome::from_failure(
        "equal",
        match encode_payload_to_vec(model, case.layout) {
            Ok(bytes)
                if bytes.len() as u64 == case.payload.len && sha256_hex(&bytes) == case.payload.sha256 =>
            {
                None
            }
            Ok(bytes) => Some(format!("{} bytes, {} recorded", bytes.len(), case.payload.len)),
            Err(error) => Some(error.to_string()),
        },
    )
}

/// A model of a file, which is written again whether it was fitted or not, as `AnyModel` does it.
struct AsRead<'m, M>(&'m M);

impl<M: EncodePayload> EncodePayload for AsRead<'_, M> {
    const MODEL_TYPE: Option<ModelType> = M::MODEL_TYPE;

    fn model_name(&self) -> Option<&str> {
        self.0.model_name()
    }

    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), AprError> {
        self.0.encode_payload(out)
    }
}

/// A file of ours with the same model, in every layout and compression.
fn saved_differs<M: Recorded>(model: &M, case: &Case<'_>) -> Result<Option<String>, AprError> {
    let model_type = ModelType(case.facts.header.model_type);
    for compression in [Compression::None, Compression::ZstdDefault, Compression::ZstdMax, Compression::LZ4] {
        for layout in PayloadLayout::ALL {
            let options = SaveOptions::default()
                .with_compression(compression)
                .with_layout(layout)
                .with_created_at(1_795_241_427);
            let file = to_vec(&AsRead(model), model_type, &options)?;
            if file != to_vec(&AsRead(model), model_type, &options)? {
                return Ok(Some("a second save differs".to_owned()));
            }
            let stored = Container::from_bytes(&file)?.payload().plain()?.to_vec()?;
            if layout == case.layout && sha256_hex(&stored) != case.payload.sha256 {
                return Ok(Some(format!("{compression}: another payload")));
            }
            let again = load_from_bytes_with::<M>(&file, model_type, &ReadOptions::STRICT)?.complete();
            if encode_payload_to_vec(&again, layout)? != stored {
                return Ok(Some(format!("{compression}, {layout}: another model is loaded again")));
            }
        }
    }
    Ok(None)
}

fn predictions<M: Recorded>(model: &M, case: &Case<'_>) -> Outcome {
    if case.payload.expected.get("predictions").is_none() && case.payload.expected.get("x").is_none() {
        let known = ["transformed", "values", "labels", "dequantized"];
        if !known.iter().any(|key| case.payload.expected.get(key).is_some()) {
            return NA;
        }
    }
    match model.computed(case.rows) {
        Ok(computed) => compare(&computed, &case.payload.expected),
        Err(error) => Outcome::Wrong(error.to_string()),
    }
}

/// Bits first, then a relative 1e-6.
pub(super) fn compare(computed: &[(&'static str, Vec<f32>)], expected: &Value) -> Outcome {
    let mut equal = true;
    for (name, found) in computed {
        let Some(expected) = expected.get(name).and_then(numbers) else { continue };
        if found.len() != expected.len() {
            return Outcome::Wrong(format!("{name}: {} values, {} recorded", found.len(), expected.len()));
        }
        for (found, expected) in found.iter().zip(expected) {
            equal &= found.to_bits() == expected.to_bits();
            let near = (found - expected).abs() <= 1e-6 * expected.abs();
            if found.to_bits() != expected.to_bits() && !near {
                return Outcome::Wrong(format!("{name}: {found}, recorded {expected}"));
            }
        }
    }
    Outcome::Expected(if equal { "bit-equal" } else { "within 1e-6" })
}

/// Floats of an expectation: digits of their bits, a number, a list, or a list of lists.
fn numbers(value: &Value) -> Option<Vec<f32>> {
    match value {
        Value::String(bits) => float_bits(bits),
        Value::Number(number) => Some(vec![number.as_f64()? as f32]),
        Value::Array(values) => {
            values.iter().map(numbers).collect::<Option<Vec<_>>>().map(|lists| lists.concat())
        }
        _ => None,
    }
}
