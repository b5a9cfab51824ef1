//! Many join handles, joined in the order in which their tasks end.
//!
//! | a member is | where its slot is |
//! |---|---|
//! | *running* | in neither list; its join waker names the slot |
//! | *done* | in `ready`, and later in `batch`; at once in `batch` if it was done when inserted |
//! | *handed out* | free |
//!
//! | field | who may touch it |
//! |---|---|
//! | `JoinSet::slots`, `JoinSet::batch` | the set, exclusively |
//! | `Done::ready` | under its lock |
//! | `Done::waker` | the set registers in it; the completion that makes `ready` non-empty wakes it |
//!
//! 1. A member's join waker names its slot. The completion wakes the join waker once, and this wake
//!    pushes the slot on `ready`. A member that was complete when inserted is pushed on `batch`
//!    instead. So the slot of every complete member is in exactly one of the two lists, once, until
//!    the member is handed out.
//! 2. A completion that pushes on an empty `ready` wakes the set. The set takes all of `ready` at a
//!    time, and returns `Pending` only if it has registered its waker and then found `ready` empty.
//!    So no completion is missed.
//! 3. A poll of the set may be waiting while the set is changed: the poller and the code that
//!    inserts may share the set, for example in a `RefCell`. So an insert of a complete member
//!    wakes the poller, and so does `detach_all`, which leaves the set empty.
//! 4. If a slot in `ready` holds no complete member, the set has detached the member for which it
//!    was pushed. The set skips such a slot.
use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    mem::{replace, swap, take},
    task::{Context, Poll},
};
use sync_shim::{
    panics::contain,
    sync::{Arc, Mutex},
};
use task_header::{Id, JoinError, JoinHandle};
use waker_vtable::{WakeRef, WakerCell, from_arc};

/// Waits for many tasks, and returns their outputs in the order in which they end.
///
/// It takes join handles, so it works with the tasks of every executor. Its drop aborts all tasks
/// in it; [`detach_all`](Self::detach_all) lets them go on.
///
/// ```
/// use std::{pin::pin, task::{Context, Poll, Waker}};
/// use task_set::{JoinSet, LocalSet};
///
/// let local = LocalSet::new();
/// let sum = async {
///     let mut set: JoinSet<u32> = (1..=3).map(|n| local.spawn(async move { n })).collect();
///     let mut sum = 0;
///     while let Some(output) = set.join_next().await {
///         sum += output.unwrap();
///     }
///     sum
/// };
/// let mut sum = pin!(local.run_until(sum));
/// # let mut cx = Context::from_waker(Waker::noop());
/// # let mut polls = (0..9).map(|_| sum.as_mut().poll(&mut cx));
/// # let Some(Poll::Ready(sum)) = polls.find(Poll::is_ready) else { panic!() };
/// assert_eq!(sum, 6);
/// ```
///
/// The next example joins without awaiting, in a loop of its own:
///
/// ```
/// use std::task::{Context, Poll, Waker};
/// use task_header::Builder;
/// use task_set::JoinSet;
///
/// let mut set = JoinSet::new();
/// let mut tasks = Vec::new();
/// for n in 0..3 {
///     let (task, join) = Builder::new().spawn_with(async move { n }, drop);
///     tasks.push(task);
///     set.insert(join);
/// }
/// assert!(set.try_join_next().is_none());
/// tasks.remove(1).run();
/// assert_eq!(set.try_join_next().unwrap().unwrap(), 1);
/// assert_eq!(set.len(), 2);
///
/// let second = tasks.remove(1);
/// let id = second.id();
/// second.run();
/// assert_eq!(set.try_join_next_with_id().unwrap().unwrap(), (id, 2));
///
/// set.abort_all();
/// tasks.into_iter().for_each(|task| drop(task.run()));
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(matches!(set.poll_join_next_with_id(&mut cx), Poll::Ready(Some(Err(_)))));
/// while let Poll::Ready(Some(joined)) = set.poll_join_next(&mut cx) {
///     assert!(joined.unwrap_err().is_cancelled());
/// }
/// assert!(set.is_empty());
/// ```
pub struct JoinSet<T> {
    slots: Vec<Slot<T>>,
    /// The first free slot; each free slot names the next.
    free: usize,
    len: usize,
    /// Slots taken from `ready`, and slots of members that were complete when inserted.
    batch: VecDeque<usize>,
    done: Arc<Done>,
}

/// The result of a task, and its id.
type Joined<T> = (Id, Result<T, JoinError>);

fn with_id<T>((id, joined): Joined<T>) -> Result<(Id, T), JoinError> {
    joined.map(|output| (id, output))
}

enum Slot<T> {
    Free { next: usize },
    Member(JoinHandle<T>),
}

struct Done {
    ready: Mutex<VecDeque<usize>>,
    waker: WakerCell,
}

impl Done {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            ready: Mutex::new(VecDeque::new()),
            waker: WakerCell::new(),
        })
    }
}

impl Drop for Done {
    /// Contains a panic of the waker's drop.
    fn drop(&mut self) {
        let waker = self.waker.take();
        contain(|| drop(waker));
    }
}

/// The target of a member's join waker.
struct Member {
    slot: usize,
    done: Arc<Done>,
}

impl WakeRef for Member {
    fn wake(&self) {
        let first = {
            let mut ready = self.done.ready.lock();
            ready.push_back(self.slot);
            ready.len() == 1
        };
        if first {
            self.done.waker.wake();
        }
    }
}

impl<T> JoinSet<T> {
    /// Makes an empty set.
    pub fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: usize::MAX,
            len: 0,
            batch: VecDeque::new(),
            done: Done::new(),
        }
    }

    /// Adds a task. This costs one allocation, and thirteen read-modify-writes over the task's life
    /// in the set (the README counts them; a lock is two). The set's waker replaces the waker of an
    /// earlier poll of the handle. A handle whose output was taken is ignored. If the task is done
    /// already, the insert wakes the last poller of the set. A panic of that waker is caught and
    /// dropped.
    pub fn insert(&mut self, mut handle: JoinHandle<T>) {
        if handle.is_terminated() {
            return;
        }
        let slot = if self.free < self.slots.len() {
            self.free
        } else {
            self.slots.push(Slot::Free { next: usize::MAX });
            self.slots.len() - 1
        };
        let member = from_arc(Arc::new(Member {
            slot,
            done: self.done.clone(),
        }));
        let is_complete = !handle.set_waker(member);
        if is_complete {
            self.batch.push_back(slot);
        }
        if let Slot::Free { next } = replace(&mut self.slots[slot], Slot::Member(handle)) {
            self.free = next;
        }
        self.len += 1;
        if is_complete {
            contain(|| self.done.waker.wake()); // Rule 3.
        }
    }

    /// Returns the number of tasks in the set, including those that are done and not yet handed
    /// out.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no task is in the set.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the result of a task that is done, if there is one.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.try_next().map(|(_, joined)| joined)
    }

    /// Takes a result as [`try_join_next`](Self::try_join_next) does, with the task's id.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.try_next().map(with_id)
    }

    fn try_next(&mut self) -> Option<Joined<T>> {
        loop {
            while let Some(slot) = self.batch.pop_front() {
                if let Some(joined) = self.finish(slot) {
                    return Some(joined);
                }
            }
            swap(&mut *self.done.ready.lock(), &mut self.batch);
            if self.batch.is_empty() {
                return None;
            }
        }
    }

    /// Takes the result of the member in this slot. Returns `None` if the set must skip the slot
    /// (rule 4).
    fn finish(&mut self, slot: usize) -> Option<Joined<T>> {
        let Slot::Member(handle) = &mut self.slots[slot] else {
            return None;
        };
        let id = handle.id();
        let output = handle.try_join()?;
        let next = replace(&mut self.free, slot);
        self.slots[slot] = Slot::Free { next };
        self.len -= 1;
        Some((id, output))
    }

    /// Polls for the result of the next task that is done. The output is `None` when the set is
    /// empty. With the feature `coop-budget`, each result is charged to the surrounding budget.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.poll_next(cx)
            .map(|joined| joined.map(|(_, joined)| joined))
    }

    /// Polls as [`poll_join_next`](Self::poll_join_next) does, and returns the task's id too.
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        self.poll_next(cx).map(|joined| joined.map(with_id))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Joined<T>>> {
        #[cfg(feature = "coop-budget")]
        let progress = std::task::ready!(coop_budget::poll_proceed(cx));
        let polled = self.poll_done(cx);
        #[cfg(feature = "coop-budget")]
        match polled {
            Poll::Ready(Some(_)) => progress.made_progress(),
            Poll::Ready(None) => progress.cancel(),
            Poll::Pending => progress.waits_for(|| self.waits_on()),
        }
        polled
    }

    /// Says what a join waits for, to a dump of tasks: the last task, or any of them.
    #[cfg(feature = "coop-budget")]
    #[cold]
    fn waits_on(&self) -> coop_budget::WaitsOn {
        let id = |slot: &Slot<T>| match slot {
            Slot::Member(handle) => Some(handle.id()),
            _ => None,
        };
        match self.slots.iter().find_map(id) {
            Some(last) if self.len == 1 => coop_budget::WaitsOn::Task(last.into()),
            _ => coop_budget::WaitsOn::event("the end of a task of the set", self),
        }
    }

    fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<Option<Joined<T>>> {
        if let Some(joined) = self.try_next() {
            return Poll::Ready(Some(joined));
        }
        if self.is_empty() {
            return Poll::Ready(None);
        }
        self.done.waker.register(cx.waker());
        match self.try_next() {
            Some(joined) => Poll::Ready(Some(joined)),
            None => Poll::Pending,
        }
    }

    /// Waits for the result of the next task that is done. The output is `None` when the set is
    /// empty. If this future is dropped, no result is lost.
    pub fn join_next(&mut self) -> impl Future<Output = Option<Result<T, JoinError>>> {
        poll_fn(|cx| self.poll_join_next(cx))
    }

    /// Waits as [`join_next`](Self::join_next) does, and returns the task's id too.
    ///
    /// ```
    /// use task_set::{JoinSet, LocalSet};
    /// # use std::{future::Future, pin::pin, task::{Context, Waker}};
    ///
    /// let local = LocalSet::new();
    /// let task = local.spawn(async { 7 });
    /// let id = task.id();
    /// let mut set = JoinSet::new();
    /// set.insert(task);
    /// let all = local.run_until(async {
    ///     assert_eq!(set.join_next_with_id().await.unwrap().unwrap(), (id, 7));
    /// });
    /// # let mut all = pin!(all);
    /// # let mut cx = Context::from_waker(Waker::noop());
    /// # while all.as_mut().poll(&mut cx).is_pending() {}
    /// ```
    pub fn join_next_with_id(
        &mut self,
    ) -> impl Future<Output = Option<Result<(Id, T), JoinError>>> {
        poll_fn(|cx| self.poll_join_next_with_id(cx))
    }

    /// Waits for all tasks, in the order in which they end. At the first error, drops the earlier
    /// outputs and aborts the remaining tasks.
    ///
    /// ```
    /// use task_set::{JoinSet, LocalSet};
    /// # use std::{future::Future, pin::pin, task::{Context, Waker}};
    ///
    /// let local = LocalSet::new();
    /// let set: JoinSet<u32> = (0..3).map(|n| local.spawn(async move { n })).collect();
    /// let all = local.run_until(async { assert_eq!(set.join_all().await.unwrap(), [0, 1, 2]) });
    /// # let mut all = pin!(all);
    /// # let mut cx = Context::from_waker(Waker::noop());
    /// # while all.as_mut().poll(&mut cx).is_pending() {}
    /// ```
    ///
    /// # Errors
    /// The error of the first task that has one.
    pub async fn join_all(mut self) -> Result<Vec<T>, JoinError> {
        let mut outputs = Vec::with_capacity(self.len);
        while let Some(output) = self.join_next().await {
            outputs.push(output?);
        }
        Ok(outputs)
    }

    /// Aborts all tasks; they stay in the set until they are joined. Costs one read-modify-write
    /// per task.
    pub fn abort_all(&mut self) {
        for slot in &self.slots {
            if let Slot::Member(handle) = slot {
                handle.abort();
            }
        }
    }

    /// Aborts all tasks, waits until they have ended, and drops their results. A panic of such a
    /// drop is caught and dropped.
    ///
    /// ```
    /// use task_set::{JoinSet, LocalSet};
    /// # use std::{future::Future, pin::pin, task::{Context, Waker}};
    ///
    /// let local = LocalSet::new();
    /// let mut set = JoinSet::new();
    /// set.insert(local.spawn(std::future::pending::<()>()));
    /// let all = local.run_until(async {
    ///     set.shutdown().await;
    ///     assert!(set.is_empty());
    /// });
    /// # let mut all = pin!(all);
    /// # let mut cx = Context::from_waker(Waker::noop());
    /// # while all.as_mut().poll(&mut cx).is_pending() {}
    /// ```
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while let Some(joined) = self.join_next().await {
            contain(|| drop(joined));
        }
    }

    /// Detaches all tasks, which go on; the set is empty afterwards. Wakes the last poller of the
    /// set, and catches a panic of its waker.
    ///
    /// ```
    /// let mut set = task_set::JoinSet::new();
    /// let (task, join) = task_header::Builder::new().spawn_with(async { 7 }, drop);
    /// let abort = join.abort_handle();
    /// set.insert(join);
    /// set.detach_all();
    /// assert!(set.is_empty());
    /// drop(set); // The set is empty, so nothing is aborted.
    /// task.run();
    /// assert!(abort.is_finished());
    /// ```
    pub fn detach_all(&mut self) {
        // A member that completes at this moment pushes its slot on the old `ready`, not on the
        // `ready` of later members.
        let done = replace(&mut self.done, Done::new());
        self.batch.clear();
        self.free = usize::MAX;
        self.len = 0;
        drop(take(&mut self.slots));
        contain(|| done.waker.wake()); // Rule 3.
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.abort_all();
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Extend<JoinHandle<T>> for JoinSet<T> {
    fn extend<I: IntoIterator<Item = JoinHandle<T>>>(&mut self, handles: I) {
        for handle in handles {
            self.insert(handle);
        }
    }
}

impl<T> FromIterator<JoinHandle<T>> for JoinSet<T> {
    fn from_iter<I: IntoIterator<Item = JoinHandle<T>>>(handles: I) -> Self {
        let mut set = Self::new();
        set.extend(handles);
        set
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet")
            .field("len", &self.len)
            .finish_non_exhaustive()
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
