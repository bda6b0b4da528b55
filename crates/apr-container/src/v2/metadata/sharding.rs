//! The metadata member `sharding` of a sharded model.

use alloc::string::String;

use json_scan::Writer;

use super::{Known, Others, Reading, number, optional_text, write_number, write_text};
use crate::error::Error;
use crate::map::Map;
use crate::v2;
use crate::v2::json::{self, Json};

/// The shard that a file is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharding {
    /// Number of files.
    pub shard_count: u64,
    /// Which one this is, from 0.
    pub shard_index: u64,
    /// Bytes of all files together; writers in circulation leave it 0.
    pub total_size: u64,
    /// How the files are named.
    pub pattern: Option<String>,
    /// Every other member, by key.
    pub other: Map<Json>,
}

impl Sharding {
    /// `None` for `null`.
    pub(super) fn read(value: &str, reading: &mut Reading<'_>) -> Result<Option<Self>, Error> {
        if value == "null" {
            return Ok(None);
        }
        let mut sharding = Self::default();
        let mut others = Others::default();
        json::members(value, |member| {
            let value = member.value;
            let known = match member.key {
                "shard_count" => Some((0, number(value).map(|number| sharding.shard_count = number))),
                "shard_index" => Some((1, number(value).map(|number| sharding.shard_index = number))),
                "total_size" => Some((2, number(value).map(|number| sharding.total_size = number))),
                "pattern" => Some((3, optional_text(value).map(|text| sharding.pattern = text))),
                _ => None,
            };
            let known = known.map(|(bit, read)| Known { bit, read });
            reading.member(&mut others, known, member)
        })?;
        for (bit, key) in ["shard_count", "shard_index", "total_size"].into_iter().enumerate() {
            if others.seen & (1 << bit) == 0 {
                return Err(v2::ErrorKind::MissingKey { key }.into());
            }
        }
        sharding.other = others.finish();
        Ok(Some(sharding))
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.begin_object();
        write_number(out, "shard_count", self.shard_count);
        write_number(out, "shard_index", self.shard_index);
        write_number(out, "total_size", self.total_size);
        write_text(out, "pattern", self.pattern.as_deref());
        for (key, json) in &self.other {
            out.key(key).plain(json);
        }
        out.end_object();
    }
}
