//! What a runtime counts. A worker writes its own counters, with plain stores to lines of its own.
use crate::shared::Shared;
use std::fmt;
use sync_shim::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one thread writes and any may read.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// By the one writer. No read-modify-write.
    pub(crate) fn add(&self, n: u64) {
        // Ordering: Relaxed twice, a count by its only writer.
        let now = self.0.load(Relaxed);
        // Ordering: as above.
        self.0.store(now + n, Relaxed);
    }

    fn get(&self) -> u64 {
        // Ordering: Relaxed, a snapshot.
        self.0.load(Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// A worker's counters.
        pub(crate) struct Counters { $(pub(crate) $name: Counter),* }

        impl Counters {
            pub(crate) fn new() -> Self {
                Self { $($name: Counter::new()),* }
            }
        }

        /// What a runtime has done so far, summed over its workers. A snapshot of a running one
        /// may be a little uneven.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Snapshot {
            /// Worker threads.
            pub workers: u64,
            $($(#[$doc])* pub $name: u64),*
        }

        impl Snapshot {
            pub(crate) fn of(shared: &Shared) -> Self {
                let mut sum = Self { workers: shared.remotes.len() as u64, ..Self::default() };
                for remote in &shared.remotes {
                    $(sum.$name += remote.counters.$name.get();)*
                }
                // Ordering: Relaxed, a snapshot.
                sum.spawned += shared.spawned_outside.load(Relaxed);
                sum
            }
        }

        impl fmt::Display for Snapshot {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "workers {}", self.workers)?;
                $(write!(f, ", {} {}", stringify!($name).replace('_', " "), self.$name)?;)*
                Ok(())
            }
        }
    };
}

counters! {
    /// Tasks spawned.
    spawned,
    /// Polls of tasks.
    polls,
    /// Tasks run from the LIFO slot.
    lifo_hits,
    /// Tasks taken from the injector.
    injected,
    /// Batches stolen.
    steals,
    /// Tasks in those batches.
    stolen,
    /// Pushes that found the ring full.
    overflows,
    /// Searches through the other workers.
    searches,
    /// Polls that an exhausted budget ended.
    forced_yields,
    /// Times that a worker went to sleep.
    parks,
}
