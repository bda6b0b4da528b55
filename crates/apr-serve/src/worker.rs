//! What the threads of a server share, and what each of them does.

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::io::{self, Write as _};
use std::time::Instant;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::admit::Hosts;
use crate::connection;
use crate::metrics::{Counters, Rare, State};
use crate::options::Options;
use crate::refusal::Refusal;
use crate::slot::Slot;

/// How often a thread looks whether it shall stop, and a connection whether its time is over.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) hosts: Hosts,
    pub(crate) slot: Slot,
    pub(crate) counters: Vec<Counters>,
    pub(crate) rare: Rare,
    /// What times are counted from.
    pub(crate) start: Instant,
    is_draining: AtomicBool,
    open_connections: AtomicUsize,
    buffered: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(options: Options, addr: SocketAddr, slot: Slot) -> Self {
        let counters = (0..options.threads.max(1)).map(|_| Counters::default()).collect();
        Self {
            hosts: Hosts::new(addr, &options.allowed_hosts),
            options,
            slot,
            counters,
            rare: Rare::default(),
            start: Instant::now(),
            is_draining: AtomicBool::new(false),
            open_connections: AtomicUsize::new(0),
            buffered: AtomicUsize::new(0),
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.open_connections.load(Ordering::Relaxed)
    }

    pub(crate) fn state(&self) -> State {
        let served = self.slot.current();
        State {
            open_connections: self.open_connections(),
            buffered: self.buffered.load(Ordering::Relaxed),
            generation: served.generation,
            loaded_at: served.loaded_at,
            is_draining: self.is_draining(),
        }
    }
}

/// Bytes that a request has been promised.
#[derive(Debug)]
pub(crate) struct Reserved<'s> {
    shared: &'s Shared,
    len: usize,
}

impl<'s> Reserved<'s> {
    pub(crate) fn none(shared: &'s Shared) -> Self {
        Self { shared, len: 0 }
    }

    /// Makes it at least so many bytes, and a half more to come.
    ///
    /// # Errors
    ///
    /// If all requests together would have more than they may.
    pub(crate) fn grow(&mut self, needed: usize) -> Result<(), Refusal> {
        if needed <= self.len {
            return Ok(());
        }
        let more = needed + needed / 2 - self.len;
        let before = self.shared.buffered.fetch_add(more, Ordering::Relaxed);
        self.len += more;
        if before.saturating_add(more) > self.shared.options.max_memory {
            return Err(Refusal::busy("the requests in progress fill the memory that they may use"));
        }
        Ok(())
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.shared.buffered.fetch_sub(self.len, Ordering::Relaxed);
    }
}

/// One thread.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    idx: usize,
    /// Long requests of the thread take turns, so that short ones wait for a piece of one of them.
    pub(crate) turns: Semaphore,
    open_connections: AtomicUsize,
}

/// A connection that counts as open.
struct Open {
    worker: Arc<Worker>,
}

impl Open {
    fn new(worker: &Arc<Worker>) -> Self {
        worker.open_connections.fetch_add(1, Ordering::Relaxed);
        worker.shared.open_connections.fetch_add(1, Ordering::Relaxed);
        Self { worker: Arc::clone(worker) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.worker.open_connections.fetch_sub(1, Ordering::Relaxed);
        self.worker.shared.open_connections.fetch_sub(1, Ordering::Relaxed);
    }
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

    /// Accepts until the server stops, then waits for the connections that are left.
    pub(crate) async fn run(self: Arc<Self>, listener: TcpListener) {
        while !self.shared.is_draining() {
            // What this thread keeps of the model must not outlive it for long.
            drop(self.shared.slot.current());
            match timeout(TICK, listener.accept()).await {
                Ok(Ok((stream, _))) => self.take(stream),
                Ok(Err(error)) if is_of_one_connection(&error) => {}
                // No descriptors or no memory: some will come back.
                Ok(Err(_)) => sleep(TICK).await,
                Err(_) => {}
            }
        }
        drop(listener);
        let end = Instant::now() + self.shared.options.grace;
        while self.open_connections.load(Ordering::Relaxed) > 0 && Instant::now() < end {
            sleep(TICK / 10).await;
        }
    }

    fn take(self: &Arc<Self>, stream: TcpStream) {
        if self.shared.open_connections() >= self.shared.options.max_connections {
            self.shared.rare.rejected();
            let refusal = Refusal::busy("there are as many connections as there may be");
            // A new socket takes so little at once, and the runtime does not know yet that it does.
            let _ = stream.into_std().and_then(|mut stream| stream.write_all(&refusal.to_response()));
            return;
        }
        self.counters().connected();
        let open = Open::new(self);
        let worker = Arc::clone(self);
        tokio::spawn(async move {
            connection::serve(stream, worker).await;
            drop(open);
        });
    }
}

/// Whether the connection is at fault that was to be accepted, not the machine.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted | WouldBlock)
}
