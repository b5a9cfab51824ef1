//! Models of operations against a one-shot kernel (rule 5 of `sys.rs`).
//!
//! A source's data is a count of bytes to read, and one of bytes for which there is room. An event
//! disarms the source in both directions. It comes at an arming, too, if a direction is ready.
use super::*;
use std::mem;
use sync_shim::sync::Mutex;

/// A kernel with one source. Unless `IS_LOCKED`, an arming reads the readiness before it takes the
/// lock.
struct OneShot<const IS_LOCKED: bool>(Mutex<State>);

#[derive(Default)]
struct State {
    token: Option<u64>,
    armed: Ready,
    bytes: usize,
    room: usize,
    refuses: bool,
    events: VecDeque<(u64, Ready)>,
}

impl State {
    /// Makes an event if a direction is armed and ready, and disarms both.
    fn fire(&mut self) {
        let mut ready = Ready::EMPTY;
        if self.bytes > 0 && self.armed.is_readable() {
            ready |= Ready::READABLE;
        }
        if self.room > 0 && self.armed.is_writable() {
            ready |= Ready::WRITABLE;
        }
        if let Some(token) = self.token.filter(|_| !ready.is_empty()) {
            self.armed = Ready::EMPTY;
            self.events.push_back((token, ready));
        }
    }
}

impl<const IS_LOCKED: bool> OneShot<IS_LOCKED> {
    /// A byte arrives, and there is room for one.
    fn arrive(&self, bytes: usize, room: usize) {
        let mut state = self.0.lock();
        state.bytes += bytes;
        state.room += room;
        state.fire();
    }

    fn read(&self) -> io::Result<()> {
        take(&mut self.0.lock().bytes)
    }

    fn write(&self) -> io::Result<()> {
        take(&mut self.0.lock().room)
    }
}

fn take(from: &mut usize) -> io::Result<()> {
    *from = from.checked_sub(1).ok_or(io::ErrorKind::WouldBlock)?;
    Ok(())
}

impl<const IS_LOCKED: bool> Sys for OneShot<IS_LOCKED> {
    const CLOSE_DEREGISTERS: bool = false;
    const REPORTS_CLOSE: bool = false;
    const ONE_SHOT: bool = true;

    fn open() -> io::Result<Self> {
        Ok(Self(Mutex::new(State::default())))
    }

    fn register(&self, _: Fd, token: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        state.token = Some(token);
        state.armed = Ready::READABLE | Ready::WRITABLE;
        state.fire();
        Ok(())
    }

    fn replace(&self, _: Fd, _: u64) -> io::Result<()> {
        unreachable!("there is one registration")
    }

    fn deregister(&self, _: Fd, token: u64) -> io::Result<()> {
        self.0.lock().token.take_if(|of| *of == token);
        Ok(())
    }

    fn arm(&self, token: u64, wanted: impl FnOnce() -> Ready) -> io::Result<()> {
        let (state, wanted) = if IS_LOCKED {
            let state = self.0.lock();
            (state, wanted())
        } else {
            let wanted = wanted();
            (self.0.lock(), wanted)
        };
        let mut state = state;
        if state.refuses {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if state.token == Some(token) {
            state.armed = wanted;
            state.fire();
        }
        Ok(())
    }

    fn wait(
        &self,
        _: Option<Duration>,
        _: usize,
        mut on_event: impl FnMut(u64, Ready),
    ) -> io::Result<bool> {
        let events = mem::take(&mut self.0.lock().events);
        for (token, ready) in events {
            on_event(token, ready);
        }
        Ok(false)
    }

    fn wake(&self) {}
}

fn collect<S: Sys>(reactor: &Reactor<S>) {
    let mut out = VecDeque::new();
    reactor.collect(Some(Duration::ZERO), 64, &mut out).unwrap();
    out.into_iter().for_each(Waker::wake);
}

/// A task that reads or writes once.
struct Task<const IS_LOCKED: bool> {
    registration: Arc<Registration<OneShot<IS_LOCKED>>>,
    direction: Direction,
    flag: Arc<Flag>,
    waker: Waker,
}

impl<const IS_LOCKED: bool> Task<IS_LOCKED> {
    fn new(registration: &Arc<Registration<OneShot<IS_LOCKED>>>, direction: Direction) -> Self {
        let (flag, waker) = new_flag();
        Self {
            registration: registration.clone(),
            direction,
            flag,
            waker,
        }
    }

    fn poll(&self) -> Poll<io::Result<()>> {
        let kernel = self.registration.reactor().sys();
        let op = || match self.direction {
            Direction::Read => kernel.read(),
            Direction::Write => kernel.write(),
        };
        let mut cx = Context::from_waker(&self.waker);
        self.registration.poll_io(&mut cx, self.direction, op)
    }

    /// Polls again if the first poll has not done it: then the task was woken.
    fn finish(&self, first: Poll<io::Result<()>>) {
        if first.is_pending() {
            assert!(self.flag.0.load(SeqCst), "nobody woke the task");
            assert!(self.poll().is_ready());
        }
    }
}

/// The source is ready in neither direction, but the registration assumes that it is.
fn new_source<const IS_LOCKED: bool>() -> Arc<Registration<OneShot<IS_LOCKED>>> {
    let reactor = Arc::new(Reactor::open().unwrap());
    let ready = Ready::READABLE | Ready::WRITABLE;
    Arc::new(Registration::new(&reactor, FD, ready, Removal::Deregister).unwrap())
}

/// A byte arrives, and the poller hands over its event, while a task reads. The task reads the
/// byte, or it waits and is woken.
#[test]
fn byte_racing_a_one_shot_read_is_read_or_wakes_it() {
    model(|| {
        let source = new_source::<true>();
        let poller = {
            let reactor = source.reactor().clone();
            thread::spawn(move || {
                reactor.sys().arrive(1, 0);
                collect(&reactor);
            })
        };
        let task = Task::new(&source, Direction::Read);
        let first = task.poll();
        poller.join().unwrap();
        collect(source.reactor());
        task.finish(first);
    });
}

/// A task reads, and another one writes. Then there is room, and perhaps a byte. Each of the three
/// threads arms the source. Each task whose direction is ready gets its turn.
fn two_directions<const IS_LOCKED: bool>(bytes: usize) {
    let source = new_source::<IS_LOCKED>();
    let writer = Task::new(&source, Direction::Write);
    let writer = thread::spawn(move || {
        let first = writer.poll();
        (writer, first)
    });
    let reader = Task::new(&source, Direction::Read);
    let first_read = reader.poll();
    source.reactor().sys().arrive(bytes, 1);
    collect(source.reactor());
    let (writer, first_write) = writer.join().unwrap();
    // One event may have come before the writer's arming.
    collect(source.reactor());
    writer.finish(first_write);
    if bytes > 0 {
        reader.finish(first_read);
    }
}

#[test]
fn directions_that_wait_at_once_are_both_woken() {
    Model::new().bound(3).check(|| two_directions::<true>(1));
}

#[test]
fn one_of_two_directions_that_wait_is_woken() {
    Model::new().bound(3).check(|| two_directions::<true>(0));
}

/// The readiness is read before the lock is taken: the arming of one direction undoes that of the
/// other one.
#[test]
fn arming_with_a_readiness_read_before_the_lock_fails() {
    let broken = || two_directions::<false>(0);
    Model::new()
        .bound(3)
        .must_fail("nobody woke the task", broken);
}

/// The registration ends while its event is delivered. Nothing is armed for it afterwards.
#[test]
fn end_racing_an_event_leaves_nothing_armed() {
    model(|| {
        let source = new_source::<true>();
        let reactor = source.reactor().clone();
        let poller = {
            let reactor = reactor.clone();
            thread::spawn(move || {
                reactor.sys().arrive(1, 0);
                collect(&reactor);
            })
        };
        drop(source);
        poller.join().unwrap();
        collect(&reactor);
        let mut state = reactor.sys().0.lock();
        state.room += 1;
        state.fire();
        assert!(state.events.is_empty(), "an event without a source");
    });
}

/// An operation that has to wait gets the error of a refused arming, and the other tasks that wait
/// are woken: no event would come.
#[test]
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
fn refused_arming_fails_the_operation_and_wakes_others() {
    let source = new_source::<true>();
    let [reader, writer] = [Direction::Read, Direction::Write].map(|of| Task::new(&source, of));
    assert!(writer.poll().is_pending());
    source.reactor().sys().0.lock().refuses = true;
    assert!(matches!(reader.poll(), Poll::Ready(Err(_))));
    assert!(writer.flag.0.load(SeqCst), "nobody woke the writer");
    assert!(matches!(writer.poll(), Poll::Ready(Err(_))));
}
