//! Models of the readiness word alone, with events that race operations. The kernel's buffer is a
//! relaxed counter of bytes, so that only the word's own orderings show the bytes to an operation.
use super::*;
use sync_shim::{atomic::AtomicUsize, model, model_must_fail, sync::Arc, thread};

struct Source {
    word: Readiness,
    bytes: AtomicUsize,
}

impl Source {
    fn new(ready: Ready) -> Arc<Self> {
        Arc::new(Self {
            word: Readiness::new(ready),
            bytes: AtomicUsize::new(0),
        })
    }

    /// Adds a byte to the kernel's buffer, and then sets the bit of the event, as the poller does.
    fn arrive(&self) {
        self.bytes.fetch_add(1, Relaxed);
        self.word.set(Ready::READABLE);
    }

    /// Reads a byte, and returns whether there was one. Does not look into the kernel's buffer if
    /// the word is not ready. Calls `clear` if the buffer is empty.
    fn read(&self, clear: impl Fn(&Readiness, Snapshot)) -> bool {
        let seen = self.word.load();
        if !seen.is_ready_for(Interest::READABLE) {
            return false;
        }
        let bytes = self.bytes.load(Relaxed);
        if bytes == 0 {
            clear(&self.word, seen);
            return false;
        }
        self.bytes.fetch_sub(1, Relaxed);
        true
    }

    /// Asserts that the bit is set if bytes are left.
    fn check(&self) {
        let left = self.bytes.load(Relaxed) > 0;
        let ready = self.word.load().is_ready_for(Interest::READABLE);
        assert!(!left || ready, "bytes are left and the bit is clear");
    }
}

fn clear(word: &Readiness, seen: Snapshot) {
    word.clear(seen, Interest::READABLE);
}

/// Fails if `clear` ignores the snapshot's tick, or if `set` and `load` are relaxed.
#[test]
fn event_racing_a_clear_leaves_the_bit_set() {
    model(|| {
        let source = Source::new(Ready::READABLE);
        let poller = {
            let source = source.clone();
            thread::spawn(move || {
                source.arrive();
                source.arrive();
            })
        };
        let mut read = usize::from(source.read(clear));
        read += usize::from(source.read(clear));
        poller.join().unwrap();
        source.check();
        while source.read(clear) {
            read += 1;
        }
        assert_eq!(read, 2);
    });
}

/// The same with a clear that ignores the snapshot's tick.
#[test]
fn clear_without_a_tick_loses_an_event() {
    model_must_fail("the bit is clear", || {
        let source = Source::new(Ready::READABLE);
        let poller = {
            let source = source.clone();
            thread::spawn(move || source.arrive())
        };
        source.read(|word, _| word.clear(word.load(), Interest::READABLE));
        poller.join().unwrap();
        source.check();
    });
}

/// A read and a write get "would block" while an event for writing comes. The clear of the read
/// takes effect all the same, and the bit of the event stays.
#[test]
fn event_for_one_direction_does_not_stop_the_others_clear() {
    model(|| {
        let word = Arc::new(Readiness::new(Ready::READABLE | Ready::WRITABLE));
        let seen = word.load();
        let poller = {
            let word = word.clone();
            thread::spawn(move || word.set(Ready::WRITABLE))
        };
        word.clear(seen, Interest::READABLE);
        word.clear(seen, Interest::WRITABLE);
        poller.join().unwrap();
        assert_eq!(word.load().ready(), Ready::WRITABLE);
    });
}

/// A short read calls `clear_after_short` while an event announces the end of the stream.
#[test]
fn short_read_racing_the_end_keeps_the_bit() {
    model(|| {
        let word = Arc::new(Readiness::new(Ready::EMPTY));
        word.set(Ready::READABLE);
        let poller = {
            let word = word.clone();
            thread::spawn(move || word.set(Ready::READABLE | Ready::READ_CLOSED))
        };
        word.clear_after_short(word.load(), Interest::READABLE);
        poller.join().unwrap();
        assert!(word.load().is_ready_for(Interest::READABLE));
    });
}

/// An operation gets "would block" and then calls `clear`, while the peer hangs up.
fn hang_up_racing(clear: fn(&Readiness, Snapshot, Interest)) {
    let word = Arc::new(Readiness::new(Ready::EMPTY));
    let poller = {
        let word = word.clone();
        thread::spawn(move || {
            word.set(Ready::READABLE);
            word.set(Ready::READABLE | Ready::READ_CLOSED);
        })
    };
    let seen = word.load();
    clear(&word, seen, Interest::READABLE);
    poller.join().unwrap();
    let ready = word.load().is_ready_for(Interest::READABLE);
    assert!(ready, "the operation waits after the hang-up");
}

/// A user's operation says "would block" while the peer hangs up: the operation does not wait then.
#[test]
fn users_clear_racing_the_hang_up_keeps_the_bit() {
    model(|| hang_up_racing(Readiness::clear_for_user));
}

/// The same with `clear`, which only operations of this crate call. These get "would block" after a
/// hang-up only if an event follows (end of rule 5).
#[test]
fn plain_clear_after_a_hang_up_loses_the_bit() {
    model_must_fail("waits after the hang-up", || {
        hang_up_racing(Readiness::clear);
    });
}
