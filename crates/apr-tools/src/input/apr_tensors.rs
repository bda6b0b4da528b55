//! An `.apr` file of the second generation: many named tensors behind one index.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use apr_container::v2::{Footer, Index, Inflated, Warning};

use super::{Rules, Source, Tensor};
use crate::error::{Exit, Failure};

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
    File(File),
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
        Self::open_at(source.path().to_owned(), source.label().to_owned(), rules)
            .map_err(|failure| source.relabel(failure))
    }

    /// Opens the same file by other rules.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub(crate) fn reopen(&self, rules: &Rules) -> Result<Self, Failure> {
        Self::open_at(self.path.clone(), self.label.clone(), rules)
    }

    fn open_at(path: PathBuf, label: PathBuf, rules: &Rules) -> Result<Self, Failure> {
        let regular = durable_file::open_regular(&path, u64::MAX)?;
        let len = regular.len();
        let mut file = regular.into_file();
        let mut read = |rules: &Rules| {
            Index::read(len, &rules.apr, |offset, bytes| {
                file.seek(SeekFrom::Start(offset))?;
                Ok(file.read_exact(bytes)?)
            })
        };
        let (bytes, index) = match read(rules) {
            Ok(index) => (Bytes::File(file), index),
            Err(error) if error.code() == "ac-v2-compressed" => {
                let stored = durable_file::read(&path, u64::MAX)?;
                let inflated = Inflated::from_bytes(&stored, &rules.apr).map_err(Failure::of_tensors)?;
                let index = inflated.container().index().clone();
                (Bytes::Inflated(Box::new(inflated)), index)
            }
            Err(error) => {
                let failure = Failure::of_tensors(error);
                let is_strict_refusal = rules.is_strict() && failure.exit() == Exit::Invalid;
                return Err(match is_strict_refusal && read(&Rules::COMPAT).is_ok() {
                    true => {
                        failure.help("other readers accept this file: if you trust it, repeat with --compat")
                    }
                    false => failure,
                });
            }
        };
        let shape = |shape: &[u64]| shape.iter().map(|&dim| usize::try_from(dim)).collect::<Result<_, _>>();
        let shapes = index.iter().map(|info| {
            shape(info.shape()).map_err(|_| {
                let failure = Failure::new("ac-limit", "a dimension is beyond what this machine can count");
                failure.of_tensor(Some(info.name())).in_file(&label)
            })
        });
        let shapes = shapes.collect::<Result<_, _>>()?;
        Ok(Self { bytes, label, path, index, shapes })
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
        let mut file = match &self.bytes {
            Bytes::Inflated(inflated) => return Ok(inflated.container().footer()),
            Bytes::File(file) => file,
        };
        file.rewind().map_err(|error| Failure::io("read the file", &self.label, &error))?;
        let footer = self.index.verify(file, &rules.for_looking().apr);
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
            Bytes::File(file) => Ok(Tensor::in_file(info, shape, file, &self.label)),
            Bytes::Inflated(inflated) => {
                let data = inflated.container().data(info.name()).map_err(Failure::of_tensors)?;
                Ok(Tensor::inflated(info, shape, data))
            }
        });
        tensors.collect()
    }
}
