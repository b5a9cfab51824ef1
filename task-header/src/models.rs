//! Models of the protocol. Each scenario is a task with a few handles and wakers, each on its own
//! thread. A free first retires every atomic and every `UnsafeCell` of the task, so an access after
//! the free fails the model.
use crate::{AfterPoll, Notified, Owned, Ran, Schedule, WakeKind, state::State};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    cell::UnsafeCell,
    model, model_must_fail,
    sync::{Arc, Mutex},
    thread,
};

/// A queue from which several threads may run tasks.
#[derive(Clone)]
struct Queue(Arc<Mutex<Vec<Notified<Queue>>>>);

impl Queue {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    fn pop(&self) -> Option<Notified<Queue>> {
        self.0.lock().pop()
    }

    /// Runs queued tasks until the queue is empty.
    fn run_all(&self) {
        while let Some(task) = self.pop() {
            if let Ran::Notified(task) = task.run() {
                self.0.lock().push(task);
            }
        }
    }

    fn run_all_in(&self, owned: &mut Owned<Queue>) {
        while let Some(task) = self.pop() {
            if let Ran::Notified(task) = owned.run(task) {
                self.0.lock().push(task);
            }
        }
    }
}

impl Schedule for Queue {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let queue = task.scheduler().clone();
        let mut queue = queue.0.lock();
        assert!(queue.is_empty(), "two `Notified` of one task");
        queue.push(task);
    }
}

/// Counts the polls of a future, and the drops of the future and of its output.
#[derive(Clone)]
struct Seen {
    polls: Arc<AtomicUsize>,
    drops: Arc<AtomicUsize>,
}

impl Seen {
    fn new() -> Self {
        Self {
            polls: Arc::new(AtomicUsize::new(0)),
            drops: Arc::new(AtomicUsize::new(0)),
        }
    }

    fn drops(&self) -> usize {
        self.drops.load(Relaxed)
    }
}

/// A future that is pending until `flag` is set. A poll that returns `Pending` stores a waker for
/// the other threads. Only one poll at a time may touch `body`.
struct Wait {
    seen: Seen,
    flag: Arc<Flag>,
    body: UnsafeCell<u8>,
}

// SAFETY: by the task protocol, one thread at a time polls or drops the future. The models check
// that.
unsafe impl Send for Wait {}

struct Flag {
    set: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Flag {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            set: AtomicUsize::new(0),
            waker: Mutex::new(None),
        })
    }

    fn take(&self) -> Option<Waker> {
        self.waker.lock().take()
    }

    /// Sets the flag, then wakes the task. The store is Relaxed, so that only the wake can make the
    /// flag visible.
    fn set_and_wake(&self, waker: Waker) {
        self.set.store(1, Relaxed);
        waker.wake();
    }
}

impl Wait {
    fn new(seen: &Seen, flag: &Arc<Flag>) -> Self {
        Self {
            seen: seen.clone(),
            flag: flag.clone(),
            body: UnsafeCell::new(0),
        }
    }
}

impl Future for Wait {
    type Output = Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        // SAFETY: the poll has the future alone; the model checks that.
        self.body.with_mut(|body| unsafe { *body += 1 });
        self.seen.polls.fetch_add(1, Relaxed);
        if self.flag.set.load(Relaxed) == 1 {
            return Poll::Ready(Output(self.seen.clone()));
        }
        *self.flag.waker.lock() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.body.with_mut(|_| ());
        self.seen.drops.fetch_add(1, Relaxed);
    }
}

/// The output of [`Wait`]. Its drop is counted with that of the future, so both make two drops.
struct Output(Seen);

impl Drop for Output {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, Relaxed);
    }
}

/// A future whose first poll stores its waker, and only then touches its body. So only the end of
/// the poll publishes that write.
struct Late {
    slot: Arc<Mutex<Option<Waker>>>,
    content: UnsafeCell<u32>,
    done: Arc<AtomicUsize>,
}

// SAFETY: by the task protocol, one thread at a time polls the future. The model checks that.
unsafe impl Send for Late {}

impl Future for Late {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: one poll at a time.
        let first = self.content.with(|content| unsafe { *content }) == 0;
        if first {
            *self.slot.lock() = Some(cx.waker().clone());
        }
        // SAFETY: as above.
        self.content.with_mut(|content| unsafe { *content += 1 });
        if first {
            return Poll::Pending;
        }
        self.done.fetch_add(1, Relaxed);
        Poll::Ready(())
    }
}

/// One thread polls the task, then another thread wakes and polls it: the first poll's writes are
/// visible to the second poll.
///
/// Fails if the end of a poll has no Release or no Acquire, or if a start has no Acquire.
#[test]
fn a_poll_sees_what_the_last_one_wrote_on_another_thread() {
    model(|| {
        let (queue, slot) = (Queue::new(), Arc::new(Mutex::new(None)));
        let done = Arc::new(AtomicUsize::new(0));
        let late = Late {
            slot: slot.clone(),
            content: UnsafeCell::new(0),
            done: done.clone(),
        };
        let task = crate::new_detached(late, queue.clone());
        let first = {
            let queue = queue.clone();
            thread::spawn(move || {
                if let Ran::Notified(task) = task.run() {
                    queue.0.lock().push(task);
                }
            })
        };
        let wake = || {
            let waker = slot.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        };
        wake();
        queue.run_all();
        first.join().unwrap();
        wake();
        queue.run_all();
        assert_eq!(done.load(Relaxed), 1);
    });
}

/// A run goes on, on another thread, while a third thread wakes the task. The next polls see the
/// first poll's writes, and one of these polls sees the writes before the wake.
///
/// Fails if a run that goes on clears NOTIFIED with Relaxed.
#[test]
fn a_run_goes_on_with_another_thread_against_a_wake() {
    Model::new().bound(3).check(|| {
        let (queue, until) = (Queue::new(), Until::new());
        let Until { flag, slot, done } = until.clone();
        let task = crate::new_detached(until, queue.clone());
        let again = |task: Notified<Queue>| {
            task.run_with(|| AfterPoll {
                owned: None,
                again: true,
            })
        };
        let Ran::Notified(task) = again(task) else {
            panic!("the run does not go on")
        };
        let waker = slot.lock().take().unwrap();
        let other = thread::spawn(move || {
            flag.store(1, Relaxed);
            waker.wake();
        });
        let next = thread::spawn(move || match again(task) {
            Ran::Notified(task) => Some(task),
            Ran::Complete | Ran::Pending => None,
        });
        if let Some(task) = next.join().unwrap() {
            queue.0.lock().push(task);
        }
        queue.run_all();
        other.join().unwrap();
        queue.run_all();
        drop(slot.lock().take());
        queue.run_all();
        assert_eq!(done.load(Relaxed), 1);
    });
}

/// A future that is ready once the flag is set.
#[derive(Clone)]
struct Until {
    flag: Arc<AtomicUsize>,
    slot: Arc<Mutex<Option<Waker>>>,
    done: Arc<AtomicUsize>,
}

impl Until {
    fn new() -> Self {
        Self {
            flag: Arc::new(AtomicUsize::new(0)),
            slot: Arc::new(Mutex::new(None)),
            done: Arc::new(AtomicUsize::new(0)),
        }
    }
}

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.flag.load(Relaxed) == 1 {
            self.done.fetch_add(1, Relaxed);
            return Poll::Ready(());
        }
        *self.slot.lock() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Two threads wake a task by reference. A wake that finds the task notified submits nothing. The
/// poll that follows the other wake still sees the writes before the wake that submitted nothing.
///
/// Fails if a wake by reference, or a start, is Relaxed.
#[test]
fn wake_of_a_notified_task_publishes_earlier_writes() {
    model(|| {
        let (queue, until) = (Queue::new(), Until::new());
        let Until { flag, slot, done } = until.clone();
        drop(crate::new_detached(until, queue.clone()).run());
        let waker = slot.lock().take().unwrap();
        let other = {
            let (flag, waker) = (flag.clone(), waker.clone());
            thread::spawn(move || {
                flag.store(1, Relaxed);
                waker.wake_by_ref();
                waker
            })
        };
        waker.wake_by_ref();
        queue.run_all();
        let others = other.join().unwrap();
        queue.run_all();
        let seen = done.load(Relaxed);
        drop((waker, others, slot.lock().take()));
        queue.run_all();
        assert_eq!(seen, 1);
    });
}

/// A thread wakes the task by value while a poll ends: the task is polled exactly once more.
///
/// Fails if `pend` ignores NOTIFIED (the task hangs).
#[test]
fn a_wake_against_pending_gives_one_more_poll() {
    model(|| {
        let (queue, seen, flag) = (Queue::new(), Seen::new(), Flag::new());
        let (task, join) = crate::new(Wait::new(&seen, &flag), queue.clone());
        let waker = {
            let flag = flag.clone();
            thread::spawn(move || {
                // Depending on the execution, the first poll has stored its waker by now, or not.
                if let Some(waker) = flag.take() {
                    flag.set_and_wake(waker);
                    return true;
                }
                false
            })
        };
        queue.0.lock().push(task);
        queue.run_all();
        let woke = waker.join().unwrap();
        queue.run_all();
        assert_eq!(join.is_finished(), woke, "a wake was lost");
        drop(join);
        flag.take();
        queue.run_all();
        assert_eq!(seen.drops(), if woke { 2 } else { 1 });
    });
}

/// The queue of tasks whose wakes read the key of their list.
#[derive(Clone)]
struct Keyed(Arc<Mutex<Vec<Notified<Keyed>>>>);

impl Schedule for Keyed {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        assert_eq!(task.owner_key(), Some(7), "only a listed task is submitted");
        let queue = task.scheduler().clone();
        queue.0.lock().push(task);
    }
}

/// A thread wakes the task while the first poll ends and puts the task into a list. If the wake
/// submits the task, the waking thread reads the key of that list.
///
/// Fails if a wake by reference has no Acquire, or the end of a poll no Release.
#[test]
fn owner_key_read_by_a_wake_against_pending_is_the_lists() {
    model(|| {
        let queue = Keyed(Arc::new(Mutex::new(Vec::new())));
        let (seen, flag) = (Seen::new(), Flag::new());
        let task = crate::new_detached(Wait::new(&seen, &flag), queue.clone());
        let other = {
            let flag = flag.clone();
            thread::spawn(move || {
                // Depending on the execution, the first poll has stored its waker by now, or not.
                if let Some(waker) = flag.take() {
                    flag.set.store(1, Relaxed);
                    waker.wake_by_ref();
                }
            })
        };
        let mut owned = Owned::with_key(Waker::noop().clone(), 7);
        let again = owned.run(task);
        other.join().unwrap();
        let woken = match again {
            Ran::Notified(task) => Some(task),
            Ran::Complete | Ran::Pending => queue.0.lock().pop(),
        };
        if let Some(task) = woken {
            assert!(matches!(owned.run(task), Ran::Complete));
        }
        drop(flag.take());
        owned.cancel_all();
        owned.drain();
        assert!(owned.is_empty());
    });
}

/// Two threads wake the task: the queue asserts that a notified task gets no second `Notified`. The
/// poll still sees the writes before a wake that submits nothing.
///
/// Fails if a task is submitted although NOTIFIED was set, or if a start is Relaxed.
#[test]
fn two_wakes_submit_once() {
    model(|| {
        let (queue, seen, flag) = (Queue::new(), Seen::new(), Flag::new());
        let (task, join) = crate::new(Wait::new(&seen, &flag), queue.clone());
        queue.0.lock().push(task);
        queue.run_all();
        let waker = flag.take().unwrap();
        let other = {
            let (flag, waker) = (flag.clone(), waker.clone());
            thread::spawn(move || flag.set_and_wake(waker))
        };
        waker.wake_by_ref();
        drop(waker);
        queue.run_all();
        other.join().unwrap();
        queue.run_all();
        assert!(
            join.is_finished(),
            "the poll after a wake did not see what came before it"
        );
        drop((join, flag.take()));
        assert_eq!(seen.drops(), 2);
    });
}

/// Two threads drop the last wakers, one of them after a wake, while a run completes the task: the
/// cell is freed once.
///
/// Fails if `ref_dec` is Relaxed.
#[test]
fn the_last_waker_against_completion_frees_once() {
    model(|| {
        let (queue, seen, flag) = (Queue::new(), Seen::new(), Flag::new());
        let task = crate::new_detached(Wait::new(&seen, &flag), queue.clone());
        queue.0.lock().push(task);
        queue.run_all();
        let waker = flag.take().unwrap();
        let other = {
            let (flag, waker) = (flag.clone(), waker.clone());
            thread::spawn(move || {
                flag.set.store(1, Relaxed);
                waker.wake_by_ref();
            })
        };
        drop(waker);
        queue.run_all();
        other.join().unwrap();
        queue.run_all();
        assert_eq!(seen.drops(), 2);
    });
}

/// Two threads drop the last two references to a task that waits: one of the threads submits the
/// task once more, cancelled.
///
/// Fails if `after_drop` answers `Nothing` (the future leaks: the drop count fails).
#[test]
fn an_orphan_is_cancelled_once() {
    model(|| {
        let (queue, seen, flag) = (Queue::new(), Seen::new(), Flag::new());
        let (task, join) = crate::new(Wait::new(&seen, &flag), queue.clone());
        queue.0.lock().push(task);
        queue.run_all();
        let waker = flag.take().unwrap();
        let other = thread::spawn(move || drop(waker));
        drop(join);
        other.join().unwrap();
        queue.run_all();
        assert_eq!(seen.drops(), 1);
    });
}

/// A thread drops the last waker while the poll that stored the waker ends. The later of the two
/// threads makes the task an orphan, which drops the future. After the free, no thread touches the
/// cell.
///
/// Fails if the end of a poll has no Acquire.
#[test]
fn the_last_waker_against_pending_leaves_an_orphan() {
    model(|| {
        let (queue, seen, flag) = (Queue::new(), Seen::new(), Flag::new());
        let task = crate::new_detached(Wait::new(&seen, &flag), queue.clone());
        let other = {
            let flag = flag.clone();
            thread::spawn(move || drop(flag.take()))
        };
        drop(task.run());
        queue.run_all();
        other.join().unwrap();
        drop(flag.take());
        queue.run_all();
        assert_eq!(seen.drops(), 1);
    });
}

/// The future's drop sees the writes before an abort, even if the task was queued already.
///
/// Fails if an abort is Relaxed.
#[test]
fn abort_of_a_notified_task_publishes_earlier_writes() {
    /// A future that the abort should drop before its first poll. Its drop records whether it sees
    /// the write before the abort.
    struct Look(Arc<AtomicUsize>, Arc<AtomicUsize>);

    impl Future for Look {
        type Output = ();

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            // The abort came too late.
            self.1.store(1, Relaxed);
            Poll::Ready(())
        }
    }

    impl Drop for Look {
        fn drop(&mut self) {
            self.1.fetch_add(self.0.load(Relaxed), Relaxed);
        }
    }

    model(|| {
        let (before, found) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (task, join) = crate::new(Look(before.clone(), found.clone()), Queue::new());
        let abort = join.abort_handle();
        let other = thread::spawn(move || {
            before.store(1, Relaxed);
            abort.abort();
        });
        drop(task.run());
        other.join().unwrap();
        assert!(found.load(Relaxed) >= 1, "the drop missed the write");
        drop(join);
    });
}

/// A thread aborts the task while a poll in its run returns `Pending`: either the run ends the
/// task, or the abort submits the task, and never both. The future's drop sees the writes before
/// the abort, and the list ends empty.
///
/// Fails if `pend` or `is_woken` treats an abort as a wake, if a start is Relaxed, or if
/// `end_aborted` runs without its start.
#[test]
fn an_abort_against_pending_ends_with_the_run() {
    /// A future that waits. Its drop records whether it sees the write before the abort.
    struct Waits(Arc<AtomicUsize>, Arc<AtomicUsize>);

    impl Future for Waits {
        type Output = ();

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }

    impl Drop for Waits {
        fn drop(&mut self) {
            self.1.fetch_add(1 + self.0.load(Relaxed), Relaxed);
        }
    }

    model(|| {
        let (before, found) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let queue = Queue::new();
        let (task, join) = crate::new(Waits(before.clone(), found.clone()), queue.clone());
        let mut owned = Owned::new(Waker::noop().clone());
        let abort = join.abort_handle();
        let other = thread::spawn(move || {
            before.store(1, Relaxed);
            abort.abort();
        });
        let ran = owned.run(task);
        other.join().unwrap();
        match (ran, queue.pop()) {
            (Ran::Complete, None) => {}
            (Ran::Pending, Some(task)) => assert!(matches!(owned.run(task), Ran::Complete)),
            _ => panic!("the task was queued once more"),
        }
        owned.drain();
        assert!(owned.is_empty() && join.is_finished());
        assert_eq!(found.load(Relaxed), 2);
        drop(join);
    });
}

/// The join handle is polled while the task completes: it gets the output, or its waker is woken.
///
/// Fails if `set_join_waker` does not check COMPLETE (the waker is never woken).
#[test]
fn a_join_against_completion_misses_nothing() {
    model(|| {
        let queue = Queue::new();
        let (task, mut join) = crate::new(async { 7 }, queue.clone());
        let runner = thread::spawn(move || assert!(matches!(task.run(), Ran::Complete)));
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Woken::waker(&woken);
        let mut cx = Context::from_waker(&waker);
        let first = Pin::new(&mut join).poll(&mut cx);
        runner.join().unwrap();
        match first {
            Poll::Ready(output) => assert_eq!(output.unwrap(), 7),
            Poll::Pending => {
                assert_eq!(woken.0.load(Relaxed), 1, "the join waker was missed");
                let Poll::Ready(output) = Pin::new(&mut join).poll(&mut cx) else {
                    panic!("no output")
                };
                assert_eq!(output.unwrap(), 7);
            }
        }
    });
}

/// The join handle changes its waker and is dropped, while the task completes.
///
/// Fails if `unset_join_waker` is skipped before the slot is written (a data race on the slot).
#[test]
fn join_that_changes_its_waker_against_completion_is_clean() {
    model(|| {
        let queue = Queue::new();
        let seen = Seen::new();
        let output = Output(seen.clone());
        let (task, mut join) = crate::new(async move { output }, queue.clone());
        let woken = [(); 2].map(|()| Arc::new(Woken(AtomicUsize::new(0))));
        let wakers = [Woken::waker(&woken[0]), Woken::waker(&woken[1])];
        assert!(
            Pin::new(&mut join)
                .poll(&mut Context::from_waker(&wakers[0]))
                .is_pending()
        );
        let runner = thread::spawn(move || assert!(matches!(task.run(), Ran::Complete)));
        let second = Pin::new(&mut join).poll(&mut Context::from_waker(&wakers[1]));
        drop(join);
        drop(second);
        runner.join().unwrap();
        assert_eq!(seen.drops(), 1);
    });
}

/// The join handle is polled again with the waker in the slot, while the task completes. The handle
/// reads the slot while the completion moves the waker out. The waker is woken in any case.
///
/// Fails if the waker is moved out by a write to the slot (a data race on the slot), or if
/// `gave_join_waker` answers `false` (the waker is dropped twice).
#[test]
fn join_that_compares_wakers_against_completion_misses_nothing() {
    model(|| {
        let (task, mut join) = crate::new(async { 7 }, Queue::new());
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Woken::waker(&woken);
        let mut cx = Context::from_waker(&waker);
        assert!(Pin::new(&mut join).poll(&mut cx).is_pending());
        let runner = thread::spawn(move || assert!(matches!(task.run(), Ran::Complete)));
        let mut output = Pin::new(&mut join).poll(&mut cx);
        runner.join().unwrap();
        assert_eq!(woken.0.load(Relaxed), 1, "the join waker was missed");
        if output.is_pending() {
            output = Pin::new(&mut join).poll(&mut cx);
        }
        assert!(matches!(output, Poll::Ready(Ok(7))));
    });
}

/// One thread aborts the task while the other completes it. Then the join handle is dropped: the
/// future, and the output if there is one, are each dropped once.
///
/// Fails if an abort sets CANCELLED without NOTIFIED (an idle task is never dropped).
#[test]
fn an_abort_against_completion_drops_once() {
    model(|| {
        let (queue, seen, flag) = (Queue::new(), Seen::new(), Flag::new());
        let (task, join) = crate::new(Wait::new(&seen, &flag), queue.clone());
        queue.0.lock().push(task);
        queue.run_all();
        let abort = join.abort_handle();
        let other = thread::spawn(move || {
            abort.abort();
        });
        let waker = flag.take().unwrap();
        flag.set_and_wake(waker);
        queue.run_all();
        other.join().unwrap();
        queue.run_all();
        assert!(join.is_finished());
        drop(join);
        assert!((1..=2).contains(&seen.drops()));
    });
}

/// A thief completes a task while the owner begins to watch for that. The task returns over the
/// release stack, the owner is woken if it has not found the task yet, and the list ends empty.
///
/// Fails if the tag in the stack's head is ignored (the owner is not woken).
#[test]
fn a_release_against_closing_wakes_the_owner() {
    Model::new().branches(3_000).check(|| {
        let (queue, seen, flag) = (Queue::new(), Seen::new(), Flag::new());
        let task = crate::new_detached(Wait::new(&seen, &flag), queue.clone());
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let mut owned = Owned::new(Woken::waker(&woken));
        queue.0.lock().push(task);
        queue.run_all_in(&mut owned);
        assert_eq!(owned.len(), 1);
        let waker = flag.take().unwrap();
        flag.set_and_wake(waker);
        let task = queue.pop().unwrap();
        let thief = thread::spawn(move || assert!(matches!(task.run(), Ran::Complete)));
        owned.watch_releases();
        owned.drain();
        let released = owned.is_empty();
        thief.join().unwrap();
        owned.drain();
        assert!(owned.is_empty());
        assert!(
            released || woken.0.load(Relaxed) == 1,
            "the owner was not woken"
        );
        assert_eq!(seen.drops(), 2);
    });
}

/// Three tasks lie in two chunks of the owner's table. A thief completes one of the tasks, while
/// the owner completes the last other task. When the table has become empty, the owner frees a
/// chunk.
///
/// Fails if a chunk is freed while one of its tasks is left.
#[test]
fn a_release_against_the_end_of_its_chunk_is_clean() {
    model(|| {
        let queue = Queue::new();
        let mut owned = Owned::new(Waker::noop().clone());
        let waits = [(); 3].map(|()| (Seen::new(), Flag::new()));
        for (seen, flag) in &waits {
            let task = crate::new_detached(Wait::new(seen, flag), queue.clone());
            assert!(matches!(owned.run(task), Ran::Pending));
        }
        let [in_older, beside_it, in_newer] = waits.each_ref().map(|(_, flag)| {
            flag.set_and_wake(flag.take().unwrap());
            queue.pop().unwrap()
        });
        assert!(matches!(owned.run(beside_it), Ran::Complete));
        let thief = thread::spawn(move || assert!(matches!(in_older.run(), Ran::Complete)));
        assert!(matches!(owned.run(in_newer), Ran::Complete));
        owned.drain();
        assert!(owned.len() <= 1);
        thief.join().unwrap();
        owned.drain();
        assert!(owned.is_empty());
        assert!(waits.iter().all(|(seen, _)| seen.drops() == 2));
    });
}

/// The owner cancels the task in its list while another thread wakes that task.
///
/// Fails if the owner cancels a task whatever duty `abort` returns (two runs of one future).
#[test]
fn a_wake_against_cancel_all_runs_the_task_once() {
    model(|| {
        let (queue, seen, flag) = (Queue::new(), Seen::new(), Flag::new());
        let task = crate::new_detached(Wait::new(&seen, &flag), queue.clone());
        let mut owned = Owned::new(Waker::noop().clone());
        queue.0.lock().push(task);
        queue.run_all_in(&mut owned);
        let waker = flag.take().unwrap();
        let other = thread::spawn(move || waker.wake());
        owned.watch_releases();
        owned.cancel_all();
        other.join().unwrap();
        while let Some(task) = queue.pop() {
            owned.cancel(task);
        }
        owned.drain();
        assert!(owned.is_empty());
        assert_eq!(seen.drops(), 1);
    });
}

/// A thread with a bug wakes before it sets the flag that the future reads. The model finds the
/// poll that misses the flag, as it would find a wake that the state machine loses.
#[test]
fn a_flag_set_after_its_wake_is_missed() {
    model_must_fail("finished", || {
        let (queue, seen, flag) = (Queue::new(), Seen::new(), Flag::new());
        let (task, join) = crate::new(Wait::new(&seen, &flag), queue.clone());
        queue.0.lock().push(task);
        queue.run_all();
        let waker = flag.take().unwrap();
        let other = {
            let flag = flag.clone();
            thread::spawn(move || {
                waker.wake();
                flag.set.store(1, Relaxed);
            })
        };
        queue.run_all();
        other.join().unwrap();
        queue.run_all();
        let finished = join.is_finished();
        drop(join);
        flag.take();
        queue.run_all();
        assert!(finished);
    });
}

/// Two holders decrement their count with Relaxed, which is a bug. Then nothing orders the free
/// after the other holder's last access. The model finds that, because a free retires the word
/// first.
#[test]
fn a_relaxed_count_is_a_use_after_free() {
    use sync_shim::atomic::Retire;
    struct Racy {
        count: AtomicUsize,
        word: UnsafeCell<AtomicUsize>,
    }
    // SAFETY: unsound on purpose: the count's order is missing.
    unsafe impl Send for Racy {}
    // SAFETY: as above.
    unsafe impl Sync for Racy {}

    fn leave(racy: &Racy) {
        // SAFETY: a shared access to a word that the model watches.
        racy.word
            .with(|word| unsafe { &*word }.fetch_or(1, Relaxed));
        if racy.count.fetch_sub(1, Relaxed) == 1 {
            // SAFETY: unsound, which the model has to find.
            racy.word.with_mut(|word| unsafe { &mut *word }.retire());
        }
    }

    model_must_fail("Concurrent read and write accesses", || {
        let racy = Racy {
            count: AtomicUsize::new(2),
            word: UnsafeCell::new(AtomicUsize::new(0)),
        };
        let racy = Arc::new(racy);
        let other = {
            let racy = racy.clone();
            thread::spawn(move || leave(&racy))
        };
        leave(&racy);
        other.join().unwrap();
    });
}

/// A task's word that is retired while another thread still reads it fails the model. Every model
/// here relies on that.
///
/// Fails if `State::retire` does nothing.
#[test]
fn read_of_a_retired_word_fails_the_model() {
    model_must_fail("mut accesses", || {
        let raw = Box::into_raw(Box::new(State::new(true, false)));
        // SAFETY: the word is live until the end of the model.
        let state: &'static State = unsafe { &*raw };
        let other = thread::spawn(move || state.is_complete());
        // SAFETY: unsound on purpose: the other thread may still read the word.
        unsafe { &mut *raw }.retire();
        other.join().unwrap();
        // SAFETY: no other thread has the word by now.
        drop(unsafe { Box::from_raw(raw) });
    });
}

/// Counts wakes.
struct Woken(AtomicUsize);

impl Woken {
    fn waker(woken: &Arc<Self>) -> Waker {
        struct Wake(Arc<Woken>);
        impl std::task::Wake for Wake {
            fn wake(self: std::sync::Arc<Self>) {
                self.0.0.fetch_add(1, Relaxed);
            }
        }
        std::sync::Arc::new(Wake(woken.clone())).into()
    }
}

mod pairs;
