//! Runs the program itself, as users do.

// Helpers are not seen as tests, but they fail like tests.
#![allow(clippy::unwrap_used)]

extern crate alloc;

mod adapters;
mod advice;
mod apr_files;
#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "remote")]
mod block_cache;
mod checkpoints;
mod columnar;
mod contract;
mod conversions;
mod detached;
mod distillation;
mod embed;
mod examples;
mod exports;
mod foreign_files;
#[cfg(feature = "remote")]
mod get;
mod gguf;
mod gguf_shards;
mod hostile;
#[cfg(feature = "remote")]
mod hub_cache;
mod inputs;
#[cfg(target_os = "linux")]
mod interruption;
mod jobs;
mod keys;
mod language_models;
mod licenses;
#[cfg(target_os = "linux")]
mod memory;
mod model_folders;
mod outputs;
#[cfg(target_os = "linux")]
mod passwords;
mod pipelines;
#[cfg(all(unix, feature = "remote"))]
mod private;
mod protected_pipeline;
mod protection;
#[cfg(feature = "cloud")]
mod put;
mod quantize;
mod quantized_checkpoints;
mod quantized_models;
mod readme;
mod remedies;
mod repairs;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "remote")]
mod remote_sealed;
mod sandbox;
mod scanning;
mod schemas;
mod scores;
mod sealed;
mod sealed_limits;
mod sealed_models;
#[cfg(feature = "remote")]
#[path = "../../../apr-remote/tests/it/server.rs"]
mod server;
#[cfg(unix)]
mod serving;
mod signatures;
mod snapshots;
mod suggestions;
mod tables;
#[cfg(target_os = "linux")]
mod terminals;
mod training;
mod training_preparation;
mod training_trees;
mod values;
mod vectors;
