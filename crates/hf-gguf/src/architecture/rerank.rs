//! Rerankers of Qwen 3: decoders that say `yes` or `no`, as a classifier.

use alloc::format;
use alloc::string::String;
use alloc::vec;

use located_error::Subject;

use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::parameters::Parameters;
use crate::tensors::build::{Builder, Change, Incoming};
use crate::tensors::output::Output;
use crate::texts::Texts;
use crate::tokenizer;

/// Names of the families, in lower case.
const FAMILIES: [&str; 2] = ["qwen3-reranker", "qwen3-vl-reranker"];
/// The answers, in the order of the rows of the classifier.
const ANSWERS: [&str; 2] = ["yes", "no"];
/// The matrix of the classifier.
const CLASSIFIER: &str = "cls.output.weight";
/// The prompt that the model was trained with, around a query and a document.
const TEMPLATE: &str = concat!(
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. ",
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n",
    "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n",
    "<Query>: {query}\n<Document>: {document}<|im_end|>\n",
    "<|im_start|>assistant\n<think>\n\n</think>\n\n",
);

/// Whether the folder is that of a reranker: by a heading of its card, or a name.
fn is_reranker(config: &Config, texts: &Texts) -> bool {
    let card = String::from_utf8_lossy(texts.get("README.md").unwrap_or_default()).to_lowercase();
    let name = |name| config.get(name).and_then(Json::as_str).unwrap_or_default();
    let names = [texts.folder(), name("_name_or_path"), name("model_type")].map(str::to_lowercase);
    FAMILIES
        .iter()
        .any(|family| card.contains(&format!("# {family}")) || names.iter().any(|name| name.contains(family)))
}

fn is_tied(config: &Config) -> Result<bool, Error> {
    Ok(config.bool(&["tie_word_embeddings"])?.unwrap_or(false))
}

/// The keys of a classifier, and the prompt.
pub(super) fn keys(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    const RANK: u32 = 4;
    if is_reranker(parameters.config, parameters.texts) {
        parameters.set("pooling_type", RANK);
        parameters.set("classifier.output_labels", ANSWERS.map(String::from).to_vec());
        parameters.set_global("tokenizer.chat_template.rerank", TEMPLATE);
        parameters.set_global("tokenizer.chat_templates", vec![String::from("rerank")]);
    }
    Ok(())
}

/// The rows of the answers become the classifier: those of the head, in whose place it comes, or of the embedding.
pub(super) fn change(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, view, .. } = incoming;
    let is_tied = is_tied(builder.config)?;
    let is_head = name.contains(if is_tied { "embed_tokens" } else { "lm_head" });
    if !is_head || builder.is_change(&view) || !is_reranker(builder.config, builder.texts) {
        return builder.add(&name, view);
    }
    let mut rows = vec![];
    for answer in ANSWERS {
        let id = tokenizer::token_id(builder.texts, builder.config, answer)?.map(u64::from);
        let id =
            id.ok_or_else(|| ErrorKind::unknown("tokenizer.json", "the classifier of a reranker", answer))?;
        let row = view.clone().slice(0, id, id.saturating_add(1));
        rows.push(
            row.ok_or_else(|| builder.shape_error(&view, format!("a row for the token {answer}, {id}")))?,
        );
    }
    let columns = view.shape().last().copied().unwrap_or(1);
    let shape = vec![ANSWERS.len() as u64, columns];
    builder.add_named(CLASSIFIER.into(), shape, rows, Change::Nothing)?;
    if is_tied { builder.add(&name, view) } else { Ok(()) }
}

/// Refuses a reranker whose head is missing.
///
/// # Errors
///
/// [`ErrorKind::NeededTensor`].
pub(crate) fn check(
    config: &Config,
    texts: &Texts,
    architecture: &str,
    outputs: &[Output],
) -> Result<(), Error> {
    let has_classifier = || outputs.iter().any(|output| output.name == CLASSIFIER);
    if architecture != super::qwen::QWEN3.name || !is_reranker(config, texts) || has_classifier() {
        return Ok(());
    }
    Err(Error::from(ErrorKind::NeededTensor).of(Subject::tensor("lm_head.weight")))
}
