//! Writing, second phase: bytes into a sink or a file, one tensor at a time.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use tensor_dtype::write_exact;

use crate::crc::Crc32;
use crate::error::Error;
use crate::v2::layout::{Layout, Planned, WriteOptions, ZEROS, lay_out};
use crate::v2::view::TensorView;

impl Layout {
    /// Writes the file. `data` holds each tensor's bytes in the order given to [`Layout::new`].
    ///
    /// Each tensor is written with one call, without a copy.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) with those of `w`; [`DataCount`](crate::v2::ErrorKind::DataCount) or
    /// [`DataLength`](crate::v2::ErrorKind::DataLength) if `data` is not what was declared, before anything is written.
    pub fn write_to(&self, w: &mut (impl Write + ?Sized), data: &[&[u8]]) -> Result<(), Error> {
        self.check_data(data)?;
        self.write_streamed(w, |tensor, sink| Ok(sink.write_all(data[tensor.input_idx])?))
    }

    /// Writes the file, asking `pull` for each tensor's bytes when their turn comes: a model larger than memory is written
    /// without ever being in memory, and in one pass, since the checksum is computed incrementally.
    ///
    /// `pull` writes into the sink, in pieces of any size, exactly the bytes that were declared.
    ///
    /// # Errors
    ///
    /// Those of `w` and `pull`; [`DataLength`](crate::v2::ErrorKind::DataLength) as soon as a tensor gets more or fewer bytes than
    /// declared.
    ///
    /// ```
    /// use apr_container::v2::{Container, AprType, Layout, TensorSpec, WriteOptions};
    ///
    /// let tensors = ["a", "b"].map(|name| TensorSpec::new(name, AprType::U8, &[1 << 16]));
    /// let layout = Layout::new(tensors, &WriteOptions::default())?;
    /// let mut file = Vec::new();
    /// layout.write_streamed(&mut file, |_, sink| {
    ///     (0..16).try_for_each(|_| sink.write_all(&[7; 4096]))?;
    ///     Ok(())
    /// })?;
    /// assert_eq!(file.len() as u64, layout.file_len());
    /// assert_eq!(Container::from_bytes(&file)?.tensor("b")?.data(), [7; 1 << 16]);
    /// # Ok::<(), apr_container::Error>(())
    /// ```
    pub fn write_streamed(
        &self,
        w: &mut (impl Write + ?Sized),
        mut pull: impl FnMut(&Planned, &mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut summed = Summed { w, crc: Crc32::default() };
        summed.write_all(self.prefix_bytes())?;
        for tensor in self.tensors() {
            let check = |given| tensor.check_len(given);
            write_exact(&mut summed, tensor.byte_len, |sink| pull(tensor, sink), check)?;
            summed.write_all(&ZEROS[..tensor.padding()])?;
        }
        let crc = summed.crc.get();
        w.write_all(&crc.to_le_bytes())?;
        Ok(())
    }

    /// Writes the file at `path` as [`write_streamed`](Self::write_streamed) does, replacing a file that is there whole or
    /// not at all.
    ///
    /// # Errors
    ///
    /// Those of [`write_streamed`](Self::write_streamed); [`ErrorKind::File`](crate::ErrorKind::File). The old file is untouched.
    pub fn save_streamed(
        &self,
        path: impl AsRef<Path>,
        pull: impl FnMut(&Planned, &mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // Small tensors are buffered, large ones are written directly.
        let mut file =
            BufWriter::with_capacity(BUFFER_LEN, durable_file::Replacement::create(path.as_ref())?);
        self.write_streamed(&mut file, pull)?;
        let replacement = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(replacement.commit()?)
    }
}

const BUFFER_LEN: usize = 128 << 10;

/// A sink with the checksum of what it was given.
struct Summed<'a, W: ?Sized> {
    w: &'a mut W,
    crc: Crc32,
}

impl<W: Write + ?Sized> Write for Summed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.w.write(bytes)?;
        self.crc.update(bytes.get(..taken).unwrap_or_default());
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.w.flush()
    }
}

/// Writes tensors as a file.
///
/// # Errors
///
/// As [`Layout::new`] and [`Layout::write_to`].
pub fn write_to(
    w: &mut (impl Write + ?Sized),
    tensors: &[TensorView<'_>],
    options: &WriteOptions,
) -> Result<(), Error> {
    let (layout, data) = lay_out(tensors, options)?;
    layout.write_to(w, &data)
}

/// Writes tensors to the file at `path`, replacing one that is there whole or not at all.
///
/// # Errors
///
/// As [`Layout::new`]; [`ErrorKind::File`](crate::ErrorKind::File) and [`ErrorKind::Io`](crate::ErrorKind::Io). The old file is untouched.
///
/// ```
/// use apr_container::v2::{Container, AprType, TensorView, WriteOptions, save};
///
/// # let path = std::env::temp_dir().join(format!("apr-container-v2-save-{}", std::process::id()));
/// let view = TensorView::new("w", AprType::U8, &[3], b"abc")?;
/// save(&path, &[view], &WriteOptions::default())?;
///
/// let file = std::fs::read(&path)?;
/// assert_eq!(Container::from_bytes(&file)?.tensor("w")?.data(), b"abc");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), apr_container::Error>(())
/// ```
pub fn save(path: impl AsRef<Path>, tensors: &[TensorView<'_>], options: &WriteOptions) -> Result<(), Error> {
    let (layout, data) = lay_out(tensors, options)?;
    layout.save_streamed(path, |tensor, sink| Ok(sink.write_all(data[tensor.input_idx])?))
}
