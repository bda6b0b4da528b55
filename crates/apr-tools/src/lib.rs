//! The program `apr` as a function: it inspects, checks, compares, converts and shards machine-learning model files,
//! trains small models and asks them.
//!
//! The format is the business of the libraries; this one parses arguments, prints, and chooses exit codes. Its
//! contract is `docs/cli.md`. The binary `apr` and `python -m apr` call [`run`].

#![forbid(unsafe_code)]

extern crate alloc;

mod program;

mod cli;

mod check;
mod completions;
mod convert;
mod decrypt;
mod detached;
mod demo;
mod diff;
mod embed;
mod encrypt;
mod explain;
mod export;
mod inspect;
mod key;
mod keygen;
mod license;
mod man;
mod open;
mod predict;
mod quantize;
mod rekey;
mod seal;
#[cfg(feature = "serve")]
mod serve;
mod shard;
mod sign;
mod size;
mod tensors;
mod train;
mod unshard;
mod verify;

mod checkpoints;
mod code_files;
mod console;
mod csv;
mod error;
mod file_digest;
mod ending;
mod foreign;
mod suggest;
mod gguf_stream;
mod glob;
mod input;
mod interruption;
mod known;
mod metadata;
mod output;
mod render;
mod rewrite;
mod sealed_file;
mod secrets;
mod whole_file;

pub use program::{run, run_json};
