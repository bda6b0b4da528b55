//! Time of the processor.

use core::time::Duration;

/// Measures the time that the processor spends in the current thread: unlike the time of day, other programs do not change it.
///
/// Linux only, from `/proc`, to a few milliseconds. Elsewhere every measurement is zero.
#[derive(Debug)]
pub struct CpuTimer {
    start: Duration,
}

impl CpuTimer {
    /// Starts measuring, in this thread.
    #[must_use]
    pub fn start() -> Self {
        Self { start: of_thread() }
    }

    /// The time since the start; called in the same thread.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        of_thread().saturating_sub(self.start)
    }
}

/// The time of the thread so far: the first field of `schedstat`, in nanoseconds.
fn of_thread() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split_ascii_whitespace().next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn work_counts_and_sleep_does_not() {
        let timer = CpuTimer::start();
        std::thread::sleep(Duration::from_millis(200));
        let asleep = timer.elapsed();
        assert!(asleep < Duration::from_millis(100), "{asleep:?}");
        let start = Instant::now();
        while timer.elapsed() < asleep + Duration::from_millis(50) {
            assert!(start.elapsed() < Duration::from_secs(60), "the time of the thread stands still");
        }
    }
}
