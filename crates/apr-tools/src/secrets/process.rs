//! Disables core dumps in processes that hold secrets.

use core::sync::atomic::{AtomicBool, Ordering};

/// Whether the process is that of the program, and not one that calls the program as a function: the limits of such a
/// process are its own.
static IS_THE_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Says that the process runs nothing but this program.
pub(crate) fn is_the_program() {
    IS_THE_PROGRAM.store(true, Ordering::Relaxed);
}

/// Before a secret comes into memory: no core dumps from here on, and on Linux no other process of the same user that
/// attaches to this one or reads its memory.
///
/// Where the operating system refuses, the secret is used all the same.
pub(crate) fn keep_secrets() {
    if IS_THE_PROGRAM.load(Ordering::Relaxed) {
        #[cfg(unix)]
        forbid_core_dumps();
    }
}

#[cfg(unix)]
fn forbid_core_dumps() {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};

    use super::*;

    #[test]
    fn a_process_with_secrets_leaves_no_core() {
        forbid_core_dumps();
        let limit = getrlimit(Resource::Core);
        assert_eq!((limit.current, limit.maximum), (Some(0), Some(0)));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
