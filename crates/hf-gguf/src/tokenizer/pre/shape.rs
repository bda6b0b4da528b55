//! The name that the form of a pre-tokenizer suggests.

use alloc::vec::Vec;

use crate::json::Json;
use crate::tokenizer::file::TokenizerFile;

/// Expression of GPT-2, which is in `ByteLevel`.
const GPT2: &str = "ByteLevel";
/// Any steps before those that follow.
const ANY: &str = "*";

/// Expressions, in the order of the steps, and the name under which llama.cpp splits so. Models with one of these names differ in flags and in
/// the vocabulary at most. The first row that fits counts.
const ROWS: &[(&[&str], &str)] = &[
    (
        &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        "qwen2",
    ),
    (
        &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        "dbrx",
    ),
    (
        &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        "qwen35",
    ),
    (&[GPT2], "gpt-2"),
    (&["Digits", GPT2], "starcoder"),
    (&["Punctuation", GPT2, "Digits"], "falcon"),
    (&["Punctuation", GPT2, "Digits", "[0-9][0-9][0-9]"], "falcon"),
    (&["Punctuation", GPT2, "[0-9][0-9][0-9]"], "falcon"),
    (
        &[
            r"\p{N}{1,3}",
            "[一-龥\u{3040}-ゟ゠-ヿ]+",
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
        ],
        "deepseek-v3",
    ),
    (&[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", ANY], "deepseek-coder"),
    (&[r"[\r\n]", ANY], "deepseek-llm"),
    (
        &[
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        "gpt-4o",
    ),
    (
        &[
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        "tekken",
    ),
    (&[r" ?[^(\s|[.,!?…。，、।۔،])]+"], "bloom"),
    (&[r" ?[^(\s|[.,!?…。，、।۔،])]+", "Digits"], "viking"),
    (&["BertPreTokenizer"], "bert-bge"),
];

/// The name; empty if no row fits.
pub(super) fn name(file: &TokenizerFile) -> &'static str {
    let mut steps = Vec::new();
    if let Some(json) = file.member("pre_tokenizer") {
        collect(json, &mut steps);
    }
    let fits = |row: &[&str]| match row.split_last() {
        Some((&ANY, begin)) => steps.starts_with(begin),
        _ => steps == row,
    };
    match ROWS.iter().find(|(row, _)| fits(row)).map(|(_, name)| *name) {
        Some("dbrx") if file.model_bool("ignore_merges") == Some(true) => "llama-bpe",
        name => name.unwrap_or_default(),
    }
}

/// Appends the steps that split: their expressions, or their names.
fn collect<'j>(json: &'j Json, steps: &mut Vec<&'j str>) {
    match json.get("type").and_then(Json::as_str).unwrap_or_default() {
        "Sequence" => {
            let all = json.get("pretokenizers").and_then(Json::as_array).unwrap_or_default();
            all.iter().for_each(|json| collect(json, steps));
        }
        "ByteLevel" if json.get("use_regex").and_then(Json::as_bool) == Some(false) => {}
        "Split" => {
            let pattern = json.get("pattern");
            let text = |name| pattern.and_then(|pattern| pattern.get(name)).and_then(Json::as_str);
            let is_digit = text("Regex") == Some(r"\p{N}") || text("Regex") == Some(r"\d");
            steps.push(if is_digit {
                "Digits"
            } else {
                text("Regex").or_else(|| text("String")).unwrap_or_default()
            });
        }
        name => steps.push(name),
    }
}
