//! Metadata that are refused, and why.

use apr_container::{Error, ErrorKind, Limits, Metadata, Strictness, Subject, Value};
use serde_json::{Value as Json, json};

use crate::peer_metadata::{ALL, DISTILLED, EVERY_VALUE};

fn strict(bytes: &[u8]) -> Result<Metadata, Error> {
    Metadata::from_msgpack(bytes, Strictness::Strict, &Limits::DEFAULT)
}

fn compat(bytes: &[u8]) -> Result<Metadata, Error> {
    Metadata::from_msgpack(bytes, Strictness::Compat, &Limits::DEFAULT)
}

#[track_caller]
fn assert_refused(result: Result<Metadata, Error>, code: &str, name: Option<&str>, at: Option<u64>) {
    let error = result.unwrap_err();
    assert_eq!(
        (error.code(), error.subject().map(Subject::name), error.offset()),
        (code, name, at),
        "{error}"
    );
}

#[test]
fn metadata_that_end_early_are_refused_at_every_length() {
    for peer in ALL {
        for len in 0..peer.bytes.len() {
            for read in [strict, compat] {
                let error = read(&peer.bytes[..len]).unwrap_err();
                assert!(matches!(error.code(), "ac-truncated" | "ac-count"), "{len}: {error}");
                assert!(error.offset().is_some_and(|at| at <= len as u64), "{len}: {error}");
            }
        }
    }
}

#[test]
fn any_changed_byte_gives_metadata_or_an_error() {
    for peer in ALL {
        let mut bytes = peer.bytes.to_vec();
        for idx in 0..bytes.len() {
            let original = bytes[idx];
            for change in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF, original, original ^ 0xC1] {
                bytes[idx] = original ^ change;
                for read in [strict, compat] {
                    match read(&bytes) {
                        Ok(metadata) => {
                            let written = metadata.to_msgpack().unwrap();
                            assert_eq!(strict(&written).unwrap().to_msgpack().unwrap(), written);
                        }
                        Err(error) => {
                            assert!(error.offset().is_some_and(|at| at <= bytes.len() as u64), "{error}");
                        }
                    }
                }
            }
            bytes[idx] = original;
        }
    }
}

#[test]
fn hostile_metadata_get_their_verdict() {
    // A map of 2^32 - 1 entries.
    assert_refused(strict(b"\xdf\xff\xff\xff\xff"), "ac-count", None, Some(0));
    // A hundred thousand lists within each other.
    let mut nested = b"\x83\xaacreated_at\xa10\xb0aprender_version\xa10\xa4deep".to_vec();
    let start = nested.len() as u64;
    nested.resize(nested.len() + 100_000, 0x91);
    nested.push(0xC0);
    let error = compat(&nested).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { limit: 64, .. }), "{error}");
    assert_eq!(error.offset(), Some(start + 63));
    assert!(error.subject().map(Subject::name).is_some_and(|name| name.starts_with("deep.0.0.0")), "{error}");
    // Fields in order: some readers tolerate it, no writer does it.
    assert_refused(strict(b"\x92\xa10\xa11"), "ac-metadata-type", None, Some(0));
    assert_eq!(compat(b"\x92\xa10\xa11").unwrap().aprender_version, "1");
    assert_refused(compat(b"\x91\xa10"), "ac-metadata-missing", Some("aprender_version"), Some(0));
    let one_too_many = [&b"\x9d\xa10\xa11"[..], &[0xC0; 3], &[0x80; 3], &[0xC0; 5]].concat();
    assert_refused(compat(&one_too_many), "ac-value", None, Some(0));
    // An unknown key, and two bytes after the end.
    let trailing = b"\x83\xaacreated_at\xa10\xb0aprender_version\xa10\xa3zzz\x01\xc0\xc0";
    assert_refused(strict(trailing), "ac-metadata-trailing", None, Some(38));
    assert_eq!(compat(trailing).unwrap().extra["zzz"], Value::Int(1));
    // Nothing at all.
    assert_refused(compat(b""), "ac-truncated", None, Some(0));
}

/// As the other implementation writes the required keys and these.
fn with(json: &Json) -> Vec<u8> {
    let mut all = json!({"created_at": "0", "aprender_version": "0"});
    for (key, value) in json.as_object().unwrap() {
        all[key] = value.clone();
    }
    rmp_serde::to_vec_named(&all).unwrap()
}

#[test]
fn a_field_of_the_wrong_type_is_named_with_its_path() {
    let teacher = json!({"hash": "h", "model_type": "m", "param_count": 1});
    let params = json!({"temperature": 1.0, "alpha": 1.0, "epochs": 1});
    let info = |teacher: &Json, params: &Json| json!({"distillation_info": {"method": "Standard", "teacher": teacher, "params": params}});
    let change = |json: &Json, key: &str, value: Json| {
        let mut json = json.clone();
        json[key] = value;
        json
    };
    for (json, code, name) in [
        (json!({"created_at": 5}), "ac-metadata-type", "created_at"),
        (json!({"created_at": null}), "ac-metadata-type", "created_at"),
        (json!({"training": 5}), "ac-metadata-type", "training"),
        (json!({"training": {"samples": "many"}}), "ac-metadata-type", "training.samples"),
        (json!({"training": {"samples": -1}}), "ac-value", "training.samples"),
        (json!({"training": {"duration_ms": 1.5}}), "ac-metadata-type", "training.duration_ms"),
        (json!({"custom": null}), "ac-metadata-type", "custom"),
        (json!({"custom": [1]}), "ac-metadata-type", "custom"),
        (json!({"license": {"uuid": "", "hash": ""}}), "ac-metadata-missing", "license.tier"),
        (json!({"license": {"uuid": "", "hash": "", "tier": 3}}), "ac-metadata-type", "license.tier"),
        (
            json!({"license": {"uuid": "", "hash": "", "tier": "Team", "seats": 4_294_967_296_u64}}),
            "ac-value",
            "license.seats",
        ),
        (
            info(&change(&teacher, "hash", json!([])), &params),
            "ac-metadata-type",
            "distillation_info.teacher.hash",
        ),
        (
            info(&change(&teacher, "ensemble_teachers", json!([teacher, {"hash": true}])), &params),
            "ac-metadata-type",
            "distillation_info.teacher.ensemble_teachers.1.hash",
        ),
        (
            info(&teacher, &change(&params, "alpha", json!("high"))),
            "ac-metadata-type",
            "distillation_info.params.alpha",
        ),
        (
            info(&teacher, &change(&params, "alpha", json!(1e300))),
            "ac-value",
            "distillation_info.params.alpha",
        ),
        (json!({"model_card": {"model_id": ""}}), "ac-metadata-missing", "model_card.name"),
    ] {
        for read in [strict, compat] {
            let error = read(&with(&json)).unwrap_err();
            assert_eq!((error.code(), error.subject().map(Subject::name)), (code, Some(name)), "{error}");
            assert!(error.offset().is_some());
        }
    }
}

#[test]
fn errors_read_well() {
    let error = strict(&with(&json!({"training": {"samples": "many"}}))).unwrap_err();
    assert!(
        error.to_string().contains("expected integer, found text, key \"training.samples\", at byte "),
        "{error}"
    );
}

#[test]
fn a_key_that_appears_twice_is_refused_at_every_level() {
    let twice = b"\x83\xaacreated_at\xa10\xb0aprender_version\xa10\xaacreated_at\xa11";
    assert_refused(compat(twice), "ac-metadata-duplicate", Some("created_at"), Some(33));
    let twice = b"\x84\xaacreated_at\xa10\xb0aprender_version\xa10\xa1x\x01\xa1x\x01";
    assert_refused(compat(twice), "ac-metadata-duplicate", Some("x"), Some(36));
    let nested = b"\x83\xaacreated_at\xa10\xb0aprender_version\xa10\xa6custom\x82\xa1x\x01\xd9\x01x\x01";
    assert_refused(compat(nested), "ac-metadata-duplicate", Some("custom.x"), Some(44));
}

#[test]
fn text_must_be_text() {
    let invalid = b"\x82\xaacreated_at\xa10\xb0aprender_version\xa3a\xffb";
    assert_refused(compat(invalid), "ac-utf8", Some("aprender_version"), Some(33));
    let bytes = b"\x82\xaacreated_at\xc4\x010\xb0aprender_version\xa10";
    assert_refused(strict(bytes), "ac-metadata-type", Some("created_at"), Some(12));
    assert_eq!(compat(bytes).unwrap().created_at, "0");
    let number_as_key = b"\x83\xaacreated_at\xa10\xb0aprender_version\xa10\x01\x01";
    assert_refused(compat(number_as_key), "ac-metadata-type", None, Some(33));
}

#[test]
fn limits_are_the_callers() {
    let read = |limits: Limits| Metadata::from_msgpack(EVERY_VALUE.bytes, Strictness::Strict, &limits);
    let len = EVERY_VALUE.bytes.len() as u64;
    assert!(read(Limits { metadata_bytes: len, ..Limits::DEFAULT }).is_ok());
    let error = read(Limits { metadata_bytes: len - 1, ..Limits::DEFAULT }).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { found, .. } if *found == len), "{error}");
    assert!(read(Limits { metadata_depth: 4, ..Limits::DEFAULT }).is_ok());
    assert_refused(
        read(Limits { metadata_depth: 3, ..Limits::DEFAULT }),
        "ac-limit",
        Some("hyperparameters.list.4"),
        Some(279),
    );
    assert_eq!(
        read(Limits { metadata_memory: 0, ..Limits::DEFAULT }).unwrap_err().code(),
        "ac-metadata-dense"
    );
}

#[test]
fn very_many_small_values_are_refused_in_either_direction() {
    let mut metadata = strict(DISTILLED.bytes).unwrap();
    for idx in 0..20_000 {
        metadata.metrics.insert(format!("{idx}"), Value::Nil);
    }
    assert_refused(
        Ok(metadata.clone()).and_then(|m| m.to_msgpack().map(|_| m)),
        "ac-metadata-dense",
        None,
        None,
    );
    let limits = Limits { metadata_memory: 1 << 24, ..Limits::DEFAULT };
    let bytes = metadata.to_msgpack_with(&limits).unwrap();
    assert_eq!(strict(&bytes).unwrap_err().code(), "ac-metadata-dense");
    assert_eq!(Metadata::from_msgpack(&bytes, Strictness::Strict, &limits).unwrap(), metadata);
}

#[test]
fn an_unknown_key_cannot_shadow_a_field() {
    let mut metadata = strict(DISTILLED.bytes).unwrap();
    metadata.extra.insert("license".into(), Value::Nil);
    assert_refused(
        Ok(metadata.clone()).and_then(|m| m.to_msgpack().map(|_| m)),
        "ac-metadata-duplicate",
        Some("license"),
        None,
    );
    metadata.extra.clear();
    metadata.distillation_info.as_mut().unwrap().teacher.extra.insert("hash".into(), Value::Nil);
    let error = metadata.to_msgpack().unwrap_err();
    assert_eq!(
        (error.code(), error.subject().map(Subject::name)),
        ("ac-metadata-duplicate", Some("distillation_info.teacher.hash"))
    );
}

#[test]
fn deep_teachers_are_bounded() {
    let mut metadata = strict(DISTILLED.bytes).unwrap();
    for depth in 0.. {
        let info = metadata.distillation_info.as_mut().unwrap();
        info.teacher.ensemble_teachers = vec![info.teacher.clone()];
        match metadata.to_msgpack() {
            Ok(bytes) => assert_eq!(strict(&bytes).unwrap(), metadata),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Limit { limit: 64, .. }), "{error}");
                // The metadata, the distillation, then a teacher and a list for each level.
                assert_eq!(depth, 30);
                break;
            }
        }
    }
}
