//! The queues of a runtime: the types that a core and the shared state name.
//!
//! A core uses its queue through the trait [`RunQueue`](worker_queue::RunQueue). These aliases
//! choose the type of the queue, so each build is compiled for one type. Without the feature
//! `groups` a worker has one [`WorkerQueue`](worker_queue::WorkerQueue), whose shared end is a
//! [`Stealer`](worker_queue::Stealer). With `groups` the queue is a `GroupQueue`.
//!
//! A queue is *plain* while it is one `WorkerQueue` and no more. Without `groups` it always is.
//! With `groups` it is plain while the worker runs only tasks of the default group, *main*. The hot
//! paths of a core use the plain queue directly. So a build with groups checks whether the queue is
//! plain once for each decision about a task, and not in each operation.
use crate::worker::scheduler::Scheduler;
use task_header::Node;

pub(crate) use crate::groups::{Queue, Stealer};

/// A queue that is plain.
pub(crate) type Plain = worker_queue::WorkerQueue<Node<Scheduler>>;
