//! Waiting for the network: other threads of Python run meanwhile, and a signal ends it.

use alloc::sync::Arc;
use core::ops::Range;
use core::time::Duration;
use std::io;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;

use apr_remote::RemoteFile;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use read_at::{ReadAt, check_range};

use crate::filling::is_stopped;

/// How long a signal waits at most.
const TICK: Duration = Duration::from_millis(50);
/// Longest piece: as long as those of which several are requested at once.
const PIECE_LEN: usize = 8 << 20;

/// A remote file whose requests are sent by a thread of their own, because the system ends no wait for the network when a signal arrives.
///
/// The thread of a read that was ended stops after the piece that it reads. A process that was forked has neither the threads that read
/// ahead nor connections of its own: there, reads are refused.
#[derive(Debug)]
pub(super) struct Waiting {
    file: Arc<RemoteFile>,
    /// Number of the process that opened it.
    process: u32,
}

impl Waiting {
    pub(super) fn new(file: Arc<RemoteFile>) -> Self {
        Self { file, process: process::id() }
    }
}

impl ReadAt for Waiting {
    fn total_len(&self) -> u64 {
        self.file.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        check_range(offset, out.len(), self.total_len())?;
        refuse_forked(self.process)?;
        if self.file.read_held(offset, out) {
            return Ok(());
        }
        // Of equal length: a short one at the end would be read further than is asked for.
        let piece_len = out.len().div_ceil(out.len().div_ceil(PIECE_LEN));
        let file = Arc::clone(&self.file);
        let lens: Vec<usize> = out.chunks(piece_len).map(<[u8]>::len).collect();
        if lens.len() > 1 {
            file.will_read(offset..offset + out.len() as u64);
        }
        // One piece is copied while the next ones are read.
        let (sender, mut receiver) = sync_channel(1);
        let work = move || {
            let mut at = offset;
            for len in lens {
                let mut piece = vec![0; len];
                let read = file.read_exact_at(at, &mut piece);
                at += len as u64;
                let is_end = read.is_err();
                if sender.send(read.map(|()| piece)).is_err() || is_end {
                    return;
                }
            }
        };
        start(work)?;
        for out in out.chunks_mut(piece_len) {
            out.copy_from_slice(&wait(&mut receiver)??);
        }
        Ok(())
    }

    fn will_read(&self, range: Range<u64>) {
        if self.process == process::id() {
            self.file.will_read(range);
        }
    }
}

/// Refuses to go on in another process than the one of this number.
pub(super) fn refuse_forked(opened_in: u32) -> Result<(), read_at::Error> {
    if opened_in == process::id() {
        return Ok(());
    }
    let what = "a remote file cannot be read in a forked process: open it again there";
    Err(read_at::Error::from_source(PyOSError::new_err(what)))
}

/// What `work` returns, which another thread runs.
///
/// # Errors
///
/// What Python raised for a signal meanwhile; the thread goes on then.
pub(super) fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, read_at::Error> {
    let (sender, mut receiver) = sync_channel(1);
    start(move || {
        // Perhaps no one waits any more.
        let _ = sender.send(work());
    })?;
    wait(&mut receiver)
}

fn start(work: impl FnOnce() + Send + 'static) -> Result<(), read_at::Error> {
    let started = thread::Builder::new().name("apr-remote".into()).spawn(work);
    started.map(drop).map_err(read_at::Error::from_source)
}

/// The next value, while other threads of Python run.
fn wait<T: Send>(receiver: &mut Receiver<T>) -> Result<T, read_at::Error> {
    Python::attach(|py| {
        loop {
            let next = &mut *receiver;
            match py.detach(move || next.recv_timeout(TICK)) {
                Ok(value) => return Ok(value),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().map_err(read_at::Error::from_source)?;
                    if is_stopped() {
                        return Err(read_at::Error::from_source(io::Error::other("the read was stopped")));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let error = io::Error::other("the thread that reads has ended");
                    return Err(read_at::Error::from_source(error));
                }
            }
        }
    })
}
