//! The index of a folder, made from its files.

use alloc::collections::BTreeMap;
use std::fs;
use std::path::Path;

use st_core::{ReadOptions, ShardIndex};

use crate::error::{Error, ErrorKind, InFile};
use crate::file::SafeTensorsFile;
use crate::sharded::{INDEX_ENDING, INDEX_NAME};

const ENDING: &str = ".safetensors";

/// An index made from the headers of the safetensors files in a folder, for a set whose index is missing or wrong.
///
/// If files are numbered (`model-00001-of-00002.safetensors`, also counted from 0), they are the set, and all of them have to be there;
/// otherwise it is every `.safetensors` file in the folder.
///
/// ```
/// use st_core::{Dtype, ReadOptions, TensorView, WriteOptions};
/// use st_mmap::FolderIndex;
///
/// # let folder = std::env::temp_dir().join(format!("st-mmap-doc-index-{}", std::process::id()));
/// let view = TensorView::new(Dtype::U8, &[4], &[1, 2, 3, 4])?;
/// st_mmap::write_sharded(&folder, &[("a", view), ("b", view)], 4, &WriteOptions::default())?;
/// let path = folder.join("model.safetensors.index.json");
/// let old = std::fs::read_to_string(&path)?;
///
/// let made = FolderIndex::of(&folder, &ReadOptions::STRICT)?;
/// assert_eq!((made.index().to_json(), made.name()), (old, "model.safetensors.index.json"));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FolderIndex {
    name: String,
    index: ShardIndex,
    shards: Vec<IndexedShard>,
    others: Vec<String>,
}

/// A file that the index lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedShard {
    /// Its name.
    pub file_name: String,
    /// Number of its tensors.
    pub tensors: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl FolderIndex {
    /// Reads the headers of the files in `folder`. Nothing is written, and an index that is there is not read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoShards`], [`ErrorKind::SeveralSets`], [`ErrorKind::MissingShard`], [`ErrorKind::SameTensor`],
    /// [`ErrorKind::SeveralIndexes`]; those of opening a file, whose header and length have to be valid.
    pub fn of(folder: &Path, options: &ReadOptions) -> Result<Self, Error> {
        let (files, indexes) = list(folder)?;
        let name = match indexes.as_slice() {
            [] => INDEX_NAME.to_owned(),
            [only] => only.clone(),
            several => return Err(ErrorKind::SeveralIndexes { count: several.len() }.at(folder)),
        };
        let (names, others) = set_of(files).map_err(|kind| kind.at(folder))?;
        let open = |name: &String| SafeTensorsFile::open_with(folder.join(name), options);
        let files = names.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut holders: BTreeMap<&str, &str> = BTreeMap::new();
        for (file, shard) in files.iter().zip(&names) {
            for info in file.header() {
                if let Some(first) = holders.insert(info.name(), shard) {
                    let kind = ErrorKind::SameTensor { first: first.to_owned(), second: shard.clone() };
                    return Err(kind.at(folder).of_tensor(info.name()));
                }
            }
        }
        let headers = names.iter().map(String::as_str).zip(files.iter().map(SafeTensorsFile::header));
        let index = ShardIndex::of_headers(headers).in_file(folder)?;
        let shards = names.iter().zip(&files).map(|(name, file)| IndexedShard {
            file_name: name.clone(),
            tensors: file.header().len() as u64,
            bytes: file.file_len(),
        });
        Ok(Self { name, index, shards: shards.collect(), others })
    }

    /// Name of the index file: that of the one in the folder, or `model.safetensors.index.json`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The index.
    #[must_use]
    pub const fn index(&self) -> &ShardIndex {
        &self.index
    }

    /// The files that it lists, in its order.
    #[must_use]
    pub fn shards(&self) -> &[IndexedShard] {
        &self.shards
    }

    /// Other safetensors files in the folder, which it does not list.
    #[must_use]
    pub fn others(&self) -> &[String] {
        &self.others
    }
}

/// Names of the safetensors files and of the indexes in a folder, sorted.
fn list(folder: &Path) -> Result<(Vec<String>, Vec<String>), Error> {
    let failed = |error| ErrorKind::Io { operation: "list folder", error }.at(folder);
    let (mut files, mut indexes) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let Ok(name) = entry.map_err(failed)?.file_name().into_string() else { continue };
        if name.ends_with(INDEX_ENDING) {
            indexes.push(name);
        } else if name.ends_with(ENDING) && !name.starts_with('.') {
            files.push(name);
        }
    }
    files.sort_unstable();
    indexes.sort_unstable();
    Ok((files, indexes))
}

/// The files of the set, and the others.
fn set_of(files: Vec<String>) -> Result<(Vec<String>, Vec<String>), ErrorKind> {
    let first = files.iter().find_map(|name| Some((name, Numbered::of(name)?)));
    let Some((first_name, first)) = first else {
        return if files.is_empty() { Err(ErrorKind::NoShards) } else { Ok((files, Vec::new())) };
    };
    let is_other_set = |name: &&String| {
        Numbered::of(name).is_some_and(|found| (found.prefix, found.of) != (first.prefix, first.of))
    };
    if let Some(second) = files.iter().find(is_other_set) {
        return Err(ErrorKind::SeveralSets { first: first_name.clone(), second: second.clone() });
    }
    let (set, others): (Vec<String>, Vec<String>) =
        files.iter().cloned().partition(|name| Numbered::of(name).is_some());
    let count = set.len() as u64;
    let from = u64::from(first.number != 0);
    let missing = set
        .iter()
        .zip(from..)
        .find_map(|(name, number)| Numbered::of(name).filter(|found| found.number != number).map(|_| number));
    match missing.or((count < first.of).then_some(from + count)) {
        Some(number) => Err(ErrorKind::MissingShard { file: first.name_of(number) }),
        None => Ok((set, others)),
    }
}

/// A numbered name: `model-00001-of-00002.safetensors`, `model.safetensors-00001-of-00002.safetensors`.
#[derive(Clone, Copy, Debug)]
struct Numbered<'n> {
    prefix: &'n str,
    number: u64,
    of: u64,
    /// Digits of each number.
    width: usize,
}

impl<'n> Numbered<'n> {
    fn of(name: &'n str) -> Option<Self> {
        let (rest, of) = name.strip_suffix(ENDING)?.rsplit_once("-of-")?;
        let (prefix, number) = rest.rsplit_once('-')?;
        let parse = |text: &str| {
            let is_number = (5..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { text.parse().ok() } else { None }
        };
        Some(Self { prefix, number: parse(number)?, of: parse(of)?, width: number.len() })
    }

    fn name_of(&self, number: u64) -> String {
        let Self { prefix, of, width, .. } = self;
        format!("{prefix}-{number:0width$}-of-{of:0width$}{ENDING}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> Result<(usize, usize), String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        set_of(names).map(|(set, others)| (set.len(), others.len())).map_err(|kind| format!("{kind}"))
    }

    #[test]
    fn numbered_files_are_the_set() {
        assert_eq!(
            set(&[
                "consolidated.safetensors",
                "m-00001-of-00002.safetensors",
                "m-00002-of-00002.safetensors"
            ]),
            Ok((2, 1))
        );
        assert_eq!(
            set(&["m.safetensors-00000-of-00002.safetensors", "m.safetensors-00001-of-00002.safetensors"]),
            Ok((2, 0))
        );
        assert_eq!(set(&["a.safetensors", "b.safetensors"]), Ok((2, 0)));
        assert!(
            set(&["m-00001-of-00003.safetensors", "m-00003-of-00003.safetensors"])
                .unwrap_err()
                .contains("m-00002-of-00003")
        );
        assert!(
            set(&["m-00001-of-00003.safetensors", "m-00002-of-00003.safetensors"])
                .unwrap_err()
                .contains("m-00003-of-00003")
        );
        assert!(
            set(&["m-00001-of-00002.safetensors", "m-00002-of-00003.safetensors"])
                .unwrap_err()
                .contains("several sets")
        );
        assert!(set(&[]).unwrap_err().contains("no .safetensors"));
    }
}
