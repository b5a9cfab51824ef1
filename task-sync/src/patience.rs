//! How a thread looks at a lock that is held a few times more, before its task waits.
//!
//! A short section on another thread ends within these looks. Then the task goes on, without a
//! place in the queue, a wake and a change of tasks. A section that a task holds across an await
//! does not end so soon, and the looks are in vain. So each lock counts: `luck` is set to [`MOST`]
//! when the looks have helped, and falls when they have not. Below [`LOOKS_FROM`] a thread looks
//! one time in so many.
//!
//! `luck` is a hint. Threads load and store it without order, and lose each other's counts.
use sync_shim::{
    atomic::{AtomicU32, Ordering::Relaxed},
    hint::spin_loop,
};

/// How often a thread looks. A look takes some ten nanoseconds.
const LOOKS: u32 = if cfg!(any(selvedge_loom, selvedge_shuttle, selvedge_sim)) {
    0
} else {
    8
};
const LOOKS_FROM: u32 = 16;
const MOST: u32 = 31;

pub(crate) struct Patience {
    luck: AtomicU32,
}

impl Patience {
    sync_shim::const_fn! {
        pub(crate) const fn new() -> Self {
            Self { luck: AtomicU32::new(MOST) }
        }
    }

    /// Calls `look` some times, until it returns something: whether it has taken the lock. Returns
    /// false if it never does.
    pub(crate) fn look(&self, mut look: impl FnMut() -> Option<bool>) -> bool {
        if LOOKS == 0 {
            return false;
        }
        // Ordering: Relaxed, a hint.
        let luck = self.luck.load(Relaxed);
        if luck < LOOKS_FROM {
            let next = luck.checked_sub(1).unwrap_or(LOOKS_FROM);
            // Ordering: Relaxed, a hint.
            self.luck.store(next, Relaxed);
            return false;
        }
        for _ in 0..LOOKS {
            if let Some(is_taken) = look() {
                if is_taken && luck != MOST {
                    // Ordering: Relaxed, a hint.
                    self.luck.store(MOST, Relaxed);
                }
                return is_taken;
            }
            spin_loop();
        }
        // Ordering: Relaxed, a hint.
        self.luck.store(luck - 1, Relaxed);
        false
    }
}
