//! The public API: every vector with a verdict, every rule.

mod arguments;
mod files;
mod members;
mod memory;
mod places;
mod reports;
mod rules;
mod states;
mod streams;
mod vectors;
