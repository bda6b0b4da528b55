//! GPT-OSS, whose blocks of MXFP4 only change their layout.

use hf_gguf::{Conversion, Options, Parts, Producer, SourceTensor, Texts};
use serde_json::{Value, json};
use tensor_dtype::Dtype;

use crate::folder::{Folder, vectors};

const HIDDEN: u64 = 64;
const EXPERTS: u64 = 2;
const FFN: u64 = 32;

/// One layer, and the tokenizer of a vector.
fn convert(has_blocks: bool, scales: Dtype) -> Result<Conversion, hf_gguf::Error> {
    let folder = Folder::open(&vectors().join("qwen3"));
    let mut texts: Texts = folder.texts;
    let known: Value = serde_json::from_slice(texts.get("config.json").unwrap()).unwrap();
    let mut config = json!({
        "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "vocab_size": known["vocab_size"],
        "hidden_size": HIDDEN, "intermediate_size": FFN, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "num_local_experts": EXPERTS, "num_experts_per_tok": 1,
    });
    if has_blocks {
        config["quantization_config"] = json!({"quant_method": "mxfp4"});
    }
    texts.insert("config.json", config.to_string().into_bytes());
    let at = "model.layers.0.mlp.experts";
    let tensor = |name: String, dtype, shape: &[u64]| SourceTensor { name, dtype, shape: shape.into() };
    let mut table = vec![
        tensor("model.layers.0.self_attn.sinks".into(), Dtype::Bf16, &[4]),
        tensor(format!("{at}.down_proj_scales"), scales, &[EXPERTS, HIDDEN, FFN / 32]),
        tensor(format!("{at}.down_proj_blocks"), Dtype::U8, &[EXPERTS, HIDDEN, FFN / 32, 16]),
        tensor(format!("{at}.gate_up_proj_blocks"), Dtype::U8, &[EXPERTS, 2 * FFN, HIDDEN / 32, 16]),
        tensor(format!("{at}.gate_up_proj_scales"), Dtype::U8, &[EXPERTS, 2 * FFN, HIDDEN / 32]),
        tensor(format!("{at}.gate_up_proj_bias"), Dtype::Bf16, &[EXPERTS, 2 * FFN]),
    ];
    let vocabulary = known["vocab_size"].as_u64().unwrap();
    let rest: [(&str, &[u64]); 9] = [
        ("embed_tokens", &[vocabulary, HIDDEN]),
        ("norm", &[HIDDEN]),
        ("layers.0.input_layernorm", &[HIDDEN]),
        ("layers.0.post_attention_layernorm", &[HIDDEN]),
        ("layers.0.self_attn.q_proj", &[64, HIDDEN]),
        ("layers.0.self_attn.k_proj", &[32, HIDDEN]),
        ("layers.0.self_attn.v_proj", &[32, HIDDEN]),
        ("layers.0.self_attn.o_proj", &[HIDDEN, 64]),
        ("layers.0.mlp.router", &[EXPERTS, HIDDEN]),
    ];
    table.extend(rest.map(|(name, shape)| tensor(format!("model.{name}.weight"), Dtype::Bf16, shape)));
    let parts = Parts::find(&texts, ["model.safetensors"])?;
    let mut options = Options::default();
    options.pre = Some("gpt-4o".into());
    Conversion::new(&texts, &parts, &[table], &options)
}

/// A byte of a source: its place, of which no two nearby are alike.
fn byte(tensor: usize, offset: u64) -> u8 {
    (offset.wrapping_mul(37).wrapping_add(offset >> 8) as u8).wrapping_add(tensor as u8)
}

#[test]
fn blocks_keep_their_codes_and_scales() {
    let conversion = convert(true, Dtype::U8).unwrap();
    let names: Vec<(&str, &[u64], &str)> = conversion
        .outputs()
        .iter()
        .filter(|output| ["_exps.", "sinks"].iter().any(|part| output.name.contains(part)))
        .map(|output| (output.name.as_str(), output.shape.as_slice(), output.dtype.name()))
        .collect();
    // Blocks come first, in the order in which they are complete.
    assert_eq!(
        names,
        [
            ("blk.0.ffn_down_exps.weight", &[EXPERTS, HIDDEN, FFN][..], "MXFP4"),
            ("blk.0.ffn_gate_exps.weight", &[EXPERTS, FFN, HIDDEN], "MXFP4"),
            ("blk.0.ffn_up_exps.weight", &[EXPERTS, FFN, HIDDEN], "MXFP4"),
            ("blk.0.ffn_gate_exps.bias", &[EXPERTS, FFN], "F32"),
            ("blk.0.ffn_up_exps.bias", &[EXPERTS, FFN], "F32"),
            ("blk.0.attn_sinks.weight", &[4], "F32"),
        ]
    );
    assert_eq!(conversion.keys().get("general.file_type").and_then(hf_gguf::Value::as_u32), Some(38));
    for (idx, step, first) in [(0, 1, 0), (1, 2, 0), (2, 2, 1)] {
        let output = &conversion.outputs()[idx];
        let mut found = Vec::new();
        let read = |tensor, offset, out: &mut [u8]| {
            for (place, offset) in out.iter_mut().zip(offset..) {
                *place = byte(tensor, offset);
            }
            Ok::<(), hf_gguf::Error>(())
        };
        let keep = |piece: &[u8], _| {
            found.extend_from_slice(piece);
            Ok(())
        };
        Producer::new().run(output, conversion.inputs(), read, keep).unwrap();
        let number = |place| conversion.sources().iter().position(|source| *source == (0, place)).unwrap();
        let (blocks, scales) = if idx == 0 { (number(2), number(1)) } else { (number(3), number(4)) };
        let per_row = output.shape[2] / 32;
        let mut expected = Vec::new();
        for row in 0..EXPERTS * output.shape[1] {
            for block in 0..per_row {
                let from = (row * step + first) * per_row + block;
                expected.push(byte(scales, from));
                let code = |value: u64| byte(blocks, from * 16 + value / 2) >> (value % 2 * 4) & 15;
                expected.extend((0..16).map(|value| code(value) | code(value + 16) << 4));
            }
        }
        assert_eq!(found, expected, "{}", output.name);
    }
}

#[test]
fn blocks_of_another_kind_are_refused() {
    assert_eq!(convert(false, Dtype::U8).unwrap_err().code(), "hg-tensor-name");
    assert_eq!(convert(true, Dtype::F32).unwrap_err().code(), "hg-source-type");
}
