//! Models of operations against a kernel whose events come late, twice and without cause.
//!
//! A source's data is a count of bytes that the test sets. The model's kernel only announces the
//! bytes.
use super::*;
use crate::{
    Interest,
    registration::{Registration, Removal},
    slot::Direction,
    sys::kernel::Kernel,
};
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
    model, model_must_fail,
    sync::Arc,
    thread,
};

mod one_shot;

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
        self.try_register(Removal::Deregister).unwrap()
    }

    fn try_register(&self, removal: Removal) -> io::Result<Registration<Kernel>> {
        Registration::new(&self.reactor, FD, Ready::EMPTY, removal)
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

fn new_flag() -> (Arc<Flag>, Waker) {
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
        let (flag, waker) = new_flag();
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
        let (flag, waker) = new_flag();
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
        let (flag, waker) = new_flag();
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
        let (flag, waker) = new_flag();
        let mut cx = Context::from_waker(&waker);
        let read = registration.poll_io(&mut cx, Direction::Read, || source.read());
        closer.join().unwrap();
        match read {
            Poll::Pending => assert!(flag.0.load(SeqCst), "nobody woke the reader"),
            Poll::Ready(done) => assert!(done.is_err()),
        }
        source.try_register(Removal::Deregister).unwrap_err();
    });
}

/// Asserts that an event of the source reaches this registration.
fn assert_has_the_entry(source: &Source, registration: &Registration<Kernel>) {
    source.arrive(1);
    source.collect();
    let ready = registration.snapshot().is_ready_for(Interest::READABLE);
    assert!(ready, "no event reaches the registration");
}

/// The descriptor of a registration is closed, and its number passes on to another source, while
/// the registration is dropped. Fails if the drop ends the other source's registration.
fn number_that_passes_on(first_removal: Removal, second_removal: Removal) {
    let source = Source::new();
    let first = source.try_register(first_removal).unwrap();
    source.reactor.sys().close(FD);
    let dropper = thread::spawn(move || drop(first));
    let second = source.try_register(second_removal).unwrap();
    dropper.join().unwrap();
    assert_has_the_entry(&source, &second);
}

#[test]
fn drop_racing_the_next_owner_of_a_number_leaves_its_entry() {
    model(|| number_that_passes_on(Removal::DeregisterIfOwner, Removal::ByClose));
}

#[test]
fn drop_racing_the_next_async_fd_leaves_its_entry() {
    model(|| number_that_passes_on(Removal::DeregisterIfOwner, Removal::DeregisterIfOwner));
}

/// The same with a drop that does not look whose the number is.
#[test]
fn unchecked_drop_ends_the_next_owners_registration() {
    model_must_fail("no event reaches", || {
        number_that_passes_on(Removal::Deregister, Removal::ByClose);
    });
}

/// A socket is registered while a checked registration of the same open number is made. One of them
/// is refused, and the other one has the kernel's entry. An earlier registration may have left an
/// entry.
fn number_that_two_register(is_left_over: bool) {
    let source = Source::new();
    if is_left_over {
        drop(source.try_register(Removal::ByClose).unwrap());
    }
    let other = {
        let source = source.clone();
        thread::spawn(move || source.try_register(Removal::ByClose))
    };
    let checked = source.try_register(Removal::DeregisterIfOwner);
    let socket = other.join().unwrap();
    match (&checked, &socket) {
        (Ok(one), Err(refused)) | (Err(refused), Ok(one)) => {
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_has_the_entry(&source, one);
        }
        _ => panic!("one registration of two"),
    }
}

/// Fails if one of the two replaces the entry of the other.
#[test]
fn two_registrations_of_a_number_make_one() {
    model(|| number_that_two_register(false));
}

/// Fails if the socket replaces the entry that a checked registration has taken over.
#[test]
fn two_registrations_of_a_leftover_number_make_one() {
    model(|| number_that_two_register(true));
}

/// A checked registration is made while another one of the same open number is made and dropped. If
/// the first one succeeds, it owns the number. Fails if a later registration is not refused.
#[test]
fn checked_registration_racing_another_one_is_the_owner() {
    model(|| {
        let source = Source::new();
        let other = {
            let source = source.clone();
            thread::spawn(move || drop(source.try_register(Removal::DeregisterIfOwner)))
        };
        let first = source.try_register(Removal::DeregisterIfOwner);
        other.join().unwrap();
        if let Ok(first) = first {
            source.try_register(Removal::DeregisterIfOwner).unwrap_err();
            assert_has_the_entry(&source, &first);
        }
    });
}
