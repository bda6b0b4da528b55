//! Key fingerprints.

use core::fmt;
use core::str::FromStr;

use sha2::{Digest, Sha256};

use crate::encrypt::recipient::RecipientPublic;
use crate::error::{Error, ErrorKind};
use crate::sign::ed25519::VerifyingKey;

/// A short form of a public key, compared over a second channel: the first 16 bytes of the SHA-256 of the key line's prefix
/// and the key's 32 bytes. Shown in base32 (RFC 4648, lower case), in groups of four.
///
/// ```
/// let secret = apr_crypto::SigningKey::from_seed(&[1; 32]);
/// assert_eq!(secret.verifying_key().fingerprint().to_string(), "us56-dpvk-tnpx-yumm-ck3h-6lwm-cu");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; Self::LEN]);

impl Fingerprint {
    /// Length in bytes.
    pub const LEN: usize = 16;

    pub(crate) fn of(prefix: &str, key: &[u8]) -> Self {
        let hash: [u8; 32] = Sha256::new().chain_update(prefix).chain_update(key).finalize().into();
        let mut bytes = [0; Self::LEN];
        bytes.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl RecipientPublic {
    /// The key's short name.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(crate::keys::stored::PUBLIC, self.as_bytes())
    }
}

impl VerifyingKey {
    /// The key's short name.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(crate::keys::stored::VERIFY, self.as_bytes())
    }
}

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Letters of a fingerprint without its dashes.
const LETTERS: usize = 26;

impl FromStr for Fingerprint {
    type Err = Error;

    /// Reads what `Display` writes; capitals too, with or without the dashes.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |what| Err(ErrorKind::Text { format: "a fingerprint", what }.into());
        let (mut bits, mut count) = (0_u128, 0);
        for letter in text.bytes().filter(|&letter| letter != b'-') {
            let five = ALPHABET.iter().position(|&known| known == letter.to_ascii_lowercase());
            let Some(five) = five else { return wrong("letters and the digits 2 to 7 are needed") };
            // The last letter holds three bits, and two that are zero.
            let (five, width) = match count {
                25 if five % 4 != 0 => return wrong("its last letter does not end a fingerprint"),
                25 => (five / 4, 3),
                _ => (five, 5),
            };
            count += 1;
            if count > LETTERS {
                break;
            }
            bits = bits << width | five as u128;
        }
        if count != LETTERS {
            return wrong("26 letters and digits are needed");
        }
        Ok(Self(bits.to_be_bytes()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        for idx in 0..LETTERS {
            if idx > 0 && idx % 4 == 0 {
                f.write_str("-")?;
            }
            // 26 letters hold 130 bits; the last two are zero.
            let five = if idx < 25 { bits >> (123 - 5 * idx) } else { bits << 2 } & 31;
            let letter = ALPHABET.get(five as usize).copied().unwrap_or_default();
            fmt::Write::write_char(f, char::from(letter))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;
    use crate::hex::array;

    #[test]
    fn base32_is_that_of_rfc_4648() {
        assert_eq!(Fingerprint(*b"foobarfoobarfoob").to_string(), "mzxw-6ytb-ojtg-633c-mfzg-m33p-mi");
        assert_eq!(Fingerprint([0xff; 16]).to_string(), "7777-7777-7777-7777-7777-7777-74");
        assert_eq!(Fingerprint([0; 16]).to_string(), "aaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aa");
    }

    #[test]
    fn a_fingerprint_is_read_as_it_is_shown() {
        for bytes in [*b"foobarfoobarfoob", [0xff; 16], [0; 16], [0x81; 16]] {
            let shown = Fingerprint(bytes).to_string();
            for text in [shown.to_uppercase(), shown.replace('-', ""), shown] {
                assert_eq!(text.parse::<Fingerprint>().unwrap(), Fingerprint(bytes), "{text}");
            }
        }
        let shown = Fingerprint([0x81; 16]).to_string();
        for wrong in
            ["", "mzxw", &shown[1..], &format!("{shown}a"), &shown.replace('a', "1"), &"b".repeat(26)]
        {
            assert_eq!(wrong.parse::<Fingerprint>().unwrap_err().code(), "cy-text", "{wrong}");
        }
    }

    #[test]
    fn equal_bytes_of_another_kind_have_another_fingerprint() {
        let bytes = array("0900000000000000000000000000000000000000000000000000000000000000");
        let recipient = RecipientPublic::from_bytes(&bytes).unwrap().fingerprint();
        assert_ne!(recipient, Fingerprint::of(crate::keys::stored::VERIFY, &bytes));
    }
}
