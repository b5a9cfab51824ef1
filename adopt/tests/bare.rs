//! Tests of a core that interrupts wake. Threads stand for the interrupts.
use adopt::bare::{Core, Receiver, Task};
use futures_lite::future::{pending, yield_now};
use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    task::{Poll, Waker},
    thread,
    time::Duration,
};
use waker_vtable::{WakeRef, from_static};
use worker_idle::park::Park;

/// The event of `wfe` and `sev`: it is remembered until the core waits.
struct Event {
    sent: Mutex<bool>,
    changed: Condvar,
}

struct Wire(&'static Event);

impl Event {
    const fn new() -> Self {
        let (sent, changed) = (Mutex::new(false), Condvar::new());
        Self { sent, changed }
    }
}

impl WakeRef for Event {
    fn wake(&self) {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

impl WakeRef for Wire {
    fn wake(&self) {
        self.0.wake();
    }
}

impl Park for Wire {
    fn park(&mut self) {
        let sent = self.0.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sent = self.0.changed.wait_while(sent, |sent| !*sent).unwrap();
        *sent = false;
    }

    fn park_timeout(&mut self, _: Duration) {
        self.park();
    }

    fn waker(&self) -> Waker {
        from_static(self.0)
    }
}

#[test]
fn items_sent_by_interrupts_reach_tasks_in_order() {
    const ITEMS: u32 = 20_000;
    static EVENT: Event = Event::new();
    static CORE: Core<Wire> = Core::new(Wire(&EVENT));
    static TASKS: [Task<Wire>; 2] = Task::all(&CORE);
    static LINES: [Receiver<u32, 16>; 2] = [Receiver::new(), Receiver::new()];

    let mut interrupts = Vec::new();
    let mut readers = LINES.each_ref().map(|line| {
        let (mut sender, reader) = line.split().expect("the first to ask");
        assert!(line.split().is_none());
        let interrupt = thread::spawn(move || {
            for mut n in 0..ITEMS {
                while let Err(full) = sender.send(n) {
                    n = full.0;
                    thread::yield_now();
                }
            }
            sender // The sender's drop would drop the items that were not taken yet.
        });
        interrupts.push(interrupt);
        reader
    });
    let [first, second] = &mut readers;
    let first = pin!(async {
        for n in 0..ITEMS {
            assert_eq!(first.next().await, n);
        }
    });
    let second = pin!(async {
        for n in 0..ITEMS {
            assert_eq!(second.next().await, n);
        }
    });
    CORE.run(&TASKS, [first, second], &mut Wire(&EVENT));
    interrupts
        .into_iter()
        .for_each(|interrupt| drop(interrupt.join().unwrap()));
}

#[test]
fn tasks_that_yield_take_turns() {
    static EVENT: Event = Event::new();
    static CORE: Core<Wire> = Core::new(Wire(&EVENT));
    static TASKS: [Task<Wire>; 3] = Task::all(&CORE);

    let order = Mutex::new(Vec::new());
    let [a, b, c] = [0, 1, 2].map(|task| {
        let order = &order;
        async move {
            for _ in 0..3 {
                order.lock().unwrap().push(task);
                yield_now().await;
            }
        }
    });
    CORE.run(&TASKS, [pin!(a), pin!(b), pin!(c)], &mut Wire(&EVENT));
    assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn wake_of_a_done_task_is_ignored() {
    static EVENT: Event = Event::new();
    static CORE: Core<Wire> = Core::new(Wire(&EVENT));
    static TASKS: [Task<Wire>; 2] = Task::all(&CORE);

    let waker = Mutex::new(None);
    let first = pin!(poll_fn(|cx| {
        let before = waker.lock().unwrap().replace(cx.waker().clone());
        assert!(before.is_none(), "it is polled once");
        Poll::Ready(())
    }));
    let second = pin!(async {
        for _ in 0..3 {
            waker.lock().unwrap().as_ref().unwrap().wake_by_ref();
            yield_now().await;
        }
    });
    CORE.run(&TASKS, [first, second], &mut Wire(&EVENT));
}

#[test]
fn wake_before_run_publishes_to_the_first_poll() {
    static EVENT: Event = Event::new();
    static CORE: Core<Wire> = Core::new(Wire(&EVENT));
    static TASKS: [Task<Wire>; 1] = Task::all(&CORE);
    static DATA: AtomicU32 = AtomicU32::new(0);
    static WOKEN: AtomicBool = AtomicBool::new(false);

    let mut waker = None;
    let keep = pin!(poll_fn(|cx| {
        waker = Some(cx.waker().clone());
        Poll::Ready(())
    }));
    CORE.run(&TASKS, [keep], &mut Wire(&EVENT));
    let waker = waker.expect("the task was polled");
    let interrupt = thread::spawn(move || {
        DATA.store(1, Relaxed);
        waker.wake();
        WOKEN.store(true, Relaxed);
    });
    while !WOKEN.load(Relaxed) {
        thread::yield_now();
    }
    // Only the wake orders the store of the data before the poll. Miri fails this test if `run`
    // does not acquire.
    let read = pin!(async { assert_eq!(DATA.load(Relaxed), 1) });
    CORE.run(&TASKS, [read], &mut Wire(&EVENT));
    interrupt.join().unwrap();
}

#[test]
fn core_after_a_panic_runs_again_but_not_nested() {
    static EVENT: Event = Event::new();
    static CORE: Core<Wire> = Core::new(Wire(&EVENT));
    static TASKS: [Task<Wire>; 1] = Task::all(&CORE);

    let run_inside = || {
        let inner = pin!(pending::<()>());
        CORE.run(&TASKS, [inner], &mut Wire(&EVENT));
    };
    let run = || {
        let outer = pin!(async { run_inside() });
        CORE.run(&TASKS, [outer], &mut Wire(&EVENT));
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"the core runs already"));
    CORE.run(&TASKS, [pin!(async {})], &mut Wire(&EVENT));
}

#[test]
fn core_refuses_tasks_that_share_a_bit() {
    static EVENT: Event = Event::new();
    static CORE: Core<Wire> = Core::new(Wire(&EVENT));
    static TASKS: [Task<Wire>; 2] = {
        let [task] = Task::all::<1>(&CORE);
        [task, task]
    };
    // The first future is done at once. Its bit is that of the second future, which never ran on.
    let run = || {
        let (first, second) = (pin!(async {}), pin!(yield_now()));
        CORE.run(&TASKS, [first, second], &mut Wire(&EVENT));
    };
    assert!(catch_unwind(run).is_err());
}
