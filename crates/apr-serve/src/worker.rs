//! State of a server: shared by its threads, and per thread.

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::time::Instant;

use hyper::StatusCode;
use tokio::sync::Semaphore;

use crate::admit::Hosts;
use crate::budget::MemoryBudget;
use crate::connections::Connections;
use crate::log::{Log, Logged};
use crate::metrics::{Counters, Rare, State};
use crate::options::Options;
use crate::slot::Slot;

/// Interval of the checks for a stop and for timeouts.
pub(crate) const TICK: Duration = Duration::from_millis(50);
/// Longest time for a request, and for those in progress at the end.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) hosts: Hosts,
    pub(crate) log: Option<Log>,
    pub(crate) slot: Slot,
    #[cfg(feature = "private")]
    pub(crate) private: Option<crate::private::Private>,
    pub(crate) counters: Vec<Counters>,
    pub(crate) rare: Rare,
    pub(crate) connections: Connections,
    pub(crate) budget: Arc<MemoryBudget>,
    /// What times are counted from.
    start: Instant,
    is_draining: AtomicBool,
}

impl Shared {
    pub(crate) fn new(mut options: Options, addr: SocketAddr, log: Option<Log>, slot: Slot) -> Self {
        // Times are added to that of the clock.
        options.request_time = options.request_time.min(LONGEST);
        options.grace = options.grace.min(LONGEST);
        let counters = (0..options.threads.max(1)).map(|_| Counters::default()).collect();
        Self {
            hosts: Hosts::new(addr, &options.allowed_hosts),
            connections: Connections::new(&options),
            budget: Arc::new(MemoryBudget::new(options.max_memory)),
            options,
            log,
            slot,
            #[cfg(feature = "private")]
            private: None,
            counters,
            rare: Rare::default(),
            start: Instant::now(),
            is_draining: AtomicBool::new(false),
        }
    }

    /// Logs a response to input that was not a request.
    pub(crate) fn log_other(&self, status: StatusCode) {
        if let Some(log) = &self.log {
            log.write(Logged {
                method: "-",
                target: "-",
                status: status.as_u16(),
                elapsed: Duration::ZERO,
                n_rows: 0,
            });
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Milliseconds since the server's start.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    pub(crate) fn state(&self) -> State {
        let served = self.slot.current();
        State {
            open_connections: self.connections.open(),
            buffered: self.budget.used(),
            load_count: served.load_count,
            loaded_at: served.loaded_at,
            is_draining: self.is_draining(),
        }
    }
}

/// One thread.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    idx: usize,
    /// Long requests of the thread take turns, so that short ones wait for a piece of one of them.
    pub(crate) turns: Semaphore,
    pub(crate) open_connections: AtomicUsize,
}

impl Worker {
    pub(crate) fn new(shared: &Arc<Shared>, idx: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            idx,
            turns: Semaphore::new(1),
            open_connections: AtomicUsize::new(0),
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.idx]
    }
}
