//! Which tensors the folder has, and in which files.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use json_scan::{Escape, Writer};
use located_error::Subject;
use tensor_dtype::Dtype;

use super::{FolderTensor, GENERATED, Restore, Stored, restored_type};
use crate::architecture::Architecture;
use crate::error::{Error, ErrorKind};
use crate::tensors::SourceTensor;
use crate::tensors::build::first_number;

/// Most experts of a layer.
const MAX_EXPERTS: u64 = 1 << 16;
/// Most tensors of a folder.
const MAX_TENSORS: usize = 1 << 20;

/// Tensors of the folder that the conversion has to see before the next tensor of the GGUF file.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) tensors: Vec<SourceTensor>,
    /// The stack that they are the pieces of: its layer.
    stack: Option<u64>,
}

/// Where a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// Where the one before is full.
    WhenFull,
    /// There, and where a name is before the one in front of it: files are converted in the order of the names of their tensors.
    WhereNamesDescend,
}

/// The tensors of the folder, in the order of the GGUF file.
pub(super) fn named(
    stored: &Stored<'_>,
    architecture: &'static Architecture,
    restore: Restore,
    wanted: Option<Dtype>,
) -> Result<Vec<Group>, Error> {
    let mut groups: Vec<Group> = Vec::new();
    let mut count = 0;
    for tensor in stored.tensors() {
        if GENERATED.contains(&tensor.name.as_str()) {
            continue;
        }
        let refused = |kind: ErrorKind| Error::from(kind).of(Subject::tensor(&tensor.name));
        let (own, stack) = match (restore.tensors)(stored, &tensor.name, &tensor.shape)
            .map_err(|error| error.of(Subject::tensor(&tensor.name)))?
        {
            Some(own) => (own, None),
            None => match pieces(architecture, &tensor.name, &tensor.shape) {
                Some((own, layer)) => (own, Some(layer)),
                None => {
                    let name = architecture.folder_name(&tensor.name);
                    let name = name.ok_or_else(|| refused(ErrorKind::StoredTensor))?;
                    (vec![(name, tensor.shape.clone())], None)
                }
            },
        };
        count += own.len();
        if count > MAX_TENSORS {
            return Err(refused(ErrorKind::StoredTensor));
        }
        let dtype = restored_type(tensor, wanted)?;
        let tensors = own.into_iter().map(|(name, shape)| SourceTensor { name, dtype, shape });
        match groups.last_mut().filter(|last| stack.is_some() && last.stack == stack) {
            Some(last) => last.tensors.extend(tensors),
            None => groups.push(Group { tensors: tensors.collect(), stack }),
        }
    }
    Ok(groups)
}

/// The pieces of a stack of experts, and their layer.
fn pieces(
    architecture: &'static Architecture,
    name: &str,
    shape: &[u64],
) -> Option<(Vec<FolderTensor>, u64)> {
    let experts = architecture.experts?;
    let (layer, base) = name.strip_prefix("blk.")?.strip_suffix(".weight")?.split_once('.')?;
    let layer = first_number(layer)?;
    let (part, _) = experts.parts.iter().find(|(_, stack)| *stack == base)?;
    let [count, shape @ ..] = shape else { return None };
    if *count > MAX_EXPERTS || shape.len() != 2 {
        return None;
    }
    let prefix = architecture.prefix;
    let piece = |number: u64| {
        (format!("{prefix}layers.{layer}{}{number}.{part}.weight", experts.infix), shape.to_vec())
    };
    Some(((0..*count).map(piece).collect(), layer))
}

/// How many files may begin for the sake of the order of tensors.
pub(super) fn most_files(stored: &Stored<'_>) -> usize {
    const LEAST: u64 = 8;
    let layers = stored.u32("block_count").ok().flatten().unwrap_or(0);
    // One of a gigabyte at least, or one for each layer.
    let most = (stored.n_elements() >> 29).max(layers.into()).clamp(LEAST, 1024);
    most as usize
}

/// Divides the tensors into files.
pub(super) fn files(groups: &[Group], max_bytes: u64, begin: Begin) -> Vec<Vec<SourceTensor>> {
    let mut files: Vec<Vec<SourceTensor>> = vec![Vec::new()];
    let (mut bytes, mut last) = (0_u64, "");
    for group in groups {
        // A stack appears with the last of its pieces.
        let greatest = group.tensors.iter().map(|tensor| tensor.name.as_str()).max().unwrap_or(last);
        let mut descends = begin == Begin::WhereNamesDescend && greatest < last;
        for tensor in &group.tensors {
            let len = byte_len(tensor);
            let is_empty = files.last().is_none_or(Vec::is_empty);
            if !is_empty && (descends || bytes.saturating_add(len) > max_bytes) {
                files.push(Vec::new());
                bytes = 0;
            }
            descends = false;
            bytes = bytes.saturating_add(len);
            if let Some(file) = files.last_mut() {
                file.push(tensor.clone());
            }
        }
        last = greatest;
    }
    files
}

/// Bytes of a tensor of the folder, which has no blocks.
fn byte_len(tensor: &SourceTensor) -> u64 {
    tensor.count().saturating_mul(u64::from(tensor.dtype.bits() / 8))
}

/// Files with the names that such files have.
pub(super) fn with_names(files: Vec<Vec<SourceTensor>>) -> Vec<(String, Vec<SourceTensor>)> {
    let count = files.len();
    let name = |number: usize| match count {
        1 => "model.safetensors".to_string(),
        _ => format!("model-{:05}-of-{count:05}.safetensors", number + 1),
    };
    files.into_iter().enumerate().map(|(number, tensors)| (name(number), tensors)).collect()
}

/// The index of several files.
pub(super) fn index(files: &[(String, Vec<SourceTensor>)]) -> String {
    let lens = files.iter().flat_map(|(_, tensors)| tensors).map(byte_len);
    let mut out = Writer::indented(Escape::Ascii);
    out.begin_object();
    out.key("metadata").begin_object();
    out.key("total_size").plain(lens.fold(0, u64::saturating_add));
    out.end_object();
    out.key("weight_map").begin_object();
    let mut names: Vec<(&str, &str)> = files
        .iter()
        .flat_map(|(file, tensors)| tensors.iter().map(move |tensor| (tensor.name.as_str(), file.as_str())))
        .collect();
    names.sort_unstable();
    for (name, file) in names {
        out.key(name).string(file);
    }
    out.end_object();
    out.end_object();
    out.finish()
}
