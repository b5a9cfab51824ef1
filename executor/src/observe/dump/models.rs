//! The request of a dump, for a [listed future](crate::observe::listed_future): any poll may take
//! it.
use super::request::Answers;
use crate::{
    groups::GroupRef,
    observe::task_list::{Entry, WaitingFuture, Woken},
};
use std::{
    panic::Location,
    sync::Arc as StdArc,
    task::{Wake, Waker},
};
use sync_shim::{
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    model, model_must_fail,
    sync::Arc,
    thread,
};

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: StdArc<Self>) {
        self.0.store(true, Release);
    }
}

/// A future that waits. An earlier poll had another waker, whose task polls it no more.
struct Future {
    entry: Arc<Entry>,
    waiting: Arc<WaitingFuture>,
    flag: StdArc<Flag>,
    waker: Waker,
}

impl Future {
    fn new() -> Self {
        let flag = StdArc::new(Flag(AtomicBool::new(false)));
        let waker = Waker::from(flag.clone());
        let waiting = Arc::new(WaitingFuture::new(true));
        waiting.keep(Waker::noop());
        let entry = Entry::new(None, Location::caller(), GroupRef::of_nobody());
        Self {
            entry: Arc::new(entry),
            waiting,
            flag,
            waker,
        }
    }

    /// Polls the future during a dump, in the order of `ListedFuture::poll`. Returns whether the
    /// poll has taken the request.
    ///
    /// Fails if `end_dump` clears `is_asked` also where a request has come meanwhile.
    fn poll(&self) -> bool {
        self.waiting.keep(&self.waker);
        let request = self.entry.take_request();
        let before = self.entry.begin_dump();
        self.entry.end_dump(&before, false);
        request.is_some()
    }

    fn is_woken(&self) -> bool {
        self.flag.0.load(Acquire)
    }
}

/// Starts the thread of a dump that asks the future.
fn ask(future: &Future) -> thread::JoinHandle<()> {
    let (entry, waiting) = (future.entry.clone(), future.waiting.clone());
    thread::spawn(move || {
        let answers = Answers::new();
        drop(entry.ask(Answers::request(&answers, 0)));
        drop(Woken::Future(waiting));
    })
}

/// A dump asks beside a poll, which this function makes. Fails if the poll has missed the request,
/// and the wake for it comes to nobody.
fn poll_beside(poll: fn(&Future) -> bool) {
    let future = Future::new();
    let dump = ask(&future);
    let has_taken = poll(&future);
    dump.join().unwrap();
    let has_taken = has_taken || (future.is_woken() && future.poll());
    assert!(has_taken, "the request is lost");
}

#[test]
fn request_beside_a_poll_is_taken_by_it_or_by_the_next() {
    model(|| poll_beside(Future::poll));
}

#[test]
fn poll_that_keeps_its_waker_last_loses_the_request() {
    model_must_fail("the request is lost", || {
        poll_beside(|future| {
            let request = future.entry.take_request();
            future.waiting.keep(&future.waker);
            request.is_some()
        });
    });
}

#[test]
fn request_after_the_wake_is_missed() {
    model_must_fail("the request is lost", || {
        let future = Future::new();
        future.poll();
        let dump = {
            let (entry, waiting) = (future.entry.clone(), future.waiting.clone());
            thread::spawn(move || {
                drop(Woken::Future(waiting));
                let answers = Answers::new();
                drop(entry.ask(Answers::request(&answers, 0)));
            })
        };
        let has_missed = future.is_woken() && !future.poll();
        dump.join().unwrap();
        assert!(!has_missed, "the request is lost");
    });
}

/// Fails if the wake does not order the request before the poll for it.
#[test]
fn poll_for_the_wake_finds_the_request() {
    model(|| {
        let future = Future::new();
        future.poll();
        let dump = ask(&future);
        if future.is_woken() {
            assert!(future.poll(), "the request is lost");
        }
        dump.join().unwrap();
    });
}
