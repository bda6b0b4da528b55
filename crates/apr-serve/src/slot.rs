//! The served model, and how it is replaced during requests.

use alloc::sync::Arc;
use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::body::Bytes;

use crate::model::Model;
use crate::write;

/// How long a piece of a long request should take: others wait as long.
const PIECE_TIME: Duration = Duration::from_micros(300);
/// Rows of the first piece, of a model that nothing is known about.
const FIRST_PIECE: usize = 16;
/// Most rows of a piece: what pipelines of trees take at once.
const LONGEST_PIECE: usize = 4096;

/// A model at work.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) model: Model,
    /// Counted from 1.
    pub(crate) load_count: u64,
    /// Its name in responses.
    pub(crate) tag: String,
    /// Seconds since 1970.
    pub(crate) loaded_at: u64,
    /// `GET /model`: made once, because clients may read slowly.
    json: OnceLock<Bytes>,
    /// Rows that take about as long as [`PIECE_TIME`].
    rows_at_once: AtomicUsize,
}

impl Served {
    fn new(model: Model, load_count: u64) -> Self {
        let tag = model.tag(load_count);
        let loaded_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            model,
            load_count,
            tag,
            loaded_at,
            json: OnceLock::new(),
            rows_at_once: AtomicUsize::new(FIRST_PIECE),
        }
    }

    /// How many rows to do at once.
    pub(crate) fn rows_at_once(&self) -> usize {
        self.rows_at_once.load(Ordering::Relaxed)
    }

    /// Learns how long so many rows took.
    pub(crate) fn learn(&self, n_rows: usize, took: Duration) {
        let fitting = n_rows as f64 * PIECE_TIME.as_secs_f64() / took.as_secs_f64().max(1e-9);
        // At most twice as many, so that a few cheap rows do not lead to a long piece.
        let next = (fitting as usize).clamp(1, n_rows.saturating_mul(2).min(LONGEST_PIECE));
        self.rows_at_once.store(next, Ordering::Relaxed);
    }

    /// `GET /model`.
    pub(crate) fn to_json(&self) -> Bytes {
        self.json.get_or_init(|| self.made_json().into()).clone()
    }

    fn made_json(&self) -> Vec<u8> {
        let mut out = b"{\"schema\":\"apr.serve.model/1\",\"model\":".to_vec();
        write::string(&self.tag, &mut out);
        out.extend_from_slice(b",\"generation\":");
        write::plain(self.load_count, &mut out);
        out.extend_from_slice(b",\"loaded_at\":");
        write::plain(self.loaded_at, &mut out);
        self.model.write_fields(&mut out);
        out.extend_from_slice(b"}\n");
        out
    }
}

/// Holds the served model. Reading it takes no lock: each thread keeps the model it read last, and compares a counter.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Identifies a slot in the caches of threads.
    id: u64,
    load_count: AtomicU64,
    current: Mutex<Arc<Served>>,
}

thread_local! {
    /// Slot and model of this thread.
    static SEEN: RefCell<Option<(u64, Arc<Served>)>> = const { RefCell::new(None) };
}

static SLOTS: AtomicU64 = AtomicU64::new(0);

impl Slot {
    pub(crate) fn new(model: Model) -> Self {
        let id = SLOTS.fetch_add(1, Ordering::Relaxed);
        Self { id, load_count: AtomicU64::new(1), current: Mutex::new(Arc::new(Served::new(model, 1))) }
    }

    /// The model that is served now.
    pub(crate) fn current(&self) -> Arc<Served> {
        let load_count = self.load_count.load(Ordering::Acquire);
        SEEN.with_borrow_mut(|seen| match seen {
            Some((id, served)) if *id == self.id && served.load_count == load_count => Arc::clone(served),
            _ => {
                let served = Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner));
                *seen = Some((self.id, Arc::clone(&served)));
                served
            }
        })
    }

    /// Replaces the model. Requests in progress keep the old one.
    pub(crate) fn replace(&self, model: Model) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let load_count = current.load_count + 1;
        *current = Arc::new(Served::new(model, load_count));
        self.load_count.store(load_count, Ordering::Release);
    }
}
