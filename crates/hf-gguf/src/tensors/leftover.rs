//! Tensors that programs write beside those of a model.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;

use tensor_dtype::Dtype;

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

/// A tensor of a checkpoint that is quantized already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodedTensor<'n> {
    /// Name.
    pub name: &'n str,
    /// The program or method that quantized it.
    pub program: &'static str,
}

/// The first tensor that holds codes, or the scales of codes beside it: quantizing either would damage the model. A name alone is not enough, as models have
/// tensors called `scales` too: codes have a type that is neither a float of 16 bits or more, nor one that holds truth values.
///
/// ```
/// use hf_gguf::{CodedTensor, Dtype, coded_tensor};
///
/// let fp8 = [("up.weight", Dtype::F8E4M3), ("up.weight_scale_inv", Dtype::F32)];
/// assert_eq!(coded_tensor(&fp8), Some(CodedTensor { name: "up.weight_scale_inv", program: "FP8" }));
/// assert_eq!(coded_tensor(&[("up.qweight", Dtype::I32)]).map(|found| found.program), Some("GPTQ or AWQ"));
/// assert_eq!(coded_tensor(&[("up.weight", Dtype::F32), ("up.scales", Dtype::F32)]), None);
/// ```
#[must_use]
pub fn coded_tensor<'n>(tensors: &[(&'n str, Dtype)]) -> Option<CodedTensor<'n>> {
    let types: BTreeMap<&str, Dtype> = tensors.iter().copied().collect();
    let is_code = |name: &str| types.get(name).copied().is_some_and(holds_codes);
    let beside = |stem: &str| {
        let own = [stem.to_owned(), format!("{stem}.weight")];
        own.iter().any(|name| is_code(name))
            || LEFTOVERS.iter().any(|(end, _)| is_code(&format!("{stem}{end}")))
    };
    tensors.iter().find_map(|&(name, _)| {
        let found = LEFTOVERS.iter().find_map(|(end, program)| Some((name.strip_suffix(end)?, *program)));
        if let Some((stem, program)) = found {
            return beside(stem).then_some(CodedTensor { name, program });
        }
        // Of gpt-oss.
        if name.strip_suffix("_scales").is_some_and(|stem| is_code(&format!("{stem}_blocks"))) {
            return Some(CodedTensor { name, program: "MXFP4" });
        }
        // Names of programs that are not listed, such as `scale_weight`.
        let (stem, last) = name.rsplit_once('.')?;
        let weight = types.get(&*format!("{stem}.weight")).copied();
        let is_scale = last.contains("scale") && weight.is_some_and(is_small_float);
        is_scale.then_some(CodedTensor { name, program: "FP8" })
    })
}

fn holds_codes(dtype: Dtype) -> bool {
    !matches!(dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::Bf16 | Dtype::Bool | Dtype::C64)
}

/// A float of at most 8 bits.
#[must_use]
pub fn is_small_float(dtype: Dtype) -> bool {
    ["F8", "F6", "F4"].iter().any(|start| dtype.name().starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_their_scales_are_found() {
        let (codes, bytes, words) = (Dtype::F8E4M3, Dtype::U8, Dtype::U32);
        for (tensors, program) in [
            (
                &[("a.weight", Dtype::F32), ("b.weight", codes), ("b.weight_scale", Dtype::F32)][..],
                "compressed-tensors or modelopt",
            ),
            (&[("b.weight", codes), ("b.scale_weight", Dtype::F32)], "FP8"),
            (&[("b.weight", bytes), ("b.weight.absmax", Dtype::F32)], "bitsandbytes"),
            (&[("b.weight", Dtype::I8), ("b.SCB", Dtype::F32)], "bitsandbytes"),
            (&[("b.weight", words), ("b.scales", Dtype::F16)], "GPTQ, AWQ or MLX"),
            (&[("b.qweight", Dtype::I32), ("b.scales", Dtype::F16)], "GPTQ or AWQ"),
            (&[("b.weight_packed", Dtype::I32)], "compressed-tensors"),
            (&[("m.up_proj_blocks", bytes), ("m.up_proj_scales", bytes)], "MXFP4"),
            (&[("b.W_q", bytes), ("b.scale", Dtype::F16)], "HQQ"),
        ] {
            assert_eq!(coded_tensor(tensors).map(|found| found.program), Some(program), "{tensors:?}");
        }
    }

    #[test]
    fn floats_with_such_names_are_not_codes() {
        for tensors in [
            &[("b.weight", Dtype::F32), ("b.scales", Dtype::F32)][..],
            &[("b.weight", Dtype::F16), ("b.biases", Dtype::F16), ("b.mask", Dtype::U8)],
            &[("k.centroids", Dtype::F32), ("k.codebooks", Dtype::F32)],
            &[("b.lora_A.weight", Dtype::F32), ("b.weight", Dtype::I8)],
            // Floats of 8 bits without scales are numbers.
            &[("b.weight", Dtype::F8E5M2), ("b.bias", Dtype::F32)],
            &[("norm.weight", Dtype::F32), ("norm.scale", Dtype::F32)],
        ] {
            assert_eq!(coded_tensor(tensors), None, "{tensors:?}");
        }
    }
}
