//! Tensors for several threads.

use read_at::FileSource;
use st_mmap::SafeTensorsFile;

use super::{Origin, Place, Tensor};
use crate::error::{Error, ErrorKind};

/// A tensor in an open file that several threads read at once: [`Tensor::shared`].
#[derive(Clone, Copy, Debug)]
pub struct SharedTensor<'m> {
    name: &'m str,
    byte_len: u64,
    place: SharedPlace<'m>,
}

#[derive(Clone, Copy, Debug)]
enum SharedPlace<'m> {
    Part(&'m SafeTensorsFile),
    /// From this offset on.
    File(&'m FileSource, u64),
}

impl SharedTensor<'_> {
    /// Reads `buf.len()` bytes from `offset` within the tensor.
    ///
    /// # Errors
    ///
    /// Those of [`Tensor::read`].
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        let (len, available) = (buf.len() as u64, self.byte_len);
        let end = offset.checked_add(len).filter(|&end| end <= available);
        let out_of_range = ErrorKind::OutOfRange { offset, len, available };
        let end = end.ok_or_else(|| Error::from(out_of_range).of_tensor(self.name))?;
        match self.place {
            SharedPlace::Part(file) => Ok(file.read_range(self.name, offset..end, buf)?),
            SharedPlace::File(content, begin) => {
                Origin { content, offset: begin }.read(offset, buf, self.name)
            }
        }
    }
}

impl<'m> Tensor<'m> {
    /// The tensor for several threads, if its bytes lie in an open file as [`read`](Self::read) returns them.
    #[must_use]
    pub fn shared(&self) -> Option<SharedTensor<'m>> {
        #[cfg(feature = "quantize")]
        if self.shown.is_some() {
            return None;
        }
        let place = match &self.place {
            Place::Part(part, _) => part.file.as_file().map(|_| SharedPlace::Part(part.file)),
            Place::Stored(origin) => {
                origin.content.as_file().map(|file| SharedPlace::File(file, origin.offset))
            }
            #[cfg(any(feature = "gguf", feature = "foreign", feature = "apr"))]
            _ => None,
        }?;
        Some(SharedTensor { name: self.name, byte_len: self.byte_len, place })
    }
}
