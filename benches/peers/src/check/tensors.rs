//! Version 2: files and manifests, ours by `apr-format` and `apr-format`'s by us.

use std::path::Path;

use apr_container::ReadOptions;
use apr_container::v2::{
    AprType, Container, Dtype, Json, Metadata, Order, Shard, ShardManifest, Sharding, TensorView,
    WriteOptions, byte_len, save, to_vec,
};
use apr_format::v2::{AprV2Metadata, AprV2Reader, AprV2ReaderRef, AprV2Writer, TensorDType};
use serde_json::Value;

use super::samples::Random;
use super::{Outcome, same};

type Row = dyn Fn(&Path) -> Vec<Outcome>;

/// Rows and what makes their outcomes.
pub(crate) const ROWS: [(&str, &Row); 4] = [
    ("v2, every dtype", &|folder| {
        named("v2, every dtype", [read(folder), read_ref(), read_in_order(folder)])
    }),
    ("v2, metadata", &|_| named("v2, metadata", [metadata(), metadata_back()])),
    ("v2, by apr-format", &|_| named("v2, by apr-format", [equal_bytes(), read_back()])),
    ("v2, shards", &|_| named("v2, shards", [manifest(), manifest_back(), sharded()])),
];

fn named<const N: usize>(row: &str, outcomes: [Outcome; N]) -> Vec<Outcome> {
    outcomes.into_iter().map(|outcome| outcome.map_err(|why| format!("{row}: {why}"))).collect()
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// A tensor of some bytes.
struct Case {
    name: String,
    dtype: AprType,
    shape: Vec<u64>,
    data: Vec<u8>,
}

impl Case {
    fn view(&self) -> Result<TensorView<'_>, String> {
        TensorView::new(&self.name, self.dtype, &self.shape, &self.data).map_err(text)
    }

    fn shape(&self) -> Vec<usize> {
        self.shape.iter().map(|&dim| dim as usize).collect()
    }
}

/// Every dtype, and names and shapes at the edge of what the format allows. Not sorted.
fn cases() -> Result<Vec<Case>, String> {
    let mut random = Random::new(7);
    let mut cases = Vec::new();
    let mut add = |name: &str, dtype: AprType, shape: &[u64]| {
        let len = byte_len(dtype, shape).map_err(text)?;
        let data = (0..len).map(|_| random.bits() as u8).collect();
        cases.push(Case { name: name.to_owned(), dtype, shape: shape.to_vec(), data });
        Ok::<(), String>(())
    };
    for dtype in Dtype::ALL.iter().rev().filter_map(|dtype| dtype.apr_type()) {
        add(&format!("matrix.{dtype}"), dtype, &[3, 256])?;
    }
    add("deep", AprType::F32, &[1, 2, 1, 3, 1, 1, 2, 1])?;
    add("empty", AprType::F64, &[0, 3])?;
    add("héllo/世界", AprType::U8, &[65])?;
    add(&"n".repeat(256), AprType::Bf16, &[5])?;
    Ok(cases)
}

fn views(cases: &[Case]) -> Result<Vec<TensorView<'_>>, String> {
    cases.iter().map(Case::view).collect()
}

fn file() -> Result<(Vec<Case>, Vec<u8>), String> {
    let cases = cases()?;
    let file = to_vec(&views(&cases)?, &WriteOptions::new(Metadata::new("mixed"))).map_err(text)?;
    Ok((cases, file))
}

/// Compares one tensor as the peer sees it.
fn tensor(case: &Case, entry: Option<&apr_format::v2::TensorIndexEntry>, data: Option<&[u8]>) -> Outcome {
    let (Some(entry), Some(data)) = (entry, data) else { return Err(format!("{} is not found", case.name)) };
    if (entry.dtype as u8, &entry.shape) != (case.dtype.0, &case.shape()) {
        return Err(format!("{} is {} of {:?}", case.name, entry.dtype, entry.shape));
    }
    same(&case.name, &case.data, data)
}

fn all(cases: &[Case], bytes: &[u8]) -> Outcome {
    let reader = AprV2Reader::from_bytes(bytes).map_err(text)?;
    if reader.tensor_index().len() != cases.len() || !reader.verify_alignment() {
        return Err(format!(
            "{} tensors, aligned: {}",
            reader.tensor_index().len(),
            reader.verify_alignment()
        ));
    }
    cases
        .iter()
        .try_for_each(|case| tensor(case, reader.get_tensor(&case.name), reader.get_tensor_data(&case.name)))
}

/// Through a file.
fn read(folder: &Path) -> Outcome {
    let (cases, path) = (cases()?, folder.join("v2.apr"));
    save(&path, &views(&cases)?, &WriteOptions::new(Metadata::new("mixed"))).map_err(text)?;
    all(&cases, &std::fs::read(&path).map_err(text)?)
}

/// By the peer's borrowing reader.
fn read_ref() -> Outcome {
    let (cases, bytes) = file()?;
    let reader = AprV2ReaderRef::from_bytes(&bytes).map_err(text)?;
    cases
        .iter()
        .try_for_each(|case| tensor(case, reader.get_tensor(&case.name), reader.get_tensor_data(&case.name)))
}

/// The tensors' bytes in the order given, which is not that of the index.
fn read_in_order(folder: &Path) -> Outcome {
    let (cases, path) = (cases()?, folder.join("v2-order.apr"));
    let options = WriteOptions { order: Order::AsGiven, ..WriteOptions::new(Metadata::new("mixed")) };
    save(&path, &views(&cases)?, &options).map_err(text)?;
    all(&cases, &std::fs::read(&path).map_err(text)?)
}

/// Metadata with one key that the format does not know: the peer writes several in any order.
fn said() -> Result<(Metadata, AprV2Metadata), String> {
    let some = |word: &str| Some(word.to_owned());
    let mut ours = Metadata {
        name: some("tiny"),
        description: some("Größe \"quoted\"\n"),
        author: some("A. Uthor"),
        license: some("MIT"),
        data_source: some("set"),
        data_license: some("CC0-1.0"),
        version: some("1.0"),
        source: some("hf://org/tiny"),
        original_format: some("safetensors"),
        created_at: some("2026-01-01T00:00:00Z"),
        total_size: 12,
        param_count: u64::from(u32::MAX) + 1,
        architecture: some("llama"),
        ..Metadata::new("mixed")
    };
    ours.other.insert("hidden_size".to_owned(), Json::from(64));
    ours.other.insert("my_key".to_owned(), Json::new(r#"{"x":[1,2.5,null]}"#).map_err(text)?);
    let theirs = AprV2Metadata {
        model_type: "mixed".to_owned(),
        name: ours.name.clone(),
        description: ours.description.clone(),
        author: ours.author.clone(),
        license: ours.license.clone(),
        data_source: ours.data_source.clone(),
        data_license: ours.data_license.clone(),
        version: ours.version.clone(),
        source: ours.source.clone(),
        original_format: ours.original_format.clone(),
        created_at: ours.created_at.clone(),
        total_size: ours.total_size,
        param_count: ours.param_count,
        architecture: ours.architecture.clone(),
        hidden_size: Some(64),
        custom: [("my_key".to_owned(), serde_json::json!({ "x": [1, 2.5, null] }))].into(),
        ..AprV2Metadata::default()
    };
    Ok((ours, theirs))
}

fn metadata() -> Outcome {
    let (ours, theirs) = said()?;
    let bytes = to_vec(&[], &WriteOptions::new(ours)).map_err(text)?;
    let reader = AprV2Reader::from_bytes(&bytes).map_err(text)?;
    let json = |metadata: &AprV2Metadata| serde_json::to_value(metadata).map_err(text);
    let (expected, found) = (json(&theirs)?, json(reader.metadata())?);
    if expected == found { Ok(()) } else { Err(format!("the peer understands {found}, not {expected}")) }
}

fn metadata_back() -> Outcome {
    let (ours, theirs) = said()?;
    let bytes = AprV2Writer::new(theirs).write().map_err(text)?;
    let container = Container::from_bytes(&bytes).map_err(text)?;
    match *container.metadata() == ours {
        true => Ok(()),
        false => Err(format!("we understand {:?}, not {ours:?}", container.metadata())),
    }
}

/// The same tensors and metadata, written by the peer.
fn by_peer(cases: &[Case], metadata: AprV2Metadata) -> Result<Vec<u8>, String> {
    let mut writer = AprV2Writer::new(metadata);
    for case in cases {
        let dtype = TensorDType::from_u8(case.dtype.0).ok_or_else(|| format!("no dtype {:?}", case.dtype))?;
        writer.add_tensor(case.name.as_str(), dtype, case.shape(), case.data.clone());
    }
    writer.write().map_err(text)
}

fn equal_bytes() -> Outcome {
    let (ours, theirs) = said()?;
    let cases = cases()?;
    let bytes = to_vec(&views(&cases)?, &WriteOptions::new(ours)).map_err(text)?;
    same("the peer's file", &bytes, &by_peer(&cases, theirs)?)
}

fn read_back() -> Outcome {
    let cases = cases()?;
    let bytes = by_peer(&cases, AprV2Metadata::new("mixed"))?;
    let container = Container::from_bytes(&bytes).map_err(text)?;
    if container.warnings().next().is_some() || container.tensors().map_err(text)?.len() != cases.len() {
        return Err(format!("warnings {:?}", container.warnings().collect::<Vec<_>>()));
    }
    cases.iter().try_for_each(|case| {
        let found = container.tensor(&case.name).map_err(text)?;
        match (found.dtype(), found.shape()) == (case.dtype, &case.shape[..]) {
            true => same(&case.name, &case.data, found.data()),
            false => Err(format!("{} is {:?} of {:?}", case.name, found.dtype(), found.shape())),
        }
    })
}

fn shards() -> [(&'static str, u64, &'static [&'static str]); 2] {
    [("a-00001-of-00002.apr", 516, &["w", "x"]), ("a-00002-of-00002.apr", 644, &["v"])]
}

fn our_manifest() -> Result<ShardManifest, String> {
    let shards = shards().map(|(filename, size, tensors)| Shard {
        filename: filename.to_owned(),
        size,
        tensors: tensors.iter().map(|&name| name.to_owned()).collect(),
        ..Shard::default()
    });
    ShardManifest::new(shards.into()).map_err(text)
}

fn their_manifest() -> apr_format::v2::ShardManifest {
    let mut manifest = apr_format::v2::ShardManifest::new(2);
    for (index, (filename, size, tensors)) in shards().into_iter().enumerate() {
        let tensors = tensors.iter().map(|&name| name.to_owned()).collect();
        manifest.add_shard(apr_format::v2::ShardInfo { filename: filename.to_owned(), index, size, tensors });
    }
    manifest
}

fn manifest() -> Outcome {
    let found = apr_format::v2::ShardManifest::from_json(&our_manifest()?.to_json()).map_err(text)?;
    let json = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
    let (found, expected) = (found.to_json().map_err(text)?, their_manifest().to_json().map_err(text)?);
    if json(&found)? == json(&expected)? { Ok(()) } else { Err(format!("the peer understands {found}")) }
}

fn manifest_back() -> Outcome {
    let theirs = their_manifest().to_json().map_err(text)?;
    let found = ShardManifest::from_json(theirs.as_bytes(), &ReadOptions::STRICT).map_err(text)?;
    if found == our_manifest()? { Ok(()) } else { Err(format!("we understand {found:?}")) }
}

/// A file that says which of two it is.
fn sharded() -> Outcome {
    let sharding = Sharding { shard_count: 2, shard_index: 1, total_size: 9, ..Sharding::default() };
    let metadata = Metadata { sharding: Some(sharding), ..Metadata::new("mixed") };
    let bytes = to_vec(&[], &WriteOptions::new(metadata)).map_err(text)?;
    let reader = AprV2Reader::from_bytes(&bytes).map_err(text)?;
    let found = reader
        .metadata()
        .sharding
        .as_ref()
        .map(|found| (found.shard_count, found.shard_index, found.total_size));
    let flagged = reader.header().flags.bits() & apr_format::v2::AprV2Flags::SHARDED != 0;
    if found == Some((2, 1, 9)) && flagged { Ok(()) } else { Err(format!("{found:?}, flag {flagged}")) }
}
