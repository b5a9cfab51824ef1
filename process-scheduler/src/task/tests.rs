//! Tests of the messages of `async` processes. One thread runs all processes, so each test fixes
//! its order.
use super::*;
use crate::{
    Backoff, Child, ExitReason, Mailbox, Metrics, Pid, Signal, Strategy, Supervisor,
    shared::models::{end_all, without_threads},
    worker::models::run_next,
};
use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::Wake,
    time::Duration,
};

/// Runs all processes until none is ready. Fails if they make far more steps than a test needs.
fn run(handle: &Handle) {
    let before = metrics(handle).steps;
    while run_next(&handle.shared) {
        let steps = metrics(handle).steps - before;
        assert!(steps < 10_000, "a process spins");
    }
}

fn metrics(handle: &Handle) -> Metrics {
    handle.shared.counters.snapshot(0, 0)
}

/// Notifies a process that a process has ended, as a monitor does.
fn notify_of_an_end(handle: &Handle, pid: Pid) {
    let exit = Signal::Exit {
        pid,
        reason: ExitReason::Normal,
        linked: false,
    };
    handle.route(pid, exit).unwrap();
}

/// Sends until the mailbox refuses a message. Returns the number of those that it accepted.
fn fill(address: &Address<u32>) -> usize {
    (0..1_000)
        .take_while(|n| address.try_send(*n).is_ok())
        .count()
}

/// Spawns a process that receives some messages, and then waits for its waker, again and again.
/// Also returns a function that calls the waker.
fn busy(handle: &Handle, mailbox: Mailbox, receives: usize) -> (Address<u32>, impl Fn() + use<>) {
    let waker = Arc::new(Mutex::new(None::<Waker>));
    let shared = waker.clone();
    let process = from_async(move |mut inbox: Inbox<u32>| async move {
        for _ in 0..receives {
            inbox.receive().await;
        }
        poll_fn(|cx| {
            *shared.lock() = Some(cx.waker().clone());
            Poll::<()>::Pending
        })
        .await;
    });
    let spawn = Spawn::new().mailbox(mailbox).trap_exits(true);
    let address = handle.spawn_process(process, spawn).unwrap();
    run(handle);
    let wake = move || {
        let waker = waker.lock().clone();
        waker.into_iter().for_each(Waker::wake);
    };
    (address, wake)
}

/// A process awaits something else than its inbox, and is woken many times. Before it has received
/// anything, its mailbox holds `n` messages. Later, up to `n` more were taken out of the mailbox
/// together with the received one.
///
/// Fails if a wake by a waker, or a signal, makes room for a message.
#[test]
fn bounded_mailbox_of_a_busy_future_stays_bounded() {
    for (n, receives) in [(1, 0), (4, 0), (200, 0), (1, 1), (4, 1), (200, 1), (4, 3)] {
        let handle = without_threads();
        let (address, wake) = busy(&handle, Mailbox::Bounded(n), receives);
        let mut accepted = fill(&address);
        let mut waits = pin!(address.send(0));
        run(&handle);
        accepted += fill(&address);
        let mut cx = std::task::Context::from_waker(Waker::noop());
        for _ in 0..100 {
            wake();
            run(&handle);
            notify_of_an_end(&handle, address.pid());
            run(&handle);
            accepted += fill(&address);
            assert!(waits.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(accepted, if receives == 0 { n } else { 2 * n });
        assert_eq!(metrics(&handle).delivered, receives as u64);
        end_all(&handle);
        let dead = metrics(&handle).dead_letters;
        assert_eq!(dead, (accepted - receives) as u64);
    }
}

/// The same with a mailbox that drops its oldest message.
///
/// Fails if such a mailbox grows, or if it keeps other messages than the newest.
#[test]
fn mailbox_of_a_busy_future_drops_its_oldest_messages() {
    for (n, receives) in [(1, 0), (4, 0), (1, 1), (4, 1)] {
        let handle = without_threads();
        let (address, wake) = busy(&handle, Mailbox::DropOldest(n), receives);
        let mut sent = 0;
        for _ in 0..100 {
            sent += fill(&address);
            wake();
            run(&handle);
        }
        let gone = metrics(&handle).dead_letters as usize + receives;
        assert_eq!(sent - gone, if receives == 0 { n } else { 2 * n - 1 });
        end_all(&handle);
        assert_eq!(metrics(&handle).dead_letters as usize + receives, sent);
    }
}

/// Starts a supervised process "clerk" that writes down each message. It panics at the message 0,
/// and receives no more after the message 9.
fn clerk(handle: &Handle, keep_mail: bool) -> (Address<u32>, Arc<Mutex<Vec<u32>>>) {
    let got = Arc::new(Mutex::new(Vec::new()));
    let written = got.clone();
    let make = move || {
        let written = written.clone();
        from_async(move |mut inbox: Inbox<u32>| async move {
            while let Some(n) = inbox.receive().await {
                written.lock().push(n);
                assert_ne!(n, 0, "as asked");
                if n == 9 {
                    pending::<()>().await;
                }
            }
        })
    };
    let child = Child::new(make).spawn(Spawn::new().name("clerk"));
    Supervisor::new(Strategy::OneForOne)
        .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
        .child(child.keep_mail(keep_mail).shutdown(Duration::MAX))
        .start(handle)
        .unwrap();
    run(handle);
    (handle.named("clerk").unwrap(), got)
}

/// An incarnation panics, is killed or is cancelled while it has more messages.
///
/// Fails if the next incarnation does not get them although it should, or if they are no dead
/// letters otherwise.
#[test]
fn messages_that_a_future_leaves_have_one_end() {
    type End = fn(&Handle, &Address<u32>);
    let ends: [(&[u32], End, usize); 3] = [
        (&[1, 0, 2, 3], |_, _| (), 2),
        (
            &[1, 9, 2, 3],
            |handle, clerk| {
                run(handle);
                assert!(handle.kill(clerk.pid()));
            },
            2,
        ),
        (
            &[1, 2, 3],
            |handle, clerk| assert!(handle.cancel(clerk.pid())),
            3,
        ),
    ];
    for (sent, end, left) in ends {
        for keep_mail in [true, false] {
            let handle = without_threads();
            let (clerk, got) = clerk(&handle, keep_mail);
            for n in sent {
                clerk.try_send(*n).unwrap();
            }
            end(&handle, &clerk);
            run(&handle);
            assert_eq!(handle.inspect(clerk.pid()).unwrap().restarts, 1);
            let delivered = if keep_mail {
                sent.len()
            } else {
                sent.len() - left
            };
            assert_eq!(*got.lock(), sent[..delivered]);
            let metrics = metrics(&handle);
            assert_eq!(metrics.delivered, delivered as u64);
            assert_eq!(metrics.dead_letters, (sent.len() - delivered) as u64);
            end_all(&handle);
        }
    }
}

/// Fails if messages that a future has not received when it is done are no dead letters.
#[test]
fn messages_behind_the_last_received_one_are_dead_letters() {
    let handle = without_threads();
    let once = handle.spawn_async(|mut inbox: Inbox<u32>| async move {
        inbox.receive().await;
    });
    let once = once.unwrap();
    assert_eq!((0..5).filter(|n| once.try_send(*n).is_ok()).count(), 5);
    run(&handle);
    assert!(handle.inspect(once.pid()).is_none());
    let metrics = metrics(&handle);
    assert_eq!((metrics.delivered, metrics.dead_letters), (1, 4));
    end_all(&handle);
}

/// A process awaits the end of another process, as the docs of `next_exit` do it. It gets messages
/// and a cancel, which it ignores.
///
/// Fails if `event` is ready again for an event that the process ignores.
#[test]
fn event_that_is_ignored_is_ready_once() {
    let handle = without_threads();
    let events = Arc::new(AtomicUsize::new(0));
    let counted = events.clone();
    let widow = handle.spawn_async(move |mut inbox: Inbox<u32>| async move {
        while inbox.next_exit().is_none() {
            inbox.event().await;
            assert!(counted.fetch_add(1, Relaxed) < 100, "it spins");
        }
    });
    let widow = widow.unwrap();
    let exit = handle.exit_of(widow.pid());
    let seen = || {
        run(&handle);
        events.load(Relaxed)
    };
    assert_eq!(seen(), 0);
    (0..3).for_each(|n| widow.try_send(n).unwrap());
    assert_eq!(seen(), 1);
    assert!(handle.cancel(widow.pid()));
    assert_eq!(seen(), 2);
    widow.try_send(3).unwrap();
    assert_eq!(seen(), 2);
    notify_of_an_end(&handle, widow.pid());
    assert_eq!(seen(), 3);
    assert!(handle.inspect(widow.pid()).is_none());
    assert_eq!(exit.wait(), ExitReason::Cancelled);
    let metrics = metrics(&handle);
    assert_eq!((metrics.delivered, metrics.dead_letters), (0, 4));
    end_all(&handle);
}

/// Three processes end, two messages come and the process is cancelled, all before its next step.
/// It takes one event at a time.
///
/// Fails if `event` is not ready although an event is left that was behind another one.
#[test]
fn event_is_ready_for_each_event_that_is_left() {
    let handle = without_threads();
    let got = Arc::new(Mutex::new(Vec::new()));
    let written = got.clone();
    let takes = handle.spawn_async(move |mut inbox: Inbox<u32>| async move {
        loop {
            inbox.event().await;
            if inbox.next_exit().is_some() {
                written.lock().push("exit");
                continue;
            }
            written.lock().push("other");
            if inbox.cancelled().is_some() {
                break;
            }
        }
    });
    let takes = takes.unwrap();
    run(&handle);
    (0..3).for_each(|_| notify_of_an_end(&handle, takes.pid()));
    (0..2).for_each(|n| takes.try_send(n).unwrap());
    assert!(handle.cancel(takes.pid()));
    run(&handle);
    assert!(handle.inspect(takes.pid()).is_none());
    assert_eq!(*got.lock(), ["exit", "exit", "exit", "other"]);
    end_all(&handle);
}

/// A process gets more messages at once than a step takes, and waits for an event before each.
///
/// Fails if `event` is not ready for a message that was behind another one.
#[test]
fn event_is_ready_for_each_message_that_is_next() {
    for mailbox in [Mailbox::Unbounded, Mailbox::Bounded(1_000)] {
        let handle = without_threads();
        let process = from_async(move |mut inbox: Inbox<u32>| async move {
            for n in 0..1_000 {
                inbox.event().await;
                assert_eq!(inbox.receive().await, Some(n));
            }
        });
        let spawn = Spawn::new().mailbox(mailbox);
        let address = handle.spawn_process(process, spawn).unwrap();
        let exit = handle.exit_of(address.pid());
        assert_eq!(fill(&address), 1_000);
        run(&handle);
        assert!(
            handle.inspect(address.pid()).is_none(),
            "an event is missed"
        );
        assert_eq!(exit.wait(), ExitReason::Normal);
        end_all(&handle);
    }
}

/// Counts its wakes.
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Spawns a process whose future gives its inbox away, and waits.
fn given_away(handle: &Handle) -> (Address<u32>, Inbox<u32>) {
    let given = Arc::new(Mutex::new(None));
    let gives = given.clone();
    let process = handle.spawn_async(move |inbox: Inbox<u32>| {
        *gives.lock() = Some(inbox);
        pending::<()>()
    });
    let inbox = given.lock().take().unwrap();
    (process.unwrap(), inbox)
}

/// The inbox is awaited outside of its process's steps: first for an event, then for messages.
///
/// Fails if a message behind another one counts as an event, if the process spins while a message
/// is handed over, or if the await after a received message does not make the process step.
#[test]
fn inbox_outside_of_steps_gets_one_message_at_a_time() {
    let handle = without_threads();
    let (process, mut inbox) = given_away(&handle);
    let wakes = Arc::new(Counts(AtomicUsize::new(0)));
    let waker = Waker::from(wakes.clone());
    let mut cx = std::task::Context::from_waker(&waker);
    let woken = || {
        run(&handle);
        wakes.0.swap(0, Relaxed)
    };
    assert!(pin!(inbox.event()).poll(&mut cx).is_pending());
    assert_eq!(woken(), 0);
    (0..2).for_each(|n| process.try_send(n).unwrap());
    assert_eq!(woken(), 1);
    assert!(pin!(inbox.event()).poll(&mut cx).is_ready());
    assert!(pin!(inbox.event()).poll(&mut cx).is_pending());
    assert_eq!(woken(), 0);
    process.try_send(2).unwrap();
    assert_eq!(woken(), 0);
    for n in 0..3 {
        assert_eq!(pin!(inbox.receive()).poll(&mut cx), Poll::Ready(Some(n)));
        assert!(pin!(inbox.receive()).poll(&mut cx).is_pending());
        assert_eq!(woken(), usize::from(n < 2));
    }
    process.try_send(3).unwrap();
    assert_eq!(woken(), 1);
    assert_eq!(metrics(&handle).delivered, 3);
    assert!(handle.cancel(process.pid()));
    assert_eq!(woken(), 0);
    assert_eq!(pin!(inbox.receive()).poll(&mut cx), Poll::Ready(None));
    end_all(&handle);
    assert_eq!(metrics(&handle).dead_letters, 1);
}

/// Polls the inbox once, with the process's own waker.
async fn receive_now(inbox: &mut Inbox<u32>) -> Option<u32> {
    poll_fn(|cx| match pin!(inbox.receive()).poll(cx) {
        Poll::Ready(received) => Poll::Ready(received),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// A process gets more messages at once than a step may receive. After each event it receives until
/// the inbox is pending.
///
/// Fails if a `receive` that was pending leaves a message that is no new event.
#[test]
fn event_is_ready_for_messages_that_a_step_leaves() {
    for mailbox in [Mailbox::Unbounded, Mailbox::Bounded(1_000)] {
        let handle = without_threads();
        let got = Arc::new(AtomicUsize::new(0));
        let counted = got.clone();
        let process = from_async(move |mut inbox: Inbox<u32>| async move {
            while inbox.cancelled().is_none() {
                inbox.event().await;
                while let Some(n) = receive_now(&mut inbox).await {
                    assert_eq!(counted.fetch_add(1, Relaxed), n as usize);
                }
            }
        });
        let spawn = Spawn::new().mailbox(mailbox);
        let address = handle.spawn_process(process, spawn).unwrap();
        assert_eq!(fill(&address), 1_000);
        run(&handle);
        assert_eq!(got.load(Relaxed), 1_000);
        address.try_send(1_000).unwrap();
        run(&handle);
        assert_eq!(got.load(Relaxed), 1_001);
        end_all(&handle);
    }
}

/// A future awaits an event in a step, and then gives the inbox away. The other code polls
/// `receive` first, and then awaits an event.
///
/// Fails if that code gets no event for the message that came before.
#[test]
fn event_after_a_pending_receive_is_ready_for_what_waits() {
    let handle = without_threads();
    let given = Arc::new(Mutex::new(None));
    let gives = given.clone();
    let process = handle.spawn_async(move |mut inbox: Inbox<u32>| async move {
        inbox.event().await;
        *gives.lock() = Some(inbox);
        pending::<()>().await;
    });
    let process = process.unwrap();
    run(&handle);
    process.try_send(7).unwrap();
    run(&handle);
    let mut inbox = given.lock().take().unwrap();
    let mut cx = std::task::Context::from_waker(Waker::noop());
    assert!(pin!(inbox.receive()).poll(&mut cx).is_pending());
    assert!(pin!(inbox.event()).poll(&mut cx).is_pending());
    run(&handle);
    assert!(pin!(inbox.event()).poll(&mut cx).is_ready());
    assert_eq!(pin!(inbox.receive()).poll(&mut cx), Poll::Ready(Some(7)));
    end_all(&handle);
}

/// A process polls its inbox once a tick, and awaits something else. It gets one message before
/// each tick.
///
/// Fails if the poll is pending although the mailbox has a message.
#[test]
fn receive_polled_once_takes_a_message_from_the_mailbox() {
    for mailbox in [Mailbox::Unbounded, Mailbox::Bounded(1)] {
        let handle = without_threads();
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let ticks = Arc::new(AtomicUsize::new(0));
        let got = Arc::new(Mutex::new(Vec::new()));
        let (kept, ticked, written) = (waker.clone(), ticks.clone(), got.clone());
        let process = from_async(move |mut inbox: Inbox<u32>| async move {
            while inbox.cancelled().is_none() {
                poll_fn(|cx| {
                    *kept.lock() = Some(cx.waker().clone());
                    match ticked.swap(0, Relaxed) {
                        0 => Poll::Pending,
                        _ => Poll::Ready(()),
                    }
                })
                .await;
                let received = receive_now(&mut inbox).await;
                written.lock().extend(received);
            }
        });
        let spawn = Spawn::new().mailbox(mailbox);
        let process = handle.spawn_process(process, spawn).unwrap();
        run(&handle);
        for n in 0..100 {
            process.try_send(n).unwrap();
            ticks.store(1, Relaxed);
            let waker = waker.lock().clone();
            waker.into_iter().for_each(Waker::wake);
            run(&handle);
            assert_eq!(*got.lock(), Vec::from_iter(0..=n));
        }
        assert_eq!(metrics(&handle).delivered, 100);
        end_all(&handle);
    }
}

/// Code outside of a process's steps has seen the cancel, and awaits events while the process ends.
///
/// Fails if the end is no event, or more than one.
#[test]
fn event_after_the_end_is_ready_once_more() {
    let handle = without_threads();
    let (process, mut inbox) = given_away(&handle);
    let wakes = Arc::new(Counts(AtomicUsize::new(0)));
    let waker = Waker::from(wakes.clone());
    let mut cx = std::task::Context::from_waker(&waker);
    run(&handle);
    assert!(handle.cancel(process.pid()));
    run(&handle);
    assert!(pin!(inbox.event()).poll(&mut cx).is_ready());
    assert!(pin!(inbox.event()).poll(&mut cx).is_pending());
    assert!(handle.kill(process.pid()));
    run(&handle);
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(pin!(inbox.event()).poll(&mut cx).is_ready());
    assert!(pin!(inbox.event()).poll(&mut cx).is_pending());
    end_all(&handle);
}

/// A message is handed over to code outside of the steps, which gives the inbox back. A step then
/// receives the message.
///
/// Fails if the step does not count the message.
#[test]
fn message_handed_over_counts_in_the_step_that_receives_it() {
    let handle = without_threads();
    let shared = Arc::new(Mutex::new(None));
    let slot = shared.clone();
    let process = handle.spawn_async(move |inbox: Inbox<u32>| {
        *slot.lock() = Some(inbox);
        poll_fn(move |cx| match &mut *slot.lock() {
            Some(inbox) => pin!(inbox.receive()).poll(cx).map(|_| ()),
            None => Poll::Pending,
        })
    });
    let process = process.unwrap();
    let mut inbox = shared.lock().take().unwrap();
    run(&handle);
    let mut cx = std::task::Context::from_waker(Waker::noop());
    assert!(pin!(inbox.receive()).poll(&mut cx).is_pending());
    run(&handle);
    process.try_send(7).unwrap();
    run(&handle);
    assert_eq!(metrics(&handle).delivered, 0);
    *shared.lock() = Some(inbox);
    notify_of_an_end(&handle, process.pid());
    run(&handle);
    assert!(handle.inspect(process.pid()).is_none());
    let workers = handle.shared.counters.workers.iter();
    let in_steps: u64 = workers.map(|w| w.delivered.load(Relaxed)).sum();
    assert_eq!((in_steps, metrics(&handle).delivered), (1, 1));
    end_all(&handle);
}
