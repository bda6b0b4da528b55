//! The binding of an encrypted payload to the file around it.
//!
//! | offset from the payload's end | length | field |
//! |---:|---:|---|
//! | 0 | 32 | SHA-256 of the file around the payload |
//! | 32 | 32 | public key of the signer, or zeros |
//! | 64 | 4 | layout of the binding, 1 |
//! | 68 | 8 | `aprbind` and a zero |
//!
//! It is part of the plaintext before compression, where other readers ignore it, and is authenticated with the payload.

use sha2::{Digest as _, Sha256};

use crate::error::{Error, ErrorKind};
use crate::v1::header::Header;

/// Length in bytes.
pub(super) const LEN: usize = 76;
const MAGIC: [u8; 8] = *b"aprbind\0";
const LAYOUT: u32 = 1;
const DOMAIN: &[u8] = b"apr v1 binding\0";

/// The parts of a file that a payload is bound to.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'f> {
    pub(super) header: &'f Header,
    pub(super) metadata: &'f [u8],
    /// Salt, or ephemeral key and recipient.
    pub(super) key_block: &'f [u8],
    /// All zeros without a signer.
    pub(super) signer: [u8; 32],
}

impl Surroundings<'_> {
    pub(super) fn binding(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let fields: [&[u8]; 4] = [&self.digest(), &self.signer, &LAYOUT.to_le_bytes(), &MAGIC];
        bytes.iter_mut().zip(fields.into_iter().flatten()).for_each(|(place, byte)| *place = *byte);
        bytes
    }

    /// The compressed length is not covered, because it is known only after the binding was compressed. All other lengths are, so
    /// that the boundaries of the parts cannot be moved.
    fn digest(&self) -> [u8; 32] {
        let header = Header { payload_len: 0, ..*self.header };
        let mut hash = Sha256::new();
        hash.update(DOMAIN);
        hash.update(header.to_bytes());
        hash.update(self.metadata);
        hash.update([self.key_block.len() as u8]);
        hash.update(self.key_block);
        hash.update(self.signer);
        hash.finalize().into()
    }

    /// The payload without its binding, which has to match these surroundings. Without a binding, all of the plaintext, unless
    /// reading is strict.
    pub(super) fn unbind<'p>(&self, plaintext: &'p [u8], is_strict: bool) -> Result<&'p [u8], Error> {
        let Some((payload, binding)) =
            plaintext.split_last_chunk::<LEN>().filter(|(_, binding)| binding.ends_with(&MAGIC))
        else {
            return match is_strict {
                true => Err(ErrorKind::Unbound.into()),
                false => Ok(plaintext),
            };
        };
        match *binding == self.binding() {
            true => Ok(payload),
            false => Err(ErrorKind::Rebound.into()),
        }
    }
}
