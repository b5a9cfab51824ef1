//! The functions that sleep and yield, and the older ones that tell the date.
//!
//! std's `sleep` and `yield_now` call them, so a simulated thread that sleeps in std waits in the
//! virtual time.
use super::{
    Call, answer,
    functions::{functions, next},
};
use crate::{net::Done, system};
use libc::{c_int, c_uint, c_void, clockid_t, time_t, timespec, timeval};
use std::{hint::black_box, time::Duration};

/// Sleeps. The threads of a run get no signals, so no sleep ends early.
fn wait(time: Duration) -> Option<Done<i64>> {
    Call::look(|call| {
        call.world.sleep(time);
        Ok(0)
    })
}

/// Returns the time of a sleep. The system has an error for one that is null, or no time.
///
/// # Safety
/// The limit is null, or valid for a read.
unsafe fn time_of(limit: *const timespec) -> Option<Duration> {
    // SAFETY: the caller's.
    let limit = unsafe { limit.as_ref() }?;
    let nanos = u32::try_from(limit.tv_nsec).ok();
    let nanos = nanos.filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Duration::new(limit.tv_sec.try_into().ok()?, nanos))
}

/// The function `clock_nanosleep`, which returns an error as a number.
///
/// # Safety
/// The limit is null, or valid for a read.
unsafe fn sleep_by(clock: clockid_t, flags: c_int, limit: *const timespec) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    let limit = unsafe { time_of(limit) }?;
    match flags & libc::TIMER_ABSTIME {
        0 => wait(limit),
        _ => wait(limit.saturating_sub(system::now(clock))),
    }
}

/// The function `gettimeofday`.
///
/// # Safety
/// The pointer is null, or valid for a write.
unsafe fn time_of_day(to: *mut timeval) -> Option<Done<i64>> {
    let date = super::date_of_current()?;
    if !to.is_null() {
        let time = timeval {
            tv_sec: date.as_secs() as time_t,
            tv_usec: date.subsec_micros().into(),
        };
        // SAFETY: the caller's.
        unsafe { to.write(time) };
    }
    Some(Ok(0))
}

/// The function `time`.
///
/// # Safety
/// The pointer is null, or valid for a write.
unsafe fn seconds(to: *mut time_t) -> Option<Done<i64>> {
    let seconds = super::date_of_current()?.as_secs() as time_t;
    if !to.is_null() {
        // SAFETY: the caller's.
        unsafe { to.write(seconds) };
    }
    Some(Ok(seconds))
}

functions! {
    fn nanosleep(limit: *const timespec, left: *mut timespec) -> c_int {
        // SAFETY: the caller's.
        unsafe { time_of(limit) }.and_then(wait)
    }
    fn clock_nanosleep(
        clock: clockid_t, flags: c_int, limit: *const timespec, left: *mut timespec
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { sleep_by(clock, flags, limit) }
    }
    fn usleep(micros: c_uint) -> c_int {
        wait(Duration::from_micros(micros.into()))
    }
    // It returns the seconds that are left: none.
    fn sleep(seconds: c_uint) -> c_uint {
        wait(Duration::from_secs(seconds.into()))
    }
    fn sched_yield() -> c_int {
        Call::look(|call| {
            call.world.give_way();
            Ok(0)
        })
    }
    fn gettimeofday(to: *mut timeval, zone: *mut c_void) -> c_int {
        // SAFETY: the caller's.
        unsafe { time_of_day(to) }
    }
    fn time(to: *mut time_t) -> time_t {
        // SAFETY: the caller's.
        unsafe { seconds(to) }
    }
}
