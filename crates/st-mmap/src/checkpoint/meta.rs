//! `meta.json`: the step and its metadata.

use alloc::collections::BTreeMap;

use json_scan::{Escape, Writer};
use serde_json::Value;

use super::{CheckpointData, json};
use crate::error::ErrorKind;

pub(super) const NAME: &str = "meta.json";

/// Longest that is read.
pub(super) const MAX_LEN: u64 = 4 << 20;

/// The description of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    step: u64,
    metrics: BTreeMap<String, f64>,
    model_class: Option<String>,
    optimizer_class: Option<String>,
    json: String,
}

impl Meta {
    /// The step.
    #[must_use]
    pub const fn step(&self) -> u64 {
        self.step
    }

    /// Metrics that are numbers, NaN and infinities included. Others are only in [`json`](Self::json).
    #[must_use]
    pub const fn metrics(&self) -> &BTreeMap<String, f64> {
        &self.metrics
    }

    /// Name of the model's type.
    #[must_use]
    pub fn model_class(&self) -> Option<&str> {
        self.model_class.as_deref()
    }

    /// Name of the optimizer's type.
    #[must_use]
    pub fn optimizer_class(&self) -> Option<&str> {
        self.optimizer_class.as_deref()
    }

    /// The text of the file.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }
}

pub(super) fn render(data: &CheckpointData<'_>) -> String {
    let mut out = Writer::indented(Escape::Minimal);
    out.begin_object();
    out.key("step").plain(data.step);
    out.key("metrics").begin_object();
    for (name, value) in &data.metrics {
        out.key(name);
        json::push_number(&mut out, *value);
    }
    out.end_object();
    out.key("model_class").string(data.model_class);
    out.key("optimizer_class").string(data.optimizer_class);
    out.end_object();
    out.finish()
}

pub(super) fn parse(bytes: Vec<u8>) -> Result<Meta, ErrorKind> {
    let bad = |problem| ErrorKind::BadMeta { problem };
    let text = String::from_utf8(bytes).map_err(|_| bad("not UTF-8"))?;
    let value = json::parse(&text).map_err(|_| bad("not JSON"))?;
    let object = value.as_object().ok_or_else(|| bad("not an object"))?;
    let step = object.get("step").and_then(Value::as_u64).ok_or_else(|| bad("`step` is not a step"))?;
    let metrics = match object.get("metrics") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(Value::Object(metrics)) => {
            metrics.iter().filter_map(|(name, value)| Some((name.clone(), json::number(value)?))).collect()
        }
        Some(_) => return Err(bad("`metrics` is not an object")),
    };
    let class = |member: &str, problem| match object.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(class)) => Ok(Some(class.clone())),
        Some(_) => Err(bad(problem)),
    };
    Ok(Meta {
        step,
        metrics,
        model_class: class("model_class", "`model_class` is not a string")?,
        optimizer_class: class("optimizer_class", "`optimizer_class` is not a string")?,
        json: text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_the_documented_one() {
        let data = CheckpointData {
            step: 100,
            metrics: BTreeMap::from([("loss".into(), 0.125), ("accuracy".into(), 0.91)]),
            model_class: "Linear",
            optimizer_class: "Adam",
            ..CheckpointData::default()
        };
        let text = render(&data);
        assert_eq!(
            text,
            r#"{
  "step": 100,
  "metrics": {
    "accuracy": 0.91,
    "loss": 0.125
  },
  "model_class": "Linear",
  "optimizer_class": "Adam"
}"#
        );
        let meta = parse(text.clone().into_bytes()).unwrap();
        assert_eq!((meta.step(), meta.metrics(), meta.json()), (100, &data.metrics, text.as_str()));
        assert_eq!((meta.model_class(), meta.optimizer_class()), (Some("Linear"), Some("Adam")));
    }

    #[test]
    fn empty_and_hostile_names_survive() {
        let data = CheckpointData {
            metrics: BTreeMap::from([("\"\n".into(), f64::NAN)]),
            model_class: "a\\\"b",
            ..CheckpointData::default()
        };
        let meta = parse(render(&data).into_bytes()).unwrap();
        assert!(meta.metrics()["\"\n"].is_nan());
        assert_eq!((meta.model_class(), meta.optimizer_class()), (Some("a\\\"b"), Some("")));
        let meta = parse(render(&CheckpointData::default()).into_bytes()).unwrap();
        assert_eq!((meta.step(), meta.metrics().len()), (0, 0));
    }

    #[test]
    fn foreign_members_are_kept_as_text() {
        let text = br#"{"step": 7, "metrics": {"loss": NaN, "best": true, "history": [1, 2]}, "host": "x"}"#;
        let meta = parse(text.to_vec()).unwrap();
        assert_eq!(meta.metrics().keys().collect::<Vec<_>>(), ["loss"]);
        assert!(meta.json().contains("\"host\"") && meta.model_class().is_none());
    }

    #[test]
    fn wrong_types_are_refused() {
        for text in [
            "",
            "[]",
            "{}",
            "{\"step\": -1}",
            "{\"step\": 1.5}",
            "{\"step\": \"1\"}",
            "{\"step\": 18446744073709551616}",
            "{\"step\": 1, \"metrics\": []}",
            "{\"step\": 1, \"model_class\": 5}",
            "{\"step\": 1, \"optimizer_class\": {}}",
            "{\"step\": 1} x",
        ] {
            assert!(matches!(parse(text.into()), Err(ErrorKind::BadMeta { .. })), "{text}");
        }
        assert!(parse(vec![0xFF]).is_err());
        assert!(parse(vec![b'['; 100_000]).is_err(), "deep nesting is an error, not a stack overflow");
    }
}
