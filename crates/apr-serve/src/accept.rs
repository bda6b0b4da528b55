//! Accepts connections on a listener.

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::io::{self, Write as _};
use std::time::Instant;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::connection;
use crate::connections::Entrance;
use crate::refusal::Refusal;
use crate::worker::{TICK, Worker};

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

/// Accepts connections until the server stops, then waits for those that are open.
pub(crate) async fn accept(worker: Arc<Worker>, listener: TcpListener) {
    while !worker.shared.is_draining() {
        // What this thread keeps of the model must not outlive it for long.
        drop(worker.shared.slot.current());
        match timeout(TICK, listener.accept()).await {
            Ok(Ok((stream, peer))) => take(&worker, stream, peer),
            Ok(Err(error)) if is_of_one_connection(&error) => {}
            // No descriptors or no memory: an idle connection gives some back, or one that ends.
            Ok(Err(_)) if worker.shared.connections.close_one(worker.shared.now()) => {
                worker.shared.rare.closed_for_another();
                sleep(Duration::from_millis(1)).await;
            }
            Ok(Err(_)) => sleep(TICK).await,
            Err(_) => {}
        }
    }
    drop(listener);
    let end = Instant::now() + worker.shared.options.grace;
    while worker.open_connections.load(Ordering::Relaxed) > 0 && Instant::now() < end {
        sleep(TICK / 10).await;
    }
}

fn take(worker: &Arc<Worker>, stream: TcpStream, peer: SocketAddr) {
    let connections = &worker.shared.connections;
    let Entrance::Open { id, progress, closed_another } = connections.enter(peer.ip(), worker.shared.now())
    else {
        worker.shared.rare.rejected();
        let refusal =
            Refusal::busy("there are as many connections as there may be, and none of them is idle");
        // A new socket takes so little at once, and the runtime does not know yet that it does.
        let _ = stream.into_std().and_then(|mut stream| stream.write_all(&refusal.to_response()));
        return;
    };
    if closed_another {
        worker.shared.rare.closed_for_another();
    }
    worker.counters().connected();
    let open = Open::new(worker, id);
    let worker = Arc::clone(worker);
    let task = tokio::spawn(async move {
        connection::serve(stream, worker, progress).await;
        drop(open);
    });
    connections.set_task(id, task.abort_handle());
}

/// Whether the connection is at fault that was to be accepted, not the machine.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted | WouldBlock)
}
