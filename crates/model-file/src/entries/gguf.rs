//! The keys of a GGUF file as entries.
//!
//! A string is an entry of its own. `gguf.metadata` is a JSON list of all keys in file order: `["KEY","TYPE",VALUE]`, without
//! a value where an entry has it. An array has the type `TYPE[]`. Floats that are not finite are their bits, `"0x7fc00000"`.

use alloc::borrow::{Cow, ToOwned as _};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use gguf_core::{Array, GgufBuilder, Header, KeyType, Number, Text, Value};
use json_scan::{Escape, JsonStr};

use super::{Entries, Exported, invalid};
use crate::error::{Error, ErrorKind};
use crate::json;

/// Key of the JSON list with the keys and values of GGUF that are not strings.
pub const OF_GGUF: &str = "gguf.metadata";
/// The key that every GGUF file must have, except the later files of a split model.
pub const ARCHITECTURE: &str = "general.architecture";
/// Its value where the architecture is not known.
pub const UNKNOWN_ARCHITECTURE: &str = "unknown";

/// The key that says how quantized tensors are stored.
const QUANTIZATION_VERSION: &str = "general.quantization_version";
/// The key that says which type most tensors have.
pub const FILE_TYPE: &str = "general.file_type";

/// A row of the list: JSON values.
type Row<'a> = Vec<&'a str>;

/// The entries of a header, and the keys that they do not preserve.
#[must_use]
pub fn of_header(header: &Header<'_>) -> Exported {
    let (mut entries, mut lost, mut rows) = (Entries::new(), Vec::new(), Vec::new());
    for entry in header.entries() {
        let value = entry.value();
        let mut lose = |why: &str| lost.push(format!("key {}: {why}", entry.key()));
        let Ok(key) = entry.key().to_str() else {
            lose("it is not UTF-8");
            continue;
        };
        let head = |kind: &str| format!("[{},\"{kind}\"", quoted(key));
        match value {
            Value::Text(text) => match text.to_str() {
                // Its own name is taken, so the string goes into the list.
                Ok(text) if key == OF_GGUF => rows.push(format!("{},{}]", head("string"), quoted(text))),
                Ok(text) => {
                    entries.insert(key.to_owned(), text.to_owned());
                    rows.push(format!("{}]", head("string")));
                }
                Err(_) => lose("its string is not UTF-8"),
            },
            Value::Array(array) => match elements(&array) {
                Ok(json) => rows.push(format!("{},{json}]", head(&format!("{}[]", array.element_type())))),
                Err(why) => lose(why),
            },
            value => rows.push(format!("{},{}]", head(value.value_type().name()), scalar(&value))),
        }
    }
    // A file that was made of another format's entries becomes these entries again.
    let is_text = |entry: &gguf_core::Entry<'_>| entry.value().as_str().is_some() && entry.key() != OF_GGUF;
    if entries.get(ARCHITECTURE).is_some_and(|name| name == UNKNOWN_ARCHITECTURE)
        && header.entries().iter().all(is_text)
    {
        entries.remove(ARCHITECTURE);
    } else if !rows.is_empty() {
        entries.insert(OF_GGUF.to_owned(), format!("[{}]", rows.join(",")));
    }
    Exported { entries, lost }
}

const fn quoted(text: &str) -> JsonStr<'_> {
    JsonStr(text, Escape::Minimal)
}

/// A JSON string in a row.
fn string<'t>(raw: &'t str) -> Option<Cow<'t, str>> {
    json_scan::unescape(raw)
}

fn elements(array: &Array<'_>) -> Result<String, &'static str> {
    let mut json = String::from("[");
    for (idx, value) in array.iter().enumerate() {
        if idx > 0 {
            json.push(',');
        }
        match value {
            Value::Text(text) => {
                let text = text.to_str().map_err(|_| "a string in it is not UTF-8")?;
                json_scan::push_string(&mut json, text, Escape::Minimal);
            }
            Value::Array(_) => return Err("it is an array of arrays"),
            value => json.push_str(&scalar(&value)),
        }
    }
    json.push(']');
    Ok(json)
}

/// A value that is neither text nor array, as JSON.
fn scalar(value: &Value<'_>) -> String {
    match *value {
        Value::Bool(value) => value.to_string(),
        Value::F32(value) if value.is_finite() => format!("{value:?}"),
        Value::F32(value) => format!("\"{:#010x}\"", value.to_bits()),
        Value::F64(value) if value.is_finite() => format!("{value:?}"),
        Value::F64(value) => format!("\"{:#018x}\"", value.to_bits()),
        _ => match (value.to_u64(), value.to_i64()) {
            (Some(number), _) => number.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => "null".to_owned(),
        },
    }
}

/// One entry for each key, with its value as text.
pub(super) fn expand(entries: &mut Entries) {
    let Some(text) = entries.remove(OF_GGUF) else { return };
    match rows(&text) {
        Ok(rows) => {
            for row in rows {
                if let (Some(key), Some(value)) = (row.first().copied().and_then(string), row.get(2)) {
                    entries.entry(key.into_owned()).or_insert_with(|| (*value).to_owned());
                }
            }
        }
        Err(_) => drop(entries.insert(OF_GGUF.to_owned(), text)),
    }
}

/// Every key with its type and its value as text, whatever bytes they have: what is not UTF-8 is escaped as in Python's `b"\\xff"`.
pub fn values(header: &Header<'_>) -> BTreeMap<String, (String, String)> {
    let value = |entry: &gguf_core::Entry<'_>| {
        let (mut text, value) = (String::new(), entry.value());
        match value {
            Value::Text(string) if string.to_str().is_ok() => text.push_str(&string.to_str_lossy()),
            value => push_value(&mut text, &value),
        }
        let kind = match value {
            Value::Text(text) if text.to_str().is_err() => "bytes".to_owned(),
            Value::Array(array) => kind_of(&array),
            value => value.value_type().name().to_owned(),
        };
        (shown(entry.key()), (kind, text))
    };
    header.entries().iter().map(value).collect()
}

/// The type of an array, and those of the arrays in it.
fn kind_of(array: &Array<'_>) -> String {
    let inner = |value| match value {
        Value::Array(array) => Some(kind_of(&array)),
        _ => None,
    };
    let inner: BTreeSet<String> = array.iter().filter_map(inner).collect();
    match inner.is_empty() {
        true => format!("{}[]", array.element_type()),
        false => format!("{}[]", Vec::from_iter(inner).join("|")),
    }
}

/// A text, or its bytes.
fn shown(text: Text<'_>) -> String {
    match text.to_str() {
        Ok(text) => text.to_owned(),
        Err(_) => format!("b\"{}\"", text.as_bytes().escape_ascii()),
    }
}

/// Arrays in arrays are as deep as the reader allows.
fn push_value(out: &mut String, value: &Value<'_>) {
    match value {
        Value::Text(text) => match text.to_str() {
            Ok(text) => json_scan::push_string(out, text, Escape::Minimal),
            Err(_) => out.push_str(&shown(*text)),
        },
        Value::Array(array) => {
            out.push('[');
            for (idx, value) in array.iter().enumerate() {
                if idx > 0 {
                    out.push(',');
                }
                push_value(out, &value);
            }
            out.push(']');
        }
        value => out.push_str(&scalar(value)),
    }
}

/// Removes a key from the list; returns whether it was there.
pub fn remove(entries: &mut Entries, key: &str) -> bool {
    let Some(Ok(all)) = entries.get(OF_GGUF).map(|text| rows(text)) else { return false };
    let is_kept = |row: &&Row<'_>| !is_of(row, key);
    let kept: Vec<String> = all.iter().filter(is_kept).map(|row| format!("[{}]", row.join(","))).collect();
    let was_there = kept.len() < all.len();
    let text = format!("[{}]", kept.join(","));
    entries.insert(OF_GGUF.to_owned(), text);
    was_there
}

/// Changes the keys to those of a model whose tensors are no longer quantized.
pub fn set_dequantized(entries: &mut Entries, to: st_core::Dtype) {
    remove(entries, QUANTIZATION_VERSION);
    // Numbers of llama.cpp, which differ from those of tensor types.
    set_file_type(entries, if to == st_core::Dtype::F16 { 1 } else { 0 });
}

/// The number of `general.file_type` in the list.
#[must_use]
pub fn file_type(entries: &Entries) -> Option<u32> {
    let rows = rows(entries.get(OF_GGUF)?).ok()?;
    let row = rows.iter().find(|row| is_of(row, FILE_TYPE))?;
    row.get(2)?.trim().parse().ok()
}

/// Changes `general.file_type` where the list has it.
pub fn set_file_type(entries: &mut Entries, file_type: u32) {
    let Some(Ok(all)) = entries.get(OF_GGUF).map(|text| rows(text)) else { return };
    let new = |row: &Row<'_>| match is_of(row, FILE_TYPE) {
        true => format!("[{},\"u32\",{file_type}]", quoted(FILE_TYPE)),
        false => format!("[{}]", row.join(",")),
    };
    let list = format!("[{}]", all.iter().map(new).collect::<Vec<_>>().join(","));
    entries.insert(OF_GGUF.to_owned(), list);
}

/// The type of a key in the list.
pub(super) fn key_kind(entries: &Entries, key: &str) -> Option<String> {
    let rows = rows(entries.get(OF_GGUF)?).ok()?;
    let row = rows.iter().find(|row| is_of(row, key))?;
    row.get(1).copied().and_then(string).map(Cow::into_owned)
}

/// Whether a row is that of a key.
fn is_of(row: &Row<'_>, key: &str) -> bool {
    row.first().copied().and_then(string).as_deref() == Some(key)
}

fn rows(text: &str) -> Result<Vec<Row<'_>>, json_scan::Error> {
    json::items(text)?.into_iter().map(json::items).collect()
}

/// Writes entries as keys: those of the list in its order and with its types, then the others in the types of [`KeyType`], or as strings
/// if they are not known. Required keys are added.
///
/// # Errors
///
/// [`ErrorKind::InvalidEntry`], [`ErrorKind::EntryType`], [`ErrorKind::Gguf`].
pub fn to_gguf(entries: &Entries, is_quantized: bool, builder: &mut GgufBuilder) -> Result<(), Error> {
    let changed = |reason: &str| invalid(OF_GGUF, reason);
    let list = match entries.get(OF_GGUF) {
        Some(text) => rows(text).map_err(|error| changed(&error.to_string()))?,
        None => Vec::new(),
    };
    let mut others: BTreeMap<&str, &str> =
        entries.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    others.remove(OF_GGUF);
    let mut listed = Vec::with_capacity(list.len());
    for row in &list {
        let (&[key, kind] | &[key, kind, _]) = row.as_slice() else {
            return Err(changed("a row has two or three elements"));
        };
        let text = |raw| string(raw).ok_or_else(|| changed("keys and types are strings"));
        listed.push((text(key)?, text(kind)?, row.get(2)));
    }
    // A GGUF file without one stays so: the later files of a split model have none.
    if !entries.contains_key(OF_GGUF) && !others.contains_key(ARCHITECTURE) {
        builder.set(ARCHITECTURE, UNKNOWN_ARCHITECTURE)?;
    }
    for (key, kind, value) in &listed {
        // A key with neither was removed from the entries.
        if let Some(text) = others.remove(&**key) {
            set_text(builder, key, kind, text)?;
        } else if let Some(value) = value {
            set_json(builder, key, kind, value)?;
        }
    }
    if is_quantized
        && !entries.contains_key(OF_GGUF)
        && !listed.iter().any(|(key, ..)| key == QUANTIZATION_VERSION)
    {
        others.remove(QUANTIZATION_VERSION);
        builder.set(QUANTIZATION_VERSION, 2_u32)?;
    }
    for (key, text) in others {
        let kind = KeyType::of(key).map_or_else(
            || "string".to_owned(),
            |known| match known {
                KeyType::Array(element) => format!("{element}[]"),
                known => known.value_type().to_string(),
            },
        );
        set_text(builder, key, &kind, text)?;
    }
    Ok(())
}

/// Sets a key to the value of a text, in its type.
pub(super) fn set_text(builder: &mut GgufBuilder, key: &str, kind: &str, text: &str) -> Result<(), Error> {
    if kind == "string" {
        return Ok(builder.set(key, text)?);
    }
    set_json(builder, key, kind, text)
}

fn set_json(builder: &mut GgufBuilder, key: &str, kind: &str, json: &str) -> Result<(), Error> {
    let (name, is_array) = kind.strip_suffix("[]").map_or((kind, false), |name| (name, true));
    let mut target = Target { builder, key, kind, json, is_array };
    match name {
        "u8" => target.numbers(|text| text.parse::<u8>().ok()),
        "i8" => target.numbers(|text| text.parse::<i8>().ok()),
        "u16" => target.numbers(|text| text.parse::<u16>().ok()),
        "i16" => target.numbers(|text| text.parse::<i16>().ok()),
        "u32" => target.numbers(|text| text.parse::<u32>().ok()),
        "i32" => target.numbers(|text| text.parse::<i32>().ok()),
        "u64" => target.numbers(|text| text.parse::<u64>().ok()),
        "i64" => target.numbers(|text| text.parse::<i64>().ok()),
        "bool" => target.numbers(|text| text.parse::<bool>().ok()),
        "f32" => target.numbers(|text| match bits(text) {
            Some(bits) => Some(f32::from_bits(u32::try_from(bits).ok()?)),
            None => text.parse().ok().filter(|number: &f32| number.is_finite()),
        }),
        "f64" => target.numbers(|text| match bits(text) {
            Some(bits) => Some(f64::from_bits(bits)),
            None => text.parse().ok().filter(|number: &f64| number.is_finite()),
        }),
        "string" if is_array => {
            let items = json::items(json).map_err(|_| target.mismatch())?;
            let texts: Option<Vec<_>> = items.into_iter().map(string).collect();
            let texts = texts.ok_or_else(|| target.mismatch())?;
            Ok(target.builder.set_texts(key, texts.iter().map(|text| &**text))?)
        }
        "string" => {
            let text = string(json).ok_or_else(|| target.mismatch())?;
            Ok(target.builder.set(key, &*text)?)
        }
        _ => Err(invalid(OF_GGUF, format!("`{kind}` is not a type of GGUF"))),
    }
}

/// The bits of a float, as the list holds those that are not finite.
fn bits(json: &str) -> Option<u64> {
    u64::from_str_radix(json.strip_prefix("\"0x")?.strip_suffix('"')?, 16).ok()
}

/// A key, and the JSON that it is set to.
struct Target<'t> {
    builder: &'t mut GgufBuilder,
    key: &'t str,
    /// The type with its brackets, as the list has it.
    kind: &'t str,
    json: &'t str,
    is_array: bool,
}

impl Target<'_> {
    fn mismatch(&self) -> Error {
        let Self { key, kind, json, .. } = *self;
        let (key, expected, value) = (key.to_owned(), kind.to_owned(), json.to_owned());
        ErrorKind::EntryType { key, expected, value }.into()
    }

    fn numbers<T: Number>(&mut self, number: impl Fn(&str) -> Option<T>) -> Result<(), Error> {
        if self.is_array {
            let items = json::items(self.json).map_err(|_| self.mismatch())?;
            let values: Option<Vec<T>> = items.into_iter().map(number).collect();
            let values = values.ok_or_else(|| self.mismatch())?;
            return Ok(self.builder.set_numbers(self.key, &values)?);
        }
        let value = number(self.json.trim()).ok_or_else(|| self.mismatch())?;
        Ok(self.builder.set(self.key, value.value())?)
    }
}

#[cfg(test)]
mod tests {
    use gguf_core::Gguf;

    use super::super::{TypedValue, check_untyped};
    use super::*;

    fn builder() -> GgufBuilder {
        let mut builder = GgufBuilder::new();
        builder.set("general.architecture", "demo").unwrap();
        builder.set("demo.count", 3_u32).unwrap();
        builder.set("demo.rate", 0.1_f32).unwrap();
        builder.set("demo.odd", f32::from_bits(0x7fc0_0001)).unwrap();
        builder.set("demo.far", f64::NEG_INFINITY).unwrap();
        builder.set("demo.big", u64::MAX).unwrap();
        builder.set("demo.low", i64::MIN).unwrap();
        builder.set("demo.yes", true).unwrap();
        builder.set("demo.name", "a \"name\"\n").unwrap();
        builder.set(OF_GGUF, "mine").unwrap();
        builder.set_texts("demo.words", ["<s>", "\u{202e}", ""]).unwrap();
        builder.set_numbers("demo.floats", &[1.5_f32, f32::NAN, -0.0, 1e-45]).unwrap();
        builder.set_numbers("demo.flags", &[true, false]).unwrap();
        builder.set_numbers::<u8>("demo.none", &[]).unwrap();
        builder
    }

    fn entries_of(file: &[u8]) -> Entries {
        let Exported { entries, lost } = of_header(Gguf::from_bytes(file).unwrap().header());
        assert!(lost.is_empty(), "{lost:?}");
        entries
    }

    #[test]
    fn keys_survive_a_round_trip() {
        let file = builder().layout().unwrap().to_vec(&[]).unwrap();
        let entries = entries_of(&file);
        assert_eq!(entries["demo.name"], "a \"name\"\n");
        let mut again = GgufBuilder::new();
        to_gguf(&entries, false, &mut again).unwrap();
        assert_eq!(again, builder());
    }

    #[test]
    fn entries_that_are_set_keep_their_type_or_become_text() {
        let mut entries = entries_of(&builder().layout().unwrap().to_vec(&[]).unwrap());
        entries.insert("demo.count".to_owned(), "7".to_owned());
        entries.insert("new".to_owned(), "text".to_owned());
        entries.insert("general.alignment".to_owned(), "64".to_owned());
        entries.insert("tokenizer.ggml.add_bos_token".to_owned(), "false".to_owned());
        entries.insert("demo.pooling_type".to_owned(), "3".to_owned());
        entries.insert("tokenizer.ggml.token_type".to_owned(), "[1,-1]".to_owned());
        entries.remove("demo.name");
        assert!(remove(&mut entries, "demo.rate") && !remove(&mut entries, "none"));
        let mut again = GgufBuilder::new();
        to_gguf(&entries, false, &mut again).unwrap();
        let file = again.layout().unwrap().to_vec(&[]).unwrap();
        let gguf = Gguf::from_bytes(&file).unwrap();
        assert_eq!(gguf.get("demo.count"), Some(Value::U32(7)));
        assert_eq!(gguf.get("new").and_then(|value| value.as_str()), Some("text"));
        assert_eq!(gguf.alignment(), 64);
        assert_eq!(gguf.get("tokenizer.ggml.add_bos_token"), Some(Value::Bool(false)));
        assert_eq!(gguf.get("demo.pooling_type"), Some(Value::U32(3)));
        let token_types = gguf.get("tokenizer.ggml.token_type").and_then(|value| value.as_array()).unwrap();
        assert!(token_types.iter().eq([Value::I32(1), Value::I32(-1)]));
        assert!(gguf.get("demo.name").is_none() && gguf.get("demo.rate").is_none());
        for wrong in ["-1", "x", "4294967296", "1.5", "[1]"] {
            entries.insert("demo.count".to_owned(), wrong.to_owned());
            let error = to_gguf(&entries, false, &mut GgufBuilder::new()).unwrap_err();
            assert_eq!(error.code(), "mo-entry-type");
        }
    }

    #[test]
    fn values_have_the_type_that_is_given() {
        let mut builder = builder();
        for (key, text) in [
            ("demo.count", "i64:-7"),
            ("demo.name", "str:u32:7"),
            ("demo.rate", "FLOAT64:0.5"),
            ("demo.words", "str[]:[\"a\"]"),
            ("demo.pooling_type", "int:2"),
            ("demo.new", "int:2"),
            ("new.flag", "bool:true"),
        ] {
            TypedValue::parse(key, text).unwrap().set(&mut builder, key).unwrap();
        }
        let file = builder.layout().unwrap().to_vec(&[]).unwrap();
        let gguf = Gguf::from_bytes(&file).unwrap();
        assert_eq!(gguf.entries()[1].key().to_str(), Ok("demo.count"));
        assert_eq!(gguf.get("demo.count"), Some(Value::I64(-7)));
        assert_eq!(gguf.get("demo.name").and_then(|value| value.as_str()), Some("u32:7"));
        assert_eq!(gguf.get("demo.rate"), Some(Value::F64(0.5)));
        assert_eq!(gguf.get("demo.words").and_then(|value| Some(value.as_array()?.len())), Some(1));
        assert_eq!(gguf.get("demo.pooling_type"), Some(Value::U32(2)));
        assert_eq!(gguf.get("demo.new"), Some(Value::I64(2)));
        assert_eq!(gguf.get("new.flag"), Some(Value::Bool(true)));
        for (text, is_typed) in
            [("u33:1", false), ("http://x", false), ("1", false), ("u8:300", true), ("bool:1", true)]
        {
            match TypedValue::parse("k", text) {
                None => assert!(!is_typed, "{text}"),
                Some(value) => {
                    let error = value.set(&mut GgufBuilder::new(), "k").unwrap_err();
                    assert!(is_typed && error.code() == "mo-entry-type", "{text}");
                }
            }
        }
    }

    #[test]
    fn a_new_key_is_a_string_only_if_it_can_be_nothing_else() {
        let entries = entries_of(&builder().layout().unwrap().to_vec(&[]).unwrap());
        let check = |key: &str, text: &str| check_untyped(Some(&entries), key, text);
        for (key, text) in [
            ("note", "text"),
            ("note", "{{ messages }}"),
            ("note", "{\"a\": 1}"),
            ("note", ""),
            ("demo.count", "7"),
            ("demo.name", "7"),
            ("general.name", "7"),
        ] {
            check(key, text).unwrap();
        }
        for text in ["7", "-1", "0.5", "true", "False", "[1, 2]", "[]", " 3 "] {
            let error = check("note", text).unwrap_err();
            assert_eq!(error.code(), "mo-entry-untyped", "{text}");
        }
    }

    #[test]
    fn the_file_type_is_changed_where_it_is() {
        let mut builder = GgufBuilder::new();
        builder.set(ARCHITECTURE, "demo").unwrap();
        builder.set(FILE_TYPE, 0_u32).unwrap();
        builder.set("demo.count", 3_u32).unwrap();
        let mut entries = entries_of(&builder.layout().unwrap().to_vec(&[]).unwrap());
        assert_eq!(file_type(&entries), Some(0));
        set_file_type(&mut entries, 2);
        let mut again = GgufBuilder::new();
        to_gguf(&entries, false, &mut again).unwrap();
        builder.set(FILE_TYPE, 2_u32).unwrap();
        assert_eq!(again, builder);
        assert_eq!(file_type(&Entries::new()), None);
    }

    #[test]
    fn numbers_beyond_their_type_are_refused() {
        for (kind, wrong, right) in
            [("f32", "1e40", "1e38"), ("f64", "-1e400", "1e40"), ("f32[]", "[1,1e40]", "[1e38]")]
        {
            let entries =
                |number| Entries::from([(OF_GGUF.to_owned(), format!("[[\"a\",\"{kind}\",{number}]]"))]);
            to_gguf(&entries(right), false, &mut GgufBuilder::new()).unwrap();
            let error = to_gguf(&entries(wrong), false, &mut GgufBuilder::new()).unwrap_err();
            // JSON has no number of 64 bits that large.
            assert!(["mo-entry-type", "mo-invalid-entry"].contains(&error.code()), "{kind}: {error}");
        }
    }

    #[test]
    fn a_list_that_was_changed_is_refused() {
        for wrong in
            ["{", "[1]", "[[]]", "[[\"a\",\"u33\",1]]", "[[\"a\",\"u8\",256]]", "[[\"a\",\"u8[]\",[1,-1]]]"]
        {
            let entries = Entries::from([(OF_GGUF.to_owned(), wrong.to_owned())]);
            let error = to_gguf(&entries, false, &mut GgufBuilder::new()).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::InvalidEntry { .. } | ErrorKind::EntryType { .. }),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_model_without_metadata_has_an_architecture() {
        let mut builder = GgufBuilder::new();
        to_gguf(&Entries::from([("format".to_owned(), "pt".to_owned())]), false, &mut builder).unwrap();
        let file = builder.layout().unwrap().to_vec(&[]).unwrap();
        assert_eq!(
            Gguf::from_bytes(&file).unwrap().get(ARCHITECTURE).unwrap().as_str(),
            Some(UNKNOWN_ARCHITECTURE)
        );
        assert_eq!(entries_of(&file).get("format").map(String::as_str), Some("pt"));
        let (entries, mut again) = (entries_of(&file), GgufBuilder::new());
        to_gguf(&entries, false, &mut again).unwrap();
        assert_eq!(again, builder);
    }
}
