//! A worker's counters, and the list of them.
use super::{counter::Counter, times::Times};
use std::time::Duration;
use sync_shim::atomic::{AtomicUsize, Ordering::Relaxed};
use task_header::Id;

/// Calls a macro with the list of the counters, each with its description in a snapshot.
macro_rules! each_counter {
    ($of:ident) => {
        $of! {
            /// Tasks spawned.
            spawned,
            /// Tasks that have ended: completed, panicked, aborted or dropped.
            ended,
            /// Polls of tasks. The run that ends an aborted task counts as one.
            polls,
            /// Wakes of tasks by the worker. A wake of a task in that task's own poll is left out.
            local_schedules,
            /// Tasks run from the LIFO slot.
            lifo_hits,
            /// Tasks run from the LIFO slot with what was left of the budget and the time slice of
            /// the task before.
            inherited_slices,
            /// Tasks taken from the injector, or from the worker's inbox.
            injected,
            /// Batches stolen.
            steals,
            /// Tasks in the stolen batches.
            stolen,
            /// Tasks stolen from the LIFO slot of a worker whose poll was long.
            slots_stolen,
            /// Pushes that found the ring full.
            overflows,
            /// Searches through the other workers.
            searches,
            /// Operations that yielded because the budget was exhausted, or because a nudge asked
            /// the worker to look at the injector. Once the budget is exhausted, only the first
            /// such operation of a poll counts.
            forced_yields,
            /// Polls in which an operation yielded because the time slice was over. Not among the
            /// [`forced_yields`](Self::forced_yields).
            preempted,
            /// Calls of [`syscall`](crate::syscall()) during which the worker might have been
            /// handed over.
            syscalls,
            /// Times that the monitor handed the worker over to another thread, during a call of
            /// [`syscall`](crate::syscall()).
            retaken,
            /// Time slices that a request ended. See [`Handle::preempt`](crate::Handle::preempt).
            slices_ended,
            /// Short waits before a sleep.
            backoffs,
            /// Short waits before a sleep that found work, so that the worker did not sleep.
            backoffs_that_found,
            /// Times that a worker went to sleep.
            parks,
            /// Sleeps that have ended.
            parks_ended,
            /// Sleeps that a notification ended.
            unparks,
            /// Wake-ups for nothing: the parker returned by itself, or the worker was notified of
            /// work that another worker had taken by then.
            false_wakes,
            /// 1 if the worker's thread could not be started. The runtime goes on without the
            /// worker.
            refused,
        }
    };
}

pub(crate) use each_counter;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// A worker's counters.
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
            busy_ns: Counter,
            pub(crate) poll_times: Option<Times>,
            pub(super) waits: Times,
            longest_wait_ns: Counter,
            /// Times that `block_in_place` offered the core to other threads.
            offered: Counter,
            /// The number of the polled task, or 0. See `monitor`.
            polled: AtomicUsize,
        }

        impl Counters {
            pub(crate) fn new(poll_times: bool) -> Self {
                Self {
                    $($name: Counter::new(),)*
                    busy_ns: Counter::new(),
                    poll_times: poll_times.then(Times::new),
                    waits: Times::new(),
                    longest_wait_ns: Counter::new(),
                    offered: Counter::new(),
                    polled: AtomicUsize::new(0),
                }
            }

            /// Shows the monitor which task is polled. Costs a store.
            #[inline]
            pub(crate) fn set_polled(&self, task: Option<Id>) {
                if cfg!(not(any(selvedge_loom, selvedge_shuttle))) {
                    let number = task.map_or(0, |task| u64::from(task) as usize);
                    // Ordering: Relaxed, as the number publishes nothing.
                    self.polled.store(number, Relaxed);
                }
            }

            /// Shows the monitor this number again, which [`polled`](Self::polled) has returned.
            pub(crate) fn restore_polled(&self, polled: usize) {
                // Ordering: Relaxed, as above.
                self.polled.store(polled, Relaxed);
            }

            /// The number of the task that is polled, or of the task that was polled last. 0 if the
            /// worker has slept since, or if its core has gone to another thread since.
            pub(crate) fn polled(&self) -> usize {
                // Ordering: Relaxed, as above.
                self.polled.load(Relaxed)
            }

            /// Counts a `block_in_place`, and shows the monitor no polled task meanwhile.
            pub(crate) fn begin_block_in_place(&self) {
                self.set_polled(None);
                self.offered.add(1);
            }

            /// The number of annotated calls that the worker has begun: those of `syscall`, and
            /// those of `block_in_place`.
            pub(crate) fn annotated_calls(&self) -> u64 {
                self.syscalls.get().wrapping_add(self.offered.get())
            }

            /// Adds a span in which the worker was awake.
            pub(crate) fn add_busy(&self, span: Duration) {
                self.busy_ns.add(span.as_nanos() as u64);
            }

            /// How long the worker was awake.
            pub(crate) fn busy(&self) -> Duration {
                Duration::from_nanos(self.busy_ns.get())
            }

            /// Records how long work in the injector had waited when this worker found it.
            pub(crate) fn record_wait(&self, waited: Duration) {
                self.waits.record(waited);
                let (waited, longest) = (waited.as_nanos() as u64, &self.longest_wait_ns);
                longest.add(waited.saturating_sub(longest.get()));
            }

            /// The longest of the recorded waits.
            pub(super) fn longest_wait(&self) -> Duration {
                Duration::from_nanos(self.longest_wait_ns.get())
            }
        }
    };
}

each_counter!(counters);
