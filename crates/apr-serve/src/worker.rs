//! What the threads of a server share, and what each of them does.

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::io::{self, Write as _};
use std::time::Instant;

use hyper::StatusCode;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::admit::Hosts;
use crate::connection;
use crate::connections::{Connections, Entrance};
use crate::log::{Log, Logged};
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
    pub(crate) log: Option<Log>,
    pub(crate) slot: Slot,
    pub(crate) counters: Vec<Counters>,
    pub(crate) rare: Rare,
    pub(crate) connections: Connections,
    /// What times are counted from.
    start: Instant,
    is_draining: AtomicBool,
    buffered: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(options: Options, addr: SocketAddr, log: Option<Log>, slot: Slot) -> Self {
        let counters = (0..options.threads.max(1)).map(|_| Counters::default()).collect();
        Self {
            hosts: Hosts::new(addr, &options.allowed_hosts),
            connections: Connections::new(&options),
            options,
            log,
            slot,
            counters,
            rare: Rare::default(),
            start: Instant::now(),
            is_draining: AtomicBool::new(false),
            buffered: AtomicUsize::new(0),
        }
    }

    /// Logs an answer to what was no request.
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
            buffered: self.buffered.load(Ordering::Relaxed),
            load_count: served.load_count,
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
    id: u64,
}

impl Open {
    fn new(worker: &Arc<Worker>, id: u64) -> Self {
        worker.open_connections.fetch_add(1, Ordering::Relaxed);
        Self { worker: Arc::clone(worker), id }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.worker.open_connections.fetch_sub(1, Ordering::Relaxed);
        self.worker.shared.connections.leave(self.id);
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
                Ok(Ok((stream, peer))) => self.take(stream, peer),
                Ok(Err(error)) if is_of_one_connection(&error) => {}
                // No descriptors or no memory: an idle connection gives some back, or one that ends.
                Ok(Err(_)) if self.shared.connections.close_one(self.shared.now()) => {
                    self.shared.rare.closed_for_another();
                    sleep(Duration::from_millis(1)).await;
                }
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

    fn take(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let connections = &self.shared.connections;
        let Entrance::Open { id, progress, closed_another } = connections.enter(peer.ip(), self.shared.now())
        else {
            self.shared.rare.rejected();
            let refusal =
                Refusal::busy("there are as many connections as there may be, and none of them is idle");
            // A new socket takes so little at once, and the runtime does not know yet that it does.
            let _ = stream.into_std().and_then(|mut stream| stream.write_all(&refusal.to_response()));
            return;
        };
        if closed_another {
            self.shared.rare.closed_for_another();
        }
        self.counters().connected();
        let open = Open::new(self, id);
        let worker = Arc::clone(self);
        let task = tokio::spawn(async move {
            connection::serve(stream, worker, progress).await;
            drop(open);
        });
        connections.set_task(id, task.abort_handle());
    }
}

/// Whether the connection is at fault that was to be accepted, not the machine.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted | WouldBlock)
}
