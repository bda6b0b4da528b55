//! Reading sealed files.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use apr_crypto::{
    Access, ChunkedMessage, ChunkedReader, Error as CryptoError, ErrorKind as CryptoErrorKind, FileKey,
    RecipientPublic, Signer,
};
use read_at::ReadAt;

use located_error::Subject;

use crate::engine::{DIRECTORY, PAYLOAD};
use crate::error::{Error, ErrorKind};
use crate::header::try_with_capacity;
use crate::recipients::{RECIPIENTS, Recipients};
use crate::stored::Stored;
use crate::{Part, Plan, SealedHeader, SealedLimits, directory};

/// What `restore` and `verify_all` read at once.
const PIECE: u64 = 1 << 20;
/// Bytes of the last chunk at most, which is read when a file is opened.
const LAST_CHUNK_MAX: u64 = 16_384 + 16;

/// An open sealed file: its header was verified, and every byte that is read is decrypted and verified first.
///
/// Over any [`ReadAt`]: memory, a file, a mapping, a remote object. Reading a range reads the chunks that hold it, and of a
/// signed file the leaves around them and their proofs.
pub struct SealedReader<'k, R> {
    source: R,
    header: SealedHeader,
    signer: Option<Signer<'k>>,
    private: BTreeMap<String, String>,
    /// For each stanza, whose it is.
    recipients: Option<Vec<Option<RecipientPublic>>>,
    plan: Plan,
    /// Of an encrypted file.
    message: Option<ChunkedMessage>,
}

impl<'k, R: ReadAt> SealedReader<'k, R> {
    /// Opens a file: the signature is verified before anything is decrypted, and the directory is authentic before it is read.
    ///
    /// # Errors
    ///
    /// Those of [`SealedHeader::read`] and [`SealedHeader::verify`]: a signed file needs some trust, at least
    /// [`Trust::Anyone`](apr_crypto::Trust::Anyone). [`ErrorKind::Encrypted`] without a key for an encrypted file,
    /// [`ErrorKind::NotEncrypted`] with one for a plain one, [`ErrorKind::WrongKeyType`] with one of the other kind;
    /// [`ErrorKind::TooManyStanzas`]; [`ErrorKind::DecryptionFailed`] for another key and for damage alike;
    /// [`ErrorKind::Directory`];
    /// [`ErrorKind::Crypto`] for a password whose cost is out of bounds and for a source that fails.
    pub fn open(source: R, access: &Access<'k>, limits: &SealedLimits) -> Result<Self, Error> {
        let header = SealedHeader::read(&source, limits)?;
        Self::with_header(source, header, access, limits)
    }

    /// Opens a file whose header was read from the same source, which is not read again.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); [`ErrorKind::Directory`] also for the header of another reader, which has given up its directory.
    pub fn with_header(
        source: R,
        mut header: SealedHeader,
        access: &Access<'k>,
        limits: &SealedLimits,
    ) -> Result<Self, Error> {
        if !header.has_directory() {
            return Err(ErrorKind::Directory { what: "it is not in a header that was opened before" }.into());
        }
        let signer = header.verify(access.trust())?;
        let file_key = unlock(&header, access, limits)?.map(|(key, _)| key);
        let (private, plan) = match &file_key {
            None => directory::decode(header.directory_bytes(), limits.parts)?,
            Some(key) => {
                let opened = key.open_chunked(&header.context(DIRECTORY), header.directory_bytes());
                directory::decode(&opened.map_err(hide)?, limits.parts)?
            }
        };
        header.forget_directory();
        let message = match &file_key {
            None => None,
            Some(key) => Some(open_message(&source, &header, key)?),
        };
        let recipients = match (&file_key, header.current_slot()) {
            (Some(key), Some(slot)) => {
                let listed = Recipients::read(&slot.records, key, &header.context(RECIPIENTS))?;
                listed.map(|listed| slot.stanzas().map(|stanza| listed.of(stanza)).collect())
            }
            _ => None,
        };
        let [_, stored_len, _] = header.lens();
        let payload_len = message.as_ref().map_or(stored_len, |message| message.layout().plaintext_len());
        if plan.payload_len() != payload_len {
            return Err(ErrorKind::Directory { what: "parts of another length than the payload" }.into());
        }
        Ok(Self { source, header, signer, private, recipients, plan, message })
    }

    /// The header, now verified.
    #[must_use]
    pub const fn header(&self) -> &SealedHeader {
        &self.header
    }

    /// Who signed the file, if it is signed.
    #[must_use]
    pub const fn signer(&self) -> Option<Signer<'k>> {
        self.signer
    }

    /// What anyone can read; authentic.
    #[must_use]
    pub const fn public_metadata(&self) -> &BTreeMap<String, String> {
        self.header.public_declared()
    }

    /// What only those can read who can open the file; authentic.
    #[must_use]
    pub const fn private_metadata(&self) -> &BTreeMap<String, String> {
        &self.private
    }

    /// The recipient of each of the [stanzas](SealedHeader::stanzas), if listed; empty for a file without a list. The
    /// list is what its writer made it: any recipient, or with bound recipients the signer.
    #[must_use]
    pub fn recipients(&self) -> Option<&[Option<RecipientPublic>]> {
        self.recipients.as_deref()
    }

    /// The parts in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        self.plan.parts()
    }

    /// The place of a tensor among the parts.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.plan.find(name)
    }

    /// Bytes of all parts: of the original file.
    #[must_use]
    pub const fn content_len(&self) -> u64 {
        self.plan.content_len()
    }

    /// Fills `out` with bytes of a part, from `offset` on; with zeros if anything is wrong with any of them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SignatureInvalid`] or [`ErrorKind::DecryptionFailed`] for content that was changed;
    /// [`ErrorKind::Crypto`] if there is no such part, if it does not have these bytes, or if the source fails.
    pub fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let len = out.len() as u64;
        let available = self.plan.parts().get(part).map_or(0, Part::len);
        let place = self
            .plan
            .parts()
            .get(part)
            .filter(|_| offset.checked_add(len).is_some_and(|end| end <= available));
        let place =
            place.ok_or_else(|| CryptoError::from(CryptoErrorKind::OutOfRange { offset, len, available }))?;
        self.read(place.offset() + offset, out)
    }

    /// Fills `out` with bytes of the payload, from `offset` on: of parts that follow each other, and what is between them, so that no
    /// chunk is read twice. With zeros if anything is wrong with any of them.
    ///
    /// # Errors
    ///
    /// As [`read_part`](Self::read_part).
    pub fn read_payload(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let (len, available) = (out.len() as u64, self.plan.payload_len());
        if offset.checked_add(len).is_none_or(|end| end > available) {
            return Err(CryptoError::from(CryptoErrorKind::OutOfRange { offset, len, available }).into());
        }
        self.read(offset, out)
    }

    /// Tells the source that a range of the payload will be read, from its beginning to its end.
    pub fn will_read_payload(&self, range: Range<u64>) {
        self.will_read(range);
    }

    /// Tells the source that a part will be read, from its beginning to its end.
    pub fn will_read_part(&self, part: usize) {
        if let Some(part) = self.plan.parts().get(part) {
            self.will_read(part.offset()..part.offset().saturating_add(part.len()));
        }
    }

    /// Tells the source that a range of the plaintext of the payload will be read.
    fn will_read(&self, range: Range<u64>) {
        let (offset, len) = (range.start, range.end.saturating_sub(range.start));
        let stored = match &self.message {
            None => range,
            Some(message) => match message.layout().sealed_range(offset, len) {
                Ok(range) => range,
                Err(_) => return,
            },
        };
        if let Ok(source) = Stored::new(&self.source, &self.header) {
            source.will_read(stored);
        }
    }

    /// The bytes of one tensor.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorNotFound`], [`ErrorKind::OutOfMemory`], and as [`read_part`](Self::read_part).
    pub fn tensor(&self, name: &str) -> Result<Vec<u8>, Error> {
        let found = self.find(name).and_then(|idx| Some((idx, self.parts().get(idx)?.len())));
        let (idx, len) =
            found.ok_or_else(|| Error::from(ErrorKind::TensorNotFound).of(Subject::tensor(name)))?;
        // Not more than the file has.
        let mut bytes = try_with_capacity(len)?;
        bytes.resize(len as usize, 0);
        self.will_read_part(idx);
        self.read_part(idx, 0, &mut bytes).map_err(|error| error.of(Subject::tensor(name)))?;
        Ok(bytes)
    }

    /// Hands the original file to `take`, piece by piece: all parts in order. What was handed out is authentic, but the end
    /// may be missing if there is an error: keep nothing then.
    ///
    /// # Errors
    ///
    /// As [`read_part`](Self::read_part), and errors of `take`.
    pub fn restore_with(&self, mut take: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut piece = vec![0; PIECE.min(self.plan.payload_len()) as usize];
        self.will_read(0..self.plan.payload_len());
        for part in self.parts() {
            let (mut at, end) = (part.offset(), part.offset() + part.len());
            while at < end {
                // Pieces end where chunks do: no chunk is opened twice.
                let until = (at - at % PIECE).saturating_add(PIECE).min(end);
                let (now, _) = piece.split_at_mut((until - at) as usize);
                self.read(at, now)?;
                take(now)?;
                at = until;
            }
        }
        Ok(())
    }

    /// Writes the original file: all parts in order. Keep nothing of it if there is an error.
    ///
    /// # Errors
    ///
    /// As [`restore_with`](Self::restore_with); [`ErrorKind::Io`].
    #[cfg(feature = "std")]
    pub fn restore(&self, out: &mut impl std::io::Write) -> Result<(), Error> {
        self.restore_with(|bytes| Ok(out.write_all(bytes)?))
    }

    /// Reads and verifies the whole file: the payload, including bytes of no part, and the hashes after it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SignatureInvalid`], [`ErrorKind::DecryptionFailed`]; [`ErrorKind::Crypto`] if the source fails.
    pub fn verify_all(&self) -> Result<(), Error> {
        self.header.verify_stored(&self.source)?;
        let len = self.plan.payload_len();
        let mut piece = vec![0; PIECE.min(len) as usize];
        self.will_read(0..len);
        for at in (0..len).step_by(PIECE as usize).filter(|_| self.message.is_some()) {
            let (now, _) = piece.split_at_mut(PIECE.min(len - at) as usize);
            self.read(at, now)?;
        }
        Ok(())
    }

    /// The same reader without the names of its trusted keys, for programs that keep it longer than the keys:
    /// the name of the [`signer`](Self::signer) is not known then.
    #[must_use]
    pub fn forget_names(self) -> SealedReader<'static, R> {
        let Self { source, header, signer, private, recipients, plan, message } = self;
        let signer = signer.map(|signer| match signer {
            Signer::Trusted(key, _) => Signer::Trusted(key, None),
            Signer::Unknown(key) => Signer::Unknown(key),
        });
        SealedReader { source, header, signer, private, recipients, plan, message }
    }

    /// What the file is read from.
    #[must_use]
    pub const fn source(&self) -> &R {
        &self.source
    }

    /// What the file is read from, for a cache that is filled between reads. Bytes that were read must not change.
    #[must_use]
    pub const fn source_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Gives the source back.
    #[must_use]
    pub fn into_source(self) -> R {
        self.source
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let stored = Stored::new(&self.source, &self.header)?;
        let done = match &self.message {
            None => stored.read_exact_at(offset, out).inspect_err(|_| out.fill(0)).map_err(CryptoError::from),
            Some(message) => message.over(stored).and_then(|reader| reader.read_exact_at(offset, out)),
        };
        done.map_err(hide)
    }
}

impl<R> fmt::Debug for SealedReader<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedReader").field("header", &self.header).finish_non_exhaustive()
    }
}

/// Opens the message of the payload by its head, which selects the key of all chunks. Of a signed file, it is compared with the tree first:
/// anyone who has the file key could make another; and the length is signed. Of others, the last chunk authenticates the length.
fn open_message(source: &impl ReadAt, header: &SealedHeader, key: &FileKey) -> Result<ChunkedMessage, Error> {
    let stored = Stored::new(source, header)?;
    let len = stored.total_len();
    stored.will_read(0..len.min(1));
    let context = header.context(PAYLOAD);
    let opened = match header.root_declared() {
        Some(_) => ChunkedReader::open_of_known_len(stored, key, &context),
        None => {
            stored.will_read(len.saturating_sub(LAST_CHUNK_MAX)..len);
            ChunkedReader::open(stored, key, &context)
        }
    };
    opened.map(|reader| reader.message()).map_err(hide)
}

/// The file key and the place of the stanza it came out of; none for a file that is not encrypted.
pub(crate) fn unlock(
    header: &SealedHeader,
    access: &Access<'_>,
    limits: &SealedLimits,
) -> Result<Option<(FileKey, usize)>, Error> {
    let at = header.slot_idx().map_or(10, |idx| header.places.slot(idx).start);
    match (header.current_slot(), access.key()) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(ErrorKind::NotEncrypted.at(at)),
        (Some(_), None) => Err(ErrorKind::Encrypted.at(at)),
        (Some(slot), Some(key)) => {
            // Without a place: that of a wrong key would differ from that of damage.
            slot.unlock(key, &header.stanza_context(), header.surroundings(), limits).map(Some)
        }
    }
}

/// The error of a reader of chunks or leaves, without details that an attacker could use.
fn hide(error: CryptoError) -> Error {
    match error.kind() {
        CryptoErrorKind::Open | CryptoErrorKind::ChunkedLength { .. } => ErrorKind::DecryptionFailed.into(),
        CryptoErrorKind::Tree => ErrorKind::SignatureInvalid.into(),
        _ => error.into(),
    }
}

/// Opens a sealed file on disk.
///
/// # Errors
///
/// [`ErrorKind::File`] if it is no regular file or cannot be opened, and those of [`SealedReader::open`].
#[cfg(all(feature = "std", any(unix, windows)))]
pub fn open_file<'k>(
    path: impl AsRef<std::path::Path>,
    access: &Access<'k>,
    limits: &SealedLimits,
) -> Result<SealedReader<'k, read_at::FileSource>, Error> {
    let regular = durable_file::open_regular(path.as_ref(), u64::MAX)?;
    let len = regular.len();
    SealedReader::open(read_at::FileSource::with_len(regular.into_file(), len), access, limits)
}
