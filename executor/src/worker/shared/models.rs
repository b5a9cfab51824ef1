//! Models of races of a runtime's workers: with tasks that reach the queues late in the runtime's
//! end, with notifiers, and with thieves. The workers are driven, so that the models have only two
//! or three threads.
use super::Scheduler;
use crate::{
    Builder, Runtime, Tick, Worker,
    worker::park::{Park, ThreadPark},
};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};
use sync_shim::{
    Model,
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
    sync::{Arc, Mutex},
    thread,
};

fn driven() -> (Runtime, Worker<ThreadPark>) {
    let (runtime, mut workers) = Builder::new()
        .ring_capacity(2)
        .build_driven([ThreadPark::new()]);
    (runtime, workers.remove(0))
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A thread without a core queues a task while the runtime closes and its only worker ends. The
/// worker drops the task, or the thread that queued it does.
///
/// Fails if `Core::end` or `Idle::notify` has no fence, or if `take_in` does not check the close.
#[test]
fn requeue_racing_the_end_drops_the_task() {
    Model::new().branches(20_000).check(|| {
        let (runtime, mut worker) = driven();
        let shared = runtime.handle().shared().clone();
        let dropped = Arc::new(AtomicUsize::new(0));
        let counted = Counted(dropped.clone());
        runtime.spawn_detached(async move {
            let _counted = counted;
            std::future::pending::<()>().await;
        });
        let task = shared.injector.pop().unwrap();
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.take_in(task))
        };
        drop(runtime);
        while worker.tick() != Tick::Ended {
            thread::yield_now();
        }
        other.join().unwrap();
        assert!(shared.injector.is_empty());
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// Holds a place for a waker. If there is a waker when this is dropped, the drop calls its `wake`.
struct WakesAtItsEnd(Arc<Mutex<Option<Waker>>>);

impl Drop for WakesAtItsEnd {
    fn drop(&mut self) {
        let waker = self.0.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Each of two tasks wakes the other when its future is dropped. So the drop of the first future
/// puts the second task into the LIFO slot. The worker still ends, and leaves no reference in the
/// slot.
///
/// Fails if `WorkerQueue::take_any` does not clear the slot.
#[test]
fn task_put_into_the_slot_by_the_end_of_another_ends() {
    Model::new().branches(20_000).check(|| {
        let (runtime, mut worker) = driven();
        let wakers = [(); 2].map(|()| Arc::new(Mutex::new(None)));
        for i in 0..2 {
            let (mine, other) = (wakers[i].clone(), WakesAtItsEnd(wakers[1 - i].clone()));
            runtime.spawn_detached(poll_fn(move |cx| {
                let _wakes = &other;
                *mine.lock() = Some(cx.waker().clone());
                Poll::<()>::Pending
            }));
        }
        while worker.tick() == Tick::Ran {}
        let other = thread::spawn(move || drop(runtime));
        let _ = worker.tick();
        other.join().unwrap();
        assert_eq!(worker.tick(), Tick::Ended);
        assert!(wakers.iter().all(|waker| waker.lock().is_none()));
    });
}

/// A push from outside races a thread that closes the runtime, and the worker that ends: the push
/// is refused, or the worker finds the task. No thread waits for a task forever.
///
/// Fails if the close is stored with Relaxed.
#[test]
fn push_racing_the_close_is_refused_or_found() {
    (Model::new().bound(3).branches(20_000)).check(|| push_racing_the_close(1));
}

/// As `push_racing_the_close_is_refused_or_found`, without a bound.
#[test]
fn full_push_racing_the_close_is_refused_or_found() {
    Model::new()
        .branches(20_000)
        .check(|| push_racing_the_close(1));
}

/// As `push_racing_the_close_is_refused_or_found`, into the second of two shards.
#[test]
fn push_into_a_shard_racing_the_close_is_refused_or_found() {
    (Model::new().bound(3).branches(20_000)).check(|| push_racing_the_close(2));
}

fn push_racing_the_close(shards: usize) {
    let (runtime, mut workers) = Builder::new()
        .ring_capacity(2)
        .injector_shards(shards)
        .build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    let shared = runtime.handle().shared().clone();
    let pusher = {
        let shared = shared.clone();
        let task = task_header::new_detached(async {}, Scheduler::of(&shared));
        thread::spawn(move || shared.inject(task))
    };
    let closer = {
        let shared = shared.clone();
        thread::spawn(move || shared.close())
    };
    let ended = worker.tick() == Tick::Ended;
    pusher.join().unwrap();
    closer.join().unwrap();
    assert!(!ended || shared.injector.is_empty());
    while worker.tick() != Tick::Ended {}
}

/// A task in the list of the third of three workers owns the second worker. The first worker was
/// dropped, so a wake of the task from outside drops the task and with it the second worker.
/// Meanwhile the third worker ends. The wake waits for no thread. The runtime is freed after the
/// wake and the end of the third worker.
///
/// The drop of the second worker calls `Registry::wait_keeping` inside the wake's announcement.
/// Fails if that call waits, or drops the scheduler.
#[test]
fn worker_dropped_in_a_wake_racing_another_end_ends() {
    (Model::new().bound(2).branches(20_000)).check(|| {
        let parks = [(); 3].map(|()| ThreadPark::new());
        let (runtime, workers) = Builder::new().ring_capacity(2).build_driven(parks);
        let [first, owned, mut last] = <[_; 3]>::try_from(workers).unwrap();
        let waits = Arc::new(Mutex::new(None));
        let waker = waits.clone();
        runtime.spawn_detached(poll_fn(move |cx| {
            let _owned = &owned;
            *waker.lock() = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        assert_eq!(last.tick(), Tick::Ran);
        let waker: Waker = waits.lock().take().unwrap();
        drop((first, runtime));
        let other = thread::spawn(move || waker.wake());
        while last.tick() != Tick::Ended {
            last.park();
        }
        drop(last);
        other.join().unwrap();
    });
}

/// A wake from outside races the end of a runtime, which also has an unstarted worker. The other
/// worker, which waits for the task, is unparked.
///
/// Fails if the unstarted worker still counts as searching after the close.
#[test]
fn wake_racing_the_end_skips_an_unstarted_worker() {
    (Model::new().bound(3).branches(20_000)).check(|| {
        let beside = Builder::new().ring_capacity(2);
        let (runtime, mut worker) = beside.build_beside_one_unstarted();
        let waits = Arc::new(Mutex::new(None));
        let waker = waits.clone();
        runtime.spawn_detached(poll_fn(move |cx| {
            *waker.lock() = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        assert_eq!(worker.tick(), Tick::Ran);
        let waker: Waker = waits.lock().take().unwrap();
        let other = thread::spawn(move || waker.wake());
        drop(runtime);
        while worker.tick() != Tick::Ended {
            worker.park();
        }
        other.join().unwrap();
    });
}

/// Parker that runs a closure while its worker sleeps.
struct Scene {
    unparks: Arc<AtomicUsize>,
    play: Option<Box<dyn FnOnce() + Send>>,
}

impl Scene {
    fn new() -> Self {
        Self {
            unparks: Arc::new(AtomicUsize::new(0)),
            play: None,
        }
    }
}

struct Unparks(Arc<AtomicUsize>);

impl Wake for Unparks {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Park for Scene {
    fn park(&mut self) {
        if let Some(play) = self.play.take() {
            play();
        }
    }

    fn park_timeout(&mut self, _: Duration) {
        self.park();
    }

    fn waker(&self) -> Waker {
        Waker::from(std::sync::Arc::new(Unparks(self.unparks.clone())))
    }
}

/// Two workers sleep. The first worker is woken for a task. While this worker is still a searcher,
/// a thread pushes another task. When the first worker polls its task, the second worker has been
/// woken: by that thread, or by the first worker when it stopped searching.
///
/// Fails if a worker stops searching without a look for more work.
#[test]
fn searcher_kept_by_a_task_has_woken_another_for_the_next() {
    Model::new().branches(20_000).check(|| {
        let parks = [(); 2].map(|()| Scene::new());
        let unparks = parks[1].unparks.clone();
        let (runtime, workers) = Builder::new().ring_capacity(2).build_driven(parks);
        let [mut searcher, mut sleeper] = <[_; 2]>::try_from(workers).unwrap();
        let handle = runtime.handle().clone();
        let shared = handle.shared().clone();
        let back = Arc::new(Mutex::new(None));
        let give = back.clone();
        let left = Arc::new(Mutex::new(None));
        let seen = left.clone();
        sleeper.park_mut().play = Some(Box::new(move || {
            let pusher = Arc::new(Mutex::new(None::<thread::JoinHandle<()>>));
            let pushed = pusher.clone();
            let (shared, outside) = (shared, handle.clone());
            let first = async move {
                let pusher = pushed.lock().take();
                pusher.unwrap().join().unwrap();
                *seen.lock() = Some((shared.has_work(), unparks.load(Relaxed)));
            };
            searcher.park_mut().play = Some(Box::new(move || outside.spawn_detached(first)));
            searcher.park();
            *pusher.lock() = Some(thread::spawn(move || handle.spawn_detached(async {})));
            assert_eq!(searcher.tick(), Tick::Ran);
            *give.lock() = Some(searcher);
        }));
        sleeper.park();
        let mut searcher = back.lock().take().unwrap();
        let (work, unparks) = left.lock().unwrap();
        assert!(!work || unparks > 0, "work, and nobody woken");
        drop(runtime);
        while searcher.tick() != Tick::Ended || sleeper.tick() != Tick::Ended {}
    });
}

/// Two workers sleep while the third worker, the owner, polls a task. One sleeper is woken for a
/// second task. While this worker is still a searcher, the owner's task puts a third task into the
/// owner's slot, and goes on. When the searcher has run its task, the other sleeper has been woken
/// to watch the slot: by the owner, or by the searcher when it stopped searching.
///
/// Fails if a worker stops searching without a look for a filled slot that nobody watches.
#[test]
fn searcher_kept_by_a_task_has_woken_another_for_a_slot() {
    Model::new().branches(20_000).check(|| {
        let parks = [(); 3].map(|()| Scene::new());
        let unparks = parks[1].unparks.clone();
        let (runtime, workers) = Builder::new().ring_capacity(2).build_driven(parks);
        let [mut searcher, mut sleeper, mut owner] = <[_; 3]>::try_from(workers).unwrap();
        let shared = runtime.handle().shared().clone();
        let back = Arc::new(Mutex::new(None));
        let give = back.clone();
        runtime.spawn_detached(async move {
            let task = task_header::new_detached(async {}, Scheduler::of(&shared));
            searcher.park_mut().play = Some(Box::new({
                let shared = shared.clone();
                move || shared.inject(task)
            }));
            let searchers = Arc::new(Mutex::new(None));
            let returned = searchers.clone();
            sleeper.park_mut().play = Some(Box::new(move || {
                searcher.park();
                let searches = thread::spawn(move || {
                    assert_eq!(searcher.tick(), Tick::Ran);
                    searcher
                });
                crate::spawn_detached(async {});
                *returned.lock() = Some(searches.join().unwrap());
                assert!(shared.has_filled_slot());
                assert!(unparks.load(Relaxed) > 0, "a slot, and nobody woken");
            }));
            sleeper.park();
            let searcher = searchers.lock().take().unwrap();
            *give.lock() = Some((searcher, sleeper));
        });
        assert_eq!(owner.tick(), Tick::Ran);
        let (mut searcher, mut sleeper) = back.lock().take().unwrap();
        drop(runtime);
        for worker in [&mut searcher, &mut sleeper, &mut owner] {
            while worker.tick() != Tick::Ended {}
        }
    });
}

/// A worker fills its slot while another worker goes to sleep. That worker watches the slot, or was
/// notified and so looks before it sleeps again.
///
/// Fails if the request of `Shared::call_watcher` has no fence, or if `call_watcher` notifies
/// nobody.
#[test]
fn slot_filled_beside_a_worker_that_falls_asleep_is_watched() {
    Model::new().branches(20_000).check(|| {
        let parks = [(); 2].map(|()| Scene::new());
        let (runtime, workers) = Builder::new().ring_capacity(2).build_driven(parks);
        let [owner, mut sleeper] = <[_; 2]>::try_from(workers).unwrap();
        let shared = runtime.handle().shared().clone();
        let back = Arc::new(Mutex::new(None));
        let give = back.clone();
        let filler = {
            let task = task_header::new_detached(async {}, Scheduler::of(&shared));
            thread::spawn(move || {
                assert!(owner.core.accept(task).is_none());
                owner
            })
        };
        sleeper.park_mut().play = Some(Box::new(move || {
            *give.lock() = Some(filler.join().unwrap());
            assert!(shared.has_filled_slot());
            let looks = shared.idle.is_watched() || shared.idle.was_notified(1);
            assert!(looks, "a slot, and nobody looks");
        }));
        sleeper.park();
        let mut owner = back.lock().take().unwrap();
        drop(runtime);
        while owner.tick() != Tick::Ended || sleeper.tick() != Tick::Ended {}
    });
}

/// The runtime closes while a worker is about to park. If the worker's hook for parks has seen the
/// close, the worker also sees the close, and does not park.
///
/// Fails if a worker announces its sleep without a look at the close.
#[test]
fn worker_whose_hook_saw_the_close_does_not_park() {
    Model::new().branches(20_000).check(|| {
        let closed = Arc::new(AtomicUsize::new(0));
        let known = Arc::new(AtomicUsize::new(0));
        let (tell, know) = (closed.clone(), known.clone());
        let (runtime, mut workers) = Builder::new()
            // Ordering: Acquire pairs with the store by the thread that has closed the runtime.
            // Relaxed, as only this thread uses `known`.
            .on_thread_park(move || know.store(closed.load(Acquire), Relaxed))
            .build_driven([Scene::new()]);
        let mut worker = workers.remove(0);
        let other = thread::spawn(move || {
            drop(runtime);
            // Ordering: Release pairs with the hook's load.
            tell.store(1, Release);
        });
        if worker.tick() == Tick::Idle {
            let may_wait = move || assert_eq!(known.load(Relaxed), 0, "it waits");
            worker.park_mut().play = Some(Box::new(may_wait));
            worker.park();
        }
        other.join().unwrap();
        while worker.tick() != Tick::Ended {}
    });
}

/// A worker polls a task that puts another task into the slot. Then the worker takes that task out
/// of the slot. Meanwhile a second worker watches the slot, and steals the task if it sees the same
/// task twice. One of the two workers runs the task.
///
/// Fails if the stolen task stays in the slot.
#[test]
fn task_in_the_slot_racing_a_thief_runs_once() {
    (Model::new().bound(2).branches(20_000)).check(|| {
        let parks = [(); 2].map(|()| Scene::new());
        let (runtime, workers) = Builder::new().ring_capacity(2).build_driven(parks);
        let [mut owner, mut thief] = <[_; 2]>::try_from(workers).unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let count = ran.clone();
        runtime.spawn_detached(async move {
            crate::spawn_detached(async move {
                count.fetch_add(1, Relaxed);
            });
        });
        let other = thread::spawn(move || {
            // The thief watches the slot: it looks once in each park, and compares the two looks.
            for _ in 0..2 {
                thief.park();
            }
            let _ = thief.tick();
            thief
        });
        let _ = owner.tick();
        let mut thief = other.join().unwrap();
        while owner.tick() == Tick::Ran || thief.tick() == Tick::Ran {}
        assert_eq!(ran.load(Relaxed), 1);
        drop(runtime);
        while owner.tick() != Tick::Ended || thief.tick() != Tick::Ended {}
    });
}

/// A thread aborts a task by its join handle while the worker runs the task to its end. The handle
/// returns the output, or the error that the task was cancelled. The future is dropped once.
///
/// Fails if the end of the task does not wake the handle's waker.
#[test]
fn abort_and_join_racing_a_completion_have_one_answer() {
    (Model::new().bound(3).branches(20_000)).check(|| {
        let (runtime, mut worker) = driven();
        let dropped = Arc::new(AtomicUsize::new(0));
        let counted = Counted(dropped.clone());
        let mut task = runtime.spawn(async move {
            let _counted = counted;
            7
        });
        let other = thread::spawn(move || {
            let woken = Arc::new(AtomicUsize::new(0));
            let waker = Waker::from(std::sync::Arc::new(Woken(woken.clone())));
            let first = Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
            task.abort();
            (task, first, woken)
        });
        while worker.tick() == Tick::Ran {}
        let (mut task, first, woken) = other.join().unwrap();
        while worker.tick() == Tick::Ran {}
        assert_eq!(dropped.load(Relaxed), 1);
        let answer = match first {
            Poll::Ready(answer) => answer,
            Poll::Pending => {
                assert_eq!(woken.load(Relaxed), 1);
                match Pin::new(&mut task).poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(answer) => answer,
                    Poll::Pending => panic!("it has ended"),
                }
            }
        };
        assert!(answer.map_or_else(|error| error.is_cancelled(), |output| output == 7));
        drop(runtime);
        assert_eq!(worker.tick(), Tick::Ended);
    });
}

struct Woken(Arc<AtomicUsize>);

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}
