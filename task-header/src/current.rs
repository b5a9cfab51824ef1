//! The task that this thread polls: its id, for code inside the task, and whether it has yielded.
//!
//! A thread-local word holds the id of the innermost task whose future or output the thread polls
//! or drops, or 0. The word has no destructor, so destructors of other thread-locals may read it.
//!
//! 1. A poll begins with [`enter`], which sets the word, and ends with [`leave`], which clears it.
//!    A panic does not skip [`leave`], because each panic in between is caught. The drops of a
//!    cancelled future and of an output are [`within`] the task.
//! 2. A run may be nested in the poll of another task. So a run restores the word of the outer task
//!    ([`Outer`]). The runs in a worker's loop need not restore it ([`Notified::run_in_loop`]),
//!    because the loop as a whole restores it ([`without_current`]).
//! 3. An id is the address of a task's header, so its lowest bit is clear. [`yield_now`] sets that
//!    bit if the waker that it gets wakes the current task. [`leave`] tells the run, which then
//!    goes on after the poll (rule 8 of [`state`](crate::state)). So a task yields without a
//!    read-modify-write, on whatever executor it runs.
//!
//! [`Notified::run_in_loop`]: crate::Notified::run_in_loop
use crate::id::Id;
use core::{cell::Cell, num::NonZeroUsize, task::Waker};

sync_shim::thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The bit of the word that says that the task has yielded in this poll.
const YIELDED: usize = 1;

/// Returns the id of the task that this thread runs, if it runs one.
///
/// A thread runs a task while it polls the task's future, while a run or an abort drops that
/// future, and while a run or the drop of the join handle drops the output. If a task's poll runs
/// another task, this returns the id of the inner one. From the end of a poll to the end of that
/// run no task is current otherwise, also if the run is nested in the poll of an outer task: in the
/// scheduler's hooks, in a wake of the join handle. Costs a load of a thread-local.
///
/// ```
/// use task_header::{Builder, current};
///
/// let (task, mut join) = Builder::new().spawn_with(async { current() }, drop);
/// let id = task.id();
/// assert_eq!(current(), None);
/// task.run();
/// assert_eq!(join.try_join().unwrap().unwrap(), Some(id));
/// ```
#[inline]
pub fn current() -> Option<Id> {
    NonZeroUsize::new(word() & !YIELDED).map(Id::at)
}

/// Requests another poll of the task that this thread polls, if `waker` wakes that task. Returns
/// whether `waker` does.
///
/// After `true`, the poll should return `Pending`. The task's run then ends as [`Ran::Notified`]:
/// the runner queues the task again, usually behind others. So a future yields without a wake.
/// After `false`, `waker` belongs to something else that is polled on this thread, as in `join_all`
/// or `block_on`: call `waker.wake_by_ref()` instead.
///
/// Costs a load and a store of a thread-local, and no read-modify-write. The task's next start
/// costs no read-modify-write either, unless the task is woken meanwhile.
///
/// ```
/// use std::{future::poll_fn, task::Poll};
/// use task_header::{Ran, spawn, yield_now};
///
/// let mut yielded = false;
/// let future = poll_fn(move |cx| {
///     if std::mem::replace(&mut yielded, true) {
///         return Poll::Ready(());
///     }
///     if !yield_now(cx.waker()) {
///         cx.waker().wake_by_ref();
///     }
///     Poll::Pending
/// });
/// let (task, join) = spawn(future, |_| unreachable!("it is not woken"));
/// let Ran::Notified(task) = task.run() else { panic!() };
/// assert!(matches!(task.run(), Ran::Complete));
/// assert!(join.is_finished());
/// ```
///
/// [`Ran::Notified`]: crate::Ran::Notified
#[inline]
pub fn yield_now(waker: &Waker) -> bool {
    let wakes = current().is_some_and(|task| task.is_woken_by(waker));
    if wakes {
        set(word() | YIELDED);
    }
    wakes
}

/// Runs `f` as if outside of all tasks: [`current`] returns `None` until `f` runs a task. After
/// `f`, the task that called this function is the current one again.
///
/// Pass the loop of a worker as `f` if the loop may be called in a task and calls
/// [`run_in_loop`](crate::Notified::run_in_loop). Costs a load and two stores of a thread-local.
///
/// ```
/// use task_header::{Builder, current, without_current};
///
/// let hides = async { (without_current(current), current().is_some()) };
/// let (task, mut join) = Builder::new().spawn_with(hides, drop);
/// task.run();
/// assert_eq!(join.try_join().unwrap().unwrap(), (None, true));
/// ```
#[inline]
pub fn without_current<R>(f: impl FnOnce() -> R) -> R {
    let _outer = Outer::new();
    set(0);
    f()
}

/// The word of an outer task. The drop of this value puts the word back.
pub(crate) struct Outer(usize);

impl Outer {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self(word())
    }
}

impl Drop for Outer {
    #[inline(always)]
    fn drop(&mut self) {
        set(self.0);
    }
}

/// Runs `f`, a drop of a part of the task `id`, with that task as the current one.
#[inline]
pub(crate) fn within<R>(id: Id, f: impl FnOnce() -> R) -> R {
    let _outer = Outer::new();
    enter(id);
    f()
}

/// Makes `id` the current task.
#[inline(always)]
pub(crate) fn enter(id: Id) {
    set(id.address().get());
}

/// Leaves the current task. Returns whether it has yielded.
#[inline(always)]
pub(crate) fn leave() -> bool {
    let has_yielded = word() & YIELDED != 0;
    set(0);
    has_yielded
}

#[inline(always)]
fn word() -> usize {
    // Only a model's thread-locals are ever gone.
    CURRENT.try_with(Cell::get).unwrap_or(0)
}

#[inline(always)]
fn set(word: usize) {
    // As in `word`.
    let _ = CURRENT.try_with(|current| current.set(word));
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::{current, without_current, yield_now};
    use crate::{Builder, Id, Notified, Ran, Schedule, WakeKind, spawn};
    use std::{
        future::{Future, pending, poll_fn},
        pin::Pin,
        sync::mpsc::{Sender, channel},
        task::{Context, Poll, Waker},
    };

    /// A scheduler of tasks that are never woken.
    struct Nowhere;

    impl Schedule for Nowhere {
        fn schedule(_: Notified<Self>, _: WakeKind) {
            unreachable!("a yield is not a wake");
        }
    }

    /// Asserts that `yield_now` finds the current task, and returns `Pending`.
    fn yields(cx: &Context<'_>) -> Poll<()> {
        assert!(yield_now(cx.waker()));
        Poll::Pending
    }

    /// Logs the current task when it is dropped.
    struct LogsDrop(Sender<Option<Id>>);

    impl Drop for LogsDrop {
        fn drop(&mut self) {
            self.0.send(current()).unwrap();
        }
    }

    /// A future that is ready at once, and whose drop panics.
    struct PanicsInDrop(Option<LogsDrop>);

    impl Future for PanicsInDrop {
        type Output = LogsDrop;

        fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<LogsDrop> {
            Poll::Ready(self.0.take().unwrap())
        }
    }

    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }

    #[test]
    fn current_in_a_nested_run_is_the_inner_task() {
        let (inner, mut inner_join) = Builder::new().spawn_with(async { current() }, drop);
        let inner_id = inner.id();
        let outer = async move {
            let before = current();
            let _ = inner.run();
            (before, current())
        };
        let (outer, mut outer_join) = Builder::new().spawn_with(outer, drop);
        let outer_id = outer.id();
        let _ = outer.run();
        assert_eq!(inner_join.try_join().unwrap().unwrap(), Some(inner_id));
        let (before, after) = outer_join.try_join().unwrap().unwrap();
        assert_eq!((before, after), (Some(outer_id), Some(outer_id)));
        assert_eq!(current(), None);
    }

    #[test]
    fn current_after_a_panic_is_the_task_around() {
        let (task, mut join) = spawn(async { panic!("on purpose") }, drop);
        let _ = task.run();
        assert!(join.try_join().unwrap().unwrap_err().is_panic());
        assert_eq!(current(), None);
    }

    #[test]
    fn current_in_the_drop_of_a_cancelled_future_is_its_task() {
        let (sender, receiver) = channel();
        let logs = LogsDrop(sender);
        let (task, _join) = Builder::new().spawn_with(
            async move {
                let _logs = logs;
                pending::<()>().await;
            },
            drop,
        );
        let id = task.id();
        drop(task);
        assert_eq!(receiver.recv().unwrap(), Some(id));
    }

    // Each of the cases below fails without its `within` in `complete`.
    #[test]
    fn current_in_the_drop_of_an_output_is_its_task() {
        let (sender, receiver) = channel();
        let outer = move || {
            let logs = || LogsDrop(sender.clone());
            let in_task = |id| assert_eq!(receiver.recv().unwrap(), Some(id));

            // The run drops the output, as there is no handle.
            let output = logs();
            let task = Builder::new().spawn_detached(async { output }, Nowhere);
            let id = task.id();
            let _ = task.run();
            in_task(id);

            // The handle drops the output, or the payload of a panic.
            let [output, payload] = [logs(), logs()];
            let ends = spawn(async { output }, drop);
            let panics = spawn(async { std::panic::panic_any(payload) }, drop);
            for (task, join) in [ends, panics] {
                let id = task.id();
                let _ = task.run();
                drop(join);
                in_task(id);
            }

            // The drop of the ready future panics, so the run drops the output.
            let future = PanicsInDrop(Some(logs()));
            let (task, mut join) = spawn(future, drop);
            let id = task.id();
            let _ = task.run();
            in_task(id);
            assert!(join.try_join().unwrap().is_err());
        };
        let (task, mut join) = spawn(
            async move {
                let before = current();
                outer();
                before == current()
            },
            drop,
        );
        let _ = task.run();
        assert!(join.try_join().unwrap().unwrap());
    }

    #[test]
    fn current_on_another_thread_is_none() {
        let elsewhere = async { std::thread::spawn(current).join().unwrap() };
        let (task, mut join) = spawn(elsewhere, drop);
        let _ = task.run();
        assert_eq!(join.try_join().unwrap().unwrap(), None);
    }

    // Fails if the run of an inner task loses the yield of the outer one.
    #[test]
    fn yield_before_a_nested_run_is_kept() {
        let (inner, _join) = spawn(pending::<()>(), drop);
        let mut inner = Some(inner);
        let outer = poll_fn(move |cx| {
            let pending = yields(cx);
            drop(inner.take().map(Notified::run));
            pending
        });
        let (outer, _join) = crate::new(outer, Nowhere);
        assert!(matches!(outer.run(), Ran::Notified(_)));
    }

    // Fails if a yield counts for a task that is not the innermost one.
    #[test]
    fn yield_by_the_waker_of_the_outer_task_is_refused() {
        let outer = poll_fn(|cx| {
            let waker = cx.waker().clone();
            let inner = async move { yield_now(&waker) };
            let (inner, mut join) = spawn(inner, drop);
            let _ = inner.run();
            assert!(!join.try_join().unwrap().unwrap());
            assert!(!yield_now(Waker::noop()));
            Poll::<()>::Pending
        });
        let (outer, _join) = spawn(outer, drop);
        assert!(matches!(outer.run(), Ran::Pending));
    }

    // Fails if the second yield of a poll is not recognised.
    #[test]
    fn two_yields_in_a_poll_are_one() {
        let twice = poll_fn(|cx| {
            let _ = yields(cx);
            assert!(current().is_some());
            yields(cx)
        });
        let (task, _join) = crate::new(twice, Nowhere);
        let Ran::Notified(task) = task.run() else {
            panic!("it has yielded");
        };
        assert!(matches!(task.run(), Ran::Notified(_)));
    }

    // Fails if a yield outside of the task's polls counts: the task would not be polled again.
    #[test]
    fn yield_after_the_poll_is_refused() {
        let (task, _join) = spawn(pending::<()>(), drop);
        let waker = task.waker();
        assert!(matches!(task.run(), Ran::Pending));
        assert!(!yield_now(&waker));
    }

    // Fails if a task that has yielded goes on although it was aborted in that poll.
    #[test]
    fn abort_ends_a_task_that_yields_in_the_same_poll() {
        let (sender, receiver) = channel::<crate::AbortHandle>();
        let future = poll_fn(move |cx| {
            receiver.recv().unwrap().abort();
            yields(cx)
        });
        let (task, join) = crate::new(future, Nowhere);
        sender.send(join.abort_handle()).unwrap();
        assert!(matches!(task.run(), Ran::Complete));
        assert!(join.is_finished());
    }

    // Fails if a loop inside a task leaves the outer task without its id or its yield.
    #[test]
    fn loop_in_a_task_gives_the_task_back() {
        let outer = poll_fn(|cx| {
            let (before, pending) = (current(), yields(cx));
            without_current(|| {
                assert_eq!(current(), None);
                let (inner, _join) = spawn(async { assert!(current().is_some()) }, drop);
                assert!(matches!(inner.run_in_loop(|| None), Ran::Complete));
                assert_eq!(current(), None);
            });
            assert_eq!(current(), before);
            pending
        });
        let (outer, _join) = crate::new(outer, Nowhere);
        assert!(matches!(outer.run(), Ran::Notified(_)));
    }
}
