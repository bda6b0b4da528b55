//! Folders of the vectors with changes.

use hf_gguf::{Conversion, Error, Options, Parts, SourceTensor, Texts};
use serde_json::Value;
use tensor_dtype::Dtype;

use crate::folder::{Folder, vectors};

/// A folder of the vectors, to be changed.
pub(crate) struct Changed {
    pub(crate) texts: Texts,
    pub(crate) config: Value,
    /// Members of the configuration that JSON values of tests do not have, as they are spelled.
    raw: Vec<(String, String)>,
    files: Vec<String>,
    pub(crate) tables: Vec<Vec<SourceTensor>>,
}

impl Changed {
    pub(crate) fn of(name: &str) -> Self {
        let folder = Folder::open(&vectors().join(name));
        let config = serde_json::from_slice(folder.texts.get("config.json").unwrap()).unwrap();
        Self {
            config,
            raw: Vec::new(),
            files: folder.parts.files.clone(),
            texts: folder.texts,
            tables: folder.tables,
        }
    }

    pub(crate) fn set(mut self, name: &str, value: Value) -> Self {
        self.config[name] = value;
        self
    }

    /// A number that JSON does not have.
    pub(crate) fn raw(mut self, name: &str, value: &str) -> Self {
        self.config.as_object_mut().unwrap().remove(name);
        self.raw.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.config.as_object_mut().unwrap().remove(name);
        self
    }

    pub(crate) fn text(mut self, name: &str, text: &str) -> Self {
        self.texts.insert(name, text.into());
        self
    }

    pub(crate) fn tensor(mut self, name: &str, dtype: Dtype, shape: &[u64]) -> Self {
        self.tables[0].push(SourceTensor { name: name.into(), dtype, shape: shape.into() });
        self
    }

    pub(crate) fn each(mut self, mut change: impl FnMut(&mut SourceTensor)) -> Self {
        self.tables.iter_mut().flatten().for_each(&mut change);
        self
    }

    pub(crate) fn removed(mut self, part: &str) -> Self {
        self.tables.iter_mut().for_each(|table| table.retain(|tensor| !tensor.name.contains(part)));
        self
    }

    /// The tensors of all files.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &SourceTensor> {
        self.tables.iter().flatten()
    }

    /// The small files, with the configuration.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let own = self.texts.beginning_with("").filter(|(name, _)| *name != "config.json");
        let mut files: Vec<_> = own.map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect();
        files.push(("config.json".to_owned(), self.config.to_string().into_bytes()));
        files
    }

    pub(crate) fn convert(mut self) -> Result<Conversion, Error> {
        let mut config = self.config.to_string();
        for (name, value) in &self.raw {
            config.truncate(config.len() - 1);
            config.push_str(&format!(",\"{name}\":{value}}}"));
        }
        self.texts.insert("config.json", config.into_bytes());
        let parts = Parts::find(&self.texts, self.files.iter().map(String::as_str))?;
        let mut options = Options::default();
        // Tokenizers of the vectors are unknown.
        options.pre = Some("gpt-2".into());
        Conversion::new(&self.texts, &parts, &self.tables, &options)
    }

    pub(crate) fn code(self) -> &'static str {
        match self.convert() {
            Ok(_) => "converted",
            Err(error) => {
                assert!(error.entry().is_some_and(|entry| !entry.meaning.is_empty()), "{error}");
                error.code()
            }
        }
    }
}

pub(crate) fn llama() -> Changed {
    Changed::of("Tiny-Llama2-110K-Chat")
}

/// That model with a matrix of codes.
pub(crate) fn coded() -> Changed {
    llama().each(|tensor| {
        if tensor.name.ends_with("0.mlp.up_proj.weight") {
            tensor.dtype = Dtype::I8;
        }
    })
}
