//! Files of other programs.

use alloc::sync::Arc;
use alloc::vec::Vec;

use foreign_format::Format;
use foreign_tensors::{Companions, Model};
use read_at::ReadAt;
use tensor_dtype::TensorType;

use crate::FileKind;
use crate::content::Content;
use crate::error::{Error, ErrorKind};
use crate::tensor::{Origin, Tensor};

/// What was read of a file of another program. Nothing of the tensors has been read.
#[derive(Debug)]
pub struct Foreign {
    /// As detected: that of the compressed file, where its reader decompresses it. Of ONNX-ML what its reader found.
    format: Format,
    model: Model,
    /// In the order of the tensors.
    shapes: Vec<Vec<usize>>,
    decoded: Cache,
}

/// The tensor that was decoded last: bytes are read a piece at a time, and it is decoded whole.
#[derive(Debug, Default)]
struct Cache {
    #[cfg(feature = "std")]
    last: std::sync::Mutex<Option<Decoded>>,
    #[cfg(not(feature = "std"))]
    last: core::cell::RefCell<Option<Decoded>>,
}

/// The index of a tensor and its bytes.
type Decoded = (usize, Arc<Vec<u8>>);

impl Cache {
    fn with<T>(&self, run: impl FnOnce(&mut Option<Decoded>) -> T) -> T {
        #[cfg(feature = "std")]
        return run(&mut self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        #[cfg(not(feature = "std"))]
        return run(&mut self.last.borrow_mut());
    }
}

/// A tensor of a foreign file, by its index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'m> {
    pub(crate) file: &'m Foreign,
    pub(crate) index: usize,
    pub(crate) origin: Origin<'m>,
}

impl Foreign {
    pub(crate) fn read<R: ReadAt>(
        content: &Content<R>,
        format: Format,
        companions: &dyn Companions,
        options: &foreign_tensors::Options,
    ) -> Result<Self, Error> {
        let model =
            foreign_tensors::read(content, companions, options).map_err(|error| match error.kind() {
                // What is compressed is of no format that is read.
                foreign_tensors::ErrorKind::Format {} => {
                    ErrorKind::ForeignFormat { found: FileKind::Foreign(format) }.into()
                }
                _ => Error::from(error),
            })?;
        let shapes = model.tensors().iter().map(|tensor| {
            let dims = tensor.shape().iter().map(|&dim| usize::try_from(dim));
            let too_large =
                |_| Error::from(ErrorKind::OutOfMemory { bytes: tensor.byte_len() }).of_tensor(tensor.name());
            dims.collect::<Result<_, _>>().map_err(too_large)
        });
        let shapes = shapes.collect::<Result<_, Error>>()?;
        let format = if model.format() == Format::OnnxMl { Format::OnnxMl } else { format };
        Ok(Self { format, model, shapes, decoded: Cache::default() })
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// What was read.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The tensors, each followed by its other names.
    pub(crate) fn tensors<'m>(&'m self, content: &'m dyn ReadAt) -> Vec<Tensor<'m>> {
        let mut all = Vec::with_capacity(self.shapes.len() + self.model.aliases().len());
        for (index, (tensor, shape)) in self.model.tensors().iter().zip(&self.shapes).enumerate() {
            let dtype = match tensor.problem() {
                Some(_) => TensorType::Other("unsupported"),
                None => {
                    tensor.dtype().known().map_or(TensorType::Other(tensor.dtype().name()), TensorType::Known)
                }
            };
            let stored = tensor.stored().filter(|&(file, _)| file == 0 && tensor.problem().is_none());
            let offset = stored.map(|(_, range)| range.start);
            let place = Place { file: self, index, origin: Origin { content, offset: offset.unwrap_or(0) } };
            let extent = (shape.as_slice(), tensor.byte_len());
            all.push(Tensor::of_foreign((tensor.name(), dtype), extent, place, offset.is_some()));
            for alias in self.model.aliases().iter().filter(|alias| alias.of == tensor.name()) {
                let other = Tensor::of_foreign((&alias.name, dtype), extent, place, offset.is_some());
                all.push(other.as_alias_of(tensor.name()));
            }
        }
        all
    }

    /// Passes the bytes of a tensor, decoded now unless it was the last one to be.
    fn bytes(&self, index: usize, content: &dyn ReadAt) -> Result<Arc<Vec<u8>>, Error> {
        self.decoded.with(|last| {
            if let Some((_, bytes)) = last.as_ref().filter(|(decoded, _)| *decoded == index) {
                return Ok(Arc::clone(bytes));
            }
            // Before the next one takes memory.
            *last = None;
            let tensor = self.model.tensors().get(index).ok_or(ErrorKind::TensorNotFound)?;
            let bytes = Arc::new(tensor.to_vec(&self.model, content)?);
            *last = Some((index, Arc::clone(&bytes)));
            Ok(bytes)
        })
    }
}

impl Place<'_> {
    /// Whether the tensor can be represented.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.file.model.tensors().get(self.index) {
            Some(tensor) => Ok(tensor.check()?),
            None => Err(ErrorKind::TensorNotFound.into()),
        }
    }

    /// Fills `buf` with the bytes from `offset` on, which are within the tensor.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        let bytes = self.file.bytes(self.index, self.origin.content)?;
        let (len, available) = (buf.len() as u64, bytes.len() as u64);
        let part = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)?.get(..buf.len()));
        buf.copy_from_slice(part.ok_or(ErrorKind::OutOfRange { offset, len, available })?);
        Ok(())
    }
}
