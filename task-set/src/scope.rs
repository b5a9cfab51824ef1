//! Tasks that borrow from the caller's frame.
//!
//! 1. The set of a scope is on the frame of [`scope`], whose caller never owns it: nobody can
//!    forget it, or drop it early. All tasks have ended when that frame returns or unwinds. Else
//!    the process does (`AbortsUnlessOver`).
//! 2. A task's future is touched by the set alone, on this thread. A queued task, a waker and a
//!    handle that leave the scope do not touch it; and an output goes with the handle, whose type
//!    says what it borrows.
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

/// Where [`scope`] spawns tasks.
///
/// It stays on its thread.
pub struct Scope<'scope, 'env: 'scope> {
    set: LocalSet,
    /// Invariant, so that `'scope` can't shrink to less than the frame that waits.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Runs tasks that may borrow from around the call, on this thread. It returns when all of them
/// have ended.
///
/// It calls `f`, and then runs the tasks that `f` and they themselves have spawned; where none is
/// ready it blocks the thread until another wakes one. A task that is never woken blocks it for
/// ever, as a thread does that a scope of threads waits for. A panic of a task goes to its handle.
/// Each scope has a [`LocalSet`], with its costs.
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
/// The frame of this call keeps the tasks, and no value of the caller's, so that no [`forget`] can
/// break it. That is why there is no such scope as a future: its caller could forget the future
/// once its tasks run, and return while they still borrow. Nor is there a guard that waits in its
/// drop, for the same reason.
///
/// It is for one thread. An executor of many threads whose tasks borrow, as `Executor<'a>`, is
/// [`spawn_unchecked`](task_header::spawn_unchecked) and a type with an invariant `'a` and an
/// `impl Drop` that alone can run its tasks and drop them: where that is forgotten, its tasks leak.
/// `task-header/tests/executor.rs` in the repository is one.
///
/// What is spawned can't borrow from within `f`, which is over when it runs:
///
/// ```compile_fail,E0373
/// task_set::scope(|scope| {
///     let inside = 1;
///     scope.spawn(async { println!("{inside}") });
/// });
/// ```
///
/// # Panics
/// If `f` does. The tasks are cancelled then, here and now.
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
    // The set's own drop finds no task.
    forget(over);
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a task. It runs when the scope blocks: in [`block_on`](Self::block_on), or at its
    /// end.
    ///
    /// Dropping the handle detaches the task, for which the scope waits all the same.
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
        // SAFETY: rules 1 and 2. `'scope` is longer than the frame that waits.
        unsafe { self.set.spawn_unchecked(future) }
    }

    /// Runs the scope's tasks until `future` is done, and gives what came of it. The future is a
    /// task of the scope, and may borrow from around this call.
    ///
    /// In a task it runs the others within that task's poll, which lasts as long.
    ///
    /// # Panics
    /// If the future does.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let over = AbortsUnlessOver;
        // SAFETY: rule 2. This frame returns only when the task has ended, and does not unwind
        // until then.
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

/// Ends the process where a frame unwinds whose tasks have not ended. Nothing in it panics as long
/// as there is memory.
struct AbortsUnlessOver;

impl Drop for AbortsUnlessOver {
    fn drop(&mut self) {
        abort();
    }
}
