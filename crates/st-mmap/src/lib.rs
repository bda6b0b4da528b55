#![doc = include_str!("../README.md")]
//!
//! # Security
//!
//! A mapped file is not a copy: if another program shortens it, the reader dies of SIGBUS, and if one writes
//! into it, views change. See [`Mapping`]; [`SafeTensorsFile`] never maps and turns both into errors or
//! into bytes that were there. Headers are always parsed from a private copy. Names in shard indexes and
//! manifests cannot leave their folder. Checkpoints never unpickle anything; their manifest detects corruption, it is not a
//! signature.

#![deny(unsafe_code)]

extern crate alloc;

mod map;
mod positioned;
mod file;
mod gather;
mod arena;
mod views;
mod mapped;
mod sharded;
mod folder_index;
mod repaired;
mod new_folder;
mod save;
mod shard_writer;
mod checkpoint;
mod error;

pub use arena::{Arena, LoadedSafeTensors};
pub use checkpoint::{
    Best, Checkpoint, CheckpointData, CheckpointFile, Checkpoints, FileRole, FormatVersion, Kept, KeptBy,
    LoadOptions, Meta, OpenedCheckpoint, OptimizerData, PartData, Plan, Prefer, Resume, Retention,
    Verification,
};
pub use error::{Error, ErrorKind};
pub use file::SafeTensorsFile;
pub use folder_index::{FolderIndex, IndexedShard};
pub use located_error::Subject;
pub use map::{Advice, Mapping, PrivateMapping};
pub use mapped::MappedSafeTensors;
pub use repaired::RepairedFile;
pub use save::{Survives, save, save_layout, save_layout_surviving, set_metadata};
pub use shard_writer::{WrittenShards, write_sharded};
pub use sharded::{ShardedSafeTensors, Shards};
