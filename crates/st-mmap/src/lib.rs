//! Safetensors files: mapped, read by position, sharded, saved durably, and training checkpoints.
//!
//! `st-core` knows the format and sees bytes; this crate knows files. Every door opens regular files only, checks
//! lengths before it allocates, and gives the verdicts of `st-core`.
//!
//! | to | use |
//! |---|---|
//! | look at tensors without copying them | [`MappedSafeTensors`] |
//! | read some tensors or slices, on any file system | [`SafeTensorsFile`] |
//! | have everything in memory of your own | [`SafeTensorsFile::load`] into an [`Arena`] |
//! | open a model in several files | [`ShardedSafeTensors`] |
//! | save | [`save()`], [`save_layout`], [`write_sharded`] |
//! | change metadata in place | [`set_metadata`] |
//! | keep training checkpoints | [`Checkpoints`] |
//!
//! # Examples
//!
//! ```
//! use st_core::{Dtype, TensorView, WriteOptions};
//! use st_mmap::MappedSafeTensors;
//!
//! # let path = std::env::temp_dir().join(format!("st-mmap-doc-{}.safetensors", std::process::id()));
//! let weights: Vec<u8> = [1.0_f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
//! st_mmap::save(&path, &[("w", TensorView::new(Dtype::F32, &[3], &weights)?)], &WriteOptions::default())?;
//!
//! let model = MappedSafeTensors::open(&path)?;
//! for (name, tensor) in model.iter() {
//!     println!("{name}: {} {:?}", tensor.dtype(), tensor.shape());
//! }
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! None: the crate is `std` throughout.
//!
//! # Security
//!
//! A mapped file is not a copy: if another program shortens it, the reader dies of SIGBUS, and if one writes
//! into it, views change. [`Mapping`] says more; [`SafeTensorsFile`] never maps and turns both into errors or
//! into bytes that were there. Headers are always parsed from a private copy. Names in shard indexes and
//! manifests cannot leave their folder. Checkpoints never unpickle anything; their manifest finds damage, it
//! is not a signature.

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
mod new_folder;
mod save;
mod shard_writer;
mod checkpoint;
mod error;

pub use arena::{Arena, LoadedSafeTensors};
pub use checkpoint::{
    Checkpoint, CheckpointData, CheckpointFile, Checkpoints, FileRole, LoadOptions, Meta, OptimizerData,
    Resume, Verification,
};
pub use error::{Error, ErrorKind};
pub use file::SafeTensorsFile;
pub use map::{Advice, Mapping, PrivateMapping};
pub use mapped::MappedSafeTensors;
pub use save::{Survives, save, save_layout, save_layout_surviving, set_metadata};
pub use shard_writer::{WrittenShards, write_sharded};
pub use sharded::ShardedSafeTensors;
