//! The whole of a conversion: keys and outputs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use gguf_core::GgufBuilder;
use located_error::Subject;
use tensor_dtype::Dtype;

use crate::architecture::{Architecture, rerank, text_name};
use crate::authorship::{AuthorshipOptions, authorship};
use crate::config::{Config, MLX, MXFP4};
use crate::error::{Error, ErrorKind};
use crate::keys::{Keys, Value};
use crate::lost;
use crate::parameters::{LAYERS, Parameters};
use crate::rope::Rope;
use crate::tensors::build::{Builder, Built};
use crate::tensors::input::{Input, Inputs, Values};
use crate::tensors::output::{Output, OutputType, ParameterCount};
use crate::tensors::scales::{is_plain, passed_over};
use crate::tensors::{Parts, SourceTensor};
use crate::texts::Texts;
use crate::tokenizer::{self, Tokenizer};
use crate::whole;

/// The version of the blocks that `general.quantization_version` states.
pub(crate) const BLOCKS_VERSION: u32 = 2;

/// `general.file_type` of a file with blocks of MXFP4 beside floats.
const MXFP4_FILE: u32 = 38;

/// What matrices become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// What the first matrix in 16 bits is, else `F16`.
    #[default]
    Auto,
    /// This type.
    Type(OutputType),
}

/// Choices of the caller.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// What matrices become.
    pub target: Target,
    /// The name of the pre-tokenizer, for tokenizers whose hash is not known.
    pub pre: Option<String>,
    /// The model's name, in place of that of the folder.
    pub name: Option<String>,
    /// A JSON object of keys of authorship and sampling, which count before those of the folder.
    pub metadata: Option<Vec<u8>>,
}

/// A model folder, or an adapter, as a GGUF file: its keys, and its tensors with what they are made from.
#[derive(Clone, Debug)]
pub struct Conversion {
    pub(crate) keys: Keys,
    pub(crate) outputs: Vec<Output>,
    pub(crate) inputs: Vec<Input>,
    /// Number of the file and of the tensor in it, of each tensor that is read.
    pub(crate) sources: Vec<(usize, usize)>,
    pub(crate) output_type: OutputType,
    pub(crate) parameters: ParameterCount,
    pub(crate) notes: Vec<&'static str>,
    /// What is left out of a model or an adapter, or is not applied.
    pub(crate) remarks: Vec<String>,
}

impl Conversion {
    /// Plans the conversion from the texts of a folder and the tables of its files, in the order of [`Parts::files`].
    ///
    /// # Errors
    ///
    /// Whatever keeps the folder from being converted: [`ErrorKind`] has a kind for each. Nothing but texts and tables is needed to find
    /// it, so that a conversion that was planned ends unless a file cannot be read or holds values that blocks cannot.
    pub fn new(
        texts: &Texts,
        parts: &Parts,
        tables: &[Vec<SourceTensor>],
        options: &Options,
    ) -> Result<Self, Error> {
        let mut config = Config::from_texts(texts)?;
        let architecture = Architecture::of_class(config.class()?)?;
        let note = (architecture.prepare)(&mut config)?;
        let rope = Rope::new(&config);
        let ordered = parts.order(tables)?;
        let tensors: Vec<&SourceTensor> = ordered.iter().map(|(_, _, tensor)| *tensor).collect();
        let passed_over = config.quantization().filter(|_| is_plain(&tensors)).map(passed_over);
        if passed_over.is_none() && config.quantization() == Some(MLX) {
            // Its codes have types that are not read.
            return Err(ErrorKind::Quantization { method: MLX.into() }.into());
        }
        let mut inputs =
            Inputs::new(&tensors, |name| (architecture.rename)(name).and_then(|name| text_name(&name)))?;
        let guess = guessed(inputs.iter().map(|(_, input)| input));
        let of_quantization = match passed_over {
            Some(remark) => Some(remark),
            None => inputs.dequantize(&config)?,
        };
        let inputs = inputs.into_list();
        let output_type = match options.target {
            Target::Type(own) => own,
            Target::Auto => guess,
        };
        let n_layers = n_layers(&config, inputs.len())?;
        let builder = Builder::new(&config, &rope, texts, architecture, output_type, n_layers);
        let Built { outputs, keys: early_keys, notes } = builder.run(&inputs)?;
        let parameters = ParameterCount::of(&outputs);

        let mut keys = Keys::new();
        keys.set("general.architecture", architecture.name);
        keys.append(early_keys);
        keys.set("general.type", "model");
        let own = AuthorshipOptions { metadata: options.metadata.as_deref(), name: options.name.as_deref() };
        let total = i64::try_from(parameters.total).unwrap_or(i64::MAX);
        keys.append(authorship(texts, own, &parameters, total)?);
        let is_mxfp4 = config.quantization_method() == Some(MXFP4);
        let file_type = match output_type {
            OutputType::F32 | OutputType::F16 | OutputType::Bf16 if is_mxfp4 => MXFP4_FILE,
            _ => output_type.file_type(),
        };
        let own =
            Parameters::collect(&config, &rope, texts, architecture.name, file_type, architecture.entries)?;
        keys.append(own);
        keys.set("general.quantization_version", BLOCKS_VERSION);
        let tokenizer = Tokenizer::from_texts(texts, &config, architecture.name, options.pre.as_deref())?;
        keys.append(tokenizer.keys);
        check_rows(&keys, &outputs)?;
        whole::check(architecture, &config, &keys, &outputs)?;
        rerank::check(&config, texts, architecture.name, &outputs)?;
        let has_factors = outputs.iter().any(|output| output.name.starts_with("rope_f"));
        let scaling = keys.get(&format!("{}.rope.scaling.type", architecture.name));
        let scaling = if has_factors || scaling.is_some() { None } else { rope.left_out() };
        let template = tokenizer::left_out(texts).filter(|_| keys.get("tokenizer.chat_template").is_none());
        let mut remarks: Vec<String> = scaling.into_iter().chain(template).map(String::from).collect();
        remarks.extend(of_quantization);
        remarks.extend(tokenizer.remarks);
        remarks.extend(lost::window(&config, &keys, architecture.name));
        remarks.extend(lost::head(&config, &outputs).map(String::from));
        Ok(Self {
            keys,
            outputs,
            inputs: inputs.into_iter().map(|(_, input)| input).collect(),
            sources: ordered.iter().map(|(part, idx, _)| (*part, *idx)).collect(),
            output_type,
            parameters,
            notes: note.into_iter().chain(notes).collect(),
            remarks,
        })
    }

    /// The keys, in order.
    #[must_use]
    pub const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The tensors, in order.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// What outputs are made from.
    #[must_use]
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Number of the file and of the tensor in its table, of each tensor that is read.
    #[must_use]
    pub fn sources(&self) -> &[(usize, usize)] {
        &self.sources
    }

    /// What matrices become.
    #[must_use]
    pub const fn output_type(&self) -> OutputType {
        self.output_type
    }

    /// Number of elements.
    #[must_use]
    pub const fn parameters(&self) -> ParameterCount {
        self.parameters
    }

    /// Why the reference implementation would stop on this folder, which is converted all the same.
    #[must_use]
    pub fn notes(&self) -> &[&'static str] {
        &self.notes
    }

    /// What is left out of a model or an adapter, or is not applied by programs that load it.
    #[must_use]
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The file, without its data: tensors are in the order of [`outputs`](Self::outputs).
    ///
    /// # Errors
    ///
    /// Those of the [`GgufBuilder`].
    pub fn builder(&self) -> Result<GgufBuilder, Error> {
        let mut builder = GgufBuilder::new();
        self.keys.write_to(&mut builder)?;
        for output in &self.outputs {
            builder.add_tensor(&output.name, output.dtype, &output.shape)?;
        }
        Ok(builder)
    }
}

/// The type of the first matrix that has 16 bits.
pub(crate) fn guessed<'i>(mut inputs: impl Iterator<Item = &'i Input>) -> OutputType {
    let found = inputs.find_map(|input| match input.values {
        _ if input.shape.len() < 2 => None,
        Values::Stored { dtype: Dtype::Bf16, .. } => Some(OutputType::Bf16),
        Values::Stored { dtype: Dtype::F16, .. } => Some(OutputType::F16),
        _ => None,
    });
    found.unwrap_or(OutputType::F16)
}

/// The number of layers, each of which has a tensor.
fn n_layers(config: &Config, n_tensors: usize) -> Result<u64, Error> {
    let n_layers = u64::from(config.need_u32(LAYERS)?);
    let decoder = u64::from(config.u32(&["num_decoder_layers"])?.unwrap_or(0));
    if n_layers.max(decoder) > n_tensors as u64 {
        return Err(config.unexpected(LAYERS, "no more layers than the files have tensors"));
    }
    Ok(n_layers.max(decoder))
}

/// Refuses embeddings of another number of tokens than the tokenizer has, which no program loads.
fn check_rows(keys: &Keys, outputs: &[Output]) -> Result<(), Error> {
    const NAME: &str = "token_embd.weight";
    let Some(Value::Strings(tokens)) = keys.get("tokenizer.ggml.tokens") else { return Ok(()) };
    let embedding = outputs.iter().find(|output| output.name == NAME);
    match embedding.map(|output| output.shape.as_slice()) {
        Some(shape @ [rows, ..]) if *rows != tokens.len() as u64 => {
            let found = format!("{shape:?}").into();
            let kind = ErrorKind::TokenRows { tokens: tokens.len() as u64, found };
            Err(Error::from(kind).of(Subject::tensor(NAME)))
        }
        _ => Ok(()),
    }
}

/// Every class of models that is converted, with its architecture in GGUF files.
pub fn classes() -> impl Iterator<Item = (&'static str, &'static str)> {
    Architecture::classes()
}

/// A name for messages.
impl core::fmt::Display for OutputType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name: Option<String> =
            Self::ALL.iter().find(|(_, own)| own == self).map(|(name, _)| (*name).into());
        f.pad(&name.unwrap_or_default())
    }
}
