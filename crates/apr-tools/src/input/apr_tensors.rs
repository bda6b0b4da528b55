//! An `.apr` file of version 2: many named tensors behind one index.

use std::path::{Path, PathBuf};

use apr_container::v2::{Footer, Header, Index, Inflated, Warning};

use super::{Rules, Source, Stored, Tensor};
use crate::error::{Exit, Failure};
use crate::whole_file::or_damage;

/// An open file of which header, metadata and index have been read.
#[derive(Debug)]
pub(crate) struct AprTensors {
    bytes: Bytes,
    label: PathBuf,
    path: PathBuf,
    index: Index,
    /// Of each tensor in the order of the index, in the machine's own integers.
    shapes: Vec<Vec<usize>>,
}

/// Where the tensors are.
#[derive(Debug)]
enum Bytes {
    Stored(Stored),
    /// Of a file that is compressed as a whole.
    Inflated(Box<Inflated>),
}

impl AprTensors {
    /// Reads what stands before the tensors; of a file that is compressed as a whole, everything.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not sound.
    pub(super) fn open(source: &Source, rules: &Rules) -> Result<Self, Failure> {
        Stored::open(source.path())
            .and_then(|stored| Self::of(stored, source.path(), source.label(), rules))
            .map_err(|failure| source.relabel(failure))
    }

    /// Opens the same file by other rules.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub(crate) fn reopen(&self, rules: &Rules) -> Result<Self, Failure> {
        Self::of(Stored::open(&self.path)?, &self.path, &self.label, rules)
    }

    /// The same of bytes wherever they are.
    pub(super) fn of(stored: Stored, path: &Path, label: &Path, rules: &Rules) -> Result<Self, Failure> {
        let read = |rules: &Rules| {
            Index::read(stored.len(), &rules.apr, |offset, bytes| {
                stored.read_at(offset, bytes).map_err(|error| std::io::Error::other(error).into())
            })
        };
        let (bytes, index) = match read(rules) {
            Ok(index) => (Bytes::Stored(stored), index),
            Err(error) if error.code() == "ac-v2-compressed" => {
                let stored = stored.read_all().map_err(Failure::from)?;
                let inflated = Inflated::from_bytes(&stored, &rules.apr).map_err(Failure::of_tensors)?;
                let index = inflated.container().index().clone();
                (Bytes::Inflated(Box::new(inflated)), index)
            }
            Err(error) => {
                // The header has a checksum of its own, which matched if the magic did.
                let is_of_header =
                    error.code() != "ac-magic" && error.offset().is_some_and(|at| at < Header::LEN as u64);
                let failure = Failure::of_tensors(error);
                // A sealed file ends with something else.
                let is_file = matches!(stored, Stored::File { .. });
                let is_strict_refusal = rules.is_strict() && failure.exit() == Exit::Invalid;
                return Err(match is_strict_refusal.then(|| read(&Rules::COMPAT)) {
                    Some(Ok(index)) => {
                        // A file may have no checksum at all, which is no damage.
                        let footer = index.verify(stored.reader(), &Rules::COMPAT.for_looking().apr);
                        match footer {
                            Ok(Footer::Wrong { .. }) | Err(_) if is_file => or_damage(failure, path),
                            _ => failure.help(
                                "other readers accept this file: if you trust it, repeat with --compat",
                            ),
                        }
                    }
                    _ if is_file && !is_of_header => or_damage(failure, path),
                    _ => failure,
                });
            }
        };
        let shape = |shape: &[u64]| shape.iter().map(|&dim| usize::try_from(dim)).collect::<Result<_, _>>();
        let shapes = index.iter().map(|info| {
            shape(info.shape()).map_err(|_| {
                let failure = Failure::new("ac-limit", "a dimension is beyond what this machine can count");
                failure.of_tensor(Some(info.name())).in_file(label)
            })
        });
        let shapes = shapes.collect::<Result<_, _>>()?;
        Ok(Self { bytes, label: label.to_owned(), path: path.to_owned(), index, shapes })
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Reads everything: the checksum at the end, the padding.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is damaged or is not sound.
    pub(crate) fn verify(&self, rules: &Rules) -> Result<Footer, Failure> {
        let stored = match &self.bytes {
            Bytes::Inflated(inflated) => return Ok(inflated.container().footer()),
            Bytes::Stored(stored) => stored,
        };
        let footer = self.index.verify(stored.reader(), &rules.for_looking().apr);
        footer.map_err(|error| Failure::of_tensors(error).in_file(&self.label))
    }

    /// What a reader should know, the footer included if somebody looked at it.
    pub(crate) fn warnings(&self, footer: Option<Footer>) -> Vec<Warning> {
        let at_end = match footer {
            Some(Footer::Absent) => Some(Warning::NoFooter),
            Some(Footer::Wrong { expected, actual }) => Some(Warning::WrongFooter { expected, actual }),
            _ => None,
        };
        self.index.warnings().iter().copied().chain(at_end).collect()
    }

    pub(super) fn tensors(&self) -> Result<Vec<Tensor<'_>>, Failure> {
        let tensors = self.index.iter().zip(&self.shapes);
        let tensors = tensors.map(|(info, shape)| match &self.bytes {
            Bytes::Stored(stored) => Ok(Tensor::stored(info, shape, stored, &self.label)),
            Bytes::Inflated(inflated) => {
                let data = inflated.container().data(info.name()).map_err(Failure::of_tensors)?;
                Ok(Tensor::inflated(info, shape, data))
            }
        });
        tensors.collect()
    }
}
