//! Where a model comes from: a file, a set of shards, or standard input.

mod apr_model;
mod apr_tensors;
mod blocks;
mod folder;
mod gguf_file;
mod sealed;
mod source;
mod spool;
mod stored;
mod tensor;

use alloc::rc::Rc;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, value_parser};
pub(crate) use model_file::ModelFormat as Format;
use st_core::{ShardIndex, ShardProblem, Strictness};
use st_mmap::{SafeTensorsFile, ShardedSafeTensors};

pub(crate) use self::apr_model::{
    AprModel, Content, Payload, Protected, info as apr_info, payload as apr_payload,
    protected as apr_protected,
};
pub(crate) use self::apr_tensors::AprTensors;
pub(crate) use self::blocks::halves;
pub(crate) use self::folder::holds_model;
pub(crate) use self::gguf_file::GgufFile;
pub(crate) use self::sealed::SealedTensors;
pub(crate) use self::source::Source;
pub(crate) use self::stored::{SealedContent, Stored};
pub(crate) use self::tensor::{Tensor, Totals, common_name, decodable};
use crate::error::{CODE_FOREIGN_FORMAT, CODE_SHARDS, Exit, Failure};
use crate::foreign;
use crate::secrets::Keys;

pub(crate) fn input_arg() -> Arg {
    Arg::new("input")
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("A .safetensors, .apr or .gguf file, an index of shards, a folder with one, or `-` for standard input")
}

pub(crate) fn compat_arg() -> Arg {
    Arg::new("compat")
        .long("compat")
        .action(ArgAction::SetTrue)
        .help("Accept what the official reader of the format accepts, quirks included")
}

/// For commands that read payloads.
pub(crate) fn trusted_arg() -> Arg {
    Arg::new("trusted").long("trusted").action(ArgAction::SetTrue).help(
        "Let a small .apr file become a large model, with whatever memory that takes: for files you trust",
    )
}

/// For commands that go on working with a model.
pub(crate) fn unverified_arg() -> Arg {
    Arg::new("allow-unverified")
        .long("allow-unverified")
        .action(ArgAction::SetTrue)
        .help("Use a signed .apr file although nobody has checked its signature")
}

/// How strictly to read files, of every kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) safetensors: st_core::ReadOptions,
    pub(crate) apr: apr_container::ReadOptions,
    pub(crate) gguf: gguf_core::ReadOptions,
}

impl Rules {
    pub(crate) const STRICT: Self = Self {
        safetensors: st_core::ReadOptions::STRICT,
        apr: apr_container::ReadOptions::STRICT,
        gguf: gguf_core::ReadOptions::STRICT,
    };

    pub(crate) const COMPAT: Self = Self {
        safetensors: st_core::ReadOptions::COMPAT,
        apr: apr_container::ReadOptions::COMPAT,
        gguf: gguf_core::ReadOptions::COMPAT,
    };

    /// Those of the command line, as far as the command has options for them.
    pub(crate) fn from_matches(matches: &ArgMatches) -> Self {
        let is_set = |name| matches.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or(false);
        let mut rules = if is_set("compat") { Self::COMPAT } else { Self::STRICT };
        if is_set("allow-unverified") {
            rules.apr.unchecked_signature = apr_container::UncheckedSignature::Allow;
        }
        if is_set("trusted") {
            rules.apr.limits = apr_container::Limits::TRUSTED;
        }
        rules
    }

    /// The same for a command that only looks: it says that a signature is unchecked instead of refusing the file.
    #[must_use]
    pub(crate) fn for_looking(mut self) -> Self {
        self.apr.unchecked_signature = apr_container::UncheckedSignature::Allow;
        self
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.safetensors.strictness == Strictness::Strict
    }

    /// `strict` or `compat`, as shown in reports.
    pub(crate) fn name(&self) -> &'static str {
        if self.is_strict() { "strict" } else { "compat" }
    }
}

/// The path given as FILE.
pub(crate) fn path(matches: &ArgMatches) -> &Path {
    matches.get_one::<PathBuf>("input").expect("clap requires FILE")
}

/// An open model whose tensors can be read. Of a safetensors file and of an `.apr` file of version 2 or a GGUF file only
/// what stands before the tensors has been read.
#[derive(Debug)]
pub(crate) struct Model {
    kind: Kind,
    source: Source,
}

/// What it is stored as.
#[derive(Debug)]
pub(crate) enum Kind {
    File(SafeTensorsFile),
    Sharded(ShardedSafeTensors),
    /// Version 1: a payload that becomes a model, which becomes tensors.
    AprModel(Box<AprModel>),
    /// Version 2: tensors.
    AprTensors(Box<AprTensors>),
    /// Tensors behind keys and values.
    Gguf(Box<GgufFile>),
    /// A safetensors file inside a sealed one.
    SealedTensors(Box<SealedTensors>),
}

/// One safetensors file of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'m> {
    pub(crate) file: &'m SafeTensorsFile,
    /// Its name in the index of shards.
    pub(crate) shard: Option<&'m str>,
}

impl Model {
    /// Opens what FILE names.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is of another format, is not sound, or is a set of shards that does not fit together.
    pub(crate) fn open(path: &Path, rules: &Rules) -> Result<Self, Failure> {
        Self::from_source(Source::open(path)?, rules)
    }

    /// Opens what FILE names with what was brought for it.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); if the file is not signed by whom it must be, or cannot be decrypted.
    pub(crate) fn open_with(path: &Path, rules: &Rules, keys: &Rc<Keys>) -> Result<Self, Failure> {
        Self::from_source(Source::open(path)?.with_keys(keys), rules)
    }

    /// Opens a source if it is safetensors.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), and for a file of another format.
    pub(crate) fn of_safetensors(source: Source, rules: &Rules) -> Result<Self, Failure> {
        match source.format() {
            Format::SafeTensors | Format::Sealed => Self::from_source(source, rules),
            format => {
                Err(Failure::new(CODE_FOREIGN_FORMAT, format!("this is {}, not safetensors", format.title()))
                    .in_file(source.label())
                    .help("convert it first: apr convert FILE OUT.safetensors"))
            }
        }
    }

    /// Opens a source.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub(crate) fn from_source(source: Source, rules: &Rules) -> Result<Self, Failure> {
        let (model, problems) = Self::with_problems(source, rules)?;
        match problems.as_slice() {
            [] => Ok(model),
            problems => Err(disagreement(model.label(), problems)),
        }
    }

    /// Opens a source, with every disagreement between an index and its shards.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open) but the last.
    pub(crate) fn with_problems(source: Source, rules: &Rules) -> Result<(Self, Vec<ShardProblem>), Failure> {
        if !matches!(source.format(), Format::AprV1 | Format::Sealed) {
            source.keys().refuse_for(source.format().title(), source.label())?;
        }
        let (path, mut problems) = (source.path(), Vec::new());
        // A signature of the whole file covers the one inside as well.
        let looking = rules.for_looking();
        let rules = if source.is_verified() { &looking } else { rules };
        let is_index = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let kind = match source.format() {
            Format::AprV1 => Kind::AprModel(Box::new(AprModel::open(&source, rules)?)),
            Format::AprV2 => Kind::AprTensors(Box::new(AprTensors::open(&source, rules)?)),
            Format::Gguf => Kind::Gguf(Box::new(GgufFile::open(&source, rules)?)),
            Format::SafeTensors if is_index || path.is_dir() => {
                let set = ShardedSafeTensors::open_with(path, &rules.safetensors)
                    .map_err(|error| folder::describe(error.into(), path))?;
                if set.index().is_some() {
                    problems = set.check()?;
                    Kind::Sharded(set)
                } else {
                    Kind::File(open_file(set.path(), rules)?)
                }
            }
            Format::SafeTensors => {
                Kind::File(open_file(path, rules).map_err(|failure| source.relabel(failure))?)
            }
            Format::Sealed => {
                let what = "this is a sealed file, which this command does not open";
                return Err(Failure::new(CODE_FOREIGN_FORMAT, what).in_file(source.label()).help(
                    "`apr open FILE -o OUT` gives back what is inside; `apr inspect FILE` says what opens it; `apr predict` and \
                     `apr serve` open it themselves",
                ));
            }
        };
        Ok((Self { kind, source }, problems))
    }

    /// What the user called it.
    pub(crate) fn label(&self) -> &Path {
        self.source.label()
    }

    /// Where its bytes are; of a set of files, what was named.
    pub(crate) fn path(&self) -> &Path {
        self.source.path()
    }

    pub(crate) fn format(&self) -> Format {
        self.source.format()
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn is_sharded(&self) -> bool {
        matches!(self.kind, Kind::Sharded(_))
    }

    /// Its safetensors files, shards in the order of their names; none of another format.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub(crate) fn parts(&self) -> Result<Vec<Part<'_>>, Failure> {
        match &self.kind {
            Kind::File(file) => Ok(vec![Part { file, shard: None }]),
            Kind::Sharded(set) => {
                let mut parts: Vec<Part<'_>> = Vec::new();
                let index = set.index().into_iter().flat_map(ShardIndex::weight_map);
                let mut listed: Vec<(&str, &str)> = index.map(|(tensor, shard)| (shard, tensor)).collect();
                listed.sort_unstable();
                listed.dedup_by_key(|&mut (shard, _)| shard);
                for (shard, tensor) in listed {
                    parts.push(Part { file: set.file_of(tensor)?, shard: Some(shard) });
                }
                Ok(parts)
            }
            Kind::AprModel(_) | Kind::AprTensors(_) | Kind::Gguf(_) | Kind::SealedTensors(_) => {
                Ok(Vec::new())
            }
        }
    }

    /// Its tensors, file by file, each file in its own order.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub(crate) fn tensors(&self) -> Result<Vec<Tensor<'_>>, Failure> {
        match &self.kind {
            Kind::File(_) | Kind::Sharded(_) => {
                let parts = self.parts()?;
                let tensors = parts.iter().flat_map(|&part| {
                    part.file.header().iter().map(move |info| Tensor::of_safetensors(part, info))
                });
                Ok(tensors.collect())
            }
            Kind::AprModel(model) => model.tensors(),
            Kind::AprTensors(file) => file.tensors(),
            Kind::Gguf(file) => Ok(file.tensors()),
            Kind::SealedTensors(file) => Ok(file.tensors()),
        }
    }
}

/// The failure that stands for problems of a set of shards.
pub(crate) fn disagreement(path: &Path, problems: &[ShardProblem]) -> Failure {
    let shown: Vec<String> = problems.iter().take(3).map(ToString::to_string).collect();
    let more = problems.len().saturating_sub(shown.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Failure::new(CODE_SHARDS, "the index and the shards do not agree")
        .in_file(path)
        .because(format!("{}{more}", shown.join("; ")))
}

fn open_file(path: &Path, rules: &Rules) -> Result<SafeTensorsFile, Failure> {
    SafeTensorsFile::open_with(path, &rules.safetensors).map_err(|error| {
        let failure = Failure::from(error).in_file(path);
        if failure.exit() != Exit::Invalid || failure.code().starts_with("df-") {
            return failure;
        }
        if let Some(kind) = foreign::of_file(path) {
            return foreign::not_a_model(kind, path);
        }
        if rules.is_strict() && SafeTensorsFile::open_with(path, &Rules::COMPAT.safetensors).is_ok() {
            return failure.help(
                "the official reader accepts this file: if you trust it, repeat with --compat, or rewrite it with \
                 `apr convert --compat IN OUT`",
            );
        }
        failure
    })
}
