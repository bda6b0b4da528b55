//! The public API: every vector with a verdict, every rule.

mod files;
mod rules;
mod vectors;
