//! NeXosim's executor, through its feature for benchmarks.
//!
//! An outside thread spawns the tasks before a run, and the run ends when no task is ready. As
//! long as one worker runs the tasks as fast as they become ready, the executor uses no other
//! worker. So most rows show the cost on one processor.
use super::{Ask, Rt, lacking};
use nexosim::dev_hooks::Executor;
use std::{cell::RefCell, future::Future, io};

pub(crate) struct NeXosim(RefCell<Executor>);

impl Rt for NeXosim {
    const NAME: &'static str = "nexosim";
    const PACKAGE: &'static str = "nexosim";
    const PARALLEL: bool = false;
    // `Fair` is in the list because a task that wakes itself is polled again at once.
    const LACKS: &'static [Ask] = &[
        Ask::Net,
        Ask::Http,
        Ask::Hyper,
        Ask::Foreign,
        Ask::Fair,
        Ask::Inside,
        Ask::Join,
        Ask::Background,
        Ask::Blocking,
        Ask::Timers,
        Ask::Budget,
        Ask::Files,
    ];

    fn start(workers: usize) -> io::Result<Self> {
        Ok(Self(RefCell::new(Executor::new(workers))))
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.borrow().spawn_and_forget(future);
    }

    fn drive(&self) {
        self.0.borrow_mut().run();
    }

    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        drop(future);
        lacking()
    }

    fn spawn(_: impl Future<Output = ()> + Send + 'static) {
        unreachable!("a row that asks for it leaves the runtime out")
    }

    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        drop(future);
        lacking()
    }

    /// NeXosim has no yield, so this is futures-lite's.
    fn yield_now() -> impl Future<Output = ()> + Send {
        futures_lite::future::yield_now()
    }
}
