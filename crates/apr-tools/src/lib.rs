#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

extern crate alloc;

mod program;

mod cli;

mod args;
mod codes;
mod commands;
mod report;
mod tables;
mod tensor_fold;
mod terminal;

mod architecture;
mod checkpoints;
mod code_files;
mod detached;
mod error;
mod file_digest;
mod foreign;
mod input;
mod interruption;
mod jobs;
mod output;
mod remote;
mod scanning;
mod scoring;
mod sealed_file;
mod secrets;
mod threads;
mod usage;
mod whole_file;

pub use program::{run, run_json};
