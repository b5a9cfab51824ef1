//! The reports of a simulated program to its simulator, and the seam that a simulator fills.
//!
//! The cfg `selvedge_sim` selects a backend under which the threads of a program may be simulated:
//! a *simulator*, such as the crate `selvedge-sim`, runs all threads of a program on one thread of
//! the system, as *fibers*, in an order that a seed chooses. Without the cfg the functions here do
//! nothing, and leave no instruction.
//!
//! 1. A simulator is a `Host`. A fiber has a `Fiber`, with the thread's id, its name and its
//!    thread-locals. The simulator makes a fiber current by `Fiber::set_current` whenever it
//!    switches to the fiber's stack.
//! 2. Where a thread waits, the backend calls the host: for a lock, a condition variable, a park, a
//!    join, a yield. The call returns when the host has switched back to the fiber. So a wait of a
//!    fiber lasts as long as that of a thread, and other fibers run meanwhile.
//! 3. A thread of the system that is not in a simulation finds no fiber, and uses std.
//! 4. Atomics, cells and allocation are std's. So fibers never switch within a protocol of atomics:
//!    that is what loom and shuttle are for. They switch where a thread waits, around each call
//!    that may let another thread go on (a lock, an unlock, an unpark, a notification, a spawn),
//!    and at each [`point`].
//! 5. A handle to a fiber knows its `Run`. It never reaches a fiber of another run: an unpark after
//!    the end of its run does nothing. An unpark while the run goes on, and a join of a thread that
//!    has not ended, panic outside of the run.

/// Returns whether this thread is simulated. A constant without the cfg `selvedge_sim`.
#[inline(always)]
pub fn is_simulated() -> bool {
    #[cfg(all(selvedge_sim, feature = "std"))]
    return with_host(|_, _| ()).is_some();
    #[cfg(not(all(selvedge_sim, feature = "std")))]
    false
}

/// Lets the simulator switch to another thread, and lets virtual time pass: a worker is between two
/// polls.
#[inline(always)]
pub fn point() {
    #[cfg(all(selvedge_sim, feature = "std"))]
    with_host(|host, fiber| host.point(fiber));
}

/// Records an event of this thread. `task` is the address of a task, or 0.
#[inline(always)]
pub fn event(kind: &'static str, task: usize, number: u64) {
    #[cfg(all(selvedge_sim, feature = "std"))]
    with_host(|host, fiber| host.event(fiber, kind, task, number));
    #[cfg(not(all(selvedge_sim, feature = "std")))]
    let _ = (kind, task, number);
}

/// Records that the memory of a task was allocated at this address.
#[inline(always)]
pub fn allocated(task: usize) {
    #[cfg(all(selvedge_sim, feature = "std"))]
    with_host(|host, _| host.allocated(task));
    #[cfg(not(all(selvedge_sim, feature = "std")))]
    let _ = task;
}

/// Records that the memory of the task at this address was freed.
#[inline(always)]
pub fn freed(task: usize) {
    #[cfg(all(selvedge_sim, feature = "std"))]
    with_host(|host, _| host.freed(task));
    #[cfg(not(all(selvedge_sim, feature = "std")))]
    let _ = task;
}

/// Returns the number by which a simulation names the task at this address, or the address. Numbers
/// repeat with the seed; addresses do not.
#[inline(always)]
pub fn name_of(task: usize) -> u64 {
    #[cfg(all(selvedge_sim, feature = "std"))]
    if let Some(name) = with_host(|host, _| host.name_of(task)) {
        return name;
    }
    task as u64
}

/// Returns whether the variable `SELVEDGE_SIM_MUTANT` has this value: for mistakes that are planted
/// to see whether a simulation finds them.
#[cfg(all(selvedge_sim, feature = "std"))]
pub fn mutant(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let chosen = NAME.get_or_init(|| std::env::var("SELVEDGE_SIM_MUTANT").ok());
    chosen.as_deref() == Some(name)
}

/// Threads that a simulation replaces, but a model checker does not.
#[cfg(feature = "std")]
pub mod thread {
    #[cfg(selvedge_sim)]
    pub use crate::thread::{Builder, JoinHandle, park, park_timeout, sleep, spawn, yield_now};
    #[cfg(not(selvedge_sim))]
    pub use std::thread::{Builder, JoinHandle, park, park_timeout, sleep, spawn, yield_now};
}

/// Declares thread-locals as `std::thread_local!` does. A simulated thread has its own values; a
/// model checker does not replace them.
#[cfg(all(feature = "std", not(selvedge_sim)))]
#[macro_export]
macro_rules! simulated_thread_local {
    ($($t:tt)*) => { ::std::thread_local! { $($t)* } };
}

/// Declares thread-locals as `std::thread_local!` does. A simulated thread has its own values; a
/// model checker does not replace them.
#[cfg(all(feature = "std", selvedge_sim))]
#[macro_export]
macro_rules! simulated_thread_local {
    ($($t:tt)*) => { $crate::thread_local! { $($t)* } };
}

/// A part of the program that can tell the simulator what it has left undone.
#[cfg(all(selvedge_sim, feature = "std"))]
pub trait Subject {
    /// Returns the work that is ready to run, in words, or `None`. The simulator asks while all
    /// threads wait: if there is ready work then, a wake was lost.
    fn ready(&self) -> Option<String>;

    /// Returns the work that a waiting thread could take at once, in words, or `None`. The
    /// simulator asks while each thread waits or is busy for some time: if the work stays there for
    /// long, nobody has unparked that thread.
    fn unserved(&self) -> Option<String>;

    /// Returns the first deadline of a timer. The simulator asks while all threads wait: then no
    /// fiber is current, so it says when the simulation began, its `epoch`.
    fn deadline(&self, epoch: std::time::Instant) -> Option<std::time::Instant>;

    /// Returns a function that says in lines what the tasks of this part wait for, if the part
    /// knows. When all threads wait for ever, the simulator calls it in one more thread, in which
    /// it may wait for answers of the others.
    fn dump(self: std::sync::Arc<Self>) -> Option<Box<dyn FnOnce() -> Vec<String>>> {
        None
    }
}

/// Returns a flag of this thread's simulation, after `set` was or-ed to it: whether locks note
/// their holders. Elsewhere returns `None`. A flag of the process would make one run depend on the
/// runs before it.
#[cfg(all(selvedge_sim, feature = "std"))]
pub fn notes_holders(set: bool) -> Option<bool> {
    with_host(|host, _| host.notes_holders(set))
}

/// Lets the simulator of this thread, if there is one, check this part until its last reference is
/// gone.
#[cfg(all(selvedge_sim, feature = "std"))]
pub fn watch<S: Subject + 'static>(part: &std::sync::Arc<S>) {
    with_host(|host, _| host.watch(std::sync::Arc::<S>::downgrade(part)));
}

#[cfg(all(selvedge_sim, feature = "std"))]
mod fiber;
#[cfg(all(selvedge_sim, feature = "std"))]
mod local_key;
#[cfg(all(selvedge_sim, feature = "std"))]
mod locals;

#[cfg(all(selvedge_sim, feature = "std"))]
pub(crate) use fiber::with_host;
#[cfg(all(selvedge_sim, feature = "std"))]
pub use {
    fiber::{Fiber, Host, Run, Wait, busy, end_by_panic, note_panic, since_epoch},
    local_key::{AccessError, LocalKey},
};
