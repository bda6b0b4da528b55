//! Containers of version 2 and their shard manifests.

use apr_container::v2::{
    AprType, Container, Flags, Footer, Index, Order, ShardManifest, Stored, TensorView, WriteOptions, to_vec,
};
use apr_container::{Error as AprError, ReadOptions};
use serde_json::Value;

use super::vectors::{self, Content, TensorFacts, V2File, V2Header, Vectors};
use crate::digest::sha256_hex;
use crate::matrix::{Outcome, Suite};
use crate::vectors::Error;

const COLUMNS: &[&str] = &["read", "header", "metadata", "tensors", "values", "index alone", "written again"];

const ABOUT: &str = "\
Files of apr-format 0.72.3, read in both strictness levels. Header, footer, metadata and every tensor have to
be the recorded ones; floats of every width and both quantized types have to be the source's, to the bit or
within half a step; the index has to be readable without a byte of the tensors. Written again by us, a file
has to have the same bytes; one with the flag of a compression that was not done, and one whose keys a tool
appended unsorted, the same content. The manifest of the shards has to agree with them.";

/// Runs every container of version 2.
///
/// # Errors
///
/// A vector that cannot be read from disk.
pub fn suite(vectors: &Vectors) -> Result<Suite, Error> {
    let mut suite = Suite::new("apr, version 2: containers", ABOUT, COLUMNS);
    for file in &vectors.files {
        let bytes = || vectors::read(&file.name);
        match &file.content {
            Content::V2(facts) => suite.record("container", &file.name, outcomes(&bytes()?, facts)),
            Content::ShardManifest => {
                let outcome = Outcome::from_failure("equal", shards_differ(&bytes()?, vectors)?);
                let mut outcomes = [(); 7].map(|()| Outcome::NotApplicable);
                outcomes[0] = outcome;
                suite.record("shard manifest", &file.name, outcomes);
            }
            _ => {}
        }
    }
    Ok(suite)
}

fn outcomes(file: &[u8], facts: &V2File) -> [Outcome; 7] {
    let container = match Container::from_bytes(file) {
        Ok(container) => container,
        Err(error) => return [(); 7].map(|()| Outcome::Wrong(error.to_string())),
    };
    [
        Outcome::from_failure("read", levels_differ(file)),
        Outcome::from_failure("equal", header_differs(&container, file, facts.header)),
        Outcome::from_failure("equal", metadata_differ(&container, &facts.metadata)),
        Outcome::from_failure(
            "equal",
            tensors_differ(&container, &facts.tensors).unwrap_or_else(|error| Some(error.to_string())),
        ),
        match &facts.source {
            Some(source) => Outcome::from_failure("right", values_differ(&container, source)),
            None => Outcome::NotApplicable,
        },
        Outcome::from_failure("read", index_differs(file, facts.header.data_offset)),
        rewritten(&container, file).unwrap_or_else(|error| Outcome::Wrong(error.to_string())),
    ]
}

/// Both strictness levels give the same, with or without a look for compression.
fn levels_differ(file: &[u8]) -> Option<String> {
    for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
        let read = (Container::from_bytes_with(file, &options), Stored::from_bytes(file, &options));
        match read {
            (Ok(container), Ok(Stored::Raw(stored))) => {
                let tensors = |container: &Container<'_>| format!("{:?}", container.index());
                if tensors(&container) != tensors(&stored) {
                    return Some("two entry points return different tables".to_owned());
                }
            }
            (container, stored) => return Some(format!("{container:?}, {stored:?}")),
        }
    }
    None
}

fn header_differs(container: &Container<'_>, file: &[u8], expected: V2Header) -> Option<String> {
    let header = container.header();
    let Footer::Present(footer) = container.footer() else {
        return Some(format!("{:?}", container.footer()));
    };
    let stored = header.to_bytes();
    let checksum = stored.get(40..44).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let found = V2Header {
        version: header.version(),
        flags: header.flags().0,
        tensor_count: header.n_tensors_declared(),
        metadata_offset: header.metadata_offset_declared(),
        metadata_size: header.metadata_len_declared(),
        tensor_index_offset: header.index_offset_declared(),
        data_offset: container.index().data_start(),
        checksum: checksum.unwrap_or_default(),
        footer,
    };
    let same_bytes = file.get(..64) == Some(&stored[..]);
    (found != expected || !same_bytes).then(|| format!("{found:?}"))
}

fn metadata_differ(container: &Container<'_>, expected: &Value) -> Option<String> {
    let text = container.metadata().to_json();
    let found = serde_json::from_str::<Value>(&text);
    (found.as_ref().ok() != Some(expected)).then_some(text)
}

fn tensors_differ(container: &Container<'_>, expected: &[TensorFacts]) -> Result<Option<String>, AprError> {
    let facts = |(info, view): (apr_container::v2::TensorInfo<'_>, TensorView<'_>)| TensorFacts {
        name: info.name().to_owned(),
        dtype: info.stored_dtype(),
        shape: view.shape().to_vec(),
        offset: info.data_offset(),
        size: view.data().len() as u64,
        sha256: sha256_hex(view.data()),
    };
    let found: Vec<TensorFacts> = container.index().iter().zip(container.tensors()?).map(facts).collect();
    for facts in &found {
        if container.data(&facts.name)?.len() as u64 != facts.size {
            return Ok(Some(format!("{:?} is found elsewhere by its name", facts.name)));
        }
    }
    Ok((found != expected).then(|| format!("{found:?}")))
}

/// Says which tensor does not hold what it was made from.
fn values_differ(container: &Container<'_>, source: &[f32]) -> Option<String> {
    let mut compared = 0;
    for view in container.tensors().ok()? {
        let Ok(values) = view.to_f32() else { continue };
        let block_len = if view.dtype() == AprType::AprQ4 { 32 } else { source.len() };
        let wrong = values.iter().zip(source).enumerate().find(|(idx, (value, source_value))| {
            let begin = idx / block_len * block_len;
            let block = source.iter().skip(begin).take(block_len);
            let largest = block.fold(0f32, |largest, value| largest.max(value.abs()));
            let allowed = match view.dtype() {
                AprType::F32 => 0.0,
                AprType::F16 => source_value.abs() / 2048.0,
                AprType::Bf16 => source_value.abs() / 256.0,
                AprType::AprQ8 => largest / 127.0 * 0.501,
                // The scale is rounded to 16 bits, which moves the outermost value by up to 7 / 2048 of a step.
                AprType::AprQ4 => largest / 7.0 * 0.504,
                _ => return true,
            };
            let distance = (*value - **source_value).abs();
            // NaN is further away than anything.
            distance.is_nan() || distance > allowed
        });
        if let Some((idx, (value, source))) = wrong {
            return Some(format!("{:?}: element {idx} is {value}, not {source}", view.name()));
        }
        compared += usize::from(values.len() == source.len());
    }
    (compared != 5).then(|| format!("{compared} tensors could be compared"))
}

fn index_differs(file: &[u8], data_start: u64) -> Option<String> {
    let mut read = 0;
    let index = Index::read(file.len() as u64, &ReadOptions::STRICT, |offset, buffer| {
        read += buffer.len() as u64;
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        match file.get(begin..).and_then(|rest| rest.get(..buffer.len())) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => panic!("asked for {} bytes at {offset}", buffer.len()),
        }
        Ok(())
    });
    match (index, Index::from_bytes(file, &ReadOptions::STRICT)) {
        (Ok(read), Ok(whole)) if format!("{read:?}") != format!("{whole:?}") => Some("two tables".to_owned()),
        (Ok(_), Ok(_)) if read > data_start => Some(format!("{read} bytes were read")),
        (Ok(_), Ok(_)) => None,
        (read, whole) => Some(format!("{read:?}, {whole:?}")),
    }
}

fn rewritten(container: &Container<'_>, file: &[u8]) -> Result<Outcome, AprError> {
    let mut views: Vec<_> = container.index().iter().zip(container.tensors()?).collect();
    views.sort_by_key(|(info, _)| info.data_offset());
    let views: Vec<TensorView<'_>> = views.into_iter().map(|(_, view)| view).collect();
    let options = WriteOptions { order: Order::AsGiven, ..WriteOptions::like(container.index()) };
    let written = to_vec(&views, &options)?;
    if written == file {
        return Ok(Outcome::Expected("same bytes"));
    }
    let again = Container::from_bytes(&written)?;
    let kept = container.header().flags().without(Flags::COMPRESSED);
    let same = again.header().flags() == kept
        && again.metadata() == container.metadata()
        && again.tensors()?.eq(container.tensors()?);
    Ok(if same { Outcome::Expected("same content") } else { Outcome::Wrong("other content".to_owned()) })
}

fn shards_differ(text: &[u8], vectors: &Vectors) -> Result<Option<String>, Error> {
    let shards = match ShardManifest::from_json(text, &ReadOptions::STRICT) {
        Ok(shards) => shards,
        Err(error) => return Ok(Some(error.to_string())),
    };
    if shards.to_json().as_bytes() != text {
        return Ok(Some(format!("written again: {}", shards.to_json())));
    }
    for (number, shard) in shards.shards().iter().enumerate() {
        let Some(file) = vectors.files.iter().find(|file| file.name == shard.filename) else {
            return Ok(Some(format!("{} is no vector", shard.filename)));
        };
        let Content::V2(facts) = &file.content else { continue };
        let names: Vec<&str> = facts.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        let placed = names.iter().all(|name| shards.shard_of(name) == Some(number));
        if shard.size != file.size || shard.tensors != names || !placed {
            return Ok(Some(format!("{shard:?}")));
        }
        let bytes = vectors::read(&file.name)?;
        let sharding = Container::from_bytes(&bytes).ok().and_then(|shard| shard.metadata().sharding.clone());
        if sharding.is_none_or(|sharding| sharding.shard_index != number as u64) {
            return Ok(Some(format!("{} does not know its number", shard.filename)));
        }
    }
    Ok(None)
}
