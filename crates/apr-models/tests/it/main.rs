//! The public interface, from outside.

#![expect(clippy::unwrap_used, reason = "a test ends with a panic, also in the functions that serve it")]

extern crate alloc;

mod aprender_names;
mod data;
mod damage;
mod fitting;
mod growing;
mod mixture;
mod modules;
mod payloads;
#[cfg(feature = "quantize")]
mod quantized;
mod outputs;
mod own_layouts;
mod pipeline;
mod pipeline_neighbours;
mod pipeline_of_model;
mod pipeline_text;
mod pipeline_trees;
mod reference;
mod round_trip;
mod scikit;
mod seed;
mod trees;
mod views;
mod weighting;
