//! Protection against replayed requests.

use alloc::collections::BTreeSet;
use core::fmt;

use crate::error::{Error, ErrorKind};
use crate::random::Rng;

/// The unique id of a request: a random number, and when it was made if the client says so. Both are encrypted
/// and authenticated with the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplayToken {
    /// Zero if the client does not say. First, so that tokens are ordered by it.
    sent_at: u64,
    id: [u8; Self::ID_LEN],
}

impl ReplayToken {
    /// Length of the random number.
    pub const ID_LEN: usize = 16;
    /// Random number and time.
    pub(super) const LEN: usize = Self::ID_LEN + 8;

    pub(super) fn generate(rng: &mut (impl Rng + ?Sized), sent_at: Option<u64>) -> Result<Self, Error> {
        let mut id = [0; Self::ID_LEN];
        rng.fill(&mut id)?;
        Ok(Self { sent_at: sent_at.unwrap_or(0), id })
    }

    pub(super) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (id, sent_at) = bytes.split_at_mut(Self::ID_LEN);
        id.copy_from_slice(&self.id);
        sent_at.copy_from_slice(&self.sent_at.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let (id, sent_at) = crate::array::split::<{ Self::LEN }, { Self::ID_LEN }, 8>(bytes);
        Self { sent_at: u64::from_le_bytes(*sent_at), id: *id }
    }

    /// The random number.
    #[must_use]
    pub const fn id(&self) -> &[u8; Self::ID_LEN] {
        &self.id
    }

    /// Seconds since 1970, if the client says so.
    #[must_use]
    pub fn sent_at(&self) -> Option<u64> {
        Some(self.sent_at).filter(|seconds| *seconds > 0)
    }
}

/// Remembers which requests were admitted, in bounded memory, and refuses them from then on.
///
/// With a window, requests that are older are refused, so they can be forgotten. Without a clock nothing is ever
/// forgotten. In both cases a guard that is full refuses what is new: it never forgets a request that could come again.
///
/// Anyone who has the public key can fill the guard and so have honest clients refused, for a window, or without a clock until the key changes. Limit
/// the requests of each client before they are decrypted.
///
/// ```
/// use apr_crypto::inference::ReplayGuard;
///
/// // About 10 MB at most; requests may be five minutes old.
/// let guard = ReplayGuard::new(100_000, 300);
/// // After a restart, what the process before may have admitted has to be refused.
/// let now = 1_795_241_427;
/// let guard = ReplayGuard::new(100_000, 300).not_before(now + 300 + 1);
/// ```
#[derive(Clone)]
pub struct ReplayGuard {
    capacity: usize,
    /// Seconds a request's time may differ from the server's, or `None` without a clock.
    window: Option<u64>,
    not_before: u64,
    /// The latest time seen: a clock that is set back does not make old requests new.
    now: u64,
    seen: BTreeSet<ReplayToken>,
}

impl ReplayGuard {
    /// Remembers at most `capacity` requests (some 50 bytes each), made at most `window` seconds before or after the time
    /// that [`admit`](Self::admit) is told. Requests that do not say their time are refused.
    #[must_use]
    pub const fn new(capacity: usize, window: u64) -> Self {
        Self { capacity, window: Some(window), not_before: 0, now: 0, seen: BTreeSet::new() }
    }

    /// Remembers `capacity` requests for good and asks for no times: for a key that serves no more requests than that.
    #[must_use]
    pub const fn without_clock(capacity: usize) -> Self {
        Self { capacity, window: None, not_before: 0, now: 0, seen: BTreeSet::new() }
    }

    /// Refuses requests made before this time, in seconds since 1970. A process that was restarted does not know what the
    /// one before admitted: the time to give is that of the start, plus the window, plus one.
    #[must_use]
    pub const fn not_before(mut self, seconds: u64) -> Self {
        self.not_before = seconds;
        self
    }

    /// Admits a request once. `now` is the server's time in seconds since 1970; without a clock it does not count.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`] for a request of another time, [`ErrorKind::Replay`] for one that was admitted before,
    /// [`ErrorKind::ReplayGuardFull`].
    pub fn admit(&mut self, token: &ReplayToken, now: u64) -> Result<(), Error> {
        if let Some(window) = self.window {
            self.now = self.now.max(now);
            // A request without a time counts as one of 1970.
            let earliest = self.now.saturating_sub(window).max(self.not_before).max(1);
            let latest = self.now.saturating_add(window);
            if !(earliest..=latest).contains(&token.sent_at) {
                return Err(ErrorKind::Stale { sent_at: token.sent_at, earliest, latest }.into());
            }
            while self.seen.first().is_some_and(|oldest| oldest.sent_at < earliest) {
                self.seen.pop_first();
            }
        }
        if self.seen.contains(token) {
            return Err(ErrorKind::Replay.into());
        }
        if self.seen.len() >= self.capacity {
            return Err(ErrorKind::ReplayGuardFull { capacity: self.capacity as u64 }.into());
        }
        self.seen.insert(*token);
        Ok(())
    }

    /// Requests it remembers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether it remembers none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

impl fmt::Debug for ReplayGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayGuard")
            .field("capacity", &self.capacity)
            .field("window", &self.window)
            .field("len", &self.seen.len())
            .finish_non_exhaustive()
    }
}
