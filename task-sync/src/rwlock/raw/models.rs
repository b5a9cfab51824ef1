//! Models of the lock: a writer alone, entries in order, and no lost wake.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use crate::{blocking::block_on, wait::Wait};
use core::{
    pin::{Pin, pin},
    task::Context,
};
use std::sync::Arc;
use sync_shim::{Model, cell::UnsafeCell, model, thread};

/// A lock and the value that it protects.
struct Protected {
    raw: RawRwLock,
    value: UnsafeCell<u32>,
}

// SAFETY: the models check that the accesses are in order.
unsafe impl Sync for Protected {}

impl AsRwLock for Arc<Protected> {
    fn rwlock(&self) -> &RawRwLock {
        &self.raw
    }
}

/// Enters the lock and stays in it.
fn enter<A: Access>(shared: &Arc<Protected>) -> impl Future<Output = ()> + use<A> {
    Wait::new(Entry::<_, A>::new(shared.clone()), |_, ()| ())
}

/// Polls a future once.
fn is_ready(future: Pin<&mut impl Future>) -> bool {
    future
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

impl Protected {
    fn new(max_readers: u32) -> Arc<Self> {
        Self::of(RawRwLock::new(max_readers, false))
    }

    fn of(raw: RawRwLock) -> Arc<Self> {
        let value = UnsafeCell::new(0);
        Arc::new(Self { raw, value })
    }

    /// Adds one as the writer that is in the lock.
    fn add(&self) {
        #[cfg(feature = "coop-budget")]
        // Ordering: Relaxed. The bit does not change.
        if self.raw.state.load(Relaxed) & NOTED != 0 {
            let holder = self.raw.holder.get();
            // In a model the clear of a reader, which reads an old note, may overwrite a new one.
            let own = coop_budget::polled_task().map(u64::from);
            assert!(holder.is_none() || holder == own, "{holder:?}");
        }
        self.value.with_mut(|value| {
            // SAFETY: the caller is the writer in the lock.
            unsafe { *value += 1 };
        });
    }

    /// Reads as a reader in the lock.
    fn read(&self) -> u32 {
        self.value.with(|value| {
            // SAFETY: the caller is a reader in the lock.
            unsafe { *value }
        })
    }

    fn leave(&self, kind: Kind) {
        // SAFETY: the caller is in the lock as one of this kind.
        unsafe { self.raw.leave(kind) };
    }

    /// Enters as the writer, adds, and leaves.
    fn write(self: &Arc<Self>) {
        block_on(enter::<Whole>(self));
        self.add();
        self.leave(Kind::Write);
    }

    /// Enters as a reader, reads, and leaves.
    fn look(self: &Arc<Self>) -> u32 {
        block_on(enter::<Shared>(self));
        let value = self.read();
        self.leave(Kind::Read);
        value
    }

    /// Runs `f` on another thread.
    fn spawn<R: Send + 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Arc<Self>) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let shared = self.clone();
        thread::spawn(move || f(&shared))
    }

    /// Asserts that the lock is free, nobody is in its queue, and `value` writers have added.
    fn check(&self, value: u32) {
        assert!(self.raw.try_enter(Kind::Write));
        assert_eq!(self.read(), value);
        self.leave(Kind::Write);
        // Ordering: Relaxed, the threads have been joined.
        assert_eq!(self.raw.state.load(Relaxed) & !NOTED, 0);
    }
}

/// Two writers, and a reader that looks twice. Fails if an Acquire of an entry or the Release of
/// `leave` is Relaxed, or if `leave` does not look at `QUEUED`.
#[test]
fn writers_against_a_reader_are_alone() {
    Model::new().bound(2).check(|| {
        let shared = Protected::new(2);
        let writer = shared.spawn(|shared| shared.write());
        let reader = shared.spawn(|shared| (shared.look(), shared.look()));
        shared.write();
        let (one, two) = reader.join().unwrap();
        writer.join().unwrap();
        assert!(one <= two && two <= 2);
        shared.check(2);
    });
}

/// The lock notes its holder, and never another task. Fails if neither a reader that leaves clears
/// its note, nor a writer that has waited notes itself.
#[cfg(feature = "coop-budget")]
#[test]
fn writer_in_a_lock_with_notes_is_its_holder() {
    use coop_budget::poll_as;

    Model::new().bound(3).check(|| {
        let shared = Protected::of(RawRwLock::new(2, true));
        assert!(poll_as(1, || shared.raw.try_enter(Kind::Read)));
        let writer = shared.spawn(|shared| poll_as(2, || shared.write()));
        poll_as(1, || shared.leave(Kind::Read));
        poll_as(1, || {
            if shared.raw.try_enter(Kind::Read) {
                shared.read();
                shared.leave(Kind::Read);
            }
        });
        writer.join().unwrap();
        shared.check(1);
    });
}

/// A writer waits for a reader, which leaves and enters again. Fails if a woken writer that is
/// overtaken does not end its group, or if a task that leaves does not notify because of `HANDOFF`.
#[test]
fn overtaken_writer_is_let_in() {
    model(|| {
        let shared = Protected::new(2);
        assert!(shared.raw.try_enter(Kind::Read));
        let writer = shared.spawn(|shared| shared.write());
        shared.leave(Kind::Read);
        if shared.raw.try_enter(Kind::Read) {
            shared.read();
            shared.leave(Kind::Read);
        }
        writer.join().unwrap();
        shared.check(1);
    });
}

/// A writer waits for the last reader, and another reader enters as that one leaves. Fails if a
/// task that leaves does not wake a writer that was overtaken before the look at the queue.
#[test]
fn writer_that_is_overtaken_before_its_wake_is_woken() {
    model(|| {
        let shared = Protected::new(2);
        assert!(shared.raw.try_enter(Kind::Read));
        let mut writes = Box::pin(enter::<Whole>(&shared));
        assert!(!is_ready(writes.as_mut()));
        let other = shared.spawn(|shared| shared.leave(Kind::Read));
        let is_in = shared.raw.try_enter(Kind::Read);
        other.join().unwrap();
        // Ordering: Relaxed, the thread has been joined.
        let state = shared.raw.state.load(Relaxed);
        assert_ne!(
            state & (HANDOFF | ALL_WOKEN),
            0,
            "the writer may be overtaken for ever"
        );
        if is_in {
            shared.leave(Kind::Read);
        }
        assert!(is_ready(writes.as_mut()));
        shared.leave(Kind::Write);
        shared.check(0);
    });
}

/// A writer waits for two readers. The first one that leaves others sets `HANDOFF`; from then on no
/// reader overtakes the writer, and the last reader lets it in. Fails if the last one does not
/// notify because of `HANDOFF`, or wakes a writer that has it and is not let in.
#[test]
fn writer_behind_readers_that_leave_is_let_in() {
    Model::new().bound(3).check(|| {
        let shared = Protected::new(3);
        assert!(shared.raw.try_enter(Kind::Read) && shared.raw.try_enter(Kind::Read));
        let mut writes = Box::pin(enter::<Whole>(&shared));
        assert!(!is_ready(writes.as_mut()));
        let other = shared.spawn(|shared| {
            shared.read();
            shared.leave(Kind::Read);
        });
        let another = shared.spawn(|shared| shared.look());
        shared.read();
        shared.leave(Kind::Read);
        other.join().unwrap();
        block_on(writes);
        shared.add();
        shared.leave(Kind::Write);
        assert!(another.join().unwrap() <= 1);
        shared.check(1);
    });
}

/// Two readers wait for a writer. A batch is one waiter under the model checker, so the first one
/// that enters wakes the second, and stays. Fails if the end of a group does not notify.
#[test]
fn readers_behind_a_writer_wake_each_other() {
    Model::new().bound(3).check(|| {
        let shared = Protected::new(2);
        assert!(shared.raw.try_enter(Kind::Write));
        let readers = [0, 1].map(|_| {
            shared.spawn(|shared| {
                block_on(enter::<Shared>(shared));
                shared.read()
            })
        });
        shared.add();
        shared.leave(Kind::Write);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 1);
        }
        shared.leave(Kind::Read);
        shared.leave(Kind::Read);
        shared.check(1);
    });
}

/// A reader is polled twice and dropped, at any moment of a writer's leaving, while another reader
/// waits behind it. Fails if the drop does not pass on a wake, or does not clear the bits of the
/// queue with the last waiter.
#[test]
fn cancel_of_a_reader_wakes_the_next() {
    Model::new().bound(3).check(|| {
        let shared = Protected::new(1);
        assert!(shared.raw.try_enter(Kind::Write));
        let dropped = shared.spawn(|shared| {
            let mut reads = pin!(enter::<Shared>(shared));
            if is_ready(reads.as_mut()) || is_ready(reads.as_mut()) {
                shared.read();
                shared.leave(Kind::Read);
            }
        });
        let waits = shared.spawn(|shared| shared.look());
        shared.add();
        shared.leave(Kind::Write);
        dropped.join().unwrap();
        assert_eq!(waits.join().unwrap(), 1);
        shared.check(1);
    });
}

/// A reader that has `HANDOFF` is dropped while the lock is handed over. Fails if the drop does not
/// pass on an entry.
#[test]
fn cancel_beside_a_hand_over_passes_it_on() {
    model(|| {
        let shared = Protected::new(1);
        assert!(shared.raw.try_enter(Kind::Write));
        let mut reads = Box::pin(enter::<Shared>(&shared));
        assert!(!is_ready(reads.as_mut()));
        shared.leave(Kind::Write);
        assert!(shared.raw.try_enter(Kind::Write));
        assert!(!is_ready(reads.as_mut()));
        let other = shared.spawn(|shared| shared.leave(Kind::Write));
        drop(reads);
        other.join().unwrap();
        shared.check(0);
    });
}

/// A writer that has `HANDOFF` is dropped, while the reader that it waits for stays: the reader
/// behind it enters. Fails if the drop of a queued waiter does not notify.
#[test]
fn cancel_of_a_writer_lets_the_readers_in() {
    model(|| {
        let shared = Protected::new(3);
        assert!(shared.raw.try_enter(Kind::Read) && shared.raw.try_enter(Kind::Read));
        let mut writes = Box::pin(enter::<Whole>(&shared));
        assert!(!is_ready(writes.as_mut()));
        shared.leave(Kind::Read);
        let reader = shared.spawn(|shared| shared.look());
        drop(writes);
        assert_eq!(reader.join().unwrap(), 0);
        shared.leave(Kind::Read);
        shared.check(0);
    });
}

/// A writer that becomes a reader wakes the reader that waits. Fails if `downgrade` does not look
/// at `QUEUED`, or is Relaxed.
#[test]
fn downgrade_against_a_reader_lets_it_in() {
    model(|| {
        let shared = Protected::new(2);
        assert!(shared.raw.try_enter(Kind::Write));
        let reader = shared.spawn(|shared| shared.look());
        shared.add();
        // SAFETY: this thread is the writer in the lock.
        unsafe { shared.raw.downgrade() };
        assert_eq!(reader.join().unwrap(), 1);
        shared.leave(Kind::Read);
        shared.check(1);
    });
}

/// The lock is full, and a reader waits. Fails if a reader that leaves a full lock does not notify,
/// or if an entry exceeds the limit.
#[test]
fn reader_at_the_limit_is_woken() {
    model(|| {
        let shared = Protected::new(2);
        assert!(shared.raw.try_enter(Kind::Read) && shared.raw.try_enter(Kind::Read));
        assert!(!shared.raw.try_enter(Kind::Read));
        let reader = shared.spawn(|shared| shared.look());
        shared.leave(Kind::Read);
        assert_eq!(reader.join().unwrap(), 0);
        shared.leave(Kind::Read);
        shared.check(0);
    });
}

/// A writer is let in by a reader that looks late: after another one has read and left. Fails if
/// the exchange of `notify` is not Acquire.
#[test]
fn late_notifier_lets_in_what_a_reader_left() {
    Model::new().bound(3).check(|| {
        let shared = Protected::new(4);
        for _ in 0..3 {
            assert!(shared.raw.try_enter(Kind::Read));
        }
        let mut writes = Box::pin(enter::<Whole>(&shared));
        assert!(!is_ready(writes.as_mut()));
        let late = shared.spawn(|shared| shared.leave(Kind::Read));
        let last = shared.spawn(|shared| {
            shared.read();
            shared.leave(Kind::Read);
        });
        shared.leave(Kind::Read);
        block_on(writes);
        shared.add();
        shared.leave(Kind::Write);
        late.join().unwrap();
        last.join().unwrap();
        shared.check(1);
    });
}
