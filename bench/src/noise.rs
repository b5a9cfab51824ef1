//! What else the machine did during a sample, and where its processors were.
//!
//! Virtual processors move: a cache line's round trip between two of them is some 60 ns at one time and 450 at
//! another, and every contended figure doubles with it. So each sample says how far apart they were, before and after.
//! And the machine's own count of busy time, less what this process used, is what others took.
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

/// A stretch of time that is being measured.
pub(crate) struct Window {
    begun: Instant,
    cpu: Duration,
    machine: Option<Duration>,
}

/// What was used in a [`Window`].
pub(crate) struct Spent {
    pub(crate) cpu: Duration,
    /// The part of the machine that others had.
    pub(crate) others: Option<f64>,
}

impl Window {
    pub(crate) fn open() -> Self {
        let (machine, cpu) = (machine_time(), cpu_time());
        Self {
            begun: Instant::now(),
            cpu,
            machine,
        }
    }

    pub(crate) fn close(self) -> Spent {
        let wall = self.begun.elapsed();
        let cpu = cpu_time() - self.cpu;
        let others = self.machine.zip(machine_time()).map(|(before, after)| {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            let others = (after - before).saturating_sub(cpu);
            others.as_secs_f64() / (wall.as_secs_f64() * processors as f64)
        });
        Spent { cpu, others }
    }
}

/// The time for which the machine's processors were busy or taken away by its host, in ticks of a hundredth of a second.
fn machine_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    busy_ticks(&stat).map(|ticks| Duration::from_millis(10 * ticks))
}

/// All that the first line of `/proc/stat` counts but idle and iowait; a guest's time is in `user` already.
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

/// The processor time of this process, user and system.
fn cpu_time() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a `rusage`, which the call fills.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    assert_eq!(failed, 0, "getrusage takes RUSAGE_SELF");
    // SAFETY: zeroed, and filled by the call; any bytes are a `rusage`.
    let usage = unsafe { usage.assume_init() };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1_000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Bytes of memory that this process has, not only asked for.
pub(crate) fn resident() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: it has no premises.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}

/// How long to pass the line.
const BOUNCE: Duration = Duration::from_millis(2);

/// How long at most, when others hold a processor.
const BOUNCE_LIMIT: Duration = Duration::from_millis(50);

/// Stretches enough to tell.
const STRETCHES: usize = 8;

/// Trips between two looks at the clock.
const TRIPS: u32 = 64;

/// Nanoseconds of a cache line's round trip between the first two processors that this process may use; `None` when there
/// are no two, or threads can't be tied to them. The lower quartile of short stretches, as one in which either
/// thread was set aside says nothing.
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

/// A line of its own: odd is a question, the even number after it the answer, `END` the end.
#[repr(align(128))]
struct Line(AtomicU32);

const END: u32 = u32::MAX;

impl Line {
    fn ask(&self) -> Vec<Duration> {
        let begun = Instant::now();
        let (mut stretches, mut question) = (Vec::new(), 1);
        loop {
            let elapsed = begun.elapsed();
            let enough = elapsed >= BOUNCE && stretches.len() >= STRETCHES;
            if enough || elapsed >= BOUNCE_LIMIT {
                break;
            }
            let stretch = Instant::now();
            for _ in 0..TRIPS {
                // Ordering: the load in `answer`.
                self.0.store(question, Release);
                // Ordering: the store in `answer`.
                while self.0.load(Acquire) == question {
                    spin_loop();
                }
                question += 2;
            }
            stretches.push(stretch.elapsed());
        }
        // Ordering: the load in `answer`.
        self.0.store(END, Release);
        stretches
    }

    fn answer(&self) {
        loop {
            // Ordering: the stores in `ask`.
            match self.0.load(Acquire) {
                END => return,
                question if question % 2 == 1 => {
                    // Ordering: the load in `ask`, which has stored nothing since its question.
                    self.0.store(question + 1, Release);
                }
                _ => spin_loop(),
            }
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn processors() -> Option<[usize; 2]> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the pointer is to `size` bytes, which the call fills.
    let failed = unsafe { libc::sched_getaffinity(0, size, set.as_mut_ptr()) };
    // SAFETY: zeroed; any bytes are a `cpu_set_t`.
    let set = unsafe { set.assume_init() };
    let mut usable = (0..libc::CPU_SETSIZE as usize).filter(|&processor| {
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_ISSET(processor, &set) }
    });
    let two = [usable.next()?, usable.next()?];
    (failed == 0).then_some(two)
}

/// Ties this thread to a processor.
#[cfg(target_os = "linux")]
pub(crate) fn pin(processor: usize) -> bool {
    // SAFETY: any bytes are a `cpu_set_t`; none set is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number was found in such a set.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the pointer is to as many bytes as the call is told, and 0 names this thread.
    let failed = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    failed == 0
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn processors() -> Option<[usize; 2]> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_: usize) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_all_but_idle_and_iowait() {
        let stat = "cpu  1 2 3 1000 2000 4 5 6 50 60\ncpu0 1 2 3\n";
        assert_eq!(busy_ticks(stat), Some(1 + 2 + 3 + 4 + 5 + 6));
        assert_eq!(busy_ticks("cpu  1 2 3 4\n"), None);
        assert_eq!(busy_ticks(""), None);
    }

    #[test]
    fn what_this_process_uses_is_no_disturbance_by_others() {
        let window = Window::open();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(30) {
            spin_loop();
        }
        let spent = window.close();
        assert!(spent.cpu > Duration::ZERO);
    }

    #[test]
    fn a_line_takes_some_time_to_pass_between_two_processors() {
        if processors().is_some() {
            assert!(round_trip().is_some_and(|ns| ns > 1.0));
        }
    }
}
