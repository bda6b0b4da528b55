//! Conversion of the tensors.

use alloc::collections::BTreeSet;

use apr_convert::quantize::{Decision, Options, Plan, TensorSpec};
use apr_convert::{Piece, Transcoder};
use apr_quant::ErrorReport;

use super::{not_carried, orientation};
use crate::error::{CODE_INTERNAL, Failure};
use crate::input::{Copies, Model, Tensor};
use crate::terminal::Console;

/// Input, output and plan.
pub(super) struct Work<'a> {
    pub(super) model: &'a Model,
    pub(super) copies: &'a Copies<'a>,
    /// Of the same tensors.
    pub(super) specs: &'a [TensorSpec<'a>],
    /// Indices of those that are written transposed.
    pub(super) turned: &'a BTreeSet<usize>,
    pub(super) options: &'a Options<'a>,
    pub(super) plan: &'a Plan,
}

/// The result of each decision; none for copies.
pub(super) type Errors = Vec<Option<ErrorReport>>;

impl<'a> Work<'a> {
    /// The decisions with their tensors, in the order of the output.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'a Decision, &'a TensorSpec<'a>, &'a Tensor<'a>)> {
        let (tensors, specs) = (&self.copies.tensors, self.specs);
        self.plan
            .decisions()
            .iter()
            .map(move |decision| (decision, &specs[decision.tensor_idx], &tensors[decision.tensor_idx]))
    }

    /// Name of the tensor of a decision.
    pub(super) fn name(&self, decision_idx: usize) -> &'a str {
        let decision = self.plan.decisions().get(decision_idx);
        decision.map_or("", |decision| self.specs[decision.tensor_idx].name)
    }

    /// Writes the tensor as decided; copies it if its type is unknown.
    ///
    /// # Errors
    ///
    /// If it cannot be read, holds numbers that the new format cannot, or `write` fails.
    pub(super) fn make(
        &self,
        decision_idx: usize,
        mut write: impl FnMut(Piece<'_>) -> Result<(), Failure>,
    ) -> Result<Option<ErrorReport>, Failure> {
        let Some(decision) = self.plan.decisions().get(decision_idx) else { return Ok(None) };
        let (spec, tensor) = (&self.specs[decision.tensor_idx], &self.copies.tensors[decision.tensor_idx]);
        let made = match self.transcoder(decision, spec)? {
            Some(transcoder) if self.turned.contains(&decision.tensor_idx) => {
                let bytes = orientation::bytes(tensor)?;
                transcoder.run(|offset, buf| read_from(&bytes, offset, buf), write)
            }
            Some(transcoder) => tensor.transcode(&transcoder, write),
            None => {
                let copy = |chunk: &[u8]| write(Piece { bytes: chunk, consumed: chunk.len() as u64 });
                tensor.stream(&mut Vec::new(), copy).map(|()| None)
            }
        };
        made.map_err(|failure| failure.of_tensor(Some(spec.name)))
    }

    /// The errors that are to be expected, from a sample of each tensor.
    ///
    /// # Errors
    ///
    /// If a tensor cannot be read, or the sample holds numbers that the new format cannot.
    pub(super) fn estimate(&self, console: &Console) -> Result<Errors, Failure> {
        let mut progress = console.progress("estimating", self.plan.totals().bytes_before);
        let rows = self.rows().map(|(decision, spec, tensor)| {
            progress.item(spec.name);
            let found = match self.transcoder(decision, spec)? {
                Some(transcoder) if self.turned.contains(&decision.tensor_idx) => {
                    let bytes = orientation::bytes(tensor)?;
                    transcoder.estimate(|offset, piece| read_from(&bytes, offset, piece))
                }
                Some(transcoder) => transcoder.estimate(|offset, piece| tensor.read(offset, piece)),
                None => Ok(None),
            };
            progress.advance(usize::try_from(tensor.byte_len()).unwrap_or(usize::MAX));
            found.map_err(|failure: Failure| failure.of_tensor(Some(spec.name)))
        });
        rows.collect()
    }

    fn transcoder(
        &self,
        decision: &Decision,
        spec: &TensorSpec<'_>,
    ) -> Result<Option<Transcoder<'a>>, Failure> {
        let (Some(from), Some(to)) = (decision.from, decision.to) else { return Ok(None) };
        let of_tensor = |error: apr_convert::Error| Failure::from(error.of_tensor(spec.name));
        let transcoder = Transcoder::new(from, to, spec.shape).map_err(of_tensor)?;
        let importance =
            self.options.importance.filter(|importance| importance.applies_to(spec.name, spec.shape));
        match importance.and_then(|importance| importance.weights(spec.name)).filter(|_| to.is_quantized()) {
            Some(weights) => transcoder.importance(weights).map_err(of_tensor).map(Some),
            None => Ok(Some(transcoder)),
        }
    }

    /// Refuses tensors that the new file has no type for.
    ///
    /// # Errors
    ///
    /// The first of them.
    pub(super) fn check_types(&self, has: impl Fn(&Decision, &Tensor<'_>) -> bool) -> Result<(), Failure> {
        let rows = self.rows().filter(|(decision, _, tensor)| !has(decision, tensor));
        let refused: Vec<&Tensor<'_>> = rows.map(|(_, _, tensor)| tensor).collect();
        match refused.first() {
            Some(tensor) => Err(match tensor.check_type() {
                // Nothing has a type for it.
                Err(failure) => failure,
                Ok(()) => {
                    let names: Vec<&str> = refused.iter().map(|tensor| tensor.name()).collect();
                    not_carried(tensor, &names, self.options.format)
                }
            }
            .in_file(self.model.label())),
            None => Ok(()),
        }
    }
}

/// Fills a buffer from the bytes of a tensor that is in memory.
fn read_from(bytes: &[u8], offset: u64, buf: &mut [u8]) -> Result<(), Failure> {
    let begin = usize::try_from(offset).unwrap_or(usize::MAX);
    let found = begin.checked_add(buf.len()).and_then(|end| bytes.get(begin..end));
    let found = found.ok_or_else(|| Failure::new(CODE_INTERNAL, "a range is outside of the tensor"))?;
    buf.copy_from_slice(found);
    Ok(())
}
