//! The hosts of a run: their begin and end, and their faults.
//!
//! 1. The main function of the run is on host 0. It starts the other hosts, each with a first
//!    thread. A thread that is started belongs to the host of the one that starts it.
//! 2. A fault happens between two steps of the loop, while no thread runs.
//! 3. A crash ends the threads of a host as they are: they stay in the table as over, with their
//!    bodies, and are leaked at the end of the run. Another host may have a reference to a value on
//!    such a stack. Nothing of the host is checked any more, and what it has allocated is not
//!    missed.
//! 4. While a thread unwinds, no host crashes: std would count the panic for ever. The crash comes
//!    later.
use super::{World, network::CLIENTS, threads::State};
use crate::{
    choice::{About, Dice},
    hosts::{Fault, Faults, Hosts, Plan, Role},
    net::{Cut, HostId},
    system,
};
use std::{
    mem,
    ops::Range,
    panic::{self, AssertUnwindSafe, Location},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};
use sync_shim::sim::Wait;

/// How much longer each poll of a slow host takes, in nanoseconds, times its slowness.
const SLOW_POLL: u64 = 1_000;

/// The time until a crash is tried again.
const LATER: u64 = 1_000_000;

/// The hosts of a run, from number 1 on, and what will happen to them.
#[derive(Default)]
pub(super) struct Fleet {
    hosts: Vec<Incarnation>,
    actions: Vec<Action>,
    is_stopping: bool,
}

/// A host, since its last start.
struct Incarnation {
    plan: Plan,
    /// The id of its first thread.
    first_thread: u32,
    /// Whether the program has ended, or will not come back.
    is_over: bool,
    /// The waker of the task that is told to stop.
    waker: Option<Waker>,
}

/// The effect of a fault.
#[derive(Clone, Copy, Debug)]
enum Action {
    Crash(HostId, Option<Duration>),
    Restart(HostId),
    Note(HostId, &'static str, HostId),
}

/// Returns the number of milliseconds in a span, and 1 for an empty one.
fn spread(span: &Range<Duration>) -> u32 {
    let spread = span.end.saturating_sub(span.start).as_millis();
    u32::try_from(spread).unwrap_or(u32::MAX).max(1)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl World {
    /// Runs `f` with the world of this simulated thread.
    ///
    /// # Panics
    /// If the thread is not simulated.
    pub(crate) fn of_current<R>(f: impl FnOnce(&Self) -> R) -> R {
        Self::with_current(f).expect("a simulated thread calls this")
    }

    /// Starts the hosts, and chooses their faults.
    pub(crate) fn start_hosts(&self, hosts: &Hosts) {
        let count = {
            let mut network = self.network.borrow_mut();
            network.wires.settings = hosts.net.clone();
            for plan in &hosts.plans {
                let host = network.add_host(plan.name);
                for (at, disk) in &plan.disks {
                    network.disks.mount(host, at, disk.clone());
                }
            }
            self.trace.borrow_mut().share_among(hosts.plans.len() + 1);
            let mut fleet = self.fleet.borrow_mut();
            fleet
                .hosts
                .extend(hosts.plans.iter().map(|plan| Incarnation {
                    plan: plan.clone(),
                    first_thread: 0,
                    is_over: false,
                    waker: None,
                }));
            let differs = |plan: &Plan| plan.slower > 1 || !plan.ahead.is_zero();
            self.hosts_differ.set(hosts.plans.iter().any(differs));
            hosts.plans.len()
        };
        let host_of = |name: &str| {
            let at = hosts.plans.iter().position(|plan| plan.name == name);
            at.map_or(0, |at| at + 1)
        };
        for fault in &hosts.faults {
            match fault {
                Fault::Cut { from, to, span } => self.cut(host_of(from), host_of(to), span),
                Fault::Crash { host, at, lasts } => {
                    let at = self.begin_in(at);
                    self.act_at(at, Action::Crash(host_of(host), *lasts));
                }
            }
        }
        if let Some(random) = &hosts.random {
            self.choose_faults(random, &hosts.plans);
        }
        (1..=count).for_each(|host| self.start_host(host));
    }

    /// Chooses a time of a span, to the millisecond.
    fn time_in(&self, span: &Range<Duration>) -> Duration {
        span.start + Duration::from_millis(self.choose_below(spread(span)).into())
    }

    /// Chooses the time of a span at which a fault begins.
    fn begin_in(&self, span: &Range<Duration>) -> Duration {
        let first = u64::try_from(span.start.as_millis()).unwrap_or(u64::MAX);
        self.choices.borrow_mut().note_begin(first, spread(span));
        self.time_in(span)
    }

    fn choose_below(&self, count: u32) -> u32 {
        self.dice(About::Faults).below(count)
    }

    fn choose_faults(&self, faults: &Faults, plans: &[Plan]) {
        let servers = (1..=plans.len()).filter(|host| plans[host - 1].role == Role::Server);
        let servers: Vec<_> = servers.collect();
        let begins = Duration::ZERO..faults.during;
        let lasts = Duration::from_millis(1)..faults.longest;
        for _ in 0..self.choose_below(faults.crashes.saturating_add(1)) {
            if servers.is_empty() {
                break;
            }
            let host = servers[self.choose_below(servers.len() as u32) as usize];
            let at = self.begin_in(&begins);
            self.act_at(at, Action::Crash(host, Some(self.time_in(&lasts))));
        }
        for _ in 0..self.choose_below(faults.partitions.saturating_add(1)) {
            let Some(others) = (plans.len() as u32)
                .checked_sub(1)
                .filter(|count| *count > 0)
            else {
                break;
            };
            let one = self.choose_below(plans.len() as u32) as usize + 1;
            let other = self.choose_below(others) as usize + 1;
            let other = other + usize::from(other >= one);
            let at = self.begin_in(&begins);
            let span = at..at + self.time_in(&lasts);
            let ways = self.choose_below(3);
            if ways != 1 {
                self.cut(one, other, &span);
            }
            if ways != 2 {
                self.cut(other, one, &span);
            }
        }
    }

    fn cut(&self, from: HostId, to: HostId, span: &Range<Duration>) {
        let nanos = nanos(span.start)..nanos(span.end);
        let cut = Cut {
            from,
            to,
            span: nanos,
        };
        self.network.borrow_mut().wires.cuts.push(cut);
        self.act_at(span.start, Action::Note(from, "cut begins", to));
        self.act_at(span.end, Action::Note(from, "cut ends", to));
    }

    /// Lets a fault happen at this time of the run.
    fn act_at(&self, at: Duration, action: Action) {
        let number = {
            let mut fleet = self.fleet.borrow_mut();
            fleet.actions.push(action);
            fleet.actions.len() - 1
        };
        self.with_network(|network, _, _| network.add_fault(nanos(at), number));
    }

    /// Starts the first thread of a host.
    fn start_host(&self, host: HostId) {
        let plan = self.fleet.borrow().hosts[host - 1].plan.clone();
        let name: Arc<str> = plan.name.into();
        let main = move || {
            if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| plan.run())) {
                sync_shim::sim::end_by_panic(&*payload);
            }
            Self::of_current(|world| world.host_ended(host));
        };
        match self.spawn_on(host, Some(name), Box::new(main)) {
            Ok(id) => self.fleet.borrow_mut().hosts[host - 1].first_thread = id as u32,
            Err(error) => self.fail(crate::Failure::Panic {
                thread: "simulator".to_owned(),
                message: format!("there is no stack for a host: {error}"),
                place: None,
            }),
        }
    }

    fn host_ended(&self, host: HostId) {
        self.fleet.borrow_mut().hosts[host - 1].is_over = true;
        self.wake_all_of(Wait::System(CLIENTS), true);
    }

    /// Waits until no client will go on.
    pub(crate) fn await_clients(&self) {
        let goes_on = |one: &Incarnation| one.plan.role == Role::Client && !one.is_over;
        while self.fleet.borrow().hosts.iter().any(goes_on) {
            self.wait_for(CLIENTS, None);
        }
    }

    /// Lets the servers stop, and waits for their first threads.
    pub(crate) fn stop_hosts(&self) {
        let wakers: Vec<_> = {
            let mut fleet = self.fleet.borrow_mut();
            fleet.is_stopping = true;
            let hosts = fleet.hosts.iter_mut();
            hosts.filter_map(|host| host.waker.take()).collect()
        };
        wakers.into_iter().for_each(Waker::wake);
        let hosts = self.fleet.borrow().hosts.len();
        for host in 0..hosts {
            let first = self.fleet.borrow().hosts[host].first_thread;
            while self.threads.borrow()[first as usize - 1].state != State::Over {
                let id = self.current.get();
                self.begin_wait(id, Wait::Join(first.into()), None, Location::caller());
                self.end_wait(id);
            }
        }
    }

    /// Polls whether the host of this thread is to stop.
    pub(crate) fn poll_stop(&self, cx: &mut Context<'_>) -> Poll<()> {
        let host = self.host_of_current();
        let waker = cx.waker().clone();
        let mut fleet = self.fleet.borrow_mut();
        if fleet.is_stopping {
            return Poll::Ready(());
        }
        let old = fleet.hosts[host - 1].waker.replace(waker);
        drop(fleet);
        drop(old);
        Poll::Pending
    }

    /// Makes a fault happen (rule 2).
    pub(super) fn fire_fault(&self, number: usize) {
        let (action, is_stopping) = {
            let fleet = self.fleet.borrow();
            (fleet.actions[number], fleet.is_stopping)
        };
        if is_stopping {
            return;
        }
        match action {
            Action::Note(host, what, other) => self.note(host, what, other as u64),
            Action::Crash(host, lasts) => self.crash(number, host, lasts),
            Action::Restart(host) => {
                self.note(host, "restart", 0);
                self.network.borrow_mut().restart(host);
                self.start_host(host);
            }
        }
    }

    fn crash(&self, number: usize, host: HostId, lasts: Option<Duration>) {
        if std::thread::panicking() {
            let at = self.now.get() + LATER;
            return self.with_network(|network, _, _| network.add_fault(at, number));
        }
        if !self.network.borrow().is_up(host) || self.fleet.borrow().hosts[host - 1].is_over {
            return;
        }
        self.note(host, "crash", 0);
        self.end_threads(host);
        let losses = self.dice(About::Losses);
        self.with_network(|network, _, _| network.crash(host, &losses));
        self.tasks.borrow_mut().forget_host(host);
        self.subjects.borrow_mut().retain(|(of, _)| *of != host);
        // The host's own code would run in the drop.
        mem::forget(self.fleet.borrow_mut().hosts[host - 1].waker.take());
        match lasts {
            Some(lasts) => {
                let back = self.time().saturating_add(lasts);
                self.act_at(back, Action::Restart(host));
            }
            None => self.host_ended(host),
        }
    }

    /// Ends all threads of a host, as they are (rule 3).
    fn end_threads(&self, host: HostId) {
        let mut threads = self.threads.borrow_mut();
        let mut ready = self.ready.borrow_mut();
        for thread in threads.iter_mut().filter(|thread| thread.host == host) {
            if thread.state != State::Over {
                thread.state = State::Over;
                thread.waits += 1;
                self.live.set(self.live.get() - 1);
                let id = thread.fiber.id() as u32;
                ready.retain(|ready| *ready != id);
                if self.chosen.get() == id {
                    self.chosen.set(0);
                }
            }
        }
    }

    /// Returns how many times as long polls take on the host of the thread that runs, and the time
    /// by which each is longer.
    pub(super) fn slowness(&self) -> (u64, u64) {
        let host = self.host_of_current();
        let fleet = self.fleet.borrow();
        let slower = host
            .checked_sub(1)
            .map_or(1, |at| fleet.hosts[at].plan.slower);
        let more = SLOW_POLL * u64::from(slower - 1);
        (slower.into(), more)
    }

    /// Shows the clock of this host to its threads.
    pub(super) fn show_clock(&self, host: HostId) {
        let fleet = self.fleet.borrow();
        let ahead = host.checked_sub(1).map(|at| fleet.hosts[at].plan.ahead);
        system::set_ahead(ahead.unwrap_or_default());
    }
}
