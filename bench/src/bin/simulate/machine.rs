//! The simulated machine: cores, and the cache lines that pass between them.
//!
//! A line is in the caches of some cores. A write leaves it in the writer's alone; a read by
//! another core copies it there. A line that has to come from another core takes `transfer`, and
//! the cores that want it at the same time wait for each other.

/// Nanoseconds of simulated time.
pub(crate) type Nanos = f64;

/// The costs of the protocols' steps. [`Costs::near`] says where the figures are from.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// A line that comes from another core.
    pub(crate) transfer: Nanos,
    /// A read-modify-write or a `SeqCst` fence, the line being there.
    pub(crate) rmw: Nanos,
    /// A load of a line that is there.
    pub(crate) load: Nanos,
    /// A spawn, without its push.
    pub(crate) spawn: Nanos,
    /// A poll and a task's end, without the task's own work.
    pub(crate) poll: Nanos,
    /// Lines of a task that come from the core that spawned or last ran it.
    pub(crate) task_lines: f64,
    /// From the call that wakes a parked thread until that thread runs.
    pub(crate) wake: Nanos,
    /// The part of it that the caller spends.
    pub(crate) wake_call: Nanos,
    /// A call of the kernel's poller, and what it takes for each event.
    pub(crate) poller: Nanos,
    pub(crate) event: Nanos,
}

impl Costs {
    /// Costs between cores that are near each other, as measured on two: a line's round trip takes
    /// 60 ns; an uncontended read-modify-write 2.2; `epoll_wait` 158; a wake 5.4 µs, of which the
    /// waker spends a third.
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

    /// The same with a line's round trip of 475 ns, as between cores that are far from each other.
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
    copies: Vec<u64>,
    dirty: bool,
    /// When the last transfer ends.
    free: Nanos,
    pub(crate) writes: u64,
    /// The time that cores have waited for each other.
    pub(crate) waited: Nanos,
}

impl Line {
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            copies: vec![0; cores.div_ceil(64)],
            dirty: false,
            free: 0.0,
            writes: 0,
            waited: 0.0,
        }
    }

    fn has(&self, core: usize) -> bool {
        self.copies[core / 64] >> (core % 64) & 1 != 0
    }

    fn is_alone(&self, core: usize) -> bool {
        let copies: u32 = self.copies.iter().map(|copies| copies.count_ones()).sum();
        copies == 1 && self.has(core)
    }

    /// Returns the time at which a transfer that is wanted now can begin.
    fn begin(&mut self, now: Nanos) -> Nanos {
        self.waited += (self.free - now).max(0.0);
        self.free.max(now)
    }

    /// A read-modify-write. Returns when it is done.
    pub(crate) fn write(&mut self, core: usize, now: Nanos, costs: &Costs) -> Nanos {
        self.writes += 1;
        let end = if self.is_alone(core) {
            now.max(self.free) + costs.rmw
        } else {
            self.begin(now) + costs.transfer + costs.rmw
        };
        self.copies.fill(0);
        self.copies[core / 64] |= 1 << (core % 64);
        (self.dirty, self.free) = (true, end);
        end
    }

    /// A load. Returns when it is done.
    pub(crate) fn read(&mut self, core: usize, now: Nanos, costs: &Costs) -> Nanos {
        if self.has(core) {
            return now + costs.load;
        }
        let end = self.begin(now) + costs.transfer;
        if self.dirty {
            // The first copy of a written line comes from its writer; further ones do not wait.
            (self.dirty, self.free) = (false, end);
        }
        self.copies[core / 64] |= 1 << (core % 64);
        end
    }

    /// Keeps the line until this time, as the holder of a lock does.
    pub(crate) fn keep_until(&mut self, until: Nanos) {
        self.free = self.free.max(until);
    }
}
