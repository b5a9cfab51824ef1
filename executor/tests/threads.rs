//! Stress test of a runtime of two, 16 or 64 workers, with operations of all kinds at the same
//! time.
//!
//! It spawns and wakes from outside and from tasks, aborts, panics, blocks, and ends the runtime in
//! the middle. Every future is dropped exactly once. It runs before it is dropped, unless an abort,
//! a panic or the runtime's end has come first.
//!
//! `SELVEDGE_ITEMS=100000000` makes it a long run. `SELVEDGE_SEED` changes the mix of operations.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use coop_budget::consume as consume_budget;
use futures::task::AtomicWaker;
use selvedge_executor::{Builder, Handle, block_in_place, spawn, spawn_detached, yield_now};
use std::{
    future::{Future, pending, poll_fn},
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    ops::Range,
    panic::resume_unwind,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::Poll,
    thread,
    time::Duration,
};

/// Number of futures per runtime.
const GENERATION: u64 = 200_000;

/// Approximate number of futures that are alive at a time.
const ALIVE: u64 = 20_000;

fn hash(item: u64) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(item)
}

/// The futures that were dropped: their count, the sum of their numbers, and the sum of the hashes
/// of their numbers. The hashes show it if one future was dropped twice and another was lost.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    count: AtomicU64,
    sum: AtomicU64,
    hashes: AtomicU64,
}

#[derive(Default)]
struct Books {
    dropped: [Shard; 16],
    /// Number of futures that were dropped without a run, although nothing had ended them.
    lost: AtomicU64,
    /// Whether the runtime may end futures at any time.
    ending: AtomicBool,
}

impl Books {
    fn sum(&self, field: fn(&Shard) -> &AtomicU64) -> u64 {
        let fields = self.dropped.iter().map(|shard| field(shard).load(SeqCst));
        fields.fold(0, u64::wrapping_add)
    }

    fn dropped(&self) -> u64 {
        self.sum(|shard| &shard.count)
    }
}

/// Token that each future holds, and that records its drop.
struct Item {
    number: u64,
    books: &'static Books,
    /// Whether the future has run, or may be ended before it runs.
    done: bool,
}

impl Item {
    fn run(mut self) -> u64 {
        self.done = true;
        self.number
    }

    fn excused(mut self) -> Self {
        self.done = true;
        self
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        let Self { number, books, .. } = *self;
        if !self.done && !books.ending.load(SeqCst) {
            books.lost.fetch_add(1, SeqCst);
        }
        let shard = &books.dropped[number as usize % 16];
        shard.sum.fetch_add(number, Relaxed);
        shard.hashes.fetch_add(hash(number), Relaxed);
        shard.count.fetch_add(1, SeqCst);
    }
}

/// Random numbers, by Steele, Lea and Flood's SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % sides
    }
}

/// Gate for which a task waits.
#[derive(Default)]
struct Gate {
    open: AtomicBool,
    waker: AtomicWaker,
}

impl Gate {
    fn open(&self) {
        self.open.store(true, SeqCst);
        self.waker.wake();
    }

    async fn wait(&self) {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if self.open.load(SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// Opens a gate when this value is dropped, also by a task that never ran. So no task waits forever
/// for a task that was refused.
struct Opens(Arc<Gate>);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.open();
    }
}

async fn short(item: Item, yields: u64) -> u64 {
    for _ in 0..yields {
        yield_now().await;
    }
    item.run()
}

/// Yields, by `yield_now` or by an exhausted budget, and then blocks in place `times` times in the
/// same poll. At the end of that poll another thread may have this worker's core. Or this thread
/// has the core back: another thread took the core, and its task then blocked in place, too.
async fn yields_and_blocks(item: Item, times: u64, by_yield: bool) {
    let mut gives_way = pin!(async {
        if by_yield {
            yield_now().await;
        } else {
            for _ in 0..200 {
                consume_budget().await;
            }
        }
    });
    let mut first = true;
    poll_fn(|cx| {
        let polled = gives_way.as_mut().poll(cx);
        if std::mem::take(&mut first) {
            assert!(polled.is_pending(), "a turn's budget is less");
            for _ in 0..times {
                block_in_place(thread::yield_now);
            }
        }
        polled
    })
    .await;
    item.run();
}

/// Spawns some items in one of many ways.
fn submit(handle: &Handle, dice: &mut Dice, items: Vec<Item>) {
    let yields = dice.roll(4).saturating_sub(1);
    match dice.roll(17) {
        0..=4 => {
            for item in items {
                handle.spawn_detached(short(item, yields));
            }
        }
        5..=8 => handle.spawn_detached(async move {
            for item in items {
                spawn_detached(short(item, yields));
            }
        }),
        9 => handle.spawn_detached(async move {
            for item in items {
                let number = item.number;
                match spawn(short(item, yields)).await {
                    Ok(output) => assert_eq!(output, number),
                    Err(error) => assert!(error.is_cancelled()),
                }
            }
        }),
        10 => {
            for item in items {
                let item = item.excused();
                let task = handle.spawn(async move {
                    let _item = item;
                    pending::<()>().await;
                });
                task.abort();
            }
        }
        11 => {
            for item in items {
                let item = item.excused();
                let task = handle.spawn(async move {
                    let _item = item;
                    resume_unwind(Box::new("a panic without a message"));
                });
                handle.spawn_detached(async move {
                    let ended: Result<(), _> = task.await;
                    let error = ended.unwrap_err();
                    assert!(error.is_panic() || error.is_cancelled());
                });
            }
        }
        12 => {
            let (few, items) = split(items, 4);
            for item in few {
                drop(handle.spawn_blocking(move || item.run()));
            }
            handle.spawn_detached(async move {
                for item in items {
                    spawn_detached(short(item, 0));
                }
            });
        }
        13 => handle.spawn_detached(async move {
            let (few, items) = split(items, 16);
            for item in items {
                spawn_detached(short(item, yields));
            }
            block_in_place(|| {
                for item in few {
                    item.run();
                }
            });
            yield_now().await;
        }),
        14 => {
            let (few, items) = split(items, 8);
            for item in few {
                handle.spawn_detached(yields_and_blocks(item, 1 + yields, dice.roll(2) == 0));
            }
            for item in items {
                handle.spawn_detached(short(item, yields));
            }
        }
        // Each task waits for the previous one, and the first for this thread.
        15 => {
            let first = Arc::new(Gate::default());
            let mut before = first.clone();
            for item in items {
                let next = Arc::new(Gate::default());
                let opens = Opens(next.clone());
                let gate = std::mem::replace(&mut before, next);
                handle.spawn_detached(async move {
                    gate.wait().await;
                    item.run();
                    drop(opens);
                });
            }
            first.open();
        }
        _ => {
            for item in items {
                let gate = Arc::new(Gate::default());
                let opens = Opens(gate.clone());
                handle.spawn_detached(async move {
                    gate.wait().await;
                    item.run();
                });
                handle.spawn_detached(async move { drop(opens) });
            }
        }
    }
}

fn split(mut items: Vec<Item>, at: usize) -> (Vec<Item>, Vec<Item>) {
    let rest = items.split_off(at.min(items.len()));
    (items, rest)
}

/// Runs one runtime, on which three threads spawn a future for each of `numbers`. The runtime ends
/// when all futures have run, or before that.
fn generation(books: &'static Books, dice: &mut Dice, numbers: Range<u64>) {
    let begun = books.dropped();
    let (first, total) = (numbers.start, numbers.end - numbers.start);
    let in_between = dice.roll(2) == 0;
    books.ending.store(in_between, SeqCst);
    // With 64 workers there are four shards of the injector.
    let workers = [2, 2, 16, 64][dice.roll(4) as usize];
    let runtime = Builder::new().workers(workers).build().unwrap();
    let next = AtomicU64::new(0);
    let end_at = dice.roll(total);
    thread::scope(|scope| {
        for _ in 0..3 {
            let (handle, next) = (runtime.handle().clone(), &next);
            let mut dice = Dice(dice.roll(u64::MAX));
            scope.spawn(move || {
                loop {
                    let some = 1 + dice.roll(64);
                    let from = next.fetch_add(some, SeqCst).min(total);
                    let to = (from + some).min(total);
                    if from == to {
                        return;
                    }
                    while begun + from > books.dropped() + ALIVE {
                        thread::yield_now();
                    }
                    let items = (first + from..first + to).map(|number| Item {
                        number,
                        books,
                        done: false,
                    });
                    submit(&handle, &mut dice, items.collect());
                }
            });
        }
        if in_between {
            while next.load(SeqCst) < end_at {
                thread::yield_now();
            }
            if dice.roll(2) == 0 {
                drop(runtime);
            } else {
                runtime.shutdown_background();
            }
        } else {
            while books.dropped() - begun < total {
                thread::sleep(Duration::from_micros(100));
            }
            drop(runtime);
        }
    });
    // The tasks of a shutdown in the background may end a little later.
    while books.dropped() - begun < total {
        thread::sleep(Duration::from_micros(100));
    }
    assert_eq!(books.dropped() - begun, total);
    assert_eq!(books.lost.load(SeqCst), 0, "a future was dropped, not run");
}

/// Ends the process if no future was dropped for a minute: then a future is lost.
fn watch(books: &'static Books, over: &'static AtomicBool) {
    let (mut last, mut quiet) = (0, 0);
    while !over.load(SeqCst) {
        thread::sleep(Duration::from_millis(100));
        let now = books.dropped();
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
        if quiet > 600 {
            eprintln!("nothing has happened for a minute after {now} futures");
            std::process::abort();
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.map_or(otherwise, |n| n.parse().expect("SELVEDGE_... is a number"))
}

#[test]
fn mixed_load_drops_each_future_once_and_runs_it() {
    let items = number("SELVEDGE_ITEMS", 300_000);
    let mut dice = Dice(number("SELVEDGE_SEED", 1));
    static KEPT: OnceLock<(Books, AtomicBool)> = OnceLock::new();
    let (books, over) = KEPT.get_or_init(Default::default);
    let watch = thread::spawn(move || watch(books, over));
    let mut from = 0;
    while from < items {
        let to = (from + GENERATION).min(items);
        generation(books, &mut dice, from..to);
        from = to;
    }
    over.store(true, SeqCst);
    watch.join().unwrap();
    assert_eq!(books.dropped(), items);
    let sum = (0..items).fold(0, u64::wrapping_add);
    assert_eq!(books.sum(|shard| &shard.sum), sum);
    let hashes = (0..items).map(hash).fold(0, u64::wrapping_add);
    assert_eq!(books.sum(|shard| &shard.hashes), hashes);
}
