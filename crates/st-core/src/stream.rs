//! Writing, second phase: writes the bytes to a sink, one tensor at a time.

use std::io::{self, Write};

use tensor_dtype::write_exact;

use crate::layout::{Layout, Planned, WriteOptions, lay_out};
use crate::view::TensorView;

impl Layout {
    /// Writes the file. `data` holds each tensor's bytes in the order given to [`Layout::new`].
    ///
    /// Tensors are handed to `w` whole, without a copy.
    ///
    /// # Errors
    ///
    /// Those of `w`; [`io::ErrorKind::InvalidInput`] around [`DataCount`](crate::ErrorKind::DataCount) or
    /// [`DataLength`](crate::ErrorKind::DataLength) if `data` is not what was declared, before anything is written.
    pub fn write_to(&self, w: &mut (impl Write + ?Sized), data: &[&[u8]]) -> io::Result<()> {
        self.check_data(data)?;
        w.write_all(self.header_bytes())?;
        self.tensors().iter().try_for_each(|tensor| w.write_all(data[tensor.input_idx]))
    }

    /// Writes the file, asking `pull` for each tensor's bytes when their turn comes: a model larger than
    /// memory is written without ever being in memory.
    ///
    /// `pull` writes into the sink, in pieces of any size, exactly the bytes that were declared.
    ///
    /// # Errors
    ///
    /// Those of `w` and `pull`; [`io::ErrorKind::InvalidInput`] around [`DataLength`](crate::ErrorKind::DataLength) as soon as a
    /// tensor gets more or fewer bytes than declared.
    ///
    /// ```
    /// use st_core::{Dtype, Layout, TensorSpec, WriteOptions};
    ///
    /// let tensors = ["a", "b"].map(|name| TensorSpec { name, dtype: Dtype::U8, shape: &[1 << 16] });
    /// let layout = Layout::new(tensors, &WriteOptions::default())?;
    /// let mut file = Vec::new();
    /// layout.write_streamed(&mut file, |_, sink| {
    ///     (0..16).try_for_each(|_| sink.write_all(&[7; 4096]))
    /// })?;
    /// assert_eq!(file.len() as u64, layout.file_len());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write_streamed(
        &self,
        w: &mut (impl Write + ?Sized),
        mut pull: impl FnMut(&Planned, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        w.write_all(self.header_bytes())?;
        for tensor in self.tensors() {
            let check = |given| Ok(tensor.check_len(given)?);
            write_exact(w, tensor.byte_len, |sink| pull(tensor, sink), check)?;
        }
        Ok(())
    }
}

/// Writes tensors as a file.
///
/// # Errors
///
/// Those of `w`; [`io::ErrorKind::InvalidInput`] around an error of [`Layout::new`].
pub fn write_to(
    w: &mut (impl Write + ?Sized),
    tensors: &[(&str, TensorView<'_>)],
    options: &WriteOptions,
) -> io::Result<()> {
    let (layout, data) = lay_out(tensors, options)?;
    layout.write_to(w, &data)
}
