//! The input of a command: a file, a set of shards, or standard input.

mod copies;
pub(crate) mod cut_file;
mod folder;
mod sealed;
mod source;
mod spool;
mod tensor;

use std::path::Path;

use foreign_format::Format as ForeignFormat;
use model_file::entries::Exported;
pub(crate) use model_file::{
    AprV1, AprV2, Contents, Gguf, MetadataValue, ModelFormat as Format, NamedModel, Part,
    ReadOptions as Rules, halves,
};
use model_file::{ErrorKind, FileKind, ModelFile, OpenOptions, SafeTensors};
use read_at::AnySource;
use st_core::ShardProblem;
use st_mmap::FolderIndex;

pub(crate) use self::copies::Copies;
pub(crate) use self::folder::holds_model;
pub(crate) use self::source::Source;
pub(crate) use self::tensor::{Tensor, Totals, common_name, decodable};
use crate::error::{CODE_FOREIGN_FORMAT, CODE_FOREIGN_PAYLOAD, CODE_INTERNAL, CODE_SHARDS, Exit, Failure};
use crate::foreign;
use crate::remote;
use crate::secrets::SignedBy;
use crate::terminal::{Console, escape};
use crate::whole_file::advised;

/// Codes of strict reading, whose remedy is to read with `--compat`: for a file with another defect as well it leads nowhere.
const OF_STRICT: [&str; 5] =
    ["st-strict-whitespace", "st-strict-array", "st-strict-dtype", "st-duplicate-tensor", "st-duplicate-key"];

/// A temporary file with all of standard input, whatever it is.
///
/// # Errors
///
/// If it cannot be read or the file cannot be written.
pub(crate) fn any_stdin() -> Result<durable_file::Scratch, Failure> {
    spool::Spool::from_any_stdin().map(spool::Spool::into_scratch)
}

/// An open model whose tensors can be read. Of every format but `.apr` version 1 only what precedes the tensors has been read.
#[derive(Debug)]
pub(crate) struct Model {
    file: ModelFile<AnySource>,
    source: Source,
    /// Problems of the index for which the set can be read all the same.
    harmless: Vec<ShardProblem>,
}

impl Model {
    /// Opens what FILE names.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is of another format, is invalid, or is a set of shards that does not fit together.
    pub(crate) fn open(path: &Path, rules: &Rules) -> Result<Self, Failure> {
        Self::from_source(Source::open(path)?, rules)
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
        let (mut model, problems) = Self::with_problems(source, rules)?;
        let (harmless, problems): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(ShardProblem::is_harmless);
        model.harmless = harmless;
        match problems.as_slice() {
            [] => Ok(model),
            problems => Err(disagreement(model.label(), problems)),
        }
    }

    /// Problems of an index that do not keep the set from being read.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.harmless.iter().map(|problem| note_on_index(problem, self.label()))
    }

    /// Says what is wrong with an index although the set can be read.
    pub(crate) fn tell_notes(&self, console: &Console) {
        self.notes().for_each(|note| console.remark(note));
    }

    /// Opens a source, with every disagreement between an index and its shards.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open) but the last.
    pub(crate) fn with_problems(source: Source, rules: &Rules) -> Result<(Self, Vec<ShardProblem>), Failure> {
        source.refuse_keys(rules)?;
        if source.format() == Format::Sealed {
            let what = "this is a sealed file, which this command does not open";
            return Err(Failure::new(CODE_FOREIGN_FORMAT, what).in_file(source.label()).help(
                "`apr open FILE -o OUT` gives back what is inside; `apr inspect FILE` says what opens it; `apr predict` and \
                 `apr serve` open it themselves",
            ));
        }
        // A signature of the whole file covers the one inside as well.
        let rules = if source.is_verified() { rules.with_unchecked_signatures() } else { *rules };
        let model = Self::undecoded(source, &rules)?;
        model.decode(&rules)?;
        let problems = model.file.shard_problems().map_err(|error| model.source.failure_of(error))?;
        Ok((model, problems))
    }

    /// Opens a source without decoding the payload of `.apr` version 1: reads what precedes it, and with keys everything.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is not valid; if it is not signed by a trusted key, or cannot be decrypted.
    pub(crate) fn undecoded(source: Source, rules: &Rules) -> Result<Self, Failure> {
        match source.model_file(rules) {
            Ok(file) => Ok(Self { file, source, harmless: Vec::new() }),
            Err(error) => Err(cut_file::advised(opening_failure(error, &source, rules), source.label())),
        }
    }

    /// Decodes the payload of `.apr` version 1.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is not valid or corrupted, or is not a model that `apr` knows.
    pub(crate) fn decode(&self, rules: &Rules) -> Result<(), Failure> {
        self.file.decode().map_err(|error| opening_failure(error, &self.source, rules))
    }

    /// Header, metadata and decoded payload of `.apr` version 1.
    ///
    /// # Errors
    ///
    /// If the file is of another format.
    pub(crate) fn apr_v1(&self) -> Result<&AprV1, Failure> {
        match self.contents() {
            Contents::AprV1(file) => Ok(file),
            _ => Err(Failure::new(CODE_INTERNAL, "the file has changed its format")),
        }
    }

    /// Compares the checksum of `.apr` version 1 and decodes the payload, unless it is encrypted or of a type that only another
    /// program can decode.
    ///
    /// # Errors
    ///
    /// If the file is corrupted, cannot be read or is not valid.
    pub(crate) fn verify_apr_v1(&self, rules: &Rules) -> Result<(), Failure> {
        let file = self.apr_v1()?;
        self.file.verify().map_err(|error| opening_failure(error, &self.source, rules))?;
        if file.info().encrypted {
            return Ok(());
        }
        match self.decode(rules) {
            Err(failure) if failure.code() == CODE_FOREIGN_PAYLOAD => Ok(()),
            decoded => decoded,
        }
    }

    /// Whose signature was verified.
    pub(crate) fn signed_by(&self) -> Option<SignedBy> {
        match self.contents() {
            Contents::AprV1(file) => Some(file.signer()?.as_signer().into()),
            _ => None,
        }
    }

    /// What the user called it.
    pub(crate) fn label(&self) -> &Path {
        self.source.label()
    }

    /// The opened file, for people: the file or index in a folder that was named.
    pub(crate) fn shown(&self) -> &Path {
        match self.contents() {
            Contents::SafeTensors(files) if self.label().is_dir() => match &**files {
                SafeTensors::Sharded(set) => set.path(),
                SafeTensors::File(file) => file.path(),
                _ => self.label(),
            },
            _ if self.label().is_dir() => self.path(),
            _ => self.label(),
        }
    }

    /// Where its bytes are; of a set of files, what was named.
    pub(crate) fn path(&self) -> &Path {
        self.source.path()
    }

    pub(crate) fn format(&self) -> Format {
        match self.contents() {
            // Of some formats the content shows a kind.
            Contents::Foreign(_) if !self.file.is_sealed() => self.file.format(),
            _ => self.source.format(),
        }
    }

    pub(crate) fn contents(&self) -> &Contents {
        self.file.contents()
    }

    pub(crate) fn is_sharded(&self) -> bool {
        matches!(self.contents(), Contents::SafeTensors(files) if matches!(**files, SafeTensors::Sharded(_)))
    }

    /// Its safetensors files, shards in the order of their names; none of another format.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub(crate) fn parts(&self) -> Result<Vec<Part<'_>>, Failure> {
        match self.contents() {
            Contents::SafeTensors(files) => files.parts().map_err(|error| self.source.failure_of(error)),
            _ => Ok(Vec::new()),
        }
    }

    /// Its tensors, file by file, each file in its own order.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub(crate) fn tensors(&self) -> Result<Vec<Tensor<'_>>, Failure> {
        let tensors = self.file.tensors().map_err(|error| self.source.failure_of(error))?;
        Ok(tensors.into_iter().map(|tensor| self.tensor(tensor)).collect())
    }

    /// The model, with what its file says about features and classes.
    ///
    /// # Errors
    ///
    /// If the file holds no known model, or a tensor cannot be read.
    pub(crate) fn named(self) -> Result<NamedModel, Failure> {
        let Self { file, source, .. } = self;
        if let Contents::Foreign(content) = file.contents() {
            return Err(match file.is_sealed() {
                true => sealed::holds(FileKind::Model(file.format()).title()).in_file(source.label()),
                false => foreign::no_prediction(content, source.label()),
            });
        }
        file.model().map_err(|error| source.failure_of(error))
    }

    /// Whether the file says which of the known models it holds.
    pub(crate) fn is_known(&self) -> bool {
        self.file.declares_known_model()
    }

    /// The metadata in file order.
    pub(crate) fn metadata(&self) -> Vec<(String, MetadataValue)> {
        self.file.metadata()
    }

    /// The metadata as those of an `.apr` file of version 1.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened, or an entry cannot be converted.
    #[cfg(feature = "serve")]
    pub(crate) fn as_apr_v1_metadata(&self) -> Result<apr_container::Metadata, Failure> {
        self.file.as_apr_v1_metadata().map_err(|error| self.source.failure_of(error))
    }

    /// The metadata as strings by key.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub(crate) fn entries(&self) -> Result<Exported, Failure> {
        self.file.entries().map_err(|error| self.source.failure_of(error))
    }

    /// A tensor of this file.
    pub(crate) fn tensor<'m>(&'m self, tensor: model_file::Tensor<'m>) -> Tensor<'m> {
        Tensor::new(tensor, self.label())
    }

    /// The table of quantized values that an `.apr` file of version 1 holds, as one tensor of blocks.
    pub(crate) fn table(&self) -> Option<Tensor<'_>> {
        match self.contents() {
            Contents::AprV1(file) => file.table().map(|tensor| self.tensor(tensor)),
            _ => None,
        }
    }

    /// The checksum of an `.apr` file of version 2, of which everything is read.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is damaged or is invalid.
    pub(crate) fn checksum(&self) -> Result<apr_container::v2::Footer, Failure> {
        let footer = self.file.checksum().map_err(|error| self.source.failure_of(error))?;
        footer.ok_or_else(|| Failure::new(CODE_INTERNAL, "a file of tensors became something else"))
    }

    /// Why strict reading refuses the same file, if it does.
    pub(crate) fn strict_refusal(&self) -> Option<Failure> {
        let options = OpenOptions::new().with_read_options(Rules::STRICT.with_unchecked_signatures());
        // The lengths are those of all shards, which are opened for it.
        let strict = self.source.reopened(&options).and_then(|file| file.file_len());
        strict.err().map(|error| self.source.failure_of(error))
    }

    /// What was opened.
    pub(crate) fn file(&self) -> &ModelFile<AnySource> {
        &self.file
    }

    /// Where it comes from.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }
}

/// The failure, with advice: whether a less strict reader accepts the file.
fn opening_failure(error: model_file::Error, source: &Source, rules: &Rules) -> Failure {
    let path = source.path();
    let is_accepted = || ModelFile::is_accepted_by_compat(path, &source.options(rules));
    let failure = failure_of(error, "read the header", source.label());
    match source.format() {
        // `decrypt` opens files of version 1.
        Format::AprV2 if failure.code() == "ac-encrypted" => source.relabel(failure).help(
            "no known program encrypts .apr files of version 2: ask its author for a plain file, or for one that `apr encrypt` made",
        ),
        // The header has a checksum of its own, which matched if the magic number did.
        Format::AprV2
            if failure.code() != "ac-magic"
                && failure.offset().is_some_and(|at| at < apr_container::v2::Header::LEN as u64)
                && !(rules.is_strict() && failure.exit() == Exit::Invalid && is_accepted()) =>
        {
            source.relabel(failure)
        }
        Format::AprV1 | Format::AprV2 => advised(failure, source, rules, |_| is_accepted()),
        Format::Gguf => {
            let failure = source.relabel(failure);
            match rules.is_strict() && failure.code().starts_with("gg-") && is_accepted() {
                // Such a file cannot be written.
                true if matches!(failure.code(), "gg-key-empty" | "gg-name-length" | "gg-rank") => failure.help(
                    "other readers accept this file: if you trust it, repeat with --compat, or write its tensors to another \
                     format with `apr convert --compat IN OUT.safetensors`",
                ),
                true => failure.help(
                    "other readers accept this file: if you trust it, repeat with --compat, or rewrite it with \
                     `apr convert --compat IN OUT`",
                ),
                false => failure,
            }
        }
        // Such a file has no parts to choose from.
        Format::Foreign(ForeignFormat::Onnx) if failure.code() == "ft-duplicate-name" => {
            source.relabel(failure).help("write the file again with the program that made it, with a name for each tensor")
        }
        Format::Foreign(_) => source.relabel(failure),
        Format::SafeTensors | Format::Sealed => {
            if path.is_dir() {
                return folder::describe(failure, path);
            }
            // What the network or the names in an index are refused for is not about the format.
            let is_of_format = !failure.code().starts_with("df-") && !failure.code().starts_with("rm-");
            if failure.exit() != Exit::Invalid || !is_of_format {
                return source.relabel(failure);
            }
            // Of a URL only what was seen when it was opened is known.
            let is_foreign = |kind: &FileKind| matches!(kind, FileKind::Foreign(_));
            let kind = foreign::of_file(path).or_else(|| Some(source.kind()).filter(is_foreign));
            // An index that was read as one has an error of its own.
            let is_index =
                source.label().extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
            let kind = kind.filter(|kind| !is_index || *kind != FileKind::Foreign(ForeignFormat::ShardIndex));
            source.relabel(match kind {
                Some(kind) if is_index && names_shard_index(path) => {
                    index_failure(foreign::not_a_model(kind, path), path.parent().unwrap_or(path))
                }
                Some(kind) => foreign::not_a_model(kind, path),
                None if is_index => index_failure(failure, path.parent().unwrap_or(path)),
                None if matches!(failure.code(), "st-header-too-small") => too_short(failure, path),
                None if rules.is_strict() && is_accepted() => failure.help(
                    "the official reader accepts this file: if you trust it, repeat with --compat, or rewrite it with \
                     `apr convert --compat IN OUT`",
                ),
                None if rules.is_strict() && OF_STRICT.contains(&failure.code()) => failure.help(
                    "other readers refuse this file too: write it again with a safetensors library",
                ),
                None if source.is_repairable(rules) => failure.help(
                    "the meaning of the header is clear: `apr convert IN OUT --repair` writes a copy with a valid one",
                ),
                None if failure.code() == "st-header-too-large" => failure.help(
                    "no file of a format that `apr` knows begins like this: name another file, or, if this is safetensors, get it again",
                ),
                None => failure,
            })
        }
    }
}

/// The failure of an error of a model file; `operation` is what a failed read was for.
pub(crate) fn failure_of(error: model_file::Error, operation: &str, label: &Path) -> Failure {
    let failure = match error.kind() {
        ErrorKind::ForeignFormat { found } => foreign::not_a_model(*found, label),
        ErrorKind::Apr(_) | ErrorKind::Read { .. } => match located_error::io_error(&error) {
            Some(cause) if matches!(error.code(), "ac-io" | "mo-read") && !remote::is_url(label) => {
                Failure::io(operation, label, cause)
            }
            _ => error.into(),
        },
        _ => error.into(),
    };
    failure.in_file(label)
}

/// The failure of a file that is too short for any model; an empty file is named as such.
fn too_short(failure: Failure, path: &Path) -> Failure {
    match path.metadata().map(|file| file.len()) {
        Ok(0) => failure.saying("the file is empty"),
        _ => failure,
    }
}

/// Whether a path has the name of an index of shards.
pub(crate) fn names_shard_index(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().to_ascii_lowercase().ends_with(".index.json"))
}

/// The failure of an index in this folder that cannot be read.
fn index_failure(failure: Failure, folder: &Path) -> Failure {
    match new_index(folder) {
        Some(help) if matches!(failure.exit(), Exit::Invalid | Exit::Unsupported) => failure.help(help),
        _ => failure,
    }
}

/// The failure for problems of a set of shards.
pub(crate) fn disagreement(path: &Path, problems: &[ShardProblem]) -> Failure {
    let shown: Vec<String> = problems.iter().take(3).map(ToString::to_string).collect();
    let more = problems.len().saturating_sub(shown.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let failure = Failure::new(CODE_SHARDS, "the index and the shards do not agree")
        .in_file(path)
        .because(format!("{}{more}", shown.join("; ")));
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    match folder.and_then(new_index) {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// The advice to make the index anew, if that works in this folder.
fn new_index(folder: &Path) -> Option<String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    FolderIndex::of(folder, &st_core::ReadOptions::STRICT).ok()?;
    let shown = escape::path_word(folder);
    Some(format!(
        "if the files are all there, `apr shard --index {shown} --force` makes a new index of them; else fetch the files again"
    ))
}

/// The advice to make an index where there is none, if that works in this folder.
fn missing_index(folder: &Path) -> Option<String> {
    FolderIndex::of(folder, &st_core::ReadOptions::STRICT).ok()?;
    Some(format!("`apr shard --index {}` makes the index of these files", escape::path_word(folder)))
}

/// The note about a problem for which the set can be read all the same.
pub(crate) fn note_on_index(problem: &ShardProblem, path: &Path) -> String {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    format!(
        "{problem}; no loader needs it, and `apr shard --index {} --force` corrects it",
        escape::path_word(folder)
    )
}
