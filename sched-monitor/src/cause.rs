//! The cause for which a thread's poll lasts, as far as the system reports it to another thread.
//!
//! On Linux this reads files of `/proc/self/task/ID`:
//!
//! | file | holds |
//! |---|---|
//! | `stat` | the thread's state |
//! | `schedstat` | the time that the thread waited for a CPU, if the wait has ended, and its CPU time |
//! | `status` | how often the thread has blocked |
//! | `syscall` | the number of the system call in which the thread blocks |
//! | `wchan` | the function of the kernel in which the thread waits |
//!
//! On other systems nothing is known.
use std::{
    fmt,
    time::{Duration, Instant},
};

/// The reason why a poll lasts long.
///
/// ```
/// use sched_monitor::Cause;
///
/// let cause = Cause::Blocked { call: Some("read".into()), channel: None };
/// assert_eq!(cause.to_string(), "blocked in read");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The thread computes.
    OnCpu,
    /// The thread could run, but waited for a CPU most of the time.
    Runnable,
    /// The thread blocks in the kernel.
    Blocked {
        /// The name of the system call, or its number if it is a rare one. `None` in a page fault,
        /// or if the system does not report the call.
        call: Option<String>,
        /// The function of the kernel in which the thread waits, if the system reports it.
        channel: Option<String>,
    },
    /// The system does not report the thread's state, or what it reports covers less than half of
    /// the time in question.
    Unknown,
}

/// The time that a thread had a CPU, and the time that it waited for one.
///
/// ```
/// let times = sched_monitor::Times::default();
/// assert!(times.on_cpu.is_zero() && times.runnable.is_zero());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time on a CPU.
    pub on_cpu: Duration,
    /// Time in which the thread could run but had no CPU.
    pub runnable: Duration,
}

/// A thread's times at one moment, to be compared with those at a later one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    at: Instant,
    times: Times,
    /// How often the thread has blocked so far. `None` if the system does not report it.
    blocks: Option<u64>,
}

impl Reading {
    pub(crate) fn of(thread: u32) -> Option<Self> {
        Some(Self {
            at: Instant::now(),
            times: Times::of(thread)?,
            blocks: read(thread, "status").as_deref().and_then(blocks),
        })
    }

    /// Returns the times from `before` to this reading that the system has counted.
    pub(crate) fn counted_since(self, before: Self) -> Times {
        self.times.since(before.times)
    }

    /// Returns the times from `before` to this reading of a thread that now runs, and whether they
    /// cover most of that time.
    pub(crate) fn since(self, before: Self) -> (Times, bool) {
        let span = self.at.saturating_duration_since(before.at);
        let mut times = self.counted_since(before);
        if self.blocks.is_some() && self.blocks == before.blocks {
            // The thread has not blocked. So it waited for a CPU whenever it had none, also if that
            // wait has not ended and so does not count yet.
            times.runnable = times.runnable.max(span.saturating_sub(times.on_cpu));
        }
        (times, times.on_cpu + times.runnable >= span / 2)
    }
}

/// Reads the CPU clock of a thread of this process. `schedstat` may lag behind it by a tick, and
/// counts nothing in a kernel without the statistics.
#[cfg(target_os = "linux")]
fn cpu_time(thread: u32) -> Option<Duration> {
    /// The bits of a clock's number for one thread, and for its time on a CPU.
    const OF_A_THREAD: libc::clockid_t = 6;
    let clock = (!libc::clockid_t::try_from(thread).ok()?) << 3 | OF_A_THREAD;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for a write. The system refuses a clock that there is not.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, nanos))
}

#[cfg(not(target_os = "linux"))]
fn cpu_time(_: u32) -> Option<Duration> {
    None
}

/// Returns the count of blocks in the file `status`.
fn blocks(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    count.trim().parse().ok()
}

impl Times {
    /// Reads the times of a thread of this process, since its start.
    ///
    /// ```
    /// if let Some(times) = sched_monitor::thread_id().and_then(sched_monitor::Times::of) {
    ///     println!("{:?} on a CPU", times.on_cpu);
    /// }
    /// ```
    pub fn of(thread: u32) -> Option<Self> {
        let counted = Self::parse(&read(thread, "schedstat")?)?;
        Some(Self {
            on_cpu: cpu_time(thread).unwrap_or(counted.on_cpu),
            ..counted
        })
    }

    fn parse(schedstat: &str) -> Option<Self> {
        let mut words = schedstat.split_ascii_whitespace();
        let mut next = || Some(Duration::from_nanos(words.next()?.parse().ok()?));
        Some(Self {
            on_cpu: next()?,
            runnable: next()?,
        })
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            on_cpu: self.on_cpu.saturating_sub(before.on_cpu),
            runnable: self.runnable.saturating_sub(before.runnable),
        }
    }
}

impl Cause {
    /// Finds out what a thread of this process does. `times` are the thread's times during the poll
    /// in question. Without them, it is not known whether a thread that does not block computes or
    /// waits for a CPU.
    ///
    /// Costs one read of a small file if the thread computes, and three if it blocks.
    ///
    /// ```
    /// use sched_monitor::{Cause, Times, thread_id};
    ///
    /// let times = thread_id().and_then(Times::of);
    /// let cause = thread_id().map(|id| Cause::of(id, times));
    /// assert!(!matches!(cause, Some(Cause::Blocked { .. })));
    /// ```
    pub fn of(thread: u32, times: Option<Times>) -> Self {
        let stat = read(thread, "stat");
        match stat.as_deref().and_then(state) {
            Some('R') => Self::running(times),
            Some('S' | 'D' | 'T' | 't') => {
                let call = read(thread, "syscall");
                let channel = read(thread, "wchan").filter(|name| !matches!(&**name, "" | "0"));
                match call.as_deref().and_then(system_call) {
                    // The thread runs again by now.
                    Some(Call::Running) => Self::running(times),
                    Some(Call::In(call)) => Self::Blocked {
                        call: Some(call),
                        channel,
                    },
                    Some(Call::None) | None => Self::Blocked {
                        call: None,
                        channel,
                    },
                }
            }
            _ => Self::Unknown,
        }
    }

    fn running(times: Option<Times>) -> Self {
        match times {
            Some(times) if times.runnable > times.on_cpu => Self::Runnable,
            Some(times) if times.on_cpu > Duration::ZERO => Self::OnCpu,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnCpu => f.write_str("on CPU"),
            Self::Runnable => f.write_str("runnable, but waiting for a CPU"),
            Self::Blocked { call, channel } => {
                f.write_str("blocked")?;
                if let Some(call) = call {
                    write!(f, " in {call}")?;
                }
                if let Some(channel) = channel {
                    write!(f, " (kernel: {channel})")?;
                }
                Ok(())
            }
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// Returns the system's id of the calling thread, which [`Cause::of`] takes. Returns `None` on
/// systems other than Linux, of which `Cause::of` knows nothing.
///
/// ```
/// println!("{:?}", sched_monitor::thread_id());
/// ```
pub fn thread_id() -> Option<u32> {
    if sync_shim::sim::is_simulated() {
        return None;
    }
    #[cfg(target_os = "linux")]
    {
        // SAFETY: this call has no premise.
        let id = unsafe { libc::syscall(libc::SYS_gettid) };
        u32::try_from(id).ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        None
    }
}

#[cfg(target_os = "linux")]
fn read(thread: u32, file: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(not(target_os = "linux"))]
fn read(_: u32, _: &str) -> Option<String> {
    None
}

/// Returns the state in the file `stat`: the letter after the thread's name, which may contain
/// anything.
fn state(stat: &str) -> Option<char> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.trim_start().chars().next()
}

/// The contents of the file `syscall`.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    Running,
    /// The thread blocks outside of a system call.
    None,
    In(String),
}

fn system_call(syscall: &str) -> Option<Call> {
    let first = syscall.split_ascii_whitespace().next()?;
    if first == "running" {
        return Some(Call::Running);
    }
    Some(match first.parse::<i64>().ok()? {
        ..0 => Call::None,
        number => {
            Call::In(name(number).map_or_else(|| format!("system call {number}"), Into::into))
        }
    })
}

#[cfg(target_os = "linux")]
fn name(number: i64) -> Option<&'static str> {
    /// Makes a table of the names and numbers of calls. An architecture need not have all of them:
    /// 32-bit x86 has no `accept`. The inner block does not find the number that `libc` lacks, and
    /// so takes the one of the outer block.
    macro_rules! names {
        ($($name:literal = $number:ident,)*) => {{
            /// A number that no call has, as it is negative.
            #[allow(dead_code, non_upper_case_globals)]
            mod absent {
                $(pub(super) const $number: i64 = -1;)*
            }
            #[allow(unused_imports)]
            use absent::*;
            {
                use libc::*;
                &[$(($name, $number as i64),)*]
            }
        }};
    }
    /// The calls that block most often.
    const NAMES: &[(&str, i64)] = names! {
        "read" = SYS_read,
        "write" = SYS_write,
        "readv" = SYS_readv,
        "writev" = SYS_writev,
        "pread64" = SYS_pread64,
        "pwrite64" = SYS_pwrite64,
        "open" = SYS_open,
        "openat" = SYS_openat,
        "close" = SYS_close,
        "fsync" = SYS_fsync,
        "fdatasync" = SYS_fdatasync,
        "flock" = SYS_flock,
        "fcntl" = SYS_fcntl,
        "fcntl64" = SYS_fcntl64,
        "ioctl" = SYS_ioctl,
        "getdents64" = SYS_getdents64,
        "futex" = SYS_futex,
        "nanosleep" = SYS_nanosleep,
        "clock_nanosleep" = SYS_clock_nanosleep,
        "pause" = SYS_pause,
        "poll" = SYS_poll,
        "ppoll" = SYS_ppoll,
        "pselect6" = SYS_pselect6,
        "epoll_wait" = SYS_epoll_wait,
        "epoll_pwait" = SYS_epoll_pwait,
        "socketcall" = SYS_socketcall,
        "connect" = SYS_connect,
        "accept" = SYS_accept,
        "accept4" = SYS_accept4,
        "recvfrom" = SYS_recvfrom,
        "recvmsg" = SYS_recvmsg,
        "sendto" = SYS_sendto,
        "sendmsg" = SYS_sendmsg,
        "wait4" = SYS_wait4,
        "waitid" = SYS_waitid,
        "sendfile" = SYS_sendfile,
        "sendfile64" = SYS_sendfile64,
        "splice" = SYS_splice,
        "mmap" = SYS_mmap,
        "mmap2" = SYS_mmap2,
        "munmap" = SYS_munmap,
        "madvise" = SYS_madvise,
        "sched_yield" = SYS_sched_yield,
    };
    /// The calls of 32-bit machines with 64-bit times. `libc` has not all of them, and their
    /// numbers are the same on all architectures.
    const TIME64: &[(&str, i64)] = &[
        ("clock_nanosleep_time64", 407),
        ("pselect6_time64", 413),
        ("ppoll_time64", 414),
        ("futex_time64", 422),
    ];
    let mut names = NAMES.iter().chain(TIME64);
    names
        .find(|(_, known)| *known == number)
        .map(|(name, _)| *name)
}

#[cfg(not(target_os = "linux"))]
fn name(_: i64) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::{Call, Cause, Reading, Times, blocks, state, system_call};
    use std::time::{Duration, Instant};

    #[test]
    fn state_follows_the_last_parenthesis() {
        assert_eq!(state("12 (a) b) (c) S 1 2"), Some('S'));
        assert_eq!(state("12 (tokio-rt) R 1"), Some('R'));
        assert_eq!(state("12"), None);
    }

    #[test]
    fn system_call_is_named_numbered_or_absent() {
        assert_eq!(system_call("running"), Some(Call::Running));
        assert_eq!(system_call("-1 0x7ff 0x40"), Some(Call::None));
        assert_eq!(
            system_call("99999 0x7"),
            Some(Call::In("system call 99999".into()))
        );
        assert_eq!(system_call(""), None);
        #[cfg(target_os = "linux")]
        assert_eq!(
            system_call(&format!("{} 0x3 0x7", libc::SYS_read)),
            Some(Call::In("read".into()))
        );
    }

    /// Fails if the table takes a number of this architecture for one that is absent.
    #[cfg(target_os = "linux")]
    #[test]
    fn calls_of_this_architecture_are_named() {
        let calls = [
            (libc::SYS_accept4, "accept4"),
            (libc::SYS_futex, "futex"),
            (libc::SYS_epoll_pwait, "epoll_pwait"),
            #[cfg(target_arch = "x86")]
            (libc::SYS_socketcall, "socketcall"),
            #[cfg(target_pointer_width = "32")]
            (libc::SYS_mmap2, "mmap2"),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_accept, "accept"),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_epoll_wait, "epoll_wait"),
        ];
        for (number, name) in calls {
            let call = system_call(&format!("{number} 0x3"));
            assert_eq!(call, Some(Call::In(name.into())));
        }
    }

    #[test]
    fn times_are_the_first_two_numbers() {
        let times = Times::parse("1000 2000 7\n").unwrap();
        assert_eq!(times.on_cpu, Duration::from_nanos(1_000));
        assert_eq!(times.runnable, Duration::from_nanos(2_000));
        assert_eq!(Times::parse("1000"), None);
    }

    #[test]
    fn blocks_are_the_voluntary_switches() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3";
        assert_eq!(blocks(status), Some(12));
        assert_eq!(blocks("Name:\tvoluntary_ctxt_switches:\t12"), None);
    }

    /// Judges a thread that can run, by two readings that are 12 ms apart: its milliseconds on a
    /// CPU and those of its ended waits, and whether it has blocked between the readings.
    fn judge(on_cpu: u64, runnable: u64, has_blocked: Option<bool>) -> Cause {
        let at = Instant::now();
        let reading = |n: u64| Reading {
            at: at + Duration::from_millis(12 * n),
            times: Times {
                on_cpu: Duration::from_millis(5 + on_cpu * n),
                runnable: Duration::from_millis(7 + runnable * n),
            },
            blocks: has_blocked.map(|has_blocked| 3 + n * u64::from(has_blocked)),
        };
        let (times, is_covered) = reading(1).since(reading(0));
        Cause::running(Some(times).filter(|_| is_covered))
    }

    /// Fails if a wait that has not ended counts as time on a CPU or as no time, or if a thread
    /// that blocked most of the time, and runs by now, is said to compute.
    #[test]
    fn thread_that_can_run_is_judged_by_the_time_that_is_known() {
        assert_eq!(judge(11, 0, Some(false)), Cause::OnCpu);
        assert_eq!(judge(0, 0, Some(false)), Cause::Runnable);
        assert_eq!(judge(2, 1, Some(false)), Cause::Runnable);
        assert_eq!(judge(1, 0, Some(true)), Cause::Unknown);
        assert_eq!(judge(7, 1, Some(true)), Cause::OnCpu);
        assert_eq!(judge(1, 8, Some(true)), Cause::Runnable);
        assert_eq!(judge(0, 0, None), Cause::Unknown);
        assert_eq!(Cause::running(None), Cause::Unknown);
    }
}
