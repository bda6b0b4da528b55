//! The small files of a model folder.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// Largest file that is read for its text: tokenizers of 260,000 tokens have 35 MB.
const MAX_TEXT: u64 = 100 << 20;
/// Largest card or template.
const MAX_PROSE: u64 = 16 << 20;

/// Names of the files that are read, with the most bytes that they may have.
const NAMES: &[(&str, u64)] = &[
    ("config.json", MAX_PROSE),
    ("generation_config.json", MAX_PROSE),
    ("README.md", MAX_PROSE),
    ("modules.json", MAX_PROSE),
    ("tokenizer.json", MAX_TEXT),
    ("tokenizer.model", MAX_TEXT),
    ("spiece.model", MAX_TEXT),
    ("sentencepiece.bpe.model", MAX_TEXT),
    ("tekken.json", MAX_TEXT),
    ("tokenizer_config.json", MAX_PROSE),
    ("special_tokens_map.json", MAX_PROSE),
    ("added_tokens.json", MAX_PROSE),
    ("vocab.json", MAX_TEXT),
    ("vocab.txt", MAX_TEXT),
    ("merges.txt", MAX_TEXT),
    ("chat_template.jinja", MAX_PROSE),
    ("chat_template.json", MAX_PROSE),
    ("preprocessor_config.json", MAX_PROSE),
    ("hf_quant_config.json", MAX_PROSE),
    ("adapter_config.json", MAX_PROSE),
    ("params.json", MAX_PROSE),
    ("model.safetensors.index.json", MAX_TEXT),
    ("pytorch_model.bin.index.json", MAX_TEXT),
    ("adapter_model.safetensors.index.json", MAX_TEXT),
    ("adapter_model.bin.index.json", MAX_TEXT),
];

/// Folders whose files are read, with the ending of their names.
const FOLDERS: &[(&str, &str, u64)] =
    &[("additional_chat_templates/", ".jinja", MAX_PROSE), ("", "_Pooling/config.json", MAX_PROSE)];

/// Files of a model folder that are read as a whole, and the name of the folder, which goes into the GGUF file. The caller reads
/// them, from a disk or elsewhere: those for which [`max_len`](Self::max_len) gives a length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    folder: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Texts {
    /// No files, of a folder of this name.
    #[must_use]
    pub fn new(folder: impl Into<String>) -> Self {
        Self { folder: folder.into(), files: BTreeMap::new() }
    }

    /// The most bytes that a file may have to be read; `None` if files of this name are not read. `name` is a path within the
    /// folder, with `/`.
    #[must_use]
    pub fn max_len(name: &str) -> Option<u64> {
        let by_name = NAMES.iter().find(|(own, _)| *own == name).map(|(_, max)| *max);
        by_name.or_else(|| {
            let found = FOLDERS.iter().find(|(folder, ending, _)| {
                name.strip_prefix(folder).is_some_and(|rest| rest.ends_with(ending))
                    && name.matches('/').count() == 1
            });
            found.map(|(_, _, max)| *max)
        })
    }

    /// Adds a file, or replaces it.
    pub fn insert(&mut self, name: impl Into<String>, bytes: Vec<u8>) {
        self.files.insert(name.into(), bytes);
    }

    /// The files by name.
    pub(crate) fn into_files(self) -> impl Iterator<Item = (String, Vec<u8>)> {
        self.files.into_iter()
    }

    /// The bytes of a file.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// The files whose names begin like this, sorted by name.
    pub fn beginning_with<'t>(&'t self, prefix: &'t str) -> impl Iterator<Item = (&'t str, &'t [u8])> {
        let files = self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        files.filter(move |(name, _)| name.starts_with(prefix))
    }

    /// Name of the folder, without the path to it.
    #[must_use]
    pub fn folder(&self) -> &str {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_files_are_read() {
        assert!(Texts::max_len("config.json").is_some());
        assert!(Texts::max_len("1_Pooling/config.json").is_some());
        assert!(Texts::max_len("additional_chat_templates/tool_use.jinja").is_some());
        for name in [
            "model.safetensors",
            "x/config.json",
            "additional_chat_templates/a/b.jinja",
            "../config.json",
            "",
        ] {
            assert_eq!(Texts::max_len(name), None, "{name}");
        }
    }
}
