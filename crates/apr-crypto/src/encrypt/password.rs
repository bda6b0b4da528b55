//! Passwords, and key derivation with Argon2id.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::array::stored_bytes;
use crate::encrypt::aead::AesKey;
use crate::error::{Error, ErrorKind};
use crate::random::Rng;
use crate::secret::{Secret, redacted};

/// A password, zeroized on drop. Its bytes are used as they are, without normalization.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::{Argon2Cost, Password, Salt};
///
/// let password = Password::new(String::from("correct horse battery staple"));
/// let salt = Salt::generate(rng)?;
/// let key = password.derive_key(&salt, &Argon2Cost::APR_V1)?;
/// # let sealed = key.seal(rng, b"", b"weights")?;
/// # let same = Password::from("correct horse battery staple").derive_key(&salt, &Argon2Cost::APR_V1)?;
/// # assert_eq!(same.open(b"", &sealed)?, b"weights");
/// assert_eq!(format!("{password:?}"), "Password(..)");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
///
/// ```compile_fail,E0599
/// let copy = apr_crypto::Password::from("secret").clone();
/// ```
///
/// ```compile_fail,E0277
/// fn write(value: &impl serde::Serialize) {}
/// write(&"secret");
/// write(&apr_crypto::Password::from("secret"));
/// ```
pub struct Password(Vec<u8>);

impl Password {
    /// Takes the text over; it is wiped with the password.
    #[must_use]
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into())
    }

    /// Whether there is not a single byte. Known files may have been made with such a password; new ones should not be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key of this password (Argon2id, version 0x13, 32 bytes). Takes the time and memory of `cost`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`] if the memory is not there.
    pub fn derive_key(&self, salt: &Salt, cost: &Argon2Cost) -> Result<AesKey, Error> {
        let mut key = Secret::zeroed();
        self.derive(salt, cost, key.bytes_mut())?;
        Ok(AesKey::new(key))
    }

    #[cfg(feature = "scrypt")]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn derive(&self, salt: &Salt, cost: &Argon2Cost, out: &mut [u8; 32]) -> Result<(), Error> {
        let params = cost.params();
        let count = params.block_count();
        let len = count.saturating_mul(Block::SIZE);
        let mut memory = Memory(Vec::new());
        memory
            .0
            .try_reserve_exact(count)
            .map_err(|_| Error::from(ErrorKind::OutOfMemory { len: len as u64 }))?;
        memory.0.resize(count, Block::default());
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(&self.0, &salt.0, out, &mut memory.0)
            .map_err(|_| ErrorKind::TooLong {
                what: "the password",
                len: self.0.len() as u64,
                limit: MAX_LEN,
            })?;
        Ok(())
    }
}

/// What Argon2 takes at most.
const MAX_LEN: u64 = 0xffff_ffff;

impl From<&str> for Password {
    /// Copies the text; wiping the original is the caller's task.
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl Drop for Password {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Password {}

redacted!(Password);

/// Argon2's working memory; the last block is the key.
struct Memory(Vec<Block>);

impl Drop for Memory {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(Zeroize::zeroize);
    }
}

/// A salt of the key derivation, different in every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt([u8; Self::LEN]);

impl Salt {
    /// A new salt.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`] if there is none.
    pub fn generate(rng: &mut (impl Rng + ?Sized)) -> Result<Self, Error> {
        let mut bytes = [0; Self::LEN];
        rng.fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

stored_bytes!(Salt, 16);

/// Cost of the key derivation: memory in KiB, passes over it, lanes. Always within [`Argon2Limits`], so that a file cannot demand
/// a terabyte or a year.
///
/// ```
/// use apr_crypto::{Argon2Cost, Argon2Limits};
///
/// let cost = Argon2Cost::new(64 * 1024, 3, 4, &Argon2Limits::default())?;
/// assert_eq!(cost, Argon2Cost::RFC_9106);
/// let error = Argon2Cost::new(1 << 30, 3, 4, &Argon2Limits::default()).unwrap_err();
/// assert_eq!(error.code(), "cy-cost");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argon2Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

impl Argon2Cost {
    /// Length of [`to_bytes`](Self::to_bytes).
    pub const LEN: usize = 12;
    /// The set that `.apr` version 1 uses without saying so: 19 MiB, 2 passes, 1 lane.
    pub const APR_V1: Self = Self { memory_kib: 19_456, passes: 2, lanes: 1 };
    /// The second recommendation of RFC 9106, section 4, for machines without 2 GiB to spare: 64 MiB, 3 passes, 4 lanes.
    pub const RFC_9106: Self = Self { memory_kib: 65_536, passes: 3, lanes: 4 };

    /// A cost, if it is within `limits`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cost`] if it is not.
    pub fn new(memory_kib: u32, passes: u32, lanes: u32, limits: &Argon2Limits) -> Result<Self, Error> {
        let check = |what, found: u64, range: &RangeInclusive<u64>| {
            let (min, max) = (*range.start(), *range.end());
            if range.contains(&found) { Ok(()) } else { Err(ErrorKind::Cost { what, found, min, max }) }
        };
        let wide = |range: &RangeInclusive<u32>| u64::from(*range.start())..=u64::from(*range.end());
        let (memory, work) = (u64::from(memory_kib), u64::from(memory_kib) * u64::from(passes));
        // Argon2 needs two blocks in each of the four slices of a lane; fewer than one lane or pass do not exist.
        check("lanes", u64::from(lanes), &within(wide(&limits.lanes), 1..=0x00ff_ffff))?;
        check("passes", u64::from(passes), &within(wide(&limits.passes), 1..=u64::from(u32::MAX)))?;
        let least = 8 * u64::from(lanes);
        check("memory in KiB", memory, &within(wide(&limits.memory_kib), least..=u64::from(u32::MAX)))?;
        check("memory times passes in KiB", work, &(0..=limits.work_kib))?;
        Ok(Self { memory_kib, passes, lanes })
    }

    /// As a file holds it: memory in KiB, passes, lanes, each 32 bits, little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        for (out, value) in bytes.chunks_exact_mut(4).zip([self.memory_kib, self.passes, self.lanes]) {
            out.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// From a file, if it is within `limits`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cost`] if it is not.
    pub fn from_bytes(bytes: &[u8; Self::LEN], limits: &Argon2Limits) -> Result<Self, Error> {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        let number = u32::from_le_bytes;
        Self::new(number([a, b, c, d]), number([e, f, g, h]), number([i, j, k, l]), limits)
    }

    /// Working memory in KiB.
    #[must_use]
    pub const fn memory_kib(&self) -> u32 {
        self.memory_kib
    }

    /// Passes over the memory.
    #[must_use]
    pub const fn passes(&self) -> u32 {
        self.passes
    }

    /// Lanes.
    #[must_use]
    pub const fn lanes(&self) -> u32 {
        self.lanes
    }

    fn params(&self) -> Params {
        Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).expect("checked when it was made")
    }
}

/// What `a` and `b` have in common; empty if nothing.
fn within(a: RangeInclusive<u64>, b: RangeInclusive<u64>) -> RangeInclusive<u64> {
    *a.start().max(b.start())..=*a.end().min(b.end())
}

/// Which costs are accepted. The default is meant for costs from untrusted files: 8 MiB to 1 GiB, at most 16
/// passes, 8 lanes, and 4 GiB filled in all (a few seconds on one core).
///
/// ```
/// use apr_crypto::Argon2Limits;
///
/// // A small machine: no more than 64 MiB.
/// let limits = Argon2Limits::default().with_memory_kib(8 * 1024..=64 * 1024);
/// # assert!(apr_crypto::Argon2Cost::new(65_537, 1, 1, &limits).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Argon2Limits {
    memory_kib: RangeInclusive<u32>,
    passes: RangeInclusive<u32>,
    lanes: RangeInclusive<u32>,
    work_kib: u64,
}

impl Default for Argon2Limits {
    fn default() -> Self {
        Self { memory_kib: 8 * 1024..=1024 * 1024, passes: 1..=16, lanes: 1..=8, work_kib: 4 * 1024 * 1024 }
    }
}

impl Argon2Limits {
    /// Accepted memory in KiB.
    #[must_use]
    pub fn with_memory_kib(mut self, range: RangeInclusive<u32>) -> Self {
        self.memory_kib = range;
        self
    }

    /// Accepted passes.
    #[must_use]
    pub fn with_passes(mut self, range: RangeInclusive<u32>) -> Self {
        self.passes = range;
        self
    }

    /// Accepted lanes.
    #[must_use]
    pub fn with_lanes(mut self, range: RangeInclusive<u32>) -> Self {
        self.lanes = range;
        self
    }

    /// Largest accepted product of memory in KiB and passes.
    #[must_use]
    pub const fn with_work_kib(mut self, limit: u64) -> Self {
        self.work_kib = limit;
        self
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use argon2::{AssociatedData, ParamsBuilder};

    use super::*;
    use crate::hex::array;

    fn small() -> Argon2Limits {
        Argon2Limits::default().with_memory_kib(8..=1024 * 1024)
    }

    /// RFC 9106, 5.3: Argon2id with a secret and associated data, which this crate never uses; what it stands on is
    /// checked here.
    #[test]
    fn rfc_9106() {
        let mut params = ParamsBuilder::new();
        let data = AssociatedData::new(&[4; 12]).unwrap();
        let params = params.m_cost(32).t_cost(3).p_cost(4).output_len(32).data(data).build().unwrap();
        let argon2 = Argon2::new_with_secret(&[3; 8], Algorithm::Argon2id, Version::V0x13, params).unwrap();
        let (mut out, mut memory) = ([0; 32], alloc::vec![Block::default(); 32]);
        argon2.hash_password_into_with_memory(&[1; 32], &[2; 16], &mut out, &mut memory).unwrap();
        assert_eq!(out, array("0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659"));
    }

    /// Computed by the reference implementation in C.
    #[test]
    fn equals_the_reference_implementation() {
        let cases = REFERENCE;
        for (password, salt, (memory, passes, lanes), expected) in cases {
            let cost = Argon2Cost::new(memory, passes, lanes, &small()).unwrap();
            let key = Password::from(password).derive_key(&Salt::from_file(*salt), &cost).unwrap();
            assert_eq!(key.bytes(), &array::<32>(expected), "{password:?}");
        }
    }

    type Reference = (&'static str, &'static [u8; 16], (u32, u32, u32), &'static str);
    const REFERENCE: [Reference; 4] = [
        (
            "",
            b"0123456789abcdef",
            (8, 1, 1),
            "d440eba67886df93d643dcb8a69b02af68c16d284cd6f68659553e245bf9efc0",
        ),
        (
            "my-strong-password",
            b"0123456789abcdef",
            (19_456, 2, 1),
            "6b3a79fd5305d314c9eabd780d489f4436111b1f100de9e34845ed16f1fda266",
        ),
        (
            "pässwörd ☂",
            b"\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff",
            (1_024, 3, 4),
            "dfeeeb00f5d17bc57c7ebe1304959e18408a2795ed95a4f9f4332c8ef18de917",
        ),
        (
            "x",
            b"0123456789abcdef",
            (65, 16, 8),
            "d5ee82b386a1a2761b377e267ab2a3b5050e75f8a08a269eb80ba88e58eb00be",
        ),
    ];

    #[test]
    fn costs_outside_the_limits_are_refused() {
        let limits = Argon2Limits::default();
        let kind = |m, t, p| *Argon2Cost::new(m, t, p, &limits).unwrap_err().kind();
        let memory = |found| ErrorKind::Cost { what: "memory in KiB", found, min: 8192, max: 1 << 20 };
        assert_eq!(kind(8191, 1, 1), memory(8191));
        assert_eq!(kind((1 << 20) + 1, 1, 1), memory((1 << 20) + 1));
        assert_eq!(kind(u32::MAX, 1, 1), memory(u64::from(u32::MAX)));
        assert_eq!(kind(8192, 0, 1), ErrorKind::Cost { what: "passes", found: 0, min: 1, max: 16 });
        assert_eq!(kind(8192, 17, 1), ErrorKind::Cost { what: "passes", found: 17, min: 1, max: 16 });
        assert_eq!(kind(8192, 1, 0), ErrorKind::Cost { what: "lanes", found: 0, min: 1, max: 8 });
        assert_eq!(kind(8192, 1, 9), ErrorKind::Cost { what: "lanes", found: 9, min: 1, max: 8 });
        let work =
            ErrorKind::Cost { what: "memory times passes in KiB", found: 5 << 20, min: 0, max: 4 << 20 };
        assert_eq!(kind(1 << 20, 5, 1), work);
        assert!(Argon2Cost::new(1 << 20, 4, 8, &limits).is_ok());
        assert!(Argon2Cost::new(8192, 16, 8, &limits).is_ok());
    }

    /// However wide a caller opens the limits, what Argon2 itself cannot do is refused.
    #[test]
    fn wide_limits_do_not_reach_below_the_algorithm() {
        let all = 0..=u32::MAX;
        let limits = Argon2Limits::default()
            .with_memory_kib(all.clone())
            .with_passes(all.clone())
            .with_lanes(all)
            .with_work_kib(u64::MAX);
        for (memory, passes, lanes) in [(7, 1, 1), (15, 1, 2), (8, 0, 1), (8, 1, 0), (u32::MAX, 1, 1 << 24)] {
            assert_eq!(Argon2Cost::new(memory, passes, lanes, &limits).unwrap_err().code(), "cy-cost");
        }
        let most = Argon2Cost::new(u32::MAX, u32::MAX, 0x00ff_ffff, &limits).unwrap();
        assert_eq!(most.params().m_cost(), u32::MAX);
    }

    #[test]
    fn bytes_there_and_back() {
        for cost in [Argon2Cost::APR_V1, Argon2Cost::RFC_9106] {
            assert_eq!(Argon2Cost::from_bytes(&cost.to_bytes(), &Argon2Limits::default()).unwrap(), cost);
        }
        assert_eq!(Argon2Cost::APR_V1.to_bytes(), [0, 0x4c, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!((Argon2Cost::RFC_9106.passes(), Argon2Cost::RFC_9106.lanes()), (3, 4));
        assert!(Argon2Cost::from_bytes(&[0xff; 12], &Argon2Limits::default()).is_err());
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Password::from("hunter2")), "Password(..)");
        assert!(Password::from("").is_empty() && !Password::from("x").is_empty());
    }
}
