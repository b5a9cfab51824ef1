//! An inbox that is awaited outside of its process's steps.
use process_scheduler::{Inbox, Phase, Scheduler};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

/// A test that waits this long has failed.
const LIMIT: Duration = Duration::from_secs(60);

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::yield_now();
    }
}

/// The process gives its inbox and its own waker to the test's thread, and awaits something else.
/// The thread polls the inbox with this waker. A message then makes the process step, even if the
/// process has stepped without an event in between.
///
/// Fails if `Inbox::poll` does not check `stepped_by`, or if `AsyncProcess::step` takes the inbox's
/// waker although no event came.
#[test]
fn inbox_polled_outside_by_own_waker_steps_the_process() {
    let scheduler = Scheduler::builder().workers(1).build();
    let (sender, given) = mpsc::channel::<(Inbox<u32>, Waker)>();
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let process = scheduler.spawn_async(move |inbox: Inbox<u32>| {
        let mut inbox = Some(inbox);
        poll_fn(move |cx| {
            if let Some(inbox) = inbox.take() {
                sender.send((inbox, cx.waker().clone())).unwrap();
            }
            counted.fetch_add(1, SeqCst);
            Poll::<()>::Pending
        })
    });
    let process = process.unwrap();
    let is_in = |phase| scheduler.inspect(process.pid()).unwrap().phase == phase;
    let (mut inbox, waker) = given.recv_timeout(LIMIT).unwrap();
    wait_until("blocked", || is_in(Phase::Blocked));

    let mut cx = Context::from_waker(&waker);
    let mut receive = pin!(inbox.receive());
    assert!(receive.as_mut().poll(&mut cx).is_pending());
    wait_until("idle", || is_in(Phase::Idle));
    // A wake makes the process step without an event.
    let before = polls.load(SeqCst);
    waker.wake_by_ref();
    wait_until("a step", || polls.load(SeqCst) > before);
    wait_until("idle again", || is_in(Phase::Idle));

    let before = polls.load(SeqCst);
    process.try_send(7).unwrap();
    wait_until("a step for the message", || polls.load(SeqCst) > before);
    assert_eq!(receive.as_mut().poll(&mut cx), Poll::Ready(Some(7)));
    // The process would ignore the cancel at the scheduler's shutdown.
    scheduler.kill(process.pid());
}
