//! Models of every pair of events on a task. In the first event, another thread uses a waker: it
//! wakes the task by value or by reference, or clones or drops the waker. In the second event, the
//! owner runs the task: the run ends with `Pending`, `Ready` or a panic, or goes on from one poll
//! to the next. Before or after the use of the waker, the task is aborted, awaited, detached or
//! shut down.
//!
//! In further pairs, the owner does not run the task beside the other thread: the task is idle, or
//! is queued in a run that goes on. The owner then aborts, awaits, detaches or shuts down the task,
//! or drops the queued task.
//!
//! These are 164 models of one thread beside the owner. They have no bound, except that the models
//! in which the thread races a run that goes on have a bound of 2. In further models
//! (`full_..._meanwhile`), the waker and the join handle are on threads of their own. These models
//! have a bound of 3, except that nine with an abort have none.
//!
//! At the start the task has been polled once and is listed. Unless it is idle, it is queued again,
//! and the owner runs it. When all threads have ended, the owner shuts its list down. Each model
//! asserts:
//!
//! - one thread at a time polls the future (its body is an `UnsafeCell` that the model watches),
//!   and the future and its output are dropped once each;
//! - the task is not submitted while it is queued (the queue has room for one);
//! - after each wake a poll sees the earlier writes of the thread that woke the task, unless the
//!   task was cancelled;
//! - a join handle that got `Pending` is woken, and finds the task's outcome;
//! - the cell is freed once, and no thread touches it after that: a free first touches all of it.
//!
//! A model fails if a run that goes on clears NOTIFIED with Relaxed, or polls as if the task had
//! not been woken. All models pass if a run that goes on ignores an abort, because its next poll is
//! ready here.
//!
//! The queue and the book use std's locks and atomics, on which the model does not branch: all that
//! a thread does between two accesses to the task is one step. The model does not take these locks
//! and atomics for synchronisation either, so only the task's word orders the accesses to the task.
use crate::{AfterPoll, JoinError, JoinHandle, Notified, Owned, Ran, Schedule, WakeKind};
use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicUsize as Count, Ordering::Relaxed as InTurn},
    task::{Context, Poll, Waker},
};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    cell::UnsafeCell,
    conformance::Unseen,
    thread,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wakes {
    ByValue,
    ByRef,
    Clones,
    Drops,
}

impl Wakes {
    fn is_wake(self) -> bool {
        matches!(self, Self::ByValue | Self::ByRef)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Polls {
    Pending,
    Ready,
    Panics,
    /// The run goes on after its first poll, and the future is ready in a later one.
    GoesOn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Abort,
    Join,
    Leave,
    Shutdown,
    /// The queued task is dropped.
    Drop,
}

/// The time at which the task is aborted, awaited, detached or shut down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// On the waker's thread, before it uses the waker. A shutdown happens before the run.
    Before,
    /// On the waker's thread, after it has used the waker.
    After,
    /// On a thread other than the waker's.
    Meanwhile,
    /// On the owner, which does not run the task meanwhile.
    Idle,
}

/// The record of what happened.
#[derive(Default)]
struct Book {
    futures: Count,
    outputs_made: Count,
    outputs_dropped: Count,
    /// Whether a poll saw the write before the wake.
    seen: Count,
    /// Whether the run goes on after the poll.
    again: Count,
    waker: Unseen<Option<Waker>>,
}

type Shared<T> = std::sync::Arc<T>;

struct Task {
    polls: Polls,
    flag: Shared<AtomicUsize>,
    book: Shared<Book>,
    body: UnsafeCell<u8>,
}

// SAFETY: the model checks the task protocol, which makes this true.
unsafe impl Send for Task {}

impl Future for Task {
    type Output = Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        let polls = self.body.with_mut(|body| {
            // SAFETY: only this poll has the future; the model checks that.
            let body = unsafe { &mut *body };
            *body += 1;
            *body
        });
        if polls == 1 {
            *self.book.waker.lock() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if polls == 2 && self.polls == Polls::GoesOn {
            self.book.again.store(1, InTurn);
            return Poll::Pending;
        }
        // Ordering: Relaxed, so that only the task's word orders this load after the store in
        // `wake`.
        if self.flag.load(Relaxed) == 0 {
            return Poll::Pending;
        }
        self.book.seen.store(1, InTurn);
        match self.polls {
            Polls::Pending => Poll::Pending,
            Polls::Ready | Polls::GoesOn => {
                self.book.outputs_made.fetch_add(1, InTurn);
                Poll::Ready(Output(self.book.clone()))
            }
            // Bypasses the panic hook, which would print the panic.
            Polls::Panics => std::panic::resume_unwind(Box::new("in a poll")),
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.body.with_mut(|_| ());
        self.book.futures.fetch_add(1, InTurn);
    }
}

struct Output(Shared<Book>);

impl Drop for Output {
    fn drop(&mut self) {
        self.0.outputs_dropped.fetch_add(1, InTurn);
    }
}

#[derive(Clone)]
struct Queue(Shared<Unseen<Option<Notified<Queue>>>>, Shared<Book>);

impl Schedule for Queue {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let queue = task.scheduler().clone();
        let before = queue.0.lock().replace(task);
        assert!(before.is_none(), "two `Notified` of one task");
    }
}

impl Queue {
    fn run_in(&self, owned: &mut Owned<Queue>) {
        while let Some(task) = self.pop() {
            self.run_once(task, owned);
        }
    }

    fn pop(&self) -> Option<Notified<Queue>> {
        self.0.lock().take()
    }

    fn run_once(&self, task: Notified<Queue>, owned: &mut Owned<Queue>) {
        let ran = task.run_with(|| AfterPoll {
            owned: Some(owned),
            again: self.1.again.swap(0, InTurn) == 1,
        });
        if let Ran::Notified(again) = ran {
            Queue::schedule(again, WakeKind::Wake);
        }
    }
}

/// A join waker that counts its wakes.
struct Woken(Shared<Count>);

impl std::task::Wake for Woken {
    fn wake(self: Shared<Self>) {
        self.0.fetch_add(1, InTurn);
    }
}

/// The join handle, until it has returned an output; that output; and the wakes of the join waker.
struct Joined {
    handle: Option<JoinHandle<Output>>,
    output: Option<Result<Output, JoinError>>,
    woken: Shared<Count>,
}

impl Joined {
    fn poll(&mut self) {
        let Some(handle) = &mut self.handle else {
            return;
        };
        let waker = Waker::from(Shared::new(Woken(self.woken.clone())));
        let mut cx = Context::from_waker(&waker);
        if let Poll::Ready(output) = Pin::new(handle).poll(&mut cx) {
            self.output = Some(output);
            self.handle = None;
        }
    }

    fn end(mut self, ends: Ends) -> Self {
        match ends {
            Ends::Abort => {
                if let Some(handle) = &self.handle {
                    handle.abort();
                }
            }
            Ends::Join => self.poll(),
            Ends::Leave => self.handle = None,
            Ends::Shutdown | Ends::Drop => {}
        }
        self
    }
}

/// Uses the waker, and returns the wakers to be dropped at the end.
fn wake(wakes: Wakes, flag: &AtomicUsize, waker: Waker) -> [Option<Waker>; 2] {
    if wakes.is_wake() {
        // Ordering: Relaxed, so that only the task's word orders this store before the load in
        // `poll`.
        flag.store(1, Relaxed);
    }
    match wakes {
        Wakes::ByValue => waker.wake(),
        Wakes::ByRef => {
            waker.wake_by_ref();
            return [Some(waker), None];
        }
        Wakes::Clones => return [Some(waker.clone()), Some(waker)],
        Wakes::Drops => drop(waker),
    }
    [None, None]
}

fn pair(wakes: Wakes, polls: Polls, ends: Ends, when: When) {
    let bounded = match (polls, when) {
        // Each of these models takes 700,000 executions, and seven million with a wake by
        // reference. A model with a wake by value, or with another end, would take more.
        (Polls::Pending | Polls::Ready | Polls::Panics, When::Meanwhile)
            if ends == Ends::Abort && wakes != Wakes::ByValue =>
        {
            Model::new()
        }
        (_, When::Meanwhile) => Model::new().bound(3),
        // These models have one more poll.
        (Polls::GoesOn, When::Before | When::After) => Model::new().bound(2),
        _ => Model::new(),
    };
    bounded.check(move || {
        let book = Shared::new(Book::default());
        let flag = Shared::new(AtomicUsize::new(0));
        let queue = Queue(Shared::default(), book.clone());
        let mut owned = Owned::new(Waker::noop().clone());
        let future = Task {
            polls,
            flag: flag.clone(),
            book: book.clone(),
            body: UnsafeCell::new(0),
        };
        let (task, handle) = crate::new(future, queue.clone());
        assert!(matches!(owned.run(task), Ran::Pending));
        let waker = book.waker.lock().take().unwrap();
        if !wakes.is_wake() {
            // Ordering: Relaxed; no other thread runs yet.
            flag.store(1, Relaxed);
        }
        if when != When::Idle || polls == Polls::GoesOn {
            waker.wake_by_ref();
        }
        if when == When::Idle {
            if let Some(task) = queue.pop() {
                queue.run_once(task, &mut owned);
            }
        }

        let joined = Joined {
            handle: Some(handle),
            output: None,
            woken: Shared::default(),
        };
        let shut_down = |owned: &mut Owned<Queue>| {
            owned.watch_releases();
            owned.cancel_all();
        };
        let by_owner = ends == Ends::Shutdown || when == When::Idle;
        let (mine, theirs) = if by_owner {
            (Some(joined), None)
        } else {
            (None, Some(joined))
        };
        let (apart, theirs) = if when == When::Meanwhile {
            (theirs, None)
        } else {
            (None, theirs)
        };
        let waking = thread::spawn(move || match (theirs, when) {
            (Some(joined), When::Before) => {
                let joined = joined.end(ends);
                (wake(wakes, &flag, waker), Some(joined))
            }
            (joined, _) => {
                let wakers = wake(wakes, &flag, waker);
                (wakers, joined.map(|joined| joined.end(ends)))
            }
        });
        let ending = apart.map(|joined| thread::spawn(move || joined.end(ends)));
        if ends == Ends::Shutdown && when != When::After {
            shut_down(&mut owned);
        }
        let mine = mine.map(|joined| {
            if when == When::Idle {
                joined.end(ends)
            } else {
                joined
            }
        });
        if ends == Ends::Drop {
            drop(queue.pop());
        }
        if when != When::Idle {
            queue.run_in(&mut owned);
        }
        if ends == Ends::Shutdown && when == When::After {
            shut_down(&mut owned);
        }
        let apart = ending.map(|ending| ending.join().unwrap());
        let (wakers, theirs) = waking.join().unwrap();
        let mut joined = mine.or(theirs).or(apart).unwrap();
        queue.run_in(&mut owned);
        drop(wakers);
        queue.run_in(&mut owned);

        let cancelled = matches!(ends, Ends::Abort | Ends::Shutdown | Ends::Drop);
        let woken = wakes.is_wake() || when != When::Idle || polls == Polls::GoesOn;
        assert!(
            cancelled || !woken || book.seen.load(InTurn) == 1,
            "a wake was lost"
        );
        let waits = ends == Ends::Join && joined.output.is_none();
        if waits && woken && polls != Polls::Pending {
            assert_eq!(joined.woken.load(InTurn), 1, "a join was not woken");
        }
        shut_down(&mut owned);
        queue.run_in(&mut owned);
        owned.drain();
        assert!(owned.is_empty(), "the task is listed still");
        assert_eq!(book.futures.load(InTurn), 1);
        joined.poll();
        if let Some(output) = joined.output.take() {
            match (output, polls) {
                (Ok(_), Polls::Ready | Polls::GoesOn) => {}
                (Err(error), Polls::Panics) if error.is_panic() => {}
                (Err(error), _) => assert!(
                    error.is_cancelled() && (cancelled || polls == Polls::Pending || !woken)
                ),
                (Ok(_), _) => panic!("a join has an output that no poll returned"),
            }
        }
        drop(joined);
        let made = book.outputs_made.load(InTurn);
        assert_eq!(book.outputs_dropped.load(InTurn), made);
    });
}

macro_rules! all {
    ($($wakes:ident: $wake:ident)*) => {$(
        mod $wakes {
            mod while_it_pends {
                super::super::ends!($wake, Pending);
            }
            mod while_it_completes {
                super::super::ends!($wake, Ready);
            }
            mod while_it_panics {
                super::super::ends!($wake, Panics);
            }
            mod while_it_goes_on {
                super::super::ends!($wake, GoesOn);
            }
            mod while_it_is_queued_in_a_run_that_goes_on {
                super::super::ends! { $wake, GoesOn,
                    and_is_aborted: Abort, Idle;
                    and_is_joined: Join, Idle;
                    and_is_left: Leave, Idle;
                    and_is_shut_down: Shutdown, Idle;
                    and_is_dropped: Drop, Idle;
                }
            }
            mod while_it_is_idle {
                super::super::ends! { $wake, Ready,
                    and_is_aborted: Abort, Idle;
                    and_is_joined: Join, Idle;
                    and_is_left: Leave, Idle;
                    and_is_shut_down: Shutdown, Idle;
                }
            }
        }
    )*};
}

macro_rules! ends {
    ($wake:ident, $poll:ident) => {
        super::super::ends! { $wake, $poll,
            and_was_aborted: Abort, Before;
            and_is_aborted: Abort, After;
            full_and_is_aborted_meanwhile: Abort, Meanwhile;
            and_was_joined: Join, Before;
            and_is_joined: Join, After;
            full_and_is_joined_meanwhile: Join, Meanwhile;
            and_was_left: Leave, Before;
            and_is_left: Leave, After;
            full_and_is_left_meanwhile: Leave, Meanwhile;
            and_was_shut_down: Shutdown, Before;
            and_is_shut_down: Shutdown, After;
        }
    };
    ($wake:ident, $poll:ident, $($name:ident: $end:ident, $when:ident;)*) => {
        use super::super::{Ends, Polls, Wakes, When, pair};
        $(
            #[test]
            fn $name() {
                pair(Wakes::$wake, Polls::$poll, Ends::$end, When::$when);
            }
        )*
    };
}
use ends;

all! {
    woken_by_value: ByValue
    woken_by_reference: ByRef
    its_waker_cloned: Clones
    its_waker_dropped: Drops
}
