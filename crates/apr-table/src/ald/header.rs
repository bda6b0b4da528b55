//! The two headers, and where each part of a file is.

use core::ops::Range;

use read_at::ReadAt;

use super::{MAGIC, invalid, read};
use crate::error::{Error, ErrorKind};

/// Length of both headers.
const LEN: u64 = 32;
/// Signature and public key.
const SIGNATURE_LEN: u64 = 96;
/// Length of the checksum.
const CHECKSUM_LEN: u64 = 4;
/// The part of a licence before its terms.
pub(super) const LICENSE_LEN: u64 = 75;
/// Mode, salt, nonce; mode, public key, nonce.
const PASSWORD_LEN: u64 = 29;
const RECIPIENT_LEN: u64 = 45;

const ENCRYPTED: u8 = 1;
const SIGNED: u8 = 1 << 1;
const STREAMING: u8 = 1 << 2;
const LICENSED: u8 = 1 << 3;
const TRUENO_NATIVE: u8 = 1 << 4;

/// How a dataset is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One payload, and a checksum.
    Single,
    /// Chunks behind an index.
    Streaming,
}

/// What opens a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// A password.
    Password,
    /// The secret key of a recipient.
    Recipient,
}

/// Compression of a payload or of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// zstd; the level that the file names.
    Zstd(u8),
    /// LZ4: a frame, or in chunks blocks.
    Lz4,
}

/// What the file says that it holds: a code space that grows with the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetType(pub u16);

impl DatasetType {
    const NAMES: [(u16, &'static str); 25] = [
        (0x01, "tabular"),
        (0x02, "time series"),
        (0x03, "graph"),
        (0x04, "spatial"),
        (0x10, "text corpus"),
        (0x11, "text classification"),
        (0x12, "text pairs"),
        (0x13, "sequence labeling"),
        (0x14, "question answering"),
        (0x15, "summarization"),
        (0x16, "translation"),
        (0x20, "image classification"),
        (0x21, "object detection"),
        (0x22, "segmentation"),
        (0x23, "image pairs"),
        (0x24, "video"),
        (0x30, "audio classification"),
        (0x31, "speech recognition"),
        (0x32, "speaker identification"),
        (0x40, "user-item ratings"),
        (0x41, "implicit feedback"),
        (0x42, "sequential recommendations"),
        (0x50, "image-text"),
        (0x51, "audio-text"),
        (0x52, "video-text"),
    ];
    const CUSTOM: u16 = 0xff;

    /// The name; none of a type that the format does not define.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self.0 {
            Self::CUSTOM => Some("custom"),
            number => Self::NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name),
        }
    }
}

/// What a header says, with every range proven to be in the file.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) layout: Layout,
    pub(super) version: (u8, u8),
    pub(super) dataset_type: DatasetType,
    pub(super) compression: Compression,
    pub(super) has_reserved_flags: bool,
    /// Of a single file, as declared.
    pub(super) n_rows: u64,
    /// Low 32 bits of the length of a single payload when decompressed.
    pub(super) uncompressed: u32,
    pub(super) metadata: Range<u64>,
    pub(super) schema: Range<u64>,
    pub(super) index: Option<Range<u64>>,
    /// Of a payload that is encrypted.
    pub(super) key_block: Option<Range<u64>>,
    pub(super) payload: Range<u64>,
    pub(super) signature: Option<Range<u64>>,
    pub(super) license: Option<Range<u64>>,
    /// Begin of the checksum; of a streaming file, its end.
    pub(super) checksum: u64,
}

impl Header {
    pub(super) fn read(source: &dyn ReadAt) -> Result<Self, Error> {
        let len = source.total_len();
        if len < LEN {
            return Err(ErrorKind::Truncated { expected: LEN, found: len }.into());
        }
        let mut bytes = [0; LEN as usize];
        read(source, 0, &mut bytes)?;
        if !bytes.starts_with(&MAGIC) {
            return Err(invalid("it does not begin with ALDF").at(0));
        }
        if is_streaming(&bytes, len) {
            Self::streaming(&bytes, len)
        } else {
            Self::single(source, &bytes, len)
        }
    }

    fn single(source: &dyn ReadAt, bytes: &[u8; LEN as usize], len: u64) -> Result<Self, Error> {
        let (version, flags) = ((bytes[4], bytes[5]), bytes[21]);
        if version.0 > 1 {
            return Err(Error::from(ErrorKind::AldVersion { found: version.0 }).at(4));
        }
        if flags & STREAMING != 0 {
            return Err(invalid("a file of one payload says that it is streaming").at(21));
        }
        let dataset_type = DatasetType(u16_at(bytes, 6));
        if dataset_type.name().is_none() {
            return Err(Error::from(ErrorKind::AldType { found: dataset_type.0 }).at(6));
        }
        let compression = compression(bytes[20]).map_err(|error| error.at(20))?;
        let end = len.checked_sub(CHECKSUM_LEN).unwrap_or(len);
        let mut parts = Parts { at: LEN, end };
        let metadata = parts.take(u32_at(bytes, 8).into())?;
        let schema = parts.take(u16_at(bytes, 22).into())?;
        let key_block = match flags & ENCRYPTED {
            0 => None,
            _ => {
                let mut mode = [0];
                let at = parts.at;
                parts.take(1)?;
                read(source, at, &mut mode)?;
                let len = match mode {
                    [0] => PASSWORD_LEN,
                    [1] => RECIPIENT_LEN,
                    _ => return Err(invalid("an unknown mode of encryption").at(at)),
                };
                parts.take(len - 1)?;
                Some(at..at + len)
            }
        };
        let payload = parts.take(u32_at(bytes, 12).into())?;
        let signature = (flags & SIGNED != 0).then(|| parts.take(SIGNATURE_LEN)).transpose()?;
        // More bytes may follow the terms.
        let license = (flags & LICENSED != 0).then(|| parts.rest(LICENSE_LEN)).transpose()?;
        if parts.at != end {
            return Err(invalid("bytes before the checksum belong to no part of the file").at(parts.at));
        }
        Ok(Self {
            layout: Layout::Single,
            version,
            dataset_type,
            compression,
            has_reserved_flags: flags & !(ENCRYPTED | SIGNED | STREAMING | LICENSED | TRUENO_NATIVE) != 0,
            n_rows: u64_at(bytes, 24),
            uncompressed: u32_at(bytes, 16),
            metadata,
            schema,
            index: None,
            key_block,
            payload,
            signature,
            license,
            checksum: end,
        })
    }

    fn streaming(bytes: &[u8; LEN as usize], len: u64) -> Result<Self, Error> {
        let compression = compression(bytes[7]).map_err(|error| error.at(7))?;
        let mut parts = Parts { at: LEN, end: len };
        let metadata = parts.take(u32_at(bytes, 12).into())?;
        let schema = parts.take(u32_at(bytes, 16).into())?;
        let index = parts.take(u32_at(bytes, 20).into())?;
        let payload = parts.take(u64_at(bytes, 24))?;
        if parts.at != len {
            return Err(invalid("bytes follow the last chunk").at(parts.at));
        }
        Ok(Self {
            layout: Layout::Streaming,
            version: (bytes[4], bytes[5]),
            dataset_type: DatasetType(u16_at(bytes, 8)),
            compression,
            has_reserved_flags: u16_at(bytes, 10) != 0,
            n_rows: 0,
            uncompressed: 0,
            metadata,
            schema,
            index: Some(index),
            key_block: None,
            payload,
            signature: None,
            license: None,
            checksum: len,
        })
    }

    /// What opens the payload.
    pub(super) fn encryption(&self, source: &dyn ReadAt) -> Result<Encryption, Error> {
        let mut mode = [0];
        read(source, self.key_block.as_ref().map_or(0, |block| block.start), &mut mode)?;
        Ok(if mode == [0] { Encryption::Password } else { Encryption::Recipient })
    }
}

/// Whether the header is that of the streaming layout: bytes 6 and 7 are flags and compression, which as the type of a single file would be
/// none, or the spatial one. Then the lengths decide.
fn is_streaming(bytes: &[u8; LEN as usize], len: u64) -> bool {
    if bytes[6] != STREAMING {
        return false;
    }
    let lens =
        [u32_at(bytes, 12).into(), u32_at(bytes, 16).into(), u32_at(bytes, 20).into(), u64_at(bytes, 24)];
    let total = lens.into_iter().try_fold(LEN, u64::checked_add);
    bytes[7] != 0 || total == Some(len) && bytes[8..12] == [1, 0, 0, 0]
}

fn compression(byte: u8) -> Result<Compression, Error> {
    match byte {
        0 => Ok(Compression::None),
        1 => Ok(Compression::Zstd(3)),
        2 => Ok(Compression::Zstd(19)),
        3 => Ok(Compression::Lz4),
        found => Err(ErrorKind::AldCompression { found }.into()),
    }
}

/// What is left of a file.
struct Parts {
    at: u64,
    end: u64,
}

impl Parts {
    fn take(&mut self, len: u64) -> Result<Range<u64>, Error> {
        let found = self.end.saturating_sub(self.at);
        if len > found {
            return Err(Error::from(ErrorKind::Truncated { expected: len, found }).at(self.at));
        }
        let range = self.at..self.at + len;
        self.at = range.end;
        Ok(range)
    }

    /// All that is left, at least so many bytes.
    fn rest(&mut self, least: u64) -> Result<Range<u64>, Error> {
        self.take(self.end.saturating_sub(self.at).max(least))
    }
}

fn array<const N: usize>(bytes: &[u8; LEN as usize], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn u16_at(bytes: &[u8; LEN as usize], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

fn u32_at(bytes: &[u8; LEN as usize], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8; LEN as usize], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}
