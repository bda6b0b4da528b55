//! Everything a file can say about its model, as the peers' `inspect` understands it.

use std::path::Path;

use apr_container::{
    DistillationInfo, DistillationMethod, DistillationParams, LayerMapping, License, LicenseTier, Map,
    Metadata, ModelCard, ModelType, SaveOptions, Teacher, Training, TrainingData, Value, inspect, save,
};
use apr_models::LinearRegression;
use serde_json::json;

use super::{Outcome, options};
use crate::peers::Peer;

/// The name of the row.
pub(crate) const ROW: &str = "metadata";

/// Our metadata in the peer's words, and our `inspect` of the same file.
pub(crate) fn check(peer: &Peer, folder: &Path) -> Vec<Outcome> {
    vec![understood(peer, folder).map_err(|why| format!("metadata, {}: {why}", peer.name))]
}

fn understood(peer: &Peer, folder: &Path) -> Outcome {
    let path = folder.join("metadata.apr");
    let knows_cards = peer.knows_model_cards();
    let metadata = everything(knows_cards);
    let options =
        SaveOptions { metadata: metadata.clone(), ..options(peer, apr_container::Compression::None) };
    save(
        &LinearRegression::new(),
        ModelType::LinearRegression,
        &path,
        options.with_created_at(1_795_241_427),
    )
    .map_err(|error| error.to_string())?;
    let found = peer.inspect(&path)?;
    let mut expected = json!({
        "created_at": "1795241427",
        "aprender_version": peer.layout.version(),
        "model_name": "house-price-predictor",
        "description": "Größe → Preis",
        "training": { "samples": 506, "duration_ms": 42, "source": "boston.csv" },
        "hyperparameters": {
            "epochs": 100, "learning_rate": 0.01, "neg": i64::MIN, "big": u64::MAX, "fit": true, "none": null,
            "list": [1, 2.5, "x", [false]], "map": { "a": { "b": 1 } },
        },
        "metrics": { "r2": 0.95 },
        // Ours: which of the models of one type it is.
        "custom": { "inference_pub_key": "00ff", "apr.model": "LinearRegression" },
        "distillation": "sha256:00",
        "distillation_info": {
            "method": "Ensemble",
            "teacher": {
                "hash": "sha256:00", "signature": "ed25519:11", "model_type": "NeuralSequential", "param_count": 7,
                "ensemble_teachers": [{ "hash": "sha256:22", "model_type": "Custom", "param_count": 1 }],
            },
            "params": { "temperature": 2.5, "alpha": 0.75, "beta": 0.25, "epochs": 3, "final_loss": 0.125 },
            "layer_mapping": [{ "student_layer": 0, "teacher_layer": 11, "weight": 0.5 }],
        },
        "license": {
            "uuid": "550e8400", "hash": "00ff", "expiry": "2027-01-01", "seats": 5, "licensee": "ACME", "tier": "Team",
        },
    });
    if knows_cards {
        expected["model_card"] = json!({
            "model_id": "org/houses", "name": "Houses", "version": "1.2.0", "author": "A. Uthor",
            "created_at": "2026-11-21T06:10:33Z", "framework_version": "ours 1", "rust_version": "1.95",
            "description": "prices", "license": "MIT",
            "training_data": { "name": "boston", "samples": 506, "hash": "sha256:33" },
            "hyperparameters": { "k": 1 }, "metrics": { "mae": 2.5 }, "architecture": "linear", "param_count": 14,
            "target_hardware": ["cpu", "wasm"], "note": "kept",
        });
    }
    if found["metadata"] != expected {
        return Err(format!("the peer understands {}, not {expected}", found["metadata"]));
    }
    let known = [("licensed", true), ("signed", false), ("encrypted", false)];
    if let Some((flag, _)) = known.into_iter().find(|(flag, set)| found[*flag] != json!(*set)) {
        return Err(format!("{flag} is {}", found[flag]));
    }
    let own = inspect(&path).map_err(|error| error.to_string())?;
    let mut stamped = Metadata {
        created_at: "1795241427".to_owned(),
        aprender_version: peer.layout.version().to_owned(),
        ..metadata
    };
    stamped.custom.insert("apr.model".to_owned(), Value::from("LinearRegression"));
    match own.metadata == stamped {
        true => Ok(()),
        false => Err(format!("we read {:?}", own.metadata)),
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Map<Value> {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Metadata with every field set.
fn everything(with_card: bool) -> Metadata {
    let list =
        vec![Value::from(1), Value::from(2.5), Value::from("x"), Value::from(vec![Value::from(false)])];
    let inner = Value::Map(map([("b", Value::from(1))]));
    let taught = Teacher {
        hash: "sha256:22".into(),
        model_type: "Custom".into(),
        param_count: 1,
        ..Teacher::default()
    };
    let teacher = Teacher {
        hash: "sha256:00".into(),
        signature: text("ed25519:11"),
        model_type: "NeuralSequential".into(),
        param_count: 7,
        ensemble_teachers: vec![taught],
        ..Teacher::default()
    };
    let layer = LayerMapping { student_layer: 0, teacher_layer: 11, weight: 0.5, ..LayerMapping::default() };
    let params = DistillationParams {
        temperature: 2.5,
        alpha: 0.75,
        beta: Some(0.25),
        epochs: 3,
        final_loss: Some(0.125),
        ..DistillationParams::default()
    };
    Metadata {
        model_name: text("house-price-predictor"),
        description: text("Größe → Preis"),
        training: Some(Training {
            samples: Some(506),
            duration_ms: Some(42),
            source: text("boston.csv"),
            ..Training::default()
        }),
        hyperparameters: map([
            ("epochs", Value::from(100)),
            ("learning_rate", Value::from(0.01)),
            ("neg", Value::from(i64::MIN)),
            ("big", Value::from(u64::MAX)),
            ("fit", Value::from(true)),
            ("none", Value::Nil),
            ("list", Value::from(list)),
            ("map", Value::Map(map([("a", inner)]))),
        ]),
        metrics: map([("r2", Value::from(0.95))]),
        custom: map([("inference_pub_key", Value::from("00ff"))]),
        distillation: text("sha256:00"),
        distillation_info: Some(DistillationInfo {
            method: DistillationMethod::Ensemble,
            teacher,
            params,
            layer_mapping: vec![layer],
            ..DistillationInfo::default()
        }),
        license: Some(License {
            uuid: "550e8400".into(),
            hash: "00ff".into(),
            expiry: text("2027-01-01"),
            seats: Some(5),
            licensee: text("ACME"),
            tier: LicenseTier::Team,
            ..License::default()
        }),
        model_card: with_card.then(card),
        ..Metadata::default()
    }
}

fn card() -> ModelCard {
    ModelCard {
        model_id: "org/houses".into(),
        name: "Houses".into(),
        version: "1.2.0".into(),
        author: text("A. Uthor"),
        created_at: "2026-11-21T06:10:33Z".into(),
        framework_version: "ours 1".into(),
        rust_version: text("1.95"),
        description: text("prices"),
        license: text("MIT"),
        training_data: Some(TrainingData {
            name: "boston".into(),
            samples: Some(506),
            hash: text("sha256:33"),
            ..TrainingData::default()
        }),
        hyperparameters: map([("k", Value::from(1))]),
        metrics: map([("mae", Value::from(2.5))]),
        architecture: text("linear"),
        param_count: Some(14),
        target_hardware: vec!["cpu".into(), "wasm".into()],
        extra: map([("note", Value::from("kept"))]),
    }
}
