//! Windows: a thread waits for Ctrl-C, Ctrl-Break, and the end of the console or of the session.

use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;
use std::io;
use std::process;
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, CtrlShutdown};
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

use super::{Asked, obey};

/// Exit codes as on Unix: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

static INSTALLED: AtomicBool = AtomicBool::new(false);
static SECOND_ENDS: AtomicBool = AtomicBool::new(false);

/// What is waited for.
struct Events {
    ctrl_c: CtrlC,
    ctrl_break: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

pub(super) fn install() {
    if !INSTALLED.swap(true, Ordering::SeqCst) && listen().is_err() {
        INSTALLED.store(false, Ordering::SeqCst);
    }
}

fn listen() -> io::Result<()> {
    let runtime = Builder::new_current_thread().build()?;
    let events = {
        let _entered = runtime.enter();
        Events {
            ctrl_c: ctrl_c()?,
            ctrl_break: ctrl_break()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || wait(&runtime, events))?;
    Ok(())
}

fn wait(runtime: &Runtime, mut events: Events) {
    loop {
        let (name, code) = runtime.block_on(events.next());
        if SECOND_ENDS.load(Ordering::SeqCst) {
            process::exit(code);
        }
        // On a thread of its own, so that a second event is noticed.
        let work = move || {
            obey(name, Asked::Stop, || SECOND_ENDS.store(true, Ordering::SeqCst), || process::exit(code));
        };
        if thread::Builder::new().spawn(work).is_err() {
            process::exit(code);
        }
    }
}

impl Events {
    async fn next(&mut self) -> (&'static str, i32) {
        poll_fn(|cx| {
            if self.ctrl_c.poll_recv(cx).is_ready() {
                Poll::Ready(("Ctrl-C", INTERRUPTED))
            } else if self.ctrl_break.poll_recv(cx).is_ready() {
                Poll::Ready(("Ctrl-Break", INTERRUPTED))
            } else if self.close.poll_recv(cx).is_ready() {
                Poll::Ready(("the end of the console", TERMINATED))
            } else if self.shutdown.poll_recv(cx).is_ready() {
                Poll::Ready(("the end of the session", TERMINATED))
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

pub(super) fn is_installed() -> bool {
    INSTALLED.load(Ordering::SeqCst)
}

pub(super) fn handles_interrupt() -> bool {
    is_installed()
}

/// Nothing is ignored here from the start.
#[cfg(feature = "serve")]
pub(super) fn add_ignored() {}
