//! The client: reads at a steady pace, and bursts of new entries.
use crate::store::{BASE, Store, TABLETS};
use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

/// The time from one read to the next.
const PACE: Duration = Duration::from_micros(200);
/// Number of keys that a read looks up.
const KEYS: u64 = 8;
/// The part of the workers' time that compaction takes.
const LOAD: f64 = 0.6;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The load, the same for each run.
pub struct Client {
    pub bursts: u32,
    pub period: Duration,
    /// The time of one compaction.
    pub work: Duration,
}

/// The result of one run.
pub struct Outcome {
    pub name: &'static str,
    /// The latencies of the reads, sorted, in milliseconds.
    pub latencies: Vec<f64>,
    pub merged: u64,
    /// The time from the start of the run to the end of the last compaction.
    pub seconds: f64,
}

impl Outcome {
    /// Returns the latency that the fraction `share` of the reads did not exceed.
    pub fn latency(&self, share: f64) -> f64 {
        let last = self.latencies.len() - 1;
        self.latencies[(last as f64 * share) as usize]
    }
}

impl Client {
    /// Measures one compaction of each tablet, and plans the bursts by the median of the times.
    pub fn new(seconds: f64, workers: usize) -> Self {
        let store = Store::new();
        let mut times: Vec<_> = (0..TABLETS)
            .map(|tablet| one_compaction(&store, tablet))
            .collect();
        times.sort();
        let work = times[times.len() / 2];
        let period = work.mul_f64(TABLETS as f64 / LOAD / workers as f64);
        Self {
            bursts: (seconds / period.as_secs_f64()).ceil() as u32,
            period,
            work,
        }
    }

    /// Runs the load on a scheduler. Four functions stand for that scheduler: `spawn_read` and
    /// `spawn_compaction` spawn a task. `rest` makes the future that a compaction awaits between
    /// two steps. `control` sets the shares of compaction for a given backlog.
    pub fn run(
        &self,
        name: &'static str,
        spawn_read: impl Fn(Task),
        spawn_compaction: impl Fn(Task),
        rest: fn() -> Task,
        control: impl Fn(usize),
    ) -> Outcome {
        let store = Arc::new(Store::new());
        let latencies = Arc::<Mutex<Vec<f64>>>::default();
        let compact = |tablet| {
            let store = store.clone();
            spawn_compaction(Box::pin(async move { store.compact(tablet, rest).await }));
        };
        let (begun, mut bursts, mut sent) = (Instant::now(), 0, 0);
        let seconds = loop {
            if bursts < self.bursts && begun.elapsed() >= self.period * bursts {
                bursts += 1;
                let idle = (0..TABLETS).filter(|tablet| store.flush(*tablet));
                idle.for_each(compact);
            }
            spawn_read(Box::pin(read(store.clone(), sent, latencies.clone())));
            sent += 1;
            if sent % 50 == 0 {
                let backlog = store.backlog();
                control(backlog);
                if backlog == 0 && bursts == self.bursts {
                    break begun.elapsed().as_secs_f64();
                }
            }
            thread::sleep(PACE);
        };
        while latencies.lock().unwrap().len() < sent as usize {
            thread::sleep(PACE);
        }
        let mut latencies = std::mem::take(&mut *latencies.lock().unwrap());
        latencies.sort_by(f64::total_cmp);
        Outcome {
            name,
            latencies,
            merged: store.merged.load(Relaxed),
            seconds,
        }
    }
}

/// Looks up `KEYS` keys, and records the time from the read's spawn to its end.
fn read(
    store: Arc<Store>,
    number: u64,
    latencies: Arc<Mutex<Vec<f64>>>,
) -> impl Future<Output = ()> + Send {
    let spawned = Instant::now();
    async move {
        for n in number * KEYS..(number + 1) * KEYS {
            let tablet = n as usize % TABLETS;
            let found = store.read(tablet, n * 7919 % BASE * 2);
            assert!(found.is_some(), "each even key is there");
        }
        let latency = spawned.elapsed().as_secs_f64() * 1e3;
        latencies.lock().unwrap().push(latency);
    }
}

/// The time that a compaction takes on this thread.
fn one_compaction(store: &Store, tablet: usize) -> Duration {
    store.flush(tablet);
    let mut compaction = pin!(store.compact(tablet, || std::future::ready(())));
    let begun = Instant::now();
    let polled = compaction
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Ready(()), "nothing makes it wait");
    begun.elapsed()
}
