//! Deadlines whose wakers panic.
use crate::{LIMIT, is_pending, quiet};
use process_scheduler::{Scheduler, Sleep};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    task::{RawWaker, RawWakerVTable, Waker},
    time::{Duration, Instant},
};

/// A task whose wakers are not counted, and panic on request.
struct Task {
    clone_panics: AtomicBool,
    drop_panics: AtomicBool,
    woken: Mutex<mpsc::Sender<()>>,
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(
    |data| {
        assert!(!Task::of(data).clone_panics.load(SeqCst), "in a clone");
        RawWaker::new(data, &VTABLE)
    },
    Task::wake,
    Task::wake,
    |data| assert!(!Task::of(data).drop_panics.load(SeqCst), "in a drop"),
);

impl Task {
    fn new() -> (&'static Self, mpsc::Receiver<()>) {
        let (sender, woken) = mpsc::channel();
        let task = Self {
            clone_panics: AtomicBool::new(false),
            drop_panics: AtomicBool::new(false),
            woken: Mutex::new(sender),
        };
        (Box::leak(Box::new(task)), woken)
    }

    fn waker(&'static self) -> Waker {
        let raw = RawWaker::new(ptr::from_ref(self).cast(), &VTABLE);
        // SAFETY: the functions of the table take the address of a task that is never freed, and
        // may be called by any thread.
        unsafe { Waker::from_raw(raw) }
    }

    fn of(data: *const ()) -> &'static Self {
        // SAFETY: the data of each waker is the address of a task that is never freed.
        unsafe { &*data.cast() }
    }

    fn wake(data: *const ()) {
        let _ = Self::of(data).woken.lock().unwrap().send(());
    }
}

const TIME: Duration = Duration::from_millis(300);

/// Polls a sleep by one task and then by another one. `panics` makes the second poll panic. If the
/// first task then polls again, it must be woken when the time is over.
fn is_woken_after_a_panic(panics: impl FnOnce(&'static Task, &'static Task)) {
    quiet();
    let scheduler = Scheduler::builder().workers(1).build();
    let [(task, woken), (other, _)] = [(); 2].map(|()| Task::new());
    let start = Instant::now();
    let mut sleep: Sleep = scheduler.sleep(TIME);
    assert!(is_pending(&mut sleep, &task.waker()));
    panics(task, other);
    let polled = catch_unwind(AssertUnwindSafe(|| is_pending(&mut sleep, &other.waker())));
    // On a slow machine the time is over already, and nothing panics.
    assert!(polled.is_err() || start.elapsed() >= TIME);
    task.drop_panics.store(false, SeqCst);
    if is_pending(&mut sleep, &task.waker()) {
        assert_eq!(woken.recv_timeout(LIMIT), Ok(()));
        assert!(!is_pending(&mut sleep, &task.waker()));
    }
    assert!(start.elapsed() >= TIME);
}

/// Fails if a deadline disarms its entry before it clones the next waker, and then still relies on
/// the entry.
#[test]
fn panic_of_a_wakers_clone_keeps_the_deadline() {
    is_woken_after_a_panic(|_, other| other.clone_panics.store(true, SeqCst));
}

/// Fails if a deadline relies on an entry whose waker panicked when the entry was disarmed.
#[test]
fn panic_of_a_wakers_drop_keeps_the_deadline() {
    is_woken_after_a_panic(|task, _| task.drop_panics.store(true, SeqCst));
}
