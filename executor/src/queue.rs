//! The queues of a runtime: the types that a core and the shared state name.
//!
//! A core asks a [`RunQueue`](worker_queue::RunQueue) for its next task, and for nothing else of
//! its queue. These aliases choose the queue, so each build is compiled for one. A plain worker has
//! one [`WorkerQueue`](worker_queue::WorkerQueue), whose shared end is a
//! [`Stealer`](worker_queue::Stealer).
use crate::wake::Scheduler;
use task_header::Node;

/// A worker's queue.
pub(crate) type Queue = worker_queue::WorkerQueue<Node<Scheduler>>;

/// The part of a worker's queue that the others see.
pub(crate) type Stealer = worker_queue::Stealer<Node<Scheduler>>;
