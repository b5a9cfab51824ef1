//! The simulated machine: cores, and the cache lines that pass between them.
//!
//! A line is in the caches of some cores. A write leaves the line in the writer's cache only. A
//! read copies the line to the reader's cache. If a core's cache does not have a line, the line
//! comes from another core: this is a *transfer*, which takes [`Costs::transfer`]. A transfer
//! begins no earlier than the last write has ended, nor than the first read after that write has.

/// Nanoseconds of simulated time.
pub(crate) type Nanos = f64;

/// The costs of the protocols' steps. [`Costs::near`] says where the figures are from.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// The time until a line has come from another core.
    pub(crate) transfer: Nanos,
    /// A `SeqCst` fence, or a read-modify-write of a line that is in the core's cache.
    pub(crate) rmw: Nanos,
    /// A load of a line that is in the core's cache.
    pub(crate) load: Nanos,
    /// A spawn, without its push.
    pub(crate) spawn: Nanos,
    /// A poll and a task's end, without the task's own work.
    pub(crate) poll: Nanos,
    /// Number of a task's lines that come from the core that spawned or last ran the task.
    pub(crate) task_lines: f64,
    /// The time from the call that wakes a parked thread until that thread runs.
    pub(crate) wake: Nanos,
    /// The part of `wake` that the calling thread spends in the call.
    pub(crate) wake_call: Nanos,
    /// A call of the kernel's poller, without its events.
    pub(crate) poller: Nanos,
    /// The cost of each event that such a call returns.
    pub(crate) event: Nanos,
}

impl Costs {
    /// Costs between cores that are near each other, as measured on two. A line's round trip takes
    /// 60 ns, an uncontended read-modify-write 2.2 ns, and `epoll_wait` 158 ns. A wake takes
    /// 5.4 µs, of which the waker spends a third.
    pub(crate) const fn near() -> Self {
        Self {
            transfer: 30.0,
            rmw: 2.2,
            load: 0.4,
            spawn: 22.0,
            poll: 18.0,
            task_lines: 1.0,
            wake: 5_400.0,
            wake_call: 1_800.0,
            poller: 158.0,
            event: 25.0,
        }
    }

    /// Costs between cores that are far from each other: a line's round trip takes 475 ns. The
    /// other costs are those of [`near`](Self::near).
    pub(crate) const fn far() -> Self {
        Self {
            transfer: 237.0,
            ..Self::near()
        }
    }
}

/// A cache line that several cores use.
#[derive(Clone)]
pub(crate) struct Line {
    /// The cores whose caches have the line: a bit for each.
    copies: Vec<u64>,
    /// True if no core has read the line since the last write.
    is_dirty: bool,
    /// The time before which no transfer of the line begins.
    free_from: Nanos,
    pub(crate) writes: u64,
    /// The time for which cores have waited to begin transfers of the line.
    pub(crate) waited: Nanos,
}

impl Line {
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            copies: vec![0; cores.div_ceil(64)],
            is_dirty: false,
            free_from: 0.0,
            writes: 0,
            waited: 0.0,
        }
    }

    fn is_copied_to(&self, core: usize) -> bool {
        self.copies[core / 64] >> (core % 64) & 1 != 0
    }

    fn is_only_at(&self, core: usize) -> bool {
        let count: u32 = self.copies.iter().map(|copies| copies.count_ones()).sum();
        count == 1 && self.is_copied_to(core)
    }

    /// Waits until a transfer can begin, and returns the time of that.
    fn wait_for_transfer(&mut self, now: Nanos) -> Nanos {
        self.waited += (self.free_from - now).max(0.0);
        self.free_from.max(now)
    }

    /// Simulates a read-modify-write, and returns the time of its end.
    pub(crate) fn write(&mut self, core: usize, now: Nanos, costs: &Costs) -> Nanos {
        self.writes += 1;
        let end = if self.is_only_at(core) {
            now.max(self.free_from) + costs.rmw
        } else {
            self.wait_for_transfer(now) + costs.transfer + costs.rmw
        };
        self.copies.fill(0);
        self.copies[core / 64] |= 1 << (core % 64);
        (self.is_dirty, self.free_from) = (true, end);
        end
    }

    /// Simulates a load, and returns the time of its end.
    pub(crate) fn read(&mut self, core: usize, now: Nanos, costs: &Costs) -> Nanos {
        if self.is_copied_to(core) {
            return now + costs.load;
        }
        let end = self.wait_for_transfer(now) + costs.transfer;
        if self.is_dirty {
            // The first copy of a written line comes from its writer, and delays the others.
            // Further copies do not delay each other.
            (self.is_dirty, self.free_from) = (false, end);
        }
        self.copies[core / 64] |= 1 << (core % 64);
        end
    }

    /// Delays the next transfer of the line until this time, as the holder of a lock does.
    pub(crate) fn keep_until(&mut self, until: Nanos) {
        self.free_from = self.free_from.max(until);
    }
}
