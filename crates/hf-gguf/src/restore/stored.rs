//! A GGUF file, as far as its header says.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use located_error::Subject;

use crate::error::{Error, ErrorKind};
use crate::keys::{Keys, Value};
use crate::tensors::SourceTensor;

/// Keys, tensors, and the values of those that configurations give.
#[derive(Debug)]
pub(crate) struct Stored<'s> {
    keys: &'s Keys,
    tensors: &'s [SourceTensor],
    values: &'s BTreeMap<String, Vec<f32>>,
    by_name: BTreeMap<&'s str, usize>,
    architecture: &'s str,
}

impl<'s> Stored<'s> {
    /// # Errors
    ///
    /// If there is no architecture, or two tensors have one name.
    pub(crate) fn new(
        keys: &'s Keys,
        tensors: &'s [SourceTensor],
        values: &'s BTreeMap<String, Vec<f32>>,
    ) -> Result<Self, Error> {
        const ARCHITECTURE: &str = "general.architecture";
        let architecture = keys.get(ARCHITECTURE).and_then(Value::as_str);
        let architecture =
            architecture.ok_or_else(|| Error::from(ErrorKind::KeyMissing).of(Subject::key(ARCHITECTURE)))?;
        let mut by_name = BTreeMap::new();
        for (number, tensor) in tensors.iter().enumerate() {
            if by_name.insert(tensor.name.as_str(), number).is_some() {
                return Err(Error::from(ErrorKind::DuplicateTensor).of(Subject::tensor(&tensor.name)));
            }
        }
        Ok(Self { keys, tensors, values, by_name, architecture })
    }

    /// Its name of the architecture.
    pub(crate) const fn architecture(&self) -> &'s str {
        self.architecture
    }

    /// All keys.
    pub(crate) const fn keys(&self) -> &'s Keys {
        self.keys
    }

    /// All tensors.
    pub(super) const fn tensors(&self) -> &'s [SourceTensor] {
        self.tensors
    }

    /// The number of a tensor.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Whether there is a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The shape of a tensor, the slowest dimension first.
    pub(crate) fn shape(&self, name: &str) -> Option<&'s [u64]> {
        self.number(name).and_then(|number| self.tensors.get(number)).map(|tensor| tensor.shape.as_slice())
    }

    /// The values of a tensor that configurations give.
    pub(crate) fn values(&self, name: &str) -> Option<&'s [f32]> {
        self.values.get(name).map(Vec::as_slice)
    }

    /// The value of any key.
    pub(crate) fn global(&self, key: &str) -> Option<&'s Value> {
        self.keys.get(key)
    }

    fn own_name(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// The value of a key of the architecture.
    pub(crate) fn key(&self, key: &str) -> Option<&'s Value> {
        self.keys.get(&self.own_name(key))
    }

    fn wrong(&self, key: &str, expected: &'static str) -> Error {
        Error::from(ErrorKind::KeyValue { expected }).of(Subject::key(&self.own_name(key)))
    }

    /// A number of a key of the architecture.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyValue`] for another value.
    pub(crate) fn u32(&self, key: &str) -> Result<Option<u32>, Error> {
        let number = match self.key(key) {
            None => return Ok(None),
            Some(Value::U32(number)) => Some(*number),
            Some(Value::U16(number)) => Some(u32::from(*number)),
            Some(Value::I32(number)) => u32::try_from(*number).ok(),
            Some(Value::U64(number)) => u32::try_from(*number).ok(),
            Some(_) => None,
        };
        number.map(Some).ok_or_else(|| self.wrong(key, "an integer from 0 to 2^32 - 1"))
    }

    /// A number that the model cannot do without.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyMissing`], [`ErrorKind::KeyValue`].
    pub(crate) fn need_u32(&self, key: &str) -> Result<u32, Error> {
        self.u32(key)?.ok_or_else(|| self.missing(key))
    }

    /// A float of a key of the architecture.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyValue`] for another value.
    pub(crate) fn f32(&self, key: &str) -> Result<Option<f32>, Error> {
        match self.key(key) {
            None => Ok(None),
            Some(Value::F32(number)) => Ok(Some(*number)),
            Some(_) => Err(self.wrong(key, "a float of 32 bits")),
        }
    }

    /// A truth value of a key of the architecture.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyValue`] for another value.
    pub(crate) fn bool(&self, key: &str) -> Result<Option<bool>, Error> {
        match self.key(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    /// A string of a key of the architecture.
    pub(crate) fn str(&self, key: &str) -> Option<&'s str> {
        self.key(key).and_then(Value::as_str)
    }

    /// Of a key of the architecture that is missing.
    pub(crate) fn missing(&self, key: &str) -> Error {
        Error::from(ErrorKind::KeyMissing).of(Subject::key(&self.own_name(key)))
    }

    /// Elements of all tensors.
    pub(crate) fn n_elements(&self) -> u64 {
        self.tensors.iter().map(SourceTensor::count).fold(0, u64::saturating_add)
    }

    /// The model of the tokenizer.
    pub(crate) fn tokenizer(&self) -> &'s str {
        self.global("tokenizer.ggml.model").and_then(Value::as_str).unwrap_or_default()
    }

    /// The strings of the vocabulary.
    pub(crate) fn tokens(&self) -> &'s [String] {
        match self.global("tokenizer.ggml.tokens") {
            Some(Value::Strings(tokens)) => tokens,
            _ => &[],
        }
    }
}
