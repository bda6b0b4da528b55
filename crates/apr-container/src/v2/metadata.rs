//! The JSON object between header and index.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use json_scan::{Escape, Writer};

use located_error::Subject;

use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::map::Map;
use crate::v2;
use crate::v2::json::{self, Json, Member};

mod sharding;

pub use sharding::Sharding;

/// The metadata of a model.
///
/// Strings and counts that the format defines have a field; all other members, including the dimensions of a transformer, are in
/// [`other`](Self::other) as JSON text and are written back unchanged.
///
/// Members that the format defines are written in the format's order and the others by key, so that equal metadata give equal
/// bytes; `license`, `data_source` and `data_license` are written even when there is none, as `null`.
///
/// ```
/// use apr_container::ReadOptions;
/// use apr_container::v2::{Json, Metadata};
///
/// let mut metadata = Metadata::new("llama");
/// metadata.license = Some("MIT".into());
/// metadata.other.insert("hidden_size".into(), Json::from(64));
/// let text = metadata.to_json();
/// assert_eq!(
///     text,
///     r#"{"model_type":"llama","license":"MIT","data_source":null,"data_license":null,"total_size":0,"param_count":0,"hidden_size":64}"#
/// );
/// let again = Metadata::from_json(text.as_bytes(), &ReadOptions::STRICT)?;
/// assert_eq!(again.other["hidden_size"].as_u64(), Some(64));
/// assert_eq!(again, metadata);
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Model family, as the writer names it.
    pub model_type: String,
    /// Name.
    pub name: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Author or organization.
    pub author: Option<String>,
    /// License of the weights, as an SPDX identifier.
    pub license: Option<String>,
    /// Where the training data came from.
    pub data_source: Option<String>,
    /// License of the training data, as an SPDX identifier.
    pub data_license: Option<String>,
    /// Version of the model.
    pub version: Option<String>,
    /// Where the file was converted from.
    pub source: Option<String>,
    /// Format it was converted from.
    pub original_format: Option<String>,
    /// Time of creation, as ISO 8601.
    pub created_at: Option<String>,
    /// Bytes of the model; writers in circulation leave it 0.
    pub total_size: u64,
    /// Number of parameters.
    pub param_count: u64,
    /// Which of several files this is.
    pub sharding: Option<Sharding>,
    /// Architecture of a transformer.
    pub architecture: Option<String>,
    /// Every other member, by key.
    pub other: Map<Json>,
}

/// The keys the format knows, in the order in which they are written.
const ORDER: &[&str] = &[
    "model_type",
    "name",
    "description",
    "author",
    "license",
    "data_source",
    "data_license",
    "version",
    "source",
    "original_format",
    "created_at",
    "total_size",
    "param_count",
    "quantization",
    "sharding",
    "chat_template",
    "chat_format",
    "special_tokens",
    "architecture",
    "hf_architecture",
    "hf_model_type",
    "hidden_size",
    "num_layers",
    "num_heads",
    "num_kv_heads",
    "vocab_size",
    "intermediate_size",
    "max_position_embeddings",
    "rope_theta",
    "rope_type",
    "rms_norm_eps",
    "head_dim",
    "num_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
];

/// Declares which of them have a field of type `Option<String>`.
macro_rules! text_fields {
    ($($field:ident)*) => {
        impl Metadata {
            fn text_field_mut(&mut self, key: &str) -> Option<&mut Option<String>> {
                match key {
                    $(stringify!($field) => Some(&mut self.$field),)*
                    _ => None,
                }
            }

            fn text_field(&self, key: &str) -> Option<&str> {
                match key {
                    $(stringify!($field) => self.$field.as_deref(),)*
                    _ => None,
                }
            }
        }
    };
}

text_fields! {
    name description author license data_source data_license version source original_format created_at architecture
}

/// Memory of a member that is kept as JSON, beyond its key and value: two pointers with lengths, a share of a tree node, and the
/// overhead of the allocator.
const MEMBER_COST: u64 = 128;

/// A member that has a field: its bit among the fields of the object, and whether the value has the field's type.
struct Known {
    bit: u32,
    read: Result<(), Error>,
}

/// Members of an object that are kept as JSON.
#[derive(Default)]
struct Others {
    /// Those without a field.
    unknown: Map<Json>,
    /// Those whose value does not have the type of their field.
    unsuited: Vec<(String, Json)>,
    /// A bit for each field that was read.
    seen: u64,
}

impl Others {
    fn finish(self) -> Map<Json> {
        let mut all = self.unknown;
        for (key, json) in self.unsuited {
            all.insert(key, json);
        }
        all
    }
}

/// State of reading one object.
struct Reading<'o> {
    options: &'o ReadOptions,
    spent: u64,
    allowed: u64,
}

impl Reading<'_> {
    fn spend(&mut self, len: usize) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(len as u64).saturating_add(MEMBER_COST);
        match self.spent > self.allowed {
            true => Err(ErrorKind::MetadataTooDense { needed: self.spent, allowed: self.allowed }.into()),
            false => Ok(()),
        }
    }

    /// Keeps a member that has no field, or whose value does not have the type of its field.
    fn member(
        &mut self,
        others: &mut Others,
        known: Option<Known>,
        Member { key, value, at, .. }: Member<'_, '_>,
    ) -> Result<(), Error> {
        let located = |error: Error| error.moved_to(at as u64).about(Subject::key(key));
        self.spend(key.len() + value.len()).map_err(located)?;
        let again = match known {
            Some(Known { bit, read }) => {
                let again = others.seen & (1 << bit) != 0;
                others.seen |= 1 << bit;
                others.unsuited.retain(|(other, _)| other != key);
                match read {
                    Ok(()) => {}
                    Err(error) if self.options.is_strict() => return Err(located(error)),
                    // Kept as it is: a rewrite does not lose it.
                    Err(_) => others.unsuited.push((key.to_owned(), Json::known(value))),
                }
                again
            }
            None => others.unknown.insert(key.to_owned(), Json::known(value)).is_some(),
        };
        // Some trainers wrote a key twice; readers in circulation take the last.
        if again && self.options.is_strict() {
            Err(located(v2::ErrorKind::DuplicateKey.into()))
        } else {
            Ok(())
        }
    }
}

impl Metadata {
    /// Metadata of a model of this family and nothing else.
    #[must_use]
    pub fn new(model_type: &str) -> Self {
        Self { model_type: model_type.to_owned(), ..Self::default() }
    }

    /// Reads a JSON object.
    ///
    /// Memory taken is bounded by [`Limits::metadata_memory`](crate::Limits::metadata_memory) and the length of the text.
    ///
    /// # Errors
    ///
    /// With the offset in the text: [`ErrorKind::Limit`] for its length and its depth, [`ErrorKind::InvalidUtf8`],
    /// [`v2::ErrorKind::JsonSyntax`], [`v2::ErrorKind::JsonType`] if it is no object, [`ErrorKind::MetadataTooDense`]; strict also
    /// [`v2::ErrorKind::DuplicateKey`] and [`v2::ErrorKind::JsonType`] for a member of the wrong type. With
    /// [`Compat`](crate::Strictness::Compat) the last of two equal keys counts, and a member of the wrong type is kept among
    /// the others.
    pub fn from_json(text: &[u8], options: &ReadOptions) -> Result<Self, Error> {
        let (found, limit) = (text.len() as u64, options.limits.metadata_bytes);
        if found > limit {
            return Err(ErrorKind::Limit { what: "length of the metadata", found, limit }.into());
        }
        let (text, begin) = sound_text(text, options)?;
        let allowed = options.limits.metadata_memory.saturating_add(3 * text.len() as u64);
        let mut reading = Reading { options, spent: 0, allowed };
        let mut metadata = Self::default();
        let mut others = Others::default();
        json::members(text, |member| {
            let known = metadata.read(member, &mut reading)?;
            reading.member(&mut others, known, member)
        })
        .map_err(|error| error.shifted(begin))?;
        metadata.other = others.finish();
        Ok(metadata)
    }

    /// Reads a member that has a field; `None` if it has not. The field is left alone if the value is of another type.
    fn read(
        &mut self,
        Member { key, value, value_at, .. }: Member<'_, '_>,
        reading: &mut Reading<'_>,
    ) -> Result<Option<Known>, Error> {
        let read = match key {
            "model_type" => text(value).map(|text| self.model_type = text),
            "total_size" => number(value).map(|number| self.total_size = number),
            "param_count" => number(value).map(|number| self.param_count = number),
            "sharding" => match Sharding::read(value, reading) {
                Ok(sharding) => {
                    self.sharding = sharding;
                    Ok(())
                }
                Err(error) if error.code() == "ac-metadata-dense" => return Err(error),
                Err(error) if reading.options.is_strict() => return Err(error.shifted(value_at as u64)),
                Err(_) => Err(v2::ErrorKind::JsonType { expected: "an object" }.into()),
            },
            _ => match self.text_field_mut(key) {
                Some(field) => optional_text(value).map(|text| *field = text),
                None => return Ok(None),
            },
        };
        let bit = ORDER.iter().position(|known| *known == key).unwrap_or_default() as u32;
        Ok(Some(Known { bit, read }))
    }

    /// The metadata as compact JSON. Where a field and [`other`](Self::other) both have a value for a key, the one among the
    /// others is written.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Writer::compact(Escape::Minimal);
        out.begin_object();
        for &key in ORDER {
            if let Some(json) = self.other.get(key) {
                out.key(key).plain(json);
                continue;
            }
            match (key, self.text_field(key)) {
                ("model_type", _) => write_text(&mut out, key, Some(&self.model_type)),
                ("total_size", _) => write_number(&mut out, key, self.total_size),
                ("param_count", _) => write_number(&mut out, key, self.param_count),
                ("sharding", _) => {
                    if let Some(sharding) = &self.sharding {
                        out.key(key);
                        sharding.write(&mut out);
                    }
                }
                ("license" | "data_source" | "data_license", text) => write_text(&mut out, key, text),
                (_, None) => {}
                (_, text) => write_text(&mut out, key, text),
            }
        }
        for (key, json) in &self.other {
            if !ORDER.contains(&key.as_str()) {
                out.key(key).plain(json);
            }
        }
        out.end_object();
        out.finish()
    }
}

fn write_text(out: &mut Writer, key: &str, text: Option<&str>) {
    out.key(key);
    match text {
        Some(text) => out.string(text),
        None => out.null(),
    };
}

fn write_number(out: &mut Writer, key: &str, number: u64) {
    out.key(key).plain(number);
}

/// The one JSON value in bytes and where it begins, if its depth is within the limit.
pub(crate) fn sound_text<'t>(bytes: &'t [u8], options: &ReadOptions) -> Result<(&'t str, u64), Error> {
    let text =
        core::str::from_utf8(bytes).map_err(|error| ErrorKind::InvalidUtf8.at(error.valid_up_to() as u64))?;
    let begin = text.len() - text.trim_ascii_start().len();
    let (text, depth) = json::check(text)?;
    let max_depth = options.limits.metadata_depth;
    if depth > max_depth {
        let (what, found, limit) = ("depth of the metadata", depth as u64, max_depth as u64);
        return Err(ErrorKind::Limit { what, found, limit }.into());
    }
    Ok((text, begin as u64))
}

pub(crate) fn text(value: &str) -> Result<String, Error> {
    let text = json_scan::unescape(value).ok_or(v2::ErrorKind::JsonType { expected: "a string" })?;
    Ok(text.into_owned())
}

fn optional_text(value: &str) -> Result<Option<String>, Error> {
    if value == "null" { Ok(None) } else { text(value).map(Some) }
}

pub(crate) fn number(value: &str) -> Result<u64, Error> {
    value.parse().map_err(|_| v2::ErrorKind::JsonType { expected: "an integer from 0 to 2^64 - 1" }.into())
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::*;
    use crate::limits::Limits;

    const FULL: &str = concat!(
        r#"{"model_type":"shard","name":"tiny","license":"MIT","data_source":null,"data_license":null,"#,
        r#""created_at":"2026-01-01T00:00:00Z","total_size":0,"param_count":300,"quantization":{"bits":4},"#,
        r#""sharding":{"shard_count":2,"shard_index":1,"total_size":0,"pattern":null},"#,
        r#""hidden_size":8,"rope_theta":10000.0,"moe_intermediate_size":1e3,"a":[ 1 ],"my_key":{"x":[1,2]}}"#,
    );

    fn read(text: &str) -> Result<Metadata, Error> {
        Metadata::from_json(text.as_bytes(), &ReadOptions::STRICT)
    }

    fn refusal(text: &str) -> (&'static str, Option<u64>, Option<String>) {
        let error = read(text).unwrap_err();
        (error.code(), error.offset(), error.subject().map(Subject::name).map(String::from))
    }

    #[test]
    fn what_is_read_is_written_byte_for_byte() {
        let metadata = read(FULL).unwrap();
        assert_eq!(metadata.to_json(), FULL);
        assert_eq!((metadata.name.as_deref(), metadata.param_count), (Some("tiny"), 300));
        let sharding = metadata.sharding.as_ref().unwrap();
        assert_eq!((sharding.shard_count, sharding.shard_index), (2, 1));
        let keys: Vec<_> = metadata.other.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["a", "hidden_size", "moe_intermediate_size", "my_key", "quantization", "rope_theta"]
        );
    }

    #[test]
    fn absent_members_have_defaults_and_required_ones_are_written() {
        let metadata = read("{}").unwrap();
        assert_eq!(metadata, Metadata::default());
        let text = metadata.to_json();
        assert!(text.contains(r#""model_type":"","license":null,"#) && !text.contains("name"));
        assert_eq!(read(r#" {"name":null,"sharding":null} "#).unwrap(), metadata);
    }

    #[test]
    fn refusals_have_place_and_key() {
        let at = |at, key: &str| (Some(at), Some(String::from(key)));
        let cases = [
            (r#" {"name":1}"#, "ac-v2-json-type", at(2, "name")),
            (r#"{"total_size":-1}"#, "ac-v2-json-type", at(1, "total_size")),
            (r#"{"total_size":1.0}"#, "ac-v2-json-type", at(1, "total_size")),
            (r#"{"param_count":18446744073709551616}"#, "ac-v2-json-type", at(1, "param_count")),
            (r#"{"model_type":null}"#, "ac-v2-json-type", at(1, "model_type")),
            (r#"{"x":1,"x":1}"#, "ac-v2-duplicate-key", at(7, "x")),
            (r#"{"name":"a","n\u0061me":"a"}"#, "ac-v2-duplicate-key", at(12, "name")),
            (r#"{"sharding":{"shard_count":"2"}}"#, "ac-v2-json-type", at(13, "shard_count")),
            (r#"{"sharding":{"shard_count":2}}"#, "ac-v2-missing-key", (Some(12), None)),
            ("[]", "ac-v2-json-type", (None, None)),
            (r#"{"a":1,}"#, "ac-v2-json", (Some(7), None)),
            ("", "ac-v2-json", (Some(0), None)),
            ("{}\0", "ac-v2-json", (Some(2), None)),
        ];
        for (text, code, (offset, name)) in cases {
            let (found, at, key) = refusal(text);
            assert_eq!(found, code, "{text}");
            if offset.is_some() && code != "ac-v2-missing-key" {
                assert_eq!((at, key), (offset, name), "{text}");
            }
        }
        let error = Metadata::from_json(b"{\"a\":\"\xFF\"}", &ReadOptions::STRICT).unwrap_err();
        assert_eq!((error.code(), error.offset()), ("ac-utf8", Some(6)));
    }

    #[test]
    fn compat_takes_the_last_key_and_keeps_what_it_cannot_use() {
        let text = r#"{"name":5,"x":1,"x":2,"total_size":"9","sharding":[],"author":"a","author":"b"}"#;
        let metadata = Metadata::from_json(text.as_bytes(), &ReadOptions::COMPAT).unwrap();
        assert_eq!((metadata.name.as_deref(), metadata.author.as_deref()), (None, Some("b")));
        assert_eq!(metadata.other["x"].as_u64(), Some(2));
        let written = metadata.to_json();
        assert!(written.contains(r#""name":5,"#) && written.contains(r#""sharding":[]"#), "{written}");
        assert!(written.contains(r#""total_size":"9""#));
    }

    #[test]
    fn depth_and_length_are_limited() {
        let nested = |depth: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert!(read(&nested(64)).is_ok());
        assert_eq!(refusal(&nested(65)).0, "ac-limit");
        assert_eq!(refusal(&nested(100_000)).0, "ac-limit");
        let limits = Limits { metadata_bytes: 1, ..Limits::DEFAULT };
        let error = Metadata::from_json(b"{}", &ReadOptions::STRICT.with_limits(limits)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit { found: 2, limit: 1, .. }));
    }

    #[test]
    fn many_tiny_members_are_refused_before_they_fill_the_memory() {
        let members: Vec<String> = (0..100_000).map(|idx| format!(r#""{idx:x}":0"#)).collect();
        assert_eq!(refusal(&format!("{{{}}}", members.join(","))).0, "ac-metadata-dense");
        assert_eq!(refusal(&format!(r#"{{"sharding":{{{}}}}}"#, members.join(","))).0, "ac-metadata-dense");
        assert!(read(&format!("{{{}}}", members[..5000].join(","))).is_ok());
        // One array of a million numbers is a text, not a million values.
        assert!(read(&format!(r#"{{"a":[{}0]}}"#, "0,".repeat(1_000_000))).is_ok());
    }

    proptest! {
        #[test]
        fn metadata_round_trip(
            texts in prop::collection::vec(prop::option::of(".*"), 11),
            counts in any::<[u64; 5]>(),
            sharded in any::<bool>(),
            other in prop::collection::btree_map(".*", ".*", 0..4),
        ) {
            let mut metadata = Metadata::new(texts[0].as_deref().unwrap_or_default());
            for (key, text) in ORDER.iter().filter(|key| **key != "model_type").zip(&texts[1..]) {
                if let Some(field) = metadata.text_field_mut(key) {
                    field.clone_from(text);
                }
            }
            (metadata.total_size, metadata.param_count) = (counts[0], counts[1]);
            let other = || other.iter().map(|(key, text)| (format!("x{key}"), Json::from(text.as_str()))).collect();
            metadata.sharding = sharded.then(|| Sharding {
                shard_count: counts[2],
                shard_index: counts[3],
                total_size: counts[4],
                pattern: texts[1].clone(),
                other: other(),
            });
            metadata.other = other();
            let text = metadata.to_json();
            prop_assert_eq!(&read(&text).unwrap(), &metadata);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert!(value.is_object());
        }

        #[test]
        fn any_bytes_are_metadata_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
                let _ = Metadata::from_json(&bytes, &options);
            }
        }
    }
}
