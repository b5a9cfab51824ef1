//! The bytes of a channel, of a message in it, and of a task's wait, as the allocator and
//! `size_of_val` say them.
use crate::{
    peers::{AsyncChannel, Channel, Flume, Kanal, Ours, Peer, Tokio},
    workloads::CAPACITY,
};
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed},
};

/// A thing, and its bytes with each peer.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub(crate) struct Bytes {
    pub(crate) what: String,
    /// Ours, then tokio's, then others.
    pub(crate) of: Vec<(String, f64)>,
}

/// The system's allocator. It counts bytes while [`count`] asks for them.
pub(crate) struct Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static HELD: AtomicIsize = AtomicIsize::new(0);

// SAFETY: the calls are those of the system's allocator. The default `realloc` of the trait makes
// them, too.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller fulfils the conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the caller fulfils the conditions, and the block is the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

fn add(bytes: isize) {
    // Ordering: one thread sets and reads both, and counts what it allocates itself.
    if IS_COUNTING.load(Relaxed) {
        HELD.fetch_add(bytes, Relaxed);
    }
}

/// Returns the bytes that are allocated and not released meanwhile. No other thread may allocate.
fn count<T>(work: impl FnOnce() -> T) -> f64 {
    // Ordering: see `add`.
    HELD.store(0, Relaxed);
    IS_COUNTING.store(true, Relaxed);
    let kept = work();
    IS_COUNTING.store(false, Relaxed);
    let held = HELD.load(Relaxed);
    drop(kept);
    held as f64
}

/// The number of messages that share the bytes of what holds them.
const MESSAGES: u64 = 32_000;

/// Returns the bytes of an empty channel for [`CAPACITY`] messages, of an empty unbounded one, and
/// of a message of 8 bytes.
fn channel<C: Channel>() -> [f64; 3] {
    let unbounded = count(|| C::unbounded::<u64>());
    let full = count(|| {
        let (sender, receiver) = C::unbounded();
        for message in 0..MESSAGES {
            let sent = C::send(&sender, message).now_or_never();
            sent.expect("an unbounded channel has room");
        }
        (sender, receiver)
    });
    [
        count(|| C::bounded::<u64>(CAPACITY)),
        unbounded,
        (full - unbounded) / MESSAGES as f64,
    ]
}

fn channels() -> Vec<Bytes> {
    macro_rules! columns {
        ($($peer:ident),*) => {
            [$((<$peer as Peer>::NAME, channel::<$peer>())),*]
        };
    }
    let columns = columns!(Ours, Tokio, AsyncChannel, Flume, Kanal);
    let what = [
        "an empty channel for 100 messages of 8 bytes",
        "an empty unbounded channel for messages of 8 bytes",
        "a message of 8 bytes in an unbounded channel",
    ];
    let row = |(index, what): (usize, &str)| Bytes {
        what: what.to_owned(),
        of: columns
            .iter()
            .map(|(peer, bytes)| ((*peer).to_owned(), bytes[index]))
            .collect(),
    };
    what.into_iter().enumerate().map(row).collect()
}

/// Returns what the crates with tokio's names take.
macro_rules! as_tokio {
    ($sync:path) => {{
        use $sync as sync;
        let (sender, mut receiver) = sync::mpsc::channel::<u64>(1);
        sender.try_send(1).expect("there is room");
        let (cast, mut listener) = sync::broadcast::channel::<u64>(16);
        let (_show, mut watcher) = sync::watch::channel(0u64);
        let mutex = sync::Mutex::new(0u64);
        let rwlock = sync::RwLock::new(0u64);
        let semaphore = sync::Semaphore::new(1);
        let notify = sync::Notify::new();
        let barrier = sync::Barrier::new(2);
        let cell = sync::OnceCell::<u64>::new();
        let bytes = [
            (
                "an empty `oneshot` for 8 bytes",
                count(|| sync::oneshot::channel::<u64>()),
            ),
            (
                "an empty `broadcast` for 16 messages of 8 bytes",
                count(|| sync::broadcast::channel::<u64>(16)),
            ),
            ("a `watch` of 8 bytes", count(|| sync::watch::channel(0u64))),
            ("a `Mutex` of 8 bytes", size_of_val(&mutex) as f64),
            ("a `RwLock` of 8 bytes", size_of_val(&rwlock) as f64),
            ("a `Semaphore`", size_of_val(&semaphore) as f64),
            ("a `Notify`", size_of_val(&notify) as f64),
            ("an empty `OnceCell` of 8 bytes", size_of_val(&cell) as f64),
            (
                "a wait for room in a channel",
                size_of_val(&sender.send(2)) as f64,
            ),
            (
                "a wait for a message of a channel",
                size_of_val(&receiver.recv()) as f64,
            ),
            (
                "a wait for a `oneshot`",
                size_of::<sync::oneshot::Receiver<u64>>() as f64,
            ),
            (
                "a wait for a `broadcast`",
                size_of_val(&listener.recv()) as f64,
            ),
            (
                "a wait for a `watch`",
                size_of_val(&watcher.changed()) as f64,
            ),
            ("a wait for a `Mutex`", size_of_val(&mutex.lock()) as f64),
            (
                "a wait for a `RwLock`, to read",
                size_of_val(&rwlock.read()) as f64,
            ),
            (
                "a wait for a `RwLock`, to write",
                size_of_val(&rwlock.write()) as f64,
            ),
            (
                "a wait for a `Semaphore`",
                size_of_val(&semaphore.acquire()) as f64,
            ),
            (
                "a wait for a `Notify`",
                size_of_val(&notify.notified()) as f64,
            ),
            (
                "a wait for a `Barrier`",
                size_of_val(&barrier.wait()) as f64,
            ),
        ];
        drop(cast);
        bytes
    }};
}

/// Measures everything. No other thread may run.
pub(crate) fn bytes() -> Vec<Bytes> {
    let ours = as_tokio!(selvedge::sync);
    let tokios = as_tokio!(tokio::sync);
    let mut all = channels();
    all.extend(
        ours.into_iter()
            .zip(tokios)
            .map(|((what, ours), (_, tokios))| Bytes {
                what: what.to_owned(),
                of: vec![
                    (Ours::NAME.to_owned(), ours),
                    (Tokio::NAME.to_owned(), tokios),
                ],
            }),
    );
    all
}
