//! The first 64 bytes, and the offsets derived from them.

use core::fmt;
use core::ops::Range;

use apr_crypto::{LeafLen, TreeAlgorithm, TreeRoot};
use sha2::{Digest as _, Sha256};

use crate::MAGIC;
use crate::error::{Error, ErrorKind};

/// Length of the fixed header.
pub(crate) const FIXED_LEN: usize = 64;
/// Length of the signer block: root, its padding, key, signature.
pub(crate) const SIGNER_LEN: usize = 144;
/// The fields at fixed offsets.
pub(crate) const PRELUDE_LEN: usize = FIXED_LEN + SIGNER_LEN;
/// What parts and the payload are aligned to.
pub(crate) const PART_ALIGN: u64 = 64;
/// What key slots are aligned to: a sector, so that writing one leaves the other alone.
pub(crate) const SLOT_ALIGN: u64 = 512;
/// Longest key slot.
pub(crate) const SLOT_MAX: u64 = 1 << 20;

const VERSION: u16 = 1;
const SIGNED: u32 = 1;
const BOUND: u32 = 2;
const UPPER: u32 = 4;
/// Flags whose meaning a reader has to know.
const CRITICAL: u32 = 0xffff;

/// With which algorithms a file is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Suite {
    /// Not encrypted: signed only.
    Plain,
    /// HKDF-Expand-SHA-512 and AES-256-GCM in chunks: C2SP chunked-encryption, Cobblestone-256.
    Cobblestone256,
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "not encrypted",
            Self::Cobblestone256 => "Cobblestone-256 (AES-256-GCM)",
        })
    }
}

/// The fixed header. Its bytes are kept as they are in the file: they are what is authenticated.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    pub(crate) bytes: [u8; FIXED_LEN],
    pub(crate) suite: Suite,
    pub(crate) is_signed: bool,
    pub(crate) is_bound: bool,
    pub(crate) file_id: [u8; 16],
    pub(crate) payload_len: u64,
    pub(crate) directory_len: u64,
    pub(crate) public_len: u32,
    pub(crate) slot_len: u32,
    /// There is a tree if and only if the file is signed.
    pub(crate) tree: Option<(TreeAlgorithm, LeafLen)>,
    /// Whether the upper hashes of the tree are in the header.
    pub(crate) has_upper: bool,
}

impl Fixed {
    /// Fills in the bytes.
    pub(crate) fn with_bytes(mut self) -> Self {
        let flags = [(self.is_signed, SIGNED), (self.is_bound, BOUND), (self.has_upper, UPPER)];
        let flags = flags.iter().map(|(is_set, flag)| u32::from(*is_set) * flag).sum::<u32>();
        let suite: u16 = match self.suite {
            Suite::Plain => 0,
            Suite::Cobblestone256 => 1,
        };
        let (algorithm, log2) =
            self.tree.map_or((0, 0), |(algorithm, leaf)| (algorithm.id(), leaf.get().trailing_zeros() as u8));
        let fields: [&[u8]; 11] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &suite.to_le_bytes(),
            &flags.to_le_bytes(),
            &self.file_id,
            &self.payload_len.to_le_bytes(),
            &self.directory_len.to_le_bytes(),
            &self.public_len.to_le_bytes(),
            &self.slot_len.to_le_bytes(),
            &[algorithm, log2],
            &[0; 6],
        ];
        self.bytes.iter_mut().zip(fields.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        self
    }

    pub(crate) fn parse(bytes: &[u8; FIXED_LEN]) -> Result<Self, Error> {
        let mut rest = bytes.as_slice();
        if take::<8>(&mut rest) != MAGIC {
            return Err(ErrorKind::Magic.at(0));
        }
        let version = u16::from_le_bytes(take(&mut rest));
        if version != VERSION {
            return Err(ErrorKind::UnsupportedVersion { found: version }.at(8));
        }
        let suite = match u16::from_le_bytes(take(&mut rest)) {
            0 => Suite::Plain,
            1 => Suite::Cobblestone256,
            found => return Err(ErrorKind::UnknownSuite { found }.at(10)),
        };
        let flags = u32::from_le_bytes(take(&mut rest));
        let unknown = flags & CRITICAL & !(SIGNED | BOUND | UPPER);
        if unknown != 0 {
            return Err(ErrorKind::UnknownFlags { found: unknown }.at(12));
        }
        let [is_signed, is_bound, has_upper] = [SIGNED, BOUND, UPPER].map(|flag| flags & flag != 0);
        let file_id = take(&mut rest);
        let payload_len = u64::from_le_bytes(take(&mut rest));
        let directory_len = u64::from_le_bytes(take(&mut rest));
        let public_len = u32::from_le_bytes(take(&mut rest));
        let slot_len = u32::from_le_bytes(take(&mut rest));
        let [algorithm, log2] = take(&mut rest);
        if rest.iter().any(|byte| *byte != 0) {
            return Err(ErrorKind::Reserved.at(58));
        }
        let contradiction = |what, at| Err(ErrorKind::Header { what }.at(at));
        let tree = match (is_signed, algorithm, log2) {
            (false, 0, 0) => None,
            (false, ..) => return contradiction("a tree hash without a signature", 56),
            (true, ..) => {
                let leaf = 1_u64.checked_shl(log2.into()).unwrap_or_default();
                Some((TreeAlgorithm::from_id(algorithm)?, LeafLen::new(leaf)?))
            }
        };
        let is_encrypted = suite != Suite::Plain;
        let fits = u64::from(slot_len).is_multiple_of(SLOT_ALIGN) && u64::from(slot_len) <= SLOT_MAX;
        match is_encrypted {
            true if slot_len == 0 || !fits => return contradiction("an impossible length of key slots", 52),
            false if slot_len != 0 => return contradiction("key slots without encryption", 52),
            _ => {}
        }
        if is_bound && !(is_signed && is_encrypted) {
            return contradiction("a bound list of recipients without signature or encryption", 12);
        }
        if !is_signed && !is_encrypted {
            return Err(ErrorKind::Unprotected.at(10));
        }
        let fixed = Self {
            bytes: *bytes,
            suite,
            is_signed,
            is_bound,
            file_id,
            payload_len,
            directory_len,
            public_len,
            slot_len,
            tree,
            has_upper,
        };
        match has_upper && fixed.upper_len() == 0 {
            true => contradiction("upper hashes of a tree that has none", 12),
            false => Ok(fixed),
        }
    }

    /// Length of the upper hashes of the tree, whether the file has them or not.
    pub(crate) fn upper_len(&self) -> u64 {
        self.root([0; 32]).map_or(0, |root| root.upper_len())
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.suite != Suite::Plain
    }

    /// Where everything is; none if the lengths overflow.
    pub(crate) fn places(&self) -> Option<Places> {
        let public = PRELUDE_LEN as u64..PRELUDE_LEN as u64 + u64::from(self.public_len);
        let slot_len = u64::from(self.slot_len);
        let slots_at = match slot_len {
            0 => public.end,
            _ => public.end.checked_next_multiple_of(SLOT_ALIGN)?,
        };
        let directory_at = slots_at.checked_add(2 * slot_len)?;
        let directory = directory_at..directory_at.checked_add(self.directory_len)?;
        let upper_len = if self.has_upper { self.upper_len() } else { 0 };
        let upper = directory.end..directory.end.checked_add(upper_len)?;
        let payload_at = upper.end.checked_next_multiple_of(PART_ALIGN)?;
        let payload = payload_at..payload_at.checked_add(self.payload_len)?;
        let outboard_len = self.root([0; 32]).map_or(0, |root| root.outboard_len());
        let outboard = payload.end..payload.end.checked_add(outboard_len)?;
        Some(Places { public, slots_at, slot_len, directory, upper, payload, outboard })
    }

    /// The root with this hash, of a signed file.
    pub(crate) fn root(&self, hash: [u8; 32]) -> Option<TreeRoot> {
        self.tree.map(|(algorithm, leaf)| TreeRoot::new(algorithm, leaf, self.payload_len, hash))
    }

    /// What binds a message of this file to its fixed header, signer and public metadata.
    pub(crate) fn context(&self, purpose: &str, signer: &[u8; 32], public: &[u8]) -> [u8; 32] {
        let hash = Sha256::new().chain_update(b"apr-sealed-v1 ").chain_update(purpose).chain_update([0]);
        hash.chain_update(self.bytes).chain_update(signer).chain_update(public).finalize().into()
    }
}

/// Where the parts of a file are.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) public: Range<u64>,
    slots_at: u64,
    slot_len: u64,
    pub(crate) directory: Range<u64>,
    pub(crate) upper: Range<u64>,
    pub(crate) payload: Range<u64>,
    pub(crate) outboard: Range<u64>,
}

impl Places {
    /// The first or the second key slot; empty without encryption.
    pub(crate) fn slot(&self, idx: usize) -> Range<u64> {
        let begin = self.slots_at + idx as u64 * self.slot_len;
        begin..begin + self.slot_len
    }

    /// What is zero: the ways to the key slots and to the payload.
    pub(crate) fn gaps(&self) -> [Range<u64>; 2] {
        [self.public.end..self.slots_at, self.upper.end..self.payload.start]
    }

    pub(crate) fn total_len(&self) -> u64 {
        self.outboard.end
    }
}

/// The next `N` bytes; zeros beyond the end, which no caller reads.
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let Some((now, after)) = rest.split_first_chunk() else { return [0; N] };
    *rest = after;
    *now
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed() -> Fixed {
        let fixed = Fixed {
            bytes: [0; FIXED_LEN],
            suite: Suite::Cobblestone256,
            is_signed: true,
            is_bound: false,
            file_id: [9; 16],
            payload_len: 20_000,
            directory_len: 100,
            public_len: 300,
            slot_len: 1024,
            tree: Some((TreeAlgorithm::Blake3, LeafLen::KIB_16)),
            has_upper: false,
        };
        fixed.with_bytes()
    }

    #[test]
    fn places_are_those_of_the_specification() {
        let fixed = fixed();
        let places = Fixed::parse(&fixed.bytes).unwrap().places().unwrap();
        assert_eq!(places.public, 208..508);
        assert_eq!((places.slot(0), places.slot(1)), (512..1536, 1536..2560));
        assert_eq!(places.directory, 2560..2660);
        assert_eq!(places.payload, 2688..22_688);
        assert_eq!(places.outboard, 22_688..22_688 + 3 * 32);
    }

    #[test]
    fn upper_hashes_are_between_directory_and_payload() {
        // 1,025 leaves: 513 nodes above them.
        let mut fixed = Fixed { payload_len: (16 << 20) + 1, has_upper: true, ..fixed() };
        fixed = fixed.with_bytes();
        let places = Fixed::parse(&fixed.bytes).unwrap().places().unwrap();
        assert_eq!((places.directory, places.upper), (2560..2660, 2660..2660 + 513 * 32));
        assert_eq!(places.payload.start, (2660_u64 + 513 * 32).next_multiple_of(64));
        fixed.has_upper = false;
        let places = Fixed::parse(&fixed.with_bytes().bytes).unwrap().places().unwrap();
        assert_eq!((places.upper, places.payload.start), (2660..2660, 2688));
    }

    #[test]
    fn every_contradiction_is_refused() {
        let good = fixed().bytes;
        let changes: [(usize, u8, &str); 14] = [
            (0, 0x88, "ac-sealed-magic"),
            (8, 2, "ac-sealed-version"),
            (10, 2, "ac-sealed-suite"),
            (10, 0, "ac-sealed-header"),
            (12, 0, "ac-sealed-header"),
            (12, 5, "ac-sealed-header"),
            (12, 9, "ac-sealed-flags"),
            (13, 0x80, "ac-sealed-flags"),
            (52, 1, "ac-sealed-header"),
            (53, 0, "ac-sealed-header"),
            (55, 1, "ac-sealed-header"),
            (56, 3, "cy-algorithm"),
            (57, 64, "cy-leaf-len"),
            (63, 1, "ac-reserved"),
        ];
        for (at, value, code) in changes {
            let mut bytes = good;
            bytes[at] = value;
            assert_eq!(Fixed::parse(&bytes).unwrap_err().code(), code, "{at} {value}");
        }
        let mut bytes = good;
        bytes[14] = 1;
        assert!(Fixed::parse(&bytes).is_ok(), "informational flags do not matter");
        let mut fixed = fixed();
        fixed.payload_len = u64::MAX - 10;
        assert!(fixed.places().is_none());
    }
}
