//! The native module of the Python package `apr`: files, headers and bytes. Code that needs a framework is in Python.
//!
//! `docs/python.md` specifies what is here: the surface of `safetensors` 0.8.0, and what goes beyond it.

#![deny(unsafe_code)]
// Python's classes and functions are documented where Python finds it.
#![allow(missing_docs, unreachable_pub, missing_debug_implementations)]

extern crate alloc;

mod apr_files;
mod arrow;
mod buffer;
mod checkpoints;
mod deserialize;
mod dtypes;
mod error;
mod filling;
mod foreign;
mod gguf;
mod index;
mod maker;
mod model_tensors;
mod numpy;
mod opened;
mod options;
mod packed;
mod pipeline;
mod private;
mod program;
mod range_file;
mod safe_open;
mod scan;
mod serialize;
mod sharded;
mod slice;
mod tensor;
mod tensor_spec;
mod texts;
mod writer;

/// The native module of `apr`.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::apr_files::inspect::inspect;
    #[pymodule_export]
    use crate::apr_files::load::load;
    #[pymodule_export]
    use crate::apr_files::model::save;
    #[pymodule_export]
    use crate::apr_files::refusal::advice;
    #[pymodule_export]
    use crate::apr_files::seal::seal;
    #[pymodule_export]
    use crate::apr_files::sealed::open_sealed;
    #[pymodule_export]
    use crate::apr_files::{AprError, Model, SealedFile};
    #[pymodule_export]
    use crate::checkpoints::{CheckpointFolder, array_in};
    #[pymodule_export]
    use crate::deserialize::{deserialize, load_arrays};
    #[pymodule_export]
    use crate::error::SafetensorError;
    #[pymodule_export]
    use crate::filling::Stop;
    #[pymodule_export]
    use crate::gguf::{block_size, dequantize, gguf_header, gguf_metadata, gguf_save, quantize_rows};
    #[pymodule_export]
    use crate::model_tensors::{ModelTensors, format_of_file};
    #[pymodule_export]
    use crate::options::device_of;
    #[pymodule_export]
    use crate::pipeline::build_pipeline;
    #[pymodule_export]
    use crate::private::{PrivateRequest, inference_key, private_request};
    #[pymodule_export]
    use crate::program::run_cli;
    #[pymodule_export]
    use crate::range_file::{RangeFile, is_url, range_file};
    #[pymodule_export]
    use crate::safe_open::{SafeOpen, safe_open_handle};
    #[pymodule_export]
    use crate::scan::{scan_json, scan_words};
    #[pymodule_export]
    use crate::serialize::{save_arrays, save_arrays_file, serialize, serialize_file, set_metadata};
    #[pymodule_export]
    use crate::sharded::shards;
    #[pymodule_export]
    use crate::slice::SafeSlice;
    #[pymodule_export]
    use crate::tensor_spec::TensorSpec;
    #[pymodule_export]
    use crate::writer::Writer;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::error::set_defaults(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
