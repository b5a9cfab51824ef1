//! `Hosts`: several hosts, their network, and their faults.
use crate::{Disk, Net, Run, Sim, disk_settings::check_path};
use std::{fmt, future::Future, ops::Range, sync::Arc, time::Duration};

/// The program of a host: called when the host starts, and after each restart.
pub(crate) type Start = Arc<dyn Fn(usize, Role) + Send + Sync>;

/// Whether a run waits for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The run waits for the end of the program.
    Client,
    /// The program runs until all clients have ended.
    Server,
}

#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) start: Start,
    pub(crate) ahead: Duration,
    pub(crate) slower: u32,
    pub(crate) disks: Vec<(&'static str, Disk)>,
    workers: usize,
}

impl Plan {
    /// Runs the program of the host.
    pub(crate) fn run(&self) {
        (self.start)(self.workers, self.role);
    }
}

/// A fault of a scenario, whose time the seed chooses from a span.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Nothing passes from one host to the other one.
    Cut {
        from: &'static str,
        to: &'static str,
        span: Range<Duration>,
    },
    Crash {
        host: &'static str,
        at: Range<Duration>,
        /// For how long the host is down, or `None` if it does not come back.
        lasts: Option<Duration>,
    },
}

/// Faults that the seed chooses.
///
/// ```
/// use selvedge_sim::Faults;
/// use std::time::Duration;
///
/// let faults = Faults::new().crashes(1).partitions(2).during(Duration::from_secs(5));
/// # let _ = faults;
/// ```
#[derive(Clone, Debug)]
#[must_use = "the faults are those of the hosts that take them"]
pub struct Faults {
    pub(crate) crashes: u32,
    pub(crate) partitions: u32,
    pub(crate) during: Duration,
    pub(crate) longest: Duration,
}

impl Default for Faults {
    fn default() -> Self {
        Self::new()
    }
}

impl Faults {
    /// Makes no faults, in the first 10 seconds.
    pub fn new() -> Self {
        Self {
            crashes: 0,
            partitions: 0,
            during: Duration::from_secs(10),
            longest: Duration::from_secs(3),
        }
    }

    /// Sets how often a server crashes at most. Each comes back. The seed chooses how often, which
    /// servers and when.
    pub fn crashes(mut self, most: u32) -> Self {
        self.crashes = most;
        self
    }

    /// Sets how often two hosts are apart at most, one way or both ways. The seed chooses how
    /// often, which hosts, which ways and when.
    pub fn partitions(mut self, most: u32) -> Self {
        self.partitions = most;
        self
    }

    /// Sets the time from the begin of the run in which faults begin. 10 seconds by default.
    pub fn during(mut self, time: Duration) -> Self {
        self.during = time;
        self
    }

    /// Sets how long a host is down, or two hosts are apart, at most. 3 seconds by default.
    pub fn longest(mut self, time: Duration) -> Self {
        self.longest = time;
        self
    }
}

/// A run of several hosts: each has a runtime of its own, and reaches the others by its sockets
/// alone.
///
/// A host has an address and a name, under which the lookups of the others find it (`db:5432`).
/// The names of a host's threads, tasks and sockets are its own, but all hosts are in one process:
/// a static is the same for all, and does not begin anew after a crash.
///
/// ```
/// use net_driver::net::{TcpListener, TcpStream};
/// use selvedge_sim::{Net, Sim};
/// use std::time::Duration;
/// use task_io::{AsyncReadExt, AsyncWriteExt};
///
/// # let ms = Duration::from_millis;
/// let run = Sim::new(7).hosts()
///     .server("db", 2, || async {
///         let listener = TcpListener::bind("0.0.0.0:5432").await.unwrap();
///         loop {
///             let (mut stream, _) = listener.accept().await.unwrap();
///             stream.write_all(b"hello").await.unwrap();
///         }
///     })
///     .client("web", 2, || async {
///         let mut stream = TcpStream::connect("db:5432").await.unwrap();
///         let mut all = String::new();
///         stream.read_to_string(&mut all).await.unwrap();
///         assert_eq!(all, "hello");
///     })
///     .net(Net::new().latency(ms(1)..ms(50)).loss(0.01))
///     .partition("db", "web", ms(3)..ms(900))
///     .run();
/// run.unwrap();
/// ```
///
/// Without the cfg `selvedge_sim` there are no hosts: then `run` runs nothing.
#[derive(Clone)]
#[must_use = "the hosts run when `run` is called"]
pub struct Hosts {
    pub(crate) sim: Sim,
    pub(crate) plans: Vec<Plan>,
    pub(crate) net: Net,
    pub(crate) faults: Vec<Fault>,
    pub(crate) random: Option<Faults>,
    pub(crate) checks: Vec<Arc<dyn Fn() + Send + Sync>>,
}

impl Sim {
    /// Begins a run of several hosts.
    pub fn hosts(&self) -> Hosts {
        Hosts {
            sim: self.clone(),
            plans: Vec::new(),
            net: Net::new(),
            faults: Vec::new(),
            random: None,
            checks: Vec::new(),
        }
    }
}

impl Hosts {
    /// Adds a host that runs until all clients have ended. Its runtime has this many workers.
    ///
    /// # Panics
    /// If there is a host of this name already. `main` and `localhost` count as such names.
    #[track_caller]
    pub fn server<F: Future<Output = ()>>(
        self,
        name: &'static str,
        workers: usize,
        app: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        self.host(name, workers, Role::Server, app)
    }

    /// Adds a host. The run ends when the futures of all such hosts have ended.
    ///
    /// # Panics
    /// If there is a host of this name already. `main` and `localhost` count as such names.
    #[track_caller]
    pub fn client<F: Future<Output = ()>>(
        self,
        name: &'static str,
        workers: usize,
        app: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        self.host(name, workers, Role::Client, app)
    }

    #[track_caller]
    fn host<F: Future<Output = ()>>(
        mut self,
        name: &'static str,
        workers: usize,
        role: Role,
        app: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        let is_known = ["main", "localhost"].contains(&name);
        let is_new = !is_known && self.plans.iter().all(|plan| plan.name != name);
        assert!(is_new, "there is a host {name} already");
        let start: Start = Arc::new(move |workers, role| imp::start(workers, role, &app));
        self.plans.push(Plan {
            name,
            role,
            start,
            ahead: Duration::ZERO,
            slower: 1,
            disks: Vec::new(),
            workers,
        });
        self
    }

    #[track_caller]
    fn plan(&mut self, name: &str) -> &mut Plan {
        let plan = self.plans.iter_mut().find(|plan| plan.name == name);
        plan.unwrap_or_else(|| panic!("there is no host {name}"))
    }

    /// Sets the network between the hosts.
    pub fn net(mut self, net: Net) -> Self {
        self.net = net;
        self
    }

    /// Lets no packet pass between two hosts for some time.
    ///
    /// # Panics
    /// If there is no such host.
    #[track_caller]
    pub fn partition(self, one: &'static str, other: &'static str, span: Range<Duration>) -> Self {
        self.cut(one, other, span.clone()).cut(other, one, span)
    }

    /// Lets no packet pass from one host to another one for some time.
    ///
    /// # Panics
    /// If there is no such host.
    #[track_caller]
    pub fn cut(mut self, from: &'static str, to: &'static str, span: Range<Duration>) -> Self {
        self.plan(from);
        self.plan(to);
        self.faults.push(Fault::Cut { from, to, span });
        self
    }

    /// Lets a host crash at a time that the seed chooses from `at`. Its threads never run again, no
    /// destructor runs, and its sockets vanish without a word to the other hosts. If `lasts` is
    /// some time, the host starts anew after that.
    ///
    /// # Panics
    /// If there is no such host.
    #[track_caller]
    pub fn crash(
        mut self,
        host: &'static str,
        at: Range<Duration>,
        lasts: Option<Duration>,
    ) -> Self {
        self.plan(host);
        self.faults.push(Fault::Crash { host, at, lasts });
        self
    }

    /// Lets the seed choose faults, beside the others.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.random = Some(faults);
        self
    }

    /// Sets how far the date of a host is ahead of that of the others.
    ///
    /// # Panics
    /// If there is no such host.
    #[track_caller]
    pub fn clock_ahead(mut self, host: &'static str, time: Duration) -> Self {
        self.plan(host).ahead = time;
        self
    }

    /// Sets how many times as long the polls of a host take.
    ///
    /// # Panics
    /// If there is no such host, or `times` is 0.
    #[track_caller]
    pub fn slow(mut self, host: &'static str, times: u32) -> Self {
        assert!(times > 0, "a host has some speed");
        self.plan(host).slower = times;
        self
    }

    /// Puts a disk at a path of a host. Below that path all files of the host are simulated. The
    /// disk is empty at first, and outlives the host's crashes.
    ///
    /// # Panics
    /// If there is no such host, or the path is not absolute, or is `/`, or has a part `.` or `..`.
    #[track_caller]
    pub fn disk(mut self, host: &'static str, path: &'static str, disk: Disk) -> Self {
        check_path(path);
        self.plan(host).disks.push((path, disk));
        self
    }

    /// Calls `check` at the end of the run, when all hosts have ended. It panics if the run has
    /// failed.
    pub fn check(mut self, check: impl Fn() + Send + Sync + 'static) -> Self {
        self.checks.push(Arc::new(check));
        self
    }

    /// Runs the hosts.
    pub fn run(self) -> Run {
        imp::run(self)
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.plans.iter().map(|plan| plan.name);
        f.debug_struct("Hosts")
            .field("names", &names.collect::<Vec<_>>())
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

#[cfg(selvedge_sim)]
mod imp {
    use super::{Hosts, Role};
    use crate::{Run, world::World};
    use std::{
        future::{Future, poll_fn},
        pin::pin,
        task::Poll,
        time::Duration,
    };

    pub(super) fn run(hosts: Hosts) -> Run {
        let sim = hosts.sim.clone();
        sim.run_main(move || {
            World::of_current(|world| world.start_hosts(&hosts));
            World::of_current(World::await_clients);
            World::of_current(World::stop_hosts);
            hosts.checks.iter().for_each(|check| check());
        })
    }

    /// Runs the program of a host, on the host's first thread.
    pub(super) fn start<F: Future<Output = ()>>(workers: usize, role: Role, app: &impl Fn() -> F) {
        let builder = selvedge_executor::Builder::new()
            .workers(workers)
            .stall_threshold(Duration::MAX);
        let runtime = builder.build().expect("the simulator starts each thread");
        match role {
            Role::Client => runtime.block_on(app()),
            Role::Server => runtime.block_on(async {
                let mut app = pin!(app());
                poll_fn(|cx| {
                    if World::of_current(|world| world.poll_stop(cx)).is_ready() {
                        return Poll::Ready(());
                    }
                    app.as_mut().poll(cx)
                })
                .await;
            }),
        }
    }
}

#[cfg(not(selvedge_sim))]
mod imp {
    use super::{Hosts, Role};
    use crate::Run;
    use std::future::Future;

    pub(super) fn run(hosts: Hosts) -> Run {
        hosts.sim.run_nothing()
    }

    pub(super) fn start<F: Future<Output = ()>>(_: usize, _: Role, _: &impl Fn() -> F) {}
}
