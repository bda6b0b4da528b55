//! For whom to seal, and what to say about it.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use apr_crypto::{Argon2Cost, LeafLen, Password, RecipientPublic, SigningKey, TreeAlgorithm};

use crate::error::{Error, ErrorKind};
use crate::fixed::Suite;
use crate::slot;

/// Recipients there is room for unless there are more, or more room is asked for.
const ROOM: usize = 8;

/// How to seal a file: encrypted for recipients or a password, signed, or both.
#[derive(Clone, Debug)]
pub struct SealOptions<'k> {
    pub(crate) recipients: Vec<RecipientPublic>,
    pub(crate) password: Option<(&'k Password, Argon2Cost)>,
    pub(crate) signer: Option<&'k SigningKey>,
    pub(crate) is_bound: bool,
    pub(crate) room: usize,
    pub(crate) is_listed: bool,
    pub(crate) algorithm: TreeAlgorithm,
    pub(crate) leaf_len: LeafLen,
    /// What anyone can read. Authentic once the file was opened or its signature verified.
    pub public: BTreeMap<String, String>,
    /// What only those can read who can open the file; of a file that is signed only, everybody.
    pub private: BTreeMap<String, String>,
}

impl Default for SealOptions<'_> {
    fn default() -> Self {
        Self {
            recipients: Vec::new(),
            password: None,
            signer: None,
            is_bound: false,
            room: ROOM,
            is_listed: false,
            algorithm: TreeAlgorithm::Blake3,
            leaf_len: LeafLen::KIB_16,
            public: BTreeMap::new(),
            private: BTreeMap::new(),
        }
    }
}

impl<'k> SealOptions<'k> {
    /// Encrypted for one more recipient.
    #[must_use]
    pub fn for_recipient(mut self, recipient: RecipientPublic) -> Self {
        self.recipients.push(recipient);
        self
    }

    /// Encrypted for whoever knows the password, at the cost RFC 9106 recommends second (64 MiB, three passes). A password
    /// stands alone: with recipients beside it, the file would be as weak as the password.
    #[must_use]
    pub const fn with_password(self, password: &'k Password) -> Self {
        self.with_password_at(password, Argon2Cost::RFC_9106)
    }

    /// Encrypted for whoever knows the password, at this cost for each guess.
    #[must_use]
    pub const fn with_password_at(mut self, password: &'k Password, cost: Argon2Cost) -> Self {
        self.password = Some((password, cost));
        self
    }

    /// Signed with this key. What is signed is the file as stored: it can be verified without a key to decrypt.
    #[must_use]
    pub const fn signed_by(mut self, key: &'k SigningKey) -> Self {
        self.signer = Some(key);
        self
    }

    /// The list of recipients is signed as well: only the signer can change it.
    #[must_use]
    pub const fn with_bound_recipients(mut self) -> Self {
        self.is_bound = true;
        self
    }

    /// With a list of the recipients' public keys, for those who can open the file. Without it the file does not tell who
    /// else can open it, and no recipient can be [removed](crate::RekeyOptions::without) by name.
    #[must_use]
    pub const fn with_listed_recipients(mut self) -> Self {
        self.is_listed = true;
        self
    }

    /// Room for so many recipients in all, for [`Rekeying`](crate::Rekeying). Default 8; a recipient takes 168 bytes of the file,
    /// one that is listed 264.
    #[must_use]
    pub const fn with_room_for(mut self, recipients: usize) -> Self {
        self.room = recipients;
        self
    }

    /// Recipients there is room for at least.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.room
    }

    /// With this tree hash. Default: BLAKE3, leaves of 16 KiB.
    #[must_use]
    pub const fn with_tree(mut self, algorithm: TreeAlgorithm, leaf_len: LeafLen) -> Self {
        self.algorithm = algorithm;
        self.leaf_len = leaf_len;
        self
    }

    /// With a line of public metadata.
    #[must_use]
    pub fn with_public(mut self, key: &str, value: &str) -> Self {
        self.public.insert(key.into(), value.into());
        self
    }

    /// With a line of private metadata.
    #[must_use]
    pub fn with_private(mut self, key: &str, value: &str) -> Self {
        self.private.insert(key.into(), value.into());
        self
    }

    pub(crate) fn suite(&self) -> Suite {
        match self.recipients.is_empty() && self.password.is_none() {
            true => Suite::Plain,
            false => Suite::Cobblestone256,
        }
    }

    pub(crate) fn slot_len(&self) -> Result<u32, Error> {
        match self.suite() {
            Suite::Plain => Ok(0),
            Suite::Cobblestone256 => slot::len_for(self.recipients.len().max(self.room), self.is_listed),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let is_encrypted = self.suite() != Suite::Plain;
        if !is_encrypted && self.signer.is_none() {
            return Err(ErrorKind::Unprotected.into());
        }
        let what = match &self.password {
            Some(_) if !self.recipients.is_empty() => "a password stands alone: leave out the recipients",
            _ if self.is_bound && !(is_encrypted && self.signer.is_some()) => {
                "bound recipients need encryption and a signature"
            }
            Some((password, _)) => return check_password(password),
            None => match self.public.keys().chain(self.private.keys()).any(String::is_empty) {
                true => "metadata under an empty key",
                false => return Ok(()),
            },
        };
        Err(ErrorKind::InvalidValue { what }.into())
    }
}

pub(crate) fn check_password(password: &Password) -> Result<(), Error> {
    match password.is_empty() {
        true => Err(ErrorKind::Limit { what: "length of the password", found: 0, limit: 1 }.into()),
        false => Ok(()),
    }
}
