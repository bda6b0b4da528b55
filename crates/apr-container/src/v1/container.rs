//! A file of version 1 in memory.

use alloc::vec::Vec;

use crate::codec::{DecodePayload, SliceSource, ViewPayload};
use crate::compression::{self, Compression};
use crate::crc::crc32;
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::metadata::Metadata;
use crate::v1::candidates::Candidates;
use crate::v1::header::{CHECKSUM_LEN, HEADER_LEN, Header, SIGNATURE_LEN, check_magic};

/// A file whose parts are where its header declares them, and whose checksum matches.
///
/// The checksum detects corruption, not manipulation: anyone who modifies a file can recompute it.
#[derive(Clone, Debug)]
pub struct Container<'data> {
    header: Header,
    options: ReadOptions,
    metadata: &'data [u8],
    payload: &'data [u8],
    signature: Option<SignatureBlock<'data>>,
    unowned: &'data [u8],
    checksum: u32,
}

impl<'data> Container<'data> {
    /// Finds the parts of a file and compares its checksum; [`ReadOptions::STRICT`].
    ///
    /// # Errors
    ///
    /// As [`from_bytes_with`](Self::from_bytes_with).
    pub fn from_bytes(file: &'data [u8]) -> Result<Self, Error> {
        Self::from_bytes_with(file, &ReadOptions::STRICT)
    }

    /// Finds the parts of a file and compares its checksum. Neither metadata nor payload are parsed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooSmall`], those of [`Header::from_bytes`], [`ErrorKind::Truncated`], [`ErrorKind::Limit`],
    /// [`ErrorKind::ChecksumMismatch`]; in strict reading [`ErrorKind::Unowned`] and [`ErrorKind::UncompressedSize`].
    pub fn from_bytes_with(file: &'data [u8], options: &ReadOptions) -> Result<Self, Error> {
        let too_small = || {
            let needed = (HEADER_LEN + CHECKSUM_LEN) as u64;
            ErrorKind::TooSmall { available: file.len() as u64, needed }.into()
        };
        if let Some(magic) = file.first_chunk() {
            check_magic(*magic)?;
        }
        let (Some((header, rest)), Some((sealed, checksum))) =
            (file.split_first_chunk(), file.split_last_chunk())
        else {
            return Err(too_small());
        };
        if rest.len() < CHECKSUM_LEN {
            return Err(too_small());
        }
        let header = Header::from_bytes(header, options)?;
        let geometry = header.geometry(file.len() as u64, options);
        // In a corrupted file, a wrong checksum is more informative than a wrong length.
        let (expected, actual) = (u32::from_le_bytes(*checksum), crc32(sealed));
        if expected != actual
            && !matches!(geometry.as_ref().map_err(Error::kind), Err(ErrorKind::Truncated { .. }))
        {
            return Err(ErrorKind::ChecksumMismatch { expected, actual }.at(sealed.len() as u64));
        }
        let geometry = geometry?;
        let part = |begin: u64, end: u64| {
            // All offsets are within the file, which is in memory: they fit `usize`.
            sealed.get(begin as usize..end as usize).unwrap_or_default()
        };
        let signature = part(geometry.payload_end, geometry.signature_end);
        Ok(Self {
            header,
            options: *options,
            metadata: part(HEADER_LEN as u64, geometry.metadata_end),
            payload: part(geometry.metadata_end, geometry.payload_end),
            signature: SignatureBlock::new(signature, part(0, geometry.payload_end)),
            unowned: part(geometry.signature_end, geometry.checksum_at),
            checksum: expected,
        })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The metadata as stored: MessagePack.
    #[must_use]
    pub const fn metadata_bytes(&self) -> &'data [u8] {
        self.metadata
    }

    /// The metadata. Not authenticated unless the file is signed and the signature was verified.
    ///
    /// # Errors
    ///
    /// What [`Metadata::from_msgpack`] refuses; offsets count from the start of the file.
    pub fn metadata(&self) -> Result<Metadata, Error> {
        Metadata::from_msgpack(self.metadata, self.options.strictness, &self.options.limits)
            .map_err(|error| error.shifted(HEADER_LEN as u64))
    }

    /// The payload, encrypted or not.
    #[must_use]
    pub fn payload(&self) -> Payload<'data> {
        let (header, options, stored) = (self.header, self.options, self.payload);
        match self.header.is_encrypted() {
            true => Payload::Encrypted(EncryptedPayload { header, stored }),
            false => Payload::Plain(PlainPayload { header, options, metadata: self.metadata, stored }),
        }
    }

    /// The signature, not verified.
    #[must_use]
    pub const fn signature(&self) -> Option<SignatureBlock<'data>> {
        self.signature
    }

    /// Bytes before the checksum that belong to no part; empty in strict reading.
    #[must_use]
    pub const fn unowned(&self) -> &'data [u8] {
        self.unowned
    }

    /// The checksum: CRC-32 of everything before it.
    #[must_use]
    pub const fn checksum(&self) -> u32 {
        self.checksum
    }
}

/// A stored payload. Only a [`PlainPayload`] can be decoded.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Payload<'data> {
    /// Readable by anyone.
    Plain(PlainPayload<'data>),
    /// Readable with a password or a key.
    Encrypted(EncryptedPayload<'data>),
}

impl<'data> Payload<'data> {
    /// The payload if it is not encrypted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Encrypted`].
    pub fn plain(self) -> Result<PlainPayload<'data>, Error> {
        match self {
            Self::Plain(payload) => Ok(payload),
            Self::Encrypted(_) => Err(ErrorKind::Encrypted.into()),
        }
    }
}

/// An encrypted payload.
#[derive(Clone, Copy, Debug)]
pub struct EncryptedPayload<'data> {
    header: Header,
    stored: &'data [u8],
}

impl<'data> EncryptedPayload<'data> {
    /// Salt or ephemeral key, nonce, ciphertext and tag.
    #[must_use]
    pub const fn stored(&self) -> &'data [u8] {
        self.stored
    }

    /// The compression of the plaintext.
    #[must_use]
    pub const fn compression(&self) -> Compression {
        self.header.compression
    }
}

/// A payload that can be decompressed and decoded.
#[derive(Clone, Copy, Debug)]
pub struct PlainPayload<'data> {
    header: Header,
    options: ReadOptions,
    metadata: &'data [u8],
    stored: &'data [u8],
}

impl<'data> PlainPayload<'data> {
    /// The payload's bytes as stored, compressed or not.
    #[must_use]
    pub const fn stored(&self) -> &'data [u8] {
        self.stored
    }

    /// How they are compressed.
    #[must_use]
    pub const fn compression(&self) -> Compression {
        self.header.compression
    }

    /// The payload's bytes, decompressed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Decompression`], [`ErrorKind::UncompressedSize`], [`ErrorKind::Expansion`],
    /// [`ErrorKind::FeatureDisabled`], [`ErrorKind::OutOfMemory`].
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        compression::decompress(self.header.compression, self.stored, self.header.bound(&self.options)?)
    }

    /// The model as a view of the payload, whatever type the header declares. Its values are validated as by
    /// [`decode`](Self::decode) and stay in place; metadata take memory while they are read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Compressed`], and those of [`decode`](Self::decode).
    pub fn view<M: ViewPayload>(&self) -> Result<M::View<'data>, Error> {
        let (compression, payload) = (self.header.compression, self.stored);
        if compression != Compression::None {
            return Err(ErrorKind::Compressed { compression }.at(20));
        }
        let candidates = Candidates::new(&self.header, self.metadata, &self.options)?;
        candidates.read(
            self.header.bound(&self.options)?,
            |input| M::view_payload(input, payload),
            |read| read(&mut SliceSource::new(payload)),
        )
    }

    /// Decodes the model, whatever type the header declares.
    ///
    /// # Errors
    ///
    /// Those of [`to_vec`](Self::to_vec), unreadable metadata (strict), and what the model refuses to decode.
    pub fn decode<M: DecodePayload>(&self) -> Result<M, Error> {
        let bound = self.header.bound(&self.options)?;
        let candidates = Candidates::new(&self.header, self.metadata, &self.options)?;
        candidates.decode(bound, |read| {
            let mut stored = SliceSource::new(self.stored);
            compression::with_decompressed(
                self.header.compression,
                &mut stored,
                self.stored.len() as u64,
                bound,
                read,
            )
        })
    }
}

/// A signature and the public key stored with it.
///
/// That key does not identify the signer: anyone can sign with a key of their own.
#[derive(Clone, Copy, Debug)]
pub struct SignatureBlock<'data> {
    block: &'data [u8; SIGNATURE_LEN],
    signed: &'data [u8],
}

impl<'data> SignatureBlock<'data> {
    fn new(block: &'data [u8], signed: &'data [u8]) -> Option<Self> {
        Some(Self { block: block.try_into().ok()?, signed })
    }

    /// The Ed25519 signature, 64 bytes.
    #[must_use]
    pub fn signature(&self) -> &'data [u8] {
        self.block.get(..64).unwrap_or_default()
    }

    /// The Ed25519 public key, 32 bytes.
    #[must_use]
    pub fn public_key(&self) -> &'data [u8] {
        self.block.get(64..).unwrap_or_default()
    }

    /// What is signed: header, metadata and payload as stored.
    #[must_use]
    pub const fn signed_bytes(&self) -> &'data [u8] {
        self.signed
    }
}
