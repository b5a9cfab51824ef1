use super::*;
use crate::{Builder, Runtime};
use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    sync::{Arc as StdArc, Barrier, mpsc},
    task::{Poll, ready},
};
use tokio::sync::oneshot;

fn listing(workers: usize) -> Runtime {
    let builder = Builder::new().workers(workers).list_tasks(true);
    builder.build().unwrap()
}

/// Charges the budget for a future that does not.
async fn charged<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let progress = ready!(coop_budget::poll_proceed(cx));
        let done = future.as_mut().poll(cx);
        if done.is_ready() {
            progress.made_progress();
        }
        done
    })
    .await
}

/// A message that comes by a channel that charges the budget.
fn message() -> (oneshot::Sender<()>, impl Future<Output = ()> + Send) {
    let (send, receive) = oneshot::channel();
    (send, async { charged(receive).await.unwrap_or_default() })
}

fn await_waiting(runtime: &Runtime) {
    let waits = |task: &TaskSnapshot| task.state == TaskState::Waiting;
    while !runtime.handle().tasks().unwrap().iter().all(waits) {
        std::thread::yield_now();
    }
}

/// Waits in `block_on`, for a runtime whose only worker that is.
fn await_waiting_within(runtime: &Runtime) {
    runtime.block_on(async {
        let handle = runtime.handle();
        while handle.tasks().unwrap()[0].state != TaskState::Waiting {
            crate::yield_now().await;
        }
    });
}

/// A limit that no test reaches, however busy the machine is.
const LONG: Duration = Duration::from_secs(60);

/// Dumps the tasks, without the futures of `block_on`.
fn dump_all(runtime: &Runtime) -> Vec<TaskDump> {
    loop {
        let dump = runtime.handle().dump_some(None, LONG);
        let mut dump = runtime.block_on(dump).unwrap();
        dump.retain(|dump| dump.task.name.as_deref() != Some("block_on"));
        // On a busy machine a time slice may end amid a poll for the dump, and again before that.
        let what = |wait: &TaskWait| wait.what.as_ref().is_some_and(|what| what.contains("turn"));
        if !dump.iter().any(|dump| dump.waits.iter().any(what)) {
            return dump;
        }
    }
}

/// Occupies all workers until the sender is dropped.
fn occupy(runtime: &Runtime, workers: usize) -> mpsc::Sender<()> {
    let (free, stuck) = mpsc::channel::<()>();
    let stuck = StdArc::new(std::sync::Mutex::new(stuck));
    let all = StdArc::new(Barrier::new(workers + 1));
    for _ in 0..workers {
        let (stuck, all) = (stuck.clone(), all.clone());
        runtime.spawn_detached(async move {
            all.wait();
            let _ = stuck.lock().map(|stuck| stuck.recv());
        });
    }
    all.wait();
    free
}

/// Starts a dump on another thread, and waits until the task of this id has its request.
fn begin_dump(runtime: &Runtime, id: Id) -> std::thread::JoinHandle<Vec<TaskDump>> {
    let handle = runtime.handle().clone();
    let dump = std::thread::spawn(move || dump(handle.shared(), None, None, LONG));
    let entry = runtime.handle().shared().tasks.find(id.into()).unwrap();
    while !entry.is_asked() {
        std::thread::yield_now();
    }
    dump
}

const OUTER: u32 = line!();
#[inline(never)]
async fn outer_function(inner: impl Future<Output = ()>) {
    inner_function(inner).await;
}

const INNER: u32 = line!();
#[inline(never)]
async fn inner_function(inner: impl Future<Output = ()>) {
    inner.await;
}

/// Asserts that the stack has both functions, and none of the runtime.
fn assert_has_functions(wait: &TaskWait) {
    if !cfg!(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )) {
        return;
    }
    let here = |frame: &&Frame| frame.file.as_ref().is_some_and(|at| at.ends_with(file!()));
    let lines: Vec<_> = wait
        .frames
        .iter()
        .filter(here)
        .filter_map(|frame| frame.line)
        .collect();
    let place = |of: u32| {
        lines
            .iter()
            .position(|line| (of + 2..of + 5).contains(line))
    };
    assert!(
        place(INNER).is_some() && place(INNER) < place(OUTER),
        "{wait}"
    );
    let ends = [wait.frames.first(), wait.frames.last()].map(|frame| frame.unwrap().to_string());
    let hidden = [
        "coop-budget",
        "coop_budget",
        "sched_monitor",
        "catch_unwind",
    ];
    assert!(
        !hidden
            .iter()
            .any(|name| ends.iter().any(|end| end.contains(name))),
        "{wait}"
    );
}

#[test]
fn dump_names_the_functions_that_await() {
    let runtime = listing(2);
    let (send, receive) = message();
    let task = runtime.spawn(outer_function(receive));
    await_waiting(&runtime);
    let dump = dump_all(&runtime);
    assert_eq!((dump.len(), dump[0].outcome), (1, DumpOutcome::Waits));
    assert_eq!(dump[0].waits.len(), 1, "{}", dump[0]);
    assert_has_functions(&dump[0].waits[0]);
    let one = runtime.handle().dump_some(Some(task.id()), LONG);
    let one = runtime.block_on(one).unwrap().remove(0);
    assert_eq!(one.waits[0].frames, dump[0].waits[0].frames);
    send.send(()).unwrap();
    let id = task.id();
    runtime.block_on(task).unwrap();
    assert!(runtime.block_on(runtime.handle().dump_task(id)).is_none());
}

#[test]
fn dump_names_the_task_that_a_join_awaits() {
    let runtime = listing(2);
    let (_open, receive) = message();
    let inner = runtime.spawn(receive);
    let id = inner.id();
    let outer = runtime.spawn(outer_function(async { drop(inner.await) }));
    let outer_id = outer.id();
    let direct = runtime.spawn(outer);
    await_waiting(&runtime);
    let dump = dump_all(&runtime);
    let joins = |dump: &&TaskDump| dump.waits[0].on == Some(WaitsOn::Task(id.into()));
    let join = dump.iter().find(joins).expect("a join of the inner task");
    assert_has_functions(&join.waits[0]);
    let of_join = dump
        .iter()
        .find(|dump| dump.task.id == direct.id())
        .unwrap();
    let awaits = format!("the end of task {}", outer_id);
    assert_eq!(of_join.waits[0].what.as_ref(), Some(&awaits), "{of_join}");
    assert!(wait_cycles(&dump).is_empty());
}

#[test]
fn dump_of_two_waits_has_two_stacks() {
    let runtime = listing(1);
    let (_a, first) = message();
    let (_b, second) = message();
    let _task =
        runtime.spawn(async { futures::join!(outer_function(first), outer_function(second)) });
    await_waiting(&runtime);
    let dump = dump_all(&runtime);
    assert_eq!(dump[0].waits.len(), 2, "{}", dump[0]);
    dump[0].waits.iter().for_each(assert_has_functions);
}

#[test]
fn dump_leaves_since_and_polls_as_they_were() {
    let runtime = listing(2);
    let (_open, receive) = message();
    let _task = runtime.spawn(receive);
    await_waiting(&runtime);
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..3 {
        let dump = dump_all(&runtime);
        assert_eq!(dump[0].task.polls, 1);
        assert!(dump[0].task.since >= Duration::from_millis(50));
    }
    let after = &runtime.handle().tasks().unwrap()[0];
    assert!(after.polls == 1 && after.since >= Duration::from_millis(50));
}

/// The message comes before the deadline, and both before the dump's poll. A dump that refused the
/// message's poll would see the deadline, as would a poll that finds its budget used up.
#[test]
fn dump_changes_the_outcome_of_no_race() {
    let runtime = listing(2);
    let (send, receive) = message();
    let (tick, ticks) = oneshot::channel::<()>();
    let task = runtime.spawn(async {
        let (mut receive, mut ticks) = (pin!(receive), pin!(ticks));
        poll_fn(|cx| match receive.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready("message"),
            Poll::Pending => ticks.as_mut().poll(cx).map(|_| "tick"),
        })
        .await
    });
    await_waiting(&runtime);
    let free = occupy(&runtime, 2);
    let dump = begin_dump(&runtime, task.id());
    send.send(()).unwrap();
    tick.send(()).unwrap();
    drop(free);
    assert_eq!(runtime.block_on(task).unwrap(), "message");
    assert!(
        dump.join()
            .unwrap()
            .iter()
            .any(|dump| dump.outcome == DumpOutcome::Ended)
    );
}

#[test]
fn dump_reports_a_task_that_went_on() {
    let runtime = listing(1);
    let (send, receive) = message();
    let (_open, then) = message();
    let task = runtime.spawn(async {
        receive.await;
        outer_function(then).await;
    });
    await_waiting(&runtime);
    let free = occupy(&runtime, 1);
    let dump = begin_dump(&runtime, task.id());
    send.send(()).unwrap();
    drop(free);
    let dump = dump.join().unwrap();
    let of_task = dump.iter().find(|dump| dump.task.id == task.id()).unwrap();
    assert_eq!(of_task.outcome, DumpOutcome::Progressed);
    assert_eq!(of_task.task.polls, 1);
    assert_has_functions(of_task.waits.last().unwrap());
    // On a busy machine the poll may lose its time slice, and lead to one more.
    let polls = runtime.handle().tasks().unwrap()[0].polls;
    assert!(polls >= 2, "the dump's poll counts");
}

#[test]
fn dumps_at_once_lose_no_answer() {
    let runtime = listing(2);
    let tasks: Vec<_> = (0..300)
        .map(|_| message())
        .map(|(send, receive)| (send, runtime.spawn(receive)))
        .collect();
    await_waiting(&runtime);
    std::thread::scope(|scope| {
        let dumps = [(); 4].map(|()| scope.spawn(|| dump_all(&runtime)));
        for dump in dumps {
            let dump = dump.join().unwrap();
            assert_eq!(dump.len(), tasks.len());
            assert!(
                dump.iter()
                    .all(|dump| dump.outcome == DumpOutcome::Waits && dump.waits.len() == 1)
            );
        }
    });
}

/// Fails if a wake is lost that comes beside the poll for a dump, or if a dump waits for tasks that
/// have ended.
#[test]
fn messages_beside_dumps_all_arrive() {
    let runtime = listing(2);
    let (stop, stopped) = mpsc::channel::<()>();
    let handle = runtime.handle().clone();
    let dumps = std::thread::spawn(move || {
        let mut slowest = Duration::ZERO;
        while stopped.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
            let begun = Instant::now();
            handle.block_on(handle.dump_some(None, LONG)).unwrap();
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    });
    for _ in 0..500 {
        let (send, receive) = message();
        let task = runtime.spawn(receive);
        std::thread::yield_now();
        send.send(()).unwrap();
        runtime.block_on(task).unwrap();
    }
    drop(stop);
    assert!(dumps.join().unwrap() < LONG / 2);
}

#[test]
fn dump_of_a_foreign_future_polls_it_and_has_no_stack() {
    let runtime = listing(1);
    let _task = runtime.spawn(pending::<()>());
    await_waiting(&runtime);
    let dump = dump_all(&runtime);
    assert!(dump[0].outcome == DumpOutcome::Waits && dump[0].waits.is_empty());
    assert!(dump[0].to_string().contains("awaits no operation"));
}

#[test]
fn dump_polls_no_task_that_is_queued_or_polled() {
    let runtime = listing(1);
    let free = occupy(&runtime, 1);
    let _queued = runtime.spawn(pending::<()>());
    let dump = dump_all(&runtime);
    let outcome = |dump: &TaskDump| (dump.task.state, dump.outcome);
    let mut seen: Vec<_> = dump.iter().map(outcome).collect();
    seen.sort_by_key(|(state, _)| *state == TaskState::Executing);
    let not = DumpOutcome::NotPolled;
    assert_eq!(
        seen,
        [(TaskState::Runnable, not), (TaskState::Executing, not)]
    );
    drop(free);
}

/// Fails if a dump never gives up, or if a later one has no answer from a task whose request is
/// left over.
#[test]
fn dump_beside_stuck_workers_ends_and_the_next_has_answers() {
    let runtime = listing(1);
    let (_open, receive) = message();
    let task = runtime.spawn(receive);
    await_waiting(&runtime);
    let free = occupy(&runtime, 1);
    let shared = runtime.handle().shared();
    let short = Duration::from_millis(20);
    let first = dump(shared, Some(task.id()), None, short).remove(0);
    let of_first = (first.outcome, first.task.state);
    assert_eq!(of_first, (DumpOutcome::Unanswered, TaskState::Waiting));
    // The dump has woken the task, which is queued now.
    let next = dump(shared, Some(task.id()), None, short).remove(0);
    let of_next = (next.outcome, next.task.state);
    assert_eq!(of_next, (DumpOutcome::NotPolled, TaskState::Runnable));
    drop(free);
    await_waiting(&runtime);
    let last = dump(shared, Some(task.id()), None, LONG).remove(0);
    assert_eq!((last.outcome, last.task.polls), (DumpOutcome::Waits, 2));
}

/// Fails if the requests that nobody answers fill the window for good, or if the dump has no bound.
#[test]
fn dump_beside_stuck_workers_goes_on_and_ends() {
    let runtime = listing(1);
    let asked = WINDOW + (GIVE_UPS as usize - 1) * WINDOW;
    let tasks: Vec<_> = (0..asked + 10)
        .map(|_| runtime.spawn(pending::<()>()))
        .collect();
    await_waiting(&runtime);
    let free = occupy(&runtime, 1);
    let dump = dump(
        runtime.handle().shared(),
        None,
        None,
        Duration::from_millis(20),
    );
    let count = |of| dump.iter().filter(|dump| dump.outcome == of).count();
    assert_eq!(count(DumpOutcome::Unanswered), asked);
    // The other one is the task that occupies the worker.
    assert_eq!(count(DumpOutcome::NotPolled), 10 + 1);
    drop((free, tasks));
}

/// Fails if the dump needs a thread of the blocking pool.
#[test]
fn dump_ends_while_all_blocking_threads_are_stuck() {
    let builder = Builder::new()
        .workers(1)
        .blocking_threads(1)
        .list_tasks(true);
    let runtime = builder.build().unwrap();
    let (free, stuck) = mpsc::channel::<()>();
    let blocks = runtime.spawn_blocking(move || stuck.recv().unwrap_or_default());
    let task = runtime.spawn(blocks);
    await_waiting(&runtime);
    let dump = dump_all(&runtime);
    let what = dump[0].waits[0].what.as_ref().unwrap();
    assert!(what.contains("a blocking closure"), "{what}");
    drop(free);
    runtime.block_on(task).unwrap().unwrap();
}

/// Fails if a dump waits for a task that a shutdown has ended, while its handle keeps it.
#[test]
fn dump_beside_a_shutdown_ends_soon() {
    for round in 0..20 {
        let runtime = listing(2);
        let tasks: Vec<_> = (0..50)
            .map(|_| message())
            .map(|(send, receive)| (send, runtime.spawn(receive)))
            .collect();
        let handle = runtime.handle().clone();
        let dumps = std::thread::spawn(move || {
            let begun = Instant::now();
            (0..5).for_each(|_| drop(dump(handle.shared(), None, None, Duration::from_secs(60))));
            begun.elapsed()
        });
        std::thread::sleep(Duration::from_micros(50 * round));
        drop(runtime);
        assert!(dumps.join().unwrap() < Duration::from_secs(30));
        drop(tasks);
    }
}

#[test]
fn dump_whose_poll_panics_or_blocks_reports_it() {
    let runtime = listing(1);
    for does in 0..3 {
        let (_open, receive) = message();
        let task = runtime.spawn(async move {
            let (mut receive, mut polls) = (pin!(receive), 0);
            poll_fn(|cx| {
                polls += 1;
                if polls == 2 && does == 0 {
                    panic!("in the poll of a dump");
                }
                if polls == 2 && does == 1 {
                    crate::block_in_place(|| std::thread::sleep(Duration::from_millis(1)));
                }
                receive.as_mut().poll(cx)
            })
            .await;
        });
        await_waiting(&runtime);
        if does == 2 {
            let free = occupy(&runtime, 1);
            let dump = begin_dump(&runtime, task.id());
            task.abort();
            drop(free);
            let dump = dump.join().unwrap();
            let of_task = dump.iter().find(|dump| dump.task.id == task.id()).unwrap();
            assert_eq!(of_task.outcome, DumpOutcome::Ended);
            continue;
        }
        let dump = dump_all(&runtime);
        assert_eq!(
            (dump.len(), dump[0].outcome == DumpOutcome::Ended),
            (1, does == 0)
        );
        assert_ne!(dump[0].outcome, DumpOutcome::Unanswered);
        task.abort();
        assert!(runtime.block_on(task).is_err());
    }
}

/// The only worker gets another thread in the middle of the dump's poll. Fails if the watch stays
/// in force on that thread: the slice would then accept no nudge, not even one that insists.
#[test]
fn dump_whose_poll_lends_the_core_leaves_no_watch_behind() {
    let runtime = listing(1);
    let (_open, receive) = message();
    let (go, going) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel::<()>();
    let task = runtime.spawn(async move {
        let (mut receive, mut polls) = (pin!(receive), 0);
        let going = std::sync::Mutex::new(going);
        poll_fn(|cx| {
            polls += 1;
            if polls == 2 {
                begin.send(()).unwrap();
                crate::block_in_place(|| going.lock().unwrap().recv().unwrap_or_default());
            }
            receive.as_mut().poll(cx)
        })
        .await;
    });
    await_waiting(&runtime);
    let handle = runtime.handle().clone();
    let dump = std::thread::spawn(move || dump(handle.shared(), None, None, LONG));
    begun.recv().unwrap();
    let shared = runtime.handle().shared().clone();
    let other = runtime.spawn(async move {
        let begun = Instant::now();
        while !shared.slices.of(0).insist() {
            assert!(begun.elapsed() < LONG / 2, "{:?}", shared.slices.of(0));
            crate::yield_now().await;
        }
    });
    runtime.block_on(other).unwrap();
    drop(go);
    let dump = dump.join().unwrap();
    let of_task = dump.iter().find(|dump| dump.task.id == task.id()).unwrap();
    assert_eq!(of_task.outcome, DumpOutcome::Progressed);
}

#[test]
fn dump_names_the_task_of_a_join_that_begins_in_its_poll() {
    let runtime = listing(1);
    let (_open, receive) = message();
    let mut inner = Some(runtime.spawn(receive));
    let id = inner.as_ref().unwrap().id();
    let outer = runtime.spawn(async move {
        let mut joins = None;
        poll_fn(|cx| match &mut joins {
            None => {
                joins = Some(None);
                Poll::Pending
            }
            Some(join) => {
                let join = join.get_or_insert_with(|| inner.take().unwrap());
                std::pin::Pin::new(join).poll(cx).map(drop)
            }
        })
        .await;
    });
    await_waiting(&runtime);
    let dump = dump_all(&runtime);
    let of_join = dump.iter().find(|dump| dump.task.id == outer.id()).unwrap();
    let awaits = format!("the end of task {id}");
    assert_eq!(of_join.waits[0].what.as_ref(), Some(&awaits), "{of_join}");
}

/// A foreign `block_on` polls its future again and again. The dump neither delays it nor spins.
#[test]
fn dump_of_a_poll_that_blocks_on_a_future_goes_on() {
    let runtime = listing(1);
    let (_open, receive) = message();
    let (send, inner) = message();
    let task = runtime.spawn(async {
        let (mut receive, mut inner, mut polls) = (pin!(receive), Some(inner), 0);
        poll_fn(|cx| {
            polls += 1;
            if polls == 2 {
                futures::executor::block_on(inner.take().unwrap());
            }
            receive.as_mut().poll(cx)
        })
        .await;
    });
    await_waiting(&runtime);
    let handle = runtime.handle().clone();
    let dump =
        std::thread::spawn(move || dump(handle.shared(), None, None, Duration::from_secs(60)));
    std::thread::sleep(Duration::from_millis(20));
    send.send(()).unwrap();
    let dump = dump.join().unwrap();
    // The monitor may end the poll's time slice. Then the dump sees no more than refusals.
    let outcomes = [DumpOutcome::Progressed, DumpOutcome::Waits];
    assert!(outcomes.contains(&dump[0].outcome));
    drop(task);
}

#[test]
fn dump_of_more_tasks_than_the_window_has_all() {
    let runtime = listing(2);
    let tasks: Vec<_> = (0..WINDOW * 5 + 1)
        .map(|_| message())
        .map(|(send, receive)| (send, runtime.spawn(receive)))
        .collect();
    await_waiting(&runtime);
    let dump = dump_all(&runtime);
    assert!(dump.iter().all(|dump| dump.outcome == DumpOutcome::Waits));
    assert_eq!(dump.len(), tasks.len());
}

#[test]
fn dump_by_a_task_of_the_runtime_ends() {
    let runtime = listing(1);
    let handle = runtime.handle().clone();
    let own = runtime.spawn(async move { handle.dump().await.unwrap() });
    let id = own.id();
    let dump = runtime.block_on(own).unwrap();
    // The `block_on` may have begun by then.
    assert!(dump.len() <= 2 && dump.iter().any(|dump| dump.task.id == id));
}

/// The thread in `block_on` is the only worker.
#[test]
fn dump_in_a_runtime_of_one_thread_has_answers_in_block_on() {
    let builder = Builder::new_current_thread().list_tasks(true);
    let runtime = builder.build().unwrap();
    let (_open, receive) = message();
    let task = runtime.spawn(receive);
    await_waiting_within(&runtime);
    assert_eq!(dump_all(&runtime)[0].outcome, DumpOutcome::Waits);
    let nobody = dump(
        runtime.handle().shared(),
        None,
        None,
        Duration::from_millis(20),
    );
    assert_eq!(nobody[0].outcome, DumpOutcome::Unanswered);
    await_waiting_within(&runtime);
    assert_eq!(dump_all(&runtime)[0].outcome, DumpOutcome::Waits);
    drop(task);
}

#[test]
fn dump_without_a_list_is_none_and_after_the_end_empty() {
    let plain = Runtime::new().unwrap();
    assert!(plain.block_on(plain.handle().dump()).is_none());
    let ended = listing(1);
    let handle = ended.handle().clone();
    drop(ended);
    assert!(plain.block_on(handle.dump()).unwrap().is_empty());
}

mod holders;
