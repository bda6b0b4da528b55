//! Authentication codes: HMAC-SHA-256.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Error, ErrorKind};
use crate::secret::{Secret, redacted};

/// A key for authentication codes (HMAC-SHA-256, RFC 2104), derived from a [`FileKey`](crate::FileKey) or an
/// [`Agreement`](crate::Agreement).
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// let key = apr_crypto::FileKey::generate(rng)?.mac_key("example header");
/// let tag = key.tag(&[b"header"]);
/// key.verify(&[b"hea", b"der"], &tag)?;
/// assert_eq!(key.verify(&[b"headex"], &tag).unwrap_err().code(), "cy-mac");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
///
/// ```compile_fail,E0599
/// # let key = apr_crypto::FileKey::generate(&mut apr_crypto::OsRandom).unwrap().mac_key("header");
/// let copy = key.clone();
/// ```
pub struct MacKey(Secret<32>);

impl MacKey {
    /// Length of an authentication code.
    pub const TAG_LEN: usize = 32;

    pub(crate) fn new(key: Secret<32>) -> Self {
        Self(key)
    }

    /// The code of `parts`, one after the other. Where one part ends is not authenticated.
    #[must_use]
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; Self::TAG_LEN] {
        self.mac(parts).finalize().into_bytes().into()
    }

    /// Compares the code of `parts` with `tag`; constant time.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Mac`] if they differ.
    pub fn verify(&self, parts: &[&[u8]], tag: &[u8; Self::TAG_LEN]) -> Result<(), Error> {
        self.mac(parts).verify_slice(tag).map_err(|_| ErrorKind::Mac.into())
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac =
            <Hmac<Sha256> as KeyInit>::new_from_slice(self.0.bytes()).expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

redacted!(MacKey);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::array;

    /// RFC 4231, test cases 1 and 2, their keys padded with zeros as HMAC itself does.
    #[test]
    fn rfc_4231() {
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let tag = array("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        MacKey::new(Secret::copy_of(&key)).verify(&[b"Hi There"], &tag).unwrap();

        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let tag = array("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let key = MacKey::new(Secret::copy_of(&key));
        assert_eq!(key.tag(&[b"what do ya want ", b"for nothing?"]), tag);
    }

    #[test]
    fn every_bit_of_a_tag_counts() {
        let key = MacKey::new(Secret::copy_of(&[9; 32]));
        let tag = key.tag(&[b"x"]);
        for bit in 0..256 {
            let mut other = tag;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.verify(&[b"x"], &other).unwrap_err().kind(), &ErrorKind::Mac);
        }
    }
}
