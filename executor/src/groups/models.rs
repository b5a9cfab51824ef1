//! Models of groups. Each has two threads, and at most two driven workers.
use super::group::Group;
use crate::{
    Builder, Runtime, SchedulingGroup, Tick, Worker, spawn_in,
    worker::park::{Park, ThreadPark},
    yield_now,
};
use std::{
    future::poll_fn,
    sync::Arc as StdArc,
    task::{Poll, Waker},
};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    sync::{Arc, Mutex},
    thread,
};
use worker_queue::RunQueue;

pub(super) fn bounded(preemptions: usize) -> Model {
    Model::new().bound(preemptions).branches(20_000)
}

/// Builds a runtime of driven workers. The clock of its groups stands still.
fn driven<const N: usize>() -> (Runtime, [Worker<ThreadPark>; N]) {
    build(Builder::new())
}

/// As [`driven`], of this builder.
pub(super) fn build<const N: usize>(builder: Builder) -> (Runtime, [Worker<ThreadPark>; N]) {
    let parks = [(); N].map(|()| ThreadPark::new());
    let (runtime, workers) = builder
        .ring_capacity(2)
        .group_clock(StdArc::default())
        .build_driven(parks);
    let workers = workers.try_into().map_err(drop).expect("N parks");
    (runtime, workers)
}

fn group(runtime: &Runtime, name: &str) -> SchedulingGroup {
    runtime.group(name).build().unwrap()
}

pub(super) fn end<const N: usize>(runtime: Runtime, mut workers: [Worker<ThreadPark>; N]) {
    drop(runtime);
    while workers
        .iter_mut()
        .any(|worker| worker.tick() != Tick::Ended)
    {
        thread::yield_now();
    }
}

/// Returns a future that stores the waker of its first poll in `waker`. It completes in its second
/// poll, and adds one to `ran` there.
pub(super) fn waits(
    waker: Arc<Mutex<Option<Waker>>>,
    ran: Arc<AtomicUsize>,
) -> impl Future<Output = ()> {
    let mut polls = 0;
    poll_fn(move |cx| {
        polls += 1;
        if polls == 2 {
            ran.fetch_add(1, Relaxed);
            return Poll::Ready(());
        }
        *waker.lock() = Some(cx.waker().clone());
        Poll::Pending
    })
}

/// A thread wakes a task of a group. Meanwhile the worker runs a task of another group, finds no
/// more work, and goes to sleep. The woken task still runs.
///
/// Fails if `Shared::has_work` does not look at the groups' injector.
#[test]
fn wake_racing_the_end_of_its_groups_turn_is_found() {
    bounded(2).check(|| {
        let (runtime, [mut worker]) = driven();
        let (one, two) = (group(&runtime, "one"), group(&runtime, "two"));
        let (waker, ran) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
        drop(spawn_in(&one, waits(waker.clone(), ran.clone())).unwrap());
        assert_eq!(worker.tick(), Tick::Ran);
        drop(spawn_in(&two, yield_now()).unwrap());
        let other = thread::spawn(move || {
            let waker: Waker = waker.lock().take().expect("it was polled");
            waker.wake();
        });
        while ran.load(Relaxed) == 0 {
            if worker.tick() == Tick::Idle {
                worker.park();
            }
        }
        other.join().unwrap();
        end(runtime, [worker]);
    });
}

/// A worker pushes a task into its list for the task's group, while another worker looks for work a
/// last time and sleeps. The worker that pushed does not tick again, so the other worker must find
/// the task.
///
/// Fails if `GroupStealer::is_empty` ignores the lists, or if `GroupQueue::push` does not notify
/// after a push into a list.
#[test]
fn push_into_a_list_racing_a_sleep_is_found() {
    push_into_a_list(1);
}

/// The same as `push_into_a_list_racing_a_sleep_is_found`, with one more preemption.
#[test]
fn full_push_into_a_list_racing_a_sleep_is_found() {
    push_into_a_list(2);
}

fn push_into_a_list(preemptions: usize) {
    bounded(preemptions).check(|| {
        let (runtime, [mut one, mut two]) = driven();
        let batch = group(&runtime, "batch");
        let ran = Arc::new(AtomicUsize::new(0));
        let (count, done) = (ran.clone(), two.park_mut().waker());
        drop(spawn_in(&batch, async move {
            drop(crate::spawn(async move {
                count.fetch_add(1, Relaxed);
                done.wake_by_ref(); // If `two` sleeps, it wakes and sees the count.
            }));
        }));
        let other = thread::spawn(move || {
            let _ = one.tick();
            one
        });
        while ran.load(Relaxed) == 0 {
            if two.tick() == Tick::Idle {
                two.park();
            }
        }
        let one = other.join().unwrap();
        end(runtime, [one, two]);
    });
}

/// A group has two tasks, each of which yields once. A worker does two polls. Meanwhile another
/// worker steals and sleeps. The first worker does no third poll, so the other worker must find
/// both tasks.
///
/// Fails if the first worker forgets the requeued task when it chooses the next one, or if
/// `GroupQueue::leave` does not publish the requeued task.
#[test]
fn requeued_task_racing_a_thief_is_found() {
    bounded(1).check(|| {
        let (runtime, [one, mut two]) = driven();
        let batch = group(&runtime, "batch");
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let (ran, done) = (ran.clone(), two.park_mut().waker());
            let task = async move {
                yield_now().await;
                ran.fetch_add(1, Relaxed);
                done.wake_by_ref(); // If `two` sleeps, it wakes and sees the count.
            };
            drop(spawn_in(&batch, task).unwrap());
        }
        let other = thread::spawn(move || {
            let core = &**one.core;
            core.as_worker(|| {
                for _ in 0..2 {
                    poll_next(core);
                }
                core.queue.leave(core);
            });
            one
        });
        while ran.load(Relaxed) < 2 {
            if two.tick() == Tick::Idle {
                two.park();
            }
        }
        let one = other.join().unwrap();
        end(runtime, [one, two]);
    });
}

/// A thief steals the last task of a group and runs it. The thread that drives the victim looks at
/// the victim's lists and tries to destroy the group. If it succeeds, this thread spawns a task in
/// a new group, which gets the old group's index. No thread uses the old group after that group is
/// freed, and no thread takes one group for the other.
///
/// Fails if `Entry::group` is not a counted reference.
#[test]
fn full_steal_racing_the_groups_end_uses_no_freed_group() {
    bounded(1).check(|| {
        let (runtime, [mut one, mut two]) = driven();
        let batch = group(&runtime, "batch");
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let ran = ran.clone();
            let count = async move {
                ran.fetch_add(1, Relaxed);
            };
            drop(spawn_in(&batch, count).unwrap());
        }
        assert_eq!(one.tick(), Tick::Ran); // The other task is queued, for `one` or a thief.
        let thief = thread::spawn(move || {
            let _ = two.tick();
            two
        });
        let _ = one.tick();
        if batch.destroy().is_ok() {
            assert_eq!(ran.load(Relaxed), 2, "both tasks have ended");
            let next = group(&runtime, "next");
            let ran = ran.clone();
            let count = async move {
                ran.fetch_add(1, Relaxed);
            };
            drop(spawn_in(&next, count).unwrap());
            let _ = one.tick();
        }
        let two = thief.join().unwrap();
        end(runtime, [one, two]);
    });
}

/// A spawn races a `destroy` of its group. Either the spawn makes the group busy, or the group is
/// gone and refuses the spawn. A group that is gone has no task.
///
/// Fails if `Group::enter` checks `GONE` before it adds the use.
#[test]
fn spawn_racing_the_groups_end_is_refused_or_keeps_it() {
    Model::new().check(|| {
        let shares = sched_group::Shares::new(1).unwrap();
        let group = Arc::new(Group::new("g", shares, None, 0, false));
        let spawner = {
            let group = group.clone();
            thread::spawn(move || group.enter())
        };
        let destroyed = group.destroy();
        let entered = spawner.join().unwrap();
        assert!(destroyed != entered);
        assert_eq!(group.is_gone(), destroyed);
        if entered {
            group.leave();
            assert!(group.destroy());
        }
        assert_eq!(group.uses(), 0);
    });
}

/// The thread that destroys a group sees what the group's last task wrote.
///
/// Fails if `Group::leave` uses Relaxed, or if `Group::destroy` does.
#[test]
fn destroyer_knows_what_the_last_task_did() {
    Model::new().check(|| {
        let shares = sched_group::Shares::new(1).unwrap();
        let group = Arc::new(Group::new("g", shares, None, 0, false));
        let done = Arc::new(AtomicUsize::new(0));
        assert!(group.enter());
        let task = {
            let (group, done) = (group.clone(), done.clone());
            thread::spawn(move || {
                done.store(7, Relaxed);
                group.leave();
            })
        };
        if group.destroy() {
            assert_eq!(done.load(Relaxed), 7);
        }
        task.join().unwrap();
    });
}

/// Shares change while a worker picks a group. The first pick after the change uses the new shares.
///
/// Fails if `set_shares` increases the version before it stores the shares, or if `Groups::version`
/// uses Relaxed.
#[test]
fn shares_changed_during_a_pick_reach_the_next_one() {
    bounded(3).check(|| {
        let (runtime, [mut worker]) = driven();
        let batch = group(&runtime, "batch");
        for _ in 0..2 {
            drop(
                spawn_in(&batch, async {
                    loop {
                        yield_now().await
                    }
                })
                .unwrap(),
            );
        }
        assert_eq!(worker.tick(), Tick::Ran);
        let changed = Arc::new(AtomicUsize::new(0));
        let setter = {
            let (batch, changed) = (batch.clone(), changed.clone());
            thread::spawn(move || {
                batch.set_shares(7).unwrap();
                changed.store(1, sync_shim::atomic::Ordering::Release);
            })
        };
        let was_changed = changed.load(sync_shim::atomic::Ordering::Acquire) == 1;
        assert_eq!(worker.tick(), Tick::Ran);
        let groups = &runtime.handle().shared().groups;
        let shares = || {
            groups.workers[0].with(|state| {
                let key = state.known(&batch.group).expect("it had tasks here");
                state.fair.shares(key).unwrap().get()
            })
        };
        assert!(!was_changed || shares() == 7);
        setter.join().unwrap();
        assert_eq!(worker.tick(), Tick::Ran);
        assert_eq!(shares(), 7);
        end(runtime, [worker]);
    });
}

/// A thread from outside wakes the last task of a group, which is also the runtime's last task. The
/// wake races the runtime's end. No thread uses a freed group.
///
/// Fails if `Scheduler::schedule` reads the runtime's address out of the group after the push.
#[test]
fn last_wake_of_a_group_racing_the_end_is_no_use_after_free() {
    bounded(2).check(|| {
        let (runtime, [worker]) = driven();
        let mut worker = worker;
        let batch = group(&runtime, "batch");
        let (waker, ran) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
        drop(spawn_in(&batch, waits(waker.clone(), ran)).unwrap());
        assert_eq!(worker.tick(), Tick::Ran);
        drop(batch);
        let other = thread::spawn(move || {
            let waker: Waker = waker.lock().take().expect("it was polled");
            waker.wake();
        });
        end(runtime, [worker]);
        other.join().unwrap();
    });
}

/// Polls the worker's next task, if there is one. Like the loop of a thread of the runtime, and
/// unlike a tick, this does not `leave` the queue after the poll.
pub(super) fn poll_next(core: &crate::worker::core::Core) {
    use coop_budget::{Budget, Scope};
    if let Some(task) = core.next() {
        let settings = core.begin_run(&task);
        Scope::new(Budget::UNLIMITED)
            .hook(&crate::worker::context::OnWorker)
            .turns(|turns| crate::worker::run::run::<false>(&core.shared, turns, settings, task));
    }
}
