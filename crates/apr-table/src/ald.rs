//! Datasets of alimentar, `.ald`: both layouts, plain, compressed, encrypted, signed, licensed.
//!
//! `docs/tables.md` says what is accepted.

use alloc::sync::Arc;
use core::fmt;

use apr_crypto::{Access, Trust};
use arrow_schema::{Field, Schema};
use read_at::ReadAt;

use self::checksum::Checksums;
use self::header::Header;
use self::payload::Section;
use crate::error::{Error, ErrorKind, within};
use crate::messages::Messages;

mod access;
mod checksum;
mod header;
mod index;
mod license;
mod metadata;
mod payload;
mod rows;

pub use self::access::Signed;
pub use self::checksum::Checksum;
pub use self::header::{Compression, DatasetType, Encryption, Layout};
pub use self::license::License;
pub use self::metadata::Metadata;
pub(crate) use self::rows::Rows;

/// What a file begins with.
pub const MAGIC: [u8; 4] = *b"ALDF";

/// Longest metadata, schema and index.
const MAX_SECTION: u64 = 64 << 20;

/// The input of a dataset.
pub(crate) type Source = Arc<dyn ReadAt + Send + Sync>;

/// A dataset whose payload has not been read: every length has been compared with the file.
pub struct Ald {
    source: Source,
    header: Header,
    metadata: Metadata,
    schema: Schema,
    encryption: Option<Encryption>,
    license: Option<License>,
    /// Of a streaming file, its chunks.
    chunks: Vec<index::Chunk>,
}

impl fmt::Debug for Ald {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ald").field("header", &self.header).finish_non_exhaustive()
    }
}

/// What was found when all of a file's bytes were looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The checksum at the end; none of a streaming file, which has none.
    pub checksum: Option<Checksum>,
    /// The signer, if a signature was demanded.
    pub signer: Option<Signed>,
}

impl Ald {
    /// Reads all but the payload.
    ///
    /// # Errors
    ///
    /// If the source fails, a length contradicts it, or a part is not valid.
    pub fn open(source: impl ReadAt + Send + Sync + 'static) -> Result<Self, Error> {
        let source: Source = Arc::new(source);
        let header = Header::read(&*source)?;
        let metadata = Metadata::read(&section(&source, &header.metadata, "the metadata")?)
            .map_err(|error| error.at(header.metadata.start))?;
        let schema = schema(&section(&source, &header.schema, "the schema")?)
            .map_err(|_| invalid("the schema is none, or cut off").at(header.schema.start))?;
        let encryption = header.key_block.as_ref().map(|_| header.encryption(&*source)).transpose()?;
        let license = header.license.as_ref().map(|range| License::read(&*source, range)).transpose()?;
        let chunks = match &header.index {
            Some(range) => {
                let index = section(&source, range, "the index")?;
                index::read(&index, &header).map_err(|error| error.at(range.start))?
            }
            None => Vec::new(),
        };
        Ok(Self { source, header, metadata, schema, encryption, license, chunks })
    }

    /// The layout.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.header.layout
    }

    /// Major and minor version.
    #[must_use]
    pub const fn version(&self) -> (u8, u8) {
        self.header.version
    }

    /// What the file says that it holds.
    #[must_use]
    pub const fn dataset_type(&self) -> DatasetType {
        self.header.dataset_type
    }

    /// Compression of the payload.
    #[must_use]
    pub const fn compression(&self) -> Compression {
        self.header.compression
    }

    /// What opens the payload, if it is encrypted.
    #[must_use]
    pub const fn encryption(&self) -> Option<Encryption> {
        self.encryption
    }

    /// Whether there is a signature.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.header.signature.is_some()
    }

    /// The licence at the end of the file. Nothing authenticates it.
    #[must_use]
    pub const fn license(&self) -> Option<&License> {
        self.license.as_ref()
    }

    /// Name, author and so on. A signature covers them, encryption does not.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Rows, as declared.
    #[must_use]
    pub fn n_rows_declared(&self) -> u64 {
        self.chunks.last().map_or(self.header.n_rows, |chunk| chunk.first_row + chunk.n_rows)
    }

    /// Chunks of a streaming file.
    #[must_use]
    pub fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Bytes of the payload, as stored.
    #[must_use]
    pub const fn payload_len(&self) -> u64 {
        self.header.payload.end - self.header.payload.start
    }

    /// Names and types of the columns, in the clear also of an encrypted file.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.schema.fields().iter().map(|field| &**field)
    }

    /// What a reader of the file should know, in sentences.
    #[must_use]
    pub fn notes(&self) -> Vec<&'static str> {
        let mut notes = Vec::new();
        if self.header.has_reserved_flags {
            notes.push("reserved flags are set, which this version of the format does not define");
        }
        if self.encryption.is_some() {
            notes
                .push("header, metadata and schema are neither encrypted nor bound to the encrypted payload");
        }
        if self.license.is_some() {
            notes.push("licence and terms are not signed: anyone can change them");
        }
        if self.header.layout == Layout::Streaming {
            notes.push("a streaming dataset has no checksum and no signature");
        }
        notes
    }

    /// Looks at every byte: compares the checksum, verifies the signature as demanded, decrypts the payload. What is returned reads
    /// the rows; those of a signed file from the bytes that were verified.
    pub(crate) fn verified(self, access: &Access<'_>) -> Result<(Rows, Verified), Error> {
        let demands_signature = !matches!(access.trust(), Trust::NoSignature);
        match (self.is_signed(), demands_signature) {
            (true, false) => return Err(ErrorKind::AldSigned {}.into()),
            (false, true) => return Err(ErrorKind::AldNotSigned {}.into()),
            _ => {}
        }
        match (self.encryption, access.key()) {
            (Some(_), None) => return Err(ErrorKind::AldEncrypted {}.into()),
            (None, Some(_)) => return Err(ErrorKind::AldNotEncrypted {}.into()),
            _ => {}
        }
        let mut verified = Verified { checksum: None, signer: None };
        if self.header.layout == Layout::Streaming {
            return Ok((Rows::of_chunks(self.source, &self.header, self.schema, self.chunks), verified));
        }
        let (found, held) = self.scan(access, &mut verified)?;
        verified.checksum = Some(found);
        let payload = match (held, self.encryption) {
            (Some(held), Some(_)) => Section::in_memory(access::decrypt(held, &self, access)?),
            (Some(held), None) => Section::in_memory(held),
            (None, _) => Section::new(Arc::clone(&self.source), self.header.payload.clone()),
        };
        Ok((Rows::of_payload(payload, &self.header, self.schema)?, verified))
    }

    /// Reads the file once: its checksum, the signature, and the payload if that has to be kept.
    fn scan(
        &self,
        access: &Access<'_>,
        verified: &mut Verified,
    ) -> Result<(Checksum, Option<Vec<u8>>), Error> {
        let Header { payload, signature, checksum, .. } = &self.header;
        let is_held = signature.is_some() || self.encryption.is_some();
        let mut verification = match signature {
            Some(range) => Some(access::Verification::begin(&*self.source, range, access.trust())?),
            None => None,
        };
        let payload_len = payload.end - payload.start;
        let mut held = Vec::new();
        if is_held {
            within("a payload that is encrypted or signed", payload_len, payload::MAX_HELD)?;
            let len = usize::try_from(payload_len).unwrap_or(usize::MAX);
            held.try_reserve_exact(len)
                .map_err(|_| Error::from(ErrorKind::AldMemory { bytes: payload_len }))?;
        }
        let mut sums = Checksums::new();
        let mut bytes = vec![0; 256 << 10];
        let mut at = 0;
        while at < *checksum {
            // Pieces end where the payload begins and ends.
            let ends = [payload.start, payload.end, *checksum];
            let next = ends.into_iter().find(|&end| end > at).unwrap_or(*checksum);
            let len = (next - at).min(bytes.len() as u64) as usize;
            let piece = bytes.get_mut(..len).unwrap_or_default();
            read(&*self.source, at, piece)?;
            sums.update(piece);
            if at < payload.end
                && let Some(verification) = &mut verification
            {
                verification.update(piece);
            }
            if is_held && (payload.start..payload.end).contains(&at) {
                held.extend_from_slice(piece);
            }
            at += len as u64;
        }
        let mut stored = [0; 4];
        read(&*self.source, *checksum, &mut stored)?;
        let found = sums.compare(u32::from_le_bytes(stored)).map_err(|error| error.at(*checksum))?;
        verified.signer = verification.map(access::Verification::finish).transpose()?;
        Ok((found, is_held.then_some(held)))
    }
}

/// The bytes of a part that is no payload.
fn section(source: &Source, range: &core::ops::Range<u64>, what: &'static str) -> Result<Vec<u8>, Error> {
    let len = range.end - range.start;
    within(what, len, MAX_SECTION).map_err(|error| error.at(range.start))?;
    let mut bytes = vec![0; len as usize];
    read(&**source, range.start, &mut bytes)?;
    Ok(bytes)
}

fn read(source: &dyn ReadAt, at: u64, out: &mut [u8]) -> Result<(), Error> {
    source.read_exact_at(at, out).map_err(|error| Error::caused(ErrorKind::Read {}, error).at(at))
}

/// The schema of an Arrow IPC stream without batches.
fn schema(bytes: &[u8]) -> Result<Schema, Error> {
    let mut messages = Messages::open(bytes)?;
    let schema = messages.schema();
    match (messages.next_batch()?, messages.into_input().is_empty()) {
        (None, true) => Ok(schema),
        _ => Err(ErrorKind::Arrow {}.into()),
    }
}

fn invalid(what: &'static str) -> Error {
    ErrorKind::Ald { what }.into()
}
