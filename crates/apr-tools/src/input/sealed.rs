//! The model inside a sealed file.

use std::path::PathBuf;

use model_file::FileKind;
use st_core::Header;

use super::tensor::Origin;
use super::{AprModel, AprTensors, Format, GgufFile, Kind, Model, Rules, Source, Stored, Tensor};
use crate::error::{CODE_FOREIGN_FORMAT, Exit, Failure};
use crate::foreign;
use crate::sealed_file::SealedFile;

/// As much as the first bytes of any format here take.
const MAGIC_LEN: usize = 8;

/// A safetensors file inside a sealed one.
#[derive(Debug)]
pub(crate) struct SealedTensors {
    stored: Stored,
    label: PathBuf,
    header: Header,
}

impl SealedTensors {
    fn open(stored: Stored, source: &Source, rules: &Rules) -> Result<Self, Failure> {
        let label = source.label();
        let part = ("read the header", label);
        let mut prefix = vec![0; 8.min(stored.len()) as usize];
        stored.read(0, &mut prefix, part)?;
        if let Some(first) = prefix.first_chunk::<8>() {
            // Within the limit, and within the content.
            let len = Header::declared_len(*first, stored.len(), &rules.safetensors)?;
            prefix.resize(8 + len as usize, 0);
            stored.read(0, &mut prefix, part)?;
        }
        let header = Header::from_prefix(&prefix, stored.len(), &rules.safetensors)?;
        Ok(Self { stored, label: label.to_owned(), header })
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    pub(super) fn tensors(&self) -> Vec<Tensor<'_>> {
        let tensors = self.header.iter().map(|info| {
            let offset = info.file_range().start;
            Tensor::in_content(info, Origin { stored: &self.stored, label: &self.label, offset })
        });
        tensors.collect()
    }
}

impl Model {
    /// Opens a source, or the model inside it if it is sealed.
    ///
    /// # Errors
    ///
    /// Those of [`from_source`](Self::from_source) and [`of_sealed`](Self::of_sealed).
    pub(crate) fn of_content(source: Source, rules: &Rules) -> Result<Self, Failure> {
        match source.format() {
            Format::Sealed => Self::of_sealed(source, rules),
            _ => Self::from_source(source, rules),
        }
    }

    /// Opens the model inside a sealed file with the keys of its source. Each byte that is used is decrypted and verified where it is
    /// read, from the file that was opened.
    ///
    /// # Errors
    ///
    /// If the file is not signed by whom it must be, or does not open; if what is inside is no sound model.
    fn of_sealed(source: Source, rules: &Rules) -> Result<Self, Failure> {
        let content = SealedFile::open(&source, source.keys().limits())?.into_content(source.keys())?;
        let stored = Stored::Sealed(Box::new(content));
        let (path, label) = (source.path(), source.label());
        let mut first = [0; MAGIC_LEN];
        let (now, _) = first.split_at_mut(stored.len().min(MAGIC_LEN as u64) as usize);
        stored.read(0, now, ("read the beginning", label))?;
        let kind = match FileKind::of(&first).expected() {
            Format::AprV1 => AprModel::of(&stored, &source, rules).map(|file| Kind::AprModel(Box::new(file))),
            Format::AprV2 => {
                AprTensors::of(stored, path, label, rules).map(|file| Kind::AprTensors(Box::new(file)))
            }
            Format::Gguf => GgufFile::of(stored, path, label, rules).map(|file| Kind::Gguf(Box::new(file))),
            Format::SafeTensors | Format::Sealed => match foreign_format(&stored)? {
                Some(kind) => Err(holds(kind.title())),
                None => SealedTensors::open(stored, &source, rules)
                    .map(|file| Kind::SealedTensors(Box::new(file)))
                    .map_err(with_way_out),
            },
        };
        let kind = kind.map_err(|failure| failure.in_file(label))?;
        Ok(Self { kind, source })
    }
}

/// The format of content that is no model of ours, if it is a known one.
fn foreign_format(stored: &Stored) -> Result<Option<FileKind>, Failure> {
    let kind = FileKind::identify(stored.len(), |offset, buf| stored.read_at(offset, buf))?;
    Ok(foreign::recognized(kind))
}

fn holds(title: &str) -> Failure {
    with_way_out(Failure::new(
        CODE_FOREIGN_FORMAT,
        format!("the sealed file holds {title}, no model that is known here"),
    ))
}

fn with_way_out(failure: Failure) -> Failure {
    match failure.exit() {
        Exit::Invalid | Exit::Unsupported => {
            failure.help("`apr open FILE -o OUT` gives back what is inside; `apr check OUT` says what it is")
        }
        _ => failure,
    }
}
