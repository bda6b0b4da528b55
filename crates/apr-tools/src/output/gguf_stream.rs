//! Writes a GGUF file with a given layout from tensors of any source.

use std::io::{self, Write};

use gguf_core::Layout;

use crate::error::Failure;
use crate::input::Tensor;
use crate::output::{Destination, buffered};
use crate::terminal::Progress;

/// Writes the file, asking `tensor` for each of the layout's; a mebibyte at a time, whatever their sizes. `place` is named
/// where a write fails.
///
/// # Errors
///
/// If a tensor cannot be read or `out` not be written.
pub(crate) fn write<'m>(
    layout: &Layout,
    tensor: impl Fn(usize) -> Option<Tensor<'m>>,
    out: &mut dyn Write,
    place: &Destination,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let (mut buf, mut stop) = (Vec::new(), None);
    let written = buffered(out, |out| {
        layout.write_streamed(out, |planned, sink| {
            let Some(tensor) = tensor(planned.idx) else {
                return Err(io::Error::other("a tensor that was not given"));
            };
            progress.item(tensor.name());
            let pulled = tensor.stream(&mut buf, |chunk| -> Result<(), Failure> {
                progress.advance(chunk.len());
                sink.write_all(chunk).map_err(|error| place.write_failure(&error))
            });
            pulled.map_err(|failure| {
                stop = Some(failure);
                io::Error::other("stopped")
            })
        })
    });
    written.map_err(|error| stop.take().unwrap_or_else(|| place.write_failure(&error)))
}
