//! The id of the task that runs, under tokio's names.
use task_header::{Id, current};

/// Returns the id of the task that this thread runs.
///
/// The function works in tasks of every kind: those of a runtime, of a
/// [`LocalSet`](super::LocalSet), and closures of [`spawn_blocking`](crate::spawn_blocking()); also
/// in the drop of a task's future, and in the drop of an output that no join handle took. A call
/// costs a load of a thread-local.
///
/// ```
/// let runtime = selvedge::Runtime::new()?;
/// let task = runtime.spawn(async { selvedge::task::id() });
/// let id = task.id();
/// assert_eq!(runtime.block_on(task).unwrap(), id);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// If this thread runs no task. A future in `block_on` is not a task. [`try_id`] returns `None`
/// instead.
#[track_caller]
pub fn id() -> Id {
    match current() {
        Some(id) => id,
        None => {
            panic!("this thread runs no task: call task::id in a spawned task, or use task::try_id")
        }
    }
}

/// Returns the id of the task that this thread runs, if it runs one. As [`id`] otherwise.
///
/// ```
/// use selvedge::task::try_id;
///
/// let runtime = selvedge::Runtime::new()?;
/// let closure = runtime.spawn_blocking(try_id);
/// let id = closure.id();
/// assert_eq!(runtime.block_on(closure).unwrap(), Some(id));
/// assert_eq!(runtime.block_on(async { try_id() }), None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn try_id() -> Option<Id> {
    current()
}
