//! The tensors of a folder: which files they are in, and in what order the reference implementation takes them.

pub(crate) mod build;
pub(crate) mod input;
pub(crate) mod leftover;
pub(crate) mod output;
pub(crate) mod pair;
pub(crate) mod scales;
pub(crate) mod view;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use located_error::Subject;
use tensor_dtype::Dtype;

use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::texts::Texts;

/// Most files of a model.
const MAX_PARTS: usize = 4096;

/// A tensor of a file, as its table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTensor {
    /// Name.
    pub name: String,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Shape, the slowest dimension first.
    pub shape: Vec<u64>,
}

impl SourceTensor {
    /// Number of elements; the most that there can be, if it does not fit.
    pub(crate) fn count(&self) -> u64 {
        self.shape.iter().fold(1, |count, len| count.saturating_mul(*len))
    }
}

/// Format of the files that hold the tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartFormat {
    /// safetensors: tensors are taken in the order of their names.
    SafeTensors,
    /// Pickles of PyTorch: tensors are taken in the order of the file.
    Pickle,
}

/// What the files hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    /// A model.
    Model,
    /// What an adapter adds to one.
    Adapter,
}

impl PartFormat {
    /// Name of the index of such files.
    const fn index(self, whole: Whole) -> &'static str {
        match (whole, self) {
            (Whole::Model, Self::SafeTensors) => "model.safetensors.index.json",
            (Whole::Model, Self::Pickle) => "pytorch_model.bin.index.json",
            (Whole::Adapter, Self::SafeTensors) => "adapter_model.safetensors.index.json",
            (Whole::Adapter, Self::Pickle) => "adapter_model.bin.index.json",
        }
    }

    const fn affixes(self, whole: Whole) -> (&'static str, &'static str) {
        match (whole, self) {
            (Whole::Model, Self::SafeTensors) => ("model", ".safetensors"),
            (Whole::Model, Self::Pickle) => ("pytorch_model", ".bin"),
            (Whole::Adapter, Self::SafeTensors) => ("adapter_model", ".safetensors"),
            (Whole::Adapter, Self::Pickle) => ("adapter_model", ".bin"),
        }
    }
}

/// The files that hold the tensors of a model, or of an adapter of one, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    whole: Whole,
    /// Their format.
    pub format: PartFormat,
    /// Their names.
    pub files: Vec<String>,
    /// The name of each tensor and its file, if there is an index.
    index: Option<BTreeMap<String, String>>,
}

impl Parts {
    /// Finds the files of a model among the names of the files of the folder: those of the index, else all that are called as such
    /// files are.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoTensors`]; [`ErrorKind::MissingFile`] for a file of the index, or of a numbered set, that the folder does not
    /// have; [`ErrorKind::PartNotIndexed`] for one of such a set that the index leaves out; [`ErrorKind::Json`], [`ErrorKind::NotUtf8`]
    /// and [`ErrorKind::Index`] for an index that is none.
    pub fn find<'f>(texts: &Texts, files: impl IntoIterator<Item = &'f str>) -> Result<Self, Error> {
        Self::of(Whole::Model, texts, files)?.ok_or_else(|| ErrorKind::NoTensors.into())
    }

    /// Finds the files of an adapter: those of the index, else the one that is called as a single file is, else all that are called
    /// as such files are.
    ///
    /// # Errors
    ///
    /// Those of [`find`](Self::find), with [`ErrorKind::MissingFile`] in place of [`ErrorKind::NoTensors`]; [`ErrorKind::Adapter`] for an
    /// adapter of MLX.
    pub fn find_adapter<'f>(texts: &Texts, files: impl IntoIterator<Item = &'f str>) -> Result<Self, Error> {
        const FILES: &str = "adapter_model.safetensors or adapter_model.bin";
        const MLX: &str = "adapters.safetensors";
        let files: BTreeSet<&str> = files.into_iter().collect();
        let is_of_mlx = files.contains(MLX);
        Self::of(Whole::Adapter, texts, files)?.ok_or_else(|| match is_of_mlx {
            true => ErrorKind::Adapter { what: "an adapter of MLX (adapters.safetensors)" }.into(),
            false => ErrorKind::MissingFile { file: FILES.into() }.into(),
        })
    }

    /// `None` if there are no files.
    fn of<'f>(
        whole: Whole,
        texts: &Texts,
        files: impl IntoIterator<Item = &'f str>,
    ) -> Result<Option<Self>, Error> {
        let files: BTreeSet<&str> = files.into_iter().collect();
        let named = |format: PartFormat| {
            let (prefix, suffix) = format.affixes(whole);
            files.iter().copied().filter(move |name| name.starts_with(prefix) && name.ends_with(suffix))
        };
        let is_safe = named(PartFormat::SafeTensors).next().is_some()
            || texts.get(PartFormat::SafeTensors.index(whole)).is_some();
        let format = if is_safe { PartFormat::SafeTensors } else { PartFormat::Pickle };
        let index = format.index(whole);
        let names = texts.get(index).map(|bytes| read_index(index, bytes)).transpose()?;
        let (prefix, suffix) = format.affixes(whole);
        let is_single =
            |name: &str| name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix)) == Some("");
        let parts: Vec<String> = match &names {
            // Models are read as the reference implementation reads them: all files.
            None if whole == Whole::Adapter && named(format).any(is_single) => {
                named(format).filter(|name| is_single(name)).map(Into::into).collect()
            }
            None => named(format).map(Into::into).collect(),
            Some(names) => {
                let files: BTreeSet<&String> = names.values().collect();
                files.into_iter().cloned().collect()
            }
        };
        if parts.is_empty() {
            return Ok(None);
        }
        if parts.len() > MAX_PARTS {
            let what = "it names more than 4,096 files";
            return Err(ErrorKind::Index { file: index.into(), what }.into());
        }
        if let Some(missing) = parts.iter().find(|name| !files.contains(name.as_str())) {
            return Err(ErrorKind::MissingFile { file: missing.as_str().into() }.into());
        }
        match &names {
            None => check_sets(&parts)?,
            Some(_) => {
                let sets: BTreeSet<(&str, &str)> =
                    parts.iter().filter_map(|name| numbered(name)).map(|part| part.set).collect();
                let is_left_out = |name: &&str| {
                    numbered(name).is_some_and(|part| sets.contains(&part.set))
                        && parts.binary_search_by(|own| own.as_str().cmp(name)).is_err()
                };
                if let Some(file) = named(format).find(is_left_out) {
                    let (index, file) = (index.into(), file.into());
                    return Err(ErrorKind::PartNotIndexed { index, file }.into());
                }
            }
        }
        Ok(Some(Self { whole, format, files: parts, index: names }))
    }

    /// Files in order, without an index.
    pub(crate) const fn of_files(format: PartFormat, files: Vec<String>) -> Self {
        Self { whole: Whole::Model, format, files, index: None }
    }

    /// The tensors in order (those of adapters in the order of the tables), with the number of the file and that of the tensor in it, from the tables of the files in order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DuplicateTensor`]; [`ErrorKind::IndexedTensor`] and [`ErrorKind::TensorNotIndexed`] if index and files disagree.
    pub fn order<'t>(
        &self,
        tables: &'t [Vec<SourceTensor>],
    ) -> Result<Vec<(usize, usize, &'t SourceTensor)>, Error> {
        let mut all = Vec::new();
        let mut names = BTreeSet::new();
        for (part, table) in tables.iter().enumerate() {
            let begin = all.len();
            all.extend(table.iter().enumerate().map(|(idx, tensor)| (part, idx, tensor)));
            if self.format == PartFormat::SafeTensors && self.whole == Whole::Model {
                all[begin..].sort_by_key(|(_, _, tensor)| &tensor.name);
            }
        }
        for (_, _, tensor) in &all {
            let refused = |kind: ErrorKind| Err(Error::from(kind).of(Subject::tensor(&tensor.name)));
            if !names.insert(tensor.name.as_str()) {
                return refused(ErrorKind::DuplicateTensor);
            }
            if self.index.as_ref().is_some_and(|index| !index.contains_key(&tensor.name)) {
                return refused(ErrorKind::TensorNotIndexed { file: self.format.index(self.whole).into() });
            }
        }
        let mut indexed = self.index.iter().flatten();
        if let Some((name, file)) = indexed.find(|(name, _)| !names.contains(name.as_str())) {
            let kind = ErrorKind::IndexedTensor { file: file.as_str().into() };
            return Err(Error::from(kind).of(Subject::tensor(name)));
        }
        Ok(all)
    }
}

/// A file of a numbered set, `model-00002-of-00005.safetensors`.
struct Numbered<'n> {
    /// What is before and after its number.
    set: (&'n str, &'n str),
    number: u64,
    /// Digits of the number.
    width: usize,
    count: u64,
}

fn numbered(name: &str) -> Option<Numbered<'_>> {
    // As many digits as a number has, and zeros before them.
    let is_number =
        |text: &str| (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let (before, after) = name.rsplit_once("-of-")?;
    let (_, digits) = before.rsplit_once('-').filter(|(_, number)| is_number(number))?;
    let (count, _) = after.split_once('.').filter(|(count, _)| is_number(count))?;
    let (stem, end) = (before.len() - digits.len(), before.len());
    let (number, count) = (digits.parse().ok()?, count.parse().ok()?);
    Some(Numbered { set: (&name[..stem], &name[end..]), number, width: digits.len(), count })
}

/// Refuses numbered sets that are not all there, which no index tells.
fn check_sets(parts: &[String]) -> Result<(), Error> {
    let mut sets: BTreeMap<(&str, &str), (BTreeSet<u64>, usize, u64)> = BTreeMap::new();
    for Numbered { set, number, width, count } in parts.iter().filter_map(|name| numbered(name)) {
        sets.entry(set).or_insert((BTreeSet::new(), width, count)).0.insert(number);
    }
    for ((begin, end), (numbers, width, count)) in sets {
        // Some programs count from zero.
        let first = u64::from(!numbers.contains(&0));
        if let Some(number) = (first..first.saturating_add(count)).find(|number| !numbers.contains(number)) {
            let file = format!("{begin}{number:0width$}{end}").into();
            return Err(ErrorKind::MissingFile { file }.into());
        }
    }
    Ok(())
}

/// The map of an index from names of tensors to names of files.
fn read_index(file: &'static str, bytes: &[u8]) -> Result<BTreeMap<String, String>, Error> {
    let refused = |what| Error::from(ErrorKind::Index { file: file.into(), what });
    let index = Json::from_bytes(file, bytes)?;
    let map =
        index.get("weight_map").and_then(Json::as_object).ok_or_else(|| refused("it has no weight_map"))?;
    if map.iter().next().is_none() {
        return Err(refused("its weight_map is empty"));
    }
    let mut names = BTreeMap::new();
    for (name, part) in map.iter() {
        let part = part.as_str().ok_or_else(|| refused("a value of weight_map is no name of a file"))?;
        if part.is_empty() || part.contains(['/', '\\', '\0']) || part == ".." || part == "." {
            return Err(
                refused("a value of weight_map is no name of a file in the folder").of(Subject::tensor(name))
            );
        }
        names.insert(name.into(), part.into());
    }
    Ok(names)
}
