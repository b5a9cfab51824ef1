//! The queues of a runtime: the types that a core and the shared state name.
//!
//! A core asks a [`RunQueue`](worker_queue::RunQueue) for its next task, and for nothing else of
//! its queue. These aliases choose the queue, so each build is compiled for one. A plain worker has
//! one [`WorkerQueue`](worker_queue::WorkerQueue), whose shared end is a
//! [`Stealer`](worker_queue::Stealer).
//! With groups it is a `GroupQueue`.
#[cfg(not(feature = "groups"))]
use {crate::scheduler::Scheduler, task_header::Node};

/// A worker's queue.
#[cfg(not(feature = "groups"))]
pub(crate) type Queue = worker_queue::WorkerQueue<Node<Scheduler>>;

/// The part of a worker's queue that the others see.
#[cfg(not(feature = "groups"))]
pub(crate) type Stealer = worker_queue::Stealer<Node<Scheduler>>;

#[cfg(feature = "groups")]
pub(crate) use crate::groups::{GroupQueue as Queue, GroupStealer as Stealer};
