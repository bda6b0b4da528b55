//! Any payload as any model in any layout: refused, or a model that is written and read again unchanged.

#![no_main]

use apr_container::v1::Container;
use apr_container::{
    DecodePayload, EncodePayload, Error, Expect, ModelType, PayloadLayout, PayloadReader, ReadOptions,
    decode_payload_from_slice, encode_payload_to_vec, load_from_bytes_with,
};
use apr_fuzz::Choices;
use apr_fuzz::apr::payload::{KINDS, Kind};
use apr_models::*;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // A vector: its payload alone is of interest here, so its checksum need not match.
    if let Ok(container) = Container::from_bytes_with(input, &ReadOptions::COMPAT) {
        let _ = container.payload().plain().and_then(|payload| payload.decode::<AnyModel>());
        let _ = load_from_bytes_with::<AnyModel>(input, Expect::AnyKnown, &ReadOptions::COMPAT);
    }
    let choices = &mut Choices::new(input);
    let kind = KINDS[choices.below(KINDS.len())];
    let layout = choices.pick(PayloadLayout::ALL);
    let rest = input.get(2..).unwrap_or_default();
    check_kind(&kind, rest, layout);
    let payload = kind.payload(choices, layout);
    check_kind(&kind, &payload, layout);
    any_model(kind.model_type, &payload, layout);
});

fn check_kind(kind: &Kind, payload: &[u8], layout: PayloadLayout) {
    let found = match kind.name {
        "LinearRegression" => check(payload, layout, kind, LinearRegression::from_tensors),
        "Ridge" => check(payload, layout, kind, Ridge::from_tensors),
        "Lasso" => check(payload, layout, kind, Lasso::from_tensors),
        "ElasticNet" => check(payload, layout, kind, ElasticNet::from_tensors),
        "LogisticRegression" => check(payload, layout, kind, LogisticRegression::from_tensors),
        "KMeans" => check(payload, layout, kind, KMeans::from_tensors),
        "DecisionTreeClassifier" => check(payload, layout, kind, DecisionTreeClassifier::from_tensors),
        "DecisionTreeRegressor" => check(payload, layout, kind, DecisionTreeRegressor::from_tensors),
        "RandomForestClassifier" => check(payload, layout, kind, RandomForestClassifier::from_tensors),
        "RandomForestRegressor" => check(payload, layout, kind, RandomForestRegressor::from_tensors),
        "StandardScaler" => check(payload, layout, kind, StandardScaler::from_tensors),
        "MinMaxScaler" => check(payload, layout, kind, MinMaxScaler::from_tensors),
        "DBSCAN" => check(payload, layout, kind, Dbscan::from_tensors),
        "GaussianMixture" => check(payload, layout, kind, GaussianMixture::from_tensors),
        "IsolationForest" => check(payload, layout, kind, IsolationForest::from_tensors),
        "MixtureOfExperts" => {
            check::<MixtureOfExperts<LinearRegression>>(payload, layout, kind, MixtureOfExperts::from_tensors)
        }
        "QuantizedBlock" => check(payload, layout, kind, QuantizedBlock::from_tensors),
        "Numbers" => check(payload, layout, kind, Numbers::from_tensors),
        "Pca" => check(payload, layout, kind, Pca::from_tensors),
        "NaiveBayes" => check(payload, layout, kind, NaiveBayes::from_tensors),
        "KnnClassifier" => check(payload, layout, kind, KnnClassifier::from_tensors),
        "KnnRegressor" => check(payload, layout, kind, KnnRegressor::from_tensors),
        "Svm" => check(payload, layout, kind, Svm::from_tensors),
        "GradientBoostingClassifier" => {
            check(payload, layout, kind, GradientBoostingClassifier::from_tensors)
        }
        "GradientBoostingRegressor" => check(payload, layout, kind, GradientBoostingRegressor::from_tensors),
        "NgramLm" => check(payload, layout, kind, NgramLm::from_tensors),
        "CountVectorizer" => check(payload, layout, kind, CountVectorizer::from_tensors),
        "TfIdf" => check(payload, layout, kind, TfIdf::from_tensors),
        "NeuralSequential" => check(payload, layout, kind, NeuralSequential::from_tensors),
        "ContentRecommender" => check(payload, layout, kind, ContentRecommender::from_tensors),
        name => unreachable!("{name} has no type"),
    };
    std::hint::black_box(found);
}

/// A payload passed over.
struct Skipped<M>(std::marker::PhantomData<M>);

impl<M: DecodePayload> DecodePayload for Skipped<M> {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        M::skip_payload(input).map(|()| Self(std::marker::PhantomData))
    }
}

/// Decodes, and proves that nothing is lost in what is written from it; returns whether there was a model.
fn check<M: DecodePayload + EncodePayload + Model>(
    payload: &[u8],
    layout: PayloadLayout,
    kind: &Kind,
    from_tensors: fn(&Tensors) -> Result<M, apr_models::Error>,
) -> bool {
    let decode = |bytes: &[u8], layout| decode_payload_from_slice::<M>(bytes, layout, kind.model_type);
    let skipped = decode_payload_from_slice::<Skipped<M>>(payload, layout, kind.model_type);
    let model = match decode(payload, layout) {
        Ok(model) => model,
        Err(error) => {
            assert!(error.offset().is_none_or(|offset| offset <= payload.len() as u64), "{error}");
            assert!(error.code().starts_with("ac-") || error.code().starts_with("am-"), "{}", error.code());
            return false;
        }
    };
    assert!(skipped.is_ok(), "{}: decoded but not skipped", kind.name);
    assert_eq!(EncodePayload::model_name(&model), Some(kind.name));
    for other in PayloadLayout::ALL {
        // A layout may lack a place for what the model holds.
        let Ok(written) = encode_payload_to_vec(&model, other) else {
            assert_ne!(other, layout, "{}: the layout it was read in", kind.name);
            continue;
        };
        let again = decode(&written, other).expect("what we write we read");
        assert_eq!(encode_payload_to_vec(&again, other).ok(), Some(written), "{}", kind.name);
    }
    if let Ok(tensors) = model.to_tensors() {
        let file = tensors.to_safetensors().expect("as they are");
        let read = Tensors::from_safetensors(&file).expect("what we write we read");
        match from_tensors(&read) {
            Ok(again) => {
                let tensors = again.to_tensors().and_then(|tensors| tensors.to_safetensors());
                assert_eq!(tensors.ok().as_ref(), Some(&file), "{}", kind.name);
            }
            // Files of weights are held to more than payloads: every number has to be finite.
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    true
}

/// The type that finds out by itself reads what some type reads, and can be asked.
fn any_model(model_type: ModelType, payload: &[u8], layout: PayloadLayout) {
    let Ok(model) = decode_payload_from_slice::<AnyModel>(payload, layout, model_type) else { return };
    let n_features = model.n_features().unwrap_or(1);
    if n_features <= 1 << 10 {
        let rows = Matrix::from_vec(2, n_features, vec![0.5; 2 * n_features]);
        let _ = rows.and_then(|rows| model.try_predict(&rows));
    }
    let written = encode_payload_to_vec(&model, layout).expect("the layout it was read in");
    let again =
        decode_payload_from_slice::<AnyModel>(&written, layout, model_type).expect("what we write we read");
    assert_eq!(encode_payload_to_vec(&again, layout).ok(), Some(written));
}
