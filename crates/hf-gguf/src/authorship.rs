//! Who made the model, and how it is sampled: the keys that begin with `general.`.

mod card;
mod name;
mod restore;
mod yaml;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use located_error::Subject;

use self::card::Card;
use self::name::Names;
pub(crate) use self::restore::restore;
use self::yaml::Yaml;
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::keys::{Keys, Value};
use crate::tensors::output::ParameterCount;
use crate::texts::Texts;

/// What messages call the file of the option `--metadata`.
const METADATA: &str = "the file of --metadata";
const GENERATION: &str = "generation_config.json";
/// Most base models, datasets, tags or languages.
const MAX_ENTRIES: usize = 10_000;

/// A string of the model: the end of its key, and the names that it has in the front matter of README.md, of which the first counts.
struct Field {
    key: &'static str,
    names: &'static [&'static str],
}

const fn field(key: &'static str, names: &'static [&'static str]) -> Field {
    Field { key, names }
}

/// In the order of the keys.
const FIELDS: [Field; 20] = [
    field("name", &["name", "model_name"]),
    field("author", &["author", "model_author", "model_creator"]),
    field("version", &["version", "model_version"]),
    field("organization", &["organization", "model_organization"]),
    field("finetune", &["finetune", "model_finetune"]),
    field("basename", &["basename", "model_basename", "model_type"]),
    field("description", &["description", "model_description"]),
    field("quantized_by", &[]),
    field("size_label", &["size_label", "model_size_label"]),
    field("license", &["license"]),
    field("license.name", &["license_name"]),
    field("license.link", &["license_link"]),
    field("url", &[]),
    field("doi", &[]),
    field("uuid", &[]),
    field("repo_url", &[]),
    field("source.url", &["url", "model_url"]),
    field("source.doi", &["doi", "model_doi"]),
    field("source.uuid", &["uuid", "model_uuid"]),
    field("source.repo_url", &["repo_url", "model_repo_url"]),
];

/// Strings of a base model or a dataset, in the order of the keys.
const SOURCE_FIELDS: [&str; 9] =
    ["name", "author", "version", "organization", "description", "url", "doi", "uuid", "repo_url"];

/// Settings of sampling: the end of the key, the names in `generation_config.json`, the type.
const SAMPLING: [(&str, &[&str], Kind); 12] = [
    ("sequence", &["sequence"], Kind::Text),
    ("top_k", &["top_k"], Kind::Integer),
    ("top_p", &["top_p"], Kind::Float),
    ("min_p", &["min_p"], Kind::Float),
    ("xtc_probability", &["xtc_probability"], Kind::Float),
    ("xtc_threshold", &["xtc_threshold"], Kind::Float),
    ("temp", &["temperature"], Kind::Float),
    ("penalty_last_n", &["penalty_last_n"], Kind::Integer),
    ("penalty_repeat", &["penalty_repeat", "repetition_penalty"], Kind::Float),
    ("mirostat", &["mirostat"], Kind::Integer),
    ("mirostat_tau", &["mirostat_tau"], Kind::Float),
    ("mirostat_eta", &["mirostat_eta"], Kind::Float),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Float,
}

/// A base model or a dataset.
type Source = [Option<String>; SOURCE_FIELDS.len()];

/// What the caller says about the model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AuthorshipOptions<'o> {
    /// A JSON object of keys, which count before those of the folder: `general.name`, `general.base_models` (a list of objects),
    /// `general.sampling.temp`, ...
    pub(crate) metadata: Option<&'o [u8]>,
    /// The name, before all others.
    pub(crate) name: Option<&'o str>,
}

/// Collected strings and lists.
#[derive(Debug, Default)]
struct Authorship {
    fields: [Option<String>; FIELDS.len()],
    base_models: Option<Vec<Source>>,
    datasets: Option<Vec<Source>>,
    tags: Option<Vec<String>>,
    languages: Option<Vec<String>>,
}

/// The keys of authorship and sampling, in order: from what the caller says, the front matter of README.md, `_name_or_path` of
/// `config.json`, and the name of the folder. `parameters` are the elements of the model, for its size; `total` is their number, negative
/// for an adapter, which has no size.
///
/// # Errors
///
/// [`ErrorKind::Card`] for front matter that is not YAML; [`ErrorKind::Json`], [`ErrorKind::NotUtf8`], [`ErrorKind::ConfigValue`],
/// [`ErrorKind::Limit`] for each of the files.
pub(crate) fn authorship(
    texts: &Texts,
    options: AuthorshipOptions<'_>,
    parameters: &ParameterCount,
    total: i64,
) -> Result<Keys, Error> {
    let metadata = match options.metadata {
        Some(bytes) => match Json::from_bytes(METADATA, bytes).map_err(of_metadata)? {
            Json::Object(metadata) => metadata,
            other => return Err(wrong_metadata("", "an object", &other)),
        },
        None => Object::default(),
    };
    let mut keys = Keys::new();
    sampling(texts, &metadata, &mut keys)?;
    let mut authorship = Authorship::default();
    let names = Names::new()?;
    authorship.read_card(&Card::from_texts(texts)?, &names, total)?;
    let config = match texts.get("config.json") {
        Some(bytes) => object("config.json", Json::from_bytes("config.json", bytes)?)?,
        None => Object::default(),
    };
    let path = config.get("_name_or_path").and_then(Json::as_str);
    for name in path.filter(|path| path.matches('/').count() <= 1).into_iter().chain([texts.folder()]) {
        authorship.read_name(name, &names, total);
    }
    authorship.override_with(&metadata)?;
    if let Some(name) = options.name {
        authorship.fields[0] = Some(name.into());
    }
    authorship.fields[0].get_or_insert_with(|| texts.folder().into());
    if total > 0 {
        authorship.field("size_label").get_or_insert_with(|| size_label(parameters));
    }
    authorship.set_keys(&mut keys);
    Ok(keys)
}

impl Authorship {
    fn field(&mut self, key: &str) -> &mut Option<String> {
        let idx = FIELDS.iter().position(|field| field.key == key).unwrap_or_default();
        &mut self.fields[idx]
    }

    fn read_card(&mut self, card: &Card, names: &Names, parameters: i64) -> Result<(), Error> {
        for (field, value) in FIELDS.iter().zip(&mut self.fields) {
            for name in field.names {
                if let (None, Some((line, yaml))) = (&value, card.get(name)) {
                    *value = text(yaml, field.key == "license").map_err(|what| wrong(line, what))?;
                }
            }
        }
        self.base_models =
            sources(card, &["base_model", "base_models", "base_model_sources"], names, parameters)?;
        self.datasets = sources(card, &["datasets", "dataset", "dataset_sources"], names, parameters)?;
        for (list, names) in
            [(&mut self.tags, ["tags", "pipeline_tag"]), (&mut self.languages, ["languages", "language"])]
        {
            for (line, yaml) in names.iter().filter_map(|name| card.get(name)) {
                append(list, yaml).map_err(|what| wrong(line, what))?;
            }
        }
        Ok(())
    }

    /// Takes a name apart, for what is not known yet.
    fn read_name(&mut self, id: &str, names: &Names, parameters: i64) {
        let parts = names.parts(id, parameters);
        let organization = parts.organization.as_deref().map(|name| names.title(name));
        for (key, value) in [
            ("name", Some(names.title(&parts.name))),
            ("organization", organization),
            ("basename", parts.basename),
            ("finetune", parts.finetune),
            ("version", parts.version),
            ("size_label", parts.size_label),
        ] {
            let field = self.field(key);
            *field = field.take().or(value);
        }
    }

    /// The values of the caller count, also null.
    fn override_with(&mut self, metadata: &Object) -> Result<(), Error> {
        for (field, value) in FIELDS.iter().zip(&mut self.fields) {
            let name = format!("general.{}", field.key);
            if let Some(json) = metadata.get(&name).filter(|_| field.key != "license") {
                *value = match json {
                    Json::Null => None,
                    Json::String(text) => Some((**text).into()),
                    other => return Err(wrong_metadata(&name, "a string", other)),
                };
            }
        }
        for (list, name) in
            [(&mut self.base_models, "general.base_models"), (&mut self.datasets, "general.datasets")]
        {
            if let Some(json) = metadata.get(name) {
                *list = json_list(name, json)?
                    .map(|items| items.iter().map(|item| json_source(name, item)).collect())
                    .transpose()?;
            }
        }
        for (list, name) in [(&mut self.tags, "general.tags"), (&mut self.languages, "general.languages")] {
            if let Some(json) = metadata.get(name) {
                let string = |item: &Json| {
                    let text = item.as_str().map(String::from);
                    text.ok_or_else(|| wrong_metadata(name, "a list of strings", item))
                };
                *list = json_list(name, json)?.map(|items| items.iter().map(string).collect()).transpose()?;
            }
        }
        Ok(())
    }

    fn set_keys(self, keys: &mut Keys) {
        for (field, value) in FIELDS.iter().zip(self.fields) {
            keys.set_some(format!("general.{}", field.key), value);
        }
        for (list, name) in [(self.base_models, "base_model"), (self.datasets, "dataset")] {
            let Some(list) = list else { continue };
            keys.set(format!("general.{name}.count"), list.len() as u32);
            for (idx, source) in list.into_iter().enumerate() {
                for (field, value) in SOURCE_FIELDS.iter().zip(source) {
                    keys.set_some(format!("general.{name}.{idx}.{field}"), value);
                }
            }
        }
        keys.set_some("general.tags", self.tags);
        keys.set_some("general.languages", self.languages);
    }
}

/// The size of a model, as names write it: `7B`, `8x7B`.
fn size_label(parameters: &ParameterCount) -> String {
    let count = |count: u64| {
        let count = count as f64;
        let (scaled, unit) = match count {
            _ if count > 1e12 => (count * 1e-12, "T"),
            _ if count > 1e9 => (count * 1e-9, "B"),
            _ if count > 1e6 => (count * 1e-6, "M"),
            _ => (count * 1e-3, "K"),
        };
        // Two digits at least.
        let n_digits = format!("{scaled:.0}").trim_start_matches('0').len();
        format!("{scaled:.*}{unit}", 2_usize.saturating_sub(n_digits))
    };
    match parameters.experts {
        0 => count(parameters.total),
        experts => format!("{experts}x{}", count(parameters.shared + parameters.expert)),
    }
}

/// Settings of sampling: those of the caller, else those of `generation_config.json`, which is ignored if it is not JSON.
fn sampling(texts: &Texts, metadata: &Object, keys: &mut Keys) -> Result<(), Error> {
    let config = match texts.get(GENERATION).map(|bytes| Json::from_bytes(GENERATION, bytes)) {
        None => Object::default(),
        Some(Ok(json)) => object(GENERATION, json)?,
        Some(Err(error)) if matches!(error.kind(), ErrorKind::Json { .. }) => Object::default(),
        Some(Err(error)) => return Err(error),
    };
    for (key, names, kind) in SAMPLING {
        let key = format!("general.sampling.{key}");
        let own = names.iter().find_map(|name| config.get(name)).map(|json| (GENERATION, json));
        let Some((file, json)) = metadata.get(&key).map(|json| (METADATA, json)).or(own) else { continue };
        let wrong = |expected| match file {
            METADATA => Err(wrong_metadata(&key, expected, json)),
            _ => Err(ErrorKind::value(file, &key, expected, json)),
        };
        let value: Value = match (kind, json) {
            (_, Json::Null) => continue,
            (Kind::Text, Json::String(text)) => (**text).into(),
            (Kind::Text, _) => return wrong("a string"),
            (Kind::Integer, _) => match json.as_i64().and_then(|number| i32::try_from(number).ok()) {
                Some(number) => number.into(),
                None => return wrong("an integer of 32 bits"),
            },
            (Kind::Float, _) => match json.as_f64().map(|number| number as f32) {
                Some(number) if number.is_finite() => number.into(),
                Some(_) => return wrong("a number within the range of 32 bits"),
                None => return wrong("a number"),
            },
        };
        keys.set(key, value);
    }
    Ok(())
}

/// Of a file of the caller that is no JSON.
fn of_metadata(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Limit { .. } => error,
        kind => {
            let new = Error::from(ErrorKind::Metadata { what: kind.to_string().into() });
            match error.offset() {
                Some(offset) => new.at(offset),
                None => new,
            }
        }
    }
}

/// Of a value of the caller.
fn wrong_metadata(name: &str, expected: &str, found: &Json) -> Error {
    let what = format!("{METADATA}: expected {expected}, found {}", found.shown()).into();
    let error = Error::from(ErrorKind::Metadata { what });
    // The whole file has no name.
    if name.is_empty() { error } else { error.of(Subject::key(name)) }
}

fn object(file: &str, json: Json) -> Result<Object, Error> {
    match json {
        Json::Object(object) => Ok(object),
        other => Err(ErrorKind::value(file, "", "an object", &other)),
    }
}

/// A list of the caller; `None` for null.
fn json_list<'j>(name: &str, json: &'j Json) -> Result<Option<&'j [Json]>, Error> {
    match json {
        Json::Null => Ok(None),
        Json::Array(items) if items.len() > MAX_ENTRIES => {
            Err(ErrorKind::limit(METADATA, "entries in a list", MAX_ENTRIES))
        }
        Json::Array(items) => Ok(Some(items)),
        other => Err(wrong_metadata(name, "a list", other)),
    }
}

fn json_source(name: &str, json: &Json) -> Result<Source, Error> {
    if json.as_object().is_none() {
        return Err(wrong_metadata(name, "a list of objects", json));
    }
    let mut source = Source::default();
    for (field, value) in SOURCE_FIELDS.iter().zip(&mut source) {
        if let Some(json) = json.get(field) {
            let text = json.as_str().map(String::from);
            *value = Some(text.ok_or_else(|| wrong_metadata(name, "objects of strings", json))?);
        }
    }
    Ok(source)
}

/// The text of a value of the front matter; `None` for null. What Python takes for false is no text.
fn text(yaml: &Yaml, joins: bool) -> Result<Option<String>, &'static str> {
    match yaml {
        Yaml::Scalar(scalar) if scalar.is_null() => Ok(None),
        Yaml::Scalar(scalar) if scalar.is_false() => Ok(Some(String::new())),
        Yaml::Scalar(scalar) => Ok(Some(scalar.text.clone())),
        Yaml::List(items) if joins => {
            let text =
                |item: &Yaml| if let Yaml::Scalar(scalar) = item { Some(scalar.text.clone()) } else { None };
            let texts: Option<Vec<String>> = items.iter().map(text).collect();
            texts.map(|texts| Some(texts.join(","))).ok_or("expected text or a list of texts")
        }
        Yaml::List(_) | Yaml::Map(_) => Err("expected text, found a list or a mapping"),
    }
}

/// Appends text, or a list of texts; null, numbers and truth values leave the list as it is.
fn append(list: &mut Option<Vec<String>>, yaml: &Yaml) -> Result<(), &'static str> {
    match yaml {
        Yaml::Scalar(scalar) if scalar.is_null() => return Ok(()),
        Yaml::Scalar(scalar) if scalar.is_text() => list.get_or_insert_default().push(scalar.text.clone()),
        Yaml::Scalar(_) | Yaml::Map(_) => {
            list.get_or_insert_default();
        }
        Yaml::List(items) => {
            for item in items {
                let Yaml::Scalar(scalar) = item else { return Err("expected a list of texts") };
                list.get_or_insert_default().push(scalar.text.clone());
            }
        }
    }
    if list.as_ref().is_some_and(|list| list.len() > MAX_ENTRIES) {
        return Err("the list has more than 10000 entries");
    }
    Ok(())
}

/// Base models or datasets: the value of the first name that is there.
fn sources(
    card: &Card,
    members: &[&str],
    names: &Names,
    parameters: i64,
) -> Result<Option<Vec<Source>>, Error> {
    let Some((line, yaml)) = members.iter().find_map(|name| card.get(name)) else { return Ok(None) };
    let one = core::slice::from_ref(yaml);
    let items = match yaml {
        Yaml::Scalar(scalar) if scalar.is_text() => one,
        Yaml::Scalar(_) | Yaml::Map(_) => &[],
        Yaml::List(items) => items,
    };
    if items.len() > MAX_ENTRIES {
        return Err(wrong(line, "the list has more than 10000 entries"));
    }
    let source = |item: &Yaml| match item {
        Yaml::Scalar(scalar) if scalar.is_text() => Ok(source_of(&scalar.text, names, parameters)),
        Yaml::Scalar(_) | Yaml::List(_) => Ok(Source::default()),
        Yaml::Map(members) => {
            let mut source = Source::default();
            for (field, value) in SOURCE_FIELDS.iter().zip(&mut source) {
                // Of equal names the last counts.
                if let Some((_, yaml)) = members.iter().rev().find(|(name, _)| name == field) {
                    *value = text(yaml, false).map_err(|what| wrong(line, what))?;
                }
            }
            Ok(source)
        }
    };
    items.iter().map(source).collect::<Result<_, _>>().map(Some)
}

/// A base model or a dataset by its name or its address.
fn source_of(id: &str, names: &Names, parameters: i64) -> Source {
    let [mut name, mut version, mut organization, mut repo_url] = [const { None }; 4];
    let is_address = ["http://", "https://", "ssh://"].iter().any(|scheme| id.starts_with(scheme));
    let on_hub = id
        .strip_prefix("http://")
        .or_else(|| id.strip_prefix("https://"))
        .and_then(|rest| rest.strip_prefix(HUB));
    let path = match on_hub {
        Some(path) => path
            .split_once('/')
            .filter(|(org, name)| !org.is_empty() && !name.is_empty() && !name.contains('/'))
            .map(|_| path),
        None => (!is_address).then_some(id),
    };
    if let Some(path) = path {
        let parts = names.parts(path, parameters);
        name = Some(names.title(&parts.name));
        version = parts.version;
        organization = parts.organization.as_deref().map(|name| names.title(name));
        repo_url =
            parts.organization.map(|organization| format!("https://{HUB}{organization}/{}", parts.name));
    }
    if is_address {
        repo_url = Some(id.into());
    }
    [name, None, version, organization, None, None, None, None, repo_url]
}

/// Where addresses of models begin, after the scheme.
const HUB: &str = "huggingface.co/";

/// An error in the front matter.
fn wrong(line: u64, what: &'static str) -> Error {
    ErrorKind::Card { line, what }.into()
}
