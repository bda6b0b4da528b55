//! Unix: a thread reads the signals that a handler writes into a pipe.

use alloc::sync::Arc;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::{flag, low_level};

use super::{Asked, obey};

/// What is installed.
struct Installed {
    #[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "only the server asks for it"))]
    signals: Handle,
    handled: Vec<c_int>,
}

static INSTALLED: OnceLock<Option<Installed>> = OnceLock::new();

pub(super) fn install() {
    INSTALLED.get_or_init(begin);
}

fn begin() -> Option<Installed> {
    // With a handler, a write beyond the limit of `ulimit -f` fails, and what was begun is removed; without one, it ends the process.
    let _ = flag::register(SIGXFSZ, Arc::default());
    let ignored = ignored();
    let is_handled = |signal: &c_int| ignored >> (signal - 1) & 1 == 0;
    let handled: Vec<_> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(is_handled).collect();
    // First, so that it ends the process before the pipe is looked at.
    let second_ends = Arc::new(AtomicBool::new(false));
    for &signal in &handled {
        flag::register_conditional_default(signal, Arc::clone(&second_ends)).ok()?;
    }
    let mut signals = Signals::new(&handled).ok()?;
    let handle = signals.handle();
    let by_default = Arc::clone(&second_ends);
    let read = move || {
        for signal in signals.forever() {
            let (name, asked) = match signal {
                SIGHUP => ("SIGHUP", Asked::Reload),
                SIGTERM => ("SIGTERM", Asked::Stop),
                _ => ("SIGINT", Asked::Stop),
            };
            let end = || _ = low_level::emulate_default_handler(signal);
            obey(name, asked, || second_ends.store(true, Ordering::SeqCst), end);
        }
    };
    if thread::Builder::new().name("signals".to_owned()).spawn(read).is_err() {
        // No thread: signals do what they do by default.
        by_default.store(true, Ordering::SeqCst);
        return None;
    }
    Some(Installed { signals: handle, handled })
}

#[cfg(feature = "serve")]
pub(super) fn is_installed() -> bool {
    matches!(INSTALLED.get(), Some(Some(_)))
}

pub(super) fn handles_interrupt() -> bool {
    matches!(INSTALLED.get(), Some(Some(installed)) if installed.handled.contains(&SIGINT))
}

/// Handles the signals that were ignored when the process started, too.
#[cfg(feature = "serve")]
pub(super) fn add_ignored() {
    if let Some(Some(installed)) = INSTALLED.get() {
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Those that are handled already are not added twice.
            let _ = installed.signals.add_signal(signal);
        }
    }
}

/// The signals that this process was started to ignore, such as SIGHUP under `nohup`: a bit for each.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Elsewhere that cannot be asked for without unsafe code: SIGHUP is left as it is.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn ignored() -> u64 {
    1 << (SIGHUP - 1)
}
