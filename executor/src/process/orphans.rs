//! Children whose handles were dropped before they ended.
//!
//! They must be reaped when they end, also after their runtime. A task could not do so: its runtime
//! drops it. A queue that is checked now and then leaves zombies until somebody checks. So one
//! thread waits for all orphans of the process. It is there only while there are any:
//!
//! 1. [`adopt`] adds to `arrived` under the lock. It starts the thread if there is none, and wakes
//!    it otherwise.
//! 2. The thread takes `arrived` under the lock. It ends only if nothing arrived and it has no
//!    orphan left, and in the same critical section says that it is gone.
//!
//! So an orphan that arrives is seen by the thread, or by the next one.
use super::exit::poll_readable;
use std::{
    io::{self, PipeReader, PipeWriter, Read, Write},
    iter,
    os::fd::{AsFd, OwnedFd},
    process::Child,
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
    /// Wakes the thread, if there is one.
    thread: Option<PipeWriter>,
}

struct Orphan {
    child: Child,
    pidfd: OwnedFd,
}

impl Orphan {
    fn has_ended(&mut self) -> bool {
        // An error says that somebody else has reaped it.
        !matches!(self.child.try_wait(), Ok(None))
    }
}

/// Reaps a child now or when it ends.
pub(super) fn adopt(mut child: Child, pidfd: Option<OwnedFd>) {
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    let Some(pidfd) = pidfd else {
        // If there is no thread for it, it stays a zombie.
        let wait = thread::Builder::new().name("selvedge-orphan".into());
        drop(wait.spawn(move || child.wait()));
        return;
    };
    let mut orphans = lock();
    let is_first = orphans.arrived.is_empty();
    orphans.arrived.push(Orphan { child, pidfd });
    match &mut orphans.thread {
        // There are two bytes in the pipe at most, so the write does not wait.
        Some(wake) if is_first => drop(wake.write_all(b"!")),
        Some(_) => {}
        // If there is no thread or descriptor, the next call tries again.
        None => orphans.thread = start().ok(),
    }
}

fn lock() -> MutexGuard<'static, Orphans> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start() -> io::Result<PipeWriter> {
    let (woken, wake) = io::pipe()?;
    thread::Builder::new()
        .name("selvedge-orphans".into())
        .spawn(|| reap(woken))?;
    Ok(wake)
}

fn reap(mut woken: PipeReader) {
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
        match poll_readable(iter::once(woken.as_fd()).chain(pidfds)) {
            // One byte, or two: a wake came before `arrived` was taken.
            Ok(true) => drop(woken.read(&mut [0; 8])),
            Ok(false) => {}
            // There is no memory for the call. It has no other error.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
        mine.retain_mut(|orphan| !orphan.has_ended());
    }
}
