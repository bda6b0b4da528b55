//! Tensors of the new file, with what their values are made from.

use alloc::string::String;
use alloc::vec::Vec;

use tensor_dtype::Dtype;

use super::input::{Input, Values};
use super::view::View;

/// What matrices become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputType {
    /// Floats of 32 bits.
    F32,
    /// Floats of 16 bits.
    F16,
    /// The upper halves of floats of 32 bits.
    Bf16,
    /// Blocks of 32 signed bytes.
    Q8_0,
    /// Ternary blocks, five values per byte.
    Tq1_0,
    /// Ternary blocks, four values per byte.
    Tq2_0,
}

impl OutputType {
    /// Every type, with its name in any case.
    pub const ALL: [(&'static str, Self); 6] = [
        ("f32", Self::F32),
        ("f16", Self::F16),
        ("bf16", Self::Bf16),
        ("q8_0", Self::Q8_0),
        ("tq1_0", Self::Tq1_0),
        ("tq2_0", Self::Tq2_0),
    ];

    /// The type of this name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, found)| *found)
    }

    /// Value of `general.file_type`.
    #[must_use]
    pub const fn file_type(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Bf16 => 32,
            Self::Q8_0 => 7,
            Self::Tq1_0 => 36,
            Self::Tq2_0 => 37,
        }
    }

    /// Type of most matrices.
    #[must_use]
    pub const fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::Bf16,
            Self::Q8_0 => Dtype::Q8_0,
            Self::Tq1_0 => Dtype::TQ1_0,
            Self::Tq2_0 => Dtype::TQ2_0,
        }
    }

    /// The type of a tensor of this name and shape. `is_kept` says whether it is of a kind that is never made smaller.
    pub(crate) fn of(self, name: &str, shape: &[u64], is_kept: bool) -> Dtype {
        let is_matrix = name.ends_with(".weight") && !name.ends_with("_norm.weight") && shape.len() > 1;
        if !is_matrix || is_kept {
            return Dtype::F32;
        }
        let is_ternary = matches!(self, Self::Tq1_0 | Self::Tq2_0);
        let is_outer = matches!(name, "token_embd.weight" | "output.weight");
        if is_ternary && is_outer { Dtype::F16 } else { self.of_matrix(shape) }
    }

    /// The type of a matrix of this shape.
    pub(crate) fn of_matrix(self, shape: &[u64]) -> Dtype {
        let wanted = self.dtype();
        let columns = shape.last().copied().unwrap_or(1);
        if columns.is_multiple_of(wanted.block_len() as u64) { wanted } else { Dtype::F16 }
    }
}

/// A tensor of the new file.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Name.
    pub name: String,
    /// Shape, the slowest dimension first: the reverse of the dimensions in the file.
    pub shape: Vec<u64>,
    /// Type.
    pub dtype: Dtype,
    /// Values.
    pub content: Content,
}

/// What the values of an [`Output`] are.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Elements of inputs, one view after the other.
    Views {
        /// The views. Their sources are numbers of [inputs](crate::Input).
        views: Vec<View>,
        /// What is added to each, with the precision of the input.
        shift: Shift,
    },
    /// Values that the configuration gives.
    Constant(Vec<f32>),
    /// Blocks of MXFP4 in the layout of ggml, from those of another.
    Blocks {
        /// `[..., 16]` bytes, each with two neighbours.
        codes: View,
        /// `[...]` exponents.
        scales: View,
    },
}

/// What is added to values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shift {
    /// Nothing.
    #[default]
    None,
    /// One.
    PlusOne,
    /// Minus one.
    MinusOne,
}

impl Output {
    /// Number of elements.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.shape.iter().fold(1, |count, len| count.saturating_mul(*len))
    }

    /// Number and type of the tensor of a file whose values these are, all and in the same order.
    #[must_use]
    pub fn stored(&self, inputs: &[Input]) -> Option<(usize, Dtype)> {
        let Content::Views { views, shift: Shift::None } = &self.content else { return None };
        let [view] = &views[..] else { return None };
        whole(view, inputs)
    }

    /// Numbers of the tensors of files that this is made from, if it has the values of each, all and in the same order: pieces of it
    /// can be read in any order.
    #[must_use]
    pub fn sources(&self, inputs: &[Input]) -> Option<Vec<usize>> {
        let Content::Views { views, .. } = &self.content else { return None };
        views.iter().map(|view| whole(view, inputs).map(|(tensor, _)| tensor)).collect()
    }
}

/// Number and type of the tensor of a file that is viewed, if all of it is, in its order.
fn whole(view: &View, inputs: &[Input]) -> Option<(usize, Dtype)> {
    let input = inputs.get(view.source())?;
    let Values::Stored { tensor, dtype } = input.values else { return None };
    let shape: Vec<u64> = view.axes().iter().map(|axis| axis.len).collect();
    let is_whole = *view == View::new(view.source(), &shape)
        && shape.iter().product::<u64>() == input.shape.iter().product::<u64>();
    is_whole.then_some((tensor, dtype))
}

/// Elements of a model, as the size in its name counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParameterCount {
    /// All.
    pub total: u64,
    /// Those outside of experts.
    pub shared: u64,
    /// Those of one expert of each layer.
    pub expert: u64,
    /// Experts of a layer; 0 for models without.
    pub experts: u64,
}

impl ParameterCount {
    /// Of the tensors of a file.
    #[must_use]
    pub fn of(outputs: &[Output]) -> Self {
        let mut sum = Self::default();
        let (mut n_experts, mut n_stacks) = (0_u64, 0_u64);
        for output in outputs {
            let count = output.count();
            let from_end = if output.name.contains(".bias") { 2 } else { 3 };
            let place = output.shape.len().checked_sub(from_end).filter(|_| output.shape.len() >= 3);
            match place.and_then(|place| output.shape.get(place)).filter(|_| output.name.contains("_exps.")) {
                Some(&experts) => {
                    sum.expert += count.checked_div(experts).unwrap_or(0);
                    n_experts += experts;
                    n_stacks += 1;
                }
                None => sum.shared += count,
            }
            sum.total += count;
        }
        sum.experts = n_experts.checked_div(n_stacks).unwrap_or(0);
        sum
    }

    /// Of the matrices that the pairs of an adapter change, and its norms.
    pub(crate) fn of_adapter(outputs: &[Output]) -> Self {
        let mut total = 0_u64;
        let mut columns = 1;
        for output in outputs {
            let last = output.shape.last().copied().unwrap_or(1);
            if output.name.ends_with(".lora_a") {
                columns = last;
                continue;
            }
            let is_factor = output.name.ends_with(".lora_b");
            let rows = output.count().checked_div(last).unwrap_or(0);
            let count = if is_factor { rows.saturating_mul(columns) } else { output.count() };
            total = total.saturating_add(count);
        }
        Self { total, shared: total, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_norms_and_tensors_without_weight_stay_exact() {
        let q8 = OutputType::Q8_0;
        assert_eq!(q8.of("blk.0.attn_q.weight", &[8, 64], false), Dtype::Q8_0);
        assert_eq!(q8.of("blk.0.attn_q.weight", &[8, 48], false), Dtype::F16);
        assert_eq!(q8.of("blk.0.attn_q_norm.weight", &[8, 64], false), Dtype::F32);
        assert_eq!(q8.of("blk.0.attn_q.bias", &[8, 64], false), Dtype::F32);
        assert_eq!(q8.of("output_norm.weight", &[64], false), Dtype::F32);
        assert_eq!(q8.of("position_embd.weight", &[8, 64], true), Dtype::F32);
        assert_eq!(OutputType::Tq1_0.of("output.weight", &[8, 256], false), Dtype::F16);
        assert_eq!(OutputType::Tq1_0.of("blk.0.ffn_up.weight", &[8, 256], false), Dtype::TQ1_0);
        assert_eq!(OutputType::from_name("BF16").map(OutputType::file_type), Some(32));
    }
}
