//! Post-processors: tokens before and after the text.

use alloc::vec::Vec;

use super::{Halt, str_of};
use crate::error::ErrorKind;
use crate::json::Json;
use crate::tokenizer::file::FILE;

/// Most ids of a text with the tokens around it.
const MAX_IDS: usize = 1 << 17;

/// A post-processor.
#[derive(Debug)]
pub(super) enum Post {
    /// Each item: ids, or the text.
    Template(Vec<Option<Vec<u32>>>),
    Sequence(Vec<Self>),
}

impl Post {
    pub(super) fn new(json: &Json, levels: usize) -> Result<Self, Halt> {
        let kind = str_of(json, "type").unwrap_or_default();
        Ok(match kind {
            "TemplateProcessing" => Self::template(json)?,
            "RobertaProcessing" | "BertProcessing" => {
                let id = |name: &str| {
                    let pair = json.get(name).and_then(Json::as_array).and_then(|pair| pair.get(1));
                    let id = pair.and_then(Json::as_i64).and_then(|id| u32::try_from(id).ok());
                    id.ok_or_else(|| ErrorKind::missing(FILE, "an id in `post_processor`"))
                };
                Self::around(alloc::vec![id("cls")?], alloc::vec![id("sep")?])
            }
            "ByteLevel" => Self::Sequence(Vec::new()),
            "Sequence" => {
                let levels = levels
                    .checked_sub(1)
                    .ok_or_else(|| Halt::missing("a post-processor of so many levels"))?;
                let all = json.get("processors").and_then(Json::as_array).unwrap_or_default();
                Self::Sequence(all.iter().map(|json| Self::new(json, levels)).collect::<Result<_, _>>()?)
            }
            _ => return Err(Halt::missing(&alloc::format!("the post-processor `{kind}`"))),
        })
    }

    /// Tokens before and after the text.
    pub(super) fn around(before: Vec<u32>, after: Vec<u32>) -> Self {
        Self::Template(alloc::vec![Some(before), None, Some(after)])
    }

    fn template(json: &Json) -> Result<Self, Halt> {
        let items = json.get("single").and_then(Json::as_array).unwrap_or_default();
        let mut template = Vec::with_capacity(items.len());
        for item in items {
            if let Some(sequence) = item.get("Sequence") {
                if str_of(sequence, "id") == Some("B") {
                    return Err(Halt::missing("a template for one text with a second one"));
                }
                template.push(None);
                continue;
            }
            let name = item.get("SpecialToken").and_then(|token| str_of(token, "id")).unwrap_or_default();
            let ids = json
                .get("special_tokens")
                .and_then(|tokens| tokens.get(name))
                .and_then(|token| token.get("ids"));
            let ids = ids
                .and_then(Json::as_array)
                .ok_or_else(|| ErrorKind::unknown(FILE, "`post_processor`", name))?;
            let id = |id: &Json| id.as_i64().and_then(|id| u32::try_from(id).ok());
            let ids: Option<Vec<u32>> = ids.iter().map(id).collect();
            template.push(Some(ids.ok_or_else(|| ErrorKind::missing(FILE, "an id in `post_processor`"))?));
        }
        Ok(Self::Template(template))
    }

    pub(super) fn apply(&self, ids: Vec<u32>) -> Result<Vec<u32>, Halt> {
        match self {
            Self::Sequence(all) => all.iter().try_fold(ids, |ids, step| step.apply(ids)),
            Self::Template(template) => {
                let mut all = Vec::new();
                for item in template {
                    all.extend_from_slice(item.as_deref().unwrap_or(&ids));
                    if all.len() > MAX_IDS {
                        return Err(Halt::missing("a post-processor that adds so many tokens"));
                    }
                }
                Ok(all)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(json: &str) -> Result<Vec<u32>, Halt> {
        let json = Json::from_bytes("x", json.as_bytes()).unwrap();
        Post::new(&json, 8)?.apply(alloc::vec![1, 2])
    }

    #[test]
    fn tokens_are_put_around_the_text() {
        let template = r#"{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [7, 8], "tokens": ["<s>"]}}}"#;
        assert_eq!(apply(template).unwrap(), [7, 8, 1, 2]);
        assert_eq!(
            apply(r#"{"type": "RobertaProcessing", "sep": ["</s>", 5], "cls": ["<s>", 0]}"#).unwrap(),
            [0, 1, 2, 5]
        );
        assert_eq!(apply(r#"{"type": "ByteLevel", "trim_offsets": true}"#).unwrap(), [1, 2]);
        let both =
            alloc::format!(r#"{{"type": "Sequence", "processors": [{{"type": "ByteLevel"}}, {template}]}}"#);
        assert_eq!(apply(&both).unwrap(), [7, 8, 1, 2]);
    }

    #[test]
    fn templates_of_unknown_tokens_are_refused() {
        let unknown = r#"{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}], "special_tokens": {}}"#;
        assert!(matches!(apply(unknown), Err(Halt::Error(_))));
        assert!(matches!(apply(r#"{"type": "RobertaProcessing", "cls": ["<s>", 0]}"#), Err(Halt::Error(_))));
        assert!(matches!(apply("{}"), Err(Halt::Missing(_))));
    }
}
