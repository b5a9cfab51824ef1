//! Models of the handover among three threads.
use super::*;
use crate::worker::park::ThreadPark;
use std::future::poll_fn;
use sync_shim::{Model, cell::UnsafeCell, sync::Arc, thread};

/// Stands for the worker: the model fails if two threads access it at a time, or if a thread does
/// not see what the last one wrote.
struct Worker(UnsafeCell<usize>);

impl Worker {
    fn drive(&mut self) {
        // SAFETY: this thread has the worker.
        self.0.with_mut(|driven| unsafe { *driven += 1 });
    }
}

/// Blocks this thread until it has driven the worker.
fn drive(handover: &Handover<Worker>) {
    let mut worker = match handover.enter() {
        Entered::Drives(worker) => worker,
        Entered::Waits(mut waiting) => {
            let drives = poll_fn(|cx| waiting.poll(cx.waker(), || Poll::<()>::Pending));
            let Err(worker) = ThreadPark::block_on(drives) else {
                unreachable!("its future is never ready");
            };
            worker
        }
        Entered::Nested => panic!("this thread does not drive"),
    };
    worker.drive();
    handover.put_back(worker);
}

fn handover() -> Arc<Handover<Worker>> {
    Arc::new(Handover::new(Worker(UnsafeCell::new(0))))
}

/// A thread leaves while two others come to wait: both get the worker.
///
/// Fails if a leave chooses no thread, or if a thread becomes idle without a look for the worker.
#[test]
fn handover_to_two_threads_reaches_both() {
    Model::new().bound(3).branches(20_000).check(|| {
        let handover = handover();
        let mut worker = handover.take().unwrap();
        let others = [(); 2].map(|()| {
            let handover = handover.clone();
            thread::spawn(move || drive(&handover))
        });
        worker.drive();
        handover.put_back(worker);
        for other in others {
            other.join().unwrap();
        }
        let worker = handover.take_for_good().unwrap();
        // SAFETY: the other threads have ended.
        assert_eq!(worker.0.with(|driven| unsafe { *driven }), 3);
    });
}

/// A thread leaves while it is idle, as after a panic in `block_on`, and perhaps just after it was
/// chosen. The other thread that waits gets the worker.
///
/// Fails if a chosen thread that leaves does not choose the next.
#[test]
fn handover_to_a_thread_that_leaves_reaches_the_next() {
    Model::new().bound(3).branches(20_000).check(|| {
        let handover = handover();
        let worker = handover.take().unwrap();
        let leaves = {
            let handover = handover.clone();
            thread::spawn(move || {
                let mut waiting = match handover.enter() {
                    Entered::Drives(worker) => return handover.put_back(worker),
                    Entered::Waits(waiting) => waiting,
                    Entered::Nested => panic!("this thread does not drive"),
                };
                let polled = waiting.poll(Waker::noop(), || Poll::<()>::Pending);
                if let Poll::Ready(Err(worker)) = polled {
                    handover.put_back(worker);
                }
            })
        };
        let waits = {
            let handover = handover.clone();
            thread::spawn(move || drive(&handover))
        };
        handover.put_back(worker);
        leaves.join().unwrap();
        waits.join().unwrap();
    });
}
