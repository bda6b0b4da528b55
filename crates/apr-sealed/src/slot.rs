//! Key slots: the file key, encrypted to each recipient or with a password.
//!
//! | offset | size | field |
//! |---:|---:|---|
//! | 0 | 8 | revision |
//! | 8 | 2 | number of stanzas |
//! | 10 | 2 | zero |
//! | 12 | 4 | length of the stanzas |
//! | 16 | 64 | signature over the stanzas, if recipients are bound |
//! | 80 | | stanzas, then zeros |
//! | -64 | 32 | authentication code |
//! | -32 | 32 | SHA-256 of everything before |

use alloc::vec;
use alloc::vec::Vec;

use apr_crypto::{
    Argon2Cost, Argon2Limits, DecryptionKey, FileKey, MacKey, PasswordStanza, RecipientStanza, Signature,
    SigningKey, VerifyingKey, dsse_pae,
};
use sha2::{Digest as _, Sha256};

use crate::SealedLimits;
use crate::error::{Error, ErrorKind};
use crate::fixed::{SLOT_ALIGN, SLOT_MAX, take};
use crate::recipients::list_len;

/// Length of the fields before the stanzas.
const HEAD_LEN: usize = 16;
const BODY_AT: usize = HEAD_LEN + Signature::LEN;
const MAC_LEN: usize = MacKey::TAG_LEN;
const CHECKSUM_LEN: usize = 32;
const TAIL_LEN: usize = MAC_LEN + CHECKSUM_LEN;
/// Type and length of a stanza.
pub(crate) const RECORD_HEAD_LEN: usize = 4;

const RECIPIENT: u16 = 1;
const PASSWORD: u16 = 2;
/// Not a stanza: the list of recipients.
const LIST: u16 = 3;

/// Label of the key that authenticates slots and everything before them.
const MAC_LABEL: &str = "apr-sealed-v1 header";
const SIGNED_TYPE: &str = "application/vnd.apr.sealed-recipients.v1";

/// The kind of key that a stanza is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StanzaKind {
    /// An X25519 key. The file does not show which one.
    Recipient,
    /// A password.
    Password,
    /// A kind that later releases define.
    Other(u16),
}

/// A stanza in its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    kind: u16,
    body: Vec<u8>,
}

impl Record {
    pub(crate) fn recipient(stanza: &RecipientStanza) -> Self {
        Self { kind: RECIPIENT, body: stanza.to_bytes().to_vec() }
    }

    pub(crate) fn password(stanza: &PasswordStanza) -> Self {
        Self { kind: PASSWORD, body: stanza.to_bytes().to_vec() }
    }

    /// A list of recipients, encrypted.
    pub(crate) const fn list(body: Vec<u8>) -> Self {
        Self { kind: LIST, body }
    }

    pub(crate) const fn is_password(&self) -> bool {
        self.kind == PASSWORD
    }

    pub(crate) const fn is_list(&self) -> bool {
        self.kind == LIST
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn kind(&self) -> StanzaKind {
        match self.kind {
            RECIPIENT => StanzaKind::Recipient,
            PASSWORD => StanzaKind::Password,
            other => StanzaKind::Other(other),
        }
    }

    /// None of a record that is no stanza of a password.
    fn password_stanza(&self, limits: &Argon2Limits) -> Option<Result<PasswordStanza, Error>> {
        let bytes = self.body.as_slice().try_into().ok().filter(|_| self.is_password())?;
        Some(PasswordStanza::from_bytes(bytes, limits).map_err(Error::from))
    }

    /// The file key, if this stanza is for `key`.
    fn unwrap(
        &self,
        key: DecryptionKey<'_>,
        context: &[u8],
        limits: &Argon2Limits,
    ) -> Result<Option<FileKey>, Error> {
        match (self.kind, key) {
            (RECIPIENT, DecryptionKey::Recipient(secret)) => {
                let Ok(bytes) = self.body.as_slice().try_into() else { return Ok(None) };
                let stanza = RecipientStanza::from_bytes(bytes).ok();
                Ok(stanza.and_then(|stanza| stanza.unwrap(secret, context).ok()))
            }
            (PASSWORD, DecryptionKey::Password(password)) => {
                let Some(stanza) = self.password_stanza(limits) else { return Ok(None) };
                match stanza?.unwrap(password, context) {
                    Ok(key) => Ok(Some(key)),
                    Err(error) if *error.kind() == apr_crypto::ErrorKind::Open => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            _ => Ok(None),
        }
    }
}

/// Bytes that stanzas take in a slot.
pub(crate) fn records_len(records: &[Record]) -> u64 {
    records.iter().map(|record| (RECORD_HEAD_LEN + record.body.len()) as u64).sum()
}

/// Length of a slot with capacity for this many recipients, and for a list of them if the file has one.
pub(crate) fn len_for(recipients: usize, is_listed: bool) -> Result<u32, Error> {
    let stanza = (RECORD_HEAD_LEN + RecipientStanza::LEN) as u64;
    let needed = |recipients: usize| {
        let list = if is_listed { list_len(recipients) } else { 0 };
        (recipients as u64).saturating_mul(stanza).saturating_add((BODY_AT + TAIL_LEN) as u64 + list)
    };
    if needed(recipients) > SLOT_MAX {
        let most = (SLOT_MAX / stanza) as usize;
        let limit = (0..most).rev().find(|count| needed(*count) <= SLOT_MAX).unwrap_or_default() as u64;
        return Err(ErrorKind::Limit { what: "recipients", found: recipients as u64, limit }.into());
    }
    Ok(needed(recipients).next_multiple_of(SLOT_ALIGN) as u32)
}

/// What a slot authenticates beside itself: fixed header, signer block, public metadata.
pub(crate) type Surroundings<'f> = [&'f [u8]; 3];

/// A slot to be written.
pub(crate) struct NewSlot<'s> {
    pub(crate) len: usize,
    pub(crate) revision: u64,
    pub(crate) records: &'s [Record],
    /// What the stanzas are bound to.
    pub(crate) context: &'s [u8; 32],
    /// Of a file with bound recipients.
    pub(crate) signer: Option<&'s SigningKey>,
}

impl NewSlot<'_> {
    pub(crate) fn to_bytes(&self, mac: &MacKey, surroundings: Surroundings<'_>) -> Result<Vec<u8>, Error> {
        let (needed, available) =
            (records_len(self.records), self.len.saturating_sub(BODY_AT + TAIL_LEN) as u64);
        let count = u16::try_from(self.records.len()).ok().filter(|_| needed <= available);
        let count = count.ok_or(ErrorKind::SlotsFull { needed, available })?;
        let mut bytes = Vec::with_capacity(self.len);
        bytes.extend_from_slice(&self.revision.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        // At most `available`.
        bytes.extend_from_slice(&(needed as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; Signature::LEN]);
        for record in self.records {
            bytes.extend_from_slice(&record.kind.to_le_bytes());
            bytes.extend_from_slice(&(record.body.len() as u16).to_le_bytes());
            bytes.extend_from_slice(&record.body);
        }
        bytes.resize(self.len - TAIL_LEN, 0);
        if let Some(signer) = self.signer {
            let signature = signer.sign(&signed_bytes(&bytes, self.context));
            let place = bytes.get_mut(HEAD_LEN..BODY_AT).unwrap_or_default();
            place.copy_from_slice(&signature.to_bytes());
        }
        let [fixed, block, public] = surroundings;
        let code = mac.tag(&[fixed, block, public, &bytes]);
        bytes.extend_from_slice(&code);
        let checksum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&checksum);
        Ok(bytes)
    }
}

/// A slot with a valid checksum, not authenticated.
#[derive(Clone, Debug)]
pub(crate) struct Slot<'f> {
    bytes: &'f [u8],
    pub(crate) revision: u64,
    pub(crate) records: Vec<Record>,
}

impl<'f> Slot<'f> {
    /// None if the slot was never written, was wiped, or writing it was interrupted.
    pub(crate) fn parse(bytes: &'f [u8]) -> Option<Self> {
        let (covered, checksum) = bytes.split_last_chunk::<CHECKSUM_LEN>()?;
        if *Sha256::digest(covered) != *checksum {
            return None;
        }
        let (body, _) = covered.split_last_chunk::<MAC_LEN>()?;
        let (mut head, body) = body.split_at_checked(BODY_AT)?;
        let revision = u64::from_le_bytes(take(&mut head));
        let count = u16::from_le_bytes(take(&mut head));
        let reserved: [u8; 2] = take(&mut head);
        let used = u32::from_le_bytes(take(&mut head)) as usize;
        let (mut stanzas, rest) = body.split_at_checked(used)?;
        if reserved != [0; 2] || rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        let mut records = Vec::new();
        for _ in 0..count {
            let (record, after) = stanzas.split_first_chunk::<RECORD_HEAD_LEN>()?;
            let [kind_low, kind_high, len_low, len_high] = *record;
            let len = u16::from_le_bytes([len_low, len_high]);
            let (body, after) = after.split_at_checked(len.into())?;
            records.push(Record { kind: u16::from_le_bytes([kind_low, kind_high]), body: body.to_vec() });
            stanzas = after;
        }
        let has_password = records.iter().any(Record::is_password);
        let is_sound = stanzas.is_empty()
            && !records.iter().all(Record::is_list)
            && (!has_password || records.len() == 1);
        is_sound.then_some(Self { bytes, revision, records })
    }

    /// The records that open the file.
    pub(crate) fn stanzas(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| !record.is_list())
    }

    /// What trying a password costs.
    pub(crate) fn password_cost(&self, limits: &Argon2Limits) -> Option<Result<Argon2Cost, Error>> {
        let stanza = self.records.iter().find_map(|record| record.password_stanza(limits))?;
        Some(stanza.map(|stanza| *stanza.cost()))
    }

    /// Whether the signer of the file made this list of recipients.
    pub(crate) fn verify(&self, key: &VerifyingKey, context: &[u8; 32]) -> bool {
        let Some(body) = self.bytes.get(..self.bytes.len().saturating_sub(TAIL_LEN)) else { return false };
        let signature = body.get(HEAD_LEN..BODY_AT).and_then(|bytes| bytes.try_into().ok());
        let verified =
            |bytes| key.verify(&signed_bytes(body, context), &Signature::from_bytes(bytes)).is_ok();
        signature.is_some_and(verified)
    }

    /// The file key and the place of the stanza it came out of, if slot and surroundings are authentic under it.
    pub(crate) fn unlock(
        &self,
        key: DecryptionKey<'_>,
        context: &[u8; 32],
        surroundings: Surroundings<'_>,
        limits: &SealedLimits,
    ) -> Result<(FileKey, usize), Error> {
        let is_for_password = self.records.iter().any(Record::is_password);
        match (key, is_for_password) {
            (DecryptionKey::Recipient(_), true) => {
                return Err(ErrorKind::WrongKeyType { expected: "a password" }.into());
            }
            (DecryptionKey::Password(_), false) => {
                return Err(ErrorKind::WrongKeyType { expected: "a recipient's secret key" }.into());
            }
            _ => {}
        }
        let count = self.stanzas().count();
        if count > limits.stanzas {
            let (found, limit) = (count as u64, limits.stanzas as u64);
            return Err(ErrorKind::TooManyStanzas { found, limit }.into());
        }
        let (covered, code) = self.bytes.split_last_chunk::<TAIL_LEN>().ok_or(ErrorKind::DecryptionFailed)?;
        let code = take::<MAC_LEN>(&mut code.as_slice());
        let [fixed, block, public] = surroundings;
        for (idx, record) in self.records.iter().enumerate() {
            let Some(file_key) = record.unwrap(key, context, &limits.argon2)? else { continue };
            if mac_key(&file_key).verify(&[fixed, block, public, covered], &code).is_ok() {
                return Ok((file_key, idx));
            }
        }
        Err(ErrorKind::DecryptionFailed.into())
    }
}

/// The key that authenticates slots.
pub(crate) fn mac_key(file_key: &FileKey) -> MacKey {
    file_key.mac_key(MAC_LABEL)
}

/// What is signed of a slot without its tail: everything but the place of the signature, bound to the file.
fn signed_bytes(body: &[u8], context: &[u8; 32]) -> Vec<u8> {
    let (head, stanzas) = (body.get(..HEAD_LEN), body.get(BODY_AT..));
    let payload = [context.as_slice(), head.unwrap_or_default(), stanzas.unwrap_or_default()].concat();
    dsse_pae(SIGNED_TYPE, &payload)
}

/// A slot in which nothing is.
pub(crate) fn empty(len: u32) -> Vec<u8> {
    vec![0; len as usize]
}
