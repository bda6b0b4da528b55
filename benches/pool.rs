//! Two threads for the rows that compare them with one.

use rayon::{ThreadPool, ThreadPoolBuilder};

pub(crate) fn two_threads() -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(2).start_handler(stay_on_core).build().expect("threads")
}

/// A thread to itself, a core to itself: left alone, Linux may wake both on the same and part them milliseconds later.
fn stay_on_core(thread: usize) {
    #[cfg(target_os = "linux")]
    {
        let mut cores = rustix::thread::CpuSet::new();
        cores.set(thread);
        // Where core 0 or 1 is not ours to choose, the times are what they are.
        let _ = rustix::thread::sched_setaffinity(None, &cores);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = thread;
}
