//! The task that this thread runs: its id, for code inside the task.
//!
//! A thread-local holds the id of the innermost task whose future the thread polls or drops, or
//! `None`. [`enter`] replaces it and returns the id of the outer task, and [`leave`] puts that
//! back. A panic does not skip [`leave`], because each panic in between is caught. The value has no
//! destructor, so destructors of other thread-locals may read it.
use crate::id::Id;
use core::cell::Cell;

std::thread_local! {
    static CURRENT: Cell<Option<Id>> = const { Cell::new(None) };
}

/// Whether runs are recorded. Not in models, whose threads share one thread of the system.
const RECORDS: bool = cfg!(not(any(selvedge_loom, selvedge_shuttle)));

/// Returns the id of the task that this thread runs, if it runs one.
///
/// A thread runs a task while it polls the task's future, and while a run or an abort drops that
/// future. If a task's poll runs another task, this returns the id of the inner one. Costs a load
/// of a thread-local.
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
    CURRENT.with(Cell::get)
}

/// Makes `id` the current task, and returns the outer one.
#[inline(always)]
pub(crate) fn enter(id: Id) -> Option<Id> {
    if !RECORDS {
        return None;
    }
    CURRENT.with(|current| current.replace(Some(id)))
}

/// Makes the outer task the current one again.
#[inline(always)]
pub(crate) fn leave(outer: Option<Id>) {
    if RECORDS {
        CURRENT.with(|current| current.set(outer));
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::current;
    use crate::{Builder, Id, spawn};
    use std::{
        future::pending,
        sync::mpsc::{Sender, channel},
    };

    /// Logs the current task when it is dropped.
    struct LogsDrop(Sender<Option<Id>>);

    impl Drop for LogsDrop {
        fn drop(&mut self) {
            self.0.send(current()).unwrap();
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

    #[test]
    fn current_on_another_thread_is_none() {
        let elsewhere = async { std::thread::spawn(current).join().unwrap() };
        let (task, mut join) = spawn(elsewhere, drop);
        let _ = task.run();
        assert_eq!(join.try_join().unwrap().unwrap(), None);
    }
}
