//! A thread in `block_on`, and one whose task panics.
use crate::{Builder, UnhandledPanic, park::ThreadPark};
use blocking_threads::OnPanic;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync_shim::{Model, thread};

/// A `block_on` that waits for ever, against a panic that shuts the runtime down: it panics.
///
/// Bites: note the panic after those that wait were taken out; enter a waker without a look at the panic; do not wake.
#[test]
fn block_on_against_an_unhandled_panic_panics() {
    (Model::new().bound(3).branches(20_000)).check(|| {
        let (runtime, workers) = Builder::new()
            .unhandled_panic(UnhandledPanic::Shutdown)
            .ring_capacity(2)
            .build_driven([ThreadPark::new()]);
        let hears = super::Overheard::by(runtime.handle());
        let other = thread::spawn(move || hears.unwrap().panicked(&"on purpose"));
        let waits = || runtime.block_on(std::future::pending::<()>());
        assert!(catch_unwind(AssertUnwindSafe(waits)).is_err());
        other.join().unwrap();
        drop(runtime);
        workers.into_iter().for_each(crate::Worker::run);
    });
}
