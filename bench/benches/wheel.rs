//! The wheel beside a sorted map, a heap and its peers. `cargo bench -p bench --bench wheel`.
//!
//! - *cancel*: insert a timer that is due in 30,000 to 31,000 ticks, and remove the timer that was
//!   inserted first of the 10,000 pending ones. Time advances by one tick for each 100 such pairs,
//!   so no timer fires. Nanoseconds a pair.
//! - *fire*: insert a timer that is due in 1 to 1,000 ticks. Time advances by one tick for each 10
//!   timers, and the due timers are taken. About 5,000 timers are pending. Nanoseconds a timer.
//! - *sleeps*: insert 100,000 or 1,000,000 timers, whose deadlines are random within 10,000 ticks.
//!   Then advance by 10,000 ticks, one by one. Nanoseconds for all timers together.
//!
//! The heap and hierarchical_hash_wheel_timer remove no timer: they mark cancelled timers, and drop
//! them at their deadlines. In *cancel* time reaches no deadline, so both grow through the whole
//! measurement. The wheel reuses its boxes; hierarchical_hash_wheel_timer allocates an `Rc` for
//! each timer. nexus-timer expires by `poll_and_rebalance`, not by `poll`. tokio-util's queue reads
//! tokio's clock, which is paused, and takes part in *cancel* alone.
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, measurement::WallTime};
use hierarchical_hash_wheel_timer::wheels::cancellable as peer;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashSet, VecDeque},
    hint::black_box,
    ptr::NonNull,
    rc::Rc,
    time::{Duration, Instant},
};
use timer_wheel::{Entry, Key, Node, Timers, Wheel};

/// A queue of timers, each of which has a number as its value.
trait Queue {
    type Key;
    fn new() -> Self;
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key;
    fn remove(&mut self, key: Self::Key);
    /// Takes all timers that are due at the tick `now`, and returns how many there were. From one
    /// call to the next, `now` stays the same or grows by 1.
    fn expire(&mut self, now: u64) -> u64;
}

struct Intrusive {
    wheel: Wheel<Numbered>,
    /// Entries that are in no wheel, to be used again. In a runtime the entries are parts of tasks.
    #[allow(clippy::vec_box, reason = "a box is the handle of an entry")]
    spare: Vec<Box<Numbered>>,
}

struct Numbered {
    node: Node<Numbered>,
    value: u64,
}

// SAFETY: a box owns its content, and the content stays in place.
unsafe impl Entry for Numbered {
    type Handle = Box<Numbered>;

    fn into_ptr(handle: Box<Numbered>) -> NonNull<Numbered> {
        // SAFETY: the pointer of a box is not null.
        unsafe { NonNull::new_unchecked(Box::into_raw(handle)) }
    }
    unsafe fn from_ptr(entry: NonNull<Numbered>) -> Box<Numbered> {
        // SAFETY: the pointer came from `Box::into_raw`.
        unsafe { Box::from_raw(entry.as_ptr()) }
    }
    unsafe fn node(entry: NonNull<Numbered>) -> NonNull<Node<Numbered>> {
        // SAFETY: the caller promises that the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: the address of a field is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}

impl Queue for Intrusive {
    type Key = NonNull<Numbered>;
    fn new() -> Self {
        Self {
            wheel: Wheel::new(),
            spare: Vec::new(),
        }
    }
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key {
        let mut entry = self.spare.pop().unwrap_or_else(|| {
            let (node, value) = (Node::new(), 0);
            Box::new(Numbered { node, value })
        });
        entry.value = value;
        let entry = Numbered::into_ptr(entry);
        // SAFETY: the pointer came from `into_ptr`.
        self.wheel
            .insert(unsafe { Numbered::from_ptr(entry) }, deadline);
        entry
    }
    fn remove(&mut self, entry: Self::Key) {
        // SAFETY: the entry is in the wheel.
        let entry = unsafe { self.wheel.remove(entry) };
        self.spare.extend(entry);
    }
    fn expire(&mut self, now: u64) -> u64 {
        let mut count = 0;
        while let Some(entry) = self.wheel.pop_expired(now) {
            count += 1;
            black_box(entry.value);
            self.spare.push(entry);
        }
        count
    }
}

impl Queue for Timers<u64> {
    type Key = Key;
    fn new() -> Self {
        Self::new()
    }
    fn insert(&mut self, deadline: u64, value: u64) -> Key {
        Timers::insert(self, deadline, value)
    }
    fn remove(&mut self, key: Key) {
        black_box(Timers::remove(self, key));
    }
    fn expire(&mut self, now: u64) -> u64 {
        let mut count = 0;
        while let Some(expired) = self.pop_expired(now) {
            count += 1;
            black_box(expired.value);
        }
        count
    }
}

#[derive(Default)]
struct Map {
    timers: BTreeMap<(u64, u64), u64>,
    inserted: u64,
}

impl Queue for Map {
    type Key = (u64, u64);
    fn new() -> Self {
        Self::default()
    }
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key {
        self.inserted += 1;
        let key = (deadline, self.inserted);
        self.timers.insert(key, value);
        key
    }
    fn remove(&mut self, key: Self::Key) {
        black_box(self.timers.remove(&key));
    }
    fn expire(&mut self, now: u64) -> u64 {
        let mut count = 0;
        while let Some(first) = self.timers.first_entry() {
            if first.key().0 > now {
                break;
            }
            count += 1;
            black_box(first.remove());
        }
        count
    }
}

#[derive(Default)]
struct Heap {
    timers: BinaryHeap<Reverse<(u64, u64, u64)>>,
    cancelled: HashSet<u64>,
    inserted: u64,
}

impl Queue for Heap {
    type Key = u64;
    fn new() -> Self {
        Self::default()
    }
    fn insert(&mut self, deadline: u64, value: u64) -> u64 {
        self.inserted += 1;
        self.timers.push(Reverse((deadline, self.inserted, value)));
        self.inserted
    }
    fn remove(&mut self, key: u64) {
        self.cancelled.insert(key);
    }
    fn expire(&mut self, now: u64) -> u64 {
        let mut count = 0;
        while let Some(&Reverse((deadline, key, value))) = self.timers.peek() {
            if deadline > now {
                break;
            }
            self.timers.pop();
            if self.cancelled.is_empty() || !self.cancelled.remove(&key) {
                count += 1;
                black_box(value);
            }
        }
        count
    }
}

#[derive(Debug)]
struct PeerEntry(u64);

impl peer::CancellableTimerEntry for PeerEntry {
    type Id = u64;
    fn id(&self) -> &u64 {
        &self.0
    }
}

struct HashWheel {
    wheel: peer::QuadWheelWithOverflow<PeerEntry>,
    now: u64,
    inserted: u64,
}

impl Queue for HashWheel {
    type Key = u64;
    fn new() -> Self {
        Self {
            wheel: peer::QuadWheelWithOverflow::new(),
            now: 0,
            inserted: 0,
        }
    }
    fn insert(&mut self, deadline: u64, _: u64) -> u64 {
        self.inserted += 1;
        let delay = Duration::from_millis(deadline - self.now);
        let entry = Rc::new(PeerEntry(self.inserted));
        assert!(self.wheel.insert_ref_with_delay(entry, delay).is_ok());
        self.inserted
    }
    fn remove(&mut self, key: u64) {
        let _ = self.wheel.cancel(&key);
    }
    fn expire(&mut self, now: u64) -> u64 {
        let mut count = 0;
        while self.now < now {
            self.now += 1;
            count += black_box(self.wheel.tick()).len() as u64;
        }
        count
    }
}

struct Nexus {
    wheel: nexus_timer::Wheel<u64>,
    epoch: Instant,
    due: Vec<u64>,
}

impl Nexus {
    fn at(&self, tick: u64) -> Instant {
        self.epoch + Duration::from_millis(tick)
    }
}

impl Queue for Nexus {
    type Key = nexus_timer::TimerHandle<u64>;
    fn new() -> Self {
        let epoch = Instant::now();
        Self {
            wheel: nexus_timer::Wheel::unbounded(4096, epoch),
            epoch,
            due: Vec::new(),
        }
    }
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key {
        let deadline = self.at(deadline);
        self.wheel.schedule(deadline, value)
    }
    fn remove(&mut self, key: Self::Key) {
        black_box(self.wheel.cancel(key));
    }
    fn expire(&mut self, now: u64) -> u64 {
        let now = self.at(now);
        self.due.clear();
        self.wheel.poll_and_rebalance(now, &mut self.due);
        black_box(&self.due).len() as u64
    }
}

struct Delays {
    queue: tokio_util::time::DelayQueue<u64>,
    start: tokio::time::Instant,
}

impl Queue for Delays {
    type Key = tokio_util::time::delay_queue::Key;
    fn new() -> Self {
        Self {
            queue: tokio_util::time::DelayQueue::new(),
            start: tokio::time::Instant::now(),
        }
    }
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key {
        let at = self.start + Duration::from_millis(deadline);
        self.queue.insert_at(value, at)
    }
    fn remove(&mut self, key: Self::Key) {
        black_box(self.queue.remove(&key));
    }
    fn expire(&mut self, _: u64) -> u64 {
        0
    }
}

/// A xorshift generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

fn cancel<Q: Queue>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str) {
    let (mut queue, mut random, mut now, mut turn) = (Q::new(), Random(SEED), 0, 0u64);
    let mut keys = VecDeque::new();
    for _ in 0..10_000 {
        keys.push_back(queue.insert(30_000 + random.below(1000), 0));
    }
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            turn += 1;
            if turn % 100 == 0 {
                now += 1;
                assert_eq!(queue.expire(now), 0);
            }
            keys.push_back(queue.insert(now + 30_000 + random.below(1000), turn));
            if let Some(key) = keys.pop_front() {
                queue.remove(key);
            }
        });
    });
    // The queue must be empty at the end: a key of nexus-timer must not be dropped.
    keys.into_iter().for_each(|key| queue.remove(key));
}

/// Measures the row *fire*, which keeps no keys. For most queues `insert` is the function
/// [`insert`], which drops the key. A key of nexus-timer must not be dropped, so for nexus-timer
/// `insert` is [`forget`], which makes no key.
fn fire<Q: Queue>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    insert: impl Fn(&mut Q, u64, u64),
) {
    let (mut queue, mut random, mut now, mut turn) = (Q::new(), Random(SEED), 0, 0u64);
    let mut one = || {
        turn += 1;
        insert(&mut queue, now + 1 + random.below(1000), turn);
        if turn % 10 == 0 {
            now += 1;
            black_box(queue.expire(now));
        }
    };
    (0..20_000).for_each(|_| one());
    group.bench_function(name, |bencher| bencher.iter(&mut one));
}

fn sleeps<Q: Queue>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    insert: impl Fn(&mut Q, u64, u64),
) {
    for count in [100_000, 1_000_000] {
        let deadlines: Vec<u64> = {
            let mut random = Random(SEED);
            (0..count).map(|_| 1 + random.below(10_000)).collect()
        };
        group.bench_function(BenchmarkId::new(name, count), |bencher| {
            bencher.iter_batched(
                Q::new,
                |mut queue| {
                    for (value, &deadline) in deadlines.iter().enumerate() {
                        insert(&mut queue, deadline, value as u64);
                    }
                    let fired: u64 = (1..=10_000).map(|now| queue.expire(now)).sum();
                    assert_eq!(fired, count);
                    queue
                },
                BatchSize::PerIteration,
            );
        });
    }
}

/// Inserts a timer and drops its key.
fn insert<Q: Queue>(queue: &mut Q, deadline: u64, value: u64) {
    queue.insert(deadline, value);
}

fn forget(queue: &mut Nexus, deadline: u64, value: u64) {
    let deadline = queue.at(deadline);
    queue.wheel.schedule_forget(deadline, value);
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20)
        .configure_from_args();

    let mut group = criterion.benchmark_group("cancel");
    cancel::<Intrusive>(&mut group, "wheel");
    cancel::<Timers<u64>>(&mut group, "timers");
    cancel::<Map>(&mut group, "BTreeMap");
    cancel::<Heap>(&mut group, "BinaryHeap");
    cancel::<HashWheel>(&mut group, "hierarchical_hash_wheel_timer");
    cancel::<Nexus>(&mut group, "nexus-timer");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let _entered = runtime.enter();
    cancel::<Delays>(&mut group, "tokio-util");
    group.finish();

    let mut group = criterion.benchmark_group("fire");
    fire::<Intrusive>(&mut group, "wheel", insert);
    fire::<Timers<u64>>(&mut group, "timers", insert);
    fire::<Map>(&mut group, "BTreeMap", insert);
    fire::<Heap>(&mut group, "BinaryHeap", insert);
    fire::<HashWheel>(&mut group, "hierarchical_hash_wheel_timer", insert);
    fire::<Nexus>(&mut group, "nexus-timer", forget);
    group.finish();

    let mut group = criterion.benchmark_group("sleeps");
    group.sample_size(10);
    sleeps::<Intrusive>(&mut group, "wheel", insert);
    sleeps::<Timers<u64>>(&mut group, "timers", insert);
    sleeps::<Map>(&mut group, "BTreeMap", insert);
    sleeps::<Heap>(&mut group, "BinaryHeap", insert);
    sleeps::<HashWheel>(&mut group, "hierarchical_hash_wheel_timer", insert);
    sleeps::<Nexus>(&mut group, "nexus-timer", forget);
    group.finish();
}
