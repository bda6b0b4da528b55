//! Heap limits of each entry point: the table of `docs/embedded.md`.

use apr_container::{
    ModelType, PayloadLayout, Protection, ReadOptions, SaveOptions, encode_payload_to_vec, inspect_bytes,
    load_from_bytes, to_vec, verify_signature, view_bytes,
};
use apr_crypto::SigningKey;
use apr_models::{
    AnyModel, Classifier, KMeans, LinearRegression, Matrix, Model as _, RandomForestClassifier,
};
use conformance::apr::vectors;
use gguf_core::Gguf;
use st_core::{Dtype, TensorView, WriteOptions};
use test_meter::Usage;

use super::HEAP;

/// Heap limit of every function that reads an `.apr` file, beside its model: metadata while they are parsed.
const SMALL: usize = 1024;

pub(crate) fn budgets_are_kept() {
    tensors();
    models_and_their_predictions();
    forests();
}

fn nothing(what: &str, usage: Usage) {
    println!("{what}: {} requests, {} bytes", usage.requests, usage.peak);
    assert_eq!(usage.requests, 0, "{what}: {usage:?}");
}

fn at_most(what: &str, usage: Usage, bytes: usize) {
    println!("{what}: {} bytes of {bytes}", usage.peak);
    assert!(usage.peak <= bytes, "{what}: {usage:?}, {bytes} are allowed");
}

fn tensors() {
    let data = [1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
    let names: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
    let views: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), TensorView::new(Dtype::F32, &[2, 2], &data).unwrap()))
        .collect();
    let file = st_core::to_vec(&views, &WriteOptions::default()).unwrap();
    let (sum, usage) = HEAP.measure(|| {
        let found = st_core::find(&file, "t77").unwrap().unwrap();
        found.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).sum::<f32>()
    });
    assert_eq!(sum, 10.0);
    nothing("one safetensors tensor", usage);

    let vectors = conformance::gguf::vectors().unwrap();
    let vector = vectors.iter().find(|vector| vector.file.ends_with("tiny_llama_f32.gguf")).unwrap();
    let file = conformance::gguf::read(vector).unwrap();
    let entries = Gguf::from_bytes(&file).unwrap();
    let entries = entries.tensors().len() + entries.entries().len();
    let (found, usage) = HEAP.measure(|| {
        let gguf = Gguf::from_bytes(&file).unwrap();
        let info = gguf.tensors().iter().last().unwrap();
        gguf.tensor_data(info).map(<[u8]>::len)
    });
    assert!(found > Some(0));
    at_most(&format!("one GGUF tensor beside {entries} keys and tensors"), usage, 128 * entries);
}

fn models_and_their_predictions() {
    let key = SigningKey::from_seed(&[1; SigningKey::LEN]);
    let public = key.verifying_key();
    for n in [10, 1000, 100_000] {
        let coefficients = (0..n).map(|number| number as f32).collect();
        let model = LinearRegression::from_parts(coefficients, 1.0).unwrap();
        let kind = ModelType::LinearRegression;
        let file = to_vec(&model, kind, &SaveOptions::default()).unwrap();
        let protection = Protection::default().signed_by(&key);
        let signed = to_vec(&model, kind, &SaveOptions::default().with_protection(protection)).unwrap();

        at_most(&format!("inspect, {n}"), HEAP.measure(|| inspect_bytes(&file).map(drop)).1, SMALL);
        let (verified, usage) =
            HEAP.measure(|| verify_signature(&signed, &public, &ReadOptions::STRICT).is_ok());
        assert!(verified);
        nothing(&format!("verify, {n}"), usage);
        let (loaded, usage) = HEAP.measure(|| load_from_bytes::<LinearRegression>(&file, kind).unwrap());
        at_most(&format!("LinearRegression of {n}"), usage, 4 * n + SMALL);
        let (view, usage) = HEAP.measure(|| view_bytes::<LinearRegression>(&file, kind).unwrap());
        at_most(&format!("view of {n}"), usage, SMALL);

        let (rows, mut out) = (vec![0.5; 3 * n], [0.0; 3]);
        nothing("predictions of a view", HEAP.measure(|| view.predict_into(&rows, &mut out).unwrap()).1);
        nothing("predictions of the model", HEAP.measure(|| loaded.predict_into(&rows, &mut out).unwrap()).1);
    }
    let mut clusters = KMeans::new(2).unwrap();
    clusters.fit(&Matrix::from_vec(4, 2, vec![0.0, 0.0, 0.0, 1.0, 9.0, 9.0, 9.0, 8.0]).unwrap()).unwrap();
    let file = to_vec(&clusters, ModelType::KMeans, &SaveOptions::default()).unwrap();
    let view = view_bytes::<KMeans>(&file, ModelType::KMeans).unwrap();
    let mut out = [0; 2];
    nothing(
        "clusters of a view",
        HEAP.measure(|| view.predict_into(&[0.0, 0.0, 9.0, 9.0], &mut out).unwrap()).1,
    );
}

/// A node takes less in memory than in the file.
fn forests() {
    let stored = vectors::read("a0723_rforest_zstd-default_plain.apr").unwrap();
    let AnyModel::RandomForestClassifier(forest) = AnyModel::from_bytes(&stored).unwrap() else {
        panic!("no forest")
    };
    let file = to_vec(&forest, ModelType::RandomForest, &SaveOptions::default()).unwrap();
    let payload = encode_payload_to_vec(&forest, PayloadLayout::default()).unwrap().len();
    let (loaded, usage) =
        HEAP.measure(|| load_from_bytes::<RandomForestClassifier>(&file, ModelType::RandomForest).unwrap());
    at_most(&format!("forest of {payload} bytes"), usage, 2 * payload + SMALL);
    let (rows, mut out) = (vec![0.5; loaded.n_features().unwrap()], [0]);
    nothing("predictions of a forest", HEAP.measure(|| loaded.predict_into(&rows, &mut out).unwrap()).1);
}
