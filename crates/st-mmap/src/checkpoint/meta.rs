//! `meta.json`: the step and its metadata.

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;

use json_scan::{Escape, Writer};
use serde_json::Value;

use super::{CheckpointData, json};
use crate::error::ErrorKind;

pub(super) const NAME: &str = "meta.json";

/// Longest that is read.
pub(super) const MAX_LEN: u64 = 4 << 20;

/// Longest name of a part.
const MAX_PART: usize = 64;

/// Ending of the files of tensors.
pub(super) const TENSORS: &str = ".safetensors";

/// Version of the format of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormatVersion {
    /// Readers accept one.
    pub major: u32,
    /// Readers accept all.
    pub minor: u32,
}

impl FormatVersion {
    /// The version that is written.
    pub const CURRENT: Self = Self { major: 1, minor: 1 };

    /// That of checkpoints without a version.
    const FIRST: Self = Self { major: 1, minor: 0 };

    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        let number = |text: &str| text.parse().ok().filter(|number: &u32| number.to_string() == text);
        Some(Self { major: number(major)?, minor: number(minor)? })
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The description of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    step: u64,
    metrics: BTreeMap<String, f64>,
    model_class: Option<String>,
    optimizer_class: Option<String>,
    format_version: FormatVersion,
    framework: Option<String>,
    parts: Vec<String>,
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

    /// Version of the checkpoint's format.
    #[must_use]
    pub const fn format_version(&self) -> FormatVersion {
        self.format_version
    }

    /// What wrote the state.
    #[must_use]
    pub fn framework(&self) -> Option<&str> {
        self.framework.as_deref()
    }

    /// Names of the tensor files besides model and optimizer, in the order of the file.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.parts
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
    out.key("format_version").string(&FormatVersion::CURRENT.to_string());
    if !data.framework.is_empty() {
        out.key("framework").string(data.framework);
    }
    if !data.parts.is_empty() {
        let mut names: Vec<&str> = data.parts.iter().map(|part| part.name).collect();
        names.sort_unstable();
        out.key("parts").begin_array();
        for name in names {
            out.string(name);
        }
        out.end_array();
    }
    out.end_object();
    out.finish()
}

/// Whether a part may have this name.
pub(super) fn is_part(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    name.len() <= MAX_PART
        && name.bytes().all(plain)
        && name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && !matches!(name, "model" | "optimizer")
}

pub(super) fn parse(bytes: Vec<u8>) -> Result<Meta, ErrorKind> {
    let bad = |problem| ErrorKind::BadMeta { problem };
    let text = String::from_utf8(bytes).map_err(|_| bad("not UTF-8"))?;
    let value = json::parse(&text).map_err(|_| bad("not JSON"))?;
    let object = value.as_object().ok_or_else(|| bad("not an object"))?;
    let text_of = |member: &str, problem| match object.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(bad(problem)),
    };
    // Before anything else: the other members may mean something else in another version.
    let format_version = match text_of("format_version", "`format_version` is not a string")? {
        None => FormatVersion::FIRST,
        Some(version) => {
            FormatVersion::parse(&version).ok_or_else(|| bad("`format_version` is not MAJOR.MINOR"))?
        }
    };
    if format_version.major != FormatVersion::CURRENT.major {
        return Err(ErrorKind::UnknownVersion { found: format_version });
    }
    let step = object.get("step").and_then(Value::as_u64).ok_or_else(|| bad("`step` is not a step"))?;
    let metrics = match object.get("metrics") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(Value::Object(metrics)) => {
            metrics.iter().filter_map(|(name, value)| Some((name.clone(), json::number(value)?))).collect()
        }
        Some(_) => return Err(bad("`metrics` is not an object")),
    };
    let parts = match object.get("parts") {
        None | Some(Value::Null) => Vec::new(),
        Some(parts) => parts_of(parts).ok_or_else(|| bad("`parts` is not a list of different names"))?,
    };
    Ok(Meta {
        step,
        metrics,
        model_class: text_of("model_class", "`model_class` is not a string")?,
        optimizer_class: text_of("optimizer_class", "`optimizer_class` is not a string")?,
        format_version,
        framework: text_of("framework", "`framework` is not a string")?,
        parts,
        json: text,
    })
}

fn parts_of(value: &Value) -> Option<Vec<String>> {
    let names: Option<Vec<&str>> = value.as_array()?.iter().map(Value::as_str).collect();
    let names = names?;
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    let is_valid = distinct.len() == names.len() && names.iter().all(|name| is_part(name));
    is_valid.then(|| names.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::super::PartData;
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
  "optimizer_class": "Adam",
  "format_version": "1.1"
}"#
        );
        let meta = parse(text.clone().into_bytes()).unwrap();
        assert_eq!((meta.step(), meta.metrics(), meta.json()), (100, &data.metrics, text.as_str()));
        assert_eq!((meta.model_class(), meta.optimizer_class()), (Some("Linear"), Some("Adam")));
    }

    #[test]
    fn framework_and_parts_follow_the_version() {
        let part = |name| PartData { name, tensors: &[], metadata: None };
        let parts = [part("training"), part("ema.0-999")];
        let data = CheckpointData { framework: "torch", parts: &parts, ..CheckpointData::default() };
        let text = render(&data);
        let end = r#"  "format_version": "1.1",
  "framework": "torch",
  "parts": [
    "ema.0-999",
    "training"
  ]
}"#;
        assert!(text.ends_with(end), "{text}");
        let meta = parse(text.into_bytes()).unwrap();
        assert_eq!(
            (meta.framework(), meta.parts()),
            (Some("torch"), &["ema.0-999".to_owned(), "training".to_owned()][..])
        );
        assert_eq!(meta.format_version(), FormatVersion::CURRENT);
    }

    #[test]
    fn minor_versions_are_read_and_major_ones_refused() {
        let read =
            |version: &str| parse(format!("{{\"step\": 1, \"format_version\": {version}}}").into_bytes());
        for (version, minor) in [("null", 0), ("\"1.0\"", 0), ("\"1.1\"", 1), ("\"1.4294967295\"", u32::MAX)]
        {
            assert_eq!(
                read(version).unwrap().format_version(),
                FormatVersion { major: 1, minor },
                "{version}"
            );
        }
        for (version, major) in [("\"2.0\"", 2), ("\"0.9\"", 0)] {
            let refused = read(version);
            assert!(
                matches!(refused, Err(ErrorKind::UnknownVersion { found }) if found.major == major),
                "{version} {refused:?}"
            );
        }
        for version in
            ["1.1", "2", "\"1\"", "\"1.\"", "\"01.1\"", "\"1.1.1\"", "\"+1.0\"", "\"1.4294967296\"", "\"\""]
        {
            assert!(matches!(read(version), Err(ErrorKind::BadMeta { .. })), "{version}");
        }
        // Whatever else a later version means by its members.
        let later = parse(b"{\"format_version\": \"2.0\", \"step\": \"a name\"}".to_vec());
        assert!(matches!(later, Err(ErrorKind::UnknownVersion { .. })));
    }

    #[test]
    fn names_of_parts_are_plain_and_different() {
        for name in ["ema", "training", "a", "0", "ema.0.999", "A_b-c"] {
            assert!(is_part(name), "{name}");
        }
        let long = "a".repeat(65);
        for name in ["", "model", "optimizer", ".hidden", "-a", "a/b", "..", "a b", "ä", &long] {
            assert!(!is_part(name), "{name}");
        }
        for parts in ["\"ema\"", "[1]", "[\"model\"]", "[\"ema\", \"ema\"]", "[\"../x\"]"] {
            let text = format!("{{\"step\": 1, \"parts\": {parts}}}");
            assert!(matches!(parse(text.into_bytes()), Err(ErrorKind::BadMeta { .. })), "{parts}");
        }
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
