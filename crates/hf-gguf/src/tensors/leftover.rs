//! Tensors that programs write beside those of a model.

/// Endings of their names, with the programs.
const LEFTOVERS: &[(&str, &str)] = &[
    (".qweight", "GPTQ or AWQ"),
    (".qzeros", "GPTQ or AWQ"),
    (".g_idx", "GPTQ"),
    (".absmax", "bitsandbytes"),
    (".quant_map", "bitsandbytes"),
    (".nested_absmax", "bitsandbytes"),
    (".nested_quant_map", "bitsandbytes"),
    (".quant_state.bitsandbytes__nf4", "bitsandbytes"),
    (".quant_state.bitsandbytes__fp4", "bitsandbytes"),
    (".SCB", "bitsandbytes"),
    (".scales", "GPTQ, AWQ or MLX"),
    (".biases", "MLX"),
    (".q_weight", "EXL2"),
    (".q_scale", "EXL2"),
    (".q_scale_max", "EXL2"),
    (".q_groups", "EXL2"),
    (".q_invperm", "EXL2"),
    (".trellis", "EXL3"),
    (".suh", "EXL3"),
    (".svh", "EXL3"),
    (".W_q", "HQQ"),
    (".codebooks", "AQLM"),
    (".Qidxs", "QuIP#"),
    (".centroids", "VPTQ"),
    (".weight_scale", "compressed-tensors or modelopt"),
    (".weight_scale_2", "modelopt"),
    (".weight_scale_inv", "FP8"),
    (".weight_packed", "compressed-tensors"),
    (".weight_global_scale", "compressed-tensors"),
    (".weight_zero_point", "compressed-tensors"),
    (".input_scale", "compressed-tensors or modelopt"),
    (".k_scale", "compressed-tensors or modelopt"),
    (".v_scale", "compressed-tensors or modelopt"),
];
/// Parts of names of tensors of adapters that were not merged.
const OF_ADAPTERS: &[&str] =
    &[".lora_A.", ".lora_B.", ".lora_embedding_", ".base_layer.", ".modules_to_save."];
/// Prefixes that programs put before the names of a model that they wrap.
const PREFIXES: &[(&str, &str)] =
    &[("_orig_mod.", "torch.compile"), ("base_model.model.", "PEFT"), ("module.", "DistributedDataParallel")];

/// The program that leaves tensors with such a name.
pub(super) fn leftover(name: &str) -> Option<&'static str> {
    if OF_ADAPTERS.iter().any(|part| name.contains(part)) {
        return Some("PEFT");
    }
    LEFTOVERS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, program)| *program)
}

/// The prefix that a program put before a name, the program, and the name without it.
pub(super) fn wrapped(name: &str) -> Option<(&'static str, &'static str, &str)> {
    PREFIXES.iter().find_map(|(prefix, program)| Some((*prefix, *program, name.strip_prefix(prefix)?)))
}
