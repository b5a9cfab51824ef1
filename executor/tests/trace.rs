//! Tests of the recorder in a runtime: the recorded events, and their lanes. A *lane* holds the
//! events of one worker, or of one other thread.
use selvedge_executor::{
    Builder, Capture, Runtime, TaskBuilder, block_in_place, park::ThreadPark, spawn, yield_now,
};
use std::{
    future::poll_fn,
    sync::{Arc, Mutex, mpsc},
    task::{Poll, Waker},
    thread,
};
use task_trace::recorder::{Cause, Event, Outcome};

/// Runs `scenario` and then its tasks on one driven worker, with the recorder on, and returns the
/// capture.
fn driven(scenario: impl FnOnce(&Runtime)) -> Capture {
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    let tracer = runtime.handle().trace();
    tracer.start();
    scenario(&runtime);
    while workers[0].tick() == selvedge_executor::Tick::Ran {}
    tracer.capture()
}

fn events(capture: &Capture, lane: usize) -> Vec<Event> {
    capture.lanes()[lane]
        .events
        .iter()
        .map(|e| e.event)
        .collect()
}

/// Waits once, and puts the waker of its task into `waker`.
async fn wait_once(waker: Arc<Mutex<Option<Waker>>>) {
    let mut waited = false;
    poll_fn(|cx| {
        if waited {
            return Poll::Ready(());
        }
        waited = true;
        *waker.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    })
    .await;
}

#[test]
fn poll_that_yields_is_followed_by_the_next_poll() {
    let capture = driven(|runtime| runtime.spawn_detached(yield_now()));
    let [Event::Inject { tasks: 1 }, begin, again, begin2, ready] = events(&capture, 0)[..] else {
        panic!("{capture:?}");
    };
    let Event::PollBegin { task, named: false } = begin else {
        panic!("{begin:?}");
    };
    assert_eq!(begin2, begin);
    let end = |outcome| Event::PollEnd { task, outcome };
    assert_eq!((again, ready), (end(Outcome::Again), end(Outcome::Ready)));
}

#[test]
fn spawn_by_a_task_names_its_parent_and_place() {
    let capture = driven(|runtime| runtime.spawn_detached(async { drop(spawn(async {})) }));
    let spawned = |event: &Event| match *event {
        Event::Spawn { task, by, location } => Some((task, by, location?.file())),
        _ => None,
    };
    let outside = events(&capture, 1).iter().find_map(spawned).unwrap();
    let inside = events(&capture, 0).iter().find_map(spawned).unwrap();
    assert_eq!((outside.1, outside.2), (None, file!()));
    assert_eq!((inside.1, inside.2), (Some(outside.0), file!()));
}

#[test]
fn wake_says_which_task_woke_which() {
    let capture = driven(|runtime| {
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let waits = wait_once(waker.clone());
        let named = |name| TaskBuilder::new().name(name);
        drop(named("waits").spawn_on(waits, runtime.handle()));
        let wakes = async move { waker.lock().unwrap().take().unwrap().wake() };
        drop(named("wakes").spawn_on(wakes, runtime.handle()));
    });
    let lane = &capture.lanes()[0].events;
    let wake = lane.iter().find_map(|stamped| match stamped.event {
        Event::Wake { task, by, cause } => Some((task, by.unwrap(), cause, stamped.at)),
        _ => None,
    });
    let (task, by, cause, at) = wake.expect("a wake");
    assert_eq!(cause, Cause::Task);
    assert_eq!(
        (&*capture.name(task, at), &*capture.name(by, at)),
        ("waits", "wakes")
    );
}

#[test]
fn wake_by_another_thread_is_in_that_thread_s_lane() {
    let waker = Arc::new(Mutex::new(None::<Waker>));
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    let tracer = runtime.handle().trace();
    runtime.spawn_detached(wait_once(waker.clone()));
    while workers[0].tick() == selvedge_executor::Tick::Ran {}
    tracer.start();
    let waker = waker.lock().unwrap().take().unwrap();
    let other = thread::Builder::new().name("other".into());
    other.spawn(move || waker.wake()).unwrap().join().unwrap();
    let capture = tracer.capture();
    assert_eq!(capture.lanes()[1].name, "other");
    let is_wake = |event: &Event| {
        matches!(
            event,
            Event::Wake {
                cause: Cause::Thread,
                by: None,
                ..
            }
        )
    };
    assert!(events(&capture, 1).iter().any(is_wake), "{capture:?}");
}

#[test]
fn abort_is_recorded_as_a_wake_of_its_own_kind() {
    let capture = driven(|runtime| {
        let task = runtime.spawn(std::future::pending::<()>());
        runtime.spawn_detached(async move {
            yield_now().await;
            task.abort();
        });
    });
    let is_abort = |event: &Event| {
        matches!(
            event,
            Event::Wake {
                cause: Cause::Abort,
                ..
            }
        )
    };
    assert!(events(&capture, 0).iter().any(is_abort), "{capture:?}");
}

#[test]
fn block_in_place_ends_the_poll_in_the_worker_s_lane() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let tracer = runtime.handle().trace();
    tracer.start();
    let task = runtime.spawn(async {
        let (sender, receiver) = mpsc::channel();
        selvedge_executor::spawn_detached(async move { sender.send(7).unwrap() });
        block_in_place(|| receiver.recv().unwrap())
    });
    assert_eq!(runtime.block_on(task).unwrap(), 7);
    drop(runtime);
    let events = events(&tracer.capture(), 0);
    let lent = |event: &Event| {
        matches!(
            event,
            Event::PollEnd {
                outcome: Outcome::Lent,
                ..
            }
        )
    };
    assert!(events.iter().any(lent), "{events:?}");
    // While the first task blocked, another task was polled, and its poll is in this lane, too.
    // Still the polls do not overlap: after the begin of a poll comes the end of the same poll.
    let (mut open, mut polls) = (None, 0);
    for event in events {
        match event {
            Event::PollBegin { task, .. } => {
                assert_eq!(open.replace(task), None);
                polls += 1;
            }
            Event::PollEnd { task, .. } => assert_eq!(open.take(), Some(task)),
            _ => {}
        }
    }
    assert!(polls >= 2 && open.is_none());
}

#[test]
fn two_workers_park_are_notified_and_steal() {
    let runtime = Builder::new().workers(2).build().unwrap();
    let tracer = runtime.handle().trace();
    tracer.start();
    // Runs until a worker has stolen, and a worker has been notified in its sleep.
    loop {
        let parent = runtime.spawn(async {
            let children: Vec<_> = (0..64).map(|_| spawn(yield_now())).collect();
            for child in children {
                child.await.unwrap();
            }
        });
        runtime.block_on(parent).unwrap();
        let capture = tracer.capture();
        let (one, two) = (events(&capture, 0), events(&capture, 1));
        let has = |is: &dyn Fn(&Event) -> bool| one.iter().chain(&two).any(is);
        let from_other = one
            .iter()
            .all(|e| !matches!(e, Event::Steal { from: 0, .. }))
            && two
                .iter()
                .all(|e| !matches!(e, Event::Steal { from: 1, .. }));
        assert!(from_other, "a worker steals from itself: {capture:?}");
        if has(&|e| matches!(e, Event::Steal { .. }))
            && has(&|e| matches!(e, Event::Park))
            && has(&|e| matches!(e, Event::Unpark { notified: true }))
            && capture.lanes().iter().any(|lane| {
                let notify =
                    |e: &&task_trace::recorder::Stamped| matches!(e.event, Event::Notify { .. });
                lane.events.iter().any(|e| notify(&e))
            })
        {
            break;
        }
    }
}

#[test]
fn recorder_that_is_off_has_no_events() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let tracer = runtime.handle().trace();
    tracer.start();
    tracer.stop();
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    drop(runtime);
    assert!(tracer.capture().lanes().iter().all(|lane| {
        let polls = |e: &&task_trace::recorder::Stamped| matches!(e.event, Event::PollBegin { .. });
        !lane.events.iter().any(|e| polls(&e))
    }));
}

#[test]
fn name_of_a_task_spawned_before_the_start_is_known() {
    let waker = Arc::new(Mutex::new(None::<Waker>));
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    let old = TaskBuilder::new().name("old hand");
    drop(old.spawn_on(wait_once(waker.clone()), runtime.handle()));
    while workers[0].tick() == selvedge_executor::Tick::Ran {}
    let tracer = runtime.handle().trace();
    tracer.start();
    waker.lock().unwrap().take().unwrap().wake();
    while workers[0].tick() == selvedge_executor::Tick::Ran {}
    let mut json = Vec::new();
    tracer.capture().write_chrome(&mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    let poll = r#""cat":"poll","name":"old hand""#;
    assert_eq!(json.matches(poll).count(), 1, "{json}");
}
