//! Language models as `.apr` files: with the tensors of the GGUF file, and its keys as metadata, as a GGUF file is converted.

use apr_container::v2::{Flags, Layout, Order, TensorSpec, WriteOptions};
use gguf_core::{Header, ReadOptions};
use hf_gguf::{Flaws, Producer};
use model_file::Totals;
use model_file::entries;

use super::new_model::NewModel;
use super::split::Work;
use crate::commands::convert::apr;
use crate::error::Failure;
use crate::input::Rules;
use crate::terminal::Console;

/// An `.apr` file to be.
pub(super) struct AprFile {
    layout: Layout,
}

impl AprFile {
    /// Plans the file.
    ///
    /// # Errors
    ///
    /// If the format has no type for a tensor, or the keys are beyond its limits.
    pub(super) fn new(model: &NewModel<'_>, rules: &Rules) -> Result<Self, Failure> {
        let outputs = || model.tensors.iter().map(|tensor| (model.output(tensor), tensor));
        let mut totals = Totals::default();
        let mut specs = Vec::with_capacity(model.tensors.len());
        for (output, tensor) in outputs() {
            let dtype = tensor.dtype.apr_type().ok_or_else(|| {
                apr::no_type(tensor.dtype, &output.name).help("choose --type f32, f16 or bf16, or write GGUF")
            })?;
            totals.tensors += 1;
            totals.elements += output.count();
            totals.bytes += tensor.byte_len;
            specs.push(TensorSpec {
                name: &output.name,
                dtype,
                shape: &output.shape,
                byte_len: Some(tensor.byte_len),
            });
        }
        let keys = model.keys.clone().layout()?;
        let mut header = keys.header_bytes().to_vec();
        header.resize(usize::try_from(keys.data_start()).unwrap_or(header.len()), 0);
        let exported = entries::of_header(&Header::from_bytes(&header, &ReadOptions::COMPAT)?);
        let metadata = entries::to_apr_v2(&exported.entries, totals, &rules.apr)?;
        let is_quantized = model.tensors.iter().any(|tensor| tensor.dtype.is_quantized());
        let flags = if is_quantized { Flags::QUANTIZED } else { Flags::default() };
        // The order of the GGUF file, which can be made of this one again.
        let options = WriteOptions { metadata, flags, order: Order::AsGiven };
        Ok(Self { layout: Layout::new(specs, &options)? })
    }

    /// Its length.
    pub(super) fn len(&self) -> u64 {
        self.layout.file_len()
    }

    /// Makes the tensors, and writes the file.
    ///
    /// # Errors
    ///
    /// If a file of the folder cannot be read, a tensor not be made, or the file not be written.
    pub(super) fn write(&self, work: &Work<'_>, console: &Console) -> Result<Flaws, Failure> {
        let Work { model, sources, importance, output } = *work;
        let mut progress = console.progress("converting", self.len());
        let mut producer = Producer::new();
        apr::write_layout(&self.layout, &output.destination, output.overwrite, |idx, write| {
            let Some(tensor) = model.tensors.get(idx) else { return Ok(()) };
            progress.item(&model.output(tensor).name);
            model.make(tensor, sources, importance, &mut producer, |piece| {
                progress.advance(piece.len());
                write(piece)
            })
        })?;
        Ok(producer.flaws())
    }
}
