//! The public API: every vector with a verdict, every rule.

mod arguments;
mod bounds;
mod files;
mod loaders;
mod members;
mod memory;
mod places;
mod reports;
mod rules;
mod states;
mod streams;
mod tar_archives;
mod vectors;
