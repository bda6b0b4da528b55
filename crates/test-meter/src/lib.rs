//! What a piece of work costs, for tests with a bound: heap, and time of the processor.
//!
//! ```
//! use std::time::Duration;
//!
//! use test_meter::{CountingAllocator, CpuTimer};
//!
//! #[global_allocator]
//! static HEAP: CountingAllocator = CountingAllocator::new();
//!
//! let timer = CpuTimer::start();
//! let (bytes, usage) = HEAP.measure_thread(|| vec![1_u8; 1000]);
//! assert_eq!((usage.peak, usage.requests), (1000, 1));
//! assert!(timer.elapsed() < Duration::from_secs(2));
//! # drop(bytes);
//! ```
//!
//! The one unsafe item of this crate is the allocator.

#![deny(unsafe_code)]

mod cpu;
mod heap;

pub use self::cpu::CpuTimer;
pub use self::heap::{CountingAllocator, Usage};
