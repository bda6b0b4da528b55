//! `config.json`, with the defaults of the class that it configures.

pub(crate) mod defaults;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::texts::Texts;

/// The method of quantization whose blocks are kept.
pub(crate) const MXFP4: &str = "mxfp4";
/// The method whose settings have another name than those of the others.
pub(crate) const MLX: &str = "MLX";
/// Expected of numbers in configurations: models do not compute with infinite ones.
pub(crate) const NUMBER: &str = "a number";
pub(crate) const FINITE: &str = "a finite number";
pub(crate) const FINITE_F32: &str = "a number within the range of 32 bits";
/// Name of the file.
const FILE: &str = "config.json";
/// Names under which models of several parts keep the configuration of the language model.
const TEXT_PARTS: &[&str] = &["text_config", "llm_config", "lm_config", "language_config"];

/// The configuration of a language model.
///
/// A value is looked up by the names that it has in the configurations of different classes, of which the first that is
/// present counts, also if it is null: then there is no value.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    values: Object,
}

impl Config {
    /// Reads `config.json`, and adds the defaults that transformers 4.57.6 has for its `model_type`. Values of a `text_config`
    /// in it are those of the model.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingFile`], [`ErrorKind::NotUtf8`], [`ErrorKind::Json`]; [`ErrorKind::ConfigValue`] if it is not an object.
    pub fn from_texts(texts: &Texts) -> Result<Self, Error> {
        let bytes = texts.get(FILE).ok_or_else(|| ErrorKind::MissingFile { file: FILE.into() })?;
        let mut values = match Json::from_bytes(FILE, bytes)? {
            Json::Object(values) => values,
            other => {
                let (expected, found) = ("an object", other.kind_name().into());
                return Err(ErrorKind::ConfigValue { file: FILE.into(), expected, found }.into());
            }
        };
        defaults::complete(&mut values);
        let part = TEXT_PARTS.iter().find_map(|name| values.get(name).and_then(Json::as_object));
        if let Some(mut part) = part.cloned() {
            defaults::complete(&mut part);
            // The class of the whole counts where the part names none.
            let counts = |(name, value): &(&str, &Json)| *name != "architectures" || !value.is_null();
            let members = values.iter().chain(part.iter().filter(counts));
            let members: Vec<_> = members.map(|(name, value)| (name.into(), value.clone())).collect();
            values = members.into();
        }
        Ok(Self { values })
    }

    /// The class of the model: the first of `architectures`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigMissing`].
    pub fn class(&self) -> Result<&str, Error> {
        let classes = self.get("architectures").and_then(Json::as_array);
        let first = classes.and_then(<[Json]>::first).and_then(Json::as_str);
        first.ok_or_else(|| missing(&["architectures"]))
    }

    /// How the tensors are quantized, by the `quantization_config`.
    pub(crate) fn quantization_method(&self) -> Option<&str> {
        self.get("quantization_config")?.get("quant_method")?.as_str()
    }

    /// The method by which the tensors are quantized, also where it is not named: MLX has settings of its own, and old files of
    /// bitsandbytes have flags.
    pub(crate) fn quantization(&self) -> Option<&str> {
        if self.get("quantization").is_some() {
            return Some(MLX);
        }
        let settings = self.get("quantization_config")?;
        let is_set = |name| settings.get(name).and_then(Json::as_bool) == Some(true);
        let by_flag = || (is_set("load_in_4bit") || is_set("load_in_8bit")).then_some("bitsandbytes");
        self.quantization_method().or_else(by_flag)
    }

    /// The value under this name; `None` if there is none or it is null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.find(&[name])
    }

    /// The value under the first of these names that is present; `None` if none is, or if it is null.
    #[must_use]
    pub fn find(&self, names: &[&str]) -> Option<&Json> {
        names.iter().find_map(|name| self.values.get(name)).filter(|value| !value.is_null())
    }

    /// Whether the name is present, also if the value is null.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.values.get(name).is_some()
    }

    /// A count, an index or a dimension.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigValue`] if it is no integer from 0 to 2^32 - 1.
    pub fn u32(&self, names: &[&str]) -> Result<Option<u32>, Error> {
        let Some(value) = self.find(names) else { return Ok(None) };
        let number = value.as_i64().and_then(|number| u32::try_from(number).ok());
        number.map(Some).ok_or_else(|| self.unexpected(names, "an integer from 0 to 2^32 - 1"))
    }

    /// A number, rounded to the nearest float of 32 bits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigValue`] if it is not a finite number of 32 bits.
    pub fn f32(&self, names: &[&str]) -> Result<Option<f32>, Error> {
        let Some(number) = self.f64(names)?.map(|number| number as f32) else { return Ok(None) };
        if number.is_finite() { Ok(Some(number)) } else { Err(self.unexpected(names, FINITE_F32)) }
    }

    /// A number, as a float of 64 bits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigValue`] if it is not a finite number.
    pub fn f64(&self, names: &[&str]) -> Result<Option<f64>, Error> {
        let Some(value) = self.find(names) else { return Ok(None) };
        let number = value.as_f64().ok_or_else(|| self.unexpected(names, NUMBER))?;
        if number.is_finite() { Ok(Some(number)) } else { Err(self.unexpected(names, FINITE)) }
    }

    /// A truth value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigValue`] if it is another value.
    pub fn bool(&self, names: &[&str]) -> Result<Option<bool>, Error> {
        let Some(value) = self.find(names) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.unexpected(names, "true or false"))
    }

    /// A string.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigValue`] if it is another value.
    pub fn str(&self, names: &[&str]) -> Result<Option<&str>, Error> {
        let Some(value) = self.find(names) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.unexpected(names, "a string"))
    }

    /// The count, index or dimension that the model cannot do without.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigMissing`], [`ErrorKind::ConfigValue`].
    pub fn need_u32(&self, names: &[&str]) -> Result<u32, Error> {
        self.u32(names)?.ok_or_else(|| missing(names))
    }

    /// The number that the model cannot do without.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigMissing`], [`ErrorKind::ConfigValue`].
    pub fn need_f32(&self, names: &[&str]) -> Result<f32, Error> {
        self.f32(names)?.ok_or_else(|| missing(names))
    }

    /// The number that the model cannot do without, as a float of 64 bits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigMissing`], [`ErrorKind::ConfigValue`].
    pub fn need_f64(&self, names: &[&str]) -> Result<f64, Error> {
        self.f64(names)?.ok_or_else(|| missing(names))
    }

    /// Sets a value, as the reference implementation does for some classes.
    pub(crate) fn set(&mut self, name: &str, value: Json) {
        self.values.set(name, value);
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, name: &str) {
        self.values.remove(name);
    }

    /// Of a value of a wrong type, under the first of the names that is present.
    pub(crate) fn unexpected(&self, names: &[&str], expected: &'static str) -> Error {
        let name = names.iter().find(|name| self.has(name)).copied().unwrap_or_default();
        let found = self.values.get(name).map_or("nothing", Json::shown).into();
        let kind = ErrorKind::ConfigValue { file: FILE.into(), expected, found };
        Error::from(kind).of(located_error::Subject::key(name))
    }
}

/// Of a value that the model needs.
pub(crate) fn missing(names: &[&str]) -> Error {
    let quoted = names.iter().map(|name| format!("`{name}`"));
    let names = quoted.reduce(|all, name| all + " or " + &name).unwrap_or_else(String::new);
    ErrorKind::ConfigMissing { file: FILE.into(), names: names.into() }.into()
}
