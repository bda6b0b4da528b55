//! `.apr` version 2.

use alloc::boxed::Box;
use alloc::vec::Vec;

use apr_container::ReadOptions;
use apr_container::v2::{self, Footer, Index, Inflated, Warning};
use read_at::ReadAt;

use crate::content::read_all;
use crate::error::Error;
use crate::options::{Inflation, OpenOptions};
use crate::tensor::Tensor;

/// Header, metadata and index of an `.apr` file of version 2.
#[derive(Debug)]
pub struct AprV2 {
    stored: Stored,
    pub(crate) options: ReadOptions,
    /// Shapes in the order of the index.
    shapes: Vec<Vec<usize>>,
}

/// Where the tensors are.
#[derive(Debug)]
enum Stored {
    /// In the file.
    InFile(Box<Index>),
    /// In memory: the file is compressed as a whole.
    Inflated(Box<Inflated>),
}

impl Stored {
    const fn index(&self) -> &Index {
        match self {
            Self::InFile(index) => index,
            Self::Inflated(inflated) => inflated.index(),
        }
    }
}

impl AprV2 {
    /// Reads what is before the tensors; of a file that is compressed as a whole, everything.
    pub(crate) fn read(content: &dyn ReadAt, options: &OpenOptions<'_>) -> Result<Self, Error> {
        let inflation = options.inflation;
        let options = &options.read_options().apr;
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
        let stored = match index {
            Ok(index) => Stored::InFile(Box::new(index)),
            Err(error) if inflation == Inflation::OnOpen && error.code() == "ac-v2-compressed" => {
                Stored::Inflated(Box::new(Inflated::from_bytes(&read_all(content)?, options)?))
            }
            Err(error) => return Err(error.into()),
        };
        let mut shapes = Vec::new();
        for info in stored.index().iter() {
            let mut shape = Vec::new();
            for &dim in info.shape() {
                shape.push(usize::try_from(dim).map_err(|_| {
                    let limit = usize::MAX as u64;
                    let kind = apr_container::ErrorKind::Limit { what: "dimension", found: dim, limit };
                    Error::from(apr_container::Error::from(kind)).of_tensor(info.name())
                })?);
            }
            shapes.push(shape);
        }
        Ok(Self { stored, options: *options, shapes })
    }

    /// Header, metadata and tensor index.
    #[must_use]
    pub const fn index(&self) -> &Index {
        self.stored.index()
    }

    /// Reads everything: the checksum at the end, the padding.
    #[cfg(feature = "std")]
    pub(crate) fn verify(&self, content: &dyn ReadAt, options: &ReadOptions) -> Result<Footer, Error> {
        match &self.stored {
            Stored::Inflated(inflated) => Ok(inflated.container().footer()),
            Stored::InFile(index) => Ok(index.verify(crate::content::Reader::new(content), options)?),
        }
    }

    /// Reads everything: the checksum at the end, the padding.
    #[cfg(not(feature = "std"))]
    pub(crate) fn verify(&self, content: &dyn ReadAt, options: &ReadOptions) -> Result<Footer, Error> {
        match &self.stored {
            Stored::Inflated(inflated) => Ok(inflated.container().footer()),
            Stored::InFile(_) => {
                let bytes = read_all(content)?;
                let container = v2::Container::from_bytes_with(&bytes, options)?;
                container.tensors().map(drop)?;
                Ok(container.footer())
            }
        }
    }

    /// Warnings about the file, with those about its checksum if the [`Footer`] is known.
    #[must_use]
    pub fn warnings(&self, footer: Option<Footer>) -> Vec<Warning> {
        let mut warnings = self.index().warnings().to_vec();
        match footer {
            Some(Footer::Absent) => warnings.push(Warning::NoFooter),
            Some(Footer::Wrong { expected, actual }) => {
                warnings.push(Warning::WrongFooter { expected, actual });
            }
            _ => {}
        }
        warnings
    }

    pub(crate) fn tensors<'m>(&'m self, content: &'m dyn ReadAt) -> Result<Vec<Tensor<'m>>, Error> {
        let mut tensors = Vec::with_capacity(self.shapes.len());
        for (info, shape) in self.index().iter().zip(&self.shapes) {
            tensors.push(self.tensor_of(info, shape, content)?);
        }
        Ok(tensors)
    }

    pub(crate) fn tensor_at<'m>(
        &'m self,
        index: usize,
        content: &'m dyn ReadAt,
    ) -> Result<Option<Tensor<'m>>, Error> {
        let found = self.index().get(index).zip(self.shapes.get(index));
        found.map(|(info, shape)| self.tensor_of(info, shape, content)).transpose()
    }

    fn tensor_of<'m>(
        &'m self,
        info: v2::TensorInfo<'m>,
        shape: &'m [usize],
        content: &'m dyn ReadAt,
    ) -> Result<Tensor<'m>, Error> {
        Ok(match &self.stored {
            Stored::InFile(_) => Tensor::stored(info, shape, content),
            Stored::Inflated(inflated) => {
                Tensor::inflated(info, shape, inflated.container().data(info.name())?)
            }
        })
    }
}
