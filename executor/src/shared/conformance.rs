//! The executor's `Overflow`, and the way in which it unparks, by the kits of their parts.
use super::{AnyUnpark, Scheduler, Shared, Task};
use crate::{
    Builder, Runtime, Worker,
    park::{Park, ThreadPark, ThreadUnpark, Unpark},
};
use queue_spmc::{
    Overflow,
    conformance::{Order, Subject, Token},
};
use std::{cell::Cell, ptr::NonNull, time::Duration};
use sync_shim::sync::{Arc, Mutex};
use task_header::Ran;

/// What a worker's ring overflows into: the injector, of tasks.
struct Behind {
    shared: Arc<Shared>,
    _runs: Mutex<(Runtime, Worker<ThreadPark>)>,
}

std::thread_local! {
    /// What a task gives out in its poll.
    static OUT: Cell<Option<Token>> = const { Cell::new(None) };
}

impl Overflow<Task> for Behind {
    fn push(&self, task: Task) {
        Overflow::push(&self.shared.injector, task);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = Task>) {
        Overflow::push_batch(&self.shared.injector, batch);
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

    /// It is never woken, and so needs no scheduler.
    fn item(token: Token) -> Task {
        let nobody = Scheduler(NonNull::dangling());
        task_header::new_detached(async { OUT.set(Some(token)) }, nobody)
    }

    fn token(task: Task) -> Token {
        assert!(matches!(task.run(), Ran::Complete));
        OUT.take().expect("it has run")
    }

    fn take(&self) -> Option<Task> {
        self.shared.injector.pop()
    }
}

/// A parker that the executor unparks: a thread's straight, or somebody else's.
struct Unparked<const STRAIGHT: bool>(ThreadPark);

#[derive(Clone)]
struct Unparker(Arc<AnyUnpark>);

#[derive(Clone)]
struct Else(ThreadUnpark);

impl<const STRAIGHT: bool> Unparked<STRAIGHT> {
    fn new() -> Self {
        Self(ThreadPark::new())
    }
}

impl<const STRAIGHT: bool> Park for Unparked<STRAIGHT> {
    type Unpark = Unparker;

    fn park(&mut self) {
        self.0.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.0.park_timeout(limit);
    }

    fn unparker(&self) -> Unparker {
        let unpark = self.0.unparker();
        let unpark = if STRAIGHT {
            AnyUnpark::of(unpark)
        } else {
            AnyUnpark::of(Else(unpark))
        };
        assert_eq!(matches!(unpark, AnyUnpark::Thread(_)), STRAIGHT);
        Unparker(Arc::new(unpark))
    }
}

impl Unpark for Else {
    fn unpark(&self) {
        self.0.unpark();
    }
}

impl Unpark for Unparker {
    fn unpark(&self) {
        match &*self.0 {
            AnyUnpark::Thread(thread) => thread.unpark(),
            AnyUnpark::Other(unpark) => unpark(),
        }
    }
}

mod models {
    use super::{Behind, Unparked};

    #[test]
    fn the_injector_behind_a_ring_passes() {
        queue_spmc::conformance::overflow::<Behind>();
    }

    #[test]
    fn a_thread_that_is_unparked_straight_passes() {
        worker_idle::conformance::park(Unparked::<true>::new);
    }

    #[test]
    fn a_parker_of_somebody_elses_passes() {
        worker_idle::conformance::park(Unparked::<false>::new);
    }
}
