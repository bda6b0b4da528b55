//! What is refused, with its code, and what the reference implementation refuses and is converted.

use hf_gguf::{Conversion, PartFormat, Parts, SourceTensor, Texts};
use serde_json::{Value, json};
use tensor_dtype::Dtype;

use crate::changed::{Changed, coded, llama};
use crate::folder::vectors;

#[test]
fn configurations_that_contradict_themselves_are_refused() {
    let huge = json!(1_000_000_000);
    let cases = [
        (llama().set("architectures", json!([])), "hg-config-missing"),
        (llama().set("architectures", json!(["ResNet"])), "hg-architecture"),
        (llama().set("num_hidden_layers", huge.clone()), "hg-config-value"),
        (llama().set("num_hidden_layers", json!(-1)), "hg-config-value"),
        (llama().set("num_hidden_layers", json!(2.5)), "hg-config-value"),
        (llama().set("num_hidden_layers", json!(1)), "hg-layer"),
        (llama().set("hidden_size", json!(-48)), "hg-config-value"),
        (llama().set("rms_norm_eps", json!("small")), "hg-config-value"),
        (llama().raw("rms_norm_eps", "1e400"), "hg-config-value"),
        (llama().raw("rms_norm_eps", "NaN"), "hg-config-value"),
        (llama().raw("rope_theta", "-Infinity"), "hg-config-value"),
        (llama().set("rope_theta", json!(1e39)), "hg-config-value"),
        (llama().text("generation_config.json", r#"{"temperature": Infinity}"#), "hg-config-value"),
        (llama().set("rope_scaling", json!({"type": "linear", "factor": 1e300})), "hg-config-value"),
        (llama().set("num_attention_heads", json!(0)), "hg-tensor-shape"),
        (llama().set("num_attention_heads", json!(7)), "hg-tensor-shape"),
        (llama().set("num_key_value_heads", json!([4])), "hg-config-value"),
        (llama().set("max_position_embeddings", json!("long")), "hg-config-value"),
        (llama().set("rope_scaling", json!({"type": "yarn", "factor": 2.0})), "hg-config-missing"),
        (llama().set("rope_scaling", json!({"type": "linear", "factor": "2"})), "hg-config-value"),
        (
            llama().set("head_dim", huge.clone()).set("rope_scaling", json!({"rope_type": "llama3"})),
            "hg-config-value",
        ),
        (coded().set("quantization", json!({"group_size": 64, "bits": 4})), "hg-quantization"),
        (coded().set("quantization_config", json!({"quant_method": "awq"})), "hg-quantization"),
        (coded().set("quantization_config", json!({"quant_method": "gptq", "bits": 3})), "hg-quantization"),
        (
            coded().set("quantization_config", json!({"quant_method": "fp8", "weight_block_size": [0, -1]})),
            "hg-quantization",
        ),
        (Changed::of("phi3-longrope").set("partial_rotary_factor", json!(0.5)), "hg-rope-factors"),
        (Changed::of("qwen3").set("scoring_func", json!("tanh")), "hg-config-value"),
        (Changed::of("mixtral").set("num_local_experts", json!(3)), "hg-expert"),
        (Changed::of("mixtral").set("num_local_experts", huge), "hg-incomplete"),
        (Changed::of("deepseek2-lite").set("v_head_dim", json!(17)), "hg-tensor-shape"),
        (Changed::of("falcon-7b-style").set("num_kv_heads", json!(3)), "hg-tensor-shape"),
        (Changed::of("gptneox").set("num_attention_heads", json!(5)), "hg-tensor-shape"),
        (Changed::of("nomic-bert").set("prenorm", json!(true)), "hg-config-value"),
        (Changed::of("nomic-bert").set("n_positions", json!(4096)), "hg-config-value"),
        (Changed::of("bert-embedding").text("1_Pooling/config.json", "{}"), "hg-pooling"),
        (Changed::of("gemma3").set("attn_logit_softcapping", json!(50.0)), "hg-config-value"),
    ];
    for (idx, (folder, code)) in cases.into_iter().enumerate() {
        assert_eq!(folder.code(), code, "case {idx}");
    }
}

#[test]
fn methods_of_quantization_are_refused_by_name() {
    let group = |weights: Value| json!({"group_0": {"targets": ["Linear"], "weights": weights}});
    let mut cases: Vec<(Value, String)> = Vec::new();
    let methods =
        ["awq", "bitsandbytes", "exl2", "exl3", "hqq", "aqlm", "modelopt", "bitnet", "fbgemm_fp8", "mxfp4"];
    cases.extend(methods.map(|name| (json!({"quant_method": name}), format!("quantized by {name} "))));
    let compressed = |format: &str, groups: Value| json!({"quant_method": "compressed-tensors", "format": format, "config_groups": groups});
    let gptq = |more: (&str, Value)| {
        let mut own = json!({"quant_method": "gptq", "bits": 4});
        own[more.0] = more.1;
        own
    };
    let named = [
        (json!({"load_in_4bit": true}), "quantized by bitsandbytes "),
        (
            compressed("nvfp4-pack-quantized", group(json!({"strategy": "tensor_group"}))),
            "nvfp4-pack-quantized",
        ),
        (compressed("float-quantized", group(json!({"strategy": "token"}))), "strategy token"),
        (compressed("pack-quantized", json!({})), "not one group"),
        (compressed("pack-quantized", json!({"a": {}, "b": {}})), "not one group"),
        (compressed("pack-quantized", json!({"a": {}})), "without a form"),
        (
            compressed(
                "pack-quantized",
                group(json!({"strategy": "group", "group_size": 8, "num_bits": 99})),
            ),
            "bits that",
        ),
        (gptq(("bits", json!(3))), "gptq (bits"),
        (gptq(("checkpoint_format", json!("marlin"))), "gptq (checkpoint_format marlin)"),
        (gptq(("is_marlin_format", json!(true))), "gptq (checkpoint_format marlin)"),
        (json!({"quant_method": "x".repeat(5000)}), "xxx"),
    ];
    cases.extend(named.map(|(config, part)| (config, part.to_owned())));
    for (config, part) in cases {
        let error = coded().set("quantization_config", config.clone()).convert().unwrap_err();
        assert_eq!(error.code(), "hg-quantization", "{config}");
        let text = error.to_string();
        assert!(text.contains(&part) && text.len() < 300, "{text}");
        assert!(error.entry().is_some_and(|entry| !entry.remedy.is_empty()), "{error}");
    }
}

#[test]
fn what_programs_for_quantization_leave_is_refused_before_shapes_are() {
    for (end, program) in [
        (".weight.absmax", "bitsandbytes"),
        (".weight.quant_state.bitsandbytes__nf4", "bitsandbytes"),
        (".q_weight", "EXL2"),
        (".trellis", "EXL3"),
        (".W_q", "HQQ"),
        (".qweight", "GPTQ or AWQ"),
    ] {
        let name = format!("model.layers.0.mlp.down_proj{end}");
        // The matrix itself has become a column of bytes.
        let folder = llama().each(|tensor| {
            if tensor.name == "model.layers.0.mlp.down_proj.weight" {
                tensor.shape = vec![2304, 1];
            }
        });
        let error = folder.tensor(&name, Dtype::U8, &[4]).convert().unwrap_err();
        assert_eq!(error.code(), "hg-leftover", "{name}");
        assert!(error.to_string().contains(program), "{error}");
    }
}

#[test]
fn tensors_that_do_not_belong_are_refused() {
    let f16 = Dtype::F16;
    let cases = [
        (llama().tensor("model.layers.0.self_attn.q_extra.weight", f16, &[4, 4]), "hg-tensor-name"),
        (llama().tensor("model.layers.2.input_layernorm.weight", f16, &[48]), "hg-layer"),
        (
            Changed::of("mixtral").tensor("model.layers.2.block_sparse_moe.experts.0.w1.weight", f16, &[1]),
            "hg-layer",
        ),
        (llama().each(|tensor| tensor.name.insert_str(0, "_orig_mod.")), "hg-prefix"),
        (llama().each(|tensor| tensor.name.insert_str(0, "base_model.model.")), "hg-prefix"),
        (llama().tensor("base_model.model.extra.weight", f16, &[48]), "hg-tensor-name"),
        (
            llama().tensor(
                "base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight",
                f16,
                &[8, 48],
            ),
            "hg-leftover",
        ),
        (llama().tensor("model.layers.0.self_attn.q_proj.base_layer.weight", f16, &[48, 48]), "hg-leftover"),
        (llama().tensor("model.layers.00.input_layernorm.weight", f16, &[48]), "hg-tensor-name"),
        (
            llama().tensor("model.layers.99999999999999999999.input_layernorm.weight", f16, &[48]),
            "hg-tensor-name",
        ),
        (llama().tensor("model.layers.0.mlp.up_proj.qweight", Dtype::I32, &[4, 4]), "hg-leftover"),
        (llama().tensor("model.layers.0.mlp.up_proj.weight.absmax", Dtype::F32, &[4]), "hg-leftover"),
        (llama().tensor("model.norm.weight", f16, &[48]), "hg-duplicate-tensor"),
        (llama().tensor("norm.weight", f16, &[48]), "hg-same-name"),
        (llama().tensor("extra.weight", Dtype::U16, &[48]), "hg-source-type"),
        (llama().tensor("extra.weight", f16, &[1 << 40, 1 << 40]), "hg-elements"),
        (llama().tensor("extra.weight", f16, &[u64::MAX, 2, 0]), "hg-elements"),
        (llama().each(|tensor| tensor.shape.reverse()), "hg-tensor-shape"),
        (llama().each(|tensor| tensor.shape.clear()), "hg-tensor-shape"),
        (Changed::of("mixtral").removed("experts.1.w2"), "hg-incomplete"),
        (
            Changed::of("mixtral").each(|tensor| {
                if tensor.name.ends_with("0.block_sparse_moe.experts.1.w2.weight") {
                    tensor.shape.reverse();
                }
            }),
            "hg-group-shape",
        ),
        (
            Changed::of("mixtral").tensor("model.layers.0.block_sparse_moe.experts.9.w1.weight", f16, &[1]),
            "hg-expert",
        ),
        (
            Changed::of("mixtral").tensor("model.layers.0.block_sparse_moe.experts.1.w7.weight", f16, &[1]),
            "hg-tensor-name",
        ),
        (
            Changed::of("mixtral").tensor(
                "model.layers.0.block_sparse_moe.experts.18446744073709551616.w1.weight",
                f16,
                &[1],
            ),
            "hg-tensor-name",
        ),
        (
            Changed::of("qwen2moe").tensor("model.layers.0.mlp.experts.gate_up_proj", f16, &[2, 3, 4]),
            "hg-tensor-shape",
        ),
        (
            Changed::of("qwen2moe").tensor("model.layers.0.mlp.experts.gate_up_proj", f16, &[]),
            "hg-tensor-shape",
        ),
        (Changed::of("gpt2").each(|tensor| tensor.shape.push(1)), "hg-tensor-shape"),
        (Changed::of("deepseek2-lite").each(|tensor| tensor.shape.insert(0, 3)), "hg-tensor-shape"),
    ];
    for (idx, (folder, code)) in cases.into_iter().enumerate() {
        assert_eq!(folder.code(), code, "case {idx}");
    }
}

/// Each tensor is needed, but for those that not every model has: every head, norms of OLMo, what T5 has in one layer only and biases.
#[test]
fn a_model_that_lacks_a_tensor_is_refused() {
    const OPTIONAL: [&str; 8] = [
        "lm_head",
        "embed_out",
        "token_type_embeddings",
        "relative_attention_bias",
        "bias",
        "classifier",
        "shared.",
        "pooler",
    ];
    for entry in std::fs::read_dir(vectors().join("expected")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.strip_suffix(".json").unwrap();
        let all = Changed::of(name).tables;
        let mut n_refused = 0;
        for tensor in all.iter().flatten() {
            let mut folder = Changed::of(name);
            folder.tables.iter_mut().for_each(|table| table.retain(|own| own.name != tensor.name));
            match folder.convert() {
                Ok(_) => {
                    assert!(OPTIONAL.iter().any(|part| tensor.name.contains(part)), "{name} {}", tensor.name);
                }
                Err(error) => {
                    assert!(
                        matches!(error.code(), "hg-needed-tensor" | "hg-incomplete" | "hg-indexed-tensor"),
                        "{error}"
                    );
                    n_refused += 1;
                }
            }
        }
        assert!(n_refused > 10, "{name} {n_refused}");
    }
}

#[test]
fn parts_of_a_model_that_are_missing_are_refused() {
    let needed = |folder: Changed, name: &str| {
        let error = folder.convert().unwrap_err();
        assert_eq!(error.code(), "hg-needed-tensor");
        assert!(error.to_string().contains(name), "{error}");
    };
    needed(llama().removed("layers.1."), "\"model.layers.1.input_layernorm.weight\"");
    needed(llama().removed("mlp."), "\"model.layers.0.mlp.");
    needed(llama().set("num_hidden_layers", json!(3)), "\"model.layers.2.input_layernorm.weight\"");
    needed(
        Changed::of("mixtral").removed("layers.1.block_sparse_moe.experts."),
        "\"model.layers.1.block_sparse_moe.experts.0.w2.",
    );
    needed(Changed::of("qwen2moe").removed(".experts."), "\"model.layers.0.mlp.experts.0.down_proj.");
    needed(
        Changed::of("deepseek2-lite").removed(".mlp.experts."),
        "\"model.layers.1.mlp.experts.0.down_proj.",
    );
    // Of all layers.
    needed(
        Changed::of("deepseek2-lite").removed(".self_attn.q_proj."),
        "\"model.layers.0.self_attn.q_proj.weight\"",
    );
    needed(
        Changed::of("deepseek2-lite").removed("layers.1.self_attn.kv_b_proj."),
        "\"model.layers.1.self_attn.kv_b_proj.weight\"",
    );
    needed(Changed::of("t5").removed("decoder.block.1."), "\"decoder.block.1.layer.0.layer_norm.weight\"");
}

#[test]
fn shapes_that_contradict_the_configuration_are_refused() {
    let shaped = |part: &str, shape: &[u64]| {
        llama().each(|tensor| {
            if tensor.name.ends_with(part) {
                tensor.shape = shape.into();
            }
        })
    };
    let cases = [
        llama().set("num_attention_heads", json!(8)),
        llama().set("num_key_value_heads", json!(1)),
        llama().set("head_dim", json!(24)),
        llama().set("intermediate_size", json!(97)),
        shaped("0.mlp.gate_proj.weight", &[97, 48]),
        shaped("0.mlp.up_proj.weight", &[48, 96]),
        shaped("0.mlp.down_proj.weight", &[48, 20]),
        shaped("0.self_attn.q_proj.weight", &[0, 48]),
        shaped("0.self_attn.v_proj.weight", &[7, 48]),
        shaped("0.self_attn.o_proj.weight", &[48, 20]),
        shaped("lm_head.weight", &[7, 48]),
        Changed::of("Qwen2-Mini-0.5B").each(|tensor| {
            if tensor.name.ends_with("0.self_attn.k_proj.bias") {
                tensor.shape = vec![3];
            }
        }),
        Changed::of("gpt2").set("n_inner", json!(7)),
        Changed::of("phi3-longrope").set("intermediate_size", json!(7)),
        Changed::of("mpt").set("attn_config", json!({"kv_n_heads": 1})),
        Changed::of("qwen3moe").set("moe_intermediate_size", json!(7)),
        Changed::of("deepseek2-lite").set("intermediate_size", json!(7)),
        Changed::of("t5").set("d_kv", json!(7)),
    ];
    for (idx, folder) in cases.into_iter().enumerate() {
        assert_eq!(folder.code(), "hg-tensor-shape", "case {idx}");
    }
}

#[test]
fn quantized_tensors_have_to_fit_each_other() {
    let fp8 = || {
        let is_matrix = |tensor: &SourceTensor| tensor.name.ends_with("0.mlp.up_proj.weight");
        let folder = llama().each(|tensor| {
            if is_matrix(tensor) {
                tensor.dtype = Dtype::F8E4M3;
            }
        });
        folder.set("quantization_config", json!({"quant_method": "fp8", "weight_block_size": [32, 32]}))
    };
    let scale = |layer: u32, shape: &[u64]| {
        fp8().tensor(&format!("model.layers.{layer}.mlp.up_proj.weight_scale_inv"), Dtype::F32, shape)
    };
    assert_eq!(scale(0, &[3, 2]).code(), "converted");
    assert_eq!(scale(0, &[2, 2]).code(), "hg-quantized-shape");
    assert_eq!(scale(0, &[3, 2, 1]).code(), "hg-quantized-shape");
    assert_eq!(scale(0, &[]).code(), "hg-quantized-shape");
    assert_eq!(scale(7, &[3, 2]).code(), "hg-missing-tensor");
    let error = fp8().convert().unwrap_err();
    assert_eq!(error.code(), "hg-missing-tensor");
    assert!(error.to_string().contains("layers.0.mlp.up_proj.weight_scale_inv"), "{error}");

    let gptq = |shapes: [&[u64]; 4]| {
        let mut folder = llama()
            .removed("layers.0.mlp.up_proj")
            .set("quantization_config", json!({"quant_method": "gptq", "bits": 4}));
        let parts =
            [("qweight", Dtype::I32), ("qzeros", Dtype::I32), ("scales", Dtype::F16), ("g_idx", Dtype::I32)];
        for ((part, dtype), shape) in parts.into_iter().zip(shapes) {
            folder = folder.tensor(&format!("model.layers.0.mlp.up_proj.{part}"), dtype, shape);
        }
        folder.code()
    };
    assert_eq!(gptq([&[6, 96], &[3, 12], &[3, 96], &[48]]), "converted");
    assert_eq!(gptq([&[6, 96], &[3, 12], &[3, 96], &[47]]), "hg-quantized-shape");
    assert_eq!(gptq([&[6, 96], &[2, 12], &[3, 96], &[48]]), "hg-quantized-shape");
    assert_eq!(gptq([&[1 << 63, 96], &[3, 12], &[3, 96], &[48]]), "hg-elements");
}

#[test]
fn indexes_that_do_not_fit_are_refused() {
    let index = |map: Value| {
        llama().text("model.safetensors.index.json", &json!({"weight_map": map}).to_string()).code()
    };
    assert_eq!(index(json!({})), "hg-index");
    assert_eq!(index(json!([])), "hg-index");
    assert_eq!(index(json!({"a": 1})), "hg-index");
    for path in ["../model.safetensors", "/etc/passwd", "a/b.safetensors", "..", "", "a\\b", "a\0b"] {
        assert_eq!(index(json!({"a": path})), "hg-index", "{path}");
    }
    assert_eq!(index(json!({"a": "model-2.safetensors"})), "hg-missing-file");
    assert_eq!(index(json!({"model.norm.weight": "model.safetensors"})), "hg-not-indexed");
    let mut all: Value = json!({"more": "model.safetensors"});
    llama().tables[0].iter().for_each(|tensor| all[&tensor.name] = json!("model.safetensors"));
    assert_eq!(index(all), "hg-indexed-tensor");
    assert_eq!(llama().text("model.safetensors.index.json", "[").code(), "hg-json");
    let found = |index: &[&str], files: &[&str]| {
        let mut texts = Texts::new("x");
        if !index.is_empty() {
            let map: Value =
                index.iter().enumerate().map(|(idx, file)| (idx.to_string(), json!(file))).collect();
            texts.insert("model.safetensors.index.json", json!({"weight_map": map}).to_string().into_bytes());
        }
        match Parts::find(&texts, files.iter().copied()) {
            Ok(parts) => format!("{} files", parts.files.len()),
            Err(error) => format!("{} {error}", error.code()),
        }
    };
    let all = [
        "model-00001-of-00003.safetensors",
        "model-00002-of-00003.safetensors",
        "model-00003-of-00003.safetensors",
    ];
    assert_eq!(found(&[], &all), "3 files");
    assert_eq!(
        found(&[], &["model-00000-of-00002.safetensors", "model-00001-of-00002.safetensors"]),
        "2 files"
    );
    for idx in 0..3 {
        let others: Vec<&str> = all.iter().copied().filter(|name| *name != all[idx]).collect();
        let without = found(&[], &others);
        assert!(without.starts_with("hg-missing-file ") && without.contains(all[idx]), "{without}");
        let without = found(&others, &all);
        assert!(without.starts_with("hg-part-not-indexed ") && without.contains(all[idx]), "{without}");
    }
    assert_eq!(found(&all, &all), "3 files");
    assert_eq!(found(&["model.safetensors"], &[&["model.safetensors"], &all[..]].concat()), "1 files");
    assert!(found(&[], &["model-00001-of-18446744073709551615.safetensors"]).starts_with("hg-missing-file "));
    assert_eq!(Parts::find(&Texts::new("x"), ["readme.txt"]).unwrap_err().code(), "hg-no-tensors");
    let parts =
        Parts::find(&Texts::new("x"), ["pytorch_model-2.bin", "pytorch_model-1.bin", "model.onnx"]).unwrap();
    assert_eq!(
        (parts.format, parts.files.join(" ")),
        (PartFormat::Pickle, "pytorch_model-1.bin pytorch_model-2.bin".into())
    );
}

#[test]
fn messages_name_what_is_at_fault() {
    let text = |folder: Changed| {
        let error = folder.convert().unwrap_err();
        (error.code(), error.to_string())
    };
    let (code, message) = text(Changed::of("llama3-bpe").text("tokenizer_config.json", "{}"));
    assert_eq!(code, "hg-token-id");
    assert!(message.contains(": the token \"<unk>\" has the id 483"), "{message}");
    let (code, message) = text(llama().set("rms_norm_eps", json!({})));
    assert_eq!(code, "hg-config-value");
    assert!(message.contains("config.json: expected a number, found an object"), "{message}");
}

/// What `docs/hf-gguf.md` lists: sound models on which the reference implementation stops.
#[test]
fn models_on_which_the_reference_stops_are_converted() {
    let notes = |folder: Changed| {
        let conversion = folder.convert().unwrap();
        assert_eq!(conversion.notes().len(), 1);
        conversion
    };
    let context = |conversion: &Conversion| {
        conversion.keys().get("gpt2.context_length").and_then(hf_gguf::Value::as_u32)
    };
    assert_eq!(context(&notes(Changed::of("gpt2").without("n_ctx"))), Some(128));
    let masked = Changed::of("gpt2")
        .tensor("transformer.h.0.attn.bias", Dtype::Bool, &[1, 1, 128, 128])
        .tensor("transformer.h.0.attn.masked_bias", Dtype::F32, &[]);
    assert_eq!(notes(masked).outputs().len(), 28);
    let falcon = notes(Changed::of("falcon-7b-style").without("num_kv_heads"));
    assert_eq!(falcon.keys().get("falcon.attention.head_count_kv").and_then(hf_gguf::Value::as_u32), Some(1));

    let mut stablelm = Changed::of("stablelm");
    for layer in 0..2 {
        for (part, head) in ["q", "k"].into_iter().flat_map(|part| (0..4).map(move |head| (part, head))) {
            let name = format!("model.layers.{layer}.self_attn.{part}_layernorm.norms.{head}.weight");
            stablelm = stablelm.tensor(&name, Dtype::F16, &[16]);
        }
    }
    let stablelm = notes(stablelm);
    let norm = stablelm.outputs().iter().find(|output| output.name == "blk.1.attn_k_norm.weight").unwrap();
    assert_eq!((&norm.shape[..], norm.dtype), (&[4, 16][..], Dtype::F32));

    let decoder = Changed::of("t5").set("num_decoder_layers", json!(3));
    let count = decoder.tables[0].len();
    let third = decoder.tables[0].iter().filter(|tensor| tensor.name.starts_with("decoder.block.1."));
    let third: Vec<SourceTensor> = third.cloned().collect();
    let more = third.iter().fold(decoder, |folder, tensor| {
        let name = tensor.name.replace("block.1.", "block.2.");
        folder.tensor(&name, tensor.dtype, &tensor.shape)
    });
    assert_eq!(notes(more).outputs().len(), count + third.len());
}

/// Every value of every configuration replaced by others, and every shape and type by others: refused or converted, and nothing else.
#[test]
fn mutated_folders_are_refused_or_converted() {
    let others = [
        json!(null),
        json!(-1),
        json!(0),
        json!(1_000_000_000),
        json!(4_294_967_295_u32),
        json!(0.5),
        json!("x"),
        json!([]),
        json!({}),
        json!(true),
        json!([1, [2, {"a": 3}]]),
    ];
    let names = std::fs::read_dir(vectors().join("expected")).unwrap();
    let mut turn = 0;
    for entry in names {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.strip_suffix(".json").unwrap();
        let keys: Vec<String> = Changed::of(name).config.as_object().unwrap().keys().cloned().collect();
        for key in keys {
            for _ in 0..3 {
                turn += 1;
                let _ = Changed::of(name).set(&key, others[turn % others.len()].clone()).convert();
            }
        }
        for step in 1..8 {
            let mut idx = 0;
            let folder = Changed::of(name).each(|tensor| {
                idx += 1;
                match (idx * step) % 7 {
                    0 => tensor.shape.reverse(),
                    1 if step == 3 => tensor.shape.clear(),
                    2 if step == 4 => tensor.shape.push(0),
                    3 if step == 5 => tensor.shape.iter_mut().for_each(|len| *len = 1 << 40),
                    4 if step == 6 => tensor.dtype = Dtype::F8E5M2,
                    5 if step == 7 => tensor.name.insert(tensor.name.len() / 2, '.'),
                    _ => {}
                }
            });
            let _ = folder.convert();
        }
    }
    assert!(turn > 1500, "{turn}");
}
