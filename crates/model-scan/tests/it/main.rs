//! The public API: every vector with a verdict, every rule.

mod arguments;
mod files;
mod members;
mod memory;
mod reports;
mod rules;
mod streams;
mod vectors;
