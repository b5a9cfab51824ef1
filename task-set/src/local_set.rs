//! A queue and a list of thread-local tasks, as one future.
//!
//! # Actors
//!
//! | actor | what it is |
//! |---|---|
//! | poller | a call that polls the set: of `run_until`, `block_until`, `try_run` or `cancel_all` |
//! | poller by hand | all calls of `poll_tasks`, and polls of the set as a future, as one poller |
//! | last poller | the poller that registered its waker last (`last_poller`); the waker is in `last_waker` |
//! | other pollers | the pollers that registered earlier, each with its waker in `other_wakers` |
//! | waker of a task | wakes a task of the set, on any thread |
//!
//! A poller *registers* its waker if it finds no ready task. Then it is *waiting*: its call has
//! returned `Pending`, or blocks the thread. A poller is *woken* once its waker was called.
//!
//! # Fields
//!
//! | field | who may touch it |
//! |---|---|
//! | `owned`, `queue`, `last_poller`, `other_wakers`, `by_hand_waits` | the set's thread |
//! | `last_waker` | the set's thread registers in it, any thread wakes it |
//!
//! # Rules
//!
//! 1. A task that is woken on the set's thread while the set is polled goes to `queue`. Any other
//!    woken task goes to the list's stack. The first push after the set has last checked the stack
//!    wakes `last_waker`. A task that is spawned while the set is not polled goes to `queue` and
//!    wakes `last_waker`.
//! 2. The set returns `Pending` only if it has registered its waker and then found `queue` and the
//!    stack empty, or has woken itself. So a task that becomes ready after this check wakes the
//!    set.
//! 3. No user code runs while `queue` or `other_wakers` is borrowed.
//! 4. The set's drop waits for the tasks that other threads have woken and not yet sent. Between a
//!    wake and its send, only this crate's code runs.
//! 5. No waiting poller is forgotten: each is `last_poller`, is in `other_wakers`, or was woken.
//!    - A registration that displaces the last poller's waker puts that waker into `other_wakers`.
//!      If a wake has taken the waker out before, its poller was woken and polls again anyway.
//!    - When the last poller ends, all other pollers are woken. Each of them registers and checks
//!      the queue, so the set has a last poller again. The end of a poller by hand is not known.
//!    - The clone or the drop of a waker may poll the set, as another poller. If the clone does so,
//!      a registration is in progress in the cell, and the cell wakes both pollers. The drop comes
//!      only when the registration is complete, so the other poller displaces the registered waker
//!      as usual.
//!    - A poller by hand also waits for the set to become empty. Once its waker was displaced, no
//!      wake of a task wakes it, nor does a wake in another poll. So each other poller that finds
//!      the set empty, or ends while the set is empty, wakes the poller by hand. The exception is a
//!      poller by hand whose last poll found the set empty: it waits for new tasks alone, and
//!      `by_hand_waits` is false.
//! 6. A task's drop may spawn into its set, so `cancel_all` goes on until no task is left.
//! 7. At every 61st call of `next_ready` the tasks of the stack go behind those of `queue`. Without
//!    this rule, a task that always yields would always be in `queue`, and the set would never take
//!    a task from the stack. The stack has the tasks that a timer, a socket or another thread has
//!    woken.
use crate::gate::Gate;
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    iter,
    mem::{ManuallyDrop, take},
    panic::resume_unwind,
    pin::{Pin, pin},
    ptr,
    task::{Context, Poll, Waker},
};
use sync_shim::{
    panics::{catch, contain},
    sync::Arc,
};
use task_header::{
    Builder, Details, JoinHandle, LocalNotified, LocalOwned, LocalRan, OwnerId, ScheduleLocal,
    WakeKind,
};
use waker_vtable::{WakeRef, WakerCell, from_arc};

/// The number of tasks that one poll of the set runs before other futures of the thread get their
/// turn.
const TASKS_PER_POLL: usize = 61;
/// The number of calls of `next_ready` from one that takes all tasks of the stack to the next
/// (rule 7).
const STACK_INTERVAL: usize = 61;

sync_shim::thread_local! {
    /// The innermost poll of a set on this thread, or null.
    static INNERMOST: Cell<*const SetPoll> = const { Cell::new(ptr::null()) };
}

/// How the run of a task ended, in [`LocalSet::try_run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// The task has ended.
    Complete,
    /// The task goes on: it waits, or is to be run again.
    Pending,
}

/// One poll of a set by this thread; polls may nest.
struct SetPoll {
    /// `None` once the set was dropped in its own poll.
    owner: Cell<Option<OwnerId>>,
    queue: *const RefCell<VecDeque<Task>>,
    /// The poll of any set within which this one began, or null.
    outer: *const SetPoll,
}

/// The gate at which a poller blocks its thread until a task of the set may be ready.
struct BlockingWait {
    gate: Arc<Gate>,
    waker: Waker,
    /// The number of early wakes in a row: see [`Gate::pass`].
    early: u32,
}

impl BlockingWait {
    fn new() -> Self {
        let gate = Gate::new();
        let waker = from_arc(gate.clone());
        Self {
            gate,
            waker,
            early: 0,
        }
    }
}

/// The address of a [`Poller`], for comparison only.
type PollerId = *const ();

const BY_HAND: PollerId = ptr::null();

type Task = LocalNotified<SetScheduler>;

/// The scheduler of a set's tasks. A task's owner id tells which set the task belongs to.
struct SetScheduler;

impl ScheduleLocal for SetScheduler {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        let innermost = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: `INNERMOST` has the pointer only while the poll borrows the set.
        let innermost = unsafe { innermost.as_ref() };
        if let Some(poll) = innermost.filter(|poll| poll.owner.get() == Some(task.owner_id())) {
            // SAFETY: as above.
            let queue = unsafe { &*poll.queue };
            queue.borrow_mut().push_back(task);
        } else {
            task.send();
        }
    }
}

/// The cell of the last poller's waker, from which any thread may wake that poller.
struct LastWaker(WakerCell);

impl WakeRef for LastWaker {
    fn wake(&self) {
        self.0.wake();
    }
}

impl Drop for LastWaker {
    /// Contains a panic of the waker's drop.
    fn drop(&mut self) {
        let waker = self.0.take();
        contain(|| drop(waker));
    }
}

/// A set of thread-local tasks, and the future that runs them.
///
/// The tasks' futures need not be `Send`. The tasks run while the set is polled.
/// [`run_until`](Self::run_until) polls the set until another future is ready. The set itself is a
/// future that is ready when all tasks are done. The set polls up to 61 tasks at a time, so that
/// other futures of the thread get their turn. The set's drop cancels the remaining tasks at once.
/// If another thread is in the middle of a wake of such a task, the drop waits until that wake is
/// done. The set allocates a block of 1 KiB with its first task, and more from the 125th (on 64-bit
/// targets): see [`Owned`](task_header::Owned).
///
/// ```
/// use std::{cell::Cell, pin::pin, rc::Rc, task::{Context, Poll, Waker}};
/// use task_set::LocalSet;
///
/// let set = LocalSet::new();
/// let count = Rc::new(Cell::new(0));
/// let tasks: Vec<_> = (0..3)
///     .map(|n| {
///         let count = count.clone();
///         set.spawn(async move { count.set(count.get() + n) })
///     })
///     .collect();
/// let all = set.run_until(async {
///     for task in tasks {
///         task.await.unwrap();
///     }
/// });
/// # let mut all = pin!(all);
/// # while all.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
/// assert_eq!(count.get(), 3);
/// ```
///
/// A set stays on its thread:
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// send(task_set::LocalSet::new());
/// ```
pub struct LocalSet {
    /// Empty when the list is dropped.
    queue: RefCell<VecDeque<Task>>,
    owned: ManuallyDrop<LocalOwned<SetScheduler>>,
    last_waker: Arc<LastWaker>,
    last_poller: Cell<PollerId>,
    /// The number of calls of `next_ready` since the stack's tasks last went to the queue (rule 7).
    calls: Cell<usize>,
    other_wakers: RefCell<Vec<(PollerId, Waker)>>,
    /// Whether the last poll by hand found tasks, and the set has not been empty since (rule 5).
    by_hand_waits: Cell<bool>,
}

impl LocalSet {
    /// Makes an empty set.
    pub fn new() -> Self {
        let last_waker = Arc::new(LastWaker(WakerCell::new()));
        Self {
            queue: RefCell::default(),
            owned: ManuallyDrop::new(LocalOwned::new(from_arc(last_waker.clone()))),
            last_waker,
            last_poller: Cell::new(BY_HAND),
            calls: Cell::new(0),
            other_wakers: RefCell::default(),
            by_hand_waits: Cell::new(false),
        }
    }

    /// Spawns a task that runs while the set is polled.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_as(Builder::new(), future)
    }

    /// Spawns a task without a join handle.
    pub fn spawn_detached<F>(&self, future: F)
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.queue_spawned(self.owned.spawn_detached(future, SetScheduler));
    }

    /// Spawns a task whose future and output need not be `'static`. [`scope`](crate::scope) is the
    /// safe way.
    ///
    /// # Safety
    /// Only the set's polls, [`cancel_all`](Self::cancel_all) and the set's drop poll and drop the
    /// future; they also drop its output, unless the handle has it. The caller ensures that all
    /// values that the future and the output borrow are alive whenever one of these runs. So either
    /// the task ends before the borrowed values do, or the set is neither used nor dropped after
    /// these values have ended.
    pub unsafe fn spawn_unchecked<F: Future>(&self, future: F) -> JoinHandle<F::Output> {
        // SAFETY: the caller promises what the list demands, and only this set uses the list.
        let (task, join) = unsafe { self.owned.spawn_unchecked(future, SetScheduler) };
        self.queue_spawned(task);
        join
    }

    /// Spawns a task with a builder's details.
    pub fn spawn_as<D, F>(&self, builder: Builder<D>, future: F) -> JoinHandle<F::Output>
    where
        D: Details,
        F: Future + 'static,
        F::Output: 'static,
    {
        let (task, join) = builder.spawn_local(&self.owned, future, SetScheduler);
        self.queue_spawned(task);
        join
    }

    /// Queues a task that was just spawned (rule 1).
    fn queue_spawned(&self, task: Task) {
        self.queue.borrow_mut().push_back(task);
        if !self.is_polled() {
            self.last_waker.0.wake();
        }
    }

    fn is_polled(&self) -> bool {
        self.polls().next().is_some()
    }

    /// Returns the polls of this set that are in progress on this thread.
    fn polls(&self) -> impl Iterator<Item = &SetPoll> {
        let owner = self.owned.owner_id();
        let mut next = INNERMOST.with(Cell::get);
        let polls = iter::from_fn(move || {
            // SAFETY: `INNERMOST` has the pointer only while the poll borrows the set, and outer
            // polls last longer.
            let poll = unsafe { next.as_ref() }?;
            next = poll.outer;
            Some(poll)
        });
        polls.filter(move |poll| poll.owner.get() == Some(owner))
    }

    /// Aborts all tasks. They are dropped in the set's next polls, or with the set.
    pub fn abort_all(&self) {
        self.owned.abort_all();
        if !self.is_polled() {
            self.last_waker.0.wake();
        }
    }

    /// Drops the futures of all tasks at once, and those of the tasks that these drops spawn.
    ///
    /// The set's drop does the same. Call this earlier if the futures' drops need a context that is
    /// gone when the set is dropped. The call waits for threads that are in the middle of a wake,
    /// as the set's drop does.
    ///
    /// ```
    /// use std::{future::pending, rc::Rc};
    ///
    /// let set = task_set::LocalSet::new();
    /// let held = Rc::new(());
    /// set.spawn_detached({
    ///     let held = held.clone();
    ///     async move {
    ///         pending::<()>().await;
    ///         drop(held);
    ///     }
    /// });
    /// set.cancel_all();
    /// assert!(set.is_empty() && Rc::strong_count(&held) == 1);
    /// ```
    ///
    /// # Panics
    /// If the call is made in a poll of this set: the current task can't be dropped.
    pub fn cancel_all(&self) {
        assert!(
            !self.is_polled(),
            "cancel_all was called in a poll of its own set"
        );
        if self.is_empty() {
            return;
        }
        let poller = Poller(self);
        self.cancel_all_as(poller.id());
        // The last poller may be waiting until the set is empty. The drop of `poller` wakes the
        // poller by hand.
        contain(|| self.last_waker.0.wake());
    }

    /// Wakes the poller by hand if it waits until the set is empty (rule 5). Returns whether it
    /// did.
    fn wake_by_hand(&self) -> bool {
        if !self.by_hand_waits.replace(false) {
            return false;
        }
        if self.last_poller.get() == BY_HAND {
            contain(|| self.last_waker.0.wake());
        } else if let Some((_, waker)) = self.take_other(BY_HAND) {
            contain(|| waker.wake());
        }
        true
    }

    /// Cancels all tasks until none is left (rule 6).
    fn cancel_all_as(&self, poller: PollerId) {
        self.in_poll(|| {
            let mut wait = None;
            loop {
                self.owned.abort_all();
                while let Some(task) = self.next_ready() {
                    if let Some(BlockingWait { early, .. }) = &mut wait {
                        *early = 0;
                    }
                    let cancelled = self.owned.cancel(task);
                    debug_assert!(cancelled.is_ok(), "only its own tasks get here");
                }
                if self.is_empty() {
                    return;
                }
                // Other threads have woken the tasks that are left, and not yet sent them (rule 4).
                self.wait(poller, &mut wait);
            }
        });
    }

    /// Runs tasks on this thread until `done` returns true, and blocks the thread while no task is
    /// ready.
    pub(crate) fn block_until(&self, done: impl Fn() -> bool) {
        let poller = Poller(self);
        self.in_poll(|| {
            let mut wait = None;
            while !done() {
                let Some(task) = self.next_ready() else {
                    self.wait(poller.id(), &mut wait);
                    continue;
                };
                if let Some(BlockingWait { early, .. }) = &mut wait {
                    *early = 0;
                }
                if let LocalRan::Notified(again) = self.owned.run(task) {
                    self.queue.borrow_mut().push_back(again);
                }
            }
        });
    }

    /// Blocks the thread until a task of the set may be ready (rule 2).
    fn wait(&self, poller: PollerId, wait: &mut Option<BlockingWait>) {
        let BlockingWait { gate, waker, early } = wait.get_or_insert_with(BlockingWait::new);
        // The clone of a gate's waker does not panic. So if the call panics, a waker that is no
        // longer registered has panicked, and the gate's waker is registered.
        contain(|| self.register(poller, waker));
        if self.queue.borrow().is_empty() && !self.owned.has_received() {
            gate.pass(early);
        }
    }

    /// Returns the number of tasks that are not done.
    pub fn len(&self) -> usize {
        self.owned.len()
    }

    /// Returns whether all tasks are done.
    pub fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    /// Runs the tasks until `future` is ready, and returns its output.
    ///
    /// Several places may poll a set in turn. The wake of a task wakes the place that polled last.
    /// When the poller of that place ends, all other places are woken.
    ///
    /// # Panics
    /// If `future` panics, or if a waker panics when it is registered: in its clone, in its wake,
    /// or in the drop of the waker that it replaces. A panic of a task goes to the task's handle.
    pub async fn run_until<F: Future>(&self, future: F) -> F::Output {
        let poller = Poller(self);
        // The future's drop may spawn or wake tasks. So it comes before the drop of `poller`, which
        // wakes the other pollers.
        let mut future = pin!(future);
        poll_fn(|cx| {
            if let Poll::Ready(output) = self.in_poll(|| future.as_mut().poll(cx)) {
                return Poll::Ready(output);
            }
            // If a task makes the future ready, the task also wakes the future's waker, which is
            // the waker of this call. So it does not matter whether any task is left.
            let _ = self.poll_tasks_as(poller.id(), cx);
            Poll::Pending
        })
        .await
    }

    /// Runs up to 61 ready tasks. Returns `Ready` when the set has no task left.
    ///
    /// After 61 tasks the call wakes the waker of `cx`, as more tasks may be ready. It is for a set
    /// that one place polls by hand: if two places do so, only the place that polled last is woken.
    ///
    /// # Panics
    /// If a waker panics when it is registered: in its clone, in its wake, or in the drop of the
    /// waker that it replaces. A panic of a task goes to the task's handle.
    pub fn poll_tasks(&self, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.poll_tasks_as(BY_HAND, cx);
        self.by_hand_waits.set(polled.is_pending());
        polled
    }

    fn poll_tasks_as(&self, poller: PollerId, cx: &mut Context<'_>) -> Poll<()> {
        self.in_poll(|| {
            for _ in 0..TASKS_PER_POLL {
                let Some(task) = self.next_ready_or_register(poller, cx.waker()) else {
                    if !self.is_empty() {
                        return Poll::Pending;
                    }
                    if poller != BY_HAND && self.wake_by_hand() {
                        continue; // The waker may have spawned a task.
                    }
                    return Poll::Ready(());
                };
                if let LocalRan::Notified(again) = self.owned.run(task) {
                    self.queue.borrow_mut().push_back(again);
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// Runs one ready task. Returns `None` if no task is ready.
    ///
    /// The call registers no waker: nothing tells the caller when a task is ready later. If ready
    /// tasks are left, the call wakes the set's last poller, if there is one. If no task is left,
    /// the call wakes the place that waits for that in [`poll_tasks`](Self::poll_tasks).
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc};
    /// use task_set::{LocalSet, Ran};
    ///
    /// let (set, turns) = (LocalSet::new(), Rc::new(Cell::new(0)));
    /// set.spawn_detached({
    ///     let turns = turns.clone();
    ///     std::future::poll_fn(move |cx| {
    ///         turns.set(turns.get() + 1);
    ///         cx.waker().wake_by_ref();
    ///         if turns.get() < 3 { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    ///     })
    /// });
    /// assert_eq!(set.try_run(), Some(Ran::Pending));
    /// assert_eq!(turns.get(), 1);
    /// while set.try_run() == Some(Ran::Pending) {}
    /// assert_eq!((turns.get(), set.try_run()), (3, None));
    /// ```
    pub fn try_run(&self) -> Option<Ran> {
        let _poller = Poller(self);
        self.in_poll(|| match self.owned.run(self.next_ready()?) {
            LocalRan::Complete => Some(Ran::Complete),
            // `NotOwned` does not occur: only the set's own tasks get here.
            LocalRan::Pending | LocalRan::NotOwned(_) => Some(Ran::Pending),
            LocalRan::Notified(again) => {
                self.queue.borrow_mut().push_back(again);
                Some(Ran::Pending)
            }
        })
    }

    /// Returns the next ready task, or registers the waker (rule 2).
    fn next_ready_or_register(&self, poller: PollerId, waker: &Waker) -> Option<Task> {
        self.next_ready().or_else(|| {
            self.register(poller, waker);
            self.next_ready()
        })
    }

    /// Registers the waker of the poller, which is then the last one (rule 5).
    fn register(&self, poller: PollerId, waker: &Waker) {
        let last = self.last_poller.replace(poller);
        let mut own = None;
        if last != poller {
            let displaced = self.last_waker.0.take().map(|waker| (last, waker));
            self.other_wakers.borrow_mut().extend(displaced);
            own = self.take_other(poller);
        }
        let registered = catch(|| self.last_waker.0.register(waker));
        // The drop of the poller's earlier waker may poll the set.
        contain(|| drop(own));
        if let Err(payload) = registered {
            // The poller may not be registered, so it does not stand for the others.
            self.wake_others();
            resume_unwind(payload);
        }
    }

    /// Wakes all pollers but the last.
    fn wake_others(&self) {
        let others = take(&mut *self.other_wakers.borrow_mut());
        for (_, waker) in others {
            contain(|| waker.wake());
        }
    }

    /// Takes the waker of a poller that is not the last.
    fn take_other(&self, poller: PollerId) -> Option<(PollerId, Waker)> {
        let mut others = self.other_wakers.borrow_mut();
        let index = others.iter().position(|(other, _)| *other == poller)?;
        Some(others.swap_remove(index))
    }

    /// Takes the next ready task: first from the queue, then from the stack of other threads'
    /// wakes (rule 7).
    fn next_ready(&self) -> Option<Task> {
        let calls = self.calls.get() + 1;
        self.calls.set(calls % STACK_INTERVAL);
        if calls == STACK_INTERVAL {
            while let Some(task) = self.owned.receive() {
                self.queue.borrow_mut().push_back(task);
            }
        }
        let next = self.queue.borrow_mut().pop_front();
        next.or_else(|| self.owned.receive())
    }

    /// Runs `f` as a poll of this set: a task of the set that is woken in `f` goes to the queue.
    fn in_poll<R>(&self, f: impl FnOnce() -> R) -> R {
        struct RestoreOuter(*const SetPoll);
        impl Drop for RestoreOuter {
            fn drop(&mut self) {
                INNERMOST.with(|innermost| innermost.set(self.0));
            }
        }
        let poll = SetPoll {
            owner: Cell::new(Some(self.owned.owner_id())),
            queue: &raw const self.queue,
            outer: INNERMOST.with(Cell::get),
        };
        INNERMOST.with(|innermost| innermost.set(&raw const poll));
        let _restore = RestoreOuter(poll.outer);
        f()
    }
}

/// A poller: exists until the call that polls the set ends. It does not move once it has polled, as
/// its address is its id.
struct Poller<'a>(&'a LocalSet);

impl Poller<'_> {
    fn id(&self) -> PollerId {
        ptr::from_ref(self).cast()
    }
}

impl Drop for Poller<'_> {
    /// Wakes the other pollers (rule 5). A poller that ends, or panics, leaves two things to them:
    /// it does not poll the tasks that its future has woken, and it does not report that the set is
    /// empty.
    fn drop(&mut self) {
        let set = self.0;
        if set.last_poller.get() == self.id() {
            set.last_poller.set(BY_HAND);
            // The wakes of the others below replace a wake of this poller.
            let own = set.last_waker.0.take();
            contain(|| drop(own));
            set.wake_others();
            return;
        }
        let own = set.take_other(self.id());
        contain(|| drop(own));
        if !set.queue.borrow().is_empty() || set.owned.has_received() {
            contain(|| set.last_waker.0.wake());
        } else if set.is_empty() {
            set.wake_by_hand();
        }
    }
}

impl Default for LocalSet {
    fn default() -> Self {
        Self::new()
    }
}

impl Future for LocalSet {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_tasks(cx)
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        if self.is_polled() {
            // `process::exit` drops thread-locals in the middle of a poll, whose frames never
            // return. That poll still uses the list, so the list is leaked. The queue is dropped:
            // without an owner, no poll leads a woken task to the queue.
            for poll in self.polls() {
                poll.owner.set(None);
            }
            return;
        }
        self.cancel_all_as(BY_HAND);
        // SAFETY: the list is dropped once, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.owned) };
        // The wakers of pollers by hand, and of pollers that were forgotten.
        for (_, waker) in take(self.other_wakers.get_mut()) {
            contain(|| drop(waker));
        }
    }
}

impl fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSet")
            .field("len", &self.len())
            .finish()
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;

#[cfg(all(test, not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(test)]
mod models;
