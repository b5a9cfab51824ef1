//! The counting backend: std's types, with atomics that count their operations.
//!
//! Each thread counts its read-modify-writes and its `SeqCst` fences. A failed exchange counts too,
//! as it costs the same. A second count has only the read-modify-writes on cache lines that are
//! marked as shared by all workers.
use std::cell::Cell;

/// The cost of a piece of code on its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of read-modify-writes, including failed exchanges.
    pub rmws: u64,
    /// Number of read-modify-writes on cache lines that [`shared`](crate::count::shared) marked.
    pub shared_rmws: u64,
    /// Number of calls of `fence(SeqCst)`.
    pub seqcst_fences: u64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { rmws: 0, shared_rmws: 0, seqcst_fences: 0 }) };
}

/// The counts of all threads so far, in the order of the fields of [`Counts`].
static TOTAL: [std::sync::atomic::AtomicU64; 3] =
    [const { std::sync::atomic::AtomicU64::new(0) }; 3];

fn count(f: impl FnOnce(&mut Counts)) {
    let mut more = Counts::default();
    f(&mut more);
    let _ = COUNTS.try_with(|counts| {
        let mut now = counts.get();
        now.rmws += more.rmws;
        now.shared_rmws += more.shared_rmws;
        now.seqcst_fences += more.seqcst_fences;
        counts.set(now);
    });
    let more = [more.rmws, more.shared_rmws, more.seqcst_fences];
    for (total, more) in TOTAL.iter().zip(more) {
        if more > 0 {
            // Ordering: Relaxed, a count. It is read when the threads are done, or as a snapshot.
            total.fetch_add(more, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// Returns a snapshot of the costs of all threads of the process so far.
pub fn total() -> Counts {
    // Ordering: Relaxed, as in `count`.
    let [rmws, shared_rmws, seqcst_fences] =
        [0, 1, 2].map(|i: usize| TOTAL[i].load(std::sync::atomic::Ordering::Relaxed));
    Counts {
        rmws,
        shared_rmws,
        seqcst_fences,
    }
}

/// Runs `f`, and returns its result and its cost on this thread.
pub fn counted<R>(f: impl FnOnce() -> R) -> (R, Counts) {
    let before = COUNTS.with(Cell::get);
    let result = f();
    let now = COUNTS.with(Cell::get);
    let cost = Counts {
        rmws: now.rmws - before.rmws,
        shared_rmws: now.shared_rmws - before.shared_rmws,
        seqcst_fences: now.seqcst_fences - before.seqcst_fences,
    };
    (result, cost)
}

pub use super::with_std::{alloc, cell, hint, sync, thread};

pub mod atomic {
    use super::count;
    use std::sync::atomic::{self as std_atomic, Ordering};

    /// Fences, and counts a `SeqCst` fence.
    pub fn fence(order: Ordering) {
        if order == Ordering::SeqCst {
            count(|counts| counts.seqcst_fences += 1);
        }
        std_atomic::fence(order);
    }

    macro_rules! counting {
        ($($name:ident $(<$g:ident>)?, $value:ty;)*) => {$(
            /// An atomic of std that counts its read-modify-writes.
            #[derive(Debug, Default)]
            pub struct $name$(<$g>)? {
                inner: std_atomic::$name$(<$g>)?,
                shared: bool,
            }

            impl$(<$g>)? $name$(<$g>)? {
                /// Does what the method of std does.
                pub const fn new(value: $value) -> Self {
                    Self { inner: std_atomic::$name::new(value), shared: false }
                }

                fn rmw(&self) {
                    count(|counts| {
                        counts.rmws += 1;
                        counts.shared_rmws += u64::from(self.shared);
                    });
                }

                /// Does what the method of std does.
                pub fn load(&self, order: Ordering) -> $value {
                    self.inner.load(order)
                }

                /// Does what the method of std does.
                pub fn store(&self, value: $value, order: Ordering) {
                    self.inner.store(value, order);
                }

                /// Does what the method of std does, and counts a read-modify-write.
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    self.rmw();
                    self.inner.swap(value, order)
                }

                /// Does what the method of std does, and counts a read-modify-write.
                ///
                /// # Errors
                /// Returns the current value.
                pub fn compare_exchange(
                    &self,
                    from: $value,
                    to: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.rmw();
                    self.inner.compare_exchange(from, to, success, failure)
                }

                /// Does what the method of std does, and counts a read-modify-write.
                ///
                /// # Errors
                /// Returns the current value.
                pub fn compare_exchange_weak(
                    &self,
                    from: $value,
                    to: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.rmw();
                    self.inner.compare_exchange_weak(from, to, success, failure)
                }

                /// Does what the method of std does, and counts each exchange.
                ///
                /// # Errors
                /// Returns the current value if `f` returns `None` for it.
                pub fn fetch_update(
                    &self,
                    set: Ordering,
                    fetch: Ordering,
                    mut f: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    self.inner.fetch_update(set, fetch, |now| {
                        let to = f(now)?;
                        self.rmw();
                        Some(to)
                    })
                }

                /// Does what the method of std does.
                pub fn get_mut(&mut self) -> &mut $value {
                    self.inner.get_mut()
                }
            }

            impl$(<$g>)? crate::atomic::Retire for $name$(<$g>)? {
                fn retire(&mut self) {}
            }

            impl$(<$g>)? crate::count::OnSharedLine for $name$(<$g>)? {
                fn on_shared_line(mut self) -> Self {
                    self.shared = true;
                    self
                }
            }
        )*};
    }

    counting! {
        AtomicBool, bool;
        AtomicU32, u32;
        AtomicU64, u64;
        AtomicUsize, usize;
        AtomicPtr<T>, *mut T;
    }

    macro_rules! arithmetic {
        ($($name:ident, $value:ty: $($op:ident)*;)*) => {$(
            impl $name {
                $(
                    /// Does what the method of std does, and counts a read-modify-write.
                    pub fn $op(&self, value: $value, order: Ordering) -> $value {
                        self.rmw();
                        self.inner.$op(value, order)
                    }
                )*
            }
        )*};
    }

    arithmetic! {
        AtomicBool, bool: fetch_and fetch_or fetch_xor;
        AtomicU32, u32: fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min;
        AtomicU64, u64: fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min;
        AtomicUsize, usize: fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min;
    }
}
