//! Tests of faults outside of the runtime: no memory, no threads, a fork, panics of user code, ends
//! of runtimes in the middle of wakes, and chains of drops.
//!
//! Each fault ends in an error, in an abort with a message, or has no effect. None ends in a hang.
#![cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle))))]

/// Tests that no sanitizer can run: a sanitizer has its own allocator, needs more room than a limit
/// leaves, and does not support a fork. A build for a sanitizer sets these flags.
#[cfg(not(any(selvedge_plain_alloc, selvedge_tsan)))]
mod without_sanitizers {
    mod chains;
    mod fork;
    mod memory;
    mod threads;
}

mod attributes;
mod environment;
mod panics;
mod process;
mod storms;
