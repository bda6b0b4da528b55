//! Options of sealing: recipients or password, signature, metadata.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use apr_crypto::{Argon2Cost, LeafLen, Password, RecipientPublic, SigningKey, TreeAlgorithm};

use crate::error::{Error, ErrorKind};
use crate::fixed::Suite;
use crate::slot;

/// Default capacity: the recipients that fit into a slot.
const CAPACITY: usize = 8;

/// How to seal a file: encrypted for recipients or a password, signed, or both.
#[derive(Clone, Debug)]
pub struct SealOptions<'k> {
    pub(crate) recipients: Vec<RecipientPublic>,
    pub(crate) password: Option<(&'k Password, Argon2Cost)>,
    pub(crate) signer: Option<&'k SigningKey>,
    pub(crate) is_bound: bool,
    pub(crate) capacity: usize,
    pub(crate) is_listed: bool,
    pub(crate) algorithm: TreeAlgorithm,
    pub(crate) leaf_len: LeafLen,
    /// Metadata that anyone can read. Authenticated once the file was opened or its signature verified.
    pub public: BTreeMap<String, String>,
    /// Metadata that only recipients can read; in a file that is only signed, anyone.
    pub private: BTreeMap<String, String>,
}

impl Default for SealOptions<'_> {
    fn default() -> Self {
        Self {
            recipients: Vec::new(),
            password: None,
            signer: None,
            is_bound: false,
            capacity: CAPACITY,
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

    /// Encrypted with a password, at the second recommended cost of RFC 9106 (64 MiB, three passes). A password excludes
    /// recipients: with both, the file would be as weak as the password.
    #[must_use]
    pub const fn with_password(self, password: &'k Password) -> Self {
        self.with_password_at(password, Argon2Cost::RFC_9106)
    }

    /// Encrypted with a password, at this cost per guess.
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

    /// With a list of the recipients' public keys, which recipients can read. Without it, nothing shows who else can open the
    /// file, and no recipient can be [removed](crate::RekeyOptions::without) individually.
    #[must_use]
    pub const fn with_listed_recipients(mut self) -> Self {
        self.is_listed = true;
        self
    }

    /// With capacity for this many recipients in total, for a later [`Rekeying`](crate::Rekeying). Default 8; a recipient takes
    /// 168 bytes of the file, one that is listed 264.
    #[must_use]
    pub const fn with_capacity_for(mut self, recipients: usize) -> Self {
        self.capacity = recipients;
        self
    }

    /// The number of recipients that the file has capacity for, at least.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// With this tree hash. Default: BLAKE3, leaves of 16 KiB.
    #[must_use]
    pub const fn with_tree(mut self, algorithm: TreeAlgorithm, leaf_len: LeafLen) -> Self {
        self.algorithm = algorithm;
        self.leaf_len = leaf_len;
        self
    }

    /// With an entry of public metadata.
    #[must_use]
    pub fn with_public(mut self, key: &str, value: &str) -> Self {
        self.public.insert(key.into(), value.into());
        self
    }

    /// With an entry of private metadata.
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
            Suite::Cobblestone256 => slot::len_for(self.recipients.len().max(self.capacity), self.is_listed),
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
