//! A task's pointer to its runtime, and the type of a queued task.
//!
//! A task names its runtime by a plain pointer, or with groups its group, which knows the runtime.
//! This file has only the pointer. [`wake`](crate::worker::wake) says what a wake does with it, and
//! [`shared`](crate::worker::shared) says for how long it is valid.
use crate::groups::Target;
use std::ptr::NonNull;
use task_header::Notified;

/// A queued task of this executor.
pub(crate) type Task = Notified<Scheduler>;

/// A task's pointer to its runtime, or with groups to its group, which knows the runtime.
///
/// With groups its lowest bit says whether the group is another one than main. So code that handles
/// only main's tasks reads the pointer, and not the group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scheduler(pub(crate) NonNull<Target>);

// SAFETY: it is a shared borrow of a runtime, or of a group, which are `Sync`. Rules 1 and 2 of
// `shared`, and rule 5 of `groups`, say for how long it is valid.
unsafe impl Send for Scheduler {}

// SAFETY: as above.
unsafe impl Sync for Scheduler {}
