//! Many threads use one primitive. A scenario checks what each thread got, and that nothing is lost
//! or there twice. A lost wake hangs, which the model checker reports as a deadlock.
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Wake, Waker},
};
use sync_shim::{
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    sync::Arc,
    thread::{self, JoinHandle, Thread},
};
use task_sync::{
    Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc, watch,
};

/// The waker of a thread that waits for a future.
struct Parked {
    is_woken: AtomicBool,
    thread: Thread,
}

impl Wake for Parked {
    fn wake(self: std::sync::Arc<Self>) {
        // Ordering: Release pairs with the swap in `block_on`.
        self.is_woken.swap(true, Release);
        self.thread.unpark();
    }
}

fn waker() -> (std::sync::Arc<Parked>, Waker) {
    let parked = std::sync::Arc::new(Parked {
        is_woken: AtomicBool::new(false),
        thread: thread::current(),
    });
    (parked.clone(), parked.into())
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let (parked, waker) = waker();
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        // Ordering: Acquire pairs with the swap in `wake`.
        while !parked.is_woken.swap(false, Acquire) {
            thread::park();
        }
    }
}

/// Polls the future once, and drops it if it is pending. Returns whether it was ready.
fn try_once<F: Future>(future: F) -> Option<F::Output> {
    let (_parked, waker) = waker();
    match pin!(future).poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Spawns this many threads, each with its number.
fn spawn(count: u64, work: impl Fn(u64) + Send + Sync + 'static) -> Vec<JoinHandle<()>> {
    let work = Arc::new(work);
    (0..count)
        .map(|number| {
            let work = work.clone();
            thread::spawn(move || work(number))
        })
        .collect()
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// A message: its sender's number, and its own.
type Message = (u64, u64);

/// Checks that each sender's messages came once and in order.
struct Received(Vec<u64>);

impl Received {
    fn new(senders: u64) -> Self {
        Self(vec![0; senders as usize])
    }

    fn add(&mut self, (sender, number): Message) {
        let next = &mut self.0[sender as usize];
        assert_eq!(number, *next, "of sender {sender}");
        *next += 1;
    }

    fn check(&self, each: u64) {
        assert!(self.0.iter().all(|&count| count == each), "{:?}", self.0);
    }
}

/// Each third send is begun, and dropped if there is no room; the sender then waits for room.
pub fn mpsc(senders: u64, each: u64, capacity: usize) {
    let (sender, mut receiver) = mpsc::channel::<Message>(capacity);
    let threads = spawn(senders, move |number| {
        for own in 0..each {
            let message = (number, own);
            let is_sent = own % 3 == 1 && try_once(sender.send(message)).is_some();
            if !is_sent {
                block_on(sender.send(message)).unwrap();
            }
        }
    });
    let mut received = Received::new(senders);
    let mut many = Vec::new();
    while block_on(receiver.recv_many(&mut many, 3)) > 0 {
        many.drain(..).for_each(|message| received.add(message));
        if let Ok(message) = receiver.try_recv() {
            received.add(message);
        }
    }
    join(threads);
    received.check(each);
}

pub fn mpsc_unbounded(senders: u64, each: u64) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Message>();
    let threads = spawn(senders, move |number| {
        for own in 0..each {
            sender.send((number, own)).unwrap();
        }
    });
    let mut received = Received::new(senders);
    while let Some(message) = block_on(receiver.recv()) {
        received.add(message);
    }
    join(threads);
    received.check(each);
}

/// The ring has room for all, so nobody lags. Each receiver gets each message.
pub fn broadcast(senders: u64, receivers: u64, each: u64) {
    let (sender, first) = broadcast::channel::<Message>((senders * each) as usize);
    let early: Vec<_> = (1..receivers / 2).map(|_| sender.subscribe()).collect();
    // Behind so many, a receiver waits in one of several lists.
    let spare: Vec<_> = (0..8).map(|_| sender.subscribe()).collect();
    let late = (receivers / 2..receivers).map(|_| sender.subscribe());
    let queues: Vec<_> = early.into_iter().chain(late).chain([first]).collect();
    drop(spare);
    let receivers = queues.into_iter().map(|mut receiver| {
        thread::spawn(move || {
            let mut received = Received::new(senders);
            loop {
                match block_on(receiver.recv()) {
                    Ok(message) => received.add(message),
                    Err(broadcast::error::RecvError::Closed) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            received.check(each);
        })
    });
    let receivers: Vec<_> = receivers.collect();
    let threads = spawn(senders, move |number| {
        for own in 0..each {
            sender.send((number, own)).unwrap();
        }
    });
    join(threads);
    join(receivers);
}

/// The values grow. A watcher sees them grow, and the last one before the end.
pub fn watch(watchers: u64, values: u64) {
    let (sender, receiver) = watch::channel(0);
    let threads = spawn(watchers, move |_| {
        let mut receiver = receiver.clone();
        let mut last = 0;
        while block_on(receiver.changed()).is_ok() {
            let value = *receiver.borrow_and_update();
            assert!(value > last, "{value} came after {last}");
            last = value;
        }
        assert_eq!(last, values);
    });
    for value in 1..=values {
        sender.send_replace(value);
    }
    drop(sender);
    join(threads);
}

/// Each second lock is begun, and given up if it is not free at once.
pub fn mutex(threads: u64, each: u64) {
    let shared = Arc::new((Mutex::new(0_u64), AtomicU64::new(0)));
    let work = shared.clone();
    join(spawn(threads, move |number| {
        for turn in 0..each {
            let (mutex, count) = &*work;
            let guard = match (number + turn) % 2 {
                0 => try_once(mutex.lock()),
                _ => Some(block_on(mutex.lock())),
            };
            if let Some(mut guard) = guard {
                let before = *guard;
                thread::yield_now();
                *guard = before + 1;
                // Ordering: Relaxed, the joins order the counts.
                count.fetch_add(1, Relaxed);
            }
        }
    }));
    let (mutex, count) = &*shared;
    // Ordering: as above.
    assert_eq!(*mutex.try_lock().unwrap(), count.load(Relaxed));
}

/// Each third lock is exclusive. A writer is alone, and readers see both numbers alike.
pub fn rwlock(threads: u64, each: u64) {
    let shared = Arc::new((RwLock::new((0_u64, 0_u64)), AtomicU64::new(0)));
    let work = shared.clone();
    join(spawn(threads, move |number| {
        for turn in 0..each {
            let (lock, count) = &*work;
            if (number + turn) % 3 == 0 {
                let mut guard = block_on(lock.write());
                guard.0 += 1;
                thread::yield_now();
                guard.1 += 1;
                // Ordering: Relaxed, the joins order the counts.
                count.fetch_add(1, Relaxed);
            } else if let Some(guard) = try_once(lock.read()) {
                assert_eq!(guard.0, guard.1);
            } else {
                let guard = block_on(lock.read());
                assert_eq!(guard.0, guard.1);
            }
        }
    }));
    let (lock, count) = &*shared;
    // Ordering: as above.
    let count = count.load(Relaxed);
    assert_eq!(*lock.try_read().unwrap(), (count, count));
}

/// The threads need one permit or two. Some give up their wait.
pub fn semaphore(permits: u64, threads: u64, each: u64) {
    let shared = Arc::new((Semaphore::new(permits as usize), AtomicU64::new(0)));
    let work = shared.clone();
    join(spawn(threads, move |number| {
        for turn in 0..each {
            let (semaphore, held) = &*work;
            let need = 1 + (number + turn) % 2;
            let wait = semaphore.acquire_many(need as u32);
            let permit = match turn % 3 {
                1 => try_once(wait),
                _ => Some(block_on(wait)),
            };
            if let Some(permit) = permit {
                // Ordering: the permit orders the count, for as many as can hold one.
                assert!(held.fetch_add(need, AcqRel) + need <= permits);
                thread::yield_now();
                // Ordering: see above.
                held.fetch_sub(need, AcqRel);
                drop(permit.unwrap());
            }
        }
    }));
    assert_eq!(shared.0.available_permits() as u64, permits);
}

/// Half of the threads make items and notify. The other half wait for an item, and pass the
/// notification on if items are left.
pub fn notify(pairs: u64, each: u64) {
    let shared = Arc::new((Notify::new(), AtomicU64::new(0)));
    let work = shared.clone();
    let threads = spawn(2 * pairs, move |number| {
        let (notify, items) = &*work;
        for _ in 0..each {
            if number < pairs {
                // Ordering: the notification orders it.
                items.fetch_add(1, Relaxed);
                notify.notify_one();
                continue;
            }
            loop {
                // Ordering: see above.
                let taken = items.fetch_update(Relaxed, Relaxed, |items| items.checked_sub(1));
                match taken {
                    Ok(1) => break,
                    Ok(_) => {
                        notify.notify_one();
                        break;
                    }
                    Err(_) => block_on(notify.notified()),
                }
            }
        }
    });
    join(threads);
    // Ordering: the joins order it.
    assert_eq!(shared.1.load(Relaxed), 0);
}

/// All wait for `notify_waiters`, and each wait that was made before it ends.
pub fn notify_waiters(threads: u64) {
    let shared = Arc::new((Notify::new(), AtomicBool::new(false)));
    let work = shared.clone();
    let threads = spawn(threads, move |_| {
        let (notify, is_over) = &*work;
        let wait = notify.notified();
        // Ordering: Acquire pairs with the store below.
        if !is_over.load(Acquire) {
            block_on(wait);
        }
    });
    // Ordering: Release pairs with the loads above. The `Notify` orders the store before the waits
    // that it does not end.
    shared.1.store(true, Release);
    shared.0.notify_waiters();
    join(threads);
}

/// In each round all threads meet, and one of them leads.
pub fn barrier(threads: u64, rounds: u64) {
    let shared = Arc::new((Barrier::new(threads as usize), AtomicU64::new(0)));
    let work = shared.clone();
    join(spawn(threads, move |_| {
        for round in 1..=rounds {
            let (barrier, leaders) = &*work;
            if block_on(barrier.wait()).is_leader() {
                // Ordering: the barrier orders the leaders of two rounds.
                assert_eq!(leaders.fetch_add(1, Relaxed) + 1, round);
            }
        }
    }));
    // Ordering: the joins order it.
    assert_eq!(shared.1.load(Relaxed), rounds);
}

/// One of the threads makes the value. The first of them fails to, and others wait meanwhile.
pub fn once(threads: u64) {
    let shared = Arc::new((OnceCell::new(), SetOnce::new(), AtomicU64::new(0)));
    let work = shared.clone();
    join(spawn(threads, move |number| {
        let (cell, set, made) = &*work;
        if number == 0 {
            let failed = block_on(cell.get_or_try_init(|| async { Err::<u64, ()>(()) }));
            assert!(failed.is_ok_and(|value| *value > 0) || failed.is_err());
            return;
        }
        let value = block_on(cell.get_or_init(|| async {
            // Ordering: Relaxed, it only counts.
            made.fetch_add(1, Relaxed);
            thread::yield_now();
            number
        }));
        let _ = set.set(*value); // An error: another thread has set it, to the same value.
        assert_eq!(block_on(set.wait()), value);
    }));
    // Ordering: the joins order it.
    assert_eq!(shared.2.load(Relaxed), 1);
}
