//! Low-rank adapters of PEFT: factors of changes of matrices, and what scales them.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use located_error::Subject;

use crate::architecture::{Architecture, text_name};
use crate::authorship::{AuthorshipOptions, authorship};
use crate::config::Config;
use crate::conversion::{BLOCKS_VERSION, Conversion, Options, Target, guessed};
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::keys::Keys;
use crate::parameters::LAYERS;
use crate::rope::Rope;
use crate::tensors::build::{Builder, Built};
use crate::tensors::input::{Input, Inputs};
use crate::tensors::output::ParameterCount;
use crate::tensors::pair::Pair;
use crate::tensors::{Parts, SourceTensor};
use crate::texts::Texts;

/// Name of the file with the settings.
const FILE: &str = "adapter_config.json";
/// What names of all tensors contain.
const PREFIX: &str = "base_model.model.";
/// Endings of names of factors: of matrices, of embeddings.
const ENDS: [(&str, Half, bool); 4] = [
    (".lora_A.weight", Half::A, false),
    (".lora_B.weight", Half::B, false),
    (".lora_embedding_A", Half::A, true),
    (".lora_embedding_B", Half::B, true),
];
/// Such endings with the name that PEFT gives the only adapter of a model in memory: programs that save the state of the model keep it.
const DEFAULT_ENDS: [(&str, Half, bool); 4] = [
    (".lora_A.default.weight", Half::A, false),
    (".lora_B.default.weight", Half::B, false),
    (".lora_embedding_A.default", Half::A, true),
    (".lora_embedding_B.default", Half::B, true),
];
/// Ways of choosing first values that change the matrices of the model as well.
const OTHER_BASES: [&str; 4] = ["pissa", "olora", "corda", "lora_ga"];
/// Most tokens that invoke an adapter.
const MAX_TOKENS: usize = 1 << 16;

/// Which factor a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    A,
    B,
}

/// The tensors of an adapter by what they are, each with the number of its input.
#[derive(Debug, Default)]
struct Tensors {
    norms: Vec<(String, usize)>,
    /// Matrices in the order of their first factor.
    matrices: Vec<String>,
    halves: BTreeMap<String, Halves>,
    /// Whether parts that see or hear are left out.
    has_others: bool,
    /// Whether names of factors have that of the adapter in them.
    has_default: bool,
}

/// The factors of a change that were found.
#[derive(Clone, Copy, Debug, Default)]
struct Halves {
    a: Option<usize>,
    b: Option<usize>,
    is_embedding: bool,
}

/// The settings that count.
struct Settings {
    alpha: f64,
    /// Whether the scale is divided by the root of the rank, not by the rank.
    is_root: bool,
    tokens: Vec<u32>,
}

impl Conversion {
    /// Plans the conversion of an adapter from the texts of its folder, those of its model, of which `config.json` counts, and the tables
    /// of its files, in the order of [`Parts::files`], each in the order of its data.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new); [`ErrorKind::Adapter`], [`ErrorKind::AdapterTensor`], [`ErrorKind::AdapterPair`],
    /// [`ErrorKind::AdapterRank`], [`ErrorKind::AdapterChange`] for what has no form in GGUF files.
    pub fn of_adapter(
        texts: &Texts,
        base: &Texts,
        parts: &Parts,
        tables: &[Vec<SourceTensor>],
        options: &Options,
    ) -> Result<Self, Error> {
        let settings = Settings::read(texts)?;
        let mut config = Config::from_texts(base)?;
        let architecture = Architecture::of_class(config.class()?)?;
        (architecture.prepare)(&mut config)?;
        let ordered = parts.order(tables)?;
        let sources: Vec<&SourceTensor> = ordered.iter().map(|(_, _, tensor)| *tensor).collect();
        let inputs = Inputs::new(&sources, |name| Some(name.into()))?.into_list();
        let tensors = Tensors::new(&inputs, architecture)?;
        let (norms, has_others) = (tensors.norms.clone(), tensors.has_others);
        let note = tensors.has_default.then_some("names of factors have `.default` in them");
        let pairs = tensors.pairs(&inputs)?;
        let alpha = settings.scaled_alpha(&pairs)?;
        let output_type = match options.target {
            Target::Type(own) => own,
            Target::Auto => guessed(inputs.iter().map(|(_, input)| input)),
        };
        let n_decoder = config.u32(&["num_decoder_layers"])?.unwrap_or(0);
        let n_layers = config.need_u32(LAYERS)?.max(n_decoder).into();
        let rope = Rope::new(&config);
        let builder = Builder::new(&config, &rope, base, architecture, output_type, n_layers);
        let has_pairs = !pairs.is_empty();
        let Built { outputs, keys: early_keys, .. } = builder.run_adapter(&inputs, &norms, pairs)?;
        let parameters = ParameterCount::of_adapter(&outputs);
        let total = i64::try_from(parameters.total).unwrap_or(i64::MAX);

        let mut keys = Keys::new();
        keys.set("general.architecture", architecture.name);
        keys.append(early_keys);
        keys.set("general.type", "adapter");
        keys.set("adapter.type", "lora");
        let own = AuthorshipOptions { metadata: options.metadata.as_deref(), name: options.name.as_deref() };
        keys.append(authorship(texts, own, &parameters, if has_pairs { -total } else { total })?);
        keys.set("adapter.lora.alpha", alpha as f32);
        keys.set("adapter.alora.invocation_tokens", settings.tokens);
        keys.set("general.quantization_version", BLOCKS_VERSION);
        let mut remarks = Vec::new();
        if !norms.is_empty() {
            remarks.push("the adapter changes norms, which llama.cpp does not apply".into());
        }
        if has_others {
            remarks.push("what the adapter changes of parts that see or hear is left out".into());
        }
        Ok(Self {
            keys,
            outputs,
            inputs: inputs.into_iter().map(|(_, input)| input).collect(),
            sources: ordered.iter().map(|(part, idx, _)| (*part, *idx)).collect(),
            output_type,
            parameters,
            notes: note.into_iter().collect(),
            remarks,
        })
    }
}

impl Settings {
    fn read(texts: &Texts) -> Result<Self, Error> {
        let bytes = texts.get(FILE).ok_or_else(|| ErrorKind::MissingFile { file: FILE.into() })?;
        let json = Json::from_bytes(FILE, bytes)?;
        let Json::Object(settings) = &json else {
            return Err(ErrorKind::value(FILE, "", "an object", &json));
        };
        let get = |name: &str| settings.get(name).filter(|value| !value.is_null());
        let flag = |name: &str| match get(name) {
            None => Ok(false),
            Some(value) => {
                value.as_bool().ok_or_else(|| ErrorKind::value(FILE, name, "true or false", value))
            }
        };
        let alpha = get("lora_alpha").ok_or_else(|| ErrorKind::missing(FILE, "`lora_alpha`"))?;
        let alpha = alpha
            .as_f64()
            .filter(|alpha| alpha.is_finite())
            .ok_or_else(|| ErrorKind::value(FILE, "lora_alpha", "a finite number", alpha))?;
        let is_other = |name: &str, own: &str| get(name).is_some_and(|value| value.as_str() != Some(own));
        let first = get("init_lora_weights").and_then(Json::as_str).unwrap_or_default();
        let patterns = get("alpha_pattern").and_then(Json::as_object);
        let differs = |patterns: &Object| patterns.iter().any(|(_, value)| value.as_f64() != Some(alpha));
        let refused = [
            (is_other("peft_type", "LORA"), "an adapter that is not of the type LORA"),
            (flag("use_dora")?, "DoRA (use_dora)"),
            (flag("use_qalora")?, "QALoRA (use_qalora)"),
            (get("layer_replication").is_some(), "copies of layers (layer_replication)"),
            (patterns.is_some_and(differs), "an alpha of its own for some matrices (alpha_pattern)"),
            (
                OTHER_BASES.iter().any(|name| first.starts_with(name)),
                "an adapter whose base was changed (init_lora_weights)",
            ),
        ];
        if let Some((_, what)) = refused.into_iter().find(|(is_found, _)| *is_found) {
            return Err(ErrorKind::Adapter { what }.into());
        }
        let tokens = tokens(get("alora_invocation_tokens"))?;
        let text = get("invocation_string").and_then(Json::as_str).unwrap_or_default();
        if tokens.is_empty() && !text.is_empty() {
            let what = "an invocation_string without alora_invocation_tokens";
            return Err(ErrorKind::Adapter { what }.into());
        }
        Ok(Self { alpha, is_root: flag("use_rslora")?, tokens })
    }

    /// What a program that divides it by the rank gets the scale from.
    fn scaled_alpha(&self, pairs: &[(String, Pair)]) -> Result<f64, Error> {
        if !self.is_root {
            return Ok(self.alpha);
        }
        let mut ranks = pairs.iter().map(|(_, pair)| pair.rank());
        let first = ranks.next().unwrap_or(0);
        if ranks.any(|rank| rank != first) {
            return Err(ErrorKind::Adapter { what: "use_rslora with several ranks" }.into());
        }
        Ok(self.alpha * libm::sqrt(first as f64))
    }
}

/// Ids of tokens.
fn tokens(value: Option<&Json>) -> Result<Vec<u32>, Error> {
    const NAME: &str = "alora_invocation_tokens";
    let Some(value) = value else { return Ok(Vec::new()) };
    let id = |token: &Json| token.as_i64().and_then(|id| u32::try_from(id).ok());
    let list = value.as_array().and_then(|list| list.iter().map(id).collect::<Option<Vec<u32>>>());
    let list = list.ok_or_else(|| ErrorKind::value(FILE, NAME, "a list of ids of tokens", value))?;
    if list.len() > MAX_TOKENS {
        return Err(ErrorKind::limit(FILE, "alora_invocation_tokens", MAX_TOKENS));
    }
    Ok(list)
}

impl Tensors {
    /// Sorts the tensors by what they are, under the names that the matrices have in the folder of the model.
    fn new(inputs: &[(String, Input)], architecture: &Architecture) -> Result<Self, Error> {
        let mut tensors = Self::default();
        for (idx, (name, input)) in inputs.iter().enumerate() {
            let of_tensor = |kind: ErrorKind| Error::from(kind).of(Subject::tensor(name));
            let mut base = name.replace(PREFIX, "");
            let find = |ends: &'static [(&'static str, Half, bool)]| {
                ends.iter().find(|(end, _, _)| name.ends_with(end))
            };
            let half = find(&ENDS).or_else(|| {
                let half = find(&DEFAULT_ENDS);
                tensors.has_default |= half.is_some();
                half
            });
            if let Some((end, _, _)) = half {
                base.truncate(base.len() - end.len());
                base.push_str(".weight");
            }
            let Some(own) = (architecture.rename)(&base).and_then(|base| text_name(&base)) else {
                if base.ends_with("lm_head.weight") {
                    return Err(of_tensor(ErrorKind::AdapterTensor {
                        what: "a change of a head that the model does not have",
                    }));
                }
                tensors.has_others = true;
                continue;
            };
            match half {
                Some((_, half, is_embedding)) => {
                    let found = tensors.halves.entry(own).or_insert_with_key(|own| {
                        tensors.matrices.push(own.clone());
                        Halves { is_embedding: *is_embedding, ..Halves::default() }
                    });
                    let place = if *half == Half::A { &mut found.a } else { &mut found.b };
                    if place.replace(idx).is_some() || found.is_embedding != *is_embedding {
                        return Err(of_tensor(ErrorKind::DuplicateTensor));
                    }
                }
                None if name.contains(".base_layer.weight") => {}
                None if is_norm(name) && input.shape.len() == 1 => tensors.norms.push((own, idx)),
                None => return Err(of_tensor(ErrorKind::AdapterTensor { what: kind_of(name) })),
            }
        }
        Ok(tensors)
    }

    /// The pairs in order.
    fn pairs(self, inputs: &[(String, Input)]) -> Result<Vec<(String, Pair)>, Error> {
        let mut pairs = Vec::with_capacity(self.matrices.len());
        for matrix in self.matrices {
            let found = self.halves.get(&matrix).copied().unwrap_or_default();
            let of_matrix = |kind: ErrorKind| Error::from(kind).of(Subject::tensor(&matrix));
            let half = |number: Option<usize>, missing| {
                let number = number.ok_or_else(|| of_matrix(ErrorKind::AdapterPair { missing }))?;
                let shape = inputs.get(number).map_or(&[][..], |(_, input)| &input.shape);
                Ok::<_, Error>((number, shape))
            };
            let (a, b) = (half(found.a, "lora_A")?, half(found.b, "lora_B")?);
            let pair = Pair::new(a, b, found.is_embedding).ok_or_else(|| {
                let [a, b] = [a, b].map(|(_, shape)| format!("{shape:?}").into());
                of_matrix(ErrorKind::AdapterRank { a, b })
            })?;
            pairs.push((matrix, pair));
        }
        Ok(pairs)
    }
}

/// Whether it is the name of a norm, as the reference implementation tells them.
fn is_norm(name: &str) -> bool {
    (name.contains("_layernorm") || name.contains(".norm")) && name.ends_with(".weight")
}

/// What a tensor is that is no factor, for messages.
fn kind_of(name: &str) -> &'static str {
    match name {
        _ if name.contains("lora_magnitude_vector") => "a magnitude of DoRA",
        _ if name.contains("trainable_tokens") => "a row of an embedding that was trained",
        _ if name.ends_with(".bias") => "a bias",
        _ if name.contains("norm") => "a norm of an unusual name or shape",
        _ => "a matrix that was trained as a whole (modules_to_save)",
    }
}
