//! Changing the recipients of a sealed file in place.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use apr_crypto::{Access, Argon2Cost, FileKey, Fingerprint, Password, RecipientPublic, Rng, SigningKey};
use read_at::ReadAt;

use located_error::Subject;

use crate::error::{Error, ErrorKind};
use crate::options::check_password;
use crate::reader::unlock;
use crate::recipients::{RECIPIENTS, Recipients};
use crate::slot::{self, NewSlot, Record};
use crate::{SealedHeader, SealedLimits};

/// How to change the recipients of a file: more of them; or, [without the others](Self::without_others), only the caller and
/// those named here.
#[derive(Clone, Debug, Default)]
pub struct RekeyOptions<'k> {
    recipients: Vec<RecipientPublic>,
    password: Option<(&'k Password, Argon2Cost)>,
    removes_others: bool,
    removed: Vec<Fingerprint>,
    signer: Option<&'k SigningKey>,
}

impl<'k> RekeyOptions<'k> {
    /// One more recipient.
    #[must_use]
    pub fn for_recipient(mut self, recipient: RecipientPublic) -> Self {
        self.recipients.push(recipient);
        self
    }

    /// A password in place of all recipients and passwords. Only together with [`without_others`](Self::without_others): a
    /// password excludes recipients.
    #[must_use]
    pub const fn with_password(self, password: &'k Password) -> Self {
        self.with_password_at(password, Argon2Cost::RFC_9106)
    }

    /// The same, at this cost per guess.
    #[must_use]
    pub const fn with_password_at(mut self, password: &'k Password, cost: Argon2Cost) -> Self {
        self.password = Some((password, cost));
        self
    }

    /// Only the caller and those named here; recipients replace a password.
    ///
    /// Former recipients may have kept the file key, or a copy of the file, and can still decrypt the content. Seal content that
    /// they must not see again, under a new key.
    #[must_use]
    pub const fn without_others(mut self) -> Self {
        self.removes_others = true;
        self
    }

    /// Without the recipient whose public key has this fingerprint, found in the file's list of recipients. Removed recipients
    /// may have kept the file key, as with [`without_others`](Self::without_others).
    #[must_use]
    pub fn without(mut self, recipient: Fingerprint) -> Self {
        self.removed.push(recipient);
        self
    }

    /// With the key that signed the file, where recipients are bound.
    #[must_use]
    pub const fn signed_by(mut self, key: &'k SigningKey) -> Self {
        self.signer = Some(key);
        self
    }
}

/// Two writes that change the recipients of a file, and nothing else.
///
/// The first writes the new recipients into the slot that is not in use; it takes effect once it is on disk. The second wipes
/// the old slot. A crash at any point leaves a file that opens for the old or for the new recipients. `rekey` (feature `std`)
/// applies them to a file.
///
/// ```
/// use apr_crypto::Access;
/// use apr_sealed::{Part, Plan, RekeyOptions, Rekeying, SealOptions, SealedLimits, SealedReader};
/// use apr_crypto::{OsRandom, RecipientSecret};
///
/// let rng = &mut OsRandom;
/// let (alice, bob) = (RecipientSecret::generate(rng)?, RecipientSecret::generate(rng)?);
/// let plan = Plan::new([Part::raw(7)])?;
/// let options = SealOptions::default().for_recipient(alice.public());
/// let mut file = apr_sealed::to_vec(&plan, b"weights", &options, rng)?;
///
/// let limits = SealedLimits::default();
/// let for_bob = RekeyOptions::default().for_recipient(bob.public());
/// let rekeying = Rekeying::prepare(&file, &Access::default().with_recipient(&alice), &for_bob, &limits, rng)?;
/// for (offset, bytes) in rekeying.writes() {
///     // A file is synced after each.
///     file[offset as usize..][..bytes.len()].copy_from_slice(bytes);
/// }
/// assert!(SealedReader::open(&file, &Access::default().with_recipient(&bob), &limits).is_ok());
/// # Ok::<(), apr_sealed::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rekeying {
    writes: [(u64, Vec<u8>); 2],
}

impl Rekeying {
    /// Opens the file with `access`, which has to trust a key if the file is signed, and prepares the writes.
    ///
    /// # Errors
    ///
    /// Those of opening ([`SealedReader::open`](crate::SealedReader::open)); [`ErrorKind::RecipientsBound`] without the
    /// signing key of a file whose recipients are bound; [`ErrorKind::RecipientsUnlisted`], [`ErrorKind::RecipientUnknown`] for a
    /// recipient who cannot be removed by name, [`ErrorKind::RecipientListed`] for one that is listed already, [`ErrorKind::NoRecipientLeft`] if none is left; [`ErrorKind::SlotsFull`];
    /// [`ErrorKind::InvalidValue`] for a password beside recipients, [`ErrorKind::Limit`] for an empty one; [`ErrorKind::NotEncrypted`];
    /// [`ErrorKind::Crypto`] as sealing has it.
    pub fn prepare(
        source: &(impl ReadAt + ?Sized),
        access: &Access<'_>,
        options: &RekeyOptions<'_>,
        limits: &SealedLimits,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, Error> {
        let header = SealedHeader::read(source, limits)?;
        header.verify(access.trust())?;
        let unlocked = unlock(&header, access, limits)?;
        let ((file_key, own), slot) =
            unlocked.zip(header.current_slot()).ok_or_else(|| ErrorKind::NotEncrypted.at(10))?;
        let signer = header.fixed.is_bound.then(|| {
            let signer = options.signer.filter(|key| *key.verifying_key().as_bytes() == header.signer_key());
            signer.ok_or(ErrorKind::RecipientsBound)
        });
        let signer = signer.transpose()?;
        let context = header.stanza_context();
        let list_context = header.context(RECIPIENTS);
        let mut listed = Recipients::read(&slot.records, &file_key, &list_context)?;
        let mut records = records(slot.records, own, &file_key, &context, listed.as_mut(), options, rng)?;
        if let Some(listed) = listed.filter(|_| !records.iter().any(Record::is_password)) {
            records.append(&mut listed.to_records(&records, &file_key, &list_context, rng)?);
        }
        let len = header.fixed.slot_len;
        let revision = slot.revision.checked_add(1).ok_or(ErrorKind::SizeOverflow)?;
        let new = NewSlot { len: len as usize, revision, records: &records, context: &context, signer };
        let new = new.to_bytes(&slot::mac_key(&file_key), header.surroundings())?;
        let old = header.slot_idx().unwrap_or_default();
        let place = |idx: usize| header.places.slot(idx).start;
        Ok(Self { writes: [(place(1 - old), new), (place(old), slot::empty(len))] })
    }

    /// The writes, in order: offset and bytes. The second must not begin before the first is on disk.
    #[must_use]
    pub fn writes(&self) -> [(u64, &[u8]); 2] {
        self.writes.each_ref().map(|(offset, bytes)| (*offset, bytes.as_slice()))
    }
}

fn records(
    old: Vec<Record>,
    own: usize,
    file_key: &FileKey,
    context: &[u8; 32],
    mut listed: Option<&mut Recipients>,
    options: &RekeyOptions<'_>,
    rng: &mut (impl Rng + ?Sized),
) -> Result<Vec<Record>, Error> {
    let alone = |what| Err(ErrorKind::InvalidValue { what }.into());
    if let Some((password, cost)) = &options.password {
        check_password(password)?;
        return match options.removes_others && options.recipients.is_empty() {
            true => {
                Ok([Record::password(&file_key.wrap_with_password(rng, password, cost, context)?)].into())
            }
            false => alone("a password stands alone: remove all others with it"),
        };
    }
    let has_password = old.iter().any(Record::is_password);
    let mut records: Vec<Record> = match (options.removes_others, has_password, options.recipients.is_empty())
    {
        (false, true, false) => return alone("a password stands alone: recipients have to take its place"),
        (false, ..) => old,
        (true, true, false) => Vec::new(),
        (true, ..) => old.into_iter().nth(own).into_iter().collect(),
    };
    records.retain(|record| !record.is_list());
    for name in &options.removed {
        let listed = listed.as_ref().ok_or(ErrorKind::RecipientsUnlisted)?;
        let before = records.len();
        records.retain(|record| !listed.is_of(record, name));
        if records.len() == before {
            return Err(Error::from(ErrorKind::RecipientUnknown).of(Subject::entry(&name.to_string())));
        }
    }
    for recipient in &options.recipients {
        let name = recipient.fingerprint();
        if listed.as_ref().is_some_and(|listed| records.iter().any(|record| listed.is_of(record, &name))) {
            return Err(Error::from(ErrorKind::RecipientListed).of(Subject::entry(&name.to_string())));
        }
        let stanza = Record::recipient(&file_key.wrap_for(rng, recipient, context)?);
        listed.iter_mut().for_each(|listed| listed.insert(&stanza, *recipient));
        records.push(stanza);
    }
    match records.is_empty() {
        true => Err(ErrorKind::NoRecipientLeft.into()),
        false => Ok(records),
    }
}

/// Changes who can open the file at `path`, in place and without touching the payload. A crash at any point leaves a file that
/// opens with the old list of recipients or the new one.
///
/// # Errors
///
/// Those of [`Rekeying::prepare`]; [`ErrorKind::File`] if it is no regular file or cannot be opened; [`ErrorKind::Io`]. After an error of writing, the old list still counts unless the new one
/// was whole.
#[cfg(all(feature = "std", any(unix, windows)))]
pub fn rekey(
    path: impl AsRef<std::path::Path>,
    access: &Access<'_>,
    options: &RekeyOptions<'_>,
    limits: &SealedLimits,
) -> Result<(), Error> {
    use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

    // Opened once: the file that is checked is the file that is written to.
    let mut file = durable_file::open_regular_for_update(path.as_ref(), u64::MAX)?.into_file();
    // Two that change one file at once would each write over what the other wrote.
    lock(&file)?;
    let source = read_at::FileSource::new(file.try_clone()?)?;
    let rekeying = Rekeying::prepare(&source, access, options, limits, &mut apr_crypto::OsRandom)?;
    for (offset, bytes) in rekeying.writes() {
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)?;
        file.sync_data()?;
        let mut stored = alloc::vec![0; bytes.len()];
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut stored)?;
        if stored != bytes {
            return Err(ErrorKind::KeySlots.at(offset));
        }
    }
    Ok(())
}

/// Locks a file that another program may be changing, which takes it moments.
#[cfg(all(feature = "std", any(unix, windows)))]
fn lock(file: &std::fs::File) -> std::io::Result<()> {
    use std::fs::TryLockError;
    use std::{io, thread, time};

    const ATTEMPTS: u32 = 50;
    const PAUSE: time::Duration = time::Duration::from_millis(100);
    for _ in 0..ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another program holds a lock on the file"))
}
