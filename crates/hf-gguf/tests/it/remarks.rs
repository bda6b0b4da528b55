//! Folders that are converted although they contradict themselves, and the remarks on them.

use serde_json::json;
use tensor_dtype::Dtype;

use hf_gguf::{Options, OutputType, SourceTensor, Target, Value};

use crate::changed::{Changed, coded, llama};
use crate::folder::Folder;

fn remarks(folder: Changed) -> Vec<String> {
    folder.convert().unwrap().remarks().to_vec()
}

/// The only remark.
fn remark(folder: Changed) -> String {
    let remarks = remarks(folder);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    remarks.into_iter().next().unwrap()
}

#[test]
fn settings_of_quantization_beside_plain_floats_are_passed_over() {
    let plain = llama().convert().unwrap();
    assert!(plain.remarks().is_empty());
    for (settings, name) in [
        (json!({"quant_method": "bitsandbytes", "load_in_4bit": true}), "bitsandbytes"),
        (json!({"load_in_8bit": true}), "bitsandbytes"),
        (json!({"quant_method": "awq", "bits": 4}), "awq"),
        (json!({"quant_method": "gptq", "bits": 3}), "gptq"),
        (json!({"quant_method": "fp8"}), "fp8"),
        (
            json!({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}),
            "compressed-tensors",
        ),
    ] {
        let folder = llama().set("quantization_config", settings).convert().unwrap();
        assert_eq!((folder.outputs(), folder.keys()), (plain.outputs(), plain.keys()), "{name}");
        assert!(folder.remarks().len() == 1 && folder.remarks()[0].contains(name), "{:?}", folder.remarks());
    }
    assert!(remark(llama().set("quantization", json!({"bits": 4}))).contains("MLX"));
    // What a program for quantization leaves is not plain.
    let name = "model.layers.0.mlp.up_proj.weight_scale";
    let left =
        llama().tensor(name, Dtype::F32, &[1]).set("quantization_config", json!({"quant_method": "awq"}));
    assert_eq!(left.code(), "hg-quantization");
}

#[test]
fn values_of_8_bits_without_scales_get_a_remark_or_are_refused() {
    for dtype in [Dtype::F8E4M3, Dtype::F8E5M2, Dtype::I8] {
        let of = |folder: Changed| {
            folder.each(|tensor| {
                if tensor.name.ends_with("mlp.gate_proj.weight") {
                    tensor.dtype = dtype;
                }
            })
        };
        let text = remark(of(llama()));
        assert!(text.contains("0.mlp.gate_proj.weight\" and 1 more"), "{text}");
        for method in ["fp8", "gptq"] {
            let settings = json!({"quant_method": method, "bits": 4});
            assert_eq!(of(llama()).set("quantization_config", settings).code(), "hg-missing-tensor");
        }
    }
    assert!(remark(coded()).contains("scales are lost"));
}

#[test]
fn one_scale_of_a_tensor_is_applied_and_those_of_activations_are_left_out() {
    let codes = [0x38_u8, 0x40, 0xb8, 0x3c];
    let name = "model.layers.0.mlp.up_proj";
    let folder = Changed::of("Tiny-Llama2-110K-Chat");
    let config = json!({
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"strategy": "tensor", "type": "float", "num_bits": 8}}},
    });
    let extra = |end: &str| {
        (SourceTensor { name: format!("{name}{end}"), dtype: Dtype::F32, shape: vec![1] }, 0.5_f32)
    };
    let scales = [extra(".weight_scale"), extra(".input_scale")];
    let more = ["self_attn.k_proj.k_scale", "self_attn.v_proj.v_scale", "self_attn.k_proj.output_scale"];
    let mut tables: Vec<(SourceTensor, Vec<u8>)> = Vec::new();
    for tensor in folder.tensors() {
        let mut tensor = tensor.clone();
        let count: u64 = tensor.shape.iter().product();
        let data = if tensor.name == format!("{name}.weight") {
            tensor.dtype = Dtype::F8E4M3;
            codes.iter().copied().cycle().take(count as usize).collect()
        } else {
            vec![0; tensor.dtype.byte_len(&[count as usize]).unwrap() as usize]
        };
        tables.push((tensor, data));
    }
    tables.extend(scales.map(|(tensor, value)| (tensor, value.to_le_bytes().to_vec())));
    tables.extend(more.map(|end| {
        let name = format!("model.layers.1.{end}");
        (SourceTensor { name, dtype: Dtype::F32, shape: vec![1] }, 1.0_f32.to_le_bytes().to_vec())
    }));
    let texts = folder.set("quantization_config", config).files();
    let folder = Folder::of("x", &texts, vec![("model.safetensors".into(), tables.into_iter().unzip())]);
    let mut options = Options::default();
    options.target = Target::Type(OutputType::F32);
    let conversion = folder.convert(&options).unwrap();
    assert!(conversion.remarks().is_empty(), "{:?}", conversion.remarks());
    let data = folder.produce(&conversion).unwrap();
    let number = conversion.outputs().iter().position(|output| output.name == "blk.0.ffn_up.weight").unwrap();
    let found: Vec<f32> = data[number]
        .chunks_exact(4)
        .take(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    assert_eq!(found, [0.5, 1.0, -0.5, 0.75]);
}

#[test]
fn tokens_without_a_row_get_a_remark() {
    let text = remark(llama().text("added_tokens.json", r#"{"<|a|>": 420, "<|b|>": 421, "<s>": 1}"#));
    assert!(
        text.starts_with(
            "2 tokens beyond the 420 of the model are left out: \"<|a|>\" (420), \"<|b|>\" (421);"
        ),
        "{text}"
    );
    let text = remark(llama().text("added_tokens.json", r#"{"<|a|>": 999999999}"#));
    assert!(text.starts_with("1 token beyond the 420 of the model is left out"), "{text}");
    let many: Vec<String> = (420..440).map(|id| format!("\"<{id}>\": {id}")).collect();
    let text = remark(llama().text("added_tokens.json", &format!("{{{}}}", many.join(","))));
    assert!(text.contains("\"<422>\" (422) and 17 more"), "{text}");
    // Of a model that counts them, and has no rows for them.
    assert_eq!(llama().set("vocab_size", json!(422)).code(), "hg-token-rows");
}

#[test]
fn the_function_of_deepseek_3_is_that_of_its_class() {
    let function = |folder: Changed| {
        let conversion = folder.convert().unwrap();
        conversion.keys().get("deepseek2.expert_gating_func").and_then(Value::as_u32)
    };
    let third = || {
        let class = json!(["DeepseekV3ForCausalLM"]);
        Changed::of("deepseek2-lite").set("architectures", class).set("model_type", json!("deepseek_v3"))
    };
    assert_eq!(function(third().without("scoring_func")), Some(2));
    assert_eq!(function(third().set("scoring_func", json!(null))), Some(2));
    assert_eq!(function(third().set("scoring_func", json!("softmax"))), Some(1));
    assert_eq!(function(Changed::of("deepseek2-lite").without("scoring_func")), None);
}

#[test]
fn windows_without_a_key_get_a_remark_where_the_context_is_longer() {
    let mistral = |window: u32| {
        Changed::of("Mistral-Mini-0.1-Instruct")
            .set("sliding_window", json!(window))
            .set("max_position_embeddings", json!(512))
    };
    assert!(remark(mistral(128)).contains("the last 128 tokens"));
    assert_eq!(remarks(mistral(512)), [""; 0]);
    let qwen = |is_used: bool, first: u32| {
        Changed::of("Qwen2-Mini-0.5B")
            .set("sliding_window", json!(8))
            .set("use_sliding_window", json!(is_used))
            .set("max_window_layers", json!(first))
    };
    assert!(remark(qwen(true, 0)).contains("the last 8 tokens"));
    assert_eq!(remarks(qwen(true, 2)), [""; 0]);
    assert_eq!(remarks(qwen(false, 0)), [""; 0]);
}

#[test]
fn a_head_that_contradicts_the_configuration_gets_a_remark() {
    assert!(remark(llama().set("tie_word_embeddings", json!(true))).contains("is true"));
    let without = llama().removed("lm_head").set("tie_word_embeddings", json!(false));
    assert!(remark(without).contains("is false"));
    assert_eq!(remarks(llama().removed("lm_head").set("tie_word_embeddings", json!(true))), [""; 0]);
}

#[test]
fn rerankers_need_a_head_and_the_answers() {
    let reranker = || Changed::of("qwen3").text("README.md", "# Qwen3-Reranker\n");
    // The vocabulary of the vector has no such tokens.
    assert_eq!(reranker().code(), "hg-token-unknown");
    let without = reranker().removed("lm_head").set("tie_word_embeddings", json!(false));
    assert_eq!(without.code(), "hg-needed-tensor");
    assert_eq!(Changed::of("qwen3").text("README.md", "Like Qwen3-Reranker\n").code(), "converted");
}
