//! The decision for each tensor.

use alloc::collections::BTreeSet;

use apr_quant::Quantizer;
use regex_lite::Regex;
use tensor_dtype::Dtype;

use super::facts::ModelFacts;
use super::kept::{self, Kept};
use super::mix::Mixer;
use super::reason::Reason;
use super::role::{Role, layer};
use super::target::{FileType, Target};
use crate::error::{Error, ErrorKind};
use crate::importance::Importance;
use crate::target_format::TargetFormat;

/// A tensor as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its dimensions, the slowest first.
    pub shape: &'a [u64],
    /// How it is stored; `None` if its elements are of a type that no block format is.
    pub dtype: Option<Dtype>,
}

/// Whether tensors get different types by their role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mixture {
    /// As llama-quantize has it.
    #[default]
    Reference,
    /// All get the target's.
    Pure,
}

/// Whether quantized tensors may be quantized again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Requantize {
    /// An error that names the tensor.
    #[default]
    Refuse,
    /// It may; precision is lost twice.
    Allow,
}

/// What becomes of the output tensor (`output.weight`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputTensor {
    /// As the mixture determines.
    #[default]
    Mixture,
    /// The type of the input is kept.
    Keep,
    /// This.
    Dtype(Dtype),
}

/// A type for all tensors whose name matches an expression.
///
/// ```
/// use apr_convert::quantize::Override;
///
/// let pattern: Override = "blk\\.[01]\\.ffn=q6_k".parse()?;
/// assert!(pattern.applies_to("blk.0.ffn_up.weight") && !pattern.applies_to("blk.2.ffn_up.weight"));
/// assert_eq!("ffn".parse::<Override>().unwrap_err().code(), "cv-override");
/// assert_eq!("(=q6_k".parse::<Override>().unwrap_err().code(), "cv-override");
/// # Ok::<(), apr_convert::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Override {
    expression: Regex,
    dtype: Dtype,
}

impl Override {
    /// Whether the expression finds something in the name, anywhere and with capitals as they are.
    #[must_use]
    pub fn applies_to(&self, name: &str) -> bool {
        self.expression.is_match(name)
    }

    /// The new type of the tensors.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }
}

impl core::str::FromStr for Override {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |what: String| ErrorKind::Override { text: text.into(), what: what.into() };
        let split = text.rsplit_once('=').filter(|(expression, _)| !expression.is_empty());
        let (expression, name) =
            split.ok_or_else(|| refused("an override is EXPRESSION=TYPE, for example attn_v=q8_0".into()))?;
        let expression =
            Regex::new(expression).map_err(|error| refused(format!("not a regular expression: {error}")))?;
        let dtype = writable_dtype(name)?;
        Ok(Self { expression, dtype })
    }
}

/// The type with this name, ggml's or one of [`Target`], if values can be quantized to it.
///
/// # Errors
///
/// [`ErrorKind::UnknownTarget`]; [`ErrorKind::Quant`] for a format that is read only.
pub fn writable_dtype(name: &str) -> Result<Dtype, Error> {
    let unknown = || ErrorKind::UnknownTarget { name: name.into() };
    let known = Dtype::from_name_ignore_case(name).filter(|&dtype| apr_quant::is_decodable(dtype));
    let dtype = known.or_else(|| Some(Target::from_name(name).ok()?.base()));
    let dtype = dtype.ok_or_else(unknown)?;
    Quantizer::new(dtype)?;
    Ok(dtype)
}

/// Options of a quantization plan.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The type of most tensors.
    pub target: Target,
    /// The file they are written into.
    pub format: TargetFormat,
    /// Whether tensors get different types by their role.
    pub mixture: Mixture,
    /// Whether quantized tensors may be quantized again.
    pub requantize: Requantize,
    /// What becomes of the output tensor.
    pub output_tensor: OutputTensor,
    /// The type of the token embeddings, if it overrides the mixture.
    pub token_embedding: Option<Dtype>,
    /// Formats by name; the first that applies does. Tensors that are left as they are stay so.
    pub overrides: Vec<Override>,
    /// Which columns matter.
    pub importance: Option<&'a Importance>,
    /// Names of tensors that are left as they are, because the model would be another one without them.
    pub exact: BTreeSet<&'a str>,
}

impl Options<'_> {
    /// This target, and llama-quantize's defaults for the rest.
    #[must_use]
    pub const fn new(target: Target) -> Self {
        Self {
            target,
            format: TargetFormat::Gguf,
            mixture: Mixture::Reference,
            requantize: Requantize::Refuse,
            output_tensor: OutputTensor::Mixture,
            token_embedding: None,
            overrides: Vec::new(),
            importance: None,
            exact: BTreeSet::new(),
        }
    }
}

/// The decision for a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Which of the tensors given.
    pub tensor_idx: usize,
    /// What it is.
    pub from: Option<Dtype>,
    /// Its new type; `None` if it is copied because its type is unknown here.
    pub to: Option<Dtype>,
    /// Why.
    pub reason: Reason,
    /// Bytes before and after; 0 where the type is not known here.
    pub bytes: (u64, u64),
    /// Number of elements.
    pub count: u64,
}

impl Decision {
    /// Whether its bytes are copied.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.from == self.to
    }
}

/// Sums over all tensors of a [`Plan`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Elements.
    pub count: u64,
    /// Bytes before.
    pub bytes_before: u64,
    /// Bytes after, without padding.
    pub bytes_after: u64,
    /// Tensors whose bytes change.
    pub converted: u64,
    /// Tensors whose rows are not whole blocks of the chosen type.
    pub fallbacks: u64,
}

impl Totals {
    /// Bits that an element takes afterwards.
    #[must_use]
    pub fn bits_per_weight(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.bytes_after as f64 * 8.0 / self.count as f64 }
    }
}

/// What each tensor of a model becomes, in the order in which they are to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    decisions: Vec<Decision>,
    totals: Totals,
    importance: ImportanceUse,
}

/// Use of importance weights in a [`Plan`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportanceUse {
    /// Tensors whose quantization is weighted.
    pub weighted: u64,
    /// Tensors, by their index, whose new type uses weights, and for which there are none. Without those for which nothing is measured as
    /// a rule: token embeddings and the output.
    pub missing: Vec<usize>,
}

impl Plan {
    /// Decides.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotInFormat`], [`ErrorKind::Requantize`], [`ErrorKind::NeedsImportance`] and
    /// [`ErrorKind::ImportanceLength`] name the tensor, unless the target itself has no place in the file;
    /// [`ErrorKind::ImportanceNames`] if importance is given and applies to no tensor; [`ErrorKind::TooLong`] for sizes beyond 64 bits.
    pub fn new(tensors: &[TensorSpec<'_>], facts: &ModelFacts, options: &Options<'_>) -> Result<Self, Error> {
        Planner::new(tensors, facts, options)?.plan()
    }

    /// A decision per tensor, in the order of the output.
    #[must_use]
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Use of the importance weights.
    #[must_use]
    pub const fn importance(&self) -> &ImportanceUse {
        &self.importance
    }

    /// The sums.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }
}

/// By what rules names are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    /// Those of llama-quantize.
    Reference,
    /// Every matrix is like every other.
    Generic,
}

struct Planner<'a> {
    tensors: &'a [TensorSpec<'a>],
    facts: &'a ModelFacts,
    options: &'a Options<'a>,
    rules: Rules,
    base: Dtype,
}

impl<'a> Planner<'a> {
    fn new(
        tensors: &'a [TensorSpec<'a>],
        facts: &'a ModelFacts,
        options: &'a Options<'a>,
    ) -> Result<Self, Error> {
        let format = options.format;
        let known = facts.architecture.is_some() && format == TargetFormat::Gguf;
        let base = in_format(options.target.base(), format);
        let others = options.overrides.iter().map(Override::dtype).chain(options.token_embedding);
        let output = match options.output_tensor {
            OutputTensor::Dtype(dtype) => Some(dtype),
            _ => None,
        };
        for dtype in [base].into_iter().chain(others).chain(output) {
            if !format.has(in_format(dtype, format)) {
                return Err(ErrorKind::NotInFormat { dtype, format }.into());
            }
        }
        let rules = if known { Rules::Reference } else { Rules::Generic };
        Ok(Self { tensors, facts, options, rules, base })
    }

    fn plan(&self) -> Result<Plan, Error> {
        let mut order: Vec<usize> = (0..self.tensors.len()).collect();
        if self.rules == Rules::Reference {
            // Tensors outside of layers first, then by layer; by the bytes of the name within.
            order.sort_by_key(|idx| (layer(self.tensors[*idx].name), self.tensors[*idx].name));
        }
        let names = order.iter().map(|idx| self.tensors[*idx].name);
        let with_importance = self.options.importance.is_some();
        let mut mixer = Mixer::new(self.options.target, self.facts, with_importance, names);
        let mut totals = Totals::default();
        let mut decisions = Vec::with_capacity(order.len());
        for &tensor_idx in &order {
            let spec = &self.tensors[tensor_idx];
            let decision = self.decide(tensor_idx, &mut mixer).map_err(|error| error.of_tensor(spec.name))?;
            let add = |sum: u64, more: u64| sum.checked_add(more).ok_or(ErrorKind::TooLong);
            totals.count = add(totals.count, decision.count)?;
            totals.bytes_before = add(totals.bytes_before, decision.bytes.0)?;
            totals.bytes_after = add(totals.bytes_after, decision.bytes.1)?;
            totals.converted += u64::from(!decision.is_copy());
            totals.fallbacks += u64::from(matches!(decision.reason, Reason::Fallback { .. }));
            decisions.push(decision);
        }
        let importance = self.importance_use(&decisions)?;
        Ok(Plan { decisions, totals, importance })
    }

    fn importance_use(&self, decisions: &[Decision]) -> Result<ImportanceUse, Error> {
        let mut found = ImportanceUse::default();
        let Some(importance) = self.options.importance else { return Ok(found) };
        let (mut is_matched, mut first) = (false, None);
        for decision in decisions.iter().filter(|decision| !decision.is_copy()) {
            let spec = &self.tensors[decision.tensor_idx];
            let Some(to) = decision.to.filter(|to| to.is_quantized()) else { continue };
            first.get_or_insert(spec.name);
            let is_weighted = importance.applies_to(spec.name, spec.shape);
            is_matched |= is_weighted;
            if !apr_quant::uses_importance(to) {
                continue;
            }
            if is_weighted {
                found.weighted += 1;
            } else if !matches!(Role::of(spec.name), Role::TokenEmbedding | Role::Output) {
                found.missing.push(decision.tensor_idx);
            }
        }
        match first {
            Some(tensor) if !is_matched => {
                let entry = importance.names().next().unwrap_or_default();
                Err(ErrorKind::ImportanceNames { entry: entry.into(), tensor: tensor.into() }.into())
            }
            _ => Ok(found),
        }
    }

    fn decide(&self, tensor_idx: usize, mixer: &mut Mixer<'_>) -> Result<Decision, Error> {
        let spec = &self.tensors[tensor_idx];
        let count = spec.shape.iter().try_fold(1_u64, |count, dim| count.checked_mul(*dim));
        let count = count.ok_or(ErrorKind::TooLong)?;
        let (to, reason) = self.choose(spec, mixer)?;
        let bytes = |dtype: Option<Dtype>| match dtype {
            Some(dtype) => byte_len(dtype, spec.shape),
            None => Ok(0),
        };
        let decision = Decision {
            tensor_idx,
            from: spec.dtype,
            to,
            reason,
            bytes: (bytes(spec.dtype)?, bytes(to)?),
            count,
        };
        if !decision.is_copy() {
            self.check_conversion(spec, &decision)?;
        }
        Ok(decision)
    }

    fn check_conversion(&self, spec: &TensorSpec<'_>, decision: &Decision) -> Result<(), Error> {
        let (Some(from), Some(to)) = (decision.from, decision.to) else { return Ok(()) };
        let again = from.is_quantized() && to.is_quantized() && apr_quant::repack(from, to).is_none();
        // Blocks that only this file has go into another one as its blocks of the same kind, or not at all.
        let is_forced = matches!(decision.reason, Reason::TargetFormat { .. });
        if again && !is_forced && self.options.requantize == Requantize::Refuse {
            return Err(ErrorKind::Requantize { from, to }.into());
        }
        let weights = self.options.importance.and_then(|importance| importance.weights(spec.name));
        if let Some(weights) = weights.filter(|_| to.is_quantized()) {
            let expected = Importance::expected(spec.shape);
            let found = weights.len() as u64;
            // The reference passes over embeddings, of which nothing is ever measured in whole.
            if found != expected && Role::of(spec.name) != Role::TokenEmbedding {
                return Err(ErrorKind::ImportanceLength { expected, found }.into());
            }
        }
        let exempt = matches!(Role::of(spec.name), Role::Output | Role::TokenEmbedding);
        let in_small_file = self.options.target.file_type() == FileType::Q2_K_S && to == Dtype::Q2_K;
        if in_small_file && !exempt && weights.is_none() && self.rules == Rules::Reference {
            return Err(ErrorKind::NeedsImportance.into());
        }
        Ok(())
    }

    fn choose(&self, spec: &TensorSpec<'_>, mixer: &mut Mixer<'_>) -> Result<(Option<Dtype>, Reason), Error> {
        let role = Role::of(spec.name);
        let by_name = || match self.rules {
            Rules::Reference => kept::by_name(spec.name),
            Rules::Generic => None,
        };
        let exact = || self.options.exact.contains(spec.name).then_some(Kept::Exact);
        let left = || {
            (role == Role::Output && self.options.output_tensor == OutputTensor::Keep).then_some(Kept::Output)
        };
        let kept = kept::by_shape(spec.shape, spec.dtype).or_else(exact).or_else(left).or_else(by_name);
        if let Some(kept) = kept {
            return self.keep(spec, kept);
        }
        let (wanted, reason) = self.wanted(spec, role, mixer);
        let wanted = in_format(wanted, self.options.format);
        let columns = spec.shape.last().copied().unwrap_or(1);
        let to = fallback(wanted, columns, self.options.format, spec.dtype, self.rules);
        match to {
            None => Ok((Some(wanted), reason)),
            Some(to) => Ok((Some(to), Reason::Fallback { wanted })),
        }
    }

    /// The type of a tensor if its rows had a suitable length.
    fn wanted(&self, spec: &TensorSpec<'_>, role: Role, mixer: &mut Mixer<'_>) -> (Dtype, Reason) {
        let options = self.options;
        if let Some(dtype) = options.token_embedding.filter(|_| role == Role::TokenEmbedding) {
            return (dtype, Reason::Option(role));
        }
        if let OutputTensor::Dtype(dtype) = options.output_tensor
            && role == Role::Output
        {
            return (dtype, Reason::Option(role));
        }
        let found = options.overrides.iter().enumerate().find(|(_, rule)| rule.applies_to(spec.name));
        if let Some((index, rule)) = found {
            return (rule.dtype(), Reason::Override { index });
        }
        let pure = options.mixture == Mixture::Pure || self.rules == Rules::Generic;
        if pure || !self.base.is_quantized() {
            return (self.base, Reason::Target);
        }
        if let OutputTensor::Dtype(dtype) = options.output_tensor
            && mixer.is_output(role)
        {
            return (dtype, Reason::Option(role));
        }
        let chosen = mixer.choose(spec.name, spec.shape, role);
        let reason = if chosen == self.base { Reason::Target } else { Reason::Mixture(role) };
        (chosen, reason)
    }

    /// A tensor that is kept, unless the file cannot store its type.
    fn keep(&self, spec: &TensorSpec<'_>, kept: Kept) -> Result<(Option<Dtype>, Reason), Error> {
        let format = self.options.format;
        match spec.dtype {
            Some(was) if !format.has(was) => {
                let plain = if self.base.is_quantized() { Dtype::F32 } else { self.base };
                // Integers are not turned into floats.
                if kept == Kept::NoFloats {
                    return Err(ErrorKind::NotInFormat { dtype: was, format }.into());
                }
                Ok((Some(plain), Reason::TargetFormat { was }))
            }
            dtype => Ok((dtype, Reason::Kept(kept))),
        }
    }
}

/// The file's block type with the same bits, if it does not have ggml's.
fn in_format(dtype: Dtype, format: TargetFormat) -> Dtype {
    match (format, dtype) {
        (TargetFormat::Apr, Dtype::Q4_0) => Dtype::AprQ4,
        (TargetFormat::Apr, Dtype::Q8_0) => Dtype::AprQ8,
        _ => dtype,
    }
}

/// The replacement of a type whose blocks do not fit rows of this length; `None` if they fit.
fn fallback(
    wanted: Dtype,
    columns: u64,
    format: TargetFormat,
    from: Option<Dtype>,
    rules: Rules,
) -> Option<Dtype> {
    use Dtype::{AprQ4, AprQ8, Bf16, F16, Q4_K, Q6_K};
    let fits = |dtype: Dtype| dtype == AprQ4 || columns.is_multiple_of(dtype.block_len() as u64);
    if fits(wanted) {
        return None;
    }
    let next = match wanted {
        Q4_K if format == TargetFormat::Apr => AprQ4,
        Q6_K if format == TargetFormat::Apr => AprQ8,
        _ => shorter(wanted).unwrap_or(F16),
    };
    // Sixteen bits that are there already are kept, but where the reference's file is to be met.
    let plain = from.filter(|from| rules == Rules::Generic && *from == Bf16).unwrap_or(F16);
    Some(if fits(next) && next != F16 { next } else { plain })
}

/// The type with shorter blocks that rows of another length get in ggml's files.
pub(super) const fn shorter(dtype: Dtype) -> Option<Dtype> {
    use Dtype::{IQ4_NL, IQ4_XS, Q2_0, Q2_K, Q3_K, Q4_0, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0, TQ1_0, TQ2_0};
    Some(match dtype {
        Q2_0 | Q2_K | Q3_K | TQ1_0 | TQ2_0 => Q4_0,
        IQ4_XS => IQ4_NL,
        Q4_K => Q5_0,
        Q5_K => Q5_1,
        Q6_K => Q8_0,
        _ => return None,
    })
}

fn byte_len(dtype: Dtype, shape: &[u64]) -> Result<u64, Error> {
    let (&columns, rest) = shape.split_last().unwrap_or((&1, &[]));
    let n_rows = rest.iter().try_fold(1_u64, |count, dim| count.checked_mul(*dim));
    Ok(apr_quant::byte_len(dtype, columns, n_rows.ok_or(ErrorKind::TooLong)?)?)
}
