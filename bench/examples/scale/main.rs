//! Counts, for 2 to 256 workers, how often a poll writes to words that all workers share.
//!
//! The figures are counts, not times. So there may be more threads than processors.
//!
//! ```sh
//! RUSTFLAGS="--cfg selvedge_count" cargo run --release -p bench --example scale \
//!     --features groups --target-dir target/count
//! ```
//!
//! The program counts over all threads, for each poll of a task or message of a process:
//!
//! - read-modify-writes;
//! - the read-modify-writes of words that all workers share: the idle word and masks, the
//!   injector's stack, the count of outside spawns, the poller's role, the time of the last firing
//!   of timers, the counts of processes;
//! - `SeqCst` fences.
//!
//! Searches, stolen tasks, tasks taken from the injector and sleeps come from the schedulers' own
//! counters.
#[cfg(selvedge_count)]
mod processes;
#[cfg(selvedge_count)]
mod tasks;

#[cfg(selvedge_count)]
mod counted {
    use std::ops::Sub;
    use sync_shim::count::{Counts, total};

    /// The counters of a scheduler. `None` stands for a counter that it lacks.
    pub(crate) struct Counters {
        /// Polls of tasks, or messages of processes.
        pub(crate) operations: u64,
        pub(crate) searches: Option<u64>,
        pub(crate) stolen: u64,
        pub(crate) injected: Option<u64>,
        pub(crate) parks: u64,
    }

    impl Sub for Counters {
        type Output = Self;

        fn sub(self, before: Self) -> Self {
            let difference = |now: Option<u64>, before: Option<u64>| Some(now? - before?);
            Self {
                operations: self.operations - before.operations,
                searches: difference(self.searches, before.searches),
                stolen: self.stolen - before.stolen,
                injected: difference(self.injected, before.injected),
                parks: self.parks - before.parks,
            }
        }
    }

    /// Runs a row, and prints its line of the table.
    pub(crate) fn print_row(
        row: &str,
        workers: usize,
        counters: impl Fn() -> Counters,
        run: impl FnOnce(),
    ) {
        let (counts_before, before) = (total(), counters());
        run();
        let (counts, own) = (total(), counters() - before);
        let per_operation = |n: u64| n as f64 / own.operations as f64;
        let counted =
            |field: fn(&Counts) -> u64| per_operation(field(&counts) - field(&counts_before));
        let optional =
            |n: Option<u64>| n.map_or(String::new(), |n| format!("{:.3}", per_operation(n)));
        println!(
            "| {row} | {workers} | {:.2} | {:.3} | {:.3} | {} | {:.3} | {} | {:.4} |",
            counted(|counts| counts.rmws),
            counted(|counts| counts.shared_rmws),
            counted(|counts| counts.seqcst_fences),
            optional(own.searches),
            per_operation(own.stolen),
            optional(own.injected),
            per_operation(own.parks),
        );
    }
}

#[cfg(selvedge_count)]
fn main() {
    println!(
        "| row | workers | read-modify-writes | of these shared | `SeqCst` fences | searches \
         | stolen | from the injector | sleeps |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    tasks::print();
    processes::print();
}

#[cfg(not(selvedge_count))]
fn main() {
    println!(
        "nothing is counted without RUSTFLAGS=\"--cfg selvedge_count\" \
         (and --target-dir target/count)"
    );
}
