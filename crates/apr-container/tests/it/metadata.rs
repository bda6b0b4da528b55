//! Metadata read, written and compared with what the format's first implementation makes of the same bytes.

use apr_container::{
    DistillationInfo, DistillationMethod, DistillationParams, LayerMapping, License, LicenseTier, Limits,
    Map, Metadata, ModelCard, Strictness, Teacher, Training, TrainingData, Value,
};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::peer_metadata::{ALL, CARD, DISTILLED_FROM_TWO, EVERY_VALUE, LICENSED};

fn read(bytes: &[u8]) -> Metadata {
    Metadata::from_msgpack(bytes, Strictness::Strict, &Limits::DEFAULT).unwrap()
}

/// What the other implementation reads in our bytes.
fn judged(metadata: &Metadata) -> Json {
    rmp_serde::from_slice(&metadata.to_msgpack().unwrap()).unwrap()
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::UInt(value) => (*value).into(),
        Value::F64(value) => (*value).into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => values.iter().map(to_json).collect(),
        Value::Map(entries) => entries.iter().map(|(key, value)| (key.clone(), to_json(value))).collect(),
        _ => panic!("JSON has no {}", value.type_name()),
    }
}

fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => value.into(),
            (_, Some(value)) => value.into(),
            _ => number.as_f64().unwrap().into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(values) => values.iter().map(from_json).collect::<Vec<_>>().into(),
        Json::Object(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), from_json(value))).collect::<Map<_>>().into()
        }
    }
}

#[test]
fn what_peers_wrote_is_read_and_written_again_with_every_value() {
    for peer in ALL {
        let metadata = read(peer.bytes);
        assert_eq!(judged(&metadata), serde_json::from_str::<Json>(peer.json).unwrap());
        let bytes = metadata.to_msgpack().unwrap();
        assert_eq!(bytes.len(), peer.bytes.len());
        assert_eq!(read(&bytes), metadata);
        assert_eq!(read(&bytes).to_msgpack().unwrap(), bytes);
        assert!(metadata.extra.is_empty());
        assert_eq!(metadata.created_at_unix(), metadata.created_at.parse().ok());
    }
}

#[test]
fn fields_of_peers_have_their_types() {
    let metadata = read(EVERY_VALUE.bytes);
    assert_eq!(metadata.model_name.as_deref(), Some("house-price-predictor"));
    assert_eq!(metadata.training.unwrap().samples, Some(506));
    assert_eq!(metadata.hyperparameters["u64_max"], Value::UInt(u64::MAX));
    assert_eq!(metadata.hyperparameters["neg_big"], Value::Int(i64::MIN));
    assert_eq!(metadata.hyperparameters["learning_rate"].as_f64(), Some(0.01));

    let info = read(DISTILLED_FROM_TWO.bytes).distillation_info.unwrap();
    assert_eq!(info.method, DistillationMethod::Ensemble);
    assert_eq!((info.params.temperature, info.params.alpha, info.params.epochs), (3.0, 0.7, 10));
    assert_eq!((info.params.beta, info.params.final_loss), (None, Some(0.42)));
    let [first, second] = &info.teacher.ensemble_teachers[..] else { panic!("two teachers") };
    assert_eq!((first.param_count, second.model_type.as_str()), (7_000_000_000, "Custom"));

    let license = read(LICENSED.bytes).license.unwrap();
    assert_eq!((license.tier, license.seats), (LicenseTier::Enterprise, Some(25)));

    let card = read(CARD.bytes).model_card.unwrap();
    assert_eq!(card.training_data.as_ref().unwrap().samples, Some(506));
    assert_eq!(card.target_hardware, ["cpu"]);
    assert_eq!(card.created_at_unix(), Some(1_795_241_876));
    assert_eq!(card.extra["extra_key"].to_string(), r#"{"nested":[1,2]}"#);
}

/// A value in every field, and a key of no field at every level.
fn full() -> Metadata {
    fn extra() -> Map<Value> {
        [("zz".to_owned(), Value::from(vec![Value::from("kept"), Value::Ext(-1, vec![1; 4])]))].into()
    }
    let teacher = Teacher {
        hash: "h".into(),
        signature: Some("s".into()),
        model_type: "Pca".into(),
        param_count: u64::MAX,
        extra: extra(),
        ..Teacher::default()
    };
    let values: Map<Value> =
        [("b".to_owned(), Value::F32(0.1)), ("a".to_owned(), Value::Bytes(vec![0, 255]))].into();
    Metadata {
        created_at: "2026-11-21T06:10:33Z".into(),
        aprender_version: "0.72.3".into(),
        model_name: Some("é\0".into()),
        description: Some(String::new()),
        training: Some(Training {
            samples: Some(0),
            duration_ms: Some(u64::MAX),
            source: Some("x".repeat(300)),
            extra: extra(),
        }),
        hyperparameters: values.clone(),
        metrics: values.clone(),
        custom: values.clone(),
        distillation: Some("d".into()),
        distillation_info: Some(DistillationInfo {
            method: DistillationMethod::from("Imagined"),
            teacher: Teacher { ensemble_teachers: vec![teacher.clone(), teacher.clone()], ..teacher },
            params: DistillationParams {
                temperature: 2.0,
                alpha: f32::MIN_POSITIVE,
                beta: Some(-0.0),
                epochs: u32::MAX,
                final_loss: Some(f32::INFINITY),
                extra: extra(),
            },
            layer_mapping: vec![LayerMapping {
                student_layer: 1,
                teacher_layer: 2,
                weight: 0.5,
                extra: extra(),
            }],
            extra: extra(),
        }),
        license: Some(License {
            uuid: "u".into(),
            hash: "h".into(),
            expiry: Some("e".into()),
            seats: Some(1),
            licensee: Some("l".into()),
            tier: LicenseTier::Team,
            extra: extra(),
        }),
        model_card: Some(ModelCard {
            model_id: "i".into(),
            name: "n".into(),
            version: "v".into(),
            author: Some("a".into()),
            created_at: "c".into(),
            framework_version: "f".into(),
            rust_version: Some("r".into()),
            description: Some("d".into()),
            license: Some("l".into()),
            training_data: Some(TrainingData {
                name: "t".into(),
                samples: Some(1),
                hash: Some("h".into()),
                extra: extra(),
            }),
            hyperparameters: values.clone(),
            metrics: values,
            architecture: Some("a".into()),
            param_count: Some(1),
            target_hardware: vec!["cpu".into(), "gpu".into()],
            extra: extra(),
        }),
        extra: extra(),
    }
}

#[test]
fn every_field_and_every_unknown_key_survives() {
    let metadata = full();
    let bytes = metadata.to_msgpack().unwrap();
    assert_eq!(read(&bytes), metadata);
    assert_eq!(read(&bytes).to_msgpack().unwrap(), bytes);
    let json = judged(&full_in_json());
    assert_eq!(json["distillation_info"]["method"], "Imagined");
    assert_eq!(json["model_card"]["target_hardware"], json!(["cpu", "gpu"]));
    assert_eq!(json["license"].as_object().unwrap().len(), 6);
}

/// JSON has neither extensions nor bytes.
fn full_in_json() -> Metadata {
    let mut metadata = full();
    let info = metadata.distillation_info.as_mut().unwrap();
    for teacher in &mut info.teacher.ensemble_teachers {
        teacher.extra.clear();
    }
    info.layer_mapping.iter_mut().for_each(|mapping| mapping.extra.clear());
    info.teacher.extra.clear();
    info.params.extra.clear();
    info.extra.clear();
    let card = metadata.model_card.as_mut().unwrap();
    for values in [&mut card.hyperparameters, &mut card.metrics] {
        values.remove("a");
    }
    for values in [&mut metadata.hyperparameters, &mut metadata.metrics, &mut metadata.custom] {
        values.remove("a");
    }
    card.training_data.as_mut().unwrap().extra.clear();
    card.extra.clear();
    metadata.training.as_mut().unwrap().extra.clear();
    metadata.license.as_mut().unwrap().extra.clear();
    metadata.extra.clear();
    metadata
}

#[test]
fn keys_are_sorted_at_every_level_and_absent_fields_left_out() {
    let mut metadata = Metadata {
        created_at: "1".into(),
        aprender_version: "2".into(),
        training: Some(Training { source: Some("s".into()), samples: Some(3), ..Training::default() }),
        ..Metadata::default()
    };
    for key in ["b", "a"] {
        metadata.custom.insert(key.into(), Value::Nil);
        metadata.extra.insert(format!("{key}_unknown"), Value::Nil);
    }
    let expected = b"\x86\xa9a_unknown\xc0\xb0aprender_version\xa12\xa9b_unknown\xc0\xaacreated_at\xa11\
        \xa6custom\x82\xa1a\xc0\xa1b\xc0\xa8training\x82\xa7samples\x03\xa6source\xa1s";
    assert_eq!(metadata.to_msgpack().unwrap(), expected);
}

#[test]
fn known_choices_are_found_by_name_and_unknown_ones_carried() {
    for (tier, name) in [
        (LicenseTier::Personal, "Personal"),
        (LicenseTier::Team, "Team"),
        (LicenseTier::Enterprise, "Enterprise"),
        (LicenseTier::Academic, "Academic"),
        (LicenseTier::Other("team".into()), "team"),
    ] {
        assert_eq!((LicenseTier::from(name), tier.to_string().as_str()), (tier, name));
    }
    for name in ["Standard", "Progressive", "Ensemble", ""] {
        assert_eq!(DistillationMethod::from(name).name(), name);
    }
}

#[test]
fn writers_with_one_type_of_number_are_understood() {
    // As a writer in a language of 64-bit floats would: `temperature` an integer, `alpha` wide.
    let json = json!({
        "created_at": "0", "aprender_version": "0",
        "distillation_info": {
            "method": "Standard", "teacher": {"hash": "", "model_type": "", "param_count": 1, "signature": null},
            "params": {"temperature": 3, "alpha": 0.7, "epochs": 10, "final_loss": null},
            "layer_mapping": null,
        },
    });
    let params = read(&rmp_serde::to_vec_named(&json).unwrap()).distillation_info.unwrap().params;
    assert_eq!((params.temperature, params.alpha, params.final_loss), (3.0, 0.7, None));
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-200_i64..300).prop_map(Json::from),
        any::<f64>()
            .prop_filter("JSON has finite numbers only", |value| value.is_finite())
            .prop_map(Json::from),
        any::<String>().prop_map(Json::from),
        "[a-z]{28,40}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 60, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Json::from),
            prop::collection::btree_map(any::<String>(), inner, 0..20)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn values_mean_the_same_to_both_implementations(value in any_json(), unknown in any_json()) {
        let json = json!({"created_at": "0", "aprender_version": "0", "custom": {"k": value}, "unknown": unknown});
        let metadata = read(&rmp_serde::to_vec_named(&json).unwrap());
        prop_assert_eq!(&to_json(&metadata.custom["k"]), &json["custom"]["k"]);
        prop_assert_eq!(&to_json(&metadata.extra["unknown"]), &json["unknown"]);
        let built = Metadata {
            created_at: "0".into(),
            aprender_version: "0".into(),
            custom: [("k".to_owned(), from_json(&json["custom"]["k"]))].into(),
            extra: [("unknown".to_owned(), from_json(&json["unknown"]))].into(),
            ..Metadata::default()
        };
        prop_assert_eq!(&built, &metadata);
        prop_assert_eq!(judged(&built), json);
    }

    #[test]
    fn any_bytes_are_read_or_refused_and_what_is_read_can_be_written(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        // A map of one entry and so on: random bytes alone seldom get past the first.
        beginning in prop::sample::select(vec![
            &b""[..],
            b"\x83\xaacreated_at\xa10\xb0aprender_version\xa10",
            b"\x83\xaacreated_at\xa10\xb0aprender_version\xa10\xa6custom\x84\xa1a",
            b"\x83\xaacreated_at\xa10\xb0aprender_version\xa10\xa1a\x94\x81\xa1b",
        ]),
    ) {
        let bytes = [beginning, &bytes].concat();
        for strictness in [Strictness::Strict, Strictness::Compat] {
            if let Ok(metadata) = Metadata::from_msgpack(&bytes, strictness, &Limits::DEFAULT) {
                let written = metadata.to_msgpack().unwrap();
                prop_assert_eq!(read(&written).to_msgpack().unwrap(), written);
            }
        }
    }
}

#[test]
fn metadata_become_a_value_and_come_back() {
    for peer in ALL {
        let metadata = read(peer.bytes);
        let value = metadata.to_value().unwrap();
        assert_eq!(Metadata::from_value(&value).unwrap(), metadata);
    }
    assert_eq!(Metadata::from_value(&Value::Nil).unwrap_err().code(), "ac-metadata-type");
}

#[test]
#[cfg(feature = "serde_json")]
fn json_becomes_a_value() {
    let json = json!({"a": [null, true, -1, u64::MAX, 0.5, "x"], "b": {"c": {}}});
    assert_eq!(Value::from(json.clone()), from_json(&json));
}
