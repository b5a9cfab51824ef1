//! A test of runtimes in a process that has no descriptor left. It is the only test in this file,
//! so that no other test runs in the process.
#![cfg(all(feature = "net", target_os = "linux"))]

use selvedge::{Builder, net::UnixDatagram};
use std::{
    fs::{self, File},
    io, mem,
};

/// Sets the limit of the process's descriptors. Returns the limit that it replaces.
fn limit(descriptors: libc::rlim_t) -> libc::rlim_t {
    // SAFETY: all zeroes are a valid value of a plain C structure.
    let mut limits: libc::rlimit = unsafe { mem::zeroed() };
    // SAFETY: the pointer is valid for the call.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) };
    assert_eq!(got, 0);
    let before = mem::replace(&mut limits.rlim_cur, descriptors);
    // SAFETY: the pointer is valid for the call.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) };
    assert_eq!(set, 0);
    before
}

/// Runs `f` while exactly `free` descriptors are free.
fn with_free<R>(free: usize, f: impl FnOnce() -> R) -> R {
    // The limit leaves room for the descriptors that the process has inherited.
    let inherited = fs::read_dir("/proc/self/fd").unwrap().count();
    let before = limit(inherited as libc::rlim_t + 64);
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    taken.truncate(taken.len() - free);
    let done = f();
    drop(taken);
    limit(before);
    done
}

/// The kernel refuses the poller, or the descriptor that wakes the poller.
///
/// Fails if `build` then panics or hides the error. Fails also if a runtime that has no poller does
/// not try to make one again at its next socket.
#[test]
fn kernel_without_descriptors_fails_the_build_or_the_socket() {
    let refused = |error: io::Error| assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    for current_thread in [false, true] {
        let builder = || match current_thread {
            true => Builder::new_current_thread(),
            false => Builder::new().workers(2),
        };
        // The poller takes the first free descriptor. The descriptor that wakes the poller takes
        // the second.
        for free in [0, 1] {
            refused(with_free(free, || builder().enable_io().build()).unwrap_err());
        }
        drop(with_free(2, || builder().enable_io().build()).unwrap());

        // Without `enable_io` the first socket makes both of them, after its own descriptor.
        let runtime = with_free(0, || builder().build()).unwrap();
        let socket = || runtime.block_on(async { UnixDatagram::unbound() });
        for free in 0..3 {
            refused(with_free(free, socket).unwrap_err());
        }
        socket().unwrap();
        assert_eq!(runtime.block_on(async { 7 }), 7);
    }
}
