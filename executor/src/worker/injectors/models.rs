//! A model of a push into a shard beside a worker of another shard that falls asleep.
use crate::{Builder, Tick, worker::park::Park};
use std::{
    sync::Arc as StdArc,
    task::{Wake, Waker},
    time::Duration,
};
use sync_shim::{
    Model,
    atomic::{AtomicBool, Ordering::Relaxed},
    sync::{Arc, Mutex},
    thread,
};

/// Parker that runs a closure while its worker sleeps.
struct Sleep {
    is_unparked: StdArc<Unparked>,
    meanwhile: Option<Box<dyn FnOnce() + Send>>,
}

struct Unparked(AtomicBool);

impl Wake for Unparked {
    fn wake(self: StdArc<Self>) {
        // Ordering: Relaxed, as the look at it comes after a join.
        self.0.store(true, Relaxed);
    }
}

impl Park for Sleep {
    fn park(&mut self) {
        if let Some(meanwhile) = self.meanwhile.take() {
            meanwhile();
        }
    }

    fn park_timeout(&mut self, _: Duration) {
        self.park();
    }

    fn waker(&self) -> Waker {
        Waker::from(self.is_unparked.clone())
    }
}

/// A thread pushes into the second shard while the only worker, whose shard is the first, falls
/// asleep. The worker sees the task, or the thread unparks the worker.
///
/// Fails if `Injectors::is_empty` leaves out a shard.
#[test]
fn push_into_another_shard_racing_a_sleep_unparks() {
    Model::new().branches(20_000).check(|| {
        let is_unparked = StdArc::new(Unparked(AtomicBool::new(false)));
        let sleep = Sleep {
            is_unparked: is_unparked.clone(),
            meanwhile: None,
        };
        let (runtime, mut workers) = Builder::new()
            .ring_capacity(2)
            .injector_shards(2)
            .build_driven([sleep]);
        let mut worker = workers.remove(0);
        let handle = runtime.handle().clone();
        // The first thread to push has the number 1, which is the second shard's.
        let pusher = thread::spawn(move || handle.spawn_detached(async {}));
        let pusher = Arc::new(Mutex::new(Some(pusher)));
        let join = {
            let pusher = pusher.clone();
            move || pusher.lock().take().map(|pusher| pusher.join().unwrap())
        };
        worker.park_mut().meanwhile = Some(Box::new({
            let join = join.clone();
            move || {
                join();
                // Ordering: Relaxed, as above.
                assert!(is_unparked.0.load(Relaxed), "a task, and nobody woken");
            }
        }));
        worker.park();
        // A worker that has seen the task has not slept.
        join();
        drop(runtime);
        while worker.tick() != Tick::Ended {
            thread::yield_now();
        }
    });
}
