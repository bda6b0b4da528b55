//! The encrypted list of recipients.
//!
//! A stanza does not name its recipient. A file may have records beside its stanzas that do: chunked messages of entries, 48 bytes each.
//!
//! | offset | size | field |
//! |---:|---:|---|
//! | 0 | 16 | beginning of SHA-256 of the stanza's body |
//! | 16 | 32 | the recipient's public key |

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use apr_crypto::{ChunkedLayout, FileKey, Fingerprint, RecipientPublic, Rng};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, ErrorKind};
use crate::fixed::take;
use crate::slot::{RECORD_HEAD_LEN, Record};

/// What the list is bound to beside the header.
pub(crate) const RECIPIENTS: &str = "recipients";

const ID_LEN: usize = 16;
const ENTRY_LEN: usize = ID_LEN + RecipientPublic::LEN;
/// Entries of a record: the length of a record has 16 bits.
const ENTRIES: usize = 1024;

type StanzaId = [u8; ID_LEN];

fn id(stanza: &Record) -> StanzaId {
    take(&mut Sha256::digest(stanza.body()).as_slice())
}

/// The recipients of a file that has a list of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recipients(BTreeMap<StanzaId, RecipientPublic>);

impl Recipients {
    /// Reads the list of a slot that was found authentic. None if there is none.
    pub(crate) fn read(
        records: &[Record],
        file_key: &FileKey,
        context: &[u8; 32],
    ) -> Result<Option<Self>, Error> {
        let mut lists = records.iter().filter(|record| record.is_list()).peekable();
        if lists.peek().is_none() {
            return Ok(None);
        }
        let mut listed = BTreeMap::new();
        for list in lists {
            let entries = file_key.open_chunked(context, list.body());
            let entries = entries.map_err(|_| Error::from(ErrorKind::DecryptionFailed))?;
            let (entries, rest) = entries.as_chunks::<ENTRY_LEN>();
            if !rest.is_empty() {
                return Err(ErrorKind::Directory { what: "a list of recipients cut off" }.into());
            }
            for entry in entries {
                let mut fields = entry.as_slice();
                let id: StanzaId = take(&mut fields);
                // The list is not trusted: 32 bytes that are not a public key are left out.
                if let Ok(key) = RecipientPublic::from_bytes(&take(&mut fields)) {
                    listed.insert(id, key);
                }
            }
        }
        Ok(Some(Self(listed)))
    }

    /// The recipient of this stanza, if it is listed.
    pub(crate) fn of(&self, stanza: &Record) -> Option<RecipientPublic> {
        self.0.get(&id(stanza)).copied()
    }

    /// Adds the stanza of a recipient.
    pub(crate) fn insert(&mut self, stanza: &Record, key: RecipientPublic) {
        self.0.insert(id(stanza), key);
    }

    /// Whether a stanza is that of the recipient with this fingerprint.
    pub(crate) fn is_of(&self, stanza: &Record, name: &Fingerprint) -> bool {
        self.of(stanza).is_some_and(|key| key.fingerprint() == *name)
    }

    /// The list as records, with entries for these stanzas alone.
    pub(crate) fn to_records(
        &self,
        stanzas: &[Record],
        file_key: &FileKey,
        context: &[u8; 32],
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Vec<Record>, Error> {
        let listed = stanzas.iter().filter_map(|stanza| Some((id(stanza), self.of(stanza)?)));
        let listed: Vec<_> = listed.collect();
        // An empty list is still a list.
        let pieces = match listed.is_empty() {
            true => [listed.as_slice()].to_vec(),
            false => listed.chunks(ENTRIES).collect(),
        };
        let record = |entries: &[(StanzaId, RecipientPublic)]| {
            let entries: Vec<u8> =
                entries.iter().flat_map(|(id, key)| id.iter().chain(key.as_bytes())).copied().collect();
            Ok(Record::list(file_key.seal_chunked(rng, context, &entries)?))
        };
        pieces.into_iter().map(record).collect()
    }
}

/// Bytes that the list of so many recipients takes in a slot.
pub(crate) fn list_len(recipients: usize) -> u64 {
    let record = |entries: usize| {
        let message = ChunkedLayout::of_plaintext((entries * ENTRY_LEN) as u64);
        RECORD_HEAD_LEN as u64 + message.map_or(0, |layout| layout.sealed_len())
    };
    let (full, rest) = (recipients / ENTRIES, recipients % ENTRIES);
    // At most 65,535 stanzas fit a slot.
    full.min(1 << 16) as u64 * record(ENTRIES) + record(rest)
}
