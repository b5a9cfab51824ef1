//! The futex: the call by which locks, condition variables and parks of std wait.
//!
//! Code of a program may wake a task while it holds a lock of std. Another thread of the run may
//! then run, and want the lock. If it waited in the system, the holder would never go on.
//!
//! 1. A wait of a simulated thread looks at the word. If it waits for a lock, it first waits in the
//!    system for [`SYSTEM`]: a thread of the system may hold the lock, such as that of the standard
//!    output. Most such threads wake it in that time, and the run goes on as if there was no wait.
//!    A panic hook waits for longer, and nobody waits so for a lock that is known as one of the
//!    run. Nor for a condition variable: its count looks like a held lock at times, but a thread of
//!    the run has notified it while its word was not 0, as the word of a lock is at a wake.
//! 2. Then the thread waits as in a park, and others run. A wake by a simulated thread ends the
//!    wait.
//! 3. A wake by a thread of the system does not reach a simulated one. So when nothing else can
//!    happen in a run, the simulator looks at the words (`World::look_at_futexes`). Before the
//!    time passes it does so once for each wait for a lock.
//! 4. The simulator's own locks, which it shares with other runs and with the watchdog, are the
//!    system's (`World::with_current` finds no simulated thread there).
use super::{Call, functions::next};
use crate::{
    net::{Done, Errno},
    system,
    world::World,
};
use libc::{c_int, c_long, timespec};
use std::{
    io, ptr,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};

/// How long a simulated thread waits in the system first.
const SYSTEM: timespec = timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// A call of the system, as the functions here make it.
type Syscall = unsafe extern "C" fn(
    c_long,
    *const AtomicU32,
    c_int,
    u32,
    *const timespec,
    *const AtomicU32,
    u32,
) -> c_long;

/// The call `futex`. Returns `None` for a thread of the system, and for operations that std does
/// not use.
///
/// # Safety
/// As for the call of the system.
pub(super) unsafe fn call(
    word: *const AtomicU32,
    operation: c_int,
    value: u32,
    limit: *const timespec,
) -> Option<Done<i64>> {
    let is_wait = match operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => true,
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => false,
        _ => return None,
    };
    let private = operation & libc::FUTEX_PRIVATE_FLAG;
    World::with_current(|world| {
        let call = Call { world };
        if is_wait {
            // SAFETY: the caller's.
            let limit = unsafe { left(limit, operation) };
            // SAFETY: the caller's.
            unsafe { wait(&call, word, private, (value, limit)) }
        } else {
            let woken = world.wake_futex(word, value);
            // SAFETY: the caller's.
            if woken == 0 && !world.is_own_word(word) && unsafe { is_not_zero(word, private) } {
                world.add_own_word(word);
            }
            let of_system = match value - woken {
                0 => 0,
                // SAFETY: the caller's.
                left => unsafe { system(word, libc::FUTEX_WAKE | private, left, ptr::null()) },
            };
            Ok(i64::from(woken) + of_system.max(0))
        }
    })
}

/// Returns whether the word has another value than 0. The system looks, as a word may be gone at
/// its wake: a lock's new holder may have freed it. This requeue of no thread has no other effect
/// than a comparison.
///
/// # Safety
/// As for the call of the system.
unsafe fn is_not_zero(word: *const AtomicU32, private: c_int) -> bool {
    let requeue = libc::FUTEX_CMP_REQUEUE | private;
    // SAFETY: the caller's.
    let result = unsafe { system(word, requeue, 0, ptr::null()) };
    result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)
}

/// # Safety
/// As for the call of the system.
unsafe fn system(
    word: *const AtomicU32,
    operation: c_int,
    value: u32,
    limit: *const timespec,
) -> c_long {
    let function = next!(syscall, Syscall);
    // SAFETY: the caller's. A requeue alone reads the last two arguments: the word that gets the
    // waits, and the value that the word is compared with.
    unsafe { function(libc::SYS_futex, word, operation, value, limit, word, 0) }
}

/// # Safety
/// The word stays until the wait has ended.
unsafe fn wait(
    call: &Call<'_>,
    word: *const AtomicU32,
    private: c_int,
    (value, limit): (u32, Option<Duration>),
) -> Done<i64> {
    // SAFETY: the caller's.
    let at = unsafe { &*word };
    // Ordering: SeqCst, as that of the system's own look.
    if at.load(SeqCst) != value {
        return Err(Errno::Again);
    }
    for _ in 0..call.world.system_waits(word, value) {
        // SAFETY: the caller's.
        unsafe { system(word, libc::FUTEX_WAIT | private, value, &SYSTEM) };
        call.world.beat_in_system();
        // Ordering: SeqCst, as above.
        if at.load(SeqCst) != value {
            return Ok(0);
        }
    }
    match call.world.wait_for_futex(word, value, limit) {
        true => Ok(0),
        false => Err(Errno::TimedOut),
    }
}

/// Returns the time that is left until a limit: `FUTEX_WAIT` has a duration, and the other waits
/// have a time of a clock.
///
/// # Safety
/// The limit is null, or valid for a read.
unsafe fn left(limit: *const timespec, operation: c_int) -> Option<Duration> {
    // SAFETY: the caller's.
    let limit = unsafe { super::polls::from_timespec(limit) }?;
    let clock = match operation {
        _ if operation & !libc::FUTEX_PRIVATE_FLAG == libc::FUTEX_WAIT => return Some(limit),
        _ if operation & libc::FUTEX_CLOCK_REALTIME != 0 => libc::CLOCK_REALTIME,
        _ => libc::CLOCK_MONOTONIC,
    };
    Some(limit.saturating_sub(system::now(clock)))
}
