//! Whether `fork` has made this process since a runtime was built.
//!
//! `fork` copies a process's memory, and one thread: the caller's. So the child has a *copy* of
//! each runtime of its parent. No thread runs the copy's tasks, and its sockets are in the kernel's
//! poller of the parent.
//!
//! - A call that would wait for the threads of a copy panics, and says so: `block_on`, a spawn from
//!   outside of the workers, `spawn_blocking`, the park of a driven worker.
//! - The drop of a copy does nothing.
//! - A thread of the runtime may itself have called `fork`, in a task or in a closure. In the child
//!   that thread is the only one. It ends the process with a message when the closure returns, or
//!   before a worker waits or looks at the poller. A worker looks at least once in 61 polls: until
//!   then it may run copies of tasks that were queued on it.
//!
//! Linux calls a function in each child ([`Process::this`] asks for that), so the check costs a
//! load. A child that was made by the bare system call is not noticed. On other systems the check
//! asks for the id of the process.
use std::process::abort;
use sync_shim::panics;

/// Identifies a process: the values of a process and of its child differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

#[cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle))))]
mod imp {
    use super::Process;
    use std::sync::{
        Once,
        atomic::{AtomicU32, Ordering::Relaxed},
    };

    /// How many forks lie between the first process that called [`Process::this`] and this process.
    static FORKS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count() {
        // Ordering: Relaxed. The child has one thread, which runs this before `fork` returns.
        FORKS.fetch_add(1, Relaxed);
    }

    impl Process {
        /// Returns this process. The first call lets the system count the forks from then on.
        pub(crate) fn this() -> Self {
            static ASKED: Once = Once::new();
            ASKED.call_once(|| {
                // An error says that the system has no memory: then forks are not noticed.
                // SAFETY: the function stays valid, and only changes an atomic.
                let _ = unsafe { libc::pthread_atfork(None, None, Some(count)) };
            });
            Self::now()
        }

        #[inline]
        pub(crate) fn now() -> Self {
            // Ordering: Relaxed, as above.
            Self(FORKS.load(Relaxed))
        }
    }
}

#[cfg(not(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle)))))]
impl Process {
    /// Returns this process.
    pub(crate) fn this() -> Self {
        Self::now()
    }

    pub(crate) fn now() -> Self {
        let has_processes = cfg!(all(
            any(unix, windows),
            not(any(selvedge_loom, selvedge_shuttle))
        ));
        Self(if has_processes { std::process::id() } else { 0 })
    }
}

impl Process {
    /// Returns whether this process is a child that `fork` has made since `self` was noted.
    #[inline]
    pub(crate) fn is_gone(self) -> bool {
        self != Self::now()
    }

    /// Ends the process with a message, if this thread, one of a runtime's own, has called `fork`,
    /// and goes on in the child.
    #[inline]
    pub(crate) fn end_in_child(self) {
        if self.is_gone() {
            end();
        }
    }
}

#[cold]
#[inline(never)]
fn end() -> ! {
    drop(panics::catch(say));
    abort()
}

/// Shows the message, by the panic hook.
fn say() {
    panic!(
        "a task or closure called fork, and the child went on as a thread of the runtime, whose \
         other threads and sockets are those of the parent: in the child, call exec or _exit \
         before the task or closure returns"
    )
}
