//! Types of known keys, and values that programs refuse.

use gguf_core::{Dtype, Gguf, GgufBuilder, KeyType, ValueType};

fn problems(builder: &GgufBuilder) -> Vec<String> {
    let layout = builder.layout().unwrap();
    let data: Vec<Vec<u8>> =
        layout.tensors().iter().map(|planned| vec![0; planned.byte_len as usize]).collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let file = layout.to_vec(&data).unwrap();
    Gguf::from_bytes(&file).unwrap().key_problems().iter().map(ToString::to_string).collect()
}

fn model() -> GgufBuilder {
    let mut builder = GgufBuilder::new();
    builder.set("general.architecture", "qwen2").unwrap();
    builder.set("general.file_type", 0_u32).unwrap();
    builder.set("qwen2.context_length", 128_u32).unwrap();
    builder.set_numbers("qwen2.attention.head_count_kv", &[1_i32, 2]).unwrap();
    builder.set("tokenizer.ggml.model", "gpt2").unwrap();
    builder.set_texts("tokenizer.ggml.tokens", ["a", "b", "c"]).unwrap();
    builder.set_numbers("tokenizer.ggml.token_type", &[1_u32, 1, 3]).unwrap();
    builder.set("tokenizer.ggml.eos_token_id", 2_u32).unwrap();
    // No program reads the key of another architecture.
    builder.set("llama.context_length", "long").unwrap();
    builder.add_tensor("token_embd.weight", Dtype::F32, &[3, 32]).unwrap();
    builder
}

#[test]
fn a_sound_model_has_no_problems() {
    assert!(problems(&model()).is_empty());
}

#[test]
fn wrong_types_and_tokens_are_found() {
    let mut builder = model();
    builder.set("qwen2.pooling_type", "3").unwrap();
    builder.set("qwen2.context_length", 128_i64).unwrap();
    builder.set("tokenizer.ggml.add_bos_token", "false").unwrap();
    builder.set("tokenizer.ggml.eot_token_id", "2").unwrap();
    builder.set("tokenizer.ggml.bos_token_id", 3_u32).unwrap();
    builder.set_texts("tokenizer.ggml.scores", ["1"]).unwrap();
    assert_eq!(
        problems(&builder),
        [
            "key `qwen2.context_length` has type i64; programs that know it expect u32",
            "key `qwen2.pooling_type` has type string; programs that know it expect u32",
            "key `tokenizer.ggml.add_bos_token` has type string; programs that know it expect bool",
            "key `tokenizer.ggml.eot_token_id` has type string; programs that know it expect u32",
            "key `tokenizer.ggml.bos_token_id` is 3, and the last of 3 tokens is 2",
            "key `tokenizer.ggml.scores` has type string[]; programs that know it expect f32[]",
        ]
    );
    let mut builder = model();
    builder.set_texts("tokenizer.ggml.tokens", ["a", "b", "c", "d"]).unwrap();
    assert_eq!(problems(&builder), ["`tokenizer.ggml.tokens` has 4 tokens, and `token_embd.weight` 3 rows"]);
}

#[test]
fn keys_of_every_kind_have_types() {
    let one = |value_type| Some(KeyType::One(value_type));
    for (key, expected) in [
        ("general.name", one(ValueType::Text)),
        ("general.base_model.0.name", one(ValueType::Text)),
        ("general.base_model.count", one(ValueType::U32)),
        ("general.tags", Some(KeyType::Array(ValueType::Text))),
        ("general.note", None),
        ("tokenizer.chat_template", one(ValueType::Text)),
        ("tokenizer.chat_template.rag", one(ValueType::Text)),
        ("tokenizer.ggml.fim_pre_token_id", one(ValueType::U32)),
        ("tokenizer.ggml.precompiled_charsmap", Some(KeyType::Array(ValueType::U8))),
        ("llama.attention.head_count", Some(KeyType::OneOrPerLayer(ValueType::U32))),
        ("bert.attention.causal", one(ValueType::Bool)),
        ("split.no", one(ValueType::U16)),
        ("context_length", None),
        ("", None),
    ] {
        assert_eq!(KeyType::of(key), expected, "{key}");
    }
}
