//! The open connections, their limit per address, and the choice of the one that is closed for a new one.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cmp::Reverse;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use crate::options::Options;

/// Age from which a request with an incomplete head can be closed if no connection is idle.
const SLOW_HEAD: Duration = Duration::from_secs(1);

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// A request.
    Idle,
    /// The rest of its head.
    Head,
    /// The rest of its body.
    Body,
    /// The model.
    Work,
    /// The client receives the response.
    Answered,
    /// The client closes its side, after the last response.
    Last,
    /// Nothing: it is being closed for another connection.
    Closed,
}

const PHASES: [Phase; 7] =
    [Phase::Idle, Phase::Head, Phase::Body, Phase::Work, Phase::Answered, Phase::Last, Phase::Closed];

/// The phase of a connection, and since when it is in it: milliseconds since the server's start.
#[derive(Debug)]
pub(crate) struct Progress {
    phase: AtomicU8,
    since: AtomicU64,
}

impl Progress {
    fn new(now: u64) -> Self {
        Self { phase: AtomicU8::new(Phase::Idle as u8), since: AtomicU64::new(now) }
    }

    pub(crate) fn phase(&self) -> Phase {
        PHASES[usize::from(self.phase.load(Ordering::Relaxed))]
    }

    /// How long it has been in its phase.
    pub(crate) fn age(&self, now: u64) -> Duration {
        Duration::from_millis(now.saturating_sub(self.since.load(Ordering::Relaxed)))
    }

    pub(crate) fn enter(&self, phase: Phase, now: u64) {
        self.since.store(now, Ordering::Relaxed);
        self.set(phase);
    }

    /// Enters a phase without a time limit.
    pub(crate) fn set(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Goes over from one phase to the next; `false` if the connection is being closed instead.
    pub(crate) fn step(&self, from: Phase, to: Phase, now: u64) -> bool {
        let stepped = self.exchange(from, to);
        if stepped {
            self.since.store(now, Ordering::Relaxed);
        }
        stepped
    }

    fn close(&self, from: Phase) -> bool {
        self.exchange(from, Phase::Closed)
    }

    fn exchange(&self, from: Phase, to: Phase) -> bool {
        self.phase.compare_exchange(from as u8, to as u8, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    most_per_address: usize,
    table: Mutex<Table>,
    /// Entries of the table, to be read without the lock.
    open: AtomicUsize,
}

#[derive(Debug, Default)]
struct Table {
    last_id: u64,
    entries: BTreeMap<u64, Entry>,
    per_address: BTreeMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    progress: Arc<Progress>,
    /// Ends the task of the connection; missing until that has been spawned.
    task: Option<AbortHandle>,
}

/// Whether a new connection may stay.
#[derive(Debug)]
pub(crate) enum Entrance {
    /// It counts as open under this number.
    Open {
        id: u64,
        progress: Arc<Progress>,
        /// Whether another one was closed for it.
        closed_another: bool,
    },
    /// There are as many as there may be, all of them busy.
    Full,
}

impl Connections {
    pub(crate) fn new(options: &Options) -> Self {
        let most = options.max_connections.max(1);
        let per_address = options.max_connections_per_address.unwrap_or(most.div_ceil(2));
        Self {
            most,
            most_per_address: per_address.clamp(1, most),
            table: Mutex::default(),
            open: AtomicUsize::new(0),
        }
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Whether more than half of all connections are open.
    pub(crate) fn is_crowded(&self) -> bool {
        self.open() > self.most / 2
    }

    /// Counts a new connection. At a limit the connection that has been idle for longest is closed for it: at the limit of its address
    /// one of that address.
    pub(crate) fn enter(&self, address: IpAddr, now: u64) -> Entrance {
        let address = network_of(address);
        let mut table = self.table();
        let of_address = table.per_address.get(&address).copied().unwrap_or(0);
        let is_address_full = of_address >= self.most_per_address;
        let is_full = is_address_full || table.entries.len() >= self.most;
        let entrance = if is_full && !table.close_idlest(is_address_full.then_some(address), now) {
            Entrance::Full
        } else {
            let progress = Arc::new(Progress::new(now));
            let id = table.insert(Entry { address, progress: Arc::clone(&progress), task: None });
            Entrance::Open { id, progress, closed_another: is_full }
        };
        self.count(&table);
        entrance
    }

    /// Names the task of a connection that was counted.
    pub(crate) fn set_task(&self, id: u64, task: AbortHandle) {
        if let Some(entry) = self.table().entries.get_mut(&id) {
            entry.task = Some(task);
        }
    }

    /// Closes the connection that has been idle for longest; `false` if none is idle.
    pub(crate) fn close_one(&self, now: u64) -> bool {
        let mut table = self.table();
        let closed = table.close_idlest(None, now);
        self.count(&table);
        closed
    }

    /// Forgets a connection that has ended.
    pub(crate) fn leave(&self, id: u64) {
        let mut table = self.table();
        table.remove(id);
        self.count(&table);
    }

    fn count(&self, table: &Table) {
        self.open.store(table.entries.len(), Ordering::Relaxed);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn insert(&mut self, entry: Entry) -> u64 {
        self.last_id += 1;
        *self.per_address.entry(entry.address).or_default() += 1;
        self.entries.insert(self.last_id, entry);
        self.last_id
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        if let Some(count) = self.per_address.get_mut(&entry.address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&entry.address);
            }
        }
        Some(entry)
    }

    /// Closes the connection, of an address or of all, that has been idle for longest; `false` if none is idle.
    fn close_idlest(&mut self, address: Option<IpAddr>, now: u64) -> bool {
        loop {
            let idlest = self
                .entries
                .iter()
                .filter(|(_, entry)| address.is_none_or(|address| address == entry.address))
                .filter_map(|(&id, entry)| Some((entry.idleness(now)?, Reverse(id))))
                .max();
            let Some((_, Reverse(id))) = idlest else { return false };
            // If a request has begun to arrive just now, the next one is taken.
            if self.entries.get(&id).is_some_and(Entry::close) {
                self.remove(id);
                return true;
            }
        }
    }
}

impl Entry {
    /// Whether it is idle, and for how long; `None` if it must not be closed.
    fn idleness(&self, now: u64) -> Option<(bool, Duration)> {
        self.task.as_ref()?;
        let age = self.progress.age(now);
        match self.progress.phase() {
            Phase::Idle | Phase::Last => Some((true, age)),
            Phase::Head if age > SLOW_HEAD => Some((false, age)),
            _ => None,
        }
    }

    /// Ends its task, unless a request has arrived.
    fn close(&self) -> bool {
        let phase = self.progress.phase();
        let closes = matches!(phase, Phase::Idle | Phase::Head | Phase::Last) && self.progress.close(phase);
        if let (true, Some(task)) = (closes, &self.task) {
            task.abort();
        }
        closes
    }
}

/// What one client can have many addresses of: of IPv6 the network of 64 bits.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(network.into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(most: usize, per_address: usize) -> Connections {
        let options = Options {
            max_connections: most,
            max_connections_per_address: Some(per_address),
            ..Options::default()
        };
        Connections::new(&options)
    }

    /// A connection with a task that never ends by itself.
    fn open(connections: &Connections, address: &str, now: u64) -> Option<(u64, Arc<Progress>, bool)> {
        match connections.enter(address.parse().expect("an address"), now) {
            Entrance::Open { id, progress, closed_another } => {
                connections.set_task(id, tokio::spawn(core::future::pending::<()>()).abort_handle());
                Some((id, progress, closed_another))
            }
            Entrance::Full => None,
        }
    }

    fn in_runtime(test: impl FnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async { test() });
    }

    #[test]
    fn at_the_limit_the_longest_idle_connection_gives_way() {
        in_runtime(|| {
            let all = connections(3, 3);
            let [(_, first, _), (_, second, _), (_, third, _)] =
                [10, 20, 30].map(|now| open(&all, "10.0.0.1", now).expect("there is space"));
            first.enter(Phase::Idle, 40);
            assert!(open(&all, "10.0.0.2", 50).expect("one is idle").2);
            assert_eq!(second.phase(), Phase::Closed);
            first.enter(Phase::Work, 60);
            assert!(open(&all, "10.0.0.2", 70).is_some());
            assert_eq!((third.phase(), all.open()), (Phase::Closed, 3));
        });
    }

    #[test]
    fn busy_connections_stay_and_slow_heads_do_not() {
        in_runtime(|| {
            let all = connections(4, 4);
            let progress = [0; 4].map(|now| open(&all, "10.0.0.1", now).expect("there is space").1);
            for (progress, phase) in
                progress.iter().zip([Phase::Body, Phase::Work, Phase::Answered, Phase::Head])
            {
                progress.enter(phase, 0);
            }
            assert!(open(&all, "10.0.0.2", 1000).is_none());
            assert!(open(&all, "10.0.0.2", 1001).expect("a head is slow").2);
            assert_eq!(progress[3].phase(), Phase::Closed);
            // A client that was answered and does not close its side.
            progress[2].enter(Phase::Last, 1001);
            assert!(open(&all, "10.0.0.3", 1001).is_some());
        });
    }

    #[test]
    fn at_the_limit_of_an_address_one_of_its_own_gives_way() {
        in_runtime(|| {
            let all = connections(10, 2);
            let (_, other, _) = open(&all, "10.0.0.2", 0).expect("there is space");
            // Two addresses of one network count as one, and so do both spellings of one address.
            let (_, own, _) = open(&all, "2001:db8::1", 5).expect("there is space");
            assert!(open(&all, "2001:db8::ffff:2", 6).is_some_and(|(_, _, closed)| !closed));
            assert!(open(&all, "2001:db8::3", 7).is_some_and(|(_, _, closed)| closed));
            assert_eq!((own.phase(), other.phase()), (Phase::Closed, Phase::Idle));
            let (id, mapped, _) = open(&all, "::ffff:10.0.0.2", 8).expect("there is space");
            for progress in [&other, &mapped] {
                progress.enter(Phase::Work, 8);
            }
            assert!(open(&all, "10.0.0.2", 9).is_none());
            assert!(open(&all, "2001:db8:0:1::1", 9).is_some_and(|(_, _, closed)| !closed));
            all.leave(id);
            assert!(open(&all, "10.0.0.2", 10).is_some());
        });
    }

    #[test]
    fn a_request_that_arrives_while_its_connection_is_closed_is_not_begun() {
        in_runtime(|| {
            let all = connections(1, 1);
            let (id, progress, _) = open(&all, "10.0.0.1", 0).expect("there is space");
            assert!(progress.step(Phase::Idle, Phase::Head, 1));
            assert!(!all.close_one(2));
            progress.enter(Phase::Idle, 3);
            assert!(all.close_one(4) && !progress.step(Phase::Idle, Phase::Head, 5));
            assert_eq!(all.open(), 0);
            all.leave(id);
            assert_eq!(all.open(), 0);
        });
    }
}
