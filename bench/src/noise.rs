//! The noise of a sample: how far apart the processors were, and how much processor time other
//! processes used.
//!
//! The host moves virtual processors from core to core. A cache line's round trip between two of
//! them takes about 60 ns at one time and 450 ns at another, and every contended figure doubles
//! with the longer one. So each sample measures that round trip before and after its workload. The
//! time that other processes used is the machine's own count of busy time, less the time of this
//! process.
use std::{
    fs,
    hint::spin_loop,
    mem::MaybeUninit,
    sync::atomic::{
        AtomicU32,
        Ordering::{Acquire, Release},
    },
    thread,
    time::{Duration, Instant},
};
use usage::Usage;

// The programs that include this file by its path have no other line for it.
#[path = "usage.rs"]
pub(crate) mod usage;

/// A span of time that is being measured.
pub(crate) struct Window {
    begun: Instant,
    cpu: Duration,
    machine: Option<Duration>,
}

/// The processor time used in a [`Window`].
pub(crate) struct Spent {
    pub(crate) cpu: Duration,
    /// The part of the machine's processor time that other processes used.
    pub(crate) others: Option<f64>,
}

impl Window {
    pub(crate) fn open() -> Self {
        let (machine, cpu) = (machine_time(), Usage::of_process().cpu);
        Self {
            begun: Instant::now(),
            cpu,
            machine,
        }
    }

    pub(crate) fn close(self) -> Spent {
        self.close_beside(Duration::ZERO)
    }

    /// Closes the window of a process whose client is another process, and used this time.
    pub(crate) fn close_beside(self, client: Duration) -> Spent {
        let wall = self.begun.elapsed();
        let cpu = Usage::of_process().cpu - self.cpu;
        let others = self.machine.zip(machine_time()).map(|(before, after)| {
            // All of the machine's: this thread may be kept on one of them.
            // SAFETY: `sysconf` has no preconditions.
            let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1);
            let others = (after - before).saturating_sub(cpu + client);
            others.as_secs_f64() / (wall.as_secs_f64() * processors as f64)
        });
        Spent { cpu, others }
    }
}

/// Returns the time for which the machine's processors were busy or taken away by the host. The
/// kernel counts that time in ticks of a hundredth of a second.
fn machine_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    busy_ticks(&stat).map(|ticks| Duration::from_millis(10 * ticks))
}

/// Adds the fields of the first line of `/proc/stat`, except idle, iowait and the times of guests.
/// The times of guests are already in `user` and `nice`.
fn busy_ticks(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = fields
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else {
        return None;
    };
    Some(user + nice + system + irq + softirq + steal)
}

/// Returns the resident memory of this process in bytes.
pub(crate) fn resident() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: `sysconf` has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}

/// The time for which the two threads of [`round_trip`] pass the line, if nothing disturbs them. A
/// build with debug assertions is for tests, which do not read the figure. It takes the least
/// number of stretches.
const BOUNCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 0 } else { 2 });

/// The most time for which the two threads pass the line, if other processes use a processor.
const BOUNCE_LIMIT: Duration = Duration::from_millis(50);

/// The least number of stretches. A *stretch* is `TRIPS` round trips between two readings of the
/// clock.
const STRETCHES: usize = 8;

/// Number of round trips in a stretch.
const TRIPS: u32 = 64;

/// Measures the nanoseconds of a cache line's round trip between the first two processors that this
/// process may use.
///
/// Returns the lower quartile of many stretches, because a stretch in which either thread was
/// descheduled says nothing. `None` if this process may use only one processor, or if threads
/// cannot be pinned.
pub(crate) fn round_trip() -> Option<f64> {
    let [here, there] = processors()?;
    let line = Line(AtomicU32::new(0));
    let mut stretches = thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let tied = pin(there);
            line.answer();
            tied
        });
        let asking = scope.spawn(|| {
            let tied = pin(here);
            let stretches = line.ask();
            tied.then_some(stretches)
        });
        let stretches = asking.join().expect("it doesn't panic");
        let tied = answering.join().expect("it doesn't panic");
        stretches.filter(|_| tied)
    })?;
    stretches.sort_unstable();
    let quartile = stretches[stretches.len() / 4];
    Some(quartile.as_nanos() as f64 / f64::from(TRIPS))
}

/// A word on a cache line of its own. An odd number is a question, and the even number after it is
/// the answer. `END` ends the answering thread.
#[repr(align(128))]
struct Line(AtomicU32);

const END: u32 = u32::MAX;

impl Line {
    fn ask(&self) -> Vec<Duration> {
        let begun = Instant::now();
        let (mut stretches, mut question) = (Vec::new(), 1);
        loop {
            let stretch = Instant::now();
            for _ in 0..TRIPS {
                // Ordering: Release pairs with the load in `answer`.
                self.0.store(question, Release);
                // Ordering: Acquire pairs with the store in `answer`.
                while self.0.load(Acquire) == question {
                    spin_loop();
                }
                question += 2;
            }
            stretches.push(stretch.elapsed());
            let elapsed = begun.elapsed();
            let enough = elapsed >= BOUNCE && stretches.len() >= STRETCHES;
            if enough || elapsed >= BOUNCE_LIMIT {
                break;
            }
        }
        // Ordering: Release pairs with the load in `answer`.
        self.0.store(END, Release);
        stretches
    }

    fn answer(&self) {
        loop {
            // Ordering: Acquire pairs with the stores in `ask`.
            match self.0.load(Acquire) {
                END => return,
                question if question % 2 == 1 => {
                    // Ordering: Release pairs with the load in `ask`. `ask` stores nothing until it
                    // has seen the answer, so this store overwrites only the question.
                    self.0.store(question + 1, Release);
                }
                _ => spin_loop(),
            }
        }
    }
}

/// Keeps this thread, and the threads that it spawns, on a processor. A drop gives this thread its
/// processors back.
#[cfg(target_os = "linux")]
pub(crate) struct Pin(libc::cpu_set_t);

#[cfg(target_os = "linux")]
impl Pin {
    pub(crate) fn new(processor: usize) -> Self {
        let (_, before) = usable();
        pin(processor);
        Self(before)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Pin {
    fn drop(&mut self) {
        // SAFETY: the pointer is valid for a read of as many bytes as the call is told.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &self.0) };
    }
}

/// Returns whether the kernel says where this thread may run, and these processors.
#[cfg(target_os = "linux")]
fn usable() -> (bool, libc::cpu_set_t) {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the pointer is valid for a write of `size` bytes.
    let failed = unsafe { libc::sched_getaffinity(0, size, set.as_mut_ptr()) };
    // SAFETY: the value was zeroed. Any bytes are a valid `cpu_set_t`.
    (failed == 0, unsafe { set.assume_init() })
}

#[cfg(target_os = "linux")]
pub(crate) fn processors() -> Option<[usize; 2]> {
    let (is_known, set) = usable();
    let mut usable = (0..libc::CPU_SETSIZE as usize).filter(|&processor| {
        // SAFETY: the number is below `CPU_SETSIZE`, the number of bits in the set.
        unsafe { libc::CPU_ISSET(processor, &set) }
    });
    let two = [usable.next()?, usable.next()?];
    is_known.then_some(two)
}

/// Pins this thread to a processor. Returns true on success.
pub(crate) fn pin(processor: usize) -> bool {
    pin_thread(0, processor)
}

/// Pins the thread with this id to a processor; id 0 means this thread. Returns true on success.
#[cfg(target_os = "linux")]
pub(crate) fn pin_thread(thread: i32, processor: usize) -> bool {
    // SAFETY: any bytes are a valid `cpu_set_t`. All zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `processor` is below `CPU_SETSIZE`, as `processors` found the number in such a set.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the pointer is valid for a read of as many bytes as the call is told.
    let failed = unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set) };
    failed == 0
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn processors() -> Option<[usize; 2]> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_thread(_: i32, _: usize) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_ticks_leave_out_idle_and_iowait() {
        let stat = "cpu  1 2 3 1000 2000 4 5 6 50 60\ncpu0 1 2 3\n";
        assert_eq!(busy_ticks(stat), Some(1 + 2 + 3 + 4 + 5 + 6));
        assert_eq!(busy_ticks("cpu  1 2 3 4\n"), None);
        assert_eq!(busy_ticks(""), None);
    }

    #[test]
    fn window_of_a_busy_process_counts_its_time() {
        let window = Window::open();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(30) {
            spin_loop();
        }
        let spent = window.close();
        assert!(spent.cpu > Duration::ZERO);
    }

    #[test]
    fn round_trip_between_two_processors_takes_time() {
        if processors().is_some() {
            assert!(round_trip().is_some_and(|ns| ns > 1.0));
        }
    }
}
