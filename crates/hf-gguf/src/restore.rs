//! The way back: a folder that becomes the same GGUF file again.
//!
//! Nothing is inverted twice. Files and tensors of the folder are proposed; the conversion is planned from them; and its views, which
//! say where each element of the GGUF file comes from, say where each element of the folder comes from when they are read the other way.

mod config;
mod invert;
mod parts;
mod stored;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use located_error::Subject;
use tensor_dtype::Dtype;

pub(crate) use self::config::{float, int, text};
pub(crate) use self::stored::Stored;
use crate::architecture::Architecture;
use crate::authorship;
use crate::conversion::{Conversion, Options, Target};
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::keys::{Keys, Value};
use crate::tensors::input::{Input, Values};
use crate::tensors::output::{Output, OutputType};
use crate::tensors::{PartFormat, Parts, SourceTensor};
use crate::texts::Texts;
use crate::tokenizer;

/// Tensors that the configuration gives, with the most elements that they have.
const GENERATED: [&str; 3] = ["rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"];
const MAX_GENERATED: u64 = 1 << 20;
/// Begin of the keys that record a conversion by this program.
const PROVENANCE: &str = "apr.convert.";
const FILE_TYPE: &str = "general.file_type";
const PRE: &str = "tokenizer.ggml.pre";

/// A tensor of a folder: its name and its shape, the slowest dimension first.
pub(crate) type FolderTensor = (String, Vec<u64>);

/// The tensors of the folder that a tensor of the GGUF file becomes, by its name and shape; `None` if the tables say it.
pub(crate) type TensorsOf = fn(&Stored<'_>, &str, &[u64]) -> Result<Option<Vec<FolderTensor>>, Error>;

/// How a folder is made of the GGUF files of an architecture, besides what its tables say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restore {
    /// Whether a file of this name of an architecture is one of these.
    pub(crate) fits: fn(&Stored<'_>) -> bool,
    /// The class and the `model_type`.
    pub(crate) model: fn(&Stored<'_>) -> Result<(&'static str, &'static str), Error>,
    /// Sets values of the configuration that the table of keys does not have, or has under several names: before the others.
    pub(crate) config: fn(&Stored<'_>, &mut Object) -> Result<(), Error>,
    /// The tensors of the folder that a tensor becomes; `None` for one of the same shape, under the first name that the table has for
    /// it.
    pub(crate) tensors: TensorsOf,
}

impl Restore {
    /// Of an architecture whose tables say everything, but for the class.
    pub(crate) const PLAIN: Self = Self {
        fits: |_| true,
        model: |stored| Err(ErrorKind::NotRestored { name: stored.architecture().into() }.into()),
        config: |_, _| Ok(()),
        tensors: |_, _, _| Ok(None),
    };
}

/// Choices of the caller.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// The type of all tensors: `F32`, `F16` or `BF16`. Without it, those three stay, and others become `F16`.
    pub dtype: Option<Dtype>,
    /// Most bytes of the tensors of a file.
    pub max_bytes: u64,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self { dtype: None, max_bytes: 5_000_000_000 }
    }
}

/// A file of tensors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its tensors, in order.
    pub tensors: Vec<Output>,
}

/// The folder of a GGUF file.
#[derive(Clone, Debug)]
pub struct Restoration {
    texts: Vec<(String, Vec<u8>)>,
    parts: Vec<Part>,
    inputs: Vec<Input>,
    class: String,
    needs_pre: Option<String>,
    output_type: Option<OutputType>,
    differences: Vec<String>,
    notes: Vec<String>,
}

impl Restoration {
    /// The tensors whose values [`new`](Self::new) needs: the numbers of those that a configuration gives.
    #[must_use]
    pub fn needed(tensors: &[SourceTensor]) -> Vec<usize> {
        let is_small = |tensor: &SourceTensor| matches!(tensor.shape[..], [len] if len <= MAX_GENERATED);
        let all = tensors.iter().enumerate();
        all.filter(|(_, tensor)| GENERATED.contains(&tensor.name.as_str()) && is_small(tensor))
            .map(|(number, _)| number)
            .collect()
    }

    /// Plans the folder from the keys and the table of tensors of a GGUF file, and the values of those that [`needed`](Self::needed) lists.
    /// Shapes have the slowest dimension first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRestored`], [`ErrorKind::KeyMissing`], [`ErrorKind::KeyValue`], [`ErrorKind::StoredTensor`],
    /// [`ErrorKind::UnknownFactors`], [`ErrorKind::SourceType`]; whatever else keeps the folder from being converted again.
    pub fn new(
        keys: &Keys,
        tensors: &[SourceTensor],
        values: &BTreeMap<String, Vec<f32>>,
        options: &RestoreOptions,
    ) -> Result<Self, Error> {
        let stored = Stored::new(keys, tensors, values)?;
        let (architecture, restore) = Architecture::of_stored(&stored)?;
        let mut texts = Texts::new("model");
        let mut config = config::config(&stored, architecture, restore)?;
        let mut notes = Vec::new();
        tokenizer::restore(&stored, &mut config, &mut texts, &mut notes)?;
        let named = parts::named(&stored, architecture, restore, options.dtype)?;
        let first = named.iter().flat_map(|group| &group.tensors).find(|tensor| tensor.shape.len() > 1);
        config.set("torch_dtype", Json::from(type_name(first.map_or(Dtype::F16, |tensor| tensor.dtype))));
        config.set("transformers_version", Json::from(crate::TRANSFORMERS));
        texts.insert("config.json", Json::Object(config).to_text().into_bytes());
        authorship::restore(&stored, &mut texts)?;
        config::pooling(&stored, &mut texts)?;

        let output_type = stored_type(keys, tensors);
        // Not checked before: which name has the tokenizer's hash is found by converting it.
        let pre = stored.global(PRE).and_then(Value::as_str);
        let most_files = parts::most_files(&stored);
        let mut plan = match output_type {
            Some(_) => Plan::new(&named, options.max_bytes, most_files),
            // Programs that quantize have an order of their own.
            None => Plan::sorted(&named, options.max_bytes),
        };
        let planned = plan.converted(&texts, output_type, pre)?;
        let (conversion, needs_pre) = match output_type.is_none() || planned.has_order_of(tensors) {
            true => planned.into_parts(),
            false => {
                plan = Plan::sorted(&named, options.max_bytes);
                plan.converted(&texts, output_type, pre)?.into_parts()
            }
        };
        let (parts, inputs) = invert::folder(&stored, &conversion, &plan.files)?;
        let class = (restore.model)(&stored)?.0.to_string();
        let differences = differences(keys, tensors, &conversion, output_type);
        if let Some(index) = plan.index() {
            texts.insert("model.safetensors.index.json", index);
        }
        let texts = texts.into_files().collect();
        let needs_pre = needs_pre.map(Into::into);
        Ok(Self { texts, parts, inputs, class, needs_pre, output_type, differences, notes })
    }

    /// The small files: paths in the folder, with `/`, and contents.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.texts.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// The files of tensors. Views are of [`inputs`](Self::inputs).
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The tensors of the GGUF file as numbers: blocks are read as `F32`. One more than the file has, whose values are zeros.
    #[must_use]
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The class of the model.
    #[must_use]
    pub fn class(&self) -> &str {
        &self.class
    }

    /// The name of the pre-tokenizer, if the way forward needs to be told.
    #[must_use]
    pub fn needs_pre(&self) -> Option<&str> {
        self.needs_pre.as_deref()
    }

    /// The type with which the folder becomes the same file again; `None` for types of `apr quantize`.
    #[must_use]
    pub const fn output_type(&self) -> Option<OutputType> {
        self.output_type
    }

    /// What of the folder is not as that of the publisher, for all that is known.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What another GGUF file of the folder has otherwise than this one, types of quantized tensors apart.
    #[must_use]
    pub fn differences(&self) -> &[String] {
        &self.differences
    }
}

/// The architectures that folders are made of.
pub fn restored_architectures() -> impl Iterator<Item = &'static str> {
    Architecture::restored()
}

/// The files of tensors to be.
struct Plan {
    files: Vec<(String, Vec<SourceTensor>)>,
}

/// What becomes of the folder.
struct Planned<'p> {
    conversion: Conversion,
    needs_pre: Option<&'p str>,
}

impl Plan {
    /// In the order of the GGUF file: a file begins where names do not ascend, unless that makes too many.
    fn new(groups: &[parts::Group], max_bytes: u64, most_files: usize) -> Self {
        let by_name = parts::files(groups, max_bytes, parts::Begin::WhereNamesDescend);
        if by_name.len() <= most_files {
            return Self { files: parts::with_names(by_name) };
        }
        Self::sorted(groups, max_bytes)
    }

    fn sorted(groups: &[parts::Group], max_bytes: u64) -> Self {
        Self { files: parts::with_names(parts::files(groups, max_bytes, parts::Begin::WhenFull)) }
    }

    /// The index, if there are several files.
    fn index(&self) -> Option<Vec<u8>> {
        (self.files.len() > 1).then(|| parts::index(&self.files).into_bytes())
    }

    /// Converts the folder, with the name of the pre-tokenizer only if it is not found otherwise.
    fn converted<'p>(
        &self,
        texts: &Texts,
        output_type: Option<OutputType>,
        pre: Option<&'p str>,
    ) -> Result<Planned<'p>, Error> {
        let tables: Vec<Vec<SourceTensor>> = self.files.iter().map(|(_, tensors)| tensors.clone()).collect();
        let files = self.files.iter().map(|(name, _)| name.clone()).collect();
        let found = Parts::of_files(PartFormat::SafeTensors, files);
        let mut options =
            Options { target: Target::Type(output_type.unwrap_or(OutputType::F32)), ..Options::default() };
        let conversion = Conversion::new(texts, &found, &tables, &options);
        let is_same = |conversion: &Conversion| conversion.keys().get(PRE).and_then(Value::as_str) == pre;
        match conversion {
            Ok(conversion) if is_same(&conversion) => Ok(Planned { conversion, needs_pre: None }),
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::UnknownPre { .. } | ErrorKind::PreNotComputed { .. }
                ) =>
            {
                Err(error)
            }
            _ => {
                options.pre = pre.map(Into::into);
                let conversion = Conversion::new(texts, &found, &tables, &options)?;
                Ok(Planned { conversion, needs_pre: pre })
            }
        }
    }
}

impl<'p> Planned<'p> {
    fn has_order_of(&self, tensors: &[SourceTensor]) -> bool {
        let names = self.conversion.outputs().iter().map(|output| &output.name);
        names.eq(tensors.iter().map(|tensor| &tensor.name))
    }

    fn into_parts(self) -> (Conversion, Option<&'p str>) {
        (self.conversion, self.needs_pre)
    }
}

/// What differs of keys and tensors.
fn differences(
    keys: &Keys,
    tensors: &[SourceTensor],
    conversion: &Conversion,
    output_type: Option<OutputType>,
) -> Vec<String> {
    /// Most that are listed.
    const MAX: usize = 1000;
    let is_compared =
        |name: &str| !name.starts_with(PROVENANCE) && (name != FILE_TYPE || output_type.is_some());
    let mut all = Vec::new();
    let new = conversion.keys();
    for key in keys.iter().filter(|key| is_compared(&key.name)).take(MAX) {
        match new.get(&key.name) {
            None => all.push(format!("{} is left out", key.name)),
            Some(value) if *value != key.value => all.push(format!("{} has another value", key.name)),
            Some(_) => {}
        }
    }
    for key in new.iter().filter(|key| is_compared(&key.name) && keys.get(&key.name).is_none()) {
        all.push(format!("{} is added", key.name));
    }
    if all.is_empty() {
        let order = |keys: &Keys| {
            let names = keys.iter().filter(|key| is_compared(&key.name));
            names.map(|key| key.name.clone()).collect::<Vec<_>>()
        };
        if order(keys) != order(new) {
            all.push("keys are in another order".into());
        }
    }
    let outputs = conversion.outputs();
    if output_type.is_some()
        && !outputs.iter().map(|output| &output.name).eq(tensors.iter().map(|tensor| &tensor.name))
    {
        all.push("tensors are in another order".into());
    }
    if output_type.is_some() {
        let by_name: BTreeMap<&str, Dtype> =
            outputs.iter().map(|output| (output.name.as_str(), output.dtype)).collect();
        for tensor in tensors.iter().take(MAX) {
            if by_name.get(tensor.name.as_str()).is_some_and(|dtype| *dtype != tensor.dtype) {
                all.push(format!("{} has another type", tensor.name));
            }
        }
    }
    all
}

/// The type of the conversion that the file came from; of files that do not say it, that of their blocks, else of the embedding.
fn stored_type(keys: &Keys, tensors: &[SourceTensor]) -> Option<OutputType> {
    let mut all = OutputType::ALL.iter().map(|(_, own)| *own);
    match keys.get(FILE_TYPE).and_then(Value::as_u32) {
        Some(number) => all.find(|own| own.file_type() == number),
        None => {
            let blocks = tensors.iter().find(|tensor| tensor.dtype.is_quantized());
            let own = blocks.or_else(|| tensors.iter().find(|tensor| tensor.name == "token_embd.weight"))?;
            all.find(|output_type| output_type.dtype() == own.dtype)
        }
    }
}

/// The type of a tensor of the folder.
fn restored_type(tensor: &SourceTensor, wanted: Option<Dtype>) -> Result<Dtype, Error> {
    match (wanted, tensor.dtype) {
        (_, own) if !matches!(own, Dtype::F32 | Dtype::F16 | Dtype::Bf16) && !own.is_quantized() => {
            Err(Error::from(ErrorKind::SourceType { dtype: own }).of(Subject::tensor(&tensor.name)))
        }
        (Some(wanted), _) => Ok(wanted),
        (None, own @ (Dtype::F32 | Dtype::F16 | Dtype::Bf16)) => Ok(own),
        (None, _) => Ok(Dtype::F16),
    }
}

/// Name of a type in configurations.
const fn type_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F32 => "float32",
        Dtype::Bf16 => "bfloat16",
        _ => "float16",
    }
}

/// The tensor of a GGUF file as an input.
fn input(number: usize, tensor: &SourceTensor) -> Input {
    let dtype = if tensor.dtype.is_quantized() { Dtype::F32 } else { tensor.dtype };
    Input { shape: tensor.shape.clone(), values: Values::Stored { tensor: number, dtype } }
}
