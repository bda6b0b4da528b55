//! An open model file.

#[cfg(feature = "std")]
mod files;

use alloc::boxed::Box;
#[cfg(feature = "apr")]
use alloc::sync::Arc;
use alloc::vec::Vec;

#[cfg(feature = "apr")]
use apr_container::v2::Footer;
#[cfg(feature = "sealed")]
use apr_crypto::{Signer, Trust};
#[cfg(feature = "apr")]
use apr_models::AnyModel;
#[cfg(feature = "sealed")]
use apr_sealed::{SealedHeader, SealedLimits, SealedReader};
use read_at::ReadAt;
#[cfg(feature = "std")]
use st_core::ShardProblem;

#[cfg(feature = "apr")]
use crate::apr_v1::AprV1;
#[cfg(feature = "apr")]
use crate::apr_v2::AprV2;
use crate::content::Content;
#[cfg(feature = "sealed")]
use crate::content::SealedContent;
use crate::error::{Error, ErrorKind};
#[cfg(feature = "foreign")]
use crate::foreign::Foreign;
#[cfg(feature = "gguf")]
use crate::gguf::Gguf;
use crate::options::OpenOptions;
use crate::safetensors::SafeTensors;
use crate::tensor::Tensor;
use crate::{FileKind, ModelFormat};

/// An open model file of any format, over any [`ReadAt`].
///
/// Opening reads what precedes the tensors, so it takes as long for a file of any size; tensors are read on demand. The payload of an
/// `.apr` file of version 1 is decoded when [`tensors`](Self::tensors) or [`model`](Self::model) first needs it.
///
/// ```
/// use model_file::{ModelFile, OpenOptions};
/// use st_core::{Dtype, TensorView, WriteOptions, to_vec};
///
/// let bytes = to_vec(&[("w", TensorView::new(Dtype::U8, &[3], b"abc")?)], &WriteOptions::default())?;
/// let file = ModelFile::from_bytes(&bytes, &OpenOptions::new())?;
/// assert_eq!(file.format().name(), "safetensors");
/// let w = file.tensor("w")?;
/// assert_eq!((w.dtype().name(), w.shape(), w.to_vec()?), ("U8", &[3][..], b"abc".to_vec()));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ModelFile<R> {
    content: Content<R>,
    contents: Contents,
    is_sealed: bool,
}

/// What was read of a file, by its format. For a sealed file that was opened, that of the file inside it.
#[derive(Debug)]
pub enum Contents {
    /// safetensors.
    SafeTensors(Box<SafeTensors>),
    /// `.apr` version 1.
    #[cfg(feature = "apr")]
    AprV1(Box<AprV1>),
    /// `.apr` version 2.
    #[cfg(feature = "apr")]
    AprV2(Box<AprV2>),
    /// GGUF.
    #[cfg(feature = "gguf")]
    Gguf(Box<Gguf>),
    /// A file of another program.
    #[cfg(feature = "foreign")]
    Foreign(Box<Foreign>),
    /// A sealed file for which no keys were given.
    #[cfg(feature = "sealed")]
    Sealed(Box<SealedHeader>),
}

impl<'data> ModelFile<&'data [u8]> {
    /// Opens the bytes of a file.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    pub fn from_bytes(file: &'data [u8], options: &OpenOptions<'_>) -> Result<Self, Error> {
        Self::read(file, options)
    }
}

/// The files beside a file.
#[cfg(feature = "foreign")]
type Beside = dyn foreign_tensors::Companions;
#[cfg(not(feature = "foreign"))]
type Beside = ();

#[cfg(feature = "foreign")]
const NOTHING_BESIDE: &Beside = &foreign_tensors::NoCompanions;
#[cfg(not(feature = "foreign"))]
const NOTHING_BESIDE: &Beside = &();

impl<R: ReadAt> ModelFile<R> {
    /// Opens a file wherever its bytes are.
    ///
    /// With [keys](OpenOptions::with_access), the signature of an `.apr` file of version 1 is verified and its payload decrypted, and
    /// a sealed file is opened: what is shown is the file inside it. Every other format has neither, and the keys are ignored.
    ///
    /// # Errors
    ///
    /// Those of the reader of the format that [`FileKind::of`] detects, and of the source.
    pub fn read(source: R, options: &OpenOptions<'_>) -> Result<Self, Error> {
        let kind = FileKind::of_source(&source)?;
        Self::of_source(source, kind, NOTHING_BESIDE, options)
    }

    fn of_source(
        source: R,
        kind: FileKind,
        beside: &Beside,
        options: &OpenOptions<'_>,
    ) -> Result<Self, Error> {
        #[cfg(feature = "sealed")]
        if kind.expected() == ModelFormat::Sealed {
            return Self::of_sealed(source, options);
        }
        let content = Content::Source(source);
        let contents = Self::read_contents(&content, kind, beside, options)?;
        Ok(Self { content, contents, is_sealed: false })
    }

    #[cfg(feature = "sealed")]
    fn of_sealed(source: R, options: &OpenOptions<'_>) -> Result<Self, Error> {
        let Some(access) = options.access() else {
            let header = SealedHeader::read(&source, options.sealed_limits())?;
            let contents = Contents::Sealed(Box::new(header));
            return Ok(Self { content: Content::Source(source), contents, is_sealed: true });
        };
        let reader = SealedReader::open(source, &access, options.sealed_limits())?;
        let content = Content::Sealed(Box::new(SealedContent::new(reader.forget_names())));
        let kind = FileKind::of_source(&content)?;
        if kind.expected() == ModelFormat::Sealed {
            return Err(ErrorKind::ForeignFormat { found: kind }.into());
        }
        let contents = Self::read_contents(&content, kind, NOTHING_BESIDE, options)?;
        Ok(Self { content, contents, is_sealed: true })
    }

    fn read_contents(
        content: &Content<R>,
        kind: FileKind,
        #[cfg_attr(
            not(feature = "foreign"),
            allow(unused_variables, reason = "for files of other programs")
        )]
        beside: &Beside,
        options: &OpenOptions<'_>,
    ) -> Result<Contents, Error> {
        #[cfg(feature = "foreign")]
        options.check_object(kind)?;
        let read = options.read_options();
        Ok(match kind {
            #[cfg(feature = "apr")]
            FileKind::Model(ModelFormat::AprV1) => {
                Contents::AprV1(Box::new(AprV1::read(content, options, content.is_sealed())?))
            }
            #[cfg(feature = "apr")]
            FileKind::Model(ModelFormat::AprV2) => Contents::AprV2(Box::new(AprV2::read(content, options)?)),
            #[cfg(feature = "gguf")]
            FileKind::Model(ModelFormat::Gguf) => Contents::Gguf(Box::new(Gguf::read(content, &read.gguf)?)),
            #[allow(unreachable_patterns, reason = "formats without their features")]
            FileKind::Model(
                ModelFormat::AprV1 | ModelFormat::AprV2 | ModelFormat::Sealed | ModelFormat::Gguf,
            ) => {
                return Err(ErrorKind::ForeignFormat { found: kind }.into());
            }
            #[cfg(feature = "foreign")]
            FileKind::Model(ModelFormat::Foreign(format)) => {
                Contents::Foreign(Box::new(Foreign::read(content, format, beside, &options.foreign)?))
            }
            FileKind::Foreign(format) => {
                let found = FileKind::Foreign(format);
                #[cfg(feature = "archives")]
                let found =
                    FileKind::identify(content.total_len(), |offset, out| content.read_exact_at(offset, out))
                        .or_else(|error| match read_at::missing_range(&error) {
                            Some(_) => Err(error),
                            None => Ok(found),
                        })?;
                return Err(ErrorKind::ForeignFormat { found }.into());
            }
            FileKind::Model(ModelFormat::SafeTensors) | FileKind::Unknown
                if cfg!(feature = "safetensors") =>
            {
                Contents::SafeTensors(Box::new(SafeTensors::read(content, &read.safetensors)?))
            }
            FileKind::Model(ModelFormat::SafeTensors) | FileKind::Unknown => {
                return Err(ErrorKind::ForeignFormat { found: kind }.into());
            }
        })
    }

    /// The format; of a sealed file that was opened, that of the file inside it.
    #[must_use]
    pub fn format(&self) -> ModelFormat {
        match &self.contents {
            Contents::SafeTensors(_) => ModelFormat::SafeTensors,
            #[cfg(feature = "apr")]
            Contents::AprV1(_) => ModelFormat::AprV1,
            #[cfg(feature = "apr")]
            Contents::AprV2(_) => ModelFormat::AprV2,
            #[cfg(feature = "gguf")]
            Contents::Gguf(_) => ModelFormat::Gguf,
            #[cfg(feature = "foreign")]
            Contents::Foreign(file) => ModelFormat::Foreign(file.format()),
            #[cfg(feature = "sealed")]
            Contents::Sealed(_) => ModelFormat::Sealed,
        }
    }

    /// Whether the file is sealed, opened or not.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// The bytes of the file, or of the file inside a sealed one; none of a set of files.
    #[must_use]
    pub const fn content(&self) -> &impl ReadAt {
        &self.content
    }

    /// What the file is read from; `None` of files that were opened by their paths.
    #[must_use]
    pub const fn source(&self) -> Option<&R> {
        match &self.content {
            Content::Source(source) => Some(source),
            #[cfg(feature = "sealed")]
            Content::Sealed(content) => Some(content.reader.source()),
            #[cfg(feature = "std")]
            Content::Files => None,
        }
    }

    /// What the file is read from, for a cache that is filled between reads. Bytes that were read must not change.
    #[must_use]
    pub const fn source_mut(&mut self) -> Option<&mut R> {
        match &mut self.content {
            Content::Source(source) => Some(source),
            #[cfg(feature = "sealed")]
            Content::Sealed(content) => Some(content.reader.source_mut()),
            #[cfg(feature = "std")]
            Content::Files => None,
        }
    }

    /// The reader of a sealed file that was opened with keys.
    #[cfg(feature = "sealed")]
    #[must_use]
    pub const fn sealed(&self) -> Option<&SealedReader<'static, R>> {
        match &self.content {
            Content::Sealed(content) => Some(&content.reader),
            _ => None,
        }
    }

    /// What was read of the file.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Bytes of the file, or of the file inside a sealed one; of a set of shards, of all of them.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub fn file_len(&self) -> Result<u64, Error> {
        match &self.contents {
            #[cfg(feature = "std")]
            Contents::SafeTensors(files) if matches!(self.content, Content::Files) => {
                Ok(files.parts()?.iter().map(|part| part.file.file_len()).sum())
            }
            _ => Ok(self.content.total_len()),
        }
    }

    /// The signing key in the file, if it is signed and the key is valid. Nothing is verified.
    #[cfg(feature = "sealed")]
    #[must_use]
    pub fn signer_declared(&self) -> Option<apr_crypto::VerifyingKey> {
        match &self.contents {
            Contents::AprV1(file) => file.signer_declared(&self.content),
            Contents::Sealed(header) => apr_crypto::VerifyingKey::from_bytes(&header.signer_declared()?).ok(),
            _ => None,
        }
    }

    /// The beginning of the public key of the one recipient of an encrypted `.apr` file of version 1. Nothing is verified.
    #[cfg(feature = "sealed")]
    #[must_use]
    pub fn recipient_declared(&self) -> Option<[u8; apr_crypto::RecipientPublic::ID_LEN]> {
        match &self.contents {
            Contents::AprV1(file) => file.recipient_declared(&self.content),
            _ => None,
        }
    }

    /// Differences between an index of shards and the shards; none of a single file.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    #[cfg(feature = "std")]
    pub fn shard_problems(&self) -> Result<Vec<ShardProblem>, Error> {
        match &self.contents {
            Contents::SafeTensors(files) => match &**files {
                SafeTensors::Sharded(set) => Ok(set.check()?),
                _ => Ok(Vec::new()),
            },
            _ => Ok(Vec::new()),
        }
    }

    /// The tensors in file order, shard by shard. Their bytes are read on demand; those of a model in an `.apr` file of version 1 are
    /// made from it.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened or a payload cannot be decoded; [`ErrorKind::ForeignPayload`].
    pub fn tensors(&self) -> Result<Vec<Tensor<'_>>, Error> {
        match &self.contents {
            Contents::SafeTensors(files) => files.tensors(&self.content),
            #[cfg(feature = "apr")]
            Contents::AprV1(file) => file.tensors(&self.content),
            #[cfg(feature = "apr")]
            Contents::AprV2(file) => file.tensors(&self.content),
            #[cfg(feature = "gguf")]
            Contents::Gguf(file) => Ok(file.tensors(&self.content)),
            #[cfg(feature = "foreign")]
            Contents::Foreign(file) => Ok(file.tensors(&self.content)),
            #[cfg(feature = "sealed")]
            Contents::Sealed(_) => Ok(Vec::new()),
        }
    }

    /// The tensor at this index of [`tensors`](Self::tensors); `None` beyond the last one. One tensor of a file of many is found
    /// without the others, except in sets of shards, in files of other programs and in `.apr` files of version 1.
    ///
    /// # Errors
    ///
    /// Those of [`tensors`](Self::tensors).
    pub fn tensor_at(&self, index: usize) -> Result<Option<Tensor<'_>>, Error> {
        match &self.contents {
            #[cfg(feature = "std")]
            Contents::SafeTensors(files) if matches!(**files, SafeTensors::Sharded(_)) => {
                Ok(self.tensors()?.into_iter().nth(index))
            }
            Contents::SafeTensors(files) => Ok(files.tensor_at(index, &self.content)),
            #[cfg(feature = "apr")]
            Contents::AprV2(file) => file.tensor_at(index, &self.content),
            #[cfg(feature = "gguf")]
            Contents::Gguf(file) => Ok(file.tensor_at(index, &self.content)),
            #[cfg(any(feature = "apr", feature = "foreign", feature = "sealed"))]
            _ => Ok(self.tensors()?.into_iter().nth(index)),
        }
    }

    /// The tensor of this name.
    ///
    /// # Errors
    ///
    /// Those of [`tensors`](Self::tensors); [`ErrorKind::TensorNotFound`].
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>, Error> {
        let found = self.tensors()?.into_iter().find(|tensor| tensor.name() == name);
        found.ok_or_else(|| Error::from(ErrorKind::TensorNotFound).of_tensor(name))
    }

    /// Decodes the payload of an `.apr` file of version 1; does nothing for every other format.
    ///
    /// # Errors
    ///
    /// If the payload cannot be decoded; [`ErrorKind::ForeignPayload`].
    pub fn decode(&self) -> Result<(), Error> {
        match &self.contents {
            #[cfg(feature = "apr")]
            Contents::AprV1(file) => file.decode(&self.content).map(drop),
            _ => Ok(()),
        }
    }

    /// The model of an `.apr` file of version 1, decoded now unless it was before.
    #[cfg(feature = "apr")]
    pub(crate) fn decoded<'f>(&self, file: &'f AprV1) -> Result<&'f Arc<AnyModel>, Error> {
        file.decode(&self.content)
    }

    /// Verifies the signature in the file, and with it every signed byte: of a sealed file, opened or not, and of an `.apr` file of
    /// version 1. `None` if `trust` asks for no signature and the `.apr` file has none, and of other formats.
    ///
    /// # Errors
    ///
    /// If the signature is invalid or not by a trusted key, if there is none, and those of reading.
    #[cfg(feature = "sealed")]
    pub fn verify_signature<'k>(&self, trust: Trust<'k>) -> Result<Option<Signer<'k>>, Error> {
        let limits = SealedLimits::default();
        match (&self.contents, self.source()) {
            (_, Some(source)) if self.is_sealed => Ok(Some(apr_sealed::verify(source, trust, &limits)?)),
            (Contents::AprV1(file), _) => file.verify_signature(&self.content, trust),
            _ => Ok(None),
        }
    }

    /// Reads everything that the format can verify: the checksum of an `.apr` file. Signatures are verified when a file is opened with
    /// keys.
    ///
    /// # Errors
    ///
    /// If the checksum does not match, and those of reading.
    pub fn verify(&self) -> Result<Verification, Error> {
        match &self.contents {
            #[cfg(feature = "apr")]
            Contents::AprV1(file) => {
                file.verify(&self.content)?;
                Ok(Verification::Checksum)
            }
            #[cfg(feature = "apr")]
            Contents::AprV2(file) => {
                let footer = self.footer(file)?;
                Ok(match footer {
                    Footer::Absent => Verification::NoChecksum,
                    _ => Verification::Checksum,
                })
            }
            _ => Ok(Verification::NoChecksum),
        }
    }

    #[cfg(feature = "apr")]
    fn footer(&self, file: &AprV2) -> Result<Footer, Error> {
        let options = apr_container::ReadOptions {
            unchecked_signature: apr_container::UncheckedSignature::Allow,
            ..file.options
        };
        file.verify(&self.content, &options)
    }

    /// The checksum of an `.apr` file of version 2, of which everything is read; `None` of other formats.
    ///
    /// # Errors
    ///
    /// If a strictly read file is damaged, and those of reading.
    #[cfg(feature = "apr")]
    pub fn checksum(&self) -> Result<Option<Footer>, Error> {
        match &self.contents {
            #[cfg(feature = "apr")]
            Contents::AprV2(file) => self.footer(file).map(Some),
            _ => Ok(None),
        }
    }
}

/// What [`ModelFile::verify`] could verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// The checksum matches.
    Checksum,
    /// The format, or this file, has no checksum.
    NoChecksum,
}
