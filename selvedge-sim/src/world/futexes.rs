//! The waits of simulated threads for a word of memory.
use super::{
    World,
    threads::{State, WORD},
};
use std::{
    panic::Location,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    thread,
    time::Duration,
};
use sync_shim::sim::Wait;

/// How often the words are looked at before a run has failed, and the time between.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// A wait, until the word has another value.
pub(super) struct FutexWait {
    thread: u32,
    /// The number of the thread's wait.
    wait: u64,
    word: *const AtomicU32,
    value: u32,
}

fn on(word: *const AtomicU32) -> Wait {
    Wait::System(word.addr() as u64 | WORD)
}

impl World {
    /// Runs code of the simulator that takes its locks, on the stack of a simulated thread.
    pub(super) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        self.is_within.set(true);
        let result = f();
        self.is_within.set(false);
        result
    }

    /// Waits for a wake of the word, or for the time alone. Returns false if the time ran out.
    #[track_caller]
    pub(crate) fn wait_for_futex(
        &self,
        word: *const AtomicU32,
        value: u32,
        limit: Option<Duration>,
    ) -> bool {
        let id = self.current.get();
        self.begin_wait(id, on(word), limit, Location::caller());
        self.futexes.borrow_mut().push(FutexWait {
            thread: id,
            wait: self.threads.borrow()[id as usize - 1].waits,
            word,
            value,
        });
        let is_woken = self.end_wait(id);
        self.futexes.borrow_mut().retain(|wait| wait.thread != id);
        is_woken
    }

    /// Wakes so many threads that wait for the word at most. Returns their number.
    pub(crate) fn wake_futex(&self, word: *const AtomicU32, most: u32) -> u32 {
        let mut woken = 0;
        while woken < most && self.wake_all_of(on(word), false) {
            woken += 1;
        }
        woken
    }

    /// Nothing can happen in this run any more: waits for a thread of the system to change a word.
    /// Returns whether a thread of the run goes on.
    pub(super) fn look_at_futexes(&self) -> bool {
        for _ in 0..LOOKS {
            let changed: Vec<u32> = {
                let (futexes, threads) = (self.futexes.borrow(), self.threads.borrow());
                let waits = futexes.iter().filter(|futex| {
                    let thread = &threads[futex.thread as usize - 1];
                    thread.waits == futex.wait && matches!(thread.state, State::Waiting(_))
                });
                let mut waits = waits.peekable();
                if waits.peek().is_none() {
                    return false;
                }
                let changed = waits.filter(|futex| {
                    // SAFETY: the thread waits, so the call's word is still there.
                    let word = unsafe { &*futex.word };
                    // Ordering: SeqCst, as that of the system's own look.
                    word.load(SeqCst) != futex.value
                });
                changed.map(|futex| futex.thread).collect()
            };
            if !changed.is_empty() {
                changed.into_iter().for_each(|id| self.wake(id));
                return true;
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        false
    }
}
