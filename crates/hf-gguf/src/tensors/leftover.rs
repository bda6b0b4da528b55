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
    (".lora_A.weight", "PEFT"),
    (".lora_B.weight", "PEFT"),
];

/// The program that leaves tensors with such a name.
pub(super) fn leftover(name: &str) -> Option<&'static str> {
    LEFTOVERS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, program)| *program)
}
