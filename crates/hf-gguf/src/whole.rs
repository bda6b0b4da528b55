//! Whether a model is whole: it has the tensors that its architecture needs, in the shapes that its keys say.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use located_error::Subject;

use crate::architecture::Architecture;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::keys::{Keys, Value};
use crate::parameters::{FEED_FORWARD, LAYERS};
use crate::tensors::output::Output;

/// Parts of a layer that not every layer has.
const OF_SOME_LAYERS: &[&str] = &["attn_rel_b.weight", "cross_attn_rel_b.weight"];
/// What a layer without experts has besides its attention.
const DENSE: &[&str] = &["ffn_up.weight", "ffn_down.weight"];
/// What a layer with experts has.
const WITH_EXPERTS: &[&str] =
    &["ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"];

/// What makes the queries of DeepSeek's models whose configuration compresses them.
const COMPRESSED_QUERIES: &[&str] = &["attn_q_a.weight", "attn_q_a_norm.weight", "attn_q_b.weight"];
/// Tensors that folders of an architecture have in one with others: the end of the name that the tables give, and that of the one in folders.
const ONE_WITH_OTHERS: &[(&str, &str, &str)] = &[
    ("deepseek2", ".k_b_proj.weight", ".kv_b_proj.weight"),
    ("deepseek2", ".v_b_proj.weight", ".kv_b_proj.weight"),
    ("gpt-oss", ".experts.gate_proj.weight", ".experts.gate_up_proj"),
    ("gpt-oss", ".experts.up_proj.weight", ".experts.gate_up_proj"),
];

type Shapes<'o> = BTreeMap<&'o str, &'o [u64]>;
/// The parts of a layer: the names of its tensors after its number.
type Layer<'o> = BTreeSet<&'o str>;

/// Refuses a model that lacks a tensor, or has one of another shape than its keys say: no program computes it.
///
/// # Errors
///
/// [`ErrorKind::NeededTensor`], [`ErrorKind::TensorShape`].
pub(crate) fn check(
    architecture: &Architecture,
    config: &Config,
    keys: &Keys,
    outputs: &[Output],
) -> Result<(), Error> {
    let shapes: Shapes<'_> =
        outputs.iter().map(|output| (output.name.as_str(), output.shape.as_slice())).collect();
    if let Some(name) = missing(architecture, config, &shapes)? {
        let own = folder_name(architecture, &name);
        return Err(Error::from(ErrorKind::NeededTensor).of(Subject::tensor(&own)));
    }
    let rules = rules(architecture, config, keys)?;
    for (name, shape) in &shapes {
        if let Some(expected) = contradiction(name, shape, &rules, &shapes) {
            let kind =
                ErrorKind::TensorShape { expected: expected.into(), found: format!("{shape:?}").into() };
            let own = folder_name(architecture, name);
            return Err(Error::from(kind).of(Subject::tensor(&own)));
        }
    }
    Ok(())
}

/// The name in folders of a tensor of this GGUF name; of a stack that of its first expert. That in GGUF files if the tables do not say it.
fn folder_name(architecture: &Architecture, name: &str) -> String {
    let of_expert = |(number, stack): (&str, &str)| {
        let experts = architecture.experts?;
        let (part, _) = experts.parts.iter().find(|(_, new_name)| *new_name == stack)?;
        Some(format!("{}layers.{number}{}0.{part}.weight", architecture.prefix, experts.infix))
    };
    let stack = name.strip_prefix("blk.").and_then(|rest| rest.strip_suffix(".weight"));
    let of_expert = stack.and_then(|stack| stack.split_once('.')).and_then(of_expert);
    let own = of_expert.or_else(|| architecture.folder_name(name)).unwrap_or_else(|| name.into());
    let joined = |&(of, end, other): &(&str, &str, &str)| {
        let begin = own.strip_suffix(end).filter(|_| of == architecture.name)?;
        Some(format!("{begin}{other}"))
    };
    ONE_WITH_OTHERS.iter().find_map(joined).unwrap_or(own)
}

/// The GGUF name of the first tensor that is missing.
fn missing(
    architecture: &Architecture,
    config: &Config,
    shapes: &Shapes<'_>,
) -> Result<Option<String>, Error> {
    // By what comes before the number, of T5 `enc.blk.` and `dec.blk.`, and the number.
    let mut layers: BTreeMap<(&str, &str), Layer<'_>> = BTreeMap::new();
    for (stack, number, part) in shapes.keys().filter_map(|name| layer(name)) {
        layers.entry((stack, number)).or_default().insert(part);
    }
    for pattern in architecture.needed.iter().copied().flatten() {
        let Some((stack, part)) = pattern.split_once("{}.") else {
            if shapes.contains_key(pattern) {
                continue;
            }
            return Ok(Some((*pattern).into()));
        };
        for number in 0..n_layers(config, stack)? {
            let number = number.to_string();
            if !layers.get(&(stack, number.as_str())).is_some_and(|own| own.contains(part)) {
                return Ok(Some(format!("{stack}{number}.{part}")));
            }
        }
    }
    if architecture.name == "deepseek2" {
        let is_compressed = config.u32(&["q_lora_rank"])?.is_some();
        let queries = if is_compressed { COMPRESSED_QUERIES } else { &["attn_q.weight"] };
        for ((stack, number), own) in &layers {
            if let Some(part) = queries.iter().find(|part| !own.contains(**part)) {
                return Ok(Some(format!("{stack}{number}.{part}")));
            }
        }
    }
    // Layers of one kind have the same tensors; those with experts and those without differ in their feed-forward parts alone.
    let mut kinds: BTreeMap<(&str, bool), Layer<'_>> = BTreeMap::new();
    for ((stack, _), own) in &layers {
        let has_experts = has_experts(own);
        let kind = kinds.entry((*stack, has_experts)).or_default();
        kind.extend(if has_experts { WITH_EXPERTS } else { DENSE });
        if !has_experts && architecture.has_name("blk.{}.ffn_gate") {
            kind.insert("ffn_gate.weight");
        }
        for part in own.iter().filter(|part| !OF_SOME_LAYERS.contains(part)) {
            let is_common =
                !part.starts_with("ffn_") && !part.starts_with("exp_") || part.starts_with("ffn_norm.");
            for has_experts in [has_experts, has_experts != is_common] {
                kinds.entry((*stack, has_experts)).or_default().insert(part);
            }
        }
    }
    for ((stack, number), own) in &layers {
        let kind = kinds.get(&(*stack, has_experts(own)));
        if let Some(part) = kind.into_iter().flatten().find(|part| !own.contains(*part)) {
            return Ok(Some(format!("{stack}{number}.{part}")));
        }
    }
    Ok(None)
}

/// What comes before the number of the layer, the number, and what comes after it.
fn layer(name: &str) -> Option<(&str, &str, &str)> {
    const BLOCK: &str = "blk.";
    let (stack, rest) = name.split_at_checked(name.find(BLOCK)? + BLOCK.len())?;
    let (number, part) = rest.split_once('.')?;
    Some((stack, number, part))
}

fn has_experts(layer: &Layer<'_>) -> bool {
    layer.iter().any(|part| part.starts_with("ffn_gate_inp.") || part.contains("_exps."))
}

/// As many as the configuration says, which were compared with the number of tensors before.
fn n_layers(config: &Config, stack: &str) -> Result<u32, Error> {
    let decoder = config.u32(&["num_decoder_layers"])?.filter(|_| stack.starts_with("dec."));
    decoder.map_or_else(|| config.need_u32(LAYERS), Ok)
}

/// A dimension of a matrix.
#[derive(Clone, Copy)]
enum Dimension {
    Rows,
    Columns,
}

/// The names of matrices after the layer, without `.weight`, with a dimension that all of them have and its length.
type Rule = (&'static [&'static str], Dimension, u64);

/// What is known of shapes besides what the hidden size says.
fn rules(architecture: &Architecture, config: &Config, keys: &Keys) -> Result<Vec<Rule>, Error> {
    use Dimension::{Columns, Rows};
    let number = |key: &str| {
        let value = keys.get(&format!("{}.{key}", architecture.name)).and_then(Value::as_u32);
        value.map(u64::from)
    };
    let heads = number("attention.head_count");
    let key_heads = number("attention.head_count_kv").or(heads);
    let share = number("embedding_length").zip(heads).and_then(|(len, heads)| len.checked_div(heads));
    // Where keys and values are compressed, heads have other lengths than what is compressed.
    let compressed = number("attention.key_length_mla").zip(number("attention.value_length_mla"));
    let key_len = number("attention.key_length").or(share);
    let value_len = number("attention.value_length").or(share);
    let feed_forward =
        config.u32(&["d_ff"])?.map_or_else(|| config.u32(FEED_FORWARD), |len| Ok(Some(len)))?;
    let feed_forward = feed_forward.map(u64::from).filter(|_| architecture.name != "granitemoe");
    let experts_len = number("expert_feed_forward_length").or(number("feed_forward_length"));
    let up_len = feed_forward.map(|len| if architecture.name == "phi3" { 2 * len } else { len });

    let product = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_mul(b?));
    let query_len = compressed.map(|(key, _)| key).or(key_len);
    let output_len = compressed.map(|(_, value)| value).or(value_len);
    let own_heads = key_heads.filter(|_| compressed.is_none());
    let (keys, values) = (product(own_heads, key_len), product(own_heads, value_len));
    let all_rows = [product(heads, key_len), keys, values];
    let all_rows = all_rows.into_iter().try_fold(0_u64, |sum, rows| Some(sum.saturating_add(rows?)));
    let shared_len = number("expert_shared_feed_forward_length");
    let rules: [(&[&str], _, _); 13] = [
        (&["attn_q", "cross_attn_q", "attn_q_b"], Rows, product(heads, query_len)),
        (&["attn_k", "cross_attn_k"], Rows, keys),
        (&["attn_v", "cross_attn_v"], Rows, values),
        (&["attn_qkv"], Rows, all_rows),
        (&["attn_output", "attn_o", "cross_attn_o"], Columns, product(heads, output_len)),
        (&["ffn_up"], Rows, up_len),
        (&["ffn_gate"], Rows, feed_forward),
        (&["ffn_down"], Columns, feed_forward),
        (&["ffn_up_exps", "ffn_gate_exps"], Rows, experts_len),
        (&["ffn_down_exps"], Columns, experts_len),
        (&["ffn_up_shexp", "ffn_gate_shexp"], Rows, shared_len),
        (&["ffn_down_shexp"], Columns, shared_len),
        (&["ffn_gate_inp"], Rows, number("expert_count")),
    ];
    Ok(rules.into_iter().filter_map(|(names, dimension, len)| Some((names, dimension, len?))).collect())
}

/// What was expected of a shape that contradicts the rules or the matrix that a bias belongs to.
fn contradiction(name: &str, shape: &[u64], rules: &[Rule], shapes: &Shapes<'_>) -> Option<String> {
    if let Some(base) = name.strip_suffix(".bias") {
        let expected = match *shapes.get(format!("{base}.weight").as_str())? {
            [matrix @ .., _] if !matrix.is_empty() => matrix,
            vector => vector,
        };
        return (shape != expected).then(|| format!("a bias {expected:?}, as its matrix has rows"));
    }
    let base = name.strip_suffix(".weight")?;
    let (rows, columns) = match *shape {
        [.., rows, columns] => (rows, columns),
        _ => return None,
    };
    if base == "output" {
        let [tokens, ..] = *shapes.get("token_embd.weight").copied()? else { return None };
        return (rows != tokens).then(|| format!("{tokens} rows, as the embedding has"));
    }
    let base = layer(base).map_or(base, |(_, _, part)| part);
    rules.iter().filter(|(names, ..)| names.contains(&base)).find_map(|(_, dimension, len)| {
        let (found, what) = match dimension {
            Dimension::Rows => (rows, "rows"),
            Dimension::Columns => (columns, "columns"),
        };
        (found != *len).then(|| format!("{len} {what} by the configuration"))
    })
}
