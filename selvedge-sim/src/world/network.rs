//! The network of a run, as the threads of the run reach it.
use super::World;
use crate::{
    choice::{About, Dice},
    net::{FileId, HostId, Moment, Network},
    net_settings::Chance,
};
use std::{cell::Cell, panic::Location, ptr, time::Duration};
use sync_shim::sim::{Host as _, Wait};

/// How much time a call of the system takes.
const CALL: u64 = 300;

/// The number for waits for the end of the clients, which no file has.
pub(super) const CLIENTS: FileId = u64::MAX;

/// How long a thread is away that yields.
const AWAY: Duration = Duration::from_micros(1);

/// After so many calls in a row a thread comes to a point, so that the limits of other waits fire,
/// and the run ends at last: it may read a socket until something comes.
const CALLS_TO_A_POINT: u64 = 256;

/// Once in so many calls another thread runs first, at random.
const AT_CALL: u64 = 16;

std::thread_local! {
    /// The run of this thread of the system.
    static WORLD: Cell<*const World> = const { Cell::new(ptr::null()) };
}

/// Makes a run the one of its thread, until the drop.
pub(super) struct OfThread;

impl OfThread {
    pub(super) fn begin(world: &World) -> Self {
        WORLD.set(world);
        Self
    }
}

impl Drop for OfThread {
    fn drop(&mut self) {
        WORLD.set(ptr::null());
    }
}

/// The choices of a run about a matter.
pub(crate) struct DiceOf<'w> {
    world: &'w World,
    about: About,
}

impl Dice for DiceOf<'_> {
    fn below(&self, count: u32) -> u32 {
        let mut choices = self.world.choices.borrow_mut();
        choices.next(self.about, count, || {
            let mut random = self.world.for_choices.borrow_mut();
            random.below(u64::from(count)) as u32
        })
    }

    fn once(&self, Chance(share): Chance) -> bool {
        if share == 0 {
            return false;
        }
        let mut choices = self.world.choices.borrow_mut();
        let happens = choices.next(self.about, 2, || {
            let mut random = self.world.for_choices.borrow_mut();
            u32::from(random.below(1 << 32) <= u64::from(share))
        });
        happens == 1
    }
}

impl World {
    /// Runs `f` if a simulated thread calls this.
    pub(crate) fn with_current<R>(f: impl FnOnce(&Self) -> R) -> Option<R> {
        let world = WORLD.try_with(Cell::get).ok()?;
        // SAFETY: the pointer is null, or `run` of this world is on the stack of this thread.
        let world = unsafe { world.as_ref() }?;
        (world.current.get() > 0 && !world.is_within.get()).then(|| f(world))
    }

    /// Returns the host of the thread that runs.
    pub(super) fn host_of_current(&self) -> HostId {
        let id = self.current.get() as usize;
        id.checked_sub(1)
            .map_or(0, |at| self.threads.borrow()[at].host)
    }

    /// A simulated thread makes a call: time passes, and another thread may run first.
    pub(crate) fn begin_call(&self) {
        self.now.set(self.now.get() + CALL);
        self.calls.set(self.calls.get() + 1);
        if self.calls.get() % CALLS_TO_A_POINT == 0 {
            return self.pass_points(CALLS_TO_A_POINT);
        }
        self.preempt(AT_CALL);
    }

    /// Returns the disk of a path on the host of the thread that runs, and the rest of the path.
    pub(crate) fn find_disk<'p>(&self, path: &'p [u8]) -> Option<(usize, &'p [u8])> {
        // A panic of the simulator itself reads files of the system.
        let network = self.network.try_borrow().ok()?;
        self.threads.try_borrow().ok()?;
        network.disks.find(self.host_of_current(), path)
    }

    /// Lets some time of this thread pass, in nanoseconds.
    pub(crate) fn spend(&self, nanos: u64) {
        self.now.set(self.now.get() + nanos);
    }

    /// Returns the virtual time since the run began.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.now.get())
    }

    /// Returns the choices about a matter.
    pub(crate) fn dice(&self, about: About) -> DiceOf<'_> {
        DiceOf { world: self, about }
    }

    /// Runs `f` with the network, the host of the thread that runs, and the time. Then wakes the
    /// threads whose files have news.
    pub(crate) fn with_network<R>(
        &self,
        f: impl FnOnce(&mut Network, HostId, Moment<'_>) -> R,
    ) -> R {
        let host = self.host_of_current();
        let moment = Moment {
            now: self.now.get(),
            dice: &self.dice(About::Packets),
        };
        let result = f(&mut self.network.borrow_mut(), host, moment);
        self.settle();
        result
    }

    /// Does what the network has left to the simulator.
    fn settle(&self) {
        let (out, first) = {
            let mut network = self.network.borrow_mut();
            (std::mem::take(&mut network.out), network.first_event())
        };
        for (file, all) in out.wakes {
            self.wake_all_of(Wait::System(file), all);
        }
        for (host, what, number) in out.notes {
            self.note(host, what, number);
        }
        if let Some(first) = first {
            self.next_limit.set(self.next_limit.get().min(first));
        }
    }

    /// Records an event of a host: as one of the thread that runs, if that is a thread of the host.
    pub(super) fn note(&self, host: HostId, what: &'static str, number: u64) {
        let thread = u64::from(self.current.get());
        if thread > 0 && self.host_of_current() == host {
            return self.record(thread, what, 0, number);
        }
        let name =
            (self.settings.kept_events > 0).then(|| self.network.borrow().name_of(host).into());
        let mut trace = self.trace.borrow_mut();
        trace.add(self.now.get(), (0, host), name.as_ref(), what, 0, number);
    }

    /// This thread sleeps in a call of the system.
    #[track_caller]
    pub(crate) fn sleep(&self, time: Duration) {
        let id = self.current.get();
        self.begin_wait(id, Wait::Sleep, Some(time), Location::caller());
        self.end_wait(id);
    }

    /// This thread yields in a call of the system: it is away for a microsecond.
    #[track_caller]
    pub(crate) fn give_way(&self) {
        let id = self.current.get();
        self.begin_wait(id, Wait::Busy, Some(AWAY), Location::caller());
        self.end_wait(id);
    }

    /// A simulated thread has started a thread of the system.
    pub(crate) fn note_system_thread(&self) {
        self.system_threads.set(self.system_threads.get() + 1);
        self.note(self.host_of_current(), "thread of the system", 0);
    }

    /// Waits for news of a file, or for the time alone. Returns false if the time ran out.
    #[track_caller]
    pub(crate) fn wait_for(&self, file: FileId, limit: Option<Duration>) -> bool {
        let id = self.current.get();
        self.begin_wait(id, Wait::System(file), limit, Location::caller());
        self.end_wait(id)
    }

    /// Makes what is due in the network happen. A fault only happens while no thread runs.
    pub(super) fn fire_network(&self) {
        loop {
            let is_fault = {
                let mut network = self.network.borrow_mut();
                let first = network.first_event();
                if first.is_none_or(|first| first > self.now.get()) {
                    return;
                }
                network.is_fault_next()
            };
            if is_fault && self.current.get() > 0 {
                return self.fault_is_due.set(true);
            }
            let fault = self.with_network(|network, _, moment| network.fire_first(moment));
            if let Some(fault) = fault {
                self.fault_is_due.set(false);
                self.fire_fault(fault);
            }
        }
    }

    /// Returns the names of the hosts.
    pub(crate) fn host_names(&self) -> Vec<String> {
        self.network.borrow().names()
    }

    /// Returns the time of the first event of the network.
    pub(super) fn first_event(&self) -> Option<u64> {
        self.network.borrow_mut().first_event()
    }
}
