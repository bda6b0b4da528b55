//! Key lines in bech32 (BIP 173): a prefix for the kind of key, data in 32 letters, a checksum that detects typing errors.
//!
//! Lines may be longer than the 90 characters of BIP 173, as those of age are. Data of each prefix have one length, so
//! that the checksum's blindness for certain insertions before a final `p` does not matter. Letters are looked up without
//! an index that depends on them: the data may be secret.

use alloc::string::String;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::encrypt::aead::try_with_capacity;
use crate::error::{Error, ErrorKind};
use crate::secret::SecretText;

const CHARSET: [u8; 32] = *b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const CHECKSUM_LEN: usize = 6;

/// Maximum length of a line.
const MAX_LEN: usize = 1024;

/// The line of `data` under the prefix `hrp`, which is in lower case.
pub(crate) fn encode(hrp: &str, data: &[u8]) -> SecretText {
    let mut text = SecretText::with_capacity(hrp.len() + 1 + data.len() * 8 / 5 + 1 + CHECKSUM_LEN);
    text.push_str(hrp);
    text.push_str("1");
    let mut checksum = Checksum::of_prefix(hrp);
    let push = |value: u8, text: &mut SecretText| {
        let letter = [select(&CHARSET, value)];
        text.push_str(core::str::from_utf8(&letter).unwrap_or_default());
    };
    let (mut bits, mut n_bits) = (0_u32, 0);
    for byte in data {
        bits = bits << 8 | u32::from(*byte);
        n_bits += 8;
        while n_bits >= 5 {
            n_bits -= 5;
            let value = five(bits >> n_bits);
            checksum.add(value);
            push(value, &mut text);
        }
    }
    if n_bits > 0 {
        let value = five(bits << (5 - n_bits));
        checksum.add(value);
        push(value, &mut text);
    }
    for _ in 0..CHECKSUM_LEN {
        checksum.add(0);
    }
    let check = checksum.0 ^ 1;
    for idx in (0..CHECKSUM_LEN).rev() {
        push(five(check >> (5 * idx)), &mut text);
    }
    text
}

/// Prefix, in lower case, and data of a line.
pub(crate) fn decode(line: &str) -> Result<(String, Zeroizing<Vec<u8>>), Error> {
    let wrong = |what| Error::from(ErrorKind::Bech32 { what });
    if line.len() > MAX_LEN {
        return Err(wrong("too long"));
    }
    if !line.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong("a character that no key line has"));
    }
    if line.bytes().any(|byte| byte.is_ascii_lowercase())
        && line.bytes().any(|byte| byte.is_ascii_uppercase())
    {
        return Err(wrong("upper and lower case mixed"));
    }
    let (hrp, letters) = line.rsplit_once('1').ok_or_else(|| wrong("no `1` between prefix and data"))?;
    if hrp.is_empty() {
        return Err(wrong("no prefix before the `1`"));
    }
    let hrp = hrp.to_ascii_lowercase();
    let n_letters =
        letters.len().checked_sub(CHECKSUM_LEN).ok_or_else(|| wrong("too short for a checksum"))?;

    let mut checksum = Checksum::of_prefix(&hrp);
    let mut data = Zeroizing::new(try_with_capacity(n_letters * 5 / 8)?);
    let (mut bits, mut n_bits, mut outside) = (0_u32, 0, 0);
    for (idx, letter) in letters.bytes().enumerate() {
        let value = position(letter);
        outside |= value;
        checksum.add(five(value.into()));
        if idx < n_letters {
            bits = (bits << 5 | u32::from(value & 31)) & 0xfff;
            n_bits += 5;
            if n_bits >= 8 {
                n_bits -= 8;
                let [byte, ..] = (bits >> n_bits).to_le_bytes();
                data.push(byte);
            }
        }
    }
    if outside >= 32 {
        return Err(wrong("a letter that no key line has"));
    }
    if checksum.0 != 1 {
        return Err(ErrorKind::Checksum.into());
    }
    if n_bits >= 5 || bits & ((1 << n_bits) - 1) != 0 {
        return Err(wrong("bits left over at the end"));
    }
    Ok((hrp, data))
}

/// The lowest five bits.
fn five(bits: u32) -> u8 {
    let [low, ..] = bits.to_le_bytes();
    low & 31
}

/// The BCH code of BIP 173.
struct Checksum(u32);

impl Checksum {
    fn of_prefix(hrp: &str) -> Self {
        let mut checksum = Self(1);
        hrp.bytes().for_each(|byte| checksum.add(byte >> 5));
        checksum.add(0);
        hrp.bytes().for_each(|byte| checksum.add(byte & 31));
        checksum
    }

    fn add(&mut self, value: u8) {
        const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
        let top = self.0 >> 25;
        self.0 = (self.0 & 0x01ff_ffff) << 5 ^ u32::from(value);
        for (idx, term) in GENERATOR.into_iter().enumerate() {
            // All ones if the bit is set.
            self.0 ^= term & (top >> idx & 1).wrapping_neg();
        }
    }
}

/// `table[idx]`, reading all of it.
fn select(table: &[u8; 32], idx: u8) -> u8 {
    (0..32).zip(table).fold(0, |found, (at, letter)| found | letter & same(at, idx))
}

/// The place of `letter` in the alphabet, in either case; 255 if it is not there.
fn position(letter: u8) -> u8 {
    let letter = letter | 0x20 & same_range(letter);
    let found = (0..32).zip(CHARSET).fold(0, |found, (at, entry)| found | (at + 1) & same(entry, letter));
    found.wrapping_sub(1)
}

/// All ones if the bytes are equal, zero if not; without a branch.
fn same(a: u8, b: u8) -> u8 {
    let difference = u16::from(a ^ b);
    let [_, high] = difference.wrapping_sub(1).to_le_bytes();
    high
}

/// All ones for an upper-case letter.
fn same_range(letter: u8) -> u8 {
    let inside = u16::from(letter.wrapping_sub(b'A'));
    let [_, high] = inside.wrapping_sub(26).to_le_bytes();
    high
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;
    use crate::hex::hex;

    #[test]
    fn lookups_without_branches_are_lookups() {
        for byte in 0..=255_u8 {
            let expected = CHARSET.iter().position(|letter| *letter == byte.to_ascii_lowercase());
            assert_eq!(position(byte), expected.map_or(255, |at| at.to_le_bytes()[0]), "{byte}");
            for other in 0..=255_u8 {
                assert_eq!(same(byte, other), if byte == other { 255 } else { 0 });
            }
        }
        for idx in 0..32 {
            assert_eq!(select(&CHARSET, idx), CHARSET[usize::from(idx)]);
        }
    }

    #[test]
    fn the_longest_line_is_looked_at_and_no_longer_one() {
        let line = |len: usize| ["a1", &"q".repeat(len - 2)].concat();
        assert_eq!(decode(&line(MAX_LEN)).unwrap_err().kind(), &ErrorKind::Checksum);
        assert_eq!(decode(&line(MAX_LEN + 1)).unwrap_err().kind(), &ErrorKind::Bech32 { what: "too long" });
    }

    /// BIP 173's valid strings whose data are whole bytes, and the address of its example in 8-bit form.
    #[test]
    fn bip_173_valid() {
        let valid = [
            ("A12UEL5L", "a", ""),
            ("a12uel5l", "a", ""),
            (
                "an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1tt5tgs",
                "an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio",
                "",
            ),
            (
                "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
                "abcdef",
                "00443214c74254b635cf84653a56d7c675be77df",
            ),
            (
                "split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w",
                "split",
                "c5f38b70305f519bf66d85fb6cf03058f3dde463ecd7918f2dc743918f2d",
            ),
        ];
        for (line, hrp, data) in valid {
            let (found, bytes) = decode(line).unwrap();
            assert_eq!((found.as_str(), &bytes[..]), (hrp, &hex(data)[..]), "{line}");
            assert_eq!(encode(hrp, &hex(data)).as_str(), line.to_ascii_lowercase());
        }
    }

    /// BIP 173's invalid strings.
    #[test]
    fn bip_173_invalid() {
        let invalid = [
            "\u{20}1nwldj5",
            "\u{7f}1axkwrx",
            "\u{80}1eym55h",
            "pzry9x0s0muk",
            "1pzry9x0s0muk",
            "x1b4n0q5v",
            "li1dgmt3",
            "de1lg7wt\u{ff}",
            "A1G7SGD8",
            "10a06t8",
            "1qzzfhee",
            "A12uEL5L",
            "",
            "1",
            "a1",
        ];
        for line in invalid {
            assert!(decode(line).is_err(), "{line}");
        }
        assert_eq!(decode("A1G7SGD8").unwrap_err().kind(), &ErrorKind::Checksum);
        assert!(decode(&"q".repeat(MAX_LEN + 1)).is_err());
    }

    /// The checksum takes a letter that is none for the last of the alphabet: it alone would let it pass.
    #[test]
    fn letters_outside_the_alphabet_are_refused_under_a_right_checksum() {
        let line = encode("apr-public-", &[0xff; 32]);
        let (_, letters) = line.as_str().rsplit_once('1').unwrap();
        assert!(letters.starts_with("llll"));
        for letter in ["b", "i", "o", "!", "{", "~"] {
            let line = "apr-public-1".to_string() + letter + &letters[1..];
            let what = "a letter that no key line has";
            assert_eq!(decode(&line).unwrap_err().kind(), &ErrorKind::Bech32 { what }, "{line:?}");
        }
    }

    /// A line whose checksum is right and whose data are not whole bytes.
    #[test]
    fn bits_left_over_are_refused() {
        for letters in [1, 3, 6] {
            let mut checksum = Checksum::of_prefix("x");
            (0..letters + CHECKSUM_LEN).for_each(|_| checksum.add(0));
            let check = checksum.0 ^ 1;
            let check = (0..6).rev().map(|idx| char::from(CHARSET[usize::from(five(check >> (5 * idx)))]));
            let line = "x1".to_string() + &"q".repeat(letters) + &check.collect::<String>();
            let what = "bits left over at the end";
            assert_eq!(decode(&line).unwrap_err().kind(), &ErrorKind::Bech32 { what }, "{line}");
        }
    }

    proptest! {
        #[test]
        fn encode_then_decode_is_identity(data: Vec<u8>, hrp in "[a-z][a-z-]{0,20}") {
            let line = encode(&hrp, &data);
            if line.as_str().len() > MAX_LEN {
                return Ok(());
            }
            let (found, bytes) = decode(line.as_str()).unwrap();
            prop_assert_eq!((&found, &*bytes), (&hrp, &data));
            let (_, bytes) = decode(&line.as_str().to_ascii_uppercase()).unwrap();
            prop_assert_eq!(&*bytes, &data);
        }

        /// Up to three wrong letters are always noticed.
        #[test]
        fn typing_errors_are_noticed(
            data: [u8; 32],
            wrong in prop::collection::vec((any::<prop::sample::Index>(), 1..32_u8), 1..4),
        ) {
            let line = encode("apr-public-", &data);
            let mut letters = line.as_str().as_bytes().to_vec();
            for (at, add) in wrong {
                let at = 12 + at.index(letters.len() - 12);
                letters[at] = CHARSET[usize::from((position(letters[at]) + add) % 32)];
            }
            let typed = String::from_utf8(letters).unwrap();
            prop_assert!(typed == line.as_str() || *decode(&typed).unwrap_err().kind() == ErrorKind::Checksum);
        }

        #[test]
        fn random_text_does_not_panic(text: String) {
            let _ = decode(&text);
        }
    }
}
