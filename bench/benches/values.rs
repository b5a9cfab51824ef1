//! Shared queues of values, by processor time. `cargo bench -p bench --bench values`.
//!
//! - *thousand*: one thread pushes 1,000 numbers and pops them.
//! - *one to one*: a thread pushes numbers while another pops them.
//! - *by 32*: as *one to one*, but the consumer takes up to 32 numbers at a time, if the queue has
//!   batches.
//! - *two to two*: two threads push numbers while two others pop them.
//! - *two by 32*: as *two to two*, but each consumer takes up to 32 numbers at a time, if the queue
//!   has batches.
//!
//! In a round each queue takes the row once, and the order of the queues rotates. The table gives
//! the median of the rounds: nanoseconds an item, of the processor time of all threads together.
//! `ROUNDS` and `ITEMS` set the numbers of rounds and items.
use concurrent_queue::ConcurrentQueue;
use crossbeam_deque::{Steal, Worker};
use queue_global::ValueInjector;
use std::{
    collections::VecDeque,
    hint::spin_loop,
    mem::MaybeUninit,
    sync::{
        Mutex,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
    thread,
};

trait Queue: Sync {
    fn new() -> Self;
    fn push(&self, item: u64);
    fn pop(&self) -> Option<u64>;

    /// Pops up to 32 numbers, or one if the queue has no batches. Returns how many numbers it
    /// popped, and their sum.
    fn pop_some(&self) -> (u64, u64) {
        self.pop().map_or((0, 0), |item| (1, item))
    }
}

impl Queue for ValueInjector<u64> {
    fn new() -> Self {
        Self::new()
    }
    fn push(&self, item: u64) {
        assert!(ValueInjector::push(self, item).is_ok());
    }
    fn pop(&self) -> Option<u64> {
        ValueInjector::pop(self)
    }
    fn pop_some(&self) -> (u64, u64) {
        let batch = self.pop_n(32);
        (batch.len() as u64, batch.sum())
    }
}

impl Queue for crossbeam_deque::Injector<u64> {
    fn new() -> Self {
        Self::new()
    }
    fn push(&self, item: u64) {
        self.push(item);
    }
    fn pop(&self) -> Option<u64> {
        loop {
            match self.steal() {
                Steal::Success(item) => return Some(item),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    }
    fn pop_some(&self) -> (u64, u64) {
        thread_local!(static MINE: Worker<u64> = Worker::new_fifo());
        MINE.with(|mine| {
            let first = loop {
                match self.steal_batch_and_pop(mine) {
                    Steal::Success(item) => break Some(item),
                    Steal::Empty => break None,
                    Steal::Retry => {}
                }
            };
            let all = first.into_iter().chain(std::iter::from_fn(|| mine.pop()));
            all.fold((0, 0), |(count, sum), item| (count + 1, sum + item))
        })
    }
}

impl Queue for ConcurrentQueue<u64> {
    fn new() -> Self {
        Self::unbounded()
    }
    fn push(&self, item: u64) {
        assert!(self.push(item).is_ok());
    }
    fn pop(&self) -> Option<u64> {
        self.pop().ok()
    }
}

impl Queue for Mutex<VecDeque<u64>> {
    fn new() -> Self {
        Self::default()
    }
    fn push(&self, item: u64) {
        self.lock().unwrap().push_back(item);
    }
    fn pop(&self) -> Option<u64> {
        self.lock().unwrap().pop_front()
    }
    fn pop_some(&self) -> (u64, u64) {
        let mut queue = self.lock().unwrap();
        let count = queue.len().min(32);
        (count as u64, queue.drain(..count).sum())
    }
}

fn processor_nanoseconds() -> f64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for a write of a `timespec`.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, time.as_mut_ptr()) };
    assert_eq!(failed, 0);
    // SAFETY: the call did not fail, so it has written the time.
    let time = unsafe { time.assume_init() };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Runs `run`, and returns its processor time for each item, in nanoseconds. `run` passes the
/// numbers below `items` through a queue and returns their sum.
fn timed(items: u64, run: impl FnOnce() -> u64) -> f64 {
    let begun = processor_nanoseconds();
    let sum = run();
    let took = processor_nanoseconds() - begun;
    assert_eq!(sum, items * (items - 1) / 2, "each item once");
    took / items as f64
}

fn thousand<Q: Queue>(items: u64) -> f64 {
    let queue = Q::new();
    timed(items, || {
        let mut sum = 0;
        for first in (0..items).step_by(1000) {
            (first..items.min(first + 1000)).for_each(|item| queue.push(item));
            sum += std::iter::from_fn(|| queue.pop()).sum::<u64>();
        }
        sum
    })
}

/// Spins, and yields the CPU at every 64th call: the pushing thread may need this thread's CPU.
fn wait(patience: &mut u32) {
    *patience = patience.wrapping_add(1);
    match *patience % 64 {
        0 => thread::yield_now(),
        _ => spin_loop(),
    }
}

fn one_to_one<Q: Queue>(items: u64, take: fn(&Q) -> (u64, u64)) -> f64 {
    let queue = Q::new();
    timed(items, || {
        thread::scope(|scope| {
            scope.spawn(|| (0..items).for_each(|item| queue.push(item)));
            let (mut count, mut sum, mut patience) = (0, 0, 0_u32);
            while count < items {
                let (more, their_sum) = take(&queue);
                count += more;
                sum += their_sum;
                if more == 0 {
                    wait(&mut patience);
                }
            }
            sum
        })
    })
}

fn one_to_one_by_ones<Q: Queue>(items: u64) -> f64 {
    one_to_one::<Q>(items, |queue| queue.pop().map_or((0, 0), |item| (1, item)))
}

fn one_to_one_by_32<Q: Queue>(items: u64) -> f64 {
    one_to_one::<Q>(items, Q::pop_some)
}

fn two_to_two<Q: Queue>(items: u64, take: fn(&Q) -> (u64, u64)) -> f64 {
    let (queue, pushed) = (&Q::new(), &AtomicBool::new(false));
    let consume = || {
        let (mut sum, mut patience) = (0, 0);
        loop {
            // Ordering: Acquire pairs with the store below. If the load returns true, this thread
            // sees all pushes.
            let is_last = pushed.load(Acquire);
            let (count, their_sum) = take(queue);
            sum += their_sum;
            match count {
                0 if is_last => return sum,
                0 => wait(&mut patience),
                _ => {}
            }
        }
    };
    timed(items, || {
        thread::scope(|scope| {
            let consumers = [(); 2].map(|()| scope.spawn(consume));
            let pushers = [0..items / 2, items / 2..items]
                .map(|mine| scope.spawn(move || mine.for_each(|item| queue.push(item))));
            for pusher in pushers {
                pusher.join().unwrap();
            }
            // Ordering: Release pairs with the consumers' load.
            pushed.store(true, Release);
            let sums = consumers.map(|consumer| consumer.join().unwrap());
            sums.into_iter().sum()
        })
    })
}

fn two_to_two_by_ones<Q: Queue>(items: u64) -> f64 {
    two_to_two::<Q>(items, |queue| queue.pop().map_or((0, 0), |item| (1, item)))
}

fn two_to_two_by_32<Q: Queue>(items: u64) -> f64 {
    two_to_two::<Q>(items, Q::pop_some)
}

fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(default)
}

type Run = fn(u64) -> f64;

fn main() {
    let (rounds, items) = (setting("ROUNDS", 9), setting("ITEMS", 200_000));
    let names = ["ours", "crossbeam", "concurrent-queue", "Mutex<VecDeque>"];
    macro_rules! of_each {
        ($row:ident) => {
            [
                $row::<ValueInjector<u64>> as Run,
                $row::<crossbeam_deque::Injector<u64>>,
                $row::<ConcurrentQueue<u64>>,
                $row::<Mutex<VecDeque<u64>>>,
            ]
        };
    }
    let rows = [
        ("thousand", of_each!(thousand)),
        ("one to one", of_each!(one_to_one_by_ones)),
        ("by 32", of_each!(one_to_one_by_32)),
        ("two to two", of_each!(two_to_two_by_ones)),
        ("two by 32", of_each!(two_to_two_by_32)),
    ];
    println!("{:12} {names:?}", "ns an item");
    for (name, runs) in rows {
        let mut samples = [const { Vec::new() }; 4];
        for round in 0..rounds as usize {
            for turn in 0..runs.len() {
                let which = (round + turn) % runs.len();
                samples[which].push(runs[which](items));
            }
        }
        let medians = samples.map(|mut of_one| {
            of_one.sort_by(f64::total_cmp);
            format!("{:.1}", of_one[of_one.len() / 2])
        });
        println!("{name:12} {medians:?}");
    }
}
