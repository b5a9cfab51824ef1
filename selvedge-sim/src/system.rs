//! The values that std asks the system for: the clocks, and the keys of its hash maps.
//!
//! On 64-bit Linux with glibc this file defines the functions `clock_gettime` and `getrandom`,
//! which std calls. The linker prefers them to those of the shared library.
//!
//! 1. A thread that runs a fiber reads the virtual time. The clocks that count from the start of
//!    the system go on from the process's [`epoch`], and the date is always the same at the begin
//!    of a run.
//! 2. The thread of a run draws random bytes from the seed ([`begin`]). std reads the keys of a
//!    thread's first hash map by this function, and counts them up for the others: so each run,
//!    which has a thread of its own, has the same keys.
//! 3. All other threads get what the system says.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
pub(crate) use linux::{begin, date, epoch, now, set_ahead};

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
pub(crate) use elsewhere::{begin, epoch, set_ahead};

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
mod elsewhere {
    use std::{sync::OnceLock, time::Instant};

    pub(crate) fn begin(_: u64) {}

    pub(crate) fn set_ahead(_: std::time::Duration) {}

    pub(crate) fn epoch() -> Instant {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        *EPOCH.get_or_init(Instant::now)
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod linux {
    use crate::choice::Random;
    use libc::{c_int, c_uint, c_void, clockid_t, size_t, ssize_t, timespec};
    use std::{
        cell::{Cell, RefCell},
        hint::black_box,
        sync::OnceLock,
        time::{Duration, Instant},
    };

    /// The date at the begin of a run, in seconds since 1970: 2020-01-01.
    const DATE: i64 = 1_577_836_800;

    std::thread_local! {
        /// The random bytes of this thread, if it is that of a run.
        static RANDOM: RefCell<Option<Random>> = const { RefCell::new(None) };
        /// The time that the clocks of this thread show, while `epoch` reads one.
        static SHOWN: Cell<Option<Duration>> = const { Cell::new(None) };
        /// How far the date of this thread's host is ahead.
        static AHEAD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    /// Makes this thread that of a run: its random bytes come from the seed.
    pub(crate) fn begin(seed: u64) {
        // The references keep both functions in the program.
        black_box(clock_gettime as *const ());
        black_box(getrandom as *const ());
        RANDOM.set(Some(Random::new(!seed)));
    }

    /// Sets how far the date of the host is ahead whose thread runs now.
    pub(crate) fn set_ahead(time: Duration) {
        AHEAD.set(time);
    }

    /// Returns the date that the host shows whose thread runs, after so much of the run.
    pub(crate) fn date(since_epoch: Duration) -> Duration {
        let ahead = AHEAD.try_with(Cell::get).unwrap_or_default();
        Duration::from_secs(DATE as u64) + ahead + since_epoch
    }

    /// Returns the time of a clock, as the thread that calls this reads it.
    pub(crate) fn now(clock: clockid_t) -> Duration {
        let mut now = timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is valid.
        unsafe { clock_gettime(clock, &mut now) };
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    /// Returns the time at which each run begins, and its distance from the start of the system.
    fn epochs() -> (Instant, Duration) {
        static EPOCH: OnceLock<(Instant, Duration)> = OnceLock::new();
        *EPOCH.get_or_init(|| {
            let mut time = timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: the pointer is valid.
            unsafe { clock_of_system(libc::CLOCK_MONOTONIC, &mut time) };
            let since_start = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
            SHOWN.set(Some(since_start));
            let now = Instant::now();
            SHOWN.set(None);
            (now, since_start)
        })
    }

    /// Returns the time at which each run begins: one for the process.
    pub(crate) fn epoch() -> Instant {
        epochs().0
    }

    /// # Safety
    /// As for the function of libc.
    unsafe fn clock_of_system(clock: clockid_t, time: *mut timespec) -> c_int {
        // SAFETY: the caller's.
        unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int }
    }

    /// Returns what a clock shows to this thread, if that is not the system's time.
    fn shown(clock: clockid_t) -> Option<Duration> {
        if let Ok(Some(shown)) = SHOWN.try_with(Cell::get) {
            return Some(shown);
        }
        let since_epoch = sync_shim::sim::since_epoch()?;
        Some(match clock {
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
                date(since_epoch)
            }
            // A thread's processor time, and the process's, pass as the virtual time does.
            libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => since_epoch,
            libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_BOOTTIME => epochs().1 + since_epoch,
            // The clock of a certain process or device, or none: the system has the answer.
            _ => return None,
        })
    }

    /// The function of libc, for the threads of a simulation.
    ///
    /// # Safety
    /// As for the function of libc.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
        let Some(shown) = shown(clock) else {
            // SAFETY: the caller's.
            return unsafe { clock_of_system(clock, time) };
        };
        let shown = timespec {
            tv_sec: shown.as_secs() as libc::time_t,
            tv_nsec: shown.subsec_nanos().into(),
        };
        // SAFETY: the caller's pointer is valid.
        unsafe { time.write(shown) };
        0
    }

    /// The function of libc, for the threads of a simulation.
    ///
    /// # Safety
    /// As for the function of libc.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
        let fill = |random: &RefCell<Option<Random>>| {
            let mut random = random.try_borrow_mut().ok()?;
            let random = random.as_mut()?;
            for at in 0..length {
                let byte = random.next() as u8;
                // SAFETY: the caller's buffer has this length.
                let place = unsafe { buffer.cast::<u8>().add(at) };
                // SAFETY: as above.
                unsafe { place.write(byte) };
            }
            Some(length as ssize_t)
        };
        let filled = RANDOM.try_with(fill).ok().flatten();
        filled.unwrap_or_else(|| {
            // SAFETY: the caller's.
            unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) as ssize_t }
        })
    }
}
