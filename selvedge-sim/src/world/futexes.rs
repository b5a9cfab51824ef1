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

/// How many milliseconds a panic hook waits in the system for a lock.
const SYSTEM_WAITS_OF_PANIC: u32 = 10_000;

/// A wait, until the word has another value.
pub(super) struct FutexWait {
    thread: u32,
    /// The number of the thread's wait.
    wait: u64,
    word: *const AtomicU32,
    value: u32,
    /// A thread of the system may hold the lock, and nobody has waited for that thread yet.
    may_be_system: bool,
}

/// Returns whether std waits with this value for the end of something that another thread does, and
/// not for a notification: a mutex has 2 then, a `Once` has 5, a read-write lock has one of the two
/// upper bits. A park has all bits, and a condition variable a count, which is rarely one of these.
fn is_lock(value: u32) -> bool {
    matches!(value, 2 | 5) || (1 << 30..u32::MAX).contains(&value)
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
            may_be_system: is_lock(value) && limit.is_none() && !self.is_own_word(word),
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
        if woken > 0 {
            self.add_own_word(word);
        }
        woken
    }

    /// No thread of the system holds this word.
    pub(crate) fn add_own_word(&self, word: *const AtomicU32) {
        self.own_words.borrow_mut().insert(word.addr());
    }

    /// Returns whether a thread of this run has woken another that waited for the word, or has
    /// notified it as a condition variable.
    pub(crate) fn is_own_word(&self, word: *const AtomicU32) -> bool {
        self.own_words.borrow().contains(&word.addr())
    }

    /// Runs the panic hook for a thread. The hook takes locks that all threads of the process take,
    /// and a backtrace takes its time. So a wait there is one in the system: a run that went on
    /// meanwhile would be another one each time, and the hook would keep its locks if it failed.
    pub(crate) fn while_panic_is_shown(show: impl FnOnce()) {
        Self::with_current(|world| world.shows_panic.set(world.current.get()));
        show();
        Self::with_current(|world| world.shows_panic.set(0));
    }

    /// Returns how often a thread waits in the system for the time of a look, before it lets others
    /// run.
    pub(crate) fn system_waits(&self, word: *const AtomicU32, value: u32) -> u32 {
        match !is_lock(value) || self.is_own_word(word) {
            true => 0,
            false if self.shows_panic.get() == self.current.get() => SYSTEM_WAITS_OF_PANIC,
            false => 1,
        }
    }

    /// A sign of life for the watchdog, in a wait in the system.
    pub(crate) fn beat_in_system(&self) {
        self.watched.switch_to(self.current.get());
    }

    /// No thread can run now. If one waits for a lock that a thread of the system may hold, waits
    /// for that thread for a while, once a wait: the time of the run stands still meanwhile.
    /// Returns whether a thread of the run goes on.
    pub(super) fn look_at_locks(&self) -> bool {
        let mut any = false;
        for futex in self.futexes.borrow_mut().iter_mut() {
            any |= std::mem::take(&mut futex.may_be_system);
        }
        any && self.look_at_futexes()
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
