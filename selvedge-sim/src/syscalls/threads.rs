//! The threads of the system that a simulated program starts.
//!
//! No simulator can order them. So they are counted for the report, and they get no socket: the
//! network of such a thread would be the system's.
use super::{Call, functions::next};
use crate::net::{Done, Errno};
use libc::{c_int, c_void, pthread_attr_t, pthread_t};
use std::{cell::Cell, hint::black_box};

std::thread_local! {
    /// Whether a simulated thread has started this one, or the one that has started it.
    static IS_OF_PROGRAM: Cell<bool> = const { Cell::new(false) };
}

type Main = extern "C" fn(*mut c_void) -> *mut c_void;

fn is_of_program() -> bool {
    IS_OF_PROGRAM.try_with(Cell::get).unwrap_or(false)
}

/// The main function of a thread, and its argument.
struct Start {
    main: Main,
    argument: *mut c_void,
}

/// Begins a thread that a simulated one has started.
extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` has made the box, and starts one thread with it.
    let Start { main, argument } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    IS_OF_PROGRAM.set(true);
    main(argument)
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    main: Main,
    argument: *mut c_void,
) -> c_int {
    type Function =
        unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Main, *mut c_void) -> c_int;
    let function = next!(pthread_create, Function);
    let is_noted = Call::look(|call| call.world.note_system_thread()).is_some();
    if !is_noted && !is_of_program() {
        // SAFETY: the caller's.
        return unsafe { function(thread, attributes, main, argument) };
    }
    let start = Box::into_raw(Box::new(Start { main, argument }));
    // SAFETY: the caller's; `begin` takes the box.
    let result = unsafe { function(thread, attributes, begin, start.cast()) };
    if result != 0 {
        // SAFETY: no thread has begun, so the box is still this function's.
        drop(unsafe { Box::from_raw(start) });
    }
    result
}

/// Refuses the sockets of a thread that a simulated one has started.
pub(super) fn refuse_socket() -> Option<Done<i64>> {
    is_of_program().then_some(Err(Errno::NotPermitted))
}

/// Keeps the function in the program.
pub(super) fn keep() {
    black_box(pthread_create as *const ());
}
