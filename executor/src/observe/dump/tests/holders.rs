//! Tests of locks and their holders, and of cycles.
use super::*;
use task_sync::{Mutex, RwLock, mpsc};

fn of(dump: &[TaskDump], id: Id) -> &TaskDump {
    dump.iter().find(|dump| dump.task.id == id).expect("listed")
}

/// Returns the task that holds the lock for which the only wait of a task is.
fn holder(dump: &TaskDump) -> Option<u64> {
    assert_eq!(dump.waits.len(), 1, "{dump}");
    match dump.waits[0].on {
        Some(WaitsOn::Lock { holder, .. }) => holder,
        _ => panic!("no lock: {dump}"),
    }
}

fn id(id: Id) -> Option<u64> {
    Some(id.into())
}

/// The deadlock of a lock and a channel: no cycle of tasks, as nobody knows the sender.
#[test]
fn dump_names_the_lock_its_holder_and_the_channel() {
    let runtime = listing(2);
    let mutex = StdArc::new(Mutex::new(()));
    let (send, mut receive) = mpsc::channel::<()>(1);
    let has_lock = mutex.clone();
    let first = runtime.spawn(async move {
        let _guard = has_lock.lock().await;
        outer_function(async { assert!(receive.recv().await.is_none()) }).await;
    });
    await_waiting(&runtime);
    let second = runtime.spawn(async move {
        outer_function(async { drop(mutex.lock().await) }).await;
        send.send(()).await.unwrap();
    });
    await_waiting(&runtime);
    let dump = dump_all(&runtime);
    let (of_first, of_second) = (of(&dump, first.id()), of(&dump, second.id()));
    assert_eq!(holder(of_second), id(first.id()));
    assert_has_functions(&of_first.waits[0]);
    assert_has_functions(&of_second.waits[0]);
    let text = of_first.to_string();
    assert!(
        text.contains("awaits a message of an mpsc channel 0x"),
        "{text}"
    );
    let text = of_second.to_string();
    let held = format!(", held by task {}", first.id());
    assert!(
        text.contains("awaits a mutex 0x") && text.contains(&held),
        "{text}"
    );
    assert!(wait_cycles(&dump).is_empty());
    // The list shows the waits that the dump has found, until the task is polled again.
    let tasks = runtime.handle().tasks().unwrap();
    let listed = tasks.iter().find(|task| task.id == second.id()).unwrap();
    assert_eq!(listed.waits_on.len(), 1);
    assert_eq!(listed.waits_on[0].task(), id(first.id()));
    first.abort();
    second.abort();
}

#[test]
fn dump_finds_the_cycle_of_two_locks_and_a_join() {
    let runtime = listing(2);
    let locks = StdArc::new((Mutex::new(()), RwLock::new(())));
    let (go, going) = oneshot::channel::<()>();
    let (id_of_third, third_id) = oneshot::channel();
    let one = locks.clone();
    let first = runtime.spawn(async move {
        let _guard = one.0.lock().await;
        going.await.unwrap();
        let _second = one.1.write().await;
    });
    let two = locks.clone();
    let second = runtime.spawn(async move {
        let _guard = two.1.read().await;
        let third: task_header::JoinHandle<()> = third_id.await.unwrap();
        third.await.unwrap();
    });
    await_waiting(&runtime);
    let three = locks.clone();
    let third = runtime.spawn(async move { drop(three.0.lock().await) });
    let ids = [first.id(), second.id(), third.id()];
    go.send(()).unwrap();
    id_of_third.send(third).unwrap();
    await_waiting(&runtime);
    let dump = dump_all(&runtime);
    assert_eq!(holder(of(&dump, ids[0])), id(ids[1]));
    assert_eq!(holder(of(&dump, ids[2])), id(ids[0]));
    let cycles = wait_cycles(&dump);
    assert_eq!(cycles.len(), 1, "{dump:?}");
    let begin = cycles[0].tasks.iter().position(|task| *task == ids[0]);
    let mut tasks = cycles[0].tasks.clone();
    tasks.rotate_left(begin.unwrap());
    assert_eq!(tasks, [ids[0], ids[1], ids[2]]);
    let text = cycles[0].to_string();
    for what in [
        "a mutex",
        "a writer's lock",
        "the end of task",
        "3 tasks wait",
        "unless a task has given a guard",
    ] {
        assert!(text.contains(what), "{text}");
    }
    assert!(
        dump.iter().all(|dump| dump.task.polls <= 3),
        "a dump's polls do not count"
    );
    first.abort();
    runtime.block_on(first).unwrap_err();
    runtime.block_on(second).unwrap();
}

/// Fails if a hand-over leaves the name of the last holder, or if the waiter that gets the lock
/// does not note itself.
#[test]
fn holder_is_the_waiter_to_which_the_lock_has_gone() {
    let runtime = listing(2);
    for is_mutex in [true, false] {
        let locks = StdArc::new((Mutex::new(()), RwLock::new(())));
        let task = |locks: StdArc<(Mutex<()>, RwLock<()>)>, leave: oneshot::Receiver<()>| {
            runtime.spawn(async move {
                let guards = match is_mutex {
                    true => (Some(locks.0.lock().await), None),
                    false => (None, Some(locks.1.write().await)),
                };
                let _ = leave.await;
                drop(guards);
            })
        };
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let (leave, left) = oneshot::channel();
            tasks.push((leave, task(locks.clone(), left)));
            await_waiting(&runtime);
        }
        while tasks.len() > 1 {
            await_waiting(&runtime);
            let dump = dump_all(&runtime);
            for (_, waits) in &tasks[1..] {
                assert_eq!(holder(of(&dump, waits.id())), id(tasks[0].1.id()));
            }
            let (leave, first) = tasks.remove(0);
            leave.send(()).unwrap();
            runtime.block_on(first).unwrap();
        }
    }
}

/// A reader that has left is no holder, although it was the last one to enter.
#[test]
fn reader_that_has_left_is_no_holder() {
    let runtime = listing(2);
    let lock = StdArc::new(RwLock::new(()));
    let (_open, stays) = message();
    let (leave, leaves) = message();
    let read = |until: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        let lock = lock.clone();
        runtime.spawn(async move {
            let _guard = lock.read().await;
            until.await;
        })
    };
    let _first = read(Box::pin(stays));
    await_waiting(&runtime);
    let second = read(Box::pin(leaves));
    await_waiting(&runtime);
    let wanted = lock.clone();
    let writer = runtime.spawn(async move { drop(wanted.write().await) });
    await_waiting(&runtime);
    let seen = || holder(of(&dump_all(&runtime), writer.id()));
    assert_eq!(seen(), id(second.id()));
    leave.send(()).unwrap();
    runtime.block_on(second).unwrap();
    await_waiting(&runtime);
    assert_eq!(seen(), None, "nobody knows the other reader");
    writer.abort();
}

/// A static lock, a lock of another thread, and a lock that nobody holds any more.
#[cfg(not(selvedge_count))] // There a lock is not constant.
#[test]
fn holder_outside_of_the_list_is_not_named() {
    static LOCK: Mutex<()> = Mutex::const_new(());
    let runtime = listing(2);
    let guard = LOCK.try_lock().unwrap();
    let task = runtime.spawn(async { drop(LOCK.lock().await) });
    await_waiting(&runtime);
    assert_eq!(holder(of(&dump_all(&runtime), task.id())), None);
    drop(guard);
    runtime.block_on(task).unwrap();
    let holds = runtime.spawn(async {
        let guard = LOCK.lock().await;
        pending::<()>().await;
        drop(guard);
    });
    await_waiting(&runtime);
    let waits = runtime.spawn(async { drop(LOCK.lock().await) });
    await_waiting(&runtime);
    assert_eq!(holder(of(&dump_all(&runtime), waits.id())), id(holds.id()));
    holds.abort();
    runtime.block_on(waits).unwrap();
}

/// Returns a dump of tasks that wait for the ends of those with these places.
fn graph(runtime: &Runtime, edges: &[&[usize]]) -> Vec<TaskDump> {
    for _ in edges {
        runtime.spawn_detached(pending::<()>());
    }
    await_waiting(runtime);
    let mut dump = dump_all(runtime);
    let ids: Vec<_> = dump.iter().map(|dump| u64::from(dump.task.id)).collect();
    for (dump, awaited) in dump.iter_mut().zip(edges) {
        assert_eq!(dump.outcome, DumpOutcome::Waits);
        let waits = awaited.iter().map(|&place| TaskWait {
            what: None,
            on: Some(WaitsOn::Task(ids[place])),
            frames: StdArc::from([]),
        });
        dump.waits = waits.collect();
    }
    dump
}

#[test]
fn suspect_that_ends_before_the_second_round_is_in_no_cycle() {
    let runtime = listing(1);
    let mut dump = graph(&runtime, &[&[1], &[0]]);
    let again = dump.clone();
    assert_eq!(wait_cycles(&dump).len(), 1);
    confirm(&mut dump, again);
    assert_eq!(wait_cycles(&dump).len(), 1, "both wait as before");
    confirm(&mut dump, Vec::new());
    assert!(wait_cycles(&dump).is_empty());
}

/// The tasks 0 and 1 are suspects, and 1 goes on. Nobody has asked 2 again, with which 0 would make
/// a cycle, too.
#[test]
fn task_that_nobody_has_asked_again_is_in_no_cycle() {
    let runtime = listing(1);
    let mut dump = graph(&runtime, &[&[2, 1], &[0], &[0]]);
    let cycles = wait_cycles(&dump);
    assert_eq!(cycles.len(), 1);
    assert!(cycles[0].tasks.contains(&dump[1].task.id));
    let mut again = dump[..2].to_vec();
    again[1].outcome = DumpOutcome::Progressed;
    confirm(&mut dump, again);
    assert!(wait_cycles(&dump).is_empty());
}

/// Two tasks that take two locks in turns, and never wait for each other for good. Fails without
/// the second round of a dump.
#[test]
fn dumps_of_tasks_that_go_on_find_no_cycle() {
    let runtime = listing(2);
    let locks = StdArc::new([(); 3].map(Mutex::new));
    let stop = StdArc::new(std::sync::atomic::AtomicBool::new(false));
    let tasks: Vec<_> = (0..3)
        .map(|n: usize| {
            let (locks, stop) = (locks.clone(), stop.clone());
            runtime.spawn(async move {
                // Ordering: Relaxed, as the flag publishes nothing else.
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let guard = locks[n].lock().await;
                    crate::yield_now().await;
                    drop(guard);
                    let other = locks[(n + 1) % 3].lock().await;
                    crate::yield_now().await;
                    drop(other);
                }
            })
        })
        .collect();
    for _ in 0..500 {
        let cycles = wait_cycles(&dump_all(&runtime));
        assert!(cycles.is_empty(), "{}", cycles[0]);
    }
    // Ordering: as above.
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    tasks
        .into_iter()
        .for_each(|task| runtime.block_on(task).unwrap());
}
