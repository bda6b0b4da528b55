//! The new model before it is divided into files: keys, and tensors with their types.

use alloc::collections::BTreeMap;
use core::cell::RefCell;
use std::path::Path;

use apr_convert::quantize::{ModelFacts, Options, Plan, Target, TensorSpec};
use apr_convert::{Importance, Piece, TargetFormat, Transcoder};
use apr_quant::Dtype;
use gguf_core::{GgufBuilder, Header, ReadOptions};
use hf_gguf::{Conversion, Output, Producer};

use crate::commands::quantize::{self, DamagedTensor, keys};
use crate::error::Failure;
use crate::input::Tensor;

/// Reads a tensor from an offset on, for several threads.
type Reader<'s> = Box<dyn Fn(u64, &mut [u8]) -> Result<(), Failure> + Sync + 's>;

/// A GGUF model to be.
#[derive(Clone)]
pub(super) struct NewModel<'c> {
    pub(super) conversion: &'c Conversion,
    /// The keys, without tensors.
    pub(super) keys: GgufBuilder,
    /// The tensors in order.
    pub(super) tensors: Vec<NewTensor>,
    /// Name of the type of most matrices.
    pub(super) type_name: String,
    /// Tensors for which the importance matrix has no entry.
    pub(super) importance_note: Option<String>,
    /// Tensors that lost their content when they were made.
    pub(super) damaged: RefCell<Vec<DamagedTensor<'static>>>,
}

/// A tensor of it.
#[derive(Clone)]
pub(super) struct NewTensor {
    /// Number of the output of the conversion.
    idx: usize,
    /// What it becomes.
    pub(super) dtype: Dtype,
    /// Its size.
    pub(super) byte_len: u64,
}

impl<'c> NewModel<'c> {
    /// The conversion as it is.
    ///
    /// # Errors
    ///
    /// If a key or a tensor is none that a GGUF file can have.
    pub(super) fn converted(conversion: &'c Conversion) -> Result<Self, Failure> {
        let mut keys = GgufBuilder::new();
        conversion.keys().write_to(&mut keys)?;
        let layout = conversion.builder()?.layout()?;
        let tensors = layout.tensors().iter().zip(conversion.outputs());
        let tensors = tensors.map(|(planned, output)| NewTensor {
            idx: planned.idx,
            dtype: output.dtype,
            byte_len: planned.byte_len,
        });
        Ok(Self {
            conversion,
            keys,
            tensors: tensors.collect(),
            type_name: conversion.output_type().to_string(),
            importance_note: None,
            damaged: RefCell::default(),
        })
    }

    /// What `apr quantize` makes of the conversion.
    ///
    /// # Errors
    ///
    /// Those of [`converted`](Self::converted); if a tensor cannot be quantized to the target.
    pub(super) fn quantized(
        conversion: &'c Conversion,
        target: Target,
        importance: Option<(&Path, &Importance)>,
    ) -> Result<Self, Failure> {
        let layout = conversion.builder()?.layout()?;
        // With the padding before the data, which the header ends with.
        let mut bytes = layout.header_bytes().to_vec();
        bytes.resize(usize::try_from(layout.data_start()).unwrap_or(bytes.len()), 0);
        let header = Header::from_bytes(&bytes, &ReadOptions::COMPAT)?;
        let specs: Vec<TensorSpec<'_>> = conversion
            .outputs()
            .iter()
            .map(|output| TensorSpec { name: &output.name, shape: &output.shape, dtype: Some(output.dtype) })
            .collect();
        let options = Options {
            format: TargetFormat::Gguf,
            importance: importance.map(|(_, importance)| importance),
            ..Options::new(target)
        };
        let plan = Plan::new(&specs, &ModelFacts::of_gguf(&header), &options).map_err(|error| match error
            .code()
        {
            // The option that its help names is that of the other command.
            "cv-requantize" => Failure::from(error)
                .help("give --type auto, or quantize its result with `apr quantize --allow-requantize`"),
            _ => error.into(),
        })?;
        let mut builder = GgufBuilder::new();
        builder.copy_entries(&header)?;
        let used = plan.importance();
        keys::set_file_type(&mut builder, target, importance.filter(|_| used.weighted > 0))?;
        let tensors = plan.decisions().iter().map(|decision| NewTensor {
            idx: decision.tensor_idx,
            dtype: decision.to.unwrap_or(Dtype::F32),
            byte_len: decision.bytes.1,
        });
        Ok(Self {
            conversion,
            keys: builder,
            tensors: tensors.collect(),
            type_name: target.name().to_lowercase(),
            importance_note: quantize::importance_note(used, |idx| specs[idx].name),
            damaged: RefCell::default(),
        })
    }

    /// Adds keys.
    ///
    /// # Errors
    ///
    /// If one is none that a GGUF file can have.
    pub(super) fn record(&mut self, keys: &[(&'static str, String)]) -> Result<(), Failure> {
        for (key, value) in keys {
            self.keys.set(key, value.as_str())?;
        }
        Ok(())
    }

    /// The output that a tensor is made from.
    pub(super) fn output(&self, tensor: &NewTensor) -> &'c Output {
        &self.conversion.outputs()[tensor.idx]
    }

    /// Makes a tensor from those of the files.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, the type cannot hold the values, or `write` fails.
    pub(super) fn make(
        &self,
        tensor: &NewTensor,
        sources: &[Vec<Tensor<'_>>],
        importance: Option<&Importance>,
        producer: &mut Producer,
        mut write: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let output = self.output(tensor);
        let inputs = self.conversion.inputs();
        let read = |number: usize, offset: u64, buf: &mut [u8]| -> Result<(), Failure> {
            let (part, idx) = self.conversion.sources()[number];
            sources[part][idx].read(offset, buf)
        };
        let of_tensor = |failure: Failure| failure.of_tensor(Some(&output.name));
        if tensor.dtype == output.dtype {
            let write = |piece: &[u8], _| write(piece);
            let made = match self.shared(output, sources) {
                Some(readers) => {
                    let read = |number: usize, offset, buf: &mut [u8]| readers[&number](offset, buf);
                    producer.run_shared(output, inputs, read, write)
                }
                None => producer.run(output, inputs, read, write),
            };
            return made.map_err(of_tensor);
        }
        // Floats of 16 bits need not be widened before: their values are the same.
        let stored = output.stored(inputs).filter(|_| output.dtype == Dtype::F32);
        let stored = stored.filter(|(_, dtype)| matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::Bf16));
        let from = stored.map_or(output.dtype, |(_, dtype)| dtype);
        let transcoder = Transcoder::new(from, tensor.dtype, &output.shape);
        let mut transcoder =
            transcoder.map_err(Failure::from).map_err(of_tensor)?.sample(apr_convert::Sample::Few);
        let importance = importance.filter(|importance| importance.applies_to(&output.name, &output.shape));
        let weights = importance.and_then(|importance| importance.weights(&output.name));
        if let Some(weights) = weights.filter(|_| tensor.dtype.is_quantized()) {
            transcoder = transcoder.importance(weights).map_err(Failure::from).map_err(of_tensor)?;
        }
        let write = |piece: Piece<'_>| write(piece.bytes);
        let made = match stored {
            Some((number, _)) => {
                let (part, idx) = self.conversion.sources()[number];
                sources[part][idx].transcode(&transcoder, write)
            }
            None => transcoder.run(|offset, piece| producer.read(output, inputs, offset, piece, read), write),
        };
        let error = made.map_err(of_tensor)?;
        let damage = error.and_then(|error| DamagedTensor::of(output.name.clone(), &error));
        self.damaged.borrow_mut().extend(damage);
        Ok(())
    }

    /// Readers for several threads of the tensors that an output is made from, by their numbers, if it has their values in order.
    fn shared<'s>(
        &self,
        output: &Output,
        sources: &[Vec<Tensor<'s>>],
    ) -> Option<BTreeMap<usize, Reader<'s>>> {
        let numbers = output.sources(self.conversion.inputs())?.into_iter();
        let reader = |number: usize| {
            let (part, idx) = self.conversion.sources()[number];
            let read: Reader<'s> = Box::new(sources[part][idx].shared()?);
            Some((number, read))
        };
        numbers.map(reader).collect()
    }
}
