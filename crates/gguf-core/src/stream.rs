//! Writing, second phase: writes the bytes to a sink, one tensor at a time.

use std::io::{self, Write};

use crate::error::{Error, ErrorKind};
use crate::layout::{Layout, Planned};

impl Layout {
    /// Writes the file. `data` holds each tensor's bytes in the order in which they were added.
    ///
    /// # Errors
    ///
    /// Those of `w`; [`io::ErrorKind::InvalidInput`] around [`ErrorKind::DataCount`] or [`ErrorKind::DataLength`] if
    /// `data` is not what was declared, before anything is written.
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
    /// Those of `w` and `pull`; [`io::ErrorKind::InvalidInput`] around [`ErrorKind::DataLength`] as soon as a tensor
    /// gets more or fewer bytes than declared.
    ///
    /// ```
    /// use std::io::Write;
    ///
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
    pub fn write_streamed<W: Write + ?Sized>(
        &self,
        w: &mut W,
        mut pull: impl FnMut(&Planned, &mut TensorSink<'_, W>) -> io::Result<()>,
    ) -> io::Result<()> {
        w.write_all(self.header_bytes())?;
        write_zeros(w, self.data_start() - self.header_bytes().len() as u64)?;
        for tensor in self.tensors() {
            let mut sink = TensorSink { w, tensor, written: 0 };
            pull(tensor, &mut sink)?;
            if sink.written != tensor.byte_len {
                return Err(sink.wrong_length(sink.written));
            }
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

/// Takes the bytes of one tensor while a file is written.
#[derive(Debug)]
pub struct TensorSink<'a, W: ?Sized> {
    w: &'a mut W,
    tensor: &'a Planned,
    written: u64,
}

impl<W: ?Sized> TensorSink<'_, W> {
    fn wrong_length(&self, given: u64) -> io::Error {
        let kind = ErrorKind::DataLength { needed: self.tensor.byte_len, given };
        Error::from(kind).at(self.tensor.offset).into()
    }
}

impl<W: Write + ?Sized> Write for TensorSink<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let given = self.written.saturating_add(bytes.len() as u64);
        if given > self.tensor.byte_len {
            return Err(self.wrong_length(given));
        }
        let taken = self.w.write(bytes)?;
        self.written += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.w.flush()
    }
}
