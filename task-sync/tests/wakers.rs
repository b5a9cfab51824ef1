//! Waits of each primitive, with wakers that a program seldom has: another one at each poll, one
//! that uses the primitive itself, one that panics.
use std::{
    future::Future,
    mem,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Wake, Waker},
    thread,
};
use task_sync::{
    Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc, oneshot, watch,
};

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A primitive that tasks wait for.
struct Case {
    name: &'static str,
    /// Waits that pend until `event`.
    waits: Vec<Wait>,
    event: Option<Box<dyn FnOnce()>>,
    /// The event wakes all waits. Otherwise each wait that ends wakes the next one.
    wakes_all: bool,
    /// Uses the primitive, and leaves it as it was.
    touch: Arc<dyn Fn() + Send + Sync>,
}

/// Ends a value.
fn end<T>(_: T) {}

fn wait(future: impl Future<Output = impl Sized> + Send + 'static) -> Wait {
    Box::pin(async { end(future.await) })
}

/// Polls a future once, and drops it.
fn try_once(future: impl Future) {
    let _ = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
}

impl Case {
    fn new(
        name: &'static str,
        waits: impl IntoIterator<Item = Wait>,
        event: impl FnOnce() + 'static,
        touch: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            waits: waits.into_iter().collect(),
            event: Some(Box::new(event)),
            wakes_all: true,
            touch: Arc::new(touch),
        }
    }

    fn in_turns(self) -> Self {
        let wakes_all = false;
        Self { wakes_all, ..self }
    }

    fn all() -> Vec<Self> {
        let mut all = Self::locks();
        all.extend(Self::events());
        all.extend(Self::channels());
        all
    }

    fn locks() -> Vec<Self> {
        let semaphore = Arc::new(Semaphore::new(0));
        let touched = semaphore.clone();
        let waits = [1, 2, 3].map(|n| wait(semaphore.clone().acquire_many_owned(n)));
        let permits = Self::new(
            "semaphore",
            waits,
            move || semaphore.add_permits(6),
            move || {
                assert!(touched.try_acquire_many(9).is_err());
                try_once(touched.acquire_many(9));
                touched.add_permits(0);
            },
        );
        let semaphore = Arc::new(Semaphore::new(0));
        let touched = semaphore.clone();
        let waits = [1, 2, 3].map(|n| wait(semaphore.clone().acquire_many_owned(n)));
        let close = move || semaphore.close();
        let closed = Self::new("close of a semaphore", waits, close, move || {
            try_once(touched.acquire_many(9));
        });
        let mutex = Arc::new(Mutex::new(0));
        let (guard, touched) = (mutex.clone().try_lock_owned(), mutex.clone());
        let waits = [(); 3].map(|()| wait(mutex.clone().lock_owned()));
        let lock = Self::new(
            "mutex",
            waits,
            || end(guard),
            move || {
                end(touched.try_lock());
                try_once(touched.lock());
            },
        );
        let rwlock = Arc::new(RwLock::new(0));
        let (guard, touched) = (rwlock.clone().try_write_owned(), rwlock.clone());
        let waits = [(); 3].map(|()| wait(rwlock.clone().read_owned()));
        let read = Self::new(
            "readers",
            waits,
            || end(guard),
            move || {
                end(touched.try_read());
                try_once(touched.read());
                try_once(touched.write());
            },
        );
        let rwlock = Arc::new(RwLock::new(0));
        let (guard, touched) = (rwlock.clone().try_read_owned(), rwlock.clone());
        let waits = [(); 3].map(|()| wait(rwlock.clone().write_owned()));
        let write = Self::new(
            "writers",
            waits,
            || end(guard),
            move || {
                end(touched.try_write());
                try_once(touched.read());
                try_once(touched.write());
            },
        );
        vec![permits, closed, lock.in_turns(), read, write.in_turns()]
    }

    fn events() -> Vec<Self> {
        let notify = Arc::new(Notify::new());
        let touched = notify.clone();
        let waits = [(); 3].map(|()| wait(notify.clone().notified_owned()));
        let event = move || notify.notify_waiters();
        let notified = Self::new("notify", waits, event, move || try_once(touched.notified()));
        let barrier = Arc::new(Barrier::new(4));
        let touched = barrier.clone();
        let waits = [(); 3].map(|()| {
            let barrier = barrier.clone();
            wait(async move { end(barrier.wait().await) })
        });
        let event = move || try_once(barrier.wait());
        let last = Self::new("barrier", waits, event, move || {
            touched.for_each_waiter(|_| ());
        });
        let cell = Arc::new(SetOnce::new());
        let touched = cell.clone();
        let waits = [(); 3].map(|()| {
            let cell = cell.clone();
            wait(async move { end(*cell.wait().await) })
        });
        let event = move || cell.set(1).unwrap();
        let set = Self::new("set once", waits, event, move || try_once(touched.wait()));
        let cell = Arc::new(OnceCell::new());
        let touched = cell.clone();
        let (sender, receiver) = oneshot::channel::<u8>();
        let init = cell.clone();
        let mut first: Wait = wait(async move {
            let value = async { receiver.await.map_err(end) };
            end(init.get_or_try_init(|| value).await.copied());
        });
        try_once(first.as_mut());
        let waits = [(); 3].map(|()| {
            let cell = cell.clone();
            wait(async move { end(*cell.get_or_init(|| async { 2 }).await) })
        });
        let event = move || {
            end(sender);
            try_once(first);
        };
        let once = Self::new("once cell", waits, event, move || {
            end(touched.get().copied());
        });
        vec![notified, last, set, once.in_turns()]
    }

    fn channels() -> Vec<Self> {
        let (sender, receiver) = mpsc::channel(1);
        sender.try_send(0).unwrap();
        let waits = [1, 2, 3].map(|n| {
            let sender = sender.clone();
            wait(async move { end(sender.send(n).await) })
        });
        let room = Self::new(
            "room",
            waits,
            || end(receiver),
            move || {
                assert!(sender.try_send(9).is_err());
                try_once(sender.reserve());
            },
        );
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let touched = sender.clone();
        let waits = [wait(async move { end(receiver.recv().await) })];
        let event = move || end(sender.send(1));
        let message = Self::new("message", waits, event, move || {
            touched.for_each_waiter(|_| ());
            end(touched.clone());
        });
        let (sender, receiver) = oneshot::channel();
        let event = move || end(sender.send(1));
        let once = Self::new("oneshot", [wait(receiver)], event, || ());
        let (sender, _) = broadcast::channel(1);
        let touched = sender.clone();
        let waits = [(); 30].map(|()| {
            let mut receiver = sender.subscribe();
            wait(async move { end(receiver.recv().await) })
        });
        let event = move || end(sender.send(1));
        let value = Self::new("broadcast", waits, event, move || {
            let mut receiver = touched.subscribe();
            try_once(receiver.recv());
        });
        let (sender, receiver) = watch::channel(0);
        let touched = receiver.clone();
        let waits = [(); 3].map(|()| {
            let mut receiver = receiver.clone();
            wait(async move { end(receiver.changed().await) })
        });
        let change = Self::new(
            "watch",
            waits,
            move || end(sender.send(1)),
            move || {
                let mut receiver = touched.clone();
                try_once(receiver.changed());
                end(touched.borrow());
            },
        );
        let (sender, receiver) = watch::channel(0);
        let sender = Arc::new(sender);
        let touched = sender.clone();
        let waits = [(); 3].map(|()| {
            let sender = sender.clone();
            wait(async move { sender.closed().await })
        });
        let closed = Self::new(
            "close of a watch",
            waits,
            || end(receiver),
            move || {
                try_once(touched.closed());
                end(touched.borrow());
            },
        );
        vec![room, message, once, value, change, closed]
    }

    /// Polls each wait with a waker of its own, and asserts that it pends.
    fn begin(&mut self, waker: impl Fn(usize) -> Waker) {
        for (n, wait) in self.waits.iter_mut().enumerate() {
            let polled = wait.as_mut().poll(&mut Context::from_waker(&waker(n)));
            assert!(polled.is_pending(), "{}", self.name);
        }
    }

    /// Makes the event happen.
    fn happens(&mut self) {
        self.event.take().expect("it happens once")();
    }

    /// Polls the waits in their order, and asserts that each is ready.
    fn finish(self) {
        for mut wait in self.waits {
            let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_ready(), "{}", self.name);
        }
    }
}

/// Counts the wakes of a task.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed, the end of the thread orders it.
        self.0.fetch_add(1, Relaxed);
    }
}

/// A wait moves from one task to another, on another thread. Fails if a poll keeps the first waker.
#[test]
fn event_wakes_the_task_that_polled_last() {
    for mut case in Case::all() {
        let [first, last] = [(); 2].map(|()| Arc::new(Wakes::default()));
        case.begin(|_| Waker::from(first.clone()));
        let waker = Waker::from(last.clone());
        let mut waits = mem::take(&mut case.waits);
        let polling = thread::spawn(move || {
            for wait in &mut waits {
                let polled = wait.as_mut().poll(&mut Context::from_waker(&waker));
                assert!(polled.is_pending());
            }
            waits
        });
        case.waits = polling.join().unwrap();
        let woken = if case.wakes_all { case.waits.len() } else { 1 };
        case.happens();
        // Ordering: Relaxed, all is on this thread.
        assert_eq!(
            (first.0.load(Relaxed), last.0.load(Relaxed)),
            (0, woken),
            "{}",
            case.name
        );
        case.finish();
    }
}

/// Fails, by a deadlock, if a waker is cloned, woken or dropped under an internal lock.
#[test]
fn waker_that_uses_its_primitive_is_harmless() {
    use std::task::{RawWaker, RawWakerVTable};

    type Touch = Arc<dyn Fn() + Send + Sync>;

    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

    fn raw(touch: Touch) -> RawWaker {
        RawWaker::new(Box::into_raw(Box::new(touch)).cast_const().cast(), &TABLE)
    }

    fn touch(data: *const ()) -> Touch {
        // SAFETY: the pointer is of the box of a waker that lives.
        let touch = unsafe { &*data.cast::<Touch>() };
        touch();
        touch.clone()
    }

    fn clone(data: *const ()) -> RawWaker {
        raw(touch(data))
    }

    fn wake(data: *const ()) {
        wake_by_ref(data);
        release(data);
    }

    fn wake_by_ref(data: *const ()) {
        touch(data);
    }

    fn release(data: *const ()) {
        touch(data);
        // SAFETY: the waker ends, and nobody else has its box.
        drop(unsafe { Box::from_raw(data.cast_mut().cast::<Touch>()) });
    }

    for is_cancelled in [false, true] {
        for mut case in Case::all() {
            let touch = case.touch.clone();
            // SAFETY: the functions of the table keep the contract: each waker owns a box.
            let waker = |_| unsafe { Waker::from_raw(raw(touch.clone())) };
            case.begin(waker);
            // Another box is another waker, which replaces the first one.
            case.begin(waker);
            if is_cancelled {
                case.waits.clear();
            }
            case.happens();
            case.finish();
        }
    }
}

/// The first task's waker panics in its wake. Fails if the panic leaves the others without a wake,
/// or comes out of the event.
#[cfg(feature = "std")]
#[test]
fn panic_of_a_waker_leaves_the_wakes_of_all_others() {
    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("the wake of a task");
        }
    }

    for mut case in Case::all() {
        let wakes = Arc::new(Wakes::default());
        case.begin(|n| match n {
            0 => Waker::from(Arc::new(Panics)),
            _ => Waker::from(wakes.clone()),
        });
        case.happens();
        let others = if case.wakes_all {
            case.waits.len() - 1
        } else {
            0
        };
        // Ordering: Relaxed, all is on this thread.
        assert_eq!(wakes.0.load(Relaxed), others, "{}", case.name);
        case.finish();
    }
}
