//! The keys of a GGUF file as entries of text.
//!
//! A string is an entry of its own. `gguf.metadata` is a JSON list of all keys in file order: `["KEY","TYPE",VALUE]`, without
//! a value where an entry has it. An array has the type `TYPE[]`. Floats that are not finite are their bits, `"0x7fc00000"`.

use alloc::collections::BTreeMap;

use gguf_core::{Array, GgufBuilder, Header, Number, Value};
use serde_json::value::RawValue;

use super::Entries;
use crate::error::{CODE_NOT_CARRIED, Failure};
use crate::terminal::escape;

/// Key of the JSON that holds what is not text.
pub(crate) const OF_GGUF: &str = "gguf.metadata";
/// The required key of every GGUF file.
pub(crate) const ARCHITECTURE: &str = "general.architecture";
/// Its value for a model without a known architecture.
const UNKNOWN: &str = "unknown";
/// The key whose value is converted to a number.
const ALIGNMENT: &str = "general.alignment";

/// The key with the version of the quantized blocks.
const QUANTIZATION_VERSION: &str = "general.quantization_version";
/// The key that says which type most tensors have.
const FILE_TYPE: &str = "general.file_type";

/// What will and what will not run a GGUF file of this architecture that holds this model (`apr.model`); `None` if
/// it names an architecture.
pub(crate) fn note_on_architecture(architecture: Option<&str>, model: Option<&str>) -> Option<String> {
    if architecture.is_some_and(|name| name != UNKNOWN) {
        return None;
    }
    let predicts = model.is_some_and(|name| apr_models::AnyModel::NAMES.contains(&name));
    let and = if predicts { " and `apr predict` predicts with it" } else { "" };
    Some(format!(
        "the file names no architecture ({ARCHITECTURE}): programs that read GGUF find the tensors{and}, but llama.cpp cannot run the model"
    ))
}

/// The same of a file with this header. The later files of a model in several have no architecture of their own.
pub(crate) fn note_on_header(header: &Header<'_>) -> Option<String> {
    let is_later = header.get("split.no").and_then(|value| value.to_u64()).is_some_and(|number| number > 0);
    let text = |key: &str| header.get(key).and_then(|value| value.as_str());
    note_on_architecture(text(ARCHITECTURE), text(apr_models::MODEL_KEY)).filter(|_| !is_later)
}

/// A row of the list.
type Row<'a> = Vec<&'a RawValue>;

/// The entries, and which keys they cannot carry.
pub(super) fn of_header(header: &Header<'_>) -> (Entries, Vec<String>) {
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
                Err(_) => lose("its text is not UTF-8"),
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
    if entries.get(ARCHITECTURE).is_some_and(|name| name == UNKNOWN) && header.entries().iter().all(is_text) {
        entries.remove(ARCHITECTURE);
    } else if !rows.is_empty() {
        entries.insert(OF_GGUF.to_owned(), format!("[{}]", rows.join(",")));
    }
    (entries, lost)
}

fn quoted(text: &str) -> String {
    // Writing text to memory does not fail.
    serde_json::to_string(text).unwrap_or_default()
}

fn elements(array: &Array<'_>) -> Result<String, &'static str> {
    let mut json = String::from("[");
    for (idx, value) in array.iter().enumerate() {
        if idx > 0 {
            json.push(',');
        }
        match value {
            Value::Text(text) => {
                json.push_str(&quoted(text.to_str().map_err(|_| "a text in it is not UTF-8")?));
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

/// Every key with its value as text: those in the list besides those that are text already.
pub(super) fn expand(entries: &mut Entries) {
    let Some(text) = entries.remove(OF_GGUF) else { return };
    match rows(&text) {
        Ok(rows) => {
            for row in rows {
                if let (Some(key), Some(value)) = (row.first(), row.get(2))
                    && let Ok(key) = serde_json::from_str::<String>(key.get())
                {
                    entries.entry(key).or_insert_with(|| value.get().to_owned());
                }
            }
        }
        Err(_) => drop(entries.insert(OF_GGUF.to_owned(), text)),
    }
}

/// Takes a key out of the list; whether it was there.
pub(crate) fn remove(entries: &mut Entries, key: &str) -> bool {
    let Some(text) = entries.get(OF_GGUF) else { return false };
    let Ok(all) = rows(text) else { return false };
    let is_meant = |row: &&Row<'_>| {
        row.first().and_then(|found| serde_json::from_str::<String>(found.get()).ok()).as_deref() == Some(key)
    };
    let kept: Vec<&Row<'_>> = all.iter().filter(|row| !is_meant(row)).collect();
    let was_there = kept.len() < all.len();
    let text = serde_json::to_string(&kept).unwrap_or_default();
    entries.insert(OF_GGUF.to_owned(), text);
    was_there
}

/// Makes the keys those of a model whose tensors are no longer quantized.
pub(crate) fn dequantized(entries: &mut Entries, to: st_core::Dtype) {
    remove(entries, QUANTIZATION_VERSION);
    if remove(entries, FILE_TYPE) {
        // Numbers of llama.cpp, which differ from those of tensor types.
        let number = if to == st_core::Dtype::F16 { "1" } else { "0" };
        let row = format!("[{},\"u32\",{number}]", quoted(FILE_TYPE));
        if let Some(list) = entries.get_mut(OF_GGUF)
            && let Some(rest) = list.strip_suffix(']')
        {
            let comma = if rest.ends_with('[') { "" } else { "," };
            *list = format!("{rest}{comma}{row}]");
        }
    }
}

fn rows(text: &str) -> Result<Vec<Row<'_>>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Writes entries as keys: those of the list in its order and with its types, the others as strings after them. What a file
/// cannot do without is added.
///
/// # Errors
///
/// If the list is not what is written here, or a value does not have its type.
pub(crate) fn to_builder(
    entries: &Entries,
    is_quantized: bool,
    builder: &mut GgufBuilder,
) -> Result<(), Failure> {
    let changed = |why: String| {
        let what = format!("the entry `{OF_GGUF}` is not what `apr` writes there");
        let failure = Failure::new(CODE_NOT_CARRIED, what).because(why);
        failure.help(format!("remove it with --unset {OF_GGUF}, or set it right"))
    };
    let list = match entries.get(OF_GGUF) {
        Some(text) => rows(text).map_err(changed)?,
        None => Vec::new(),
    };
    let mut others: BTreeMap<&str, &str> =
        entries.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    others.remove(OF_GGUF);
    let mut listed = Vec::with_capacity(list.len());
    for row in &list {
        let (&[key, kind] | &[key, kind, _]) = row.as_slice() else {
            return Err(changed("a row has two or three parts".to_owned()));
        };
        let text = |raw: &RawValue| {
            serde_json::from_str::<String>(raw.get()).map_err(|error| changed(error.to_string()))
        };
        listed.push((text(key)?, text(kind)?, row.get(2)));
    }
    // A GGUF file without one stays so: the later parts of a model have none.
    if !entries.contains_key(OF_GGUF) && !others.contains_key(ARCHITECTURE) {
        builder.set(ARCHITECTURE, UNKNOWN)?;
    }
    for (key, kind, value) in &listed {
        match (others.remove(key.as_str()), value) {
            (Some(text), _) => set_text(builder, key, kind, text)?,
            (None, Some(value)) => {
                set_json(builder, key, kind, value.get()).map_err(|failure| failure.of_key(Some(key)))?;
            }
            // The entry was removed.
            (None, None) => {}
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
        set_text(builder, key, if key == ALIGNMENT { "u32" } else { "string" }, text)?;
    }
    Ok(())
}

/// Sets a key to what text says, in the type it has.
fn set_text(builder: &mut GgufBuilder, key: &str, kind: &str, text: &str) -> Result<(), Failure> {
    if kind == "string" {
        return Ok(builder.set(key, text)?);
    }
    set_json(builder, key, kind, text).map_err(|failure| {
        let failure = failure.of_key(Some(key));
        failure
            .help(format!("`{key}` is a {kind}: set it to one in JSON, or --unset it first to make it text"))
    })
}

fn set_json(builder: &mut GgufBuilder, key: &str, kind: &str, json: &str) -> Result<(), Failure> {
    let (name, is_array) = kind.strip_suffix("[]").map_or((kind, false), |name| (name, true));
    let target = (builder, key, is_array);
    match name {
        "u8" => numbers(target, json, |text| text.parse::<u8>().ok()),
        "i8" => numbers(target, json, |text| text.parse::<i8>().ok()),
        "u16" => numbers(target, json, |text| text.parse::<u16>().ok()),
        "i16" => numbers(target, json, |text| text.parse::<i16>().ok()),
        "u32" => numbers(target, json, |text| text.parse::<u32>().ok()),
        "i32" => numbers(target, json, |text| text.parse::<i32>().ok()),
        "u64" => numbers(target, json, |text| text.parse::<u64>().ok()),
        "i64" => numbers(target, json, |text| text.parse::<i64>().ok()),
        "bool" => numbers(target, json, |text| text.parse::<bool>().ok()),
        "f32" => numbers(target, json, |text| match bits(text) {
            Some(bits) => Some(f32::from_bits(u32::try_from(bits).ok()?)),
            None => text.parse().ok(),
        }),
        "f64" => numbers(target, json, |text| bits(text).map(f64::from_bits).or_else(|| text.parse().ok())),
        "string" if is_array => {
            let texts: Vec<String> = serde_json::from_str(json).map_err(|_| no(kind, json))?;
            Ok(target.0.set_texts(key, texts.iter().map(String::as_str))?)
        }
        "string" => {
            let text: String = serde_json::from_str(json).map_err(|_| no(kind, json))?;
            Ok(target.0.set(key, text.as_str())?)
        }
        _ => Err(Failure::new(
            CODE_NOT_CARRIED,
            format!("`{}` is no type of GGUF values", escape::cut(kind, 60)),
        )),
    }
}

fn no(kind: &str, json: &str) -> Failure {
    Failure::new(CODE_NOT_CARRIED, format!("`{}` is no {kind}", escape::cut(json, 60)))
}

/// The bits of a float, as the list stores them.
fn bits(json: &str) -> Option<u64> {
    u64::from_str_radix(json.strip_prefix("\"0x")?.strip_suffix('"')?, 16).ok()
}

fn numbers<T: Number>(
    (builder, key, is_array): (&mut GgufBuilder, &str, bool),
    json: &str,
    number: impl Fn(&str) -> Option<T>,
) -> Result<(), Failure> {
    if is_array {
        let wrong = |json: &str| no(&format!("{}[]", T::TYPE), json);
        let values: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| wrong(json))?;
        let values = values.iter().map(|raw| number(raw.get()).ok_or_else(|| wrong(raw.get())));
        return Ok(builder.set_numbers(key, &values.collect::<Result<Vec<T>, _>>()?)?);
    }
    let value = number(json.trim()).ok_or_else(|| no(T::TYPE.name(), json))?;
    Ok(builder.set(key, value.value())?)
}

#[cfg(test)]
mod tests {
    use gguf_core::Gguf;

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
        let (entries, lost) = of_header(Gguf::from_bytes(file).unwrap().header());
        assert!(lost.is_empty(), "{lost:?}");
        entries
    }

    #[test]
    fn keys_survive_the_way_there_and_back() {
        let file = builder().layout().unwrap().to_vec(&[]).unwrap();
        let entries = entries_of(&file);
        assert_eq!(entries["demo.name"], "a \"name\"\n");
        let mut again = GgufBuilder::new();
        to_builder(&entries, false, &mut again).unwrap();
        assert_eq!(again, builder());
    }

    #[test]
    fn entries_that_are_set_keep_their_type_or_become_text() {
        let mut entries = entries_of(&builder().layout().unwrap().to_vec(&[]).unwrap());
        entries.insert("demo.count".to_owned(), "7".to_owned());
        entries.insert("new".to_owned(), "text".to_owned());
        entries.insert(ALIGNMENT.to_owned(), "64".to_owned());
        entries.remove("demo.name");
        assert!(remove(&mut entries, "demo.rate") && !remove(&mut entries, "none"));
        let mut again = GgufBuilder::new();
        to_builder(&entries, false, &mut again).unwrap();
        let file = again.layout().unwrap().to_vec(&[]).unwrap();
        let gguf = Gguf::from_bytes(&file).unwrap();
        assert_eq!(gguf.get("demo.count"), Some(Value::U32(7)));
        assert_eq!(gguf.get("new").and_then(|value| value.as_str()), Some("text"));
        assert_eq!(gguf.alignment(), 64);
        assert!(gguf.get("demo.name").is_none() && gguf.get("demo.rate").is_none());
        for wrong in ["-1", "x", "4294967296", "1.5", "[1]"] {
            entries.insert("demo.count".to_owned(), wrong.to_owned());
            let failure = to_builder(&entries, false, &mut GgufBuilder::new()).unwrap_err();
            assert_eq!(failure.code(), CODE_NOT_CARRIED);
        }
    }

    #[test]
    fn a_list_that_was_changed_is_refused() {
        for wrong in
            ["{", "[1]", "[[]]", "[[\"a\",\"u33\",1]]", "[[\"a\",\"u8\",256]]", "[[\"a\",\"u8[]\",[1,-1]]]"]
        {
            let entries = Entries::from([(OF_GGUF.to_owned(), wrong.to_owned())]);
            let failure = to_builder(&entries, false, &mut GgufBuilder::new()).unwrap_err();
            assert_eq!(failure.code(), CODE_NOT_CARRIED, "{wrong}");
        }
    }

    #[test]
    fn a_model_of_nobody_has_an_architecture() {
        let mut builder = GgufBuilder::new();
        to_builder(&Entries::from([("format".to_owned(), "pt".to_owned())]), false, &mut builder).unwrap();
        let file = builder.layout().unwrap().to_vec(&[]).unwrap();
        assert_eq!(Gguf::from_bytes(&file).unwrap().get(ARCHITECTURE).unwrap().as_str(), Some(UNKNOWN));
        assert_eq!(entries_of(&file).get("format").map(String::as_str), Some("pt"));
        let (entries, mut again) = (entries_of(&file), GgufBuilder::new());
        to_builder(&entries, false, &mut again).unwrap();
        assert_eq!(again, builder);
    }
}
