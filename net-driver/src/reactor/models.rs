//! Models of operations against a kernel whose events come late, twice and without cause.
//!
//! A source's data is a count of bytes that the test sets. The model's kernel only announces the
//! bytes.
use super::*;
use crate::{Interest, slot::Direction, sys::kernel::Kernel};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Wake},
};
use sync_shim::{
    Model,
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    model, model_must_fail, thread,
};

const FD: Fd = 3;

struct Source {
    reactor: Arc<Reactor<Kernel>>,
    bytes: AtomicUsize,
    is_closed: AtomicBool,
}

impl Source {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            reactor: Arc::new(Reactor::open().unwrap()),
            bytes: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        })
    }

    fn register(&self) -> Registration<Kernel> {
        Reactor::register(&self.reactor, FD, Ready::EMPTY, Removal::Call).unwrap()
    }

    fn arrive(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.reactor.sys().event(FD, Ready::READABLE);
    }

    /// The peer hangs up after its last byte. One event announces both.
    fn hang_up(&self) {
        self.bytes.fetch_add(1, Relaxed);
        self.is_closed.store(true, Relaxed);
        let event = Ready::READABLE | Ready::READ_CLOSED;
        self.reactor.sys().event(FD, event);
    }

    /// Reads as a user's operation may: says "would block" after a byte that is not the end.
    fn read_to_end(&self) -> io::Result<()> {
        match self.read() {
            Err(_) if self.is_closed.load(Relaxed) => Ok(()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn collect(&self) {
        let mut out = VecDeque::new();
        self.reactor
            .collect(Some(Duration::ZERO), 64, &mut out)
            .unwrap();
        out.into_iter().for_each(Waker::wake);
    }

    fn read(&self) -> io::Result<()> {
        let bytes = self.bytes.load(Relaxed);
        if bytes == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.bytes.fetch_sub(1, Relaxed);
        Ok(())
    }
}

/// A waker whose wakes a model sees.
struct Flag(AtomicBool);

struct FlagWaker(Arc<Flag>);

impl Wake for FlagWaker {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.0.store(true, SeqCst);
    }
}

fn flag() -> (Arc<Flag>, Waker) {
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    let waker = Waker::from(std::sync::Arc::new(FlagWaker(flag.clone())));
    (flag, waker)
}

/// A byte arrives, and the poller hands over its event, while a task reads. The task reads the
/// byte, or it waits and is woken.
#[test]
fn byte_racing_a_read_is_read_or_wakes_it() {
    model(|| {
        let source = Source::new();
        let registration = source.register();
        let poller = {
            let source = source.clone();
            thread::spawn(move || {
                source.arrive(1);
                source.collect();
            })
        };
        let (flag, waker) = flag();
        let mut cx = Context::from_waker(&waker);
        let read = registration.poll_io(&mut cx, Direction::Read, || source.read());
        poller.join().unwrap();
        if read.is_pending() {
            assert!(flag.0.load(SeqCst), "nobody woke the reader");
            let read = registration.poll_io(&mut cx, Direction::Read, || source.read());
            assert!(read.is_ready());
        }
    });
}

/// The kernel reports one event for which there is no byte, and then the event of a byte twice. The
/// task reads the byte, or it waits and is woken.
#[test]
fn spurious_events_racing_a_wait_lose_no_byte() {
    Model::new().bound(3).check(|| {
        let source = Source::new();
        let registration = source.register();
        source.reactor.sys().event(FD, Ready::READABLE);
        let poller = {
            let source = source.clone();
            thread::spawn(move || {
                source.collect();
                source.arrive(1);
                source.reactor.sys().event(FD, Ready::READABLE);
                source.collect();
            })
        };
        let (flag, waker) = flag();
        let mut cx = Context::from_waker(&waker);
        let mut read = registration.poll_io(&mut cx, Direction::Read, || source.read());
        poller.join().unwrap();
        if read.is_pending() {
            assert!(flag.0.load(SeqCst), "nobody woke the reader");
            read = registration.poll_io(&mut cx, Direction::Read, || source.read());
        }
        assert!(matches!(read, Poll::Ready(Ok(()))));
    });
}

/// A source is removed, and another one takes its slot and its number, while the poller holds an
/// event of the first source. The event does not touch the second source.
#[test]
fn reuse_racing_an_event_in_hand_is_not_touched() {
    model(|| {
        let source = Source::new();
        let first = source.register();
        source.reactor.sys().event(FD, Ready::READABLE);
        let poller = {
            let source = source.clone();
            thread::spawn(move || source.collect())
        };
        drop(first);
        let second = source.register();
        poller.join().unwrap();
        assert!(!second.snapshot().is_ready_for(Interest::READABLE));
    });
}

/// A peer sends half of a message, and hangs up, while a user's operation reads. The operation is
/// called until it finds the end. Fails if it waits after the hang-up, or is not woken after its
/// "would block".
#[test]
fn hang_up_racing_a_users_operation_lets_it_find_the_end() {
    model(|| {
        let source = Source::new();
        let registration = source.register();
        let poller = {
            let source = source.clone();
            thread::spawn(move || {
                source.hang_up();
                source.collect();
            })
        };
        let (flag, waker) = flag();
        let mut cx = Context::from_waker(&waker);
        let op = || source.read_to_end();
        let mut read = pin!(registration.async_io(Interest::READABLE, op));
        let mut polled = read.as_mut().poll(&mut cx);
        poller.join().unwrap();
        for _ in 0..2 {
            if polled.is_pending() {
                assert!(flag.0.swap(false, SeqCst), "nobody woke the reader");
                polled = read.as_mut().poll(&mut cx);
            }
        }
        assert!(matches!(polled, Poll::Ready(Ok(()))));
    });
}

/// The driver shuts down while a task reads. The read ends with an error, or the task waits and is
/// woken.
#[test]
fn shutdown_racing_a_read_ends_it() {
    model(|| {
        let source = Source::new();
        let registration = source.register();
        let closer = {
            let source = source.clone();
            thread::spawn(move || {
                let mut out = VecDeque::new();
                source.reactor.shut_down(&mut out);
                out.into_iter().for_each(Waker::wake);
            })
        };
        let (flag, waker) = flag();
        let mut cx = Context::from_waker(&waker);
        let read = registration.poll_io(&mut cx, Direction::Read, || source.read());
        closer.join().unwrap();
        match read {
            Poll::Pending => assert!(flag.0.load(SeqCst), "nobody woke the reader"),
            Poll::Ready(done) => assert!(done.is_err()),
        }
        Reactor::register(&source.reactor, FD, Ready::EMPTY, Removal::Call).unwrap_err();
    });
}

/// The descriptor of a registration is closed, and its number passes on to another source, while
/// the registration is dropped. Fails if the drop ends the other source's registration.
fn number_that_passes_on(first: Removal, second: Removal) {
    let source = Source::new();
    let register = |removal| {
        let ready = Ready::EMPTY;
        Reactor::register(&source.reactor, FD, ready, removal).unwrap()
    };
    let first = register(first);
    source.reactor.sys().close(FD);
    let dropper = thread::spawn(move || drop(first));
    let second = register(second);
    dropper.join().unwrap();
    source.arrive(1);
    source.collect();
    let ready = second.snapshot().is_ready_for(Interest::READABLE);
    assert!(ready, "the other source has no registration");
}

#[test]
fn drop_racing_the_next_owner_of_a_number_leaves_its_entry() {
    model(|| number_that_passes_on(Removal::CheckedCall, Removal::Close));
}

#[test]
fn drop_racing_the_next_async_fd_leaves_its_entry() {
    model(|| number_that_passes_on(Removal::CheckedCall, Removal::CheckedCall));
}

/// The same with a drop that does not look whose the number is.
#[test]
fn unchecked_drop_ends_the_next_owners_registration() {
    model_must_fail("has no registration", || {
        number_that_passes_on(Removal::Call, Removal::Close);
    });
}
