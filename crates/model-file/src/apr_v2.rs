//! `.apr` version 2.

use alloc::boxed::Box;
use alloc::vec::Vec;

use apr_container::ReadOptions;
use apr_container::v2::{Footer, Index, Inflated, Warning};
use read_at::ReadAt;

use crate::content::Content;
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
    pub(crate) fn read<R: ReadAt>(content: &Content<R>, options: &OpenOptions<'_>) -> Result<Self, Error> {
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
                Stored::Inflated(Box::new(Inflated::from_bytes(&content.bytes()?, options)?))
            }
            Err(error) => return Err(error.into()),
        };
        let shapes = stored.index().iter().map(|info| {
            let limit = |&dim: &u64| {
                let kind = apr_container::ErrorKind::Limit {
                    what: "dimension",
                    found: dim,
                    limit: usize::MAX as u64,
                };
                usize::try_from(dim).map_err(|_| Error::from(apr_container::Error::from(kind)))
            };
            let shape = info.shape().iter().map(limit).collect::<Result<_, _>>();
            shape.map_err(|error: Error| error.of_tensor(info.name()))
        });
        let shapes = shapes.collect::<Result<_, Error>>()?;
        Ok(Self { stored, options: *options, shapes })
    }

    /// Header, metadata and tensor index.
    #[must_use]
    pub const fn index(&self) -> &Index {
        self.stored.index()
    }

    /// Whether the file is compressed as a whole, so that its tensors are in memory.
    #[must_use]
    pub const fn is_inflated(&self) -> bool {
        matches!(self.stored, Stored::Inflated(_))
    }

    /// Reads everything: the checksum at the end, the padding.
    #[cfg(feature = "std")]
    pub(crate) fn verify<R: ReadAt>(
        &self,
        content: &Content<R>,
        options: &ReadOptions,
    ) -> Result<Footer, Error> {
        match &self.stored {
            Stored::Inflated(inflated) => Ok(inflated.container().footer()),
            Stored::InFile(index) => Ok(index.verify(crate::content::Reader::new(content), options)?),
        }
    }

    /// Reads everything: the checksum at the end, the padding.
    #[cfg(not(feature = "std"))]
    pub(crate) fn verify<R: ReadAt>(
        &self,
        content: &Content<R>,
        options: &ReadOptions,
    ) -> Result<Footer, Error> {
        match &self.stored {
            Stored::Inflated(inflated) => Ok(inflated.container().footer()),
            Stored::InFile(_) => {
                let bytes = content.bytes()?;
                let container = apr_container::v2::Container::from_bytes_with(&bytes, options)?;
                container.tensors().map(drop)?;
                Ok(container.footer())
            }
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
        self.index().warnings().iter().copied().chain(at_end).collect()
    }

    pub(crate) fn tensors<'m>(&'m self, content: &'m dyn ReadAt) -> Result<Vec<Tensor<'m>>, Error> {
        let tensors = self.index().iter().zip(&self.shapes);
        let tensors = tensors.map(|(info, shape)| match &self.stored {
            Stored::InFile(_) => Ok(Tensor::stored(info, shape, content)),
            Stored::Inflated(inflated) => {
                let data = inflated.container().data(info.name())?;
                Ok(Tensor::inflated(info, shape, data))
            }
        });
        tensors.collect()
    }
}
