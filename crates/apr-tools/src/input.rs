//! Where a model comes from: a file, a set of shards, or standard input.

mod spool;

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use st_core::{Dtype, ReadOptions, ShardIndex, ShardProblem, Strictness, TensorInfo};
use st_mmap::{SafeTensorsFile, ShardedSafeTensors};

use self::spool::Spool;
use crate::error::{CODE_FOREIGN_FORMAT, CODE_SHARDS, Exit, Failure};
use crate::foreign::{self, SNIFFED};

/// Bytes read from a tensor at once.
const CHUNK: u64 = 1 << 20;

pub(crate) fn input_arg() -> Arg {
    Arg::new("input")
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("A .safetensors file, an index of shards, a folder with one, or `-` for standard input")
}

pub(crate) fn compat_arg() -> Arg {
    Arg::new("compat")
        .long("compat")
        .action(ArgAction::SetTrue)
        .help("Accept exactly what the official reader accepts, quirks included")
}

/// The path given as FILE, and how strictly to read it.
pub(crate) fn input(matches: &ArgMatches) -> (PathBuf, ReadOptions) {
    let path = matches.get_one::<PathBuf>("input").expect("clap requires FILE").clone();
    (path, read_options(matches))
}

pub(crate) fn read_options(matches: &ArgMatches) -> ReadOptions {
    if matches.get_flag("compat") { ReadOptions::COMPAT } else { ReadOptions::STRICT }
}

/// `strict` or `compat`, as shown in reports.
pub(crate) fn strictness_name(options: &ReadOptions) -> &'static str {
    match options.strictness {
        Strictness::Strict => "strict",
        Strictness::Compat => "compat",
    }
}

/// An open model of which only the headers have been read.
#[derive(Debug)]
pub(crate) struct Model {
    label: PathBuf,
    kind: Kind,
    /// Standard input in a temporary file, which lives as long as this.
    _spool: Option<Spool>,
}

#[derive(Debug)]
enum Kind {
    File(SafeTensorsFile),
    Sharded(ShardedSafeTensors),
}

/// One safetensors file of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'m> {
    pub(crate) file: &'m SafeTensorsFile,
    /// Its name in the index of shards.
    pub(crate) shard: Option<&'m str>,
}

/// A tensor and the file it is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensor<'m> {
    pub(crate) part: Part<'m>,
    pub(crate) info: TensorInfo<'m>,
}

impl Model {
    /// Opens what FILE names.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is of another format, is not sound, or is a set of shards that does not fit together.
    pub(crate) fn open(path: &Path, options: &ReadOptions) -> Result<Self, Failure> {
        let (model, problems) = Self::open_with_problems(path, options)?;
        match problems.as_slice() {
            [] => Ok(model),
            problems => Err(disagreement(path, problems)),
        }
    }

    /// Opens what FILE names, with every disagreement between an index and its shards.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open) but the last.
    pub(crate) fn open_with_problems(
        path: &Path,
        options: &ReadOptions,
    ) -> Result<(Self, Vec<ShardProblem>), Failure> {
        if path.as_os_str() == "-" {
            let spool = Spool::from_stdin()?;
            let file = open_file(spool.path(), options).map_err(|failure| failure.in_place_of_file(path))?;
            return Ok((
                Self { label: path.to_owned(), kind: Kind::File(file), _spool: Some(spool) },
                Vec::new(),
            ));
        }
        let is_index = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let (kind, problems) = if is_index || path.is_dir() {
            let set = ShardedSafeTensors::open_with(path, options).map_err(Failure::from)?;
            if set.index().is_some() {
                let problems = set.check()?;
                (Kind::Sharded(set), problems)
            } else {
                (Kind::File(open_file(set.path(), options)?), Vec::new())
            }
        } else {
            (Kind::File(open_file(path, options)?), Vec::new())
        };
        Ok((Self { label: path.to_owned(), kind, _spool: None }, problems))
    }

    /// What the user called it.
    pub(crate) fn label(&self) -> &Path {
        &self.label
    }

    pub(crate) fn is_sharded(&self) -> bool {
        matches!(self.kind, Kind::Sharded(_))
    }

    /// Its files, shards in the order of their names.
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
        }
    }

    /// Its tensors, file by file, each file in its own order.
    pub(crate) fn tensors(&self) -> Result<Vec<Tensor<'_>>, Failure> {
        let parts = self.parts()?;
        Ok(parts
            .iter()
            .flat_map(|&part| part.file.header().iter().map(move |info| Tensor { part, info }))
            .collect())
    }
}

impl<'m> Tensor<'m> {
    pub(crate) fn name(&self) -> &'m str {
        self.info.name()
    }

    pub(crate) fn dtype(&self) -> Dtype {
        self.info.dtype()
    }

    pub(crate) fn shape(&self) -> &'m [usize] {
        self.info.shape()
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.info.byte_len()
    }

    /// Reads `buf.len()` bytes from `offset` within the tensor.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or became shorter.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Failure> {
        let range = offset..offset + buf.len() as u64;
        Ok(self.part.file.read_range(self.name(), range, buf)?)
    }

    /// Passes all bytes to `take`, a chunk at a time.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read) and of `take`.
    pub(crate) fn stream<E: From<Failure>>(
        &self,
        buf: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut offset = 0;
        while offset < self.byte_len() {
            let len = CHUNK.min(self.byte_len() - offset);
            // At most CHUNK, which fits any usize.
            buf.resize(len as usize, 0);
            self.read(offset, buf)?;
            take(buf)?;
            offset += len;
        }
        Ok(())
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

fn open_file(path: &Path, options: &ReadOptions) -> Result<SafeTensorsFile, Failure> {
    SafeTensorsFile::open_with(path, options).map_err(|error| {
        let failure = Failure::from(error).in_file(path);
        if failure.exit() != Exit::Invalid || failure.code().starts_with("df-") {
            return failure;
        }
        if let Some(named) = first_bytes(path).and_then(|first| foreign_failure(&first, &failure, path)) {
            return named;
        }
        let is_strict = options.strictness == Strictness::Strict;
        if is_strict && SafeTensorsFile::open_with(path, &ReadOptions::COMPAT).is_ok() {
            return failure.help(
                "the official reader accepts this file: if you trust it, repeat with --compat, or rewrite it with \
                 `apr convert --compat IN OUT`",
            );
        }
        failure
    })
}

/// A refusal that names the format, if the first bytes announce one.
fn foreign_failure(first: &[u8], refusal: &Failure, path: &Path) -> Option<Failure> {
    let foreign = foreign::sniff(first)?;
    let failure = Failure::new(CODE_FOREIGN_FORMAT, format!("this is {}, not safetensors", foreign.name));
    Some(failure.in_file(path).because(format!("read as safetensors: {}", refusal.what())).help(foreign.help))
}

fn first_bytes(path: &Path) -> Option<Vec<u8>> {
    let mut first = Vec::with_capacity(SNIFFED);
    let file = durable_file::open_regular(path, u64::MAX).ok()?.into_file();
    file.take(SNIFFED as u64).read_to_end(&mut first).ok()?;
    Some(first)
}
