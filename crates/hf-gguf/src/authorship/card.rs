//! The card of a model: the front matter of README.md.

use alloc::string::String;
use alloc::vec::Vec;

use super::wrong;
use super::yaml::{Reader, Yaml};
use crate::error::Error;
use crate::text::python_text;
use crate::texts::Texts;

/// Name of the file.
const FILE: &str = "README.md";

/// Names whose values are read. Others may be of any form.
const NAMES: &[&str] = &[
    "name",
    "author",
    "version",
    "organization",
    "description",
    "finetune",
    "basename",
    "size_label",
    "url",
    "doi",
    "uuid",
    "repo_url",
    "model_name",
    "model_author",
    "model_version",
    "model_organization",
    "model_description",
    "model_finetune",
    "model_basename",
    "model_size_label",
    "model_url",
    "model_doi",
    "model_uuid",
    "model_repo_url",
    "model_creator",
    "model_type",
    "base_model",
    "base_models",
    "base_model_sources",
    "datasets",
    "dataset",
    "dataset_sources",
    "license",
    "license_name",
    "license_link",
    "tags",
    "pipeline_tag",
    "languages",
    "language",
];

/// Values of the front matter, with the lines where they begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Card(Vec<(String, u64, Yaml)>);

impl Card {
    /// Reads the front matter: YAML between two lines `---`, the first of which begins the file. Nothing if there is none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotUtf8`](crate::ErrorKind::NotUtf8), [`ErrorKind::Card`](crate::ErrorKind::Card).
    pub(super) fn from_texts(texts: &Texts) -> Result<Self, Error> {
        let Some(bytes) = texts.get(FILE) else { return Ok(Self::default()) };
        let text = python_text(FILE, bytes)?;
        let mut lines = text.split(is_line_end);
        if lines.next() != Some("---") {
            return Ok(Self::default());
        }
        // As the reference does: an item `no` is Norwegian, and tabs stand for two spaces.
        let line = |line: &str| match line.strip_suffix("- no") {
            Some(rest) => alloc::format!("{rest}- \"no\""),
            None => line.replace('\t', "  "),
        };
        let lines: Vec<String> = lines.take_while(|line| *line != "---").map(line).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        Self::from_lines(&lines)
    }

    /// The value of a name, and its line.
    pub(super) fn get(&self, name: &str) -> Option<(u64, &Yaml)> {
        // Of equal names the last counts.
        self.0.iter().rev().find(|(own, _, _)| own == name).map(|(_, line, yaml)| (*line, yaml))
    }

    fn from_lines(lines: &[&str]) -> Result<Self, Error> {
        let mut card = Self::default();
        let mut reader = Reader::new(lines);
        while let Some(entry) = reader.entry().map_err(|stop| wrong(stop.line, stop.what))? {
            let name = entry.name;
            if !NAMES.contains(&&*name) {
                reader.skip_value();
                continue;
            }
            let value = reader.value().map_err(|stop| wrong(stop.line, stop.what))?;
            card.0.push((name, entry.line, value));
        }
        Ok(card)
    }
}

/// Where Python's `splitlines` ends a line, after `\r` has been read as `\n`.
const fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
