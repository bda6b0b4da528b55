//! When a request is tried again.

use core::time::Duration;

/// Pause before the second try at most; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// No pause is longer, unless the server asks for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// Bytes that count as progress: tries are counted from there again.
const PROGRESS: u64 = 64 << 10;
/// Bytes per second that a body has to bring.
const SLOWEST: u64 = 64 << 10;
/// Time that a request has besides: for the connection, the answer, and pauses of the network.
const GRACE: Duration = Duration::from_secs(30);

/// Clock and random numbers, so that tests need neither.
pub(crate) trait Pace: core::fmt::Debug + Send + Sync {
    /// Time since some moment.
    fn now(&self) -> Duration;

    fn sleep(&self, pause: Duration);

    /// Any number.
    fn random(&self) -> u64;
}

/// How often and how long a read is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    /// Tries without progress.
    pub count: u32,
    /// Time without progress.
    pub time: Duration,
    /// Bytes per second that the reads of a client have to bring together, measured over 30 seconds; slower reads do not count as progress. 0 for
    /// any speed.
    pub rate: u64,
}

impl Default for Tries {
    /// 8 tries in 3 minutes, 10 kB/s.
    fn default() -> Self {
        Self { count: 8, time: Duration::from_secs(180), rate: 10_000 }
    }
}

/// What becomes of a read that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Again after this pause.
    Pause(Duration),
    /// The server asks for a pause beyond the limit.
    TooLong(Duration),
    /// Tries or time are used up.
    GiveUp { tries: u32 },
}

/// Bytes of all reads of a client, from some moment on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    since: Duration,
    /// Bytes at that moment.
    bytes: u64,
    rate: u64,
}

impl Flow {
    /// From now on; `bytes` have been read before.
    pub(crate) const fn new(rate: u64, now: Duration, bytes: u64) -> Self {
        Self { since: now, bytes, rate }
    }

    /// Whether the bytes since then are too few for the time.
    fn is_slow(&self, now: Duration, bytes: u64) -> bool {
        let wanted = u128::from(self.rate) * now.saturating_sub(self.since).as_millis() / 1_000;
        u128::from(bytes.saturating_sub(self.bytes)) < wanted
    }

    /// Whether a whole window was too slow; after one that was not, the next begins.
    pub(crate) fn is_too_slow(&mut self, now: Duration, bytes: u64) -> bool {
        if now.saturating_sub(self.since) < GRACE {
            return false;
        }
        let is_slow = self.is_slow(now, bytes);
        if !is_slow {
            (self.since, self.bytes) = (now, bytes);
        }
        is_slow
    }
}

/// The tries of one read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    limits: Tries,
    failed: u32,
    flow: Flow,
}

impl Schedule {
    /// `bytes` have been read by the client before.
    pub(crate) const fn new(limits: Tries, now: Duration, bytes: u64) -> Self {
        Self { limits, failed: 0, flow: Flow::new(limits.rate, now, bytes) }
    }

    /// Tries without progress so far.
    pub(crate) const fn tries(&self) -> u32 {
        self.failed
    }

    /// After a try that brought `got` bytes and failed; the client has read `bytes` in all, and `asked` is the pause of `Retry-After`.
    pub(crate) fn failed(&mut self, got: u64, bytes: u64, asked: Option<Duration>, pace: &dyn Pace) -> Next {
        let now = pace.now();
        // A server that sends a little at each try would hold its reader for ever.
        if got >= PROGRESS && !self.flow.is_slow(now, bytes) {
            (self.failed, self.flow) = (0, Flow::new(self.limits.rate, now, bytes));
        }
        self.failed = self.failed.saturating_add(1);
        let left = self.limits.time.saturating_sub(now.saturating_sub(self.flow.since));
        if self.failed >= self.limits.count || left.is_zero() {
            return Next::GiveUp { tries: self.failed };
        }
        let most = FIRST_PAUSE.saturating_mul(1 << (self.failed - 1).min(16)).min(LONGEST_PAUSE);
        // Full jitter: clients that failed together do not come back together.
        let pause = Duration::from_micros(pace.random() % (most.as_micros() as u64 + 1));
        match asked {
            Some(asked) if asked > left => Next::TooLong(asked),
            Some(asked) => Next::Pause(asked.max(pause).min(left)),
            None => Next::Pause(pause.min(left)),
        }
    }
}

/// The longest time for a request whose body has `len` bytes: below 64 KiB/s after 30 seconds, it is tried again.
pub(crate) const fn allowed(len: u64) -> Duration {
    GRACE.saturating_add(Duration::from_secs(len.div_ceil(SLOWEST)))
}

/// Statuses of servers that are busy or behind a proxy that is.
pub(crate) const fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// The pause of `Retry-After`: seconds, or a date, which counts from the `Date` of the same answer: no clock is compared.
pub(crate) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = seconds_of_date(value)?;
    Some(Duration::from_secs(until.saturating_sub(seconds_of_date(date?)?)))
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
fn seconds_of_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = words.as_slice() else { return None };
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let month = MONTHS.iter().position(|name| name == month)? as u64;
    let time: Vec<u64> = time.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [hours, minutes, seconds] = time.as_slice() else { return None };
    if !(1970..10_000).contains(&year)
        || !(1..=31).contains(&day)
        || *hours > 23
        || *minutes > 59
        || *seconds > 60
    {
        return None;
    }
    // Years begin in March, so that leap days are at their ends.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let since_1970 = days.checked_sub(719_468)?;
    Some(since_1970 * 86_400 + hours * 3_600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Fixed {
        now: AtomicU64,
        random: u64,
    }

    impl Pace for Fixed {
        fn now(&self) -> Duration {
            Duration::from_micros(self.now.load(Ordering::Relaxed))
        }

        fn sleep(&self, pause: Duration) {
            self.now.fetch_add(pause.as_micros() as u64, Ordering::Relaxed);
        }

        fn random(&self) -> u64 {
            self.random
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_tries_end() {
        // One less than a multiple of every range, so that each pause is its longest.
        let pace = Fixed { random: 100_000, ..Fixed::default() };
        let mut schedule = Schedule::new(Tries { count: 4, ..Tries::default() }, pace.now(), 0);
        assert_eq!(schedule.failed(0, 0, None, &pace), Next::Pause(Duration::from_millis(100)));
        assert_eq!(schedule.failed(0, 0, None, &pace), Next::Pause(Duration::from_millis(100)));
        assert_eq!(schedule.failed(PROGRESS, PROGRESS, None, &pace), Next::Pause(Duration::from_millis(100)));
        assert!(matches!(schedule.failed(PROGRESS - 1, 1 << 20, None, &pace), Next::Pause(_)));
        assert!(matches!(schedule.failed(0, 0, None, &pace), Next::Pause(_)));
        assert_eq!(schedule.failed(0, 0, None, &pace), Next::GiveUp { tries: 4 });
    }

    #[test]
    fn servers_are_obeyed_within_the_time() {
        let pace = Fixed::default();
        let mut schedule = Schedule::new(Tries::default(), pace.now(), 0);
        let asked = Duration::from_secs(20);
        assert_eq!(schedule.failed(0, 0, Some(asked), &pace), Next::Pause(asked));
        pace.sleep(Duration::from_secs(170));
        assert_eq!(schedule.failed(0, 0, Some(asked), &pace), Next::TooLong(asked));
        pace.sleep(Duration::from_secs(10));
        assert_eq!(schedule.failed(0, 0, None, &pace), Next::GiveUp { tries: 3 });
    }

    #[test]
    fn a_little_at_each_try_is_no_progress() {
        let pace = Fixed::default();
        let mut schedule = Schedule::new(Tries::default(), pace.now(), 0);
        let mut bytes = 0;
        for _ in 0..5 {
            // 3 kB/s.
            pace.sleep(Duration::from_secs(30));
            bytes += 90_000;
            assert!(matches!(schedule.failed(90_000, bytes, None, &pace), Next::Pause(_)));
        }
        pace.sleep(Duration::from_secs(30));
        assert_eq!(schedule.failed(90_000, bytes + 90_000, None, &pace), Next::GiveUp { tries: 6 });
    }

    #[test]
    fn the_rate_is_measured_over_windows() {
        let at = Duration::from_secs;
        let mut flow = Flow::new(10_000, at(5), 1_000);
        assert!(!flow.is_too_slow(at(34), 1_000));
        assert!(!flow.is_too_slow(at(35), 301_000));
        assert!(!flow.is_too_slow(at(64), 301_000));
        assert!(flow.is_too_slow(at(65), 600_999));
        assert!(!Flow::new(0, at(0), 0).is_too_slow(at(1_000), 0));
    }

    #[test]
    fn pauses_are_never_longer_than_the_limit() {
        for random in [0, 1, u64::MAX, 0x9E37_79B9_7F4A_7C15] {
            let pace = Fixed { random, ..Fixed::default() };
            let mut schedule =
                Schedule::new(Tries { count: 100, time: Duration::from_secs(1_000), rate: 0 }, pace.now(), 0);
            while let Next::Pause(pause) = schedule.failed(0, 0, None, &pace) {
                assert!(pause <= LONGEST_PAUSE);
                pace.sleep(pause);
            }
        }
    }

    #[test]
    fn dates_are_those_of_the_standard() {
        assert_eq!(seconds_of_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds_of_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds_of_date("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        let after = |value| retry_after(value, Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert_eq!(after("Sun, 06 Nov 1994 08:50:00 GMT"), Some(Duration::from_secs(23)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:00 GMT"), Some(Duration::ZERO));
        assert_eq!(after(" 7 "), Some(Duration::from_secs(7)));
        for value in ["", "-1", "soon", "Sun, 06 Nov 99994 08:49:37 GMT", "Sun, 06 Nov 1994 8 GMT"] {
            assert_eq!(after(value), None, "{value}");
        }
    }

    #[test]
    fn slow_bodies_have_the_time_of_the_slowest_rate() {
        assert_eq!(allowed(0), Duration::from_secs(30));
        assert_eq!(allowed(8 << 20), Duration::from_secs(158));
    }
}
