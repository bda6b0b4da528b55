//! Manifests from and to JSON.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use json_scan::{Escape, Writer};

use located_error::Subject;

use super::{Shard, ShardManifest, refusal};
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v2;
use crate::v2::json::{self, Json, Member};
use crate::v2::metadata::{number, sound_text, text};

/// Longest manifest accepted, in bytes.
const MAX_LEN: u64 = 100_000_000;

pub(super) fn read(bytes: &[u8], options: &ReadOptions) -> Result<ShardManifest, Error> {
    let found = bytes.len() as u64;
    if found > MAX_LEN {
        return Err(ErrorKind::Limit { what: "length of the shard manifest", found, limit: MAX_LEN }.into());
    }
    let (text, begin) = sound_text(bytes, options)?;
    Draft::read(text).map_err(|error| error.shifted(begin))?.finish(options)
}

/// What was read, before it is compared with itself.
#[derive(Default)]
struct Draft {
    version: Option<String>,
    shard_count: Option<u64>,
    total_size: Option<u64>,
    tensor_count: Option<u64>,
    shards: Option<Vec<(u64, Shard)>>,
    weight_map: Option<BTreeMap<String, usize>>,
    other: BTreeMap<String, Json>,
}

impl Draft {
    fn read(text: &str) -> Result<Self, Error> {
        let mut draft = Self::default();
        json::members(text, |member| {
            let Member { key, value_at, .. } = member;
            match key {
                "version" => once(&mut draft.version, member, self::text),
                "shard_count" => once(&mut draft.shard_count, member, number),
                "total_size" => once(&mut draft.total_size, member, number),
                "tensor_count" => once(&mut draft.tensor_count, member, number),
                "shards" => {
                    let shards = read_shards(member.value).map_err(|error| error.shifted(value_at as u64))?;
                    put(&mut draft.shards, member, shards)
                }
                "weight_map" => {
                    let map = read_map(member.value).map_err(|error| error.shifted(value_at as u64))?;
                    put(&mut draft.weight_map, member, map)
                }
                _ => keep(&mut draft.other, member),
            }
        })?;
        Ok(draft)
    }

    fn finish(self, options: &ReadOptions) -> Result<ShardManifest, Error> {
        let version = require("version", self.version)?;
        let shard_count = require("shard_count", self.shard_count)?;
        let total_size = require("total_size", self.total_size)?;
        let tensor_count = require("tensor_count", self.tensor_count)?;
        let mut shards = require("shards", self.shards)?;
        let weight_map = require("weight_map", self.weight_map)?;
        if options.is_strict() && !version.starts_with("2.") {
            return Err(refusal("its version is not 2").about(Subject::key("version")));
        }
        if shard_count != shards.len() as u64 {
            return Err(refusal("`shard_count` is not the number of shards"));
        }
        if tensor_count != weight_map.len() as u64 {
            return Err(refusal("`tensor_count` is not the number of tensors"));
        }
        shards.sort_by_key(|(idx, _)| *idx);
        if !shards.iter().map(|(idx, _)| *idx).eq(0..shards.len() as u64) {
            return Err(refusal("the shards are not numbered from 0 without a gap"));
        }
        let shards = shards.into_iter().map(|(_, shard)| shard).collect();
        let manifest = ShardManifest { version, total_size, shards, weight_map, other: self.other };
        manifest.check_names()?;
        manifest.check_lists()?;
        Ok(manifest)
    }
}

fn read_shards(text: &str) -> Result<Vec<(u64, Shard)>, Error> {
    let mut shards = Vec::new();
    json::items(text, |item, at| {
        shards.push(read_shard(item).map_err(|error| error.shifted(at as u64))?);
        Ok(())
    })?;
    Ok(shards)
}

fn read_shard(text: &str) -> Result<(u64, Shard), Error> {
    let (mut filename, mut index, mut size, mut tensors) = (None, None, None, None);
    let mut other = BTreeMap::new();
    json::members(text, |member| match member.key {
        "filename" => once(&mut filename, member, self::text),
        "index" => once(&mut index, member, number),
        "size" => once(&mut size, member, number),
        "tensors" => {
            let mut names = Vec::new();
            json::items(member.value, |item, at| {
                names.push(self::text(item).map_err(|error| error.moved_to(at as u64))?);
                Ok(())
            })
            .map_err(|error| error.shifted(member.value_at as u64))?;
            put(&mut tensors, member, names)
        }
        _ => keep(&mut other, member),
    })?;
    let shard = Shard {
        filename: require("filename", filename)?,
        size: require("size", size)?,
        tensors: require("tensors", tensors)?,
        other,
    };
    Ok((require("index", index)?, shard))
}

fn read_map(text: &str) -> Result<BTreeMap<String, usize>, Error> {
    let mut map = BTreeMap::new();
    json::members(text, |member| {
        let located = |error: Error| error.moved_to(member.at as u64).about(Subject::key(member.key));
        let idx = number(member.value).map_err(located)?;
        // More shards than there can be are shards that no list has.
        let idx = usize::try_from(idx).unwrap_or(usize::MAX);
        match map.insert(member.key.to_string(), idx) {
            Some(_) => Err(located(v2::ErrorKind::DuplicateKey.into())),
            None => Ok(()),
        }
    })?;
    Ok(map)
}

/// Reads a member into its place.
fn once<T>(
    place: &mut Option<T>,
    member: Member<'_, '_>,
    read: impl Fn(&str) -> Result<T, Error>,
) -> Result<(), Error> {
    let value = read(member.value)
        .map_err(|error| error.moved_to(member.at as u64).about(Subject::key(member.key)))?;
    put(place, member, value)
}

fn put<T>(place: &mut Option<T>, member: Member<'_, '_>, value: T) -> Result<(), Error> {
    match place.replace(value) {
        Some(_) => Err(v2::ErrorKind::DuplicateKey.at(member.at as u64).about(Subject::key(member.key))),
        None => Ok(()),
    }
}

fn keep(other: &mut BTreeMap<String, Json>, member: Member<'_, '_>) -> Result<(), Error> {
    match other.insert(member.key.to_string(), Json::known(member.value)) {
        Some(_) => Err(v2::ErrorKind::DuplicateKey.at(member.at as u64).about(Subject::key(member.key))),
        None => Ok(()),
    }
}

fn require<T>(key: &'static str, value: Option<T>) -> Result<T, Error> {
    value.ok_or(v2::ErrorKind::MissingKey { key }.into())
}

pub(super) fn write(manifest: &ShardManifest) -> String {
    let mut out = Writer::indented(Escape::Minimal);
    out.begin_object();
    out.key("version").string(&manifest.version);
    out.key("shard_count").plain(manifest.shards.len());
    out.key("total_size").plain(manifest.total_size);
    out.key("tensor_count").plain(manifest.weight_map.len());
    out.key("shards").begin_array();
    for (idx, shard) in manifest.shards.iter().enumerate() {
        out.begin_object();
        out.key("filename").string(&shard.filename);
        out.key("index").plain(idx);
        out.key("size").plain(shard.size);
        out.key("tensors").begin_array();
        for tensor in &shard.tensors {
            out.string(tensor);
        }
        out.end_array();
        write_others(&mut out, &shard.other);
        out.end_object();
    }
    out.end_array();
    out.key("weight_map").begin_object();
    for (tensor, idx) in &manifest.weight_map {
        out.key(tensor).plain(idx);
    }
    out.end_object();
    write_others(&mut out, &manifest.other);
    out.end_object();
    out.finish()
}

fn write_others(out: &mut Writer, others: &BTreeMap<String, Json>) {
    for (key, json) in others {
        out.key(key).plain(json);
    }
}
