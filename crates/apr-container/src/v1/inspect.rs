//! Description of a file of version 1.

#[cfg(feature = "std")]
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
#[cfg(feature = "std")]
use std::path::Path;

#[cfg(feature = "std")]
use read_at::ReadAt;

use crate::codec::MODEL_NAME_KEY;
use crate::codec::payload_layout::PayloadLayout;
use crate::compression::Compression;
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::metadata::{DistillationInfo, Metadata};
use crate::model_type::ModelType;
use crate::v1::container::Container;
#[cfg(feature = "std")]
use crate::v1::file::{checksum_mismatch_from, failed, open};
use crate::v1::flags::Flags;
use crate::v1::header::{CHECKSUM_LEN, HEADER_LEN, Header, VERSION, check_magic};
#[cfg(feature = "crypto")]
use crate::v1::protect::KeyHint;

/// A file's header and metadata, neither of them authenticated.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// Kind of model.
    pub model_type: ModelType,
    /// Major and minor version of the format.
    pub format_version: (u8, u8),
    /// All flags.
    pub flags: Flags,
    /// How the payload is compressed.
    pub compression: Compression,
    /// Bytes of the payload as stored.
    pub payload_size: u64,
    /// Bytes of the payload before compression.
    pub uncompressed_size: u64,
    /// Bytes of the metadata.
    pub metadata_size: u64,
    /// Bytes of the file.
    pub file_size: u64,
    /// Whether the payload is encrypted.
    pub encrypted: bool,
    /// Whether a signature follows the payload. It was not verified.
    pub signed: bool,
    /// Quality score from 1 to 100 that the writer gave.
    pub quality: Option<u8>,
    /// The metadata.
    pub metadata: Metadata,
    /// The teacher and the method of a distilled model: those of the metadata.
    #[cfg(feature = "std")]
    pub distillation: Option<DistillationInfo>,
    reserved_in_use: bool,
    /// Maximum length of the decompressed payload under the limits it was read with.
    allowed_expansion: Option<u64>,
}

impl ModelInfo {
    fn new(header: &Header, file_size: u64, metadata: Metadata, options: &ReadOptions) -> Self {
        Self {
            model_type: header.model_type,
            format_version: header.version,
            flags: header.flags,
            compression: header.compression,
            payload_size: header.payload_len.into(),
            uncompressed_size: header.uncompressed_len.into(),
            metadata_size: header.metadata_len.into(),
            file_size,
            encrypted: header.is_encrypted(),
            signed: header.is_signed(),
            quality: header.quality(),
            // A second copy of a few hundred bytes, under the name that users of aprender look for. Browsers do without.
            #[cfg(feature = "std")]
            distillation: metadata.distillation_info.clone(),
            metadata,
            reserved_in_use: header.reserved != [0; 9],
            allowed_expansion: (header.compression != Compression::None)
                .then(|| header.allowed_expansion(options)),
        }
    }

    /// The layout of the payload, if the metadata state it.
    #[must_use]
    pub fn layout(&self) -> Option<PayloadLayout> {
        PayloadLayout::from_version(&self.metadata.aprender_version)
    }

    /// The model's name within its type, if the file has one.
    #[must_use]
    pub fn model_name(&self) -> Option<&str> {
        self.metadata.custom.get(MODEL_NAME_KEY)?.as_str()
    }

    /// The teacher and the method of a distilled model.
    #[must_use]
    pub const fn distillation(&self) -> Option<&DistillationInfo> {
        self.metadata.distillation_info.as_ref()
    }

    /// How the key of an encrypted payload is obtained, if the metadata state it. Not authenticated until the payload is
    /// decrypted.
    #[cfg(feature = "crypto")]
    #[must_use]
    pub fn key_hint(&self) -> Option<KeyHint> {
        KeyHint::of(&self.metadata)
    }

    /// Whether the metadata hold a commitment to the key of the payload, as [`to_vec_with_rng`](crate::to_vec_with_rng) writes
    /// it. It is compared with the key when the payload is decrypted.
    #[cfg(feature = "crypto")]
    #[must_use]
    pub fn has_key_commitment(&self) -> bool {
        crate::v1::protect::has_commitment(&self.metadata)
    }

    /// Warnings about the file.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> {
        let mut found = Vec::new();
        if !self.model_type.is_known() {
            found.push(Warning::UnknownModelType(self.model_type));
        }
        if self.format_version > VERSION {
            found.push(Warning::NewerVersion(self.format_version));
        }
        if self.reserved_in_use {
            found.push(Warning::ReservedInUse);
        }
        if self.signed {
            found.push(Warning::SignatureUnchecked);
        } else if self.encrypted {
            found.push(Warning::MetadataNotEncrypted);
        }
        if self.layout().is_none() {
            found.push(Warning::UnknownLayout);
        }
        if let Some(allowed) = self.allowed_expansion
            && self.uncompressed_size > allowed
        {
            found.push(Warning::Expansion { declared: self.uncompressed_size, allowed });
        }
        found.into_iter()
    }
}

/// A property of a file that is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A model type that the specification does not list: the model cannot be loaded.
    UnknownModelType(ModelType),
    /// Written for a newer minor version.
    NewerVersion((u8, u8)),
    /// Reserved header bytes are in use.
    ReservedInUse,
    /// The payload is encrypted; header and metadata are plaintext and not authenticated.
    MetadataNotEncrypted,
    /// The file is signed and the signature was not verified.
    SignatureUnchecked,
    /// The metadata do not state the layout of the payload.
    UnknownLayout,
    /// The payload expands further than the limits allow: it is described, but cannot be loaded.
    Expansion {
        /// Bytes after decompression, as declared.
        declared: u64,
        /// Most accepted for this file.
        allowed: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownModelType(found) => write!(f, "unknown model type {found}"),
            Self::NewerVersion((major, minor)) => write!(f, "written for the newer version {major}.{minor}"),
            Self::ReservedInUse => f.write_str("reserved header bytes are in use"),
            Self::MetadataNotEncrypted => {
                f.write_str("the payload is encrypted, the metadata are not: anyone can read and change them")
            }
            Self::SignatureUnchecked => f.write_str("signed, but the signature was not verified"),
            Self::UnknownLayout => f.write_str("the metadata do not tell which layout the payload has"),
            Self::Expansion { declared, allowed } => {
                write!(f, "the payload expands to {declared} bytes, loading allows {allowed}")
            }
        }
    }
}

/// Whether to read the whole file and compare its checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Read header and metadata alone. The default.
    #[default]
    Skip,
    /// Read everything and compare.
    Compare,
}

/// Describes the bytes of a file, and compares its checksum.
///
/// # Errors
///
/// Those of [`Container::from_bytes`] and [`Metadata::from_msgpack`].
pub fn inspect_bytes(file: &[u8]) -> Result<ModelInfo, Error> {
    inspect_bytes_with(file, &ReadOptions::STRICT)
}

/// Describes the bytes of a file, and compares its checksum.
///
/// # Errors
///
/// Those of [`Container::from_bytes_with`] and [`Metadata::from_msgpack`].
pub fn inspect_bytes_with(file: &[u8], options: &ReadOptions) -> Result<ModelInfo, Error> {
    let container = Container::from_bytes_with(file, options)?;
    Ok(ModelInfo::new(container.header(), file.len() as u64, container.metadata()?, options))
}

/// The number of bytes before the payload of a file of `file_len` bytes, from its first 32 bytes (all of a shorter file): the
/// length that [`inspect_prefix`] needs.
///
/// # Errors
///
/// Those of [`Container::from_bytes_with`] that concern the header.
pub fn prefix_len(first32: &[u8], file_len: u64, options: &ReadOptions) -> Result<u64, Error> {
    Ok(HEADER_LEN as u64 + u64::from(sound_header(first32, file_len, options)?.metadata_len))
}

/// Describes a file of `file_len` bytes from its first [`prefix_len`] bytes or more, for example a range of a remote file.
///
/// # Errors
///
/// Those of [`inspect_bytes_with`] but for [`ErrorKind::ChecksumMismatch`]; [`ErrorKind::Truncated`] if there are fewer bytes.
pub fn inspect_prefix(prefix: &[u8], file_len: u64, options: &ReadOptions) -> Result<ModelInfo, Error> {
    let header = sound_header(prefix, file_len, options)?;
    let needed = HEADER_LEN as u64 + u64::from(header.metadata_len);
    let metadata = prefix.get(HEADER_LEN..needed as usize).ok_or_else(|| {
        Error::from(ErrorKind::Truncated { part: "metadata", needed, available: prefix.len() as u64 })
    })?;
    let metadata = Metadata::from_msgpack(metadata, options.strictness, &options.limits)
        .map_err(|error| error.shifted(HEADER_LEN as u64))?;
    Ok(ModelInfo::new(&header, file_len, metadata, options))
}

/// The header of a file that is long enough for its parts.
fn sound_header(prefix: &[u8], file_len: u64, options: &ReadOptions) -> Result<Header, Error> {
    let needed = (HEADER_LEN + CHECKSUM_LEN) as u64;
    let header = prefix.first_chunk::<HEADER_LEN>().filter(|_| file_len >= needed);
    let Some(header) = header else {
        if let Some(magic) = prefix.first_chunk::<4>() {
            check_magic(*magic)?;
        }
        return Err(ErrorKind::TooSmall { available: file_len.min(prefix.len() as u64), needed }.into());
    };
    let header = Header::from_bytes(header, options)?;
    header.geometry(file_len, options)?;
    Ok(header)
}

/// Describes a file without reading its payload.
///
/// ```
/// # #[cfg(feature = "serde")] {
/// use apr_container::{ModelType, SaveOptions, Serde, inspect, save};
///
/// # let path = std::env::temp_dir().join(format!("apr-inspect-{}.apr", std::process::id()));
/// let options = SaveOptions::default().with_name("thresholds");
/// save(&Serde(vec![0.5f32, 2.0]), ModelType::Custom, &path, options)?;
///
/// let info = inspect(&path)?;
/// assert_eq!(info.model_type, ModelType::Custom);
/// assert_eq!(info.metadata.model_name.as_deref(), Some("thresholds"));
/// assert_eq!((info.payload_size, info.encrypted, info.signed), (16, false, false));
/// # std::fs::remove_file(&path).unwrap();
/// # }
/// # Ok::<(), apr_container::Error>(())
/// ```
///
/// # Errors
///
/// As [`inspect_with`], with [`Checksum::Skip`] and [`ReadOptions::STRICT`].
#[cfg(feature = "std")]
pub fn inspect(path: impl AsRef<Path>) -> Result<ModelInfo, Error> {
    inspect_with(path, Checksum::Skip, &ReadOptions::STRICT)
}

/// Describes a file.
///
/// # Errors
///
/// [`ErrorKind::File`], [`ErrorKind::Io`], and those of [`inspect_bytes_with`] ([`ErrorKind::ChecksumMismatch`] only if
/// asked for).
#[cfg(feature = "std")]
pub fn inspect_with(
    path: impl AsRef<Path>,
    checksum: Checksum,
    options: &ReadOptions,
) -> Result<ModelInfo, Error> {
    let source = open(path.as_ref(), u64::MAX)?;
    let info = inspect_from(&source, options)?;
    match checksum {
        Checksum::Skip => Ok(info),
        Checksum::Compare => checksum_mismatch_from(&source)?.map_or(Ok(info), Err),
    }
}

/// Describes a file from a source; reads header and metadata and no further, so that the source may be a remote file.
///
/// # Errors
///
/// [`ErrorKind::Io`], and those of [`inspect_bytes_with`] but for [`ErrorKind::ChecksumMismatch`].
#[cfg(feature = "std")]
pub fn inspect_from(source: &dyn ReadAt, options: &ReadOptions) -> Result<ModelInfo, Error> {
    let file_len = source.total_len();
    let read = |offset: usize, out: &mut [u8]| {
        let position = offset as u64;
        source.read_exact_at(position, out).map_err(|error| failed(error, file_len, position))
    };
    let first_len = file_len.min(HEADER_LEN as u64) as usize;
    let mut prefix = vec![0; first_len];
    read(0, &mut prefix)?;
    prefix.resize(prefix_len(&prefix, file_len, options)? as usize, 0);
    read(first_len, prefix.get_mut(first_len..).unwrap_or_default())?;
    inspect_prefix(&prefix, file_len, options)
}
