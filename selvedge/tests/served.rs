//! Whatever one poll does, timers, sockets, children and tasks are served, as long as any thread of
//! the runtime is left.
//!
//! Each test takes one kind of waiting through a table: of runtimes (1, 2 and 4 workers and
//! `current_thread`, with and without a monitor, threads started late and at once), of times (the
//! blocked poll is the first one of the runtime, or a later one, or it begins when the wait has
//! begun), and of places (a `block_on`, or a task while no thread is in `block_on`). In each cell
//! one task blocks its thread, without an annotation, until the wait is over. A wait that nobody
//! serves never ends.
//!
//! The wait must end within 10 ms, and an allowance of 5 ms for two threads to wake up. On a busy
//! machine it may take longer, so a cell is repeated until it has once kept this limit.
//!
//! The cells in which no thread is left are not in the table: see [`Cell::has_thread`].
#![cfg(all(feature = "net", feature = "process", target_os = "linux"))]

use selvedge::{
    Builder, LocalSet, Runtime,
    net::{AsyncFd, TcpListener, TcpStream, UdpSocket, UnixStream, unix::pipe},
    process::Command,
    signal::unix::{SignalKind, signal},
    time::{self, Instant, sleep, sleep_until},
};
use std::{
    future::Future, io::Write, net::SocketAddr, os::fd::OwnedFd, pin::Pin, process::Stdio,
    sync::mpsc, thread, time::Duration,
};

/// The longest wait that a cell must once keep.
const LIMIT: Duration = Duration::from_millis(15);

/// The time after which a wait counts as one that nobody serves.
const HANG: Duration = Duration::from_secs(600);

/// The time from the start of a wait to its event.
const AHEAD: Duration = Duration::from_millis(12);

/// A wait. It returns the time of the event that ends it.
type Wait = Pin<Box<dyn Future<Output = Instant> + Send>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavor {
    Workers(usize),
    CurrentThread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    /// The blocked poll is the first one of the runtime.
    First,
    /// The blocked poll comes after others.
    Later,
    /// The blocked poll begins when the wait has begun.
    AfterWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a `block_on` of the test's thread.
    BlockOn,
    /// In a task, while no thread is in `block_on`.
    Task,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    flavor: Flavor,
    monitor: bool,
    prestart: bool,
    begins: Begins,
    place: Place,
}

impl Cell {
    fn all() -> impl Iterator<Item = Self> {
        let flavors = [1, 2, 4].map(Flavor::Workers);
        let flavors = flavors.into_iter().chain([Flavor::CurrentThread]);
        flavors.flat_map(|flavor| {
            (0..24).map(move |n| Self {
                flavor,
                monitor: n % 2 == 0,
                prestart: n / 2 % 2 == 0,
                begins: [Begins::First, Begins::Later, Begins::AfterWait][n / 4 % 3],
                place: [Place::BlockOn, Place::Task][n / 12],
            })
        })
    }

    /// Returns whether a thread is left for the wait while one task blocks its thread. The only
    /// worker of a runtime runs no other task then. A runtime of one thread has no monitor, and its
    /// threads are those in `block_on`.
    fn has_thread(&self) -> bool {
        match (self.flavor, self.place) {
            (Flavor::Workers(1), Place::Task) => false,
            (Flavor::CurrentThread, Place::Task) => false,
            (Flavor::CurrentThread, Place::BlockOn) => !self.monitor && !self.prestart,
            _ => true,
        }
    }

    fn build(&self) -> Runtime {
        match self.flavor {
            Flavor::CurrentThread => Builder::new_current_thread().build().unwrap(),
            Flavor::Workers(workers) => {
                let mut builder = Builder::new().workers(workers);
                if self.prestart {
                    builder = builder.prestart();
                }
                // By default there is a monitor, which starts late.
                if !self.monitor {
                    builder = builder.monitor(false);
                }
                builder.build().unwrap()
            }
        }
    }

    /// Runs the wait in this cell, and returns how late it ended.
    fn run(&self, wait: impl FnOnce() -> Wait) -> Duration {
        let runtime = self.build();
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let (begin, begins) = tokio::sync::oneshot::channel();
        let block = async move {
            begins.await.unwrap();
            begun.send(()).unwrap();
            let _ = released.recv();
        };
        let begin = move || begin.send(()).unwrap();
        if self.begins != Begins::First {
            runtime.block_on(async {
                for _ in 0..3 {
                    sleep(Duration::from_millis(1)).await;
                    selvedge::spawn(selvedge::yield_now()).await.unwrap();
                }
            });
        }
        thread::scope(|scope| {
            if self.flavor == Flavor::CurrentThread {
                // This thread drives the runtime, and so is the one that blocks.
                let (drives, is_driven) = mpsc::channel();
                let runtime = &runtime;
                scope.spawn(move || {
                    runtime.block_on(async {
                        drives.send(()).unwrap();
                        selvedge::spawn(block).await.unwrap();
                    });
                });
                is_driven.recv().unwrap();
            } else if self.begins == Begins::AfterWait {
                runtime.spawn(block);
            } else {
                // The poll that blocks is the task's first one.
                begin();
                runtime.spawn(block);
                has_begun.recv().unwrap();
                return self.end(&runtime, wait(), || {}, release);
            }
            if self.begins == Begins::AfterWait {
                return self.end(&runtime, wait(), begin, release);
            }
            begin();
            has_begun.recv().unwrap();
            self.end(&runtime, wait(), || {}, release)
        })
    }

    /// Waits, and then releases the blocked task. `begin` is called when the wait has begun.
    fn end(
        &self,
        runtime: &Runtime,
        wait: Wait,
        begin: impl FnOnce() + Send,
        release: mpsc::Sender<()>,
    ) -> Duration {
        let (sender, result) = mpsc::channel();
        let wait = async move {
            let event = wait.await;
            let late = Instant::now().saturating_duration_since(event);
            sender.send(late).unwrap();
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                // By now the wait has usually begun.
                thread::sleep(Duration::from_millis(4));
                begin();
            });
            match self.place {
                Place::BlockOn => drop(scope.spawn(|| runtime.block_on(wait))),
                Place::Task => drop(runtime.spawn(wait)),
            }
            let late = result.recv_timeout(HANG);
            // Without this the test would hang, and not say where.
            drop(release);
            late.unwrap_or_else(|_| panic!("{self:?}: nobody serves the wait"))
        })
    }
}

/// Runs each cell until it has once kept the limit: at the first try, unless the machine is busy.
fn is_served(wait: fn() -> Wait, applies: impl Fn(&Cell) -> bool) {
    let mut cells = 0;
    for cell in Cell::all().filter(|cell| cell.has_thread() && applies(cell)) {
        cells += 1;
        let begun = Instant::now();
        loop {
            let late = cell.run(wait);
            if late <= LIMIT {
                break;
            }
            let gives_up = begun.elapsed() > HANG;
            assert!(!gives_up, "{cell:?}: {late:?} late at the last try");
        }
    }
    assert!(cells > 0);
}

/// Does something, `AHEAD` from now, on a thread of its own. The future returns the time.
fn later(f: impl FnOnce() + Send + 'static) -> impl Future<Output = Instant> + Send {
    let (sender, at) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        thread::sleep(AHEAD);
        // The receiver is polled when the event has come, so it does not wait.
        let _ = sender.send(Instant::now());
        f();
    });
    async move { at.await.unwrap() }
}

fn address() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn sleeps() -> Wait {
    Box::pin(async {
        let end = Instant::now() + AHEAD;
        sleep_until(end).await;
        end
    })
}

fn ticks() -> Wait {
    Box::pin(async {
        let begun = Instant::now();
        let mut interval = time::interval(AHEAD / 3);
        for _ in 0..4 {
            interval.tick().await;
        }
        begun + AHEAD
    })
}

fn times_out() -> Wait {
    Box::pin(async {
        let begun = Instant::now();
        time::timeout(AHEAD, std::future::pending::<()>())
            .await
            .unwrap_err();
        begun + AHEAD
    })
}

fn accepts() -> Wait {
    Box::pin(async {
        let listener = TcpListener::bind(address()).await.unwrap();
        let to = listener.local_addr().unwrap();
        let at = later(move || drop(std::net::TcpStream::connect(to).unwrap()));
        listener.accept().await.unwrap();
        at.await
    })
}

fn reads_tcp() -> Wait {
    Box::pin(async {
        let listener = std::net::TcpListener::bind(address()).unwrap();
        let to = listener.local_addr().unwrap();
        let stream = TcpStream::connect(to).await.unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let at = later(move || other.write_all(b"a").unwrap());
        // The first try says that there is nothing to read.
        while stream.try_read(&mut [0; 1]).is_err() {
            stream.readable().await.unwrap();
        }
        at.await
    })
}

fn receives_udp() -> Wait {
    Box::pin(async {
        let socket = UdpSocket::bind(address()).await.unwrap();
        let to = socket.local_addr().unwrap();
        let other = std::net::UdpSocket::bind(address()).unwrap();
        let at = later(move || assert_eq!(other.send_to(b"a", to).unwrap(), 1));
        socket.recv_from(&mut [0; 1]).await.unwrap();
        at.await
    })
}

fn reads_unix() -> Wait {
    Box::pin(async {
        let (one, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let one = UnixStream::from_std(one).unwrap();
        let at = later(move || other.write_all(b"a").unwrap());
        while one.try_read(&mut [0; 1]).is_err() {
            one.readable().await.unwrap();
        }
        at.await
    })
}

fn reads_pipe() -> Wait {
    Box::pin(async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let at = later(move || assert_eq!(sender.try_write(b"a").unwrap(), 1));
        while receiver.try_read(&mut [0; 1]).is_err() {
            receiver.readable().await.unwrap();
        }
        at.await
    })
}

fn awaits_descriptor() -> Wait {
    Box::pin(async {
        let (one, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let one = AsyncFd::new(OwnedFd::from(one)).unwrap();
        let at = later(move || other.write_all(b"a").unwrap());
        one.readable().await.unwrap().retain_ready();
        at.await
    })
}

fn awaits_child() -> Wait {
    Box::pin(async {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap().into_owned_fd().unwrap();
        let at = later(move || drop(stdin));
        assert!(child.wait().await.unwrap().success());
        at.await
    })
}

fn awaits_signal() -> Wait {
    Box::pin(async {
        let mut signals = signal(SignalKind::user_defined1()).unwrap();
        // The runtime's handler of the signal runs on this thread.
        // SAFETY: the call takes a number.
        let at = later(|| assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0));
        signals.recv().await.unwrap();
        at.await
    })
}

fn awaits_closure() -> Wait {
    Box::pin(async {
        let sleeps = || {
            thread::sleep(AHEAD);
            Instant::now()
        };
        selvedge::spawn_blocking(sleeps).await.unwrap()
    })
}

fn is_woken() -> Wait {
    Box::pin(async {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let at = later(move || sender.send(()).unwrap());
        receiver.await.unwrap();
        at.await
    })
}

/// The event is the end of a task that another thread spawns.
fn joins_task_from_outside() -> Wait {
    Box::pin(async {
        let handle = selvedge::Handle::current();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let at = later(move || {
            handle.spawn(async move { sender.send(()).unwrap() });
        });
        receiver.await.unwrap();
        at.await
    })
}

#[test]
fn sleep_beside_a_blocked_poll_ends() {
    is_served(sleeps, |_| true);
}

#[test]
fn interval_beside_a_blocked_poll_ticks() {
    is_served(ticks, |_| true);
}

#[test]
fn timeout_beside_a_blocked_poll_ends() {
    is_served(times_out, |_| true);
}

#[test]
fn accept_beside_a_blocked_poll_ends() {
    is_served(accepts, |_| true);
}

#[test]
fn read_of_tcp_beside_a_blocked_poll_ends() {
    is_served(reads_tcp, |_| true);
}

#[test]
fn receive_of_udp_beside_a_blocked_poll_ends() {
    is_served(receives_udp, |_| true);
}

#[test]
fn read_of_a_unix_stream_beside_a_blocked_poll_ends() {
    is_served(reads_unix, |_| true);
}

#[test]
fn read_of_a_pipe_beside_a_blocked_poll_ends() {
    is_served(reads_pipe, |_| true);
}

#[test]
fn descriptor_beside_a_blocked_poll_gets_ready() {
    is_served(awaits_descriptor, |_| true);
}

#[test]
fn child_beside_a_blocked_poll_is_reaped() {
    is_served(awaits_child, |_| true);
}

#[test]
fn signal_beside_a_blocked_poll_is_received() {
    is_served(awaits_signal, |_| true);
}

#[test]
fn closure_beside_a_blocked_poll_is_joined() {
    is_served(awaits_closure, |_| true);
}

#[test]
fn wake_from_outside_beside_a_blocked_poll_arrives() {
    is_served(is_woken, |_| true);
}

#[test]
fn task_from_outside_beside_a_blocked_poll_runs() {
    let has_other_worker = |cell: &Cell| matches!(cell.flavor, Flavor::Workers(2..));
    is_served(joins_task_from_outside, has_other_worker);
}

/// A `LocalSet` on the thread of the `block_on`: the set's tasks sleep.
#[test]
fn local_task_beside_a_blocked_poll_sleeps() {
    fn local() -> Wait {
        // The set is not `Send`. A closure makes it on the thread that polls.
        Box::pin(async {
            let end = Instant::now() + AHEAD;
            let handle = selvedge::Handle::current();
            let run = move || {
                let set = LocalSet::new();
                handle.block_on(set.run_until(async move {
                    selvedge::task::spawn_local(sleep_until(end)).await.unwrap();
                }));
            };
            selvedge::spawn_blocking(run).await.unwrap();
            end
        })
    }
    is_served(local, |_| true);
}

/// The blocked poll itself waits for a sleep, in a `block_on` of another crate.
#[test]
fn other_block_on_in_a_poll_ends() {
    fn in_other_block_on() -> Wait {
        Box::pin(async {
            selvedge::spawn(async { futures::executor::block_on(sleeps()) })
                .await
                .unwrap()
        })
    }
    // One more worker than in the other tests is in a blocked poll.
    is_served(in_other_block_on, |cell| match cell.flavor {
        Flavor::Workers(workers) => {
            workers == 4 || workers == 2 && (cell.monitor || cell.place == Place::BlockOn)
        }
        Flavor::CurrentThread => false,
    });
}

/// The same, if no other poll blocks: the only worker is in a `block_on` of another crate.
#[test]
fn other_block_on_in_the_only_poll_ends() {
    for workers in [1, 2, 4] {
        for (monitor, in_block_on) in [(true, true), (true, false), (false, true)] {
            let begun = Instant::now();
            loop {
                let runtime = Builder::new().workers(workers);
                let runtime = runtime.monitor(monitor).build().unwrap();
                let (sender, result) = mpsc::channel();
                let task = runtime.spawn(async move {
                    let end = futures::executor::block_on(sleeps());
                    sender.send(end.elapsed()).unwrap();
                });
                if in_block_on {
                    runtime.block_on(task).unwrap();
                }
                if result.recv().unwrap() <= LIMIT {
                    break;
                }
                assert!(begun.elapsed() < HANG, "{workers} {monitor}");
            }
        }
    }
}

/// Tasks that the blocked poll has spawned, into the LIFO slot and into the ring: another worker
/// takes them.
#[test]
fn tasks_spawned_by_a_blocked_poll_run() {
    for workers in [2, 4] {
        for (monitor, tasks) in [(true, 1), (true, 3), (false, 1), (false, 3)] {
            let begun = Instant::now();
            loop {
                let runtime = Builder::new()
                    .workers(workers)
                    .monitor(monitor)
                    .build()
                    .unwrap();
                let (sender, results) = mpsc::channel();
                let (release, released) = mpsc::channel::<()>();
                runtime.spawn(async move {
                    let spawned = Instant::now();
                    for _ in 0..tasks {
                        let sender = sender.clone();
                        let task = async move { sender.send(spawned.elapsed()).unwrap() };
                        selvedge::spawn(task);
                    }
                    let _ = released.recv();
                });
                let late = (0..tasks).map(|_| results.recv().unwrap()).max().unwrap();
                drop(release);
                if late <= LIMIT {
                    break;
                }
                assert!(begun.elapsed() < HANG, "{workers} {monitor} {tasks}");
            }
        }
    }
}

/// A task of a group whose worker is in a blocked poll.
#[cfg(feature = "groups")]
#[test]
fn task_of_a_group_beside_a_blocked_poll_runs() {
    fn grouped() -> Wait {
        Box::pin(async {
            let handle = selvedge::Handle::current();
            let group = handle.group("other").shares(100).build().unwrap();
            let end = Instant::now() + AHEAD;
            selvedge::spawn_in(&group, sleep_until(end))
                .unwrap()
                .await
                .unwrap();
            end
        })
    }
    let has_other_worker = |cell: &Cell| matches!(cell.flavor, Flavor::Workers(2..));
    is_served(grouped, has_other_worker);
}

/// Two threads are in `block_on`, without a monitor. When the first one leaves, it has stood by.
/// Then the worker is in a blocked poll: the second thread must serve its own sleep.
///
/// Fails if the first thread passes its place on to the worker that waits as the poller.
#[test]
fn second_thread_in_block_on_stands_by_after_the_first() {
    for flavor in [
        Flavor::Workers(1),
        Flavor::Workers(2),
        Flavor::CurrentThread,
    ] {
        let runtime = match flavor {
            Flavor::Workers(workers) => Builder::new().workers(workers).monitor(false).build(),
            Flavor::CurrentThread => Builder::new_current_thread().build(),
        };
        let runtime = &runtime.unwrap();
        let (begin, begins) = tokio::sync::oneshot::channel::<()>();
        let (release, released) = mpsc::channel::<()>();
        let (sender, result) = mpsc::channel();
        let block = async move {
            begins.await.unwrap();
            let _ = released.recv();
        };
        thread::scope(|scope| {
            let task = runtime.spawn(block);
            scope.spawn(|| runtime.block_on(task).unwrap());
            thread::sleep(Duration::from_millis(2));
            let first = scope.spawn(|| runtime.block_on(sleep(Duration::from_millis(20))));
            thread::sleep(Duration::from_millis(2));
            scope.spawn(move || {
                runtime.block_on(sleep(Duration::from_millis(60)));
                sender.send(()).unwrap();
            });
            first.join().unwrap();
            begin.send(()).unwrap();
            let served = result.recv_timeout(HANG);
            drop(release);
            served.unwrap_or_else(|_| panic!("{flavor:?}: nobody serves the sleep"));
        });
    }
}

/// Returns how often the threads with this name have gone to sleep so far.
fn sleeps_of(name: &str) -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let status = |thread: std::io::Result<std::fs::DirEntry>| {
        // A thread may end meanwhile.
        std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap_or_default()
    };
    let of_name = threads.map(status).filter(|status| status.contains(name));
    let count = |status: String| -> u64 {
        let line = status
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.unwrap()
            .split_whitespace()
            .last()
            .unwrap()
            .parse()
            .unwrap()
    };
    of_name.map(count).sum()
}

/// A runtime that has had a timer is idle, with a thread in `block_on` and a sleep of an hour:
/// after a while none of its threads wakes up.
///
/// Fails if the thread that stands by looks for ever.
#[test]
fn idle_runtime_without_a_monitor_has_no_wake_ups() {
    for workers in [1, 3] {
        let name = format!("idle-{workers}");
        let builder = Builder::new().workers(workers).prestart().monitor(false);
        let runtime = builder.thread_name(&name).build().unwrap();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        let guest = thread::Builder::new().name(name.clone());
        let guest = guest.spawn(move || handle.block_on(ended)).unwrap();
        runtime.spawn(sleep(Duration::from_secs(3_600)));
        runtime.block_on(sleep(Duration::from_millis(10)));
        let begun = Instant::now();
        loop {
            let before = sleeps_of(&name);
            thread::sleep(Duration::from_millis(200));
            if sleeps_of(&name) == before {
                break;
            }
            assert!(begun.elapsed() < HANG, "{workers} workers");
        }
        end.send(()).unwrap();
        guest.join().unwrap().unwrap();
    }
}
