//! Runs the conformance tests of `queue-spmc` on the executor's `Overflow`.
use super::{Scheduler, Shared, Task};
use crate::{Builder, Runtime, Worker, worker::park::ThreadPark};
use queue_spmc::{
    Overflow,
    conformance::{Order, Subject, Token},
};
use std::cell::Cell;
use sync_shim::sync::{Arc, Mutex};
use task_header::Ran;

/// Implements `Overflow` for a ring of tasks: the tasks go to the runtime's injector.
struct Behind {
    shared: Arc<Shared>,
    _runs: Mutex<(Runtime, Worker<ThreadPark>)>,
}

std::thread_local! {
    /// The token that a task has put here in its poll.
    static OUT: Cell<Option<Token>> = const { Cell::new(None) };
}

impl Overflow<Task> for Behind {
    fn push(&self, task: Task) {
        self.push_batch(std::iter::once(task));
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = Task>) {
        self.shared.injector.mine().requeue_batch(batch.collect());
    }
}

impl Subject for Behind {
    type Item = Task;
    const ORDER: Order = Order::Fifo;

    fn new() -> Self {
        let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
        Self {
            shared: runtime.handle().shared().clone(),
            _runs: Mutex::new((runtime, workers.remove(0))),
        }
    }

    /// The task is never woken, and so needs no runtime.
    fn item(token: Token) -> Task {
        task_header::new_detached(async { OUT.set(Some(token)) }, Scheduler::of_nobody())
    }

    fn token(task: Task) -> Token {
        assert!(matches!(task.run(), Ran::Complete));
        OUT.take().expect("it has run")
    }

    fn take(&self) -> Option<Task> {
        self.shared.injector.pop()
    }
}

mod models {
    use super::Behind;

    #[test]
    fn the_injector_behind_a_ring_passes() {
        queue_spmc::conformance::overflow::<Behind>();
    }
}
