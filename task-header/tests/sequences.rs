//! Runs random sequences of operations on one task, and compares the results with the expected
//! ones, of which an `Account` keeps track.
use proptest::prelude::*;
use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};
use task_header::{
    AbortHandle, AfterPoll, Builder, JoinError, JoinHandle, Notified, Owned, Ran, Schedule,
    WakeKind,
};

#[derive(Clone, Copy, Debug)]
enum Does {
    Waits,
    WaitsWithItsWaker,
    WakesItself,
    Completes,
    Panics,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Run(Does),
    RunListed(Does),
    /// Runs the task, and lets the run go on for one more poll.
    RunAgain(Does),
    DropNotified,
    WakeByRef,
    Wake,
    Clone,
    DropWaker,
    Abort,
    CloneAbortHandle,
    DropAbortHandle,
    Join,
    DropJoin,
    CancelAll,
    Drain,
}

fn op() -> impl Strategy<Value = Op> {
    let does = || {
        prop_oneof![
            2 => Just(Does::Waits),
            4 => Just(Does::WaitsWithItsWaker),
            2 => Just(Does::WakesItself),
            1 => Just(Does::Completes),
            1 => Just(Does::Panics),
        ]
    };
    prop_oneof![
        4 => does().prop_map(Op::Run),
        4 => does().prop_map(Op::RunListed),
        3 => does().prop_map(Op::RunAgain),
        1 => Just(Op::DropNotified),
        3 => Just(Op::WakeByRef),
        3 => Just(Op::Wake),
        2 => Just(Op::Clone),
        3 => Just(Op::DropWaker),
        1 => Just(Op::Abort),
        1 => Just(Op::CloneAbortHandle),
        1 => Just(Op::DropAbortHandle),
        2 => Just(Op::Join),
        1 => Just(Op::DropJoin),
        1 => Just(Op::CancelAll),
        1 => Just(Op::Drain),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Output,
    Panic,
    Cancelled,
}

/// The expected state.
#[derive(Debug, Default)]
struct Account {
    queued: bool,
    aborted: bool,
    listed: bool,
    polls: usize,
    outcome: Option<Outcome>,
    wakers: usize,
    abort_handles: usize,
    joined: bool,
}

impl Account {
    fn held(&self) -> bool {
        self.queued || self.listed || self.joined || self.wakers + self.abort_handles > 0
    }

    /// Updates the account after a reference has gone, or a poll has ended.
    fn settle(&mut self) {
        if self.outcome.is_none() && !self.held() {
            (self.queued, self.aborted) = (true, true);
        }
    }

    fn wake(&mut self) {
        self.queued |= self.outcome.is_none();
    }

    fn end(&mut self, outcome: Outcome, on_owner: bool) {
        self.outcome = Some(outcome);
        self.queued = false;
        self.listed &= !on_owner;
    }

    fn run(&mut self, does: Does, listed: bool, again: bool) {
        self.queued = false;
        if self.aborted {
            return self.end(Outcome::Cancelled, listed);
        }
        self.polls += 1;
        match does {
            Does::Completes => return self.end(Outcome::Output, listed),
            Does::Panics => return self.end(Outcome::Panic, listed),
            Does::WakesItself => self.queued = true,
            Does::WaitsWithItsWaker => self.wakers += 1,
            Does::Waits => {}
        }
        if again || self.queued {
            self.queued = true;
            return;
        }
        self.listed |= listed;
        if !self.held() {
            self.end(Outcome::Cancelled, false);
        }
    }
}

#[derive(Clone, Default)]
struct Queue(Arc<Mutex<Option<Notified<Queue>>>>);

impl Schedule for Queue {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let queue = task.scheduler().clone();
        let before = queue.0.lock().unwrap().replace(task);
        assert!(before.is_none(), "two `Notified` of one task");
    }
}

#[derive(Default)]
struct Drops(Arc<AtomicUsize>);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

struct Real {
    queue: Queue,
    owned: Owned<Queue>,
    wakers: Arc<Mutex<Vec<Waker>>>,
    abort_handles: Vec<AbortHandle>,
    join: Option<JoinHandle<Drops>>,
    does: Arc<Mutex<Does>>,
    polls: Arc<AtomicUsize>,
    /// The drops of the future, of its output, and of the cell.
    drops: [Arc<AtomicUsize>; 3],
}

impl Real {
    fn new(joined: bool) -> Self {
        let (queue, wakers) = (Queue::default(), Arc::<Mutex<Vec<Waker>>>::default());
        let does = Arc::new(Mutex::new(Does::Waits));
        let polls = Arc::new(AtomicUsize::new(0));
        let drops: [Arc<AtomicUsize>; 3] = Default::default();
        let (body, output) = (Drops(drops[0].clone()), drops[1].clone());
        let (script, slot, polled) = (does.clone(), wakers.clone(), polls.clone());
        let future = poll_fn(move |cx| {
            let _body = &body;
            polled.fetch_add(1, Relaxed);
            match *script.lock().unwrap() {
                Does::Waits => {}
                Does::WaitsWithItsWaker => slot.lock().unwrap().push(cx.waker().clone()),
                Does::WakesItself => cx.waker().wake_by_ref(),
                Does::Completes => return Poll::Ready(Drops(output.clone())),
                // Bypasses the panic hook, which would print the panic.
                Does::Panics => std::panic::resume_unwind(Box::new("in a poll")),
            }
            Poll::Pending
        });
        let builder = Builder::new().metadata(Drops(drops[2].clone()));
        let (task, join) = builder.spawn(future, queue.clone());
        Queue::schedule(task, WakeKind::Wake);
        Self {
            queue,
            owned: Owned::new(Waker::noop().clone()),
            wakers,
            abort_handles: Vec::new(),
            join: joined.then_some(join),
            does,
            polls,
            drops,
        }
    }

    fn take(&self) -> Option<Notified<Queue>> {
        self.queue.0.lock().unwrap().take()
    }

    fn waker(&self) -> Option<Waker> {
        self.wakers.lock().unwrap().pop()
    }

    fn run(&mut self, task: Notified<Queue>, does: Does, listed: bool, again: bool) {
        *self.does.lock().unwrap() = does;
        let ran = if again {
            let owned = Some(&mut self.owned);
            task.run_with(|| AfterPoll { owned, again })
        } else if listed {
            self.owned.run(task)
        } else {
            task.run()
        };
        if let Ran::Notified(again) = ran {
            Queue::schedule(again, WakeKind::Wake);
        }
    }
}

fn outcome(output: Result<Drops, JoinError>) -> Outcome {
    match output {
        Ok(_) => Outcome::Output,
        Err(error) if error.is_panic() => Outcome::Panic,
        Err(_) => Outcome::Cancelled,
    }
}

fn apply(op: Op, real: &mut Real, account: &mut Account) {
    match op {
        Op::Run(does) | Op::RunListed(does) | Op::RunAgain(does) => {
            let (listed, again) = (!matches!(op, Op::Run(_)), matches!(op, Op::RunAgain(_)));
            if let Some(task) = real.take() {
                real.run(task, does, listed, again);
                account.run(does, listed, again);
            }
        }
        Op::DropNotified => {
            if real.take().is_some() {
                account.end(Outcome::Cancelled, false);
            }
        }
        Op::WakeByRef => {
            if let Some(waker) = real.waker() {
                waker.wake_by_ref();
                account.wake();
                real.wakers.lock().unwrap().push(waker);
            }
        }
        Op::Wake => {
            if let Some(waker) = real.waker() {
                waker.wake();
                account.wake();
                account.wakers -= 1;
            }
        }
        Op::Clone => {
            if let Some(waker) = real.waker() {
                real.wakers.lock().unwrap().extend([waker.clone(), waker]);
                account.wakers += 1;
            }
        }
        Op::DropWaker => account.wakers -= usize::from(real.waker().is_some()),
        Op::Abort => {
            let handle = real.join.as_ref().map(JoinHandle::abort);
            let other = real.abort_handles.first().map(AbortHandle::abort);
            if handle.or(other).is_some() && account.outcome.is_none() {
                (account.queued, account.aborted) = (true, true);
            }
        }
        Op::CloneAbortHandle => {
            let handle = real.join.as_ref().map(JoinHandle::abort_handle);
            let handle = handle.or_else(|| real.abort_handles.first().cloned());
            account.abort_handles += usize::from(handle.is_some());
            real.abort_handles.extend(handle);
        }
        Op::DropAbortHandle => {
            account.abort_handles -= usize::from(real.abort_handles.pop().is_some());
        }
        Op::Join => {
            let Some(join) = &mut real.join else { return };
            let polled = Pin::new(join).poll(&mut Context::from_waker(Waker::noop()));
            let expected = account.outcome;
            match polled {
                Poll::Pending => assert_eq!(expected, None),
                Poll::Ready(output) => {
                    assert_eq!(expected, Some(outcome(output)));
                    real.join = None;
                    account.joined = false;
                }
            }
        }
        Op::DropJoin => {
            real.join = None;
            account.joined = false;
        }
        Op::CancelAll => {
            real.owned.cancel_all();
            if account.listed && account.outcome.is_none() {
                account.aborted = true;
                if !account.queued {
                    account.end(Outcome::Cancelled, true);
                }
            }
        }
        Op::Drain => {
            real.owned.drain();
            account.listed &= account.outcome.is_none();
        }
    }
    account.settle();
}

fn check(real: &Real, account: &Account) {
    let queued = real.queue.0.lock().unwrap().is_some();
    assert_eq!(queued, account.queued);
    assert_eq!(real.polls.load(Relaxed), account.polls);
    assert_eq!(real.owned.len(), usize::from(account.listed));
    if let Some(join) = &real.join {
        assert_eq!(join.is_finished(), account.outcome.is_some());
    }
    let [future, output, cell] = [0, 1, 2].map(|i| real.drops[i].load(Relaxed));
    assert_eq!(future, usize::from(account.outcome.is_some()));
    let kept = account.joined || account.outcome != Some(Outcome::Output);
    assert_eq!(output, usize::from(!kept));
    assert_eq!(
        cell,
        usize::from(account.outcome.is_some() && !account.held())
    );
}

proptest! {
    #[test]
    fn task_agrees_with_its_account(joined: bool, ops in prop::collection::vec(op(), 0..40)) {
        let mut real = Real::new(joined);
        let mut account = Account { queued: true, joined, ..Account::default() };
        check(&real, &account);
        for op in ops {
            apply(op, &mut real, &mut account);
            check(&real, &account);
        }
        // Ends the task, whatever its state.
        real.join = None;
        account.joined = false;
        account.settle();
        while real.waker().is_some() {
            account.wakers -= 1;
            account.settle();
        }
        real.abort_handles.clear();
        account.abort_handles = 0;
        account.settle();
        check(&real, &account);
        apply(Op::CancelAll, &mut real, &mut account);
        apply(Op::DropNotified, &mut real, &mut account);
        apply(Op::Drain, &mut real, &mut account);
        prop_assert!(account.outcome.is_some() && !account.held());
        check(&real, &account);
    }
}
