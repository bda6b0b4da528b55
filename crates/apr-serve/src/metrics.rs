//! Metrics in the text format 0.0.4 of Prometheus.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use hyper::StatusCode;

/// Upper bounds of the histogram of latencies, in microseconds.
const BOUNDS: [u64; 14] =
    [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 500_000, 1_000_000, 10_000_000];

/// The endpoint of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Predict,
    Health,
    Metrics,
    Model,
    #[cfg_attr(not(feature = "private"), expect(dead_code, reason = "there is no such path"))]
    Private,
    /// No endpoint, or a request that could not be read.
    Other,
}

const ENDPOINTS: [&str; 6] = ["predict", "health", "metrics", "model", "private", "other"];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counters of one thread, separate from those of others to avoid contention.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    requests: [[AtomicU64; CLASSES.len()]; ENDPOINTS.len()],
    predictions: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    connections: AtomicU64,
    /// Predictions that were answered, by latency; one more for those beyond the last bound.
    latencies: [AtomicU64; BOUNDS.len() + 1],
    latency_micros: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn request(&self, endpoint: Endpoint, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        add(&self.requests[endpoint as usize][class], 1);
    }

    pub(crate) fn predicted(&self, n_rows: usize, bytes_out: usize, took: Duration) {
        add(&self.predictions, n_rows as u64);
        add(&self.bytes_out, bytes_out as u64);
        let micros = took.as_micros() as u64;
        add(&self.latency_micros, micros);
        add(&self.latencies[BOUNDS.iter().position(|&bound| micros <= bound).unwrap_or(BOUNDS.len())], 1);
    }

    pub(crate) fn received(&self, len: usize) {
        add(&self.bytes_in, len as u64);
    }

    pub(crate) fn connected(&self) {
        add(&self.connections, 1);
    }
}

/// Counters outside of the hot path.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    errors: Mutex<BTreeMap<&'static str, u64>>,
    reloads: AtomicU64,
    failed_reloads: AtomicU64,
    rejected: AtomicU64,
    closed_for_others: AtomicU64,
}

impl Rare {
    pub(crate) fn error(&self, code: &'static str) {
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += 1;
    }

    pub(crate) fn reloaded(&self) {
        add(&self.reloads, 1);
    }

    pub(crate) fn reload_failed(&self) {
        add(&self.failed_reloads, 1);
    }

    /// An idle connection was closed for a new one.
    pub(crate) fn closed_for_another(&self) {
        add(&self.closed_for_others, 1);
    }

    /// A connection over the limit.
    pub(crate) fn rejected(&self) {
        add(&self.rejected, 1);
    }
}

/// Gauges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) open_connections: usize,
    pub(crate) buffered: usize,
    pub(crate) load_count: u64,
    pub(crate) loaded_at: u64,
    pub(crate) is_draining: bool,
}

/// Everything as text.
pub(crate) fn to_text(all: &[Counters], rare: &Rare, state: State) -> Vec<u8> {
    let mut text = Text(Vec::with_capacity(4096));
    let sum = |of: &dyn Fn(&Counters) -> &AtomicU64| {
        all.iter().map(|counters| of(counters).load(Ordering::Relaxed)).sum::<u64>()
    };
    text.head("apr_serve_requests_total", "counter", "Requests by endpoint and class of the status.");
    for (endpoint, name) in ENDPOINTS.iter().enumerate() {
        for (class, status) in CLASSES.iter().enumerate() {
            let count = sum(&|counters| &counters.requests[endpoint][class]);
            if count > 0 {
                text.line(format_args!(
                    "apr_serve_requests_total{{endpoint=\"{name}\",status=\"{status}\"}} {count}"
                ));
            }
        }
    }
    let predictions = sum(&|counters| &counters.predictions);
    text.counter("apr_serve_predictions_total", "Samples answered.", predictions);
    text.head("apr_serve_errors_total", "counter", "Refusals by code.");
    for (code, count) in &*rare.errors.lock().unwrap_or_else(PoisonError::into_inner) {
        text.line(format_args!("apr_serve_errors_total{{code=\"{code}\"}} {count}"));
    }
    let seconds = "apr_serve_predict_seconds";
    text.head(seconds, "histogram", "From the head of a request for predictions to its answer.");
    let mut below = 0;
    for (idx, &bound) in BOUNDS.iter().enumerate() {
        below += sum(&|counters| &counters.latencies[idx]);
        text.line(format_args!("{seconds}_bucket{{le=\"{}\"}} {below}", bound as f64 / 1e6));
    }
    below += sum(&|counters| &counters.latencies[BOUNDS.len()]);
    text.line(format_args!("{seconds}_bucket{{le=\"+Inf\"}} {below}"));
    text.line(format_args!("{seconds}_sum {}", sum(&|counters| &counters.latency_micros) as f64 / 1e6));
    text.line(format_args!("{seconds}_count {below}"));
    let received = sum(&|counters| &counters.bytes_in);
    text.counter("apr_serve_body_bytes_total", "Bytes of bodies received.", received);
    let sent = sum(&|counters| &counters.bytes_out);
    text.counter("apr_serve_answer_bytes_total", "Bytes of predictions answered.", sent);
    let opened = sum(&|counters| &counters.connections);
    text.counter("apr_serve_connections_total", "Connections accepted.", opened);
    let rejected = rare.rejected.load(Ordering::Relaxed);
    text.counter("apr_serve_connections_rejected_total", "Connections over the limit.", rejected);
    let evicted = rare.closed_for_others.load(Ordering::Relaxed);
    text.counter("apr_serve_connections_evicted_total", "Idle connections closed for new ones.", evicted);
    text.gauge("apr_serve_connections", "Connections open.", state.open_connections as u64);
    let buffered = state.buffered as u64;
    text.gauge("apr_serve_buffered_bytes", "Bytes of large bodies and answers in memory.", buffered);
    text.gauge("apr_serve_model_generation", "Number of the model, counted from 1.", state.load_count);
    text.gauge("apr_serve_model_loaded_seconds", "When it was loaded, since 1970.", state.loaded_at);
    text.head("apr_serve_reloads_total", "counter", "Files looked at after a change.");
    for (result, counter) in [("ok", &rare.reloads), ("failed", &rare.failed_reloads)] {
        let count = counter.load(Ordering::Relaxed);
        text.line(format_args!("apr_serve_reloads_total{{result=\"{result}\"}} {count}"));
    }
    text.gauge("apr_serve_ready", "1, or 0 while it is stopping.", u64::from(!state.is_draining));
    text.0
}

struct Text(Vec<u8>);

impl Text {
    fn line(&mut self, line: core::fmt::Arguments<'_>) {
        // Writing to a vector does not fail.
        let _ = writeln!(self.0, "{line}");
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.line(format_args!("{name} {value}"));
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "gauge", help);
        self.line(format_args!("{name} {value}"));
    }
}
