//! Collects the outputs of a model, tensor by tensor.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use located_error::Subject;
use tensor_dtype::Dtype;

use super::input::Input;
use super::leftover::{leftover, wrapped};
use super::output::{Content, Output, OutputType, Shift};
use super::pair::{Factor, Pair, factors};
use super::view::View;
use crate::architecture::Architecture;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::keys::{Keys, Value};
use crate::rope::Rope;
use crate::texts::Texts;

/// Bytes of the codes of a block of MXFP4.
const CODES: u64 = 16;
/// Names of tensors that are never made smaller, after the layer.
const KEPT: &[&str] = &["ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight"];
/// Those outside of layers.
const KEPT_OUTER: &[&str] = &["position_embd.weight", "token_types.weight"];
/// Names, after the layer, of matrices whose rows are as long as vectors of tokens.
const READ: &[&str] = &[
    "token_embd",
    "token_types",
    "position_embd",
    "output",
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_qkv",
    "attn_q_a",
    "attn_kv_a_mqa",
    "cross_attn_q",
    "cross_attn_k",
    "cross_attn_v",
    "ffn_up",
    "ffn_gate",
    "ffn_up_exps",
    "ffn_gate_exps",
    "ffn_up_shexp",
    "ffn_gate_shexp",
    "ffn_gate_inp",
    "ffn_gate_inp_shexp",
];
/// Those of matrices that have as many rows as vectors of tokens have elements.
const WRITTEN: &[&str] =
    &["attn_output", "attn_o", "cross_attn_o", "ffn_down", "ffn_down_exps", "ffn_down_shexp"];
/// Those of vectors that are as long.
const NORMS: &[&str] = &[
    "token_embd_norm",
    "output_norm",
    "attn_norm",
    "attn_norm_2",
    "attn_output_norm",
    "cross_attn_norm",
    "post_attention_norm",
    "ffn_norm",
    "post_ffw_norm",
    "layer_output_norm",
];
/// A tensor of the folder, when its turn comes.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    /// Its name, without what the architecture's [`rename`](Architecture::rename) removes.
    pub(crate) name: String,
    /// The first number in it.
    pub(crate) layer: Option<u64>,
    /// All of it.
    pub(crate) view: View,
}

/// What a [`Builder`] collects.
pub(crate) struct Built {
    pub(crate) outputs: Vec<Output>,
    /// Keys that tensors bring about, which come before all others.
    pub(crate) keys: Keys,
    /// Why the reference implementation would stop.
    pub(crate) notes: Vec<&'static str>,
}

/// What has been collected.
pub(crate) struct Builder<'m> {
    pub(crate) config: &'m Config,
    pub(crate) rope: &'m Rope,
    pub(crate) texts: &'m Texts,
    architecture: &'static Architecture,
    output_type: OutputType,
    n_layers: u64,
    /// Length of the vectors of tokens.
    width: Option<u64>,
    /// Changes of matrices by an adapter, and the number of the source that is the product of the first.
    pairs: (Vec<Pair>, usize),
    outputs: Vec<Output>,
    names: BTreeSet<String>,
    /// Keys that tensors bring about, which come before all others.
    keys: Keys,
    /// Why the reference implementation would stop.
    notes: Vec<&'static str>,
    /// Tensors that wait for others of their layer: by layer and kind, each with its number.
    groups: BTreeMap<(u64, &'static str), BTreeMap<u64, View>>,
    /// Tensors that wait for one other.
    waiting: BTreeMap<(u64, &'static str, &'static str), View>,
}

impl<'m> Builder<'m> {
    pub(crate) fn new(
        config: &'m Config,
        rope: &'m Rope,
        texts: &'m Texts,
        architecture: &'static Architecture,
        output_type: OutputType,
        n_layers: u64,
    ) -> Self {
        Self {
            config,
            rope,
            texts,
            architecture,
            output_type,
            n_layers,
            width: config.u32(&["hidden_size", "n_embd", "dim", "d_model"]).ok().flatten().map(u64::from),
            pairs: (Vec::new(), 0),
            outputs: Vec::new(),
            names: BTreeSet::new(),
            keys: Keys::new(),
            notes: Vec::new(),
            groups: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Takes every input in turn.
    ///
    /// # Errors
    ///
    /// If a name is not known, a shape contradicts the configuration, or tensors of a group are missing.
    pub(crate) fn run(mut self, inputs: &[(String, Input)]) -> Result<Built, Error> {
        (self.architecture.generate)(&mut self)?;
        for (idx, (name, input)) in inputs.iter().enumerate() {
            self.take(name, View::new(idx, &input.shape))?;
        }
        self.finish()
    }

    /// Takes the tensors of an adapter in turn: those that are no pairs by the numbers of their inputs, and pairs of factors.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run); [`ErrorKind::AdapterChange`].
    pub(crate) fn run_adapter(
        mut self,
        inputs: &[(String, Input)],
        norms: &[(String, usize)],
        pairs: Vec<(String, Pair)>,
    ) -> Result<Built, Error> {
        let (names, pairs): (Vec<String>, Vec<Pair>) = pairs.into_iter().unzip();
        let first = inputs.len();
        let views: Vec<View> =
            pairs.iter().enumerate().map(|(idx, pair)| pair.product(first + idx)).collect();
        self.pairs = (pairs, first);
        for (name, idx) in norms {
            let Some((_, input)) = inputs.get(*idx) else { continue };
            self.take(name, View::new(*idx, &input.shape))?;
        }
        names.iter().zip(views).try_for_each(|(name, view)| self.take(name, view))?;
        self.finish()
    }

    /// Takes a tensor.
    fn take(&mut self, name: &str, view: View) -> Result<(), Error> {
        const LEFT_OUT: [&str; 3] = [".attention.masked_bias", ".attention.bias", ".rotary_emb.inv_freq"];
        if LEFT_OUT.iter().any(|end| name.ends_with(end)) {
            return Ok(());
        }
        let incoming = Incoming { name: name.into(), layer: first_number(name), view };
        if (self.architecture.is_left_out)(self.config, name, incoming.layer) {
            return Ok(());
        }
        let added = match self.architecture.experts {
            Some(experts) if experts.has(name) => self.collect_expert(experts, &incoming),
            _ => (self.architecture.change)(self, incoming),
        };
        added.map_err(|error| error.of(Subject::tensor(name)))
    }

    /// What was collected.
    fn finish(mut self) -> Result<Built, Error> {
        // Blocks come before all others.
        self.outputs.sort_by_key(|output| !matches!(output.content, Content::Blocks { .. }));
        let waiting = self.waiting.keys().next().map(|(layer, kind, _)| (layer, kind));
        match waiting.or(self.groups.keys().next().map(|(layer, kind)| (layer, kind))) {
            None => Ok(Built { outputs: self.outputs, keys: self.keys, notes: self.notes }),
            Some((layer, part)) => {
                Err(ErrorKind::IncompleteGroup { layer: *layer, part: (*part).into() }.into())
            }
        }
    }

    /// Whether a tensor is the change of a matrix by an adapter.
    pub(crate) fn is_change(&self, view: &View) -> bool {
        !self.pairs.0.is_empty() && view.source() >= self.pairs.1
    }

    /// Adds an output that is one view, under the GGUF name of this name.
    pub(crate) fn add(&mut self, name: &str, view: View) -> Result<(), Error> {
        self.add_views(name, view.shape(), vec![view], Change::Nothing)
    }

    /// Adds an output of values that the configuration gives.
    pub(crate) fn add_constant(&mut self, name: &str, values: Vec<f32>) -> Result<(), Error> {
        let shape = vec![values.len() as u64];
        self.push(name.into(), shape, Content::Constant(values))
    }

    /// Adds an output under the GGUF name of this name.
    pub(crate) fn add_views(
        &mut self,
        name: &str,
        shape: Vec<u64>,
        views: Vec<View>,
        change: Change,
    ) -> Result<(), Error> {
        let new_name = self.new_name(name)?;
        self.add_named(new_name, shape, views, change)
    }

    /// Adds an output under this GGUF name.
    pub(crate) fn add_named(
        &mut self,
        new_name: String,
        shape: Vec<u64>,
        views: Vec<View>,
        change: Change,
    ) -> Result<(), Error> {
        if views.iter().any(|view| self.is_change(view)) {
            return self.add_factors(&new_name, &shape, &views, change);
        }
        self.check_shape(&new_name, &shape)?;
        let shift = match change {
            Change::Nothing => Shift::None,
            Change::PlusOne => Shift::PlusOne,
        };
        self.push(new_name, shape, Content::Views { views, shift })
    }

    /// Adds the factors of a change of the matrix of this GGUF name.
    fn add_factors(
        &mut self,
        name: &str,
        shape: &[u64],
        views: &[View],
        change: Change,
    ) -> Result<(), Error> {
        const EMBEDDING: &str = "token_embd.weight";
        let (pairs, first) = &self.pairs;
        let pair = views.first().and_then(|view| pairs.get(view.source().checked_sub(*first)?));
        let is_embedding = pair.is_some_and(|pair| pair.is_embedding);
        let is_matrix = change == Change::Nothing && name.ends_with(".weight") && !name.contains("_norm");
        let found = factors(pairs, *first, shape, views).filter(|_| is_matrix);
        let (mut a, b) =
            found.filter(|_| is_embedding == (name == EMBEDDING)).ok_or(ErrorKind::AdapterChange)?;
        let [.., columns] = a.shape[..] else { return Err(ErrorKind::AdapterChange.into()) };
        let mut product: Vec<u64> = b.shape.clone();
        product.pop();
        // The rows of an embedding are columns here.
        product.insert(if is_embedding { 0 } else { product.len() }, columns);
        self.check_shape(name, &product)?;
        if is_embedding {
            a.shape.reverse();
            a.views = a.views.into_iter().filter_map(|view| view.swap(0, 1)).collect();
        }
        for (end, Factor { shape, views }) in [("lora_a", a), ("lora_b", b)] {
            let name = format!("{name}.{end}");
            if !self.names.insert(name.clone()) {
                return Err(ErrorKind::SameName { name: name.into() }.into());
            }
            let dtype = self.output_type.of_matrix(&shape);
            self.outputs.push(Output {
                name,
                shape,
                dtype,
                content: Content::Views { views, shift: Shift::None },
            });
        }
        Ok(())
    }

    /// Refuses a matrix or norm that does not fit the length of the vectors of tokens.
    fn check_shape(&self, name: &str, shape: &[u64]) -> Result<(), Error> {
        let (Some(width), Some(base)) = (self.width, name.strip_suffix(".weight")) else { return Ok(()) };
        let base = base.rsplit('.').next().unwrap_or(base);
        let (what, found) = match shape {
            _ if READ.contains(&base) => ("rows of", shape.last().filter(|_| shape.len() > 1)),
            [.., rows, _] if WRITTEN.contains(&base) => ("as many rows as", Some(rows)),
            [len] if NORMS.contains(&base) => ("a vector of", Some(len)),
            _ if WRITTEN.contains(&base) || NORMS.contains(&base) => ("the dimensions of", None),
            _ => return Ok(()),
        };
        if found == Some(&width) {
            return Ok(());
        }
        let expected = format!("{what} the hidden size, {width}");
        Err(ErrorKind::TensorShape { expected: expected.into(), found: format!("{shape:?}").into() }.into())
    }

    fn push(&mut self, name: String, shape: Vec<u64>, content: Content) -> Result<(), Error> {
        if !self.names.insert(name.clone()) {
            return Err(ErrorKind::SameName { name: name.into() }.into());
        }
        let is_kept = match name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
            Some((_, name)) => KEPT.contains(&name),
            None => KEPT_OUTER.contains(&name.as_str()),
        };
        let dtype = self.output_type.of(&name, &shape, is_kept);
        self.outputs.push(Output { name, shape, dtype, content });
        Ok(())
    }

    /// The name of a tensor in GGUF files of the architecture.
    fn new_name(&self, name: &str) -> Result<String, Error> {
        let found = self.architecture.gguf_name(name, self.n_layers);
        found.ok_or_else(|| self.unknown(name))
    }

    /// Why the architecture has no tensor of this name.
    fn unknown(&self, name: &str) -> Error {
        let is_known = |name: &str| self.architecture.gguf_name(name, u64::MAX).is_some();
        let kind = match (leftover(name), wrapped(name), first_number(name)) {
            (Some(program), ..) => ErrorKind::Leftover { program },
            (_, Some((prefix, program, rest)), _) if is_known(rest) => ErrorKind::Prefix { prefix, program },
            (.., Some(layer)) if is_known(name) => self.beyond(layer),
            _ => ErrorKind::UnknownTensor,
        };
        kind.into()
    }

    /// The kind for a layer that the configuration does not count.
    const fn beyond(&self, layer: u64) -> ErrorKind {
        ErrorKind::LayerBeyond { layer, count: self.n_layers }
    }

    /// The layer of a tensor.
    fn layer(&self, layer: Option<u64>) -> Result<u64, Error> {
        let layer = layer.ok_or(ErrorKind::UnknownTensor)?;
        if layer < self.n_layers { Ok(layer) } else { Err(self.beyond(layer).into()) }
    }

    /// A tensor of one expert: all of a layer are stacked when the last of them has come.
    fn collect_expert(&mut self, experts: Experts, incoming: &Incoming) -> Result<(), Error> {
        let unknown = || Error::from(ErrorKind::UnknownTensor);
        let layer = self.layer(incoming.layer)?;
        let (_, rest) = incoming.name.split_once(experts.infix).ok_or_else(unknown)?;
        let (expert, part) = rest.split_once('.').ok_or_else(unknown)?;
        let expert: u64 = expert.parse().map_err(|_| unknown())?;
        let part = part.strip_suffix(".weight").ok_or_else(unknown)?;
        let (part, _) = experts.parts.iter().find(|(own, _)| *own == part).ok_or_else(unknown)?;
        let n_experts = u64::from(self.config.need_u32(experts.count)?);
        if expert >= n_experts {
            return Err(ErrorKind::ExpertNumber { number: expert, count: n_experts }.into());
        }
        self.groups.entry((layer, part)).or_default().insert(expert, incoming.view.clone());
        let lens =
            experts.parts.iter().map(|(part, _)| self.groups.get(&(layer, *part)).map_or(0, BTreeMap::len));
        // Numbers are below the count, so that a group of as many is complete.
        if lens.map(|len| len as u64).any(|len| len < n_experts) {
            return Ok(());
        }
        for (part, new_name) in experts.parts {
            let name = format!("blk.{layer}.{new_name}.weight");
            self.stack((layer, part), name)?;
        }
        Ok(())
    }

    /// Collects one of several tensors of a layer that become one, which is called as their kind is.
    pub(crate) fn collect(
        &mut self,
        kind: &'static str,
        incoming: Incoming,
        number: u64,
        count: u64,
    ) -> Result<(), Error> {
        let layer = self.layer(incoming.layer)?;
        if number >= count {
            return Err(ErrorKind::ExpertNumber { number, count }.into());
        }
        let group = self.groups.entry((layer, kind)).or_default();
        group.insert(number, incoming.view);
        if (group.len() as u64) < count {
            return Ok(());
        }
        self.stack((layer, kind), format!("blk.{layer}.{kind}.weight"))
    }

    /// The tensor that this one belongs to, if it was seen before; else this one waits for it.
    pub(crate) fn pair(
        &mut self,
        layer: Option<u64>,
        kind: &'static str,
        part: &'static str,
        view: View,
    ) -> Result<Option<View>, Error> {
        let layer = self.layer(layer)?;
        let key = (layer, kind, part);
        let found = self.waiting.remove(&key);
        if found.is_none() {
            self.waiting.insert(key, view);
        }
        Ok(found)
    }

    /// Adds blocks of MXFP4 under the GGUF name of this name: codes `[..., 16]` and scales `[...]`, one for each.
    pub(crate) fn add_blocks(&mut self, name: &str, codes: View, scales: View) -> Result<(), Error> {
        let name = self.new_name(name)?;
        let mut shape = scales.shape();
        let mut expected = shape.clone();
        expected.push(CODES);
        if codes.shape() != expected {
            return Err(self.shape_error(&codes, format!("{expected:?}")));
        }
        let blocks = shape.pop().unwrap_or(1);
        shape.push(blocks.saturating_mul(Dtype::MXFP4.block_len() as u64));
        self.check_shape(&name, &shape)?;
        if !self.names.insert(name.clone()) {
            return Err(ErrorKind::SameName { name: name.into() }.into());
        }
        self.outputs.push(Output {
            name,
            shape,
            dtype: Dtype::MXFP4,
            content: Content::Blocks { codes, scales },
        });
        Ok(())
    }

    fn stack(&mut self, group: (u64, &'static str), name: String) -> Result<(), Error> {
        let views: Vec<View> =
            self.groups.remove(&group).into_iter().flat_map(BTreeMap::into_values).collect();
        let first = views.first().map(View::shape).unwrap_or_default();
        if views.iter().any(|view| view.shape() != first) {
            return Err(ErrorKind::GroupShape { part: group.1.into() }.into());
        }
        let mut shape = vec![views.len() as u64];
        shape.extend(first);
        self.add_named(name, shape, views, Change::Nothing)
    }

    /// Says why the reference implementation would stop.
    pub(crate) fn note(&mut self, why: &'static str) {
        if !self.notes.contains(&why) {
            self.notes.push(why);
        }
    }

    /// Sets a key that comes before those of the parameters.
    pub(crate) fn set_early(&mut self, key: &str, value: impl Into<Value>) {
        self.keys.set(format!("{}.{key}", self.architecture.name), value);
    }

    /// Whether there is an output of this GGUF name already.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// A shape that the configuration contradicts.
    pub(crate) fn shape_error(&self, view: &View, expected: String) -> Error {
        let found = format!("{:?}", view.shape());
        ErrorKind::TensorShape { expected: expected.into(), found: found.into() }.into()
    }
}

/// What happens to values besides being moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    /// One is added.
    PlusOne,
}

/// How tensors of experts are called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experts {
    /// What is before the number of the expert.
    pub(crate) infix: &'static str,
    /// What is after it, and the name of the stack, in the order in which stacks are written.
    pub(crate) parts: &'static [(&'static str, &'static str)],
    /// Names of the number of experts.
    pub(crate) count: &'static [&'static str],
}

impl Experts {
    /// Whether a tensor is that of one expert.
    fn has(&self, name: &str) -> bool {
        name.split_once(self.infix)
            .is_some_and(|(_, rest)| rest.starts_with(|first: char| first.is_ascii_digit()))
    }
}

/// The first part of a name that is a number.
pub(crate) fn first_number(name: &str) -> Option<u64> {
    let part =
        name.split('.').find(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    part?.parse().ok()
}
