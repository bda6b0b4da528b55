//! The name that the form of a pre-tokenizer suggests.

use alloc::vec::Vec;

use crate::json::{Json, Object};
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

/// Names with the same expressions as the name of a row.
const ALIASES: &[(&str, &[&str])] = &[
    (
        "qwen2",
        &["stablelm2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "hunyuan", "solar-open", "grok-2"],
    ),
    ("dbrx", WHOLE_WORDS),
    ("dbrx", &["smaug-bpe", "chatglm-bpe"]),
    (
        "gpt-2",
        &[
            "default",
            "phi-2",
            "jina-es",
            "jina-de",
            "gigachat",
            "jina-v2-es",
            "jina-v2-de",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
        ],
    ),
    ("starcoder", &["refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"]),
    ("deepseek-v3", &["hunyuan-dense", "joyai-llm", "hy_v4"]),
    ("gpt-4o", &["llama4", "kanana2", "talkie", "minimax-m2"]),
    ("bloom", &["poro-chat", "gpt3-finnish"]),
];
/// Names of tokenizers that do not merge where a whole word is a token, but for `tekken`.
const WHOLE_WORDS: &[&str] = &[
    "llama-bpe",
    "llama3",
    "llama-v3",
    "falcon3",
    "falcon-h1",
    "pixtral",
    "midm-2.0",
    "lfm2",
    "jina-v5-nano",
    "glm4",
];

/// Characters of Chinese, Japanese and Korean.
const CJK: &str = "[一-龥ࠀ-一가-\u{d7ff}]+";

/// Whether a tokenizer of this name takes a word that is a token whole, without merges.
pub(in crate::tokenizer) fn ignores_merges(name: &str) -> bool {
    name == "tekken" || WHOLE_WORDS.contains(&name)
}

/// The pre-tokenizer of a name; `None` if its steps are not known.
pub(in crate::tokenizer) fn steps(name: &str) -> Option<Json> {
    let base = ALIASES.iter().find(|(_, names)| names.contains(&name)).map_or(name, |(base, _)| *base);
    let row: &[&str] = match base {
        // Their rows have the beginning alone, because files differ after it.
        "deepseek-coder" => &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, "Digits"],
        "deepseek-llm" => &[
            r"[\r\n]",
            // Letters that have cases.
            r"\s?[\p{Lu}\p{Ll}\p{Lt}]+",
            "\\s?[!-/:-~！-／：-～‘-‟\u{3000}-。]+",
            r"\s+$",
            CJK,
            "Digits",
        ],
        "falcon" => &["Punctuation", GPT2, "Digits of all lengths", "[0-9][0-9][0-9]"],
        _ => ROWS.iter().find(|(_, own)| *own == base).map(|(row, _)| *row)?,
    };
    if row.contains(&ANY) {
        return None;
    }
    let mut steps: Vec<Json> = row.iter().map(|step| self::step(step)).collect();
    if !row.contains(&GPT2) {
        steps.push(byte_level(false));
    }
    match steps.len() {
        1 => steps.pop(),
        _ => Some(object(&[("type", Json::from("Sequence")), ("pretokenizers", Json::Array(steps))])),
    }
}

fn step(step: &str) -> Json {
    match step {
        GPT2 => byte_level(true),
        "Digits" => object(&[("type", Json::from("Digits")), ("individual_digits", Json::Bool(true))]),
        "Digits of all lengths" => {
            object(&[("type", Json::from("Digits")), ("individual_digits", Json::Bool(false))])
        }
        "Punctuation" => {
            object(&[("type", Json::from("Punctuation")), ("behavior", Json::from("Contiguous"))])
        }
        expression => object(&[
            ("type", Json::from("Split")),
            ("pattern", object(&[("Regex", Json::from(expression))])),
            ("behavior", Json::from("Isolated")),
            ("invert", Json::Bool(false)),
        ]),
    }
}

fn byte_level(splits: bool) -> Json {
    object(&[
        ("type", Json::from("ByteLevel")),
        ("add_prefix_space", Json::Bool(false)),
        ("trim_offsets", Json::Bool(true)),
        ("use_regex", Json::Bool(splits)),
    ])
}

fn object(members: &[(&str, Json)]) -> Json {
    let mut object = Object::default();
    for (name, value) in members {
        object.set(name, value.clone());
    }
    Json::Object(object)
}

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
