//! Writes a model as shards with an index.

use std::fs;
use std::path::{Path, PathBuf};

use durable_file::Replacement;
use st_core::{ShardPlan, TensorView, WriteOptions};

use crate::error::{Error, ErrorKind, InFile};
use crate::new_folder;
use crate::save::{Survives, lay_out, replace, write_tensors};
use crate::sharded::{INDEX_NAME, SINGLE_NAME};

/// Files that [`write_sharded`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenShards {
    /// The safetensors files, in order. One called `model.safetensors` if everything fits into one.
    pub shards: Vec<PathBuf>,
    /// The index; `None` for a single file.
    pub index: Option<PathBuf>,
}

/// Writes tensors into `folder` as shards of at most `max_shard_bytes` bytes of tensor data.
///
/// Names, index and the distribution of tensors are those of huggingface_hub: tensors go to shards in the
/// order given, and one that is larger than the limit gets a shard of its own. Every file gets the metadata
/// of `options`; readers of that family expect `format` = `pt` there.
///
/// The folder is made if it is missing. Each file is durable before the next begins and the index comes last,
/// so a set with an index is complete.
///
/// # Errors
///
/// [`ErrorKind::File`] of kind `Exists` if the folder already has a file of one of these names or an index:
/// sets are not overwritten, because no order of writing would keep the old one readable until the end.
/// Otherwise those of [`save`](crate::save()). Files written before the error are removed; a new folder
/// stays.
///
/// # Examples
///
/// See [`ShardedSafeTensors`](crate::ShardedSafeTensors).
pub fn write_sharded(
    folder: impl AsRef<Path>,
    tensors: &[(&str, TensorView<'_>)],
    max_shard_bytes: u64,
    options: &WriteOptions,
) -> Result<WrittenShards, Error> {
    let folder = folder.as_ref();
    let plan =
        ShardPlan::new(tensors.iter().map(|(name, view)| (*name, view.data().len() as u64)), max_shard_bytes)
            .in_file(folder)?;
    new_folder::make(folder)?;
    // Both names are tried before anything is written: a folder with two models would be read as either.
    drop(Replacement::create_new(&folder.join(SINGLE_NAME))?);
    let index = Replacement::create_new(&folder.join(INDEX_NAME))?;

    let mut written = Vec::new();
    let result = write_shards(folder, tensors, &plan, options, &mut written).and_then(|()| {
        let Some(text) = plan.index() else {
            return Ok(None);
        };
        let path = folder.join(INDEX_NAME);
        replace(&path, index, Survives::PowerCut, |out| {
            std::io::Write::write_all(out, text.to_json().as_bytes())
        })?;
        Ok(Some(path))
    });
    match result {
        Ok(index) => Ok(WrittenShards { shards: written, index }),
        Err(error) => {
            // An index that is in place after all needs its shards.
            let unconfirmed =
                |error: &durable_file::Error| error.kind() == durable_file::ErrorKind::Unconfirmed;
            if !matches!(error.kind(), ErrorKind::File(inner) if unconfirmed(inner)) {
                for path in &written {
                    // What cannot be removed does not replace the reason why.
                    let _ = fs::remove_file(path);
                }
            }
            Err(error)
        }
    }
}

fn write_shards(
    folder: &Path,
    tensors: &[(&str, TensorView<'_>)],
    plan: &ShardPlan,
    options: &WriteOptions,
    written: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    for shard in plan.shards() {
        let path = folder.join(&shard.file_name);
        let mine: Vec<_> = shard.tensors.iter().filter_map(|idx| tensors.get(*idx).copied()).collect();
        let layout = lay_out(&mine, options).map_err(|error| Error::from(error).in_file(&path))?;
        replace(&path, Replacement::create_new(&path)?, Survives::PowerCut, |out| {
            write_tensors(&layout, &mine, out)
        })?;
        written.push(path);
    }
    Ok(())
}
