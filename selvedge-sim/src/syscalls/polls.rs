//! The calls that wait for several files: epoll, and `poll`.
use super::{Call, FIRST, descriptor};
use crate::net::{Change, Done, ERR, Errno, FileId, HUP};
use libc::{c_int, epoll_event, pollfd, timespec};
use std::{slice, time::Duration};

pub(super) fn epoll_create() -> Option<Done<i64>> {
    Call::begin(|call| call.net(|net, host, _| net.make_poll(host)).map(descriptor))
}

pub(super) fn eventfd(first: u32, flags: c_int) -> Option<Done<i64>> {
    let blocks = flags & libc::EFD_NONBLOCK == 0;
    Call::begin(|call| {
        call.net(|net, host, _| net.make_counter(host, first.into(), blocks))
            .map(descriptor)
    })
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *const epoll_event,
) -> Option<Done<i64>> {
    Call::of(epoll, |call, at| {
        let Some(index) = fd
            .checked_sub(FIRST)
            .and_then(|at| usize::try_from(at).ok())
        else {
            // A wait for a file of the system would hold up all threads.
            return Err(Errno::NotPermitted);
        };
        let change = match operation {
            libc::EPOLL_CTL_ADD => Change::Add,
            libc::EPOLL_CTL_MOD => Change::Modify,
            libc::EPOLL_CTL_DEL => Change::Delete,
            _ => return Err(Errno::Invalid),
        };
        let (interest, token) = match change {
            Change::Delete => (0, 0),
            Change::Add | Change::Modify => {
                // SAFETY: the caller's.
                let event = unsafe { event.read_unaligned() };
                (event.events, event.u64)
            }
        };
        call.net(|net, host, _| net.control(host, at, change, (index, fd), (interest, token)))?;
        Ok(0)
    })
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    limit: Option<Duration>,
) -> Option<Done<i64>> {
    Call::of(epoll, |call, at| {
        let max = usize::try_from(max).ok().filter(|max| *max > 0);
        let max = max.ok_or(Errno::Invalid)?;
        let file = call.file(at)?;
        let taken = take(call, file, max, limit)?;
        for (at, (states, token)) in taken.iter().enumerate() {
            let event = epoll_event {
                events: *states,
                u64: *token,
            };
            // SAFETY: the caller's list has room for `max` events, and `take` returns no more.
            let to = unsafe { events.add(at) };
            // SAFETY: as above.
            unsafe { to.write_unaligned(event) };
        }
        Ok(taken.len() as i64)
    })
}

/// Takes events, and waits for the first one.
fn take(
    call: &Call<'_>,
    file: FileId,
    max: usize,
    limit: Option<Duration>,
) -> Done<Vec<(u32, u64)>> {
    let ends_at = limit.map(|limit| call.world.time().saturating_add(limit));
    loop {
        let events = call.net(|net, _, _| net.take_events(file, max))?;
        let left = ends_at.map(|at| at.saturating_sub(call.world.time()));
        if !events.is_empty() || left.is_some_and(|left| left.is_zero()) {
            return Ok(events);
        }
        call.wait(file, left);
    }
}

/// Returns a limit of `epoll_wait` and of `poll`, which is negative for none.
pub(super) fn from_milliseconds(limit: c_int) -> Option<Duration> {
    u64::try_from(limit).ok().map(Duration::from_millis)
}

/// # Safety
/// The pointer is null, or valid for a read.
pub(super) unsafe fn from_timespec(limit: *const timespec) -> Option<Duration> {
    // SAFETY: the caller's.
    let limit = unsafe { limit.as_ref() }?;
    let seconds = u64::try_from(limit.tv_sec).unwrap_or(0);
    Some(Duration::new(seconds, limit.tv_nsec as u32))
}

/// The function `poll`, for one simulated descriptor. std calls it so to connect with a limit.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn poll(list: *mut pollfd, count: u64, limit: c_int) -> Option<Done<i64>> {
    let count = usize::try_from(count).ok().filter(|count| *count > 0)?;
    // The system has an error for such a list.
    if list.is_null() || count > isize::MAX as usize / size_of::<pollfd>() {
        return None;
    }
    // SAFETY: the caller's.
    let list = unsafe { slice::from_raw_parts_mut(list, count) };
    let [one] = list else {
        let any = list.iter().any(|one| one.fd >= FIRST);
        return any.then_some(Err(Errno::Invalid));
    };
    Call::of(one.fd, |call, at| {
        let file = call.file(at)?;
        let limit = from_milliseconds(limit);
        let ends_at = limit.map(|limit| call.world.time().saturating_add(limit));
        let wanted = one.events as u32 | ERR | HUP;
        loop {
            let states = call.net(|net, _, _| net.states(file)) & wanted;
            one.revents = states as i16;
            let left = ends_at.map(|at| at.saturating_sub(call.world.time()));
            if states != 0 || left.is_some_and(|left| left.is_zero()) {
                return Ok(i64::from(states != 0));
            }
            call.wait(file, left);
        }
    })
}
