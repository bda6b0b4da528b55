//! Writes the new file: first all offsets, then the bytes.

use std::io::{self, Write};
use std::path::Path;

use apr_container::v2;
use apr_convert::TargetFormat;
use apr_models::TRANSPOSED_KEY;
use apr_quant::Dtype;
use gguf_core::GgufBuilder;
use model_file::entries::{self, Entries, Exported};

use super::keys;
use super::work::{Errors, Work};
use crate::error::Failure;
use crate::input::{Contents, Format, Rules, Tensor, Totals};
use crate::output::{Output, buffered};
use crate::terminal::Console;

/// A file with all lengths and offsets fixed.
#[derive(Debug)]
pub(super) enum NewFile {
    Gguf(gguf_core::Layout),
    Apr(v2::Layout),
    SafeTensors(st_core::Layout),
}

impl NewFile {
    /// Computes the layout, and reports content that the file cannot store.
    ///
    /// # Errors
    ///
    /// If it has no place for a tensor; if the source cannot be read.
    pub(super) fn new(
        work: &Work<'_>,
        imatrix: Option<&Path>,
        provenance: &[(&'static str, String)],
        rules: &Rules,
    ) -> Result<(Self, Vec<String>), Failure> {
        match work.options.format {
            TargetFormat::Gguf => Self::gguf(work, imatrix, provenance),
            TargetFormat::Apr => {
                let (entries, lost) = entries(work, provenance)?;
                Ok((Self::apr(work, &entries, rules)?, lost))
            }
            _ => {
                let (entries, lost) = entries(work, provenance)?;
                Ok((Self::safetensors(work, entries)?, lost))
            }
        }
    }

    fn gguf(
        work: &Work<'_>,
        imatrix: Option<&Path>,
        provenance: &[(&'static str, String)],
    ) -> Result<(Self, Vec<String>), Failure> {
        work.check_types(|decision, _| decision.to.is_some_and(|format| TargetFormat::Gguf.has(format)))?;
        let mut builder = GgufBuilder::new();
        let lost = match work.model.contents() {
            Contents::Gguf(file) => {
                builder.copy_entries(&file.header()?)?;
                Vec::new()
            }
            _ => {
                let Exported { mut entries, lost } = work.model.entries()?;
                work.copies.record(&mut entries, str::to_owned);
                entries::to_gguf(&entries, true, &mut builder)?;
                lost
            }
        };
        keys::set_file_type(&mut builder, work.options.target, imatrix.zip(work.options.importance))?;
        for (key, value) in provenance {
            builder.set(key, value.as_str())?;
        }
        if !work.turned.is_empty() {
            let names = work.turned.iter().map(|idx| work.specs[*idx].name).collect::<Vec<_>>();
            builder.set(TRANSPOSED_KEY, names.join(",").as_str())?;
        }
        for (decision, spec, _) in work.rows() {
            if let Some(format) = decision.to {
                builder.add_tensor(spec.name, format, spec.shape)?;
            }
        }
        Ok((Self::Gguf(builder.layout()?), lost))
    }

    fn apr(work: &Work<'_>, entries: &Entries, rules: &Rules) -> Result<Self, Failure> {
        let dtype = |decision: &apr_convert::quantize::Decision, tensor: &Tensor<'_>| {
            // Unknown types are copied with their type number.
            decision.to.map_or_else(|| tensor.dtype().apr_type(), Dtype::apr_type)
        };
        work.check_types(|decision, tensor| dtype(decision, tensor).is_some())?;
        let specs = work.rows().filter_map(|(decision, spec, tensor)| {
            let byte_len = if decision.to.is_some() { decision.bytes.1 } else { tensor.byte_len() };
            let dtype = dtype(decision, tensor)?;
            Some(v2::TensorSpec { name: spec.name, dtype, shape: spec.shape, byte_len: Some(byte_len) })
        });
        let totals = work.plan.totals();
        let totals = Totals {
            tensors: work.copies.tensors.len() as u64,
            elements: totals.count,
            bytes: totals.bytes_after,
        };
        let metadata = entries::to_apr_v2(entries, totals, &rules.apr)?;
        let flags = match work.model.contents() {
            Contents::AprV2(file) => v2::WriteOptions::like(file.index()).flags,
            _ => v2::Flags::default(),
        };
        let is_quantized = work.rows().any(|(decision, _, _)| decision.to.is_some_and(Dtype::is_quantized));
        let flags = if is_quantized { flags.with(v2::Flags::QUANTIZED) } else { flags };
        let options = v2::WriteOptions { metadata, flags, order: v2::Order::ByName };
        let layout = v2::Layout::new(specs, &options).map_err(Failure::from)?;
        Ok(Self::Apr(layout))
    }

    fn safetensors(work: &Work<'_>, entries: Entries) -> Result<Self, Failure> {
        let dtype = |decision: &apr_convert::quantize::Decision, tensor: &Tensor<'_>| {
            decision.to.map_or_else(
                || tensor.dtype().element(),
                |dtype| tensor_dtype::TensorType::from(dtype).element(),
            )
        };
        work.check_types(|decision, tensor| dtype(decision, tensor).is_some())?;
        let specs = work.rows().filter_map(|(decision, spec, tensor)| {
            let dtype = dtype(decision, tensor)?;
            Some(st_core::TensorSpec { name: spec.name, dtype, shape: tensor.shape() })
        });
        let metadata = (!entries.is_empty()).then_some(entries);
        let options = st_core::WriteOptions { metadata, ..st_core::WriteOptions::default() };
        Ok(Self::SafeTensors(st_core::Layout::new(specs, &options)?))
    }

    pub(super) const fn format(&self) -> Format {
        match self {
            Self::Gguf(_) => Format::Gguf,
            Self::Apr(_) => Format::AprV2,
            Self::SafeTensors(_) => Format::SafeTensors,
        }
    }

    /// Length of the file in bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Gguf(layout) => layout.file_len(),
            Self::Apr(layout) => layout.file_len(),
            Self::SafeTensors(layout) => layout.file_len(),
        }
    }

    /// The bytes before the tensors; `None` of a format whose checksum covers them.
    pub(super) fn head(&self) -> Option<&[u8]> {
        match self {
            Self::Gguf(layout) => Some(layout.header_bytes()),
            Self::SafeTensors(layout) => Some(layout.header_bytes()),
            Self::Apr(_) => None,
        }
    }

    /// Makes the tensors and writes the file, in the end with the head that `head` makes, if any. It appears, or is replaced, as a whole.
    ///
    /// # Errors
    ///
    /// If a tensor cannot be read or converted, or the output cannot be written; an existing output is not changed.
    pub(super) fn write(
        &self,
        work: &Work<'_>,
        output: &Output,
        console: &Console,
        head: impl FnOnce() -> Result<Option<Vec<u8>>, Failure>,
    ) -> Result<Errors, Failure> {
        let mut progress =
            console.progress("quantizing", work.copies.tensors.iter().map(|tensor| tensor.byte_len()).sum());
        let mut errors: Errors = vec![None; work.plan.decisions().len()];
        let fill = |out: &mut dyn Write| {
            let mut stop = None;
            let mut pull = |idx: usize, sink: &mut dyn Write| {
                progress.item(work.name(idx));
                let made = work.make(idx, |piece| {
                    progress.advance(usize::try_from(piece.consumed).unwrap_or(usize::MAX));
                    sink.write_all(piece.bytes).map_err(|error| output.destination.write_failure(&error))
                });
                match made {
                    Ok(found) => {
                        if let Some(place) = errors.get_mut(idx) {
                            *place = found;
                        }
                        Ok(())
                    }
                    Err(failure) => {
                        stop = Some(failure);
                        Err(io::Error::other("stopped"))
                    }
                }
            };
            let written = buffered(out, |out| self.stream(out, &mut pull));
            written.map_err(|error| stop.take().unwrap_or_else(|| output.destination.write_failure(&error)))
        };
        output.destination.fill_head_last(output.overwrite, fill, head)?;
        Ok(errors)
    }

    fn stream(
        &self,
        out: &mut impl Write,
        pull: &mut dyn FnMut(usize, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Self::Gguf(layout) => layout.write_streamed(out, |planned, sink| pull(planned.idx, sink)),
            Self::SafeTensors(layout) => {
                layout.write_streamed(out, |planned, sink| pull(planned.input_idx, sink))
            }
            Self::Apr(layout) => {
                let written = layout.write_streamed(out, |planned, sink| Ok(pull(planned.input_idx, sink)?));
                written.map_err(io::Error::other)
            }
        }
    }
}

/// Metadata as text, with the recorded origin.
fn entries(
    work: &Work<'_>,
    provenance: &[(&'static str, String)],
) -> Result<(Entries, Vec<String>), Failure> {
    let Exported { mut entries, lost } = work.model.entries()?;
    work.copies.record(&mut entries, str::to_owned);
    // Of a file that was GGUF, and may become GGUF again.
    entries::set_file_type(&mut entries, work.options.target.file_type().0);
    entries.extend(provenance.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    Ok((entries, lost))
}
