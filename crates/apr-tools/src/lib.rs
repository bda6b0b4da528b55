//! The program `apr` as a function: it inspects, checks, compares, converts and shards machine-learning model files,
//! trains small models and asks them.
//!
//! The format is the business of the libraries; this one parses arguments, prints, and chooses exit codes. Its
//! contract is `docs/cli.md`. The binary `apr` and `python -m apr` call [`run`].

#![forbid(unsafe_code)]

extern crate alloc;

mod program;

mod cli;

mod args;
mod codes;
mod commands;
mod report;
mod terminal;

mod checkpoints;
mod code_files;
mod csv;
mod detached;
mod error;
mod file_digest;
mod foreign;
mod input;
mod interruption;
mod known;
mod metadata;
mod output;
mod sealed_file;
mod secrets;
mod whole_file;

pub use program::{run, run_json};
