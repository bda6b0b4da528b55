//! Writing, second phase: writes the bytes to a sink, one tensor at a time.

use std::io::{self, Write};

use tensor_dtype::write_exact;

use crate::layout::{Layout, Planned};

impl Layout {
    /// Writes the file. `data` holds each tensor's bytes in the order in which they were added.
    ///
    /// # Errors
    ///
    /// Those of `w`; [`io::ErrorKind::InvalidInput`] around [`DataCount`](crate::ErrorKind::DataCount) or
    /// [`DataLength`](crate::ErrorKind::DataLength) if `data` is not what was declared, before anything is written.
    pub fn write_to(&self, w: &mut (impl Write + ?Sized), data: &[&[u8]]) -> io::Result<()> {
        self.check_data(data)?;
        self.write_streamed(w, |tensor, sink| sink.write_all(data[tensor.idx]))
    }

    /// Writes the file, asking `pull` for each tensor's bytes when their turn comes: a model larger than memory is written
    /// without ever being in memory.
    ///
    /// `pull` writes into the sink, in pieces of any size, exactly the bytes that were declared; padding is added after them.
    ///
    /// # Errors
    ///
    /// Those of `w` and `pull`; [`io::ErrorKind::InvalidInput`] around [`DataLength`](crate::ErrorKind::DataLength) as soon as a tensor
    /// gets more or fewer bytes than declared.
    ///
    /// ```
    /// use gguf_core::Dtype;
    /// use gguf_core::GgufBuilder;
    ///
    /// let mut builder = GgufBuilder::new();
    /// builder.add_tensor("a", Dtype::I8, &[5])?;
    /// builder.add_tensor("b", Dtype::I8, &[1 << 16])?;
    /// let layout = builder.layout()?;
    /// let mut file = Vec::new();
    /// layout.write_streamed(&mut file, |tensor, sink| {
    ///     (0..tensor.byte_len).try_for_each(|_| sink.write_all(&[7]))
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
        write_zeros(w, self.data_start() - self.header_bytes().len() as u64)?;
        for tensor in self.tensors() {
            let check = |given| Ok(tensor.check_len(given)?);
            write_exact(w, tensor.byte_len, |sink| pull(tensor, sink), check)?;
            write_zeros(w, tensor.padding)?;
        }
        Ok(())
    }
}

fn write_zeros(w: &mut (impl Write + ?Sized), count: u64) -> io::Result<()> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut left = count;
    while left > 0 {
        let piece = left.min(ZEROS.len() as u64);
        w.write_all(&ZEROS[..piece as usize])?;
        left -= piece;
    }
    Ok(())
}
