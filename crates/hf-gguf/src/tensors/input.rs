//! What outputs are computed from: tensors of the files, and tensors that are dequantized from several of them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use located_error::{Subject, cut};
use tensor_dtype::Dtype;

use super::SourceTensor;
use super::leftover::leftover;
use super::scales::{refuse_unscaled, unscaled};
use crate::config::{Config, MXFP4};
use crate::error::{Error, ErrorKind};
use crate::json::Json;

/// A tensor of values, before the changes of an architecture. Numbers are those of the tensors of the files, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Shape, the slowest dimension first.
    pub shape: Vec<u64>,
    /// What its values come from.
    pub values: Values,
}

/// Where the values of an [`Input`] come from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// A tensor of a file.
    Stored {
        /// Its number.
        tensor: usize,
        /// Its type.
        dtype: Dtype,
    },
    /// Codes times scales, each of which holds for a block of them.
    Scaled {
        /// Number and type of the codes.
        codes: (usize, Dtype),
        /// Number and type of the scales.
        scales: (usize, Dtype),
        /// For each dimension the number of scales and the number of codes that share one.
        blocks: Vec<(u64, u64)>,
    },
    /// Codes packed into integers of 32 bits along rows, with scales of groups.
    Packed(Packed),
    /// Codes packed along columns, transposed, with scales of groups that an index assigns.
    Gptq(Gptq),
}

/// `pack-quantized` of compressed-tensors: `[rows, columns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Number of the codes, `[rows, ceil(columns / codes per word)]` of `I32`.
    pub codes: usize,
    /// Number and type of the scales, `[rows, columns / group]`.
    pub scales: (usize, Dtype),
    /// Number of the two integers of the shape, and their type.
    pub shape: (usize, Dtype),
    /// Number of the zero points, `[ceil(rows / codes per word), columns / group]` of `I32`.
    pub zeros: Option<usize>,
    /// Words of 32 bits in a row.
    pub row_words: u64,
    /// Bits of a code.
    pub bits: u32,
    /// Columns that share a scale.
    pub group: u64,
}

/// GPTQ: `[outputs, inputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gptq {
    /// Number of the codes, `[inputs / codes per word, outputs]` of `I32`.
    pub codes: usize,
    /// Number of the zero points, `[groups, outputs / codes per word]` of `I32`.
    pub zeros: usize,
    /// Number and type of the scales, `[groups, outputs]`.
    pub scales: (usize, Dtype),
    /// Number of the groups of the inputs, `[inputs]` of `I32`.
    pub groups: usize,
    /// Number of groups.
    pub n_groups: u64,
    /// Bits of a code.
    pub bits: u32,
    /// What is added to each zero point.
    pub zero_offset: i32,
}

impl Input {
    /// Type of the values: floats of 16 bits stay, everything else is computed with 32 bits.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        match self.values {
            Values::Stored { dtype: Dtype::F16, .. } => Dtype::F16,
            _ => Dtype::F32,
        }
    }

    /// Type of the values as they are read.
    #[must_use]
    pub const fn stored_dtype(&self) -> Dtype {
        match self.values {
            Values::Stored { dtype, .. } => dtype,
            _ => Dtype::F32,
        }
    }

    fn stored(tensor: usize, source: &SourceTensor) -> Self {
        Self { shape: source.shape.clone(), values: Values::Stored { tensor, dtype: source.dtype } }
    }
}

/// Inputs by name, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    list: Vec<Option<(String, Input)>>,
    by_name: BTreeMap<String, usize>,
}

impl Inputs {
    /// The tensors of the files under the names that `rename` gives them; those without a name are left out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DuplicateTensor`]; [`ErrorKind::SourceType`]; [`ErrorKind::TooManyElements`].
    pub(crate) fn new(
        sources: &[&SourceTensor],
        mut rename: impl FnMut(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let mut inputs = Self::default();
        for (tensor, source) in sources.iter().enumerate() {
            let Some(name) = rename(&source.name) else { continue };
            let refused = |kind: ErrorKind| Err(Error::from(kind).of(Subject::tensor(&source.name)));
            if !is_read(source.dtype) {
                return refused(ErrorKind::SourceType { dtype: source.dtype });
            }
            let count = source.shape.iter().try_fold(1_u64, |count, len| count.checked_mul(*len));
            if count.is_none_or(|count| count > MAX_ELEMENTS) {
                return refused(ErrorKind::TooManyElements);
            }
            if inputs.by_name.contains_key(&name) {
                return refused(ErrorKind::DuplicateTensor);
            }
            inputs.push(name, Input::stored(tensor, source));
        }
        Ok(inputs)
    }

    /// The inputs in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(String, Input)> {
        self.list.iter().flatten()
    }

    /// The inputs in order.
    pub(crate) fn into_list(self) -> Vec<(String, Input)> {
        self.list.into_iter().flatten().collect()
    }

    fn push(&mut self, name: String, input: Input) {
        self.by_name.insert(name.clone(), self.list.len());
        self.list.push(Some((name, input)));
    }

    fn get(&self, name: &str) -> Option<&Input> {
        let place = self.by_name.get(name)?;
        self.list.get(*place)?.as_ref().map(|(_, input)| input)
    }

    /// Takes an input away.
    fn remove(&mut self, name: &str) -> Option<Input> {
        let place = self.by_name.remove(name)?;
        self.list.get_mut(place)?.take().map(|(_, input)| input)
    }

    /// Replaces an input where it stands.
    fn replace(&mut self, name: &str, input: Input) {
        if let Some(place) = self.by_name.get(name)
            && let Some(Some((_, old))) = self.list.get_mut(*place)
        {
            *old = input;
        }
    }

    fn names(&self) -> Vec<String> {
        self.list.iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    /// An input that another one needs, with the number and the type of its tensor.
    fn need(&self, name: &str) -> Result<(&Input, usize, Dtype), Error> {
        let missing = || Error::from(ErrorKind::MissingTensor).of(Subject::tensor(name));
        match self.get(name) {
            Some(input @ Input { values: Values::Stored { tensor, dtype }, .. }) => {
                Ok((input, *tensor, *dtype))
            }
            _ => Err(missing()),
        }
    }

    /// Replaces quantized tensors by what they are dequantized to, by the `quantization_config`. Returns a remark on what may be wrong.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Quantization`] for methods that are not known; [`ErrorKind::MissingTensor`] and [`ErrorKind::QuantizedShape`] for
    /// tensors that do not belong together.
    pub(crate) fn dequantize(&mut self, config: &Config) -> Result<Option<String>, Error> {
        let Some(method) = config.quantization() else {
            self.refuse_leftovers()?;
            return Ok(unscaled(self.iter()));
        };
        let settings = config.get("quantization_config").unwrap_or(&Json::Null);
        match method {
            "fp8" => self.fp8(settings)?,
            "gptq" => self.gptq(settings)?,
            "compressed-tensors" => self.compressed(settings)?,
            // By the one architecture that has it.
            MXFP4 if config.class().is_ok_and(|class| class == "GptOssForCausalLM") => self.mxfp4()?,
            _ => return Err(ErrorKind::Quantization { method: cut(method, MAX_METHOD).into() }.into()),
        }
        refuse_unscaled(self.iter(), if method == "fp8" { "_scale_inv" } else { "_scale" })?;
        Ok(None)
    }

    /// Refuses tensors that a program for quantization left, of a model that does not say how it is quantized: before shapes of codes are
    /// taken for those of matrices.
    fn refuse_leftovers(&self) -> Result<(), Error> {
        let found = self.iter().find_map(|(name, _)| Some((name, leftover(name)?)));
        match found {
            Some((name, program)) => {
                Err(Error::from(ErrorKind::Leftover { program }).of(Subject::tensor(name)))
            }
            None => Ok(()),
        }
    }

    /// Checks that codes and scales are bytes. The architecture puts them together.
    fn mxfp4(&self) -> Result<(), Error> {
        for (name, input) in
            self.iter().filter(|(name, _)| name.ends_with("_blocks") || name.ends_with("_scales"))
        {
            if let Values::Stored { dtype, .. } = input.values
                && dtype != Dtype::U8
            {
                return Err(Error::from(ErrorKind::SourceType { dtype }).of(Subject::tensor(name)));
            }
        }
        Ok(())
    }

    fn fp8(&mut self, settings: &Json) -> Result<(), Error> {
        let block = sizes(settings.get("weight_block_size"))?;
        for name in self.names() {
            if let Some(weight) = name.strip_suffix("_scale_inv") {
                self.scale(weight, &name, &block)?;
            } else if name.ends_with("_activation_scale") || name.ends_with(".activation_scale") {
                self.remove(&name);
            }
        }
        Ok(())
    }

    fn compressed(&mut self, settings: &Json) -> Result<(), Error> {
        let format = settings.get("format").and_then(Json::as_str).unwrap_or_default();
        let refused = |what: &str| {
            let method = alloc::format!("compressed-tensors ({}{what})", cut(format, MAX_METHOD));
            Error::from(ErrorKind::Quantization { method: method.into() })
        };
        let groups = settings.get("config_groups").and_then(Json::as_object);
        let group = groups.filter(|groups| groups.len() == 1).and_then(|groups| groups.iter().next());
        let (_, group) = group.ok_or_else(|| refused(", not one group of matrices"))?;
        let weights = group.get("weights").ok_or_else(|| refused(", without a form of weights"))?;
        let setting = |name: &str| weights.get(name);
        let strategy = setting("strategy").and_then(Json::as_str);
        let other = || {
            let strategy = cut(strategy.unwrap_or("none"), MAX_METHOD);
            refused(&alloc::format!(", strategy {strategy}"))
        };
        match (format, strategy) {
            (
                "float-quantized" | "int-quantized" | "naive-quantized",
                Some("tensor" | "channel" | "block"),
            ) if setting("group_size").is_none() => {
                let block = sizes(setting("block_structure"))?;
                for name in self.names() {
                    if name.ends_with(".weight_scale") {
                        self.scale(name.trim_end_matches("_scale"), &name, &block)?;
                    } else if OF_ACTIVATIONS.iter().any(|end| name.ends_with(end)) {
                        self.remove(&name);
                    }
                }
                Ok(())
            }
            ("pack-quantized", Some("group"))
                if setting("type").and_then(Json::as_str).unwrap_or("int") == "int" =>
            {
                let number = |name| setting(name).and_then(Json::as_i64).and_then(|n| u32::try_from(n).ok());
                let bits = number("num_bits").filter(|bits| (1..=16).contains(bits));
                let bits = bits.ok_or_else(|| refused(", bits that are not 1 to 16"))?;
                let group = number("group_size").filter(|group| *group > 0);
                let group = group.ok_or_else(|| refused(", without a size of groups"))?;
                self.packed(bits, group.into())
            }
            _ => Err(other()),
        }
    }

    /// `weight` times `scale`, whose elements hold for blocks of these sizes.
    fn scale(&mut self, weight: &str, scale: &str, block: &[u64]) -> Result<(), Error> {
        let (codes, code_tensor, code_dtype) = self.need(weight)?;
        let (scales, scale_tensor, scale_dtype) = self.need(scale)?;
        let mismatch = || Error::from(ErrorKind::QuantizedShape).of(Subject::tensor(scale));
        if scales.shape.len() > codes.shape.len() {
            return Err(mismatch());
        }
        // Sizes are those of the last dimensions of the scales.
        let without = scales.shape.len().checked_sub(block.len()).ok_or_else(mismatch)?;
        let mut blocks = Vec::with_capacity(codes.shape.len());
        for (axis, &len) in codes.shape.iter().enumerate() {
            let n_scales = scales.shape.get(axis).copied().unwrap_or(1);
            let size = axis.checked_sub(without).and_then(|idx| block.get(idx)).copied().unwrap_or(1);
            let reach = n_scales.saturating_mul(size);
            if reach == 1 {
                blocks.push((1, len.max(1)));
            } else if reach >= len && size > 0 {
                blocks.push((n_scales, size));
            } else {
                return Err(mismatch());
            }
        }
        let values =
            Values::Scaled { codes: (code_tensor, code_dtype), scales: (scale_tensor, scale_dtype), blocks };
        let input = Input { shape: codes.shape.clone(), values };
        self.replace(weight, input);
        self.remove(scale);
        Ok(())
    }

    fn packed(&mut self, bits: u32, group: u64) -> Result<(), Error> {
        let per_word = u64::from((32 - (bits - 1)).div_ceil(bits));
        for name in self.names() {
            let Some(base) = name.strip_suffix("_packed").filter(|base| base.ends_with(".weight")) else {
                continue;
            };
            let part = |end: &str| alloc::format!("{base}{end}");
            let mismatch = || Error::from(ErrorKind::QuantizedShape).of(Subject::tensor(&name));
            let (codes, code_tensor, code_dtype) = self.need(&name)?;
            let (scales, scale_tensor, scale_dtype) = self.need(&part("_scale"))?;
            let (_, shape_tensor, shape_dtype) = self.need(&part("_shape"))?;
            let zeros = match self.get(&part("_zero_point")) {
                Some(_) => Some(self.need(&part("_zero_point"))?),
                None => None,
            };
            let (&[rows, row_words], &[scale_rows, n_groups]) = (&codes.shape[..], &scales.shape[..]) else {
                return Err(mismatch());
            };
            let columns = n_groups.checked_mul(group).ok_or_else(mismatch)?;
            let zeros_fit = zeros.as_ref().is_none_or(|(input, _, dtype)| {
                input.shape == [rows.div_ceil(per_word), n_groups] && *dtype == Dtype::I32
            });
            let fits = scale_rows == rows && columns.div_ceil(per_word) == row_words && zeros_fit;
            if !fits || code_dtype != Dtype::I32 || !matches!(shape_dtype, Dtype::I64 | Dtype::I32) {
                return Err(mismatch());
            }
            let values = Values::Packed(Packed {
                codes: code_tensor,
                scales: (scale_tensor, scale_dtype),
                shape: (shape_tensor, shape_dtype),
                zeros: zeros.map(|(_, tensor, _)| tensor),
                row_words,
                bits,
                group,
            });
            self.substitute(
                base,
                &["_packed", "_shape", "_scale", "_zero_point"],
                "",
                [rows, columns],
                values,
            )?;
        }
        Ok(())
    }

    fn gptq(&mut self, settings: &Json) -> Result<(), Error> {
        let other = || ErrorKind::Quantization { method: "gptq (bits other than 2, 4 and 8)".into() };
        let bits = settings.get("bits").and_then(Json::as_i64).and_then(|bits| u32::try_from(bits).ok());
        let bits = bits.filter(|bits| matches!(bits, 2 | 4 | 8)).ok_or_else(other)?;
        let format = settings.get("checkpoint_format").and_then(Json::as_str).unwrap_or("gptq");
        let is_marlin = settings.get("is_marlin_format").and_then(Json::as_bool) == Some(true);
        // Codes in the order of a kernel have the same names and sizes.
        if is_marlin || !matches!(format, "gptq" | "gptq_v2") {
            let format = if is_marlin { "marlin" } else { cut(format, MAX_METHOD) };
            let method = alloc::format!("gptq (checkpoint_format {format})");
            return Err(ErrorKind::Quantization { method: method.into() }.into());
        }
        let is_v1 = format == "gptq";
        let per_word = u64::from(32 / bits);
        for name in self.names() {
            let Some(base) = name.strip_suffix(".qweight") else { continue };
            let part = |end: &str| alloc::format!("{base}{end}");
            let mismatch = || Error::from(ErrorKind::QuantizedShape).of(Subject::tensor(&name));
            let (codes, code_tensor, code_dtype) = self.need(&name)?;
            let (zeros, zero_tensor, zero_dtype) = self.need(&part(".qzeros"))?;
            let (scales, scale_tensor, scale_dtype) = self.need(&part(".scales"))?;
            let (groups, group_tensor, group_dtype) = self.need(&part(".g_idx"))?;
            let (&[words, outputs], &[n_groups, _]) = (&codes.shape[..], &scales.shape[..]) else {
                return Err(mismatch());
            };
            let inputs = words.checked_mul(per_word).ok_or_else(mismatch)?;
            let fits = scales.shape == [n_groups, outputs]
                && zeros.shape == [n_groups, outputs / per_word]
                && outputs.is_multiple_of(per_word)
                && groups.shape == [inputs];
            if !fits || [code_dtype, zero_dtype, group_dtype] != [Dtype::I32; 3] {
                return Err(mismatch());
            }
            let values = Values::Gptq(Gptq {
                codes: code_tensor,
                zeros: zero_tensor,
                scales: (scale_tensor, scale_dtype),
                groups: group_tensor,
                n_groups,
                bits,
                zero_offset: i32::from(is_v1),
            });
            let ends = [".g_idx", ".qzeros", ".qweight", ".scales"];
            self.substitute(base, &ends, ".weight", [outputs, inputs], values)?;
        }
        Ok(())
    }

    /// One input in place of several, after all others.
    fn substitute(
        &mut self,
        base: &str,
        ends: &[&str],
        new_end: &str,
        shape: [u64; 2],
        values: Values,
    ) -> Result<(), Error> {
        for end in ends {
            self.remove(&alloc::format!("{base}{end}"));
        }
        let name = alloc::format!("{base}{new_end}");
        if self.get(&name).is_some() {
            return Err(Error::from(ErrorKind::DuplicateTensor).of(Subject::tensor(&name)));
        }
        self.push(name, Input { shape: shape.into(), values });
        Ok(())
    }
}

/// Bytes that messages keep of the name of a method.
pub(super) const MAX_METHOD: usize = 64;
/// Scales of what flows through the model: of inputs and outputs of matrices, and of the cache of keys and values.
const OF_ACTIVATIONS: &[&str] = &[".input_scale", ".output_scale", ".q_scale", ".k_scale", ".v_scale"];
/// Most elements of a tensor: their bytes fit 64 bits whatever their type.
const MAX_ELEMENTS: u64 = 1 << 48;

/// Types that are read: those that the reference implementation reads.
const fn is_read(dtype: Dtype) -> bool {
    matches!(
        dtype,
        Dtype::F64
            | Dtype::F32
            | Dtype::F16
            | Dtype::Bf16
            | Dtype::F8E4M3
            | Dtype::F8E5M2
            | Dtype::I64
            | Dtype::I32
            | Dtype::I16
            | Dtype::I8
            | Dtype::U8
            | Dtype::Bool
    )
}

/// Sizes of blocks, one per dimension.
fn sizes(value: Option<&Json>) -> Result<Vec<u64>, Error> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let number =
        |size: &Json| size.as_i64().and_then(|size| u64::try_from(size).ok()).filter(|size| *size > 0);
    let sizes = value.as_array().and_then(|sizes| sizes.iter().map(number).collect());
    let method =
        || ErrorKind::Quantization { method: "blocks whose sizes are no list of positive numbers".into() };
    sizes.ok_or_else(|| method().into())
}
