//! What goes wrong outside of the runtime: memory and threads that are not to be had, a fork, code of users that panics, ends that come in the middle of
//! wakes, chains of drops. Each ends in an error, in an abort that is announced, or in nothing; never in a hang.
#![cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle))))]

/// Sanitizers have allocators of their own, need more room than a limit leaves, and know no fork; these are what a build for one sets.
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
