//! Children whose handles were dropped before they ended.
//!
//! Such a child, an *orphan*, must be reaped when it ends, even after the end of its runtime. A
//! task cannot do that: the runtime drops its tasks when it ends. A queue that is checked now and
//! then leaves zombies between checks. So one thread waits for all orphans of this process that
//! have a descriptor. The thread exists only while there are orphans:
//!
//! 1. [`adopt`] adds the orphan to `arrived` under the lock. If there is no thread, `adopt` starts
//!    it. Otherwise `adopt` wakes the thread, unless `arrived` has an earlier orphan, for which the
//!    thread was woken.
//! 2. The thread takes `arrived` under the lock. The thread ends only if no orphan arrived and it
//!    has no orphan left. It records its end in the same critical section.
//!
//! So this thread or the next one takes each orphan that arrives.
use super::exit::poll_readable;
use std::{
    io::{self, Read, Write},
    iter,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{self, Child},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

static ORPHANS: Mutex<Orphans> = Mutex::new(Orphans {
    arrived: Vec::new(),
    thread: None,
});

struct Orphans {
    arrived: Vec<Orphan>,
    /// Set while the thread runs.
    thread: Option<Thread>,
}

struct Thread {
    /// The process that has the thread. A copy of the process that `fork` makes has no thread.
    process: u32,
    wake: UnixStream,
}

struct Orphan {
    child: Child,
    pidfd: OwnedFd,
}

impl Orphan {
    fn has_ended(&mut self) -> bool {
        // An error means that other code has reaped the child.
        !matches!(self.child.try_wait(), Ok(None))
    }
}

/// Reaps a child now or when it ends.
pub(super) fn adopt(mut child: Child, pidfd: Option<OwnedFd>) {
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    let Some(pidfd) = pidfd else {
        // If the thread cannot be started, the child becomes a zombie when it ends.
        let wait = thread::Builder::new().name("child-orphan".into());
        drop(wait.spawn(move || child.wait()));
        return;
    };
    let mut orphans = lock();
    let process = process::id();
    if orphans
        .thread
        .as_ref()
        .is_some_and(|thread| thread.process != process)
    {
        // `fork` has made this process: the thread and the earlier orphans are those of the parent.
        orphans.thread = None;
        orphans.arrived.clear();
    }
    let is_first = orphans.arrived.is_empty();
    orphans.arrived.push(Orphan { child, pidfd });
    match &mut orphans.thread {
        // There are two bytes in the socket at most, so the write does not wait.
        Some(thread) if is_first => drop(thread.wake.write_all(b"!")),
        Some(_) => {}
        // If the system has no thread or no descriptor left, the next call of `adopt` tries again.
        None => orphans.thread = start().ok().map(|wake| Thread { process, wake }),
    }
}

fn lock() -> MutexGuard<'static, Orphans> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start() -> io::Result<UnixStream> {
    // Sockets, as std has no pipes before Rust 1.87.
    let (woken, wake) = UnixStream::pair()?;
    thread::Builder::new()
        .name("child-orphans".into())
        .spawn(|| reap(woken))?;
    Ok(wake)
}

fn reap(mut woken: UnixStream) {
    let mut mine: Vec<Orphan> = Vec::new();
    loop {
        let mut orphans = lock();
        mine.append(&mut orphans.arrived);
        if mine.is_empty() {
            orphans.thread = None;
            return;
        }
        drop(orphans);
        let pidfds = mine.iter().map(|orphan| orphan.pidfd.as_fd());
        // The call fails only if the system has no memory for it.
        let is_woken = poll_readable(iter::once(woken.as_fd()).chain(pidfds)).unwrap_or(false);
        if is_woken {
            // The socket has one byte, or two: an orphan may have arrived before this thread took
            // `arrived`, and another one afterwards.
            drop(woken.read(&mut [0; 8]));
        }
        let before = mine.len();
        mine.retain_mut(|orphan| !orphan.has_ended());
        if !is_woken && mine.len() == before {
            // Either the poll failed, or an orphan has ended whose tracer has not taken its status.
            thread::sleep(Duration::from_millis(10));
        }
    }
}
