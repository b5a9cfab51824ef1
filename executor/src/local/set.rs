//! Tasks that stay on their thread: `LocalSet`.
//!
//! A set is polled as one future. Yet each poll of one of its tasks has a budget of its own, and
//! takes nothing from the budget of the task that polls the set. That budget is as large as the
//! current runtime says, or else the default.
//!
//! The future that is awaited with the tasks has the budget of the task that polls the set. With
//! more than that, a loop of short awaits would never yield to the other tasks of the runtime. Such
//! a future has a budget of its own only where there is no budget around it, so that it yields to
//! the set's tasks.
use crate::{
    JoinHandle, Runtime, UnhandledPanic,
    current_thread::{Progress, TURN},
    local::LocalTasks,
    observe::{
        listed_future::{Listing, Stage},
        trace::{self, TaskKind},
    },
    scope::{self, In},
};
use pin_project_lite::pin_project;
use std::{
    borrow::Cow,
    cell::OnceCell,
    fmt,
    future::Future,
    mem,
    panic::Location,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};
use task_set::Ran;

type Tasks = Rc<LocalTasks>;

/// Tasks of one thread, whose futures need not be `Send`, and the future that runs them.
///
/// The tasks run in a runtime's `block_on`, while the set itself or a future in
/// [`run_until`](Self::run_until) is awaited. The set's drop cancels the tasks that are left.
///
/// The tasks' futures are dropped in the set, too: their drops may call [`spawn_local`], but not
/// [`block_in_place`](crate::block_in_place()). A task that they spawn during the set's own drop is
/// cancelled.
///
/// ```
/// use std::rc::Rc;
///
/// let runtime = selvedge_executor::Runtime::new()?;
/// let set = selvedge_executor::LocalSet::new();
/// let seven = runtime.block_on(set.run_until(async {
///     let seven = Rc::new(7);
///     *selvedge_executor::spawn_local(async move { seven }).await.unwrap()
/// }));
/// assert_eq!(seven, 7);
/// assert!(set.is_empty());
///
/// set.spawn_local(std::future::pending::<()>());
/// assert_eq!(set.len(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
pub struct LocalSet {
    tasks: Tasks,
    id: OnceCell<crate::worker::identity::RuntimeId>,
}

impl LocalSet {
    /// Makes an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a task that runs while the set is polled.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: 'static> + 'static,
    {
        spawn_in(&self.tasks, None, future, Location::caller())
    }

    /// Runs the tasks until `future` is ready, and returns its output.
    ///
    /// The operations of `future` are charged to the budget of the task that awaits this call.
    ///
    /// # Panics
    /// If the future waits, and a task's panic has [ended the set](Self::unhandled_panic).
    pub fn run_until<F: Future>(&self, future: F) -> impl Future<Output = F::Output> {
        RunUntil {
            set: self,
            until: Some(self.tasks.run_until(Awaited { future })),
        }
    }

    /// Blocks this thread on a future, in a runtime, and runs the set's tasks meanwhile.
    ///
    /// # Panics
    /// As [`Handle::block_on`](crate::Handle::block_on).
    #[track_caller]
    pub fn block_on<F: Future>(&self, runtime: &Runtime, future: F) -> F::Output {
        runtime.block_on(self.run_until(future))
    }

    /// Returns the number of tasks that have not ended.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether all tasks have ended.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Does the same as [`spawn_local`](Self::spawn_local), for a task with a name.
    #[track_caller]
    pub(crate) fn spawn_named<F>(&self, name: Cow<'static, str>, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: 'static> + 'static,
    {
        spawn_in(&self.tasks, Some(name), future, Location::caller())
    }

    /// Lets [`spawn_local`](crate::spawn_local()) of this thread spawn into this set, until the
    /// guard is dropped.
    ///
    /// The tasks run when this set is next polled. While this thread polls another set, the
    /// thread's spawns go into that other set. If the guard outlives the set, tasks that are
    /// spawned after the set's drop are cancelled at once.
    ///
    /// ```
    /// use selvedge_executor::{Runtime, LocalSet, spawn_local};
    ///
    /// let (runtime, set) = (Runtime::new()?, LocalSet::new());
    /// let task = {
    ///     let _entered = set.enter();
    ///     spawn_local(async { 7 })
    /// };
    /// assert_eq!(set.block_on(&runtime, task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> LocalEnterGuard {
        LocalEnterGuard(self.entry())
    }

    /// Enters the scope of spawns into this set.
    pub(crate) fn entry(&self) -> scope::Entry {
        scope::Entry::new(In::LocalGuard(Rc::clone(&self.tasks)))
    }

    /// Returns the set's id, which no runtime and no other set of this process has or had.
    ///
    /// ```
    /// use selvedge_executor::LocalSet;
    ///
    /// let (set, other) = (LocalSet::new(), LocalSet::new());
    /// assert_eq!(set.id(), set.id());
    /// assert_ne!(set.id(), other.id());
    /// ```
    pub fn id(&self) -> crate::worker::identity::RuntimeId {
        *self
            .id
            .get_or_init(crate::worker::identity::RuntimeId::next)
    }

    /// Sets the policy for the panics of tasks. [`UnhandledPanic::Ignore`] by default.
    ///
    /// With [`UnhandledPanic::Shutdown`] a panic in the poll of a task cancels all other tasks. The
    /// poll of the set then panics, and so does each later poll. A poll of
    /// [`run_until`](Self::run_until) panics if its future waits. In any case the panic also goes
    /// to the join handle.
    ///
    /// ```
    /// use selvedge_executor::{LocalSet, Runtime, UnhandledPanic};
    /// use std::{future::pending, panic::{AssertUnwindSafe, catch_unwind}};
    ///
    /// let (runtime, mut set) = (Runtime::new()?, LocalSet::new());
    /// set.unhandled_panic(UnhandledPanic::Shutdown);
    /// let bystander = set.spawn_local(pending::<()>());
    /// set.spawn_local(async { panic!("oh no") });
    /// let waits = AssertUnwindSafe(|| set.block_on(&runtime, pending::<()>()));
    /// assert!(catch_unwind(waits).is_err());
    /// assert!(runtime.block_on(bystander).unwrap_err().is_cancelled());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn unhandled_panic(&mut self, policy: UnhandledPanic) -> &mut Self {
        let ends = policy == UnhandledPanic::Shutdown;
        self.tasks.ends_by_panic.set(ends);
        self
    }

    /// Panics if a panic has ended the set.
    fn panic_if_ended(&self) {
        if self.tasks.has_panicked.get() {
            if !scope::polls(&self.tasks) {
                self.polling(|| self.tasks.cancel_all());
            }
            panic!("a task of this LocalSet panicked, which its policy says ends the set");
        }
    }

    /// Runs ready tasks until none is left, but at most [`TURN`] of them. With `one`, stops once a
    /// task has ended.
    pub(crate) fn run_ready(&self, one: bool) -> Progress {
        let mut progress = Progress::None;
        for _ in 0..TURN {
            let ran = self.polling(|| self.tasks.try_run());
            self.panic_if_ended();
            match ran {
                None => break,
                Some(Ran::Complete) if one => return Progress::Ended,
                Some(_) => progress = Progress::Ran,
            }
        }
        progress
    }

    fn polling<R>(&self, f: impl FnOnce() -> R) -> R {
        scope::within(In::LocalSet(Rc::clone(&self.tasks)), f)
    }
}

/// While this guard lives, spawns of this thread go into a [`LocalSet`]. See [`LocalSet::enter`].
///
/// Guards may be dropped in any order.
///
/// ```
/// use selvedge_executor::{LocalEnterGuard, LocalSet, spawn_local};
///
/// let set = LocalSet::new();
/// let entered: LocalEnterGuard = set.enter();
/// spawn_local(async {});
/// drop(entered);
/// assert_eq!(set.len(), 1);
/// ```
#[must_use = "the thread leaves the set when this is dropped"]
pub struct LocalEnterGuard(#[expect(dead_code, reason = "held for its drop")] scope::Entry);

impl fmt::Debug for LocalEnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalEnterGuard")
    }
}

impl Future for LocalSet {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.polling(|| self.tasks.poll_tasks(cx));
        self.panic_if_ended();
        polled
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        self.tasks.is_over.set(true);
        // `process::exit` in a poll of this set may drop the set itself. The scope of that poll
        // then keeps the tasks alive for good.
        if !scope::polls(&self.tasks) {
            self.polling(|| self.tasks.cancel_left());
        }
    }
}

pin_project! {
    /// Future of [`LocalSet::run_until`]. The future's only place is in `until`. It is dropped
    /// there, in the set's scope: when it is ready, or in the drop of the `RunUntil`.
    struct RunUntil<'a, F> {
        set: &'a LocalSet,
        #[pin]
        until: Option<F>,
    }

    impl<F> PinnedDrop for RunUntil<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            this.set.polling(|| this.until.set(None));
        }
    }
}

impl<F: Future> Future for RunUntil<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let until = this
            .until
            .as_mut()
            .as_pin_mut()
            .expect("it was ready before");
        let polled = this.set.polling(|| until.poll(cx));
        match polled.is_pending() {
            true => this.set.panic_if_ended(),
            false => this.set.polling(|| this.until.set(None)),
        }
        polled
    }
}

pin_project! {
    /// Future whose polls each have a budget of their own.
    struct Budgeted<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Budgeted<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        poll_budgeted(self.project().future, cx)
    }
}

pin_project! {
    /// Future that is awaited with the tasks of a set.
    struct Awaited<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Awaited<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let future = self.project().future;
        match coop_budget::remaining() {
            Some(_) => future.poll(cx),
            None => poll_budgeted(future, cx),
        }
    }
}

fn poll_budgeted<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    coop_budget::Scope::own(scope::budget()).run(|| future.poll(cx))
}

pin_project! {
    /// Future of a task. It reports a panic of a poll to the task's set.
    struct Reporting<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Reporting<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        /// Dropped only by a panic.
        struct OnPanic;
        impl Drop for OnPanic {
            fn drop(&mut self) {
                trace::note_panic_here();
                // The scopes inside of the poll are left by now.
                if let Some(set) = scope::polled_set() {
                    set.panicked();
                }
            }
        }
        let on_panic = OnPanic;
        let polled = self.project().future.poll(cx);
        mem::forget(on_panic);
        polled
    }
}

impl fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSet")
            .field("len", &self.len())
            .finish()
    }
}

/// Spawns a task on the local set or runtime that this thread polls.
///
/// ```
/// let runtime = selvedge_executor::LocalRuntime::new()?;
/// let text = runtime.block_on(async {
///     let text = std::rc::Rc::new("not Send");
///     *selvedge_executor::spawn_local(async move { text }).await.unwrap()
/// });
/// assert_eq!(text, "not Send");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// If this thread polls neither a [`LocalSet`] nor a [`LocalRuntime`](crate::LocalRuntime).
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: 'static> + 'static,
{
    spawn_in(&current(), None, future, Location::caller())
}

#[track_caller]
pub(crate) fn current() -> Tasks {
    match scope::local_set() {
        Some(tasks) => tasks,
        None => panic!(
            "this thread is in no LocalSet or LocalRuntime{}: call spawn_local inside \
             `LocalSet::run_until` or `LocalRuntime::block_on`, or call it on the set itself",
            scope::current().map_or(String::new(), |runtime| format!(
                " (it is in {}, whose `spawn` takes a future that is `Send`)",
                runtime.title()
            )),
        ),
    }
}

pub(crate) fn spawn_in<F>(
    tasks: &Tasks,
    name: Option<Cow<'static, str>>,
    future: F,
    at: &'static Location<'static>,
) -> JoinHandle<F::Output>
where
    F: Future<Output: 'static> + 'static,
{
    let future = Reporting {
        future: Budgeted {
            future: Listing::new(future, Stage::new(name.as_ref(), at)),
        },
    };
    let (span, future) = trace::trace(TaskKind::Local, name.as_deref(), at, future);
    let join = match name {
        None => tasks.spawn(future),
        Some(name) => {
            let builder = task_header::Builder::new().name(name).location(at);
            tasks.spawn_as(builder, future)
        }
    };
    span.record_id(&join.id());
    if tasks.is_over.get() {
        cancel_late(tasks);
    }
    join
}

/// Cancels a task that was spawned after the drop of its set. During that drop, and during this
/// function, the loop that is already under way cancels the task.
#[cold]
fn cancel_late(tasks: &Tasks) {
    if !scope::polls(tasks) {
        scope::within(In::LocalSet(Rc::clone(tasks)), || tasks.cancel_left());
    }
}
