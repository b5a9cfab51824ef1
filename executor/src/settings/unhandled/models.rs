//! Models of a `block_on` racing a task's panic.
use crate::{Builder, UnhandledPanic, worker::park::ThreadPark};
use blocking_threads::OnPanic;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync_shim::{Model, thread};

/// A `block_on` waits forever, and races a panic that shuts the runtime down: the `block_on`
/// panics.
///
/// Fails if the panic is recorded after the wakers were taken, if a waker is added without a check
/// for a panic, or if nobody is woken.
#[test]
fn block_on_racing_an_unhandled_panic_panics() {
    (Model::new().bound(3).branches(20_000)).check(|| {
        let (runtime, workers) = Builder::new()
            .unhandled_panic(UnhandledPanic::Shutdown)
            .ring_capacity(2)
            .build_driven([ThreadPark::new()]);
        let reports = super::PanicReporter::by(runtime.handle().shared());
        let other = thread::spawn(move || reports.unwrap().panicked(&"on purpose"));
        let waits = || runtime.block_on(std::future::pending::<()>());
        assert!(catch_unwind(AssertUnwindSafe(waits)).is_err());
        other.join().unwrap();
        drop(runtime);
        workers.into_iter().for_each(crate::Worker::run);
    });
}
