//! `.apr` version 2.

use alloc::boxed::Box;
use alloc::vec::Vec;

use apr_container::ReadOptions;
use apr_container::v2::{Footer, Index, Inflated, Warning};
use read_at::ReadAt;

use crate::content::Content;
use crate::error::{Error, ErrorKind};
use crate::tensor::Tensor;

/// Header, metadata and index of an `.apr` file of version 2.
#[derive(Debug)]
pub struct AprV2 {
    /// The tensors of a file that is compressed as a whole; otherwise they are read from the file.
    inflated: Option<Box<Inflated>>,
    index: Index,
    #[cfg(feature = "std")]
    pub(crate) options: ReadOptions,
    /// Shapes in the order of the index.
    shapes: Vec<Vec<usize>>,
}

impl AprV2 {
    /// Reads what is before the tensors; of a file that is compressed as a whole, everything.
    pub(crate) fn read<R: ReadAt>(content: &Content<R>, options: &ReadOptions) -> Result<Self, Error> {
        let mut failed = None;
        let index = Index::read(content.total_len(), options, |offset, bytes| {
            content.read_exact_at(offset, bytes).map_err(|error| {
                failed = Some(error);
                // Replaced by the error of the source.
                apr_container::ErrorKind::Truncated { part: "file", needed: 0, available: 0 }.into()
            })
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let (inflated, index) = match index {
            Ok(index) => (None, index),
            Err(error) if error.code() == "ac-v2-compressed" => {
                let inflated = Inflated::from_bytes(&content.read_all()?, options)?;
                let index = inflated.container().index().clone();
                (Some(Box::new(inflated)), index)
            }
            Err(error) => return Err(error.into()),
        };
        let shapes = index.iter().map(|info| {
            let shape = info.shape().iter().map(|&dim| usize::try_from(dim)).collect::<Result<_, _>>();
            shape.map_err(|_| Error::from(ErrorKind::Dimension { code: "ac-limit" }).of_tensor(info.name()))
        });
        let shapes = shapes.collect::<Result<_, Error>>()?;
        Ok(Self {
            inflated,
            index,
            #[cfg(feature = "std")]
            options: *options,
            shapes,
        })
    }

    /// Header, metadata and tensor index.
    #[must_use]
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// Whether the file is compressed as a whole, so that its tensors are in memory.
    #[must_use]
    pub const fn is_inflated(&self) -> bool {
        self.inflated.is_some()
    }

    /// Reads everything: the checksum at the end, the padding.
    #[cfg(feature = "std")]
    pub(crate) fn verify<R: ReadAt>(
        &self,
        content: &Content<R>,
        options: &ReadOptions,
    ) -> Result<Footer, Error> {
        match &self.inflated {
            Some(inflated) => Ok(inflated.container().footer()),
            None => Ok(self.index.verify(crate::content::Reader::new(content), options)?),
        }
    }

    /// Warnings about the file, with those about its checksum if the [`Footer`] is known.
    #[must_use]
    pub fn warnings(&self, footer: Option<Footer>) -> Vec<Warning> {
        let at_end = match footer {
            Some(Footer::Absent) => Some(Warning::NoFooter),
            Some(Footer::Wrong { expected, actual }) => Some(Warning::WrongFooter { expected, actual }),
            _ => None,
        };
        self.index.warnings().iter().copied().chain(at_end).collect()
    }

    pub(crate) fn tensors<'m>(&'m self, content: &'m dyn ReadAt) -> Result<Vec<Tensor<'m>>, Error> {
        let tensors = self.index.iter().zip(&self.shapes);
        let tensors = tensors.map(|(info, shape)| match &self.inflated {
            None => Ok(Tensor::stored(info, shape, content)),
            Some(inflated) => {
                let data = inflated.container().data(info.name())?;
                Ok(Tensor::inflated(info, shape, data))
            }
        });
        tensors.collect()
    }
}
