//! Tests of the reactor with the real kernel, and with one that reports events late, twice, and
//! without cause.
use super::*;
use crate::{
    Interest,
    registration::{Moved, Registration, Removal},
    slot::Direction,
    sys::Os,
};
use std::{
    cell::{Cell, RefCell},
    future::Future,
    io::{Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    pin::pin,
    sync::{OnceLock, mpsc},
    task::{Context, Poll, Wake},
    thread,
};
use sync_shim::sync::{Arc, Mutex};

/// A kernel that holds each event back until the next wait, and then reports it twice, with a
/// spurious event between.
struct Faulty {
    os: Os,
    late: Mutex<Vec<(u64, Ready)>>,
}

impl Sys for Faulty {
    const CLOSE_DEREGISTERS: bool = Os::CLOSE_DEREGISTERS;
    const REPORTS_CLOSE: bool = Os::REPORTS_CLOSE;
    const ONE_SHOT: bool = Os::ONE_SHOT;

    fn open() -> io::Result<Self> {
        Ok(Self {
            os: Os::open()?,
            late: Mutex::new(Vec::new()),
        })
    }

    fn register(&self, fd: Fd, token: u64) -> io::Result<()> {
        self.os.register(fd, token)
    }

    fn replace(&self, fd: Fd, token: u64) -> io::Result<()> {
        self.os.replace(fd, token)
    }

    fn deregister(&self, fd: Fd, token: u64) -> io::Result<()> {
        self.os.deregister(fd, token)
    }

    fn arm(&self, token: u64, wanted: impl FnOnce() -> Ready) -> io::Result<()> {
        self.os.arm(token, wanted)
    }

    fn wait(
        &self,
        _: Option<Duration>,
        max: usize,
        mut on_event: impl FnMut(u64, Ready),
    ) -> io::Result<bool> {
        let new = RefCell::new(Vec::new());
        let now = Some(Duration::ZERO);
        let was_woken = self.os.wait(now, max, |token, ready| {
            new.borrow_mut().push((token, ready))
        })?;
        let mut late = self.late.lock();
        for (token, ready) in late.drain(..) {
            on_event(token, ready);
            on_event(token, Ready::READABLE | Ready::WRITABLE);
            on_event(token, ready);
        }
        late.extend(new.into_inner());
        Ok(was_woken)
    }

    fn wake(&self) {
        self.os.wake();
    }
}

/// A wait that takes longer would never end.
const LIMIT: Duration = Duration::from_secs(600);

/// A kernel whose calls for one number sleep until the test wakes them.
struct Slow {
    os: Os,
    sleeper: OnceLock<Sleeper>,
}

struct Sleeper {
    fd: Fd,
    asleep: mpsc::Sender<()>,
    wake: Mutex<mpsc::Receiver<()>>,
}

impl Slow {
    fn sleep(&self, fd: Fd) {
        let sleeper = self.sleeper.get();
        if let Some(sleeper) = sleeper.filter(|sleeper| sleeper.fd == fd) {
            sleeper.asleep.send(()).unwrap();
            let woken = sleeper.wake.lock().recv_timeout(LIMIT);
            woken.expect("another socket waits for the sleeping call");
        }
    }
}

impl Sys for Slow {
    const CLOSE_DEREGISTERS: bool = Os::CLOSE_DEREGISTERS;
    const REPORTS_CLOSE: bool = Os::REPORTS_CLOSE;
    const ONE_SHOT: bool = Os::ONE_SHOT;

    fn open() -> io::Result<Self> {
        Ok(Self {
            os: Os::open()?,
            sleeper: OnceLock::new(),
        })
    }

    fn register(&self, fd: Fd, token: u64) -> io::Result<()> {
        self.sleep(fd);
        self.os.register(fd, token)
    }

    fn replace(&self, fd: Fd, token: u64) -> io::Result<()> {
        self.sleep(fd);
        self.os.replace(fd, token)
    }

    fn deregister(&self, fd: Fd, token: u64) -> io::Result<()> {
        self.sleep(fd);
        self.os.deregister(fd, token)
    }

    fn arm(&self, token: u64, wanted: impl FnOnce() -> Ready) -> io::Result<()> {
        self.os.arm(token, wanted)
    }

    fn wait(
        &self,
        limit: Option<Duration>,
        max: usize,
        on_event: impl FnMut(u64, Ready),
    ) -> io::Result<bool> {
        self.os.wait(limit, max, on_event)
    }

    fn wake(&self) {
        self.os.wake();
    }
}

fn pair() -> (UnixStream, UnixStream) {
    let (one, other) = UnixStream::pair().unwrap();
    one.set_nonblocking(true).unwrap();
    (one, other)
}

fn collect<S: Sys>(reactor: &Reactor<S>) -> usize {
    let mut out = VecDeque::new();
    reactor.collect(Some(Duration::ZERO), 64, &mut out).unwrap();
    out.len()
}

/// Fails if `collect_all` stops after a full batch whose events wake nobody, although more events
/// have come.
#[test]
fn collect_all_finds_the_event_behind_a_full_batch() {
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let pairs: Vec<_> = (0..70).map(|_| pair()).collect();
    // Each source is writable, and the last one has a waiter.
    let registrations: Vec<_> = pairs
        .iter()
        .map(|(one, _)| {
            Registration::new(&reactor, one.as_raw_fd(), Ready::EMPTY, Removal::Deregister).unwrap()
        })
        .collect();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(
        registrations[69]
            .poll_ready(&mut cx, Direction::Write)
            .is_pending()
    );
    let mut out = VecDeque::new();
    assert!(!reactor.collect_all(64, &mut out));
    assert_eq!(out.len(), 1);
    reactor.wake();
    assert!(reactor.collect_all(64, &mut out));
    assert_eq!(out.len(), 1);
}

#[test]
fn bytes_pass_whole_and_once_through_a_faulty_kernel() {
    let reactor = Arc::new(Reactor::<Faulty>::open().unwrap());
    let (one, mut other) = pair();
    let fd = one.as_raw_fd();
    let registration = Registration::new(&reactor, fd, Ready::EMPTY, Removal::Deregister).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let (mut sent, mut received, mut buffer) = (0_u32, Vec::<u8>::new(), [0; 7]);
    while received.len() < 400 {
        if sent < 100 {
            other.write_all(&sent.to_le_bytes()).unwrap();
            sent += 1;
        }
        collect(&reactor);
        let read = registration.poll_io(&mut cx, Direction::Read, || (&one).read(&mut buffer));
        if let Poll::Ready(count) = read {
            received.extend(&buffer[..count.unwrap()]);
        }
    }
    let expected: Vec<u8> = (0..100_u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(received, expected);
}

#[test]
fn late_event_of_a_closed_source_wakes_nobody() {
    let reactor = Arc::new(Reactor::<Faulty>::open().unwrap());
    let (one, _other) = pair();
    let first =
        Registration::new(&reactor, one.as_raw_fd(), Ready::EMPTY, Removal::ByClose).unwrap();
    collect(&reactor); // The faulty kernel holds the event back.
    drop(first);
    drop(one);
    let (two, _other) = pair();
    let second =
        Registration::new(&reactor, two.as_raw_fd(), Ready::EMPTY, Removal::ByClose).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(second.poll_ready(&mut cx, Direction::Write).is_pending());
    let mut out = VecDeque::new();
    let held = std::mem::take(&mut *reactor.sys().late.lock());
    for (token, ready) in held {
        let token = SourceId::from_bits(token);
        reactor
            .slab()
            .get(token.index)
            .dispatch(token.generation, ready, &mut out);
    }
    assert!(out.is_empty() && second.snapshot().ready().is_empty());
    collect(&reactor);
    assert_eq!(collect(&reactor), 1, "the second source's own event");
}

#[test]
fn would_block_after_ready_waits_for_the_next_event() {
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let (one, mut other) = pair();
    let fd = one.as_raw_fd();
    let registration =
        Registration::new(&reactor, fd, Ready::READABLE, Removal::Deregister).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut calls = 0;
    let mut read = || {
        registration.poll_io(&mut cx, Direction::Read, || {
            calls += 1;
            (&one).read(&mut [0; 8])
        })
    };
    assert!(read().is_pending());
    assert!(read().is_pending());
    other.write_all(b"abc").unwrap();
    assert_eq!(collect(&reactor), 1);
    assert!(matches!(read(), Poll::Ready(Ok(3))));
    assert!(read().is_pending());
    assert_eq!(
        calls, 3,
        "the operation runs once at the start, and once after each event"
    );
}

#[test]
fn interrupted_operation_is_tried_again() {
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let (one, _other) = pair();
    let fd = one.as_raw_fd();
    let registration =
        Registration::new(&reactor, fd, Ready::WRITABLE, Removal::Deregister).unwrap();
    let interruptions = Cell::new(0);
    let mut op = || {
        if interruptions.get() > 0 {
            interruptions.set(interruptions.get() - 1);
            return Err(io::ErrorKind::Interrupted.into());
        }
        (&one).write(b"x")
    };
    let mut cx = Context::from_waker(Waker::noop());
    interruptions.set(3);
    let written = registration.poll_io(&mut cx, Direction::Write, &mut op);
    assert!(matches!(written, Poll::Ready(Ok(1))));
    interruptions.set(3);
    let written = pin!(registration.io(Interest::WRITABLE, &mut op)).poll(&mut cx);
    assert!(matches!(written, Poll::Ready(Ok(1))));
    interruptions.set(3);
    let moved = || op().map(|count| Moved::of(count, 1));
    let written = registration.poll_moved(&mut cx, Direction::Write, moved);
    assert!(matches!(written, Poll::Ready(Ok(1))));
    assert_eq!(
        registration.try_io(Interest::WRITABLE, || Ok(7)).unwrap(),
        7
    );
}

#[cfg(not(selvedge_polling))]
#[test]
fn short_transfer_waits_without_asking_again() {
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let (one, _other) = pair();
    let fd = one.as_raw_fd();
    let registration =
        Registration::new(&reactor, fd, Ready::READABLE, Removal::Deregister).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut calls = 0;
    let mut op = || {
        calls += 1;
        Ok(3)
    };
    let read = registration.poll_transfer(&mut cx, Direction::Read, 8, &mut op);
    assert!(matches!(read, Poll::Ready(Ok(3))));
    let read = registration.poll_transfer(&mut cx, Direction::Read, 8, &mut op);
    assert!(read.is_pending());
    assert_eq!(calls, 1);
}

#[test]
fn operations_are_charged_and_end_with_the_budget() {
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let (one, _other) = pair();
    let fd = one.as_raw_fd();
    let registration =
        Registration::new(&reactor, fd, Ready::WRITABLE, Removal::Deregister).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut done = 0;
    // Each operation is charged 4. The third one gets the 1 that is left of the budget.
    coop_budget::Scope::new(coop_budget::Budget::new(9)).run(|| {
        while registration
            .poll_io(&mut cx, Direction::Write, || Ok(()))
            .is_ready()
        {
            done += 1;
        }
    });
    assert_eq!(done, 3);
}

#[test]
fn forgotten_wait_keeps_the_rest_usable() {
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let (one, _other) = pair();
    let fd = one.as_raw_fd();
    let registration = Registration::new(&reactor, fd, Ready::EMPTY, Removal::Deregister).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut forgotten = registration.wait(Interest::WRITABLE);
    assert!(forgotten.poll_ready(&mut cx).is_pending());
    std::mem::forget(forgotten);
    let mut wait = registration.wait(Interest::WRITABLE);
    assert!(wait.poll_ready(&mut cx).is_pending());
    assert_eq!(collect(&reactor), 2);
    assert!(wait.poll_ready(&mut cx).is_ready());
    drop(wait);
    drop(registration);
    assert_eq!(reactor.registered(), 0);
}

#[test]
fn failed_registration_leaves_no_slot_occupied() {
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let fd = file.as_raw_fd();
    Registration::new(&reactor, fd, Ready::EMPTY, Removal::Deregister).unwrap_err();
    assert_eq!(reactor.registered(), 0);
}

/// Fails if a registration is not refused while another one owns its number. Also fails if one that
/// has ended, and whose entry is left over, keeps the number.
#[cfg(not(selvedge_polling))]
#[test]
fn number_in_use_is_refused_until_its_registration_ends() {
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let (one, mut other) = pair();
    let register = |removal| Registration::new(&reactor, one.as_raw_fd(), Ready::EMPTY, removal);
    let all = [
        Removal::DeregisterIfOwner,
        Removal::Deregister,
        Removal::ByClose,
    ];
    let mut cx = Context::from_waker(Waker::noop());
    for first in all {
        let first = register(first).unwrap();
        for second in all {
            let refused = register(second).map(drop).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(reactor.registered(), 1);
        }
        assert!(first.poll_ready(&mut cx, Direction::Read).is_pending());
        other.write_all(b"a").unwrap();
        collect(&reactor);
        assert!(first.poll_ready(&mut cx, Direction::Read).is_ready());
        (&one).read_exact(&mut [0]).unwrap();
        // After the last round an entry is left over, as the descriptor stays open.
        drop(first);
        assert_eq!(reactor.registered(), 0);
    }
    for next in all {
        drop(register(Removal::ByClose).unwrap());
        let next = register(next).unwrap();
        collect(&reactor);
        assert!(next.poll_ready(&mut cx, Direction::Write).is_ready());
    }
}

/// The kernel's calls for an `AsyncFd` sleep. Fails if a socket cannot be registered and dropped
/// meanwhile.
#[test]
fn sleeping_call_for_a_checked_entry_delays_no_socket() {
    let reactor = Arc::new(Reactor::<Slow>::open().unwrap());
    let ((one, _peer), (socket, _other)) = (pair(), pair());
    let register = |fd, removal| Registration::new(&reactor, fd, Ready::EMPTY, removal);
    let (asleep, fell_asleep) = mpsc::channel();
    let (waker, wake) = mpsc::channel();
    let fd = one.as_raw_fd();
    // An entry is left over, so that the registration replaces it. The drop of the registration
    // deletes the entry.
    reactor.sys().register(fd, 1).unwrap();
    let wake = Mutex::new(wake);
    let sleeper = Sleeper { fd, asleep, wake };
    assert!(reactor.sys().sleeper.set(sleeper).is_ok());
    thread::scope(|scope| {
        let checked = scope.spawn(|| drop(register(fd, Removal::DeregisterIfOwner).unwrap()));
        for _ in ["register", "replace", "deregister"] {
            fell_asleep.recv_timeout(LIMIT).unwrap();
            drop(register(socket.as_raw_fd(), Removal::Deregister).unwrap());
            waker.send(()).unwrap();
        }
        checked.join().unwrap();
    });
}

/// A checked registration is refused. Fails if the owner of the number then leaves its entry, or if
/// the number has no owner.
#[test]
fn refused_registration_leaves_the_owner_in_place() {
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let (one, _other) = pair();
    let fd = one.as_raw_fd();
    let register = || Registration::new(&reactor, fd, Ready::EMPTY, Removal::DeregisterIfOwner);
    let first = register().unwrap();
    for _ in 0..2 {
        let refused = register().map(drop).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    }
    drop(first);
    let left = reactor.sys().deregister(fd, 0);
    left.expect_err("the first registration has left its entry");
}

/// Fails if an id is the address of the reactor, which a later reactor may have.
#[test]
fn registrations_of_two_reactors_in_turn_have_two_ids() {
    let (one, _other) = pair();
    let id = || {
        let reactor = Arc::new(Reactor::<Os>::open().unwrap());
        let registered =
            Registration::new(&reactor, one.as_raw_fd(), Ready::EMPTY, Removal::Deregister)
                .unwrap();
        registered.id()
    };
    let ids: Vec<_> = (0..16).map(|_| id()).collect();
    for (n, id) in ids.iter().enumerate() {
        assert!(!ids[..n].contains(id));
    }
}

/// The last waker of an `AsyncFd` owns another `AsyncFd`. Fails if the waker is dropped under a
/// lock that the drop of the other `AsyncFd` takes.
#[test]
fn drop_of_a_waker_that_owns_a_registration_ends() {
    struct Owner(#[allow(dead_code, reason = "it is dropped")] Registration<Os>);
    impl Wake for Owner {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    let reactor = Arc::new(Reactor::<Os>::open().unwrap());
    let ((one, _peer), (two, _other)) = (pair(), pair());
    let register =
        |fd| Registration::new(&reactor, fd, Ready::EMPTY, Removal::DeregisterIfOwner).unwrap();
    let (first, second) = (register(one.as_raw_fd()), register(two.as_raw_fd()));
    let waker = Waker::from(std::sync::Arc::new(Owner(second)));
    let mut cx = Context::from_waker(&waker);
    assert!(first.poll_ready(&mut cx, Direction::Read).is_pending());
    drop(waker);
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        drop(first);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(LIMIT).unwrap();
    assert_eq!(reactor.registered(), 0);
}
