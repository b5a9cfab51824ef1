//! Models of the exit: a driven worker, and the thread that ends the runtime.
use crate::{Builder, Runtime, Worker, worker::park::ThreadPark};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    sync::Arc,
    thread,
};

fn driven() -> (Runtime, Worker<ThreadPark>) {
    let builder = Builder::new().ring_capacity(2);
    let (runtime, mut workers) = builder.build_driven([ThreadPark::new()]);
    (runtime, workers.remove(0))
}

/// Counts its drop.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A worker goes to sleep while the owner drops the runtime: the worker runs the future, and then
/// ends.
///
/// Fails if the drop closes the runtime at once, if the exit task is queued without a notification,
/// or if the exit task does not close the runtime.
#[test]
fn exit_racing_a_sleep_runs_before_the_end() {
    Model::new().bound(2).branches(20_000).check(|| {
        let (runtime, worker) = driven();
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = ran.clone();
        runtime.at_exit(async move {
            counted.fetch_add(1, Relaxed);
        });
        let owner = thread::spawn(move || drop(runtime));
        worker.run();
        assert_eq!(ran.load(Relaxed), 1);
        owner.join().unwrap();
    });
}

/// A future is added while the worker finds that none is left: the added future runs, or is dropped
/// at once.
///
/// Fails if neither `next` nor `end` ends the exit under the lock: then the added future is kept.
#[test]
fn exit_added_at_the_end_runs_or_is_dropped() {
    Model::new().bound(2).branches(20_000).check(|| {
        let (runtime, worker) = driven();
        let (ran, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        runtime.at_exit(async {});
        // This handle keeps the runtime's memory, and a future that is left in it.
        let _kept = runtime.handle().clone();
        let handle = runtime.handle().clone();
        drop(runtime);
        let (counted, late) = (ran.clone(), Counted(dropped.clone()));
        let adds = thread::spawn(move || {
            handle.at_exit(async move {
                let _late = late;
                counted.fetch_add(1, Relaxed);
            });
        });
        worker.run();
        adds.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1, "it is not kept");
        assert!(ran.load(Relaxed) <= 1);
    });
}

/// The first future is added while the owner drops the runtime: it runs, or is dropped at once.
///
/// Fails if the close leaves a runtime open that had no futures so far: then the future is kept.
#[test]
fn first_exit_racing_the_end_runs_or_is_dropped() {
    Model::new().bound(2).branches(20_000).check(|| {
        let (runtime, worker) = driven();
        let (ran, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        // As above, this handle keeps the runtime's memory.
        let _kept = runtime.handle().clone();
        let handle = runtime.handle().clone();
        let (counted, late) = (ran.clone(), Counted(dropped.clone()));
        let adds = thread::spawn(move || {
            handle.at_exit(async move {
                let _late = late;
                counted.fetch_add(1, Relaxed);
            });
        });
        drop(runtime);
        worker.run();
        adds.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1, "it is not kept");
        assert!(ran.load(Relaxed) <= 1);
    });
}
