//! Options and limits of a server.

use core::time::Duration;
use std::thread;

/// Resource limits and timeouts of a server. The defaults are those of `apr serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Threads that accept, parse and predict: as many as there are cores.
    pub threads: usize,
    /// Longest body of a request, in bytes: 1 MiB.
    pub max_body: usize,
    /// Most rows of a request: 10,000.
    pub max_rows: usize,
    /// Longest response, in bytes: 64 MiB.
    pub max_answer: usize,
    /// Most bytes of bodies, of what they are decoded to, and of responses in memory at one time, except those of a few KiB: 256 MiB. They
    /// are reserved before a body is decoded; those of a response until its last 64 KiB are on their way.
    pub max_memory: usize,
    /// Most connections at one time: 512. For one more, the connection that has been idle for longest is closed; if none is idle, the
    /// new one is refused.
    pub max_connections: usize,
    /// The same for the connections of one address, or of one IPv6 network of 64 bits: half of `max_connections` unless it is given.
    pub max_connections_per_address: Option<usize>,
    /// Longest head of a request, in bytes: 16 KiB. At least 8 KiB.
    pub max_head: usize,
    /// Most headers of a request: 64.
    pub max_headers: usize,
    /// From the first byte of a request to the end of its head: 5 s.
    pub head_time: Duration,
    /// From the end of the head to the end of the body, and from there to the answer; then as long again to take it: 10 s.
    pub request_time: Duration,
    /// How long a connection may stay open without a request: 60 s.
    pub idle_time: Duration,
    /// The same while more than half of all connections are open: 15 s.
    pub crowded_idle_time: Duration,
    /// How long requests in progress may take when the server stops: 10 s.
    pub grace: Duration,
    /// Names under which the server answers beside those of the loopback interface: hosts without a port. On a loopback address it answers
    /// under no others; on any other address an empty list is any name.
    pub allowed_hosts: Vec<String>,
    /// Who ends the server.
    pub signals: Signals,
}

/// Who ends a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// SIGTERM and SIGINT (elsewhere Ctrl-C), or a [`Handle`](crate::Handle); SIGHUP looks at the file at once. The process does not end by
    /// these signals any more, also when the server has.
    Obey,
    /// A [`Handle`](crate::Handle) alone.
    Leave,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, core::num::NonZero::get),
            max_body: 1 << 20,
            max_rows: 10_000,
            max_answer: 64 << 20,
            max_memory: 256 << 20,
            max_connections: 512,
            max_connections_per_address: None,
            max_head: 16 << 10,
            max_headers: 64,
            head_time: Duration::from_secs(5),
            request_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(60),
            crowded_idle_time: Duration::from_secs(15),
            grace: Duration::from_secs(10),
            allowed_hosts: Vec::new(),
            signals: Signals::Obey,
        }
    }
}
