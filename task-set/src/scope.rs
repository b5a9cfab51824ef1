//! Tasks that borrow from the caller's frame.
//!
//! 1. The set of a scope is in the frame of [`scope`]. The caller never owns the set, so the caller
//!    can neither forget it nor drop it early. When that frame returns or unwinds, all tasks have
//!    ended. If they cannot be ended, the process ends (`AbortsUnlessOver`).
//! 2. Only the set touches a task's future, on this thread. A queued task, a waker or a handle that
//!    outlives the scope does not touch the future. An output stays with the handle, whose type
//!    says what the output borrows.
use crate::LocalSet;
use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    mem::forget,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process::abort,
};
use task_header::JoinHandle;

/// Spawns tasks into a [`scope`].
///
/// A scope stays on its thread.
pub struct Scope<'scope, 'env: 'scope> {
    set: LocalSet,
    /// Invariant, so that `'scope` can't shrink to less than the waiting frame.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Runs tasks that may borrow from the caller's frame, on this thread. Returns when all of them
/// have ended.
///
/// It calls `f`, and then runs the tasks that `f` and these tasks spawn. While no task is ready,
/// `scope` blocks the thread until another thread wakes a task. A task that is never woken blocks
/// `scope` forever, just as a thread that never ends blocks `std::thread::scope`. A panic of a task
/// goes to the task's handle. Each scope has a [`LocalSet`], with the costs of one.
///
/// ```
/// let mut numbers = vec![1, 2, 3];
/// let mut sum = 0;
/// let longest = task_set::scope(|scope| {
///     scope.spawn(async { sum = numbers.iter().sum() });
///     let names = [String::from("a"), String::from("bc")];
///     scope.block_on(async { names.iter().map(String::len).max() })
/// });
/// numbers.push(sum);
/// assert_eq!((numbers.as_slice(), longest), (&[1, 2, 3, 6][..], Some(2)));
/// ```
///
/// The frame of this call owns the tasks, and the caller has no value to [`forget`]. For this
/// reason the crate has no scope that is a future: the caller could forget that future once the
/// tasks run, and return while the tasks still borrow. Nor has the crate a guard that waits in its
/// drop.
///
/// A scope is for one thread. For a multi-threaded executor whose tasks borrow, such as an
/// `Executor<'a>`, use [`spawn_unchecked`](task_header::spawn_unchecked). The executor's type then
/// needs an invariant `'a` and an `impl Drop`, and nothing else may run or drop its tasks. If such
/// a type is forgotten, its tasks leak. `task-header/tests/executor.rs` in the repository is such
/// an executor.
///
/// A spawned future can't borrow from within `f`, which has returned when the future runs:
///
/// ```compile_fail,E0373
/// task_set::scope(|scope| {
///     let inside = 1;
///     scope.spawn(async { println!("{inside}") });
/// });
/// ```
///
/// # Panics
/// If `f` panics. The tasks are then cancelled first.
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope {
        set: LocalSet::new(),
        scope: PhantomData,
        env: PhantomData,
    };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    let over = AbortsUnlessOver;
    match &result {
        Ok(_) => scope.set.block_until(|| scope.set.is_empty()),
        Err(_) => scope.set.cancel_all(),
    }
    // The set is empty by now, so the set's own drop finds no task.
    forget(over);
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a task. It runs when the scope blocks: in [`block_on`](Self::block_on), or at the
    /// scope's end.
    ///
    /// Dropping the handle detaches the task; the scope still waits for it.
    ///
    /// ```
    /// let words = &["a", "bc"];
    /// let joined = task_set::scope(|scope| {
    ///     let tasks = words.each_ref().map(|word| scope.spawn(async { word.len() }));
    ///     scope.spawn(async move {
    ///         // Tasks spawn more.
    ///         scope.spawn(async { assert_eq!(words.len(), 2) });
    ///     });
    ///     scope.block_on(async {
    ///         let mut sum = 0;
    ///         for task in tasks {
    ///             sum += task.await.unwrap();
    ///         }
    ///         sum
    ///     })
    /// });
    /// assert_eq!(joined, 3);
    /// ```
    pub fn spawn<F>(&'scope self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'scope,
        F::Output: 'scope,
    {
        // SAFETY: rules 1 and 2. `'scope` outlives the frame that waits.
        unsafe { self.set.spawn_unchecked(future) }
    }

    /// Runs the scope's tasks until `future` is ready, and returns its output. The future becomes a
    /// task of the scope, and may borrow from the frame of this call.
    ///
    /// If a task calls this method, the other tasks run within that task's poll.
    ///
    /// # Panics
    /// If the future panics.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let over = AbortsUnlessOver;
        // SAFETY: rule 2. This frame neither returns nor unwinds before the task has ended.
        let mut join = unsafe { self.set.spawn_unchecked(future) };
        self.set.block_until(|| join.is_finished());
        forget(over);
        match join.try_join() {
            Some(Ok(output)) => output,
            Some(Err(error)) => resume_unwind(error.into_panic()),
            None => unreachable!("it is finished, and nobody else has taken the output"),
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("set", &self.set).finish()
    }
}

/// Ends the process if a frame unwinds before its tasks have ended. Nothing in that frame panics as
/// long as there is memory.
struct AbortsUnlessOver;

impl Drop for AbortsUnlessOver {
    fn drop(&mut self) {
        abort();
    }
}
