//! The public API: every vector with a verdict, every rule.

mod rules;
mod vectors;
