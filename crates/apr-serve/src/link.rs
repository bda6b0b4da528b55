//! State of one connection, shared by the HTTP state machine and the handler of its requests.

use alloc::sync::Arc;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncWrite as _;
use tokio::net::tcp::OwnedWriteHalf;

use crate::connections::{Phase, Progress};
use crate::worker::Worker;

/// State of a connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) worker: Arc<Worker>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) out: Mutex<Out>,
}

/// Responses that are not sent yet.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) stream: OwnedWriteHalf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: usize,
}

impl Link {
    /// Enters the next phase.
    pub(crate) fn enter(&self, phase: Phase) {
        // Work has a separate limit; its age is not read.
        match phase {
            Phase::Work => self.progress.set(phase),
            _ => self.progress.enter(phase, self.worker.shared.now()),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.progress.phase()
    }

    /// Whether the phase has taken longer than it may. Work and the end of a connection have limits of their own.
    pub(crate) fn is_over(&self) -> bool {
        let shared = &self.worker.shared;
        let options = &shared.options;
        let time = match self.phase() {
            Phase::Idle if shared.connections.is_crowded() => {
                options.idle_time.min(options.crowded_idle_time)
            }
            Phase::Idle => options.idle_time,
            Phase::Head => options.head_time,
            Phase::Body | Phase::Answered => options.request_time,
            Phase::Work | Phase::Last | Phase::Closed => return false,
        };
        self.progress.age(shared.now()) > time
    }

    pub(crate) fn out(&self) -> MutexGuard<'_, Out> {
        // Only the thread of the connection locks it.
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the buffered bytes to the operating system.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.out().poll_flush(cx))?;
        if self.phase() == Phase::Answered {
            self.enter(Phase::Idle);
        }
        Poll::Ready(Ok(()))
    }
}

impl Out {
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            let rest = self.bytes.get(self.sent..).unwrap_or_default();
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                len => self.sent += len,
            }
        }
        self.bytes.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}
