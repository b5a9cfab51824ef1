//! The functions with paths, and the system calls, that no disk has.
//!
//! With a path on a disk of the host they fail, and the program is told so by `EOPNOTSUPP`. Without
//! them here they would reach a file of the system under the same path.
use super::{Call, answer, functions::next, paths};
use crate::{net::Errno, world::World};
use libc::{c_char, c_int, c_long};
use std::{hint::black_box, ptr};

/// The arguments of a function. On this system a caller passes numbers and pointers in the same
/// way, and a function reads as many as it has.
type Arguments = [usize; 6];

/// Returns whether this argument is a path on a disk of the host of a simulated thread.
///
/// # Safety
/// The argument is null, or a text of C.
unsafe fn is_on_disk(argument: usize) -> bool {
    let path = ptr::with_exposed_provenance::<c_char>(argument);
    if World::with_current(|_| ()).is_none() {
        return false;
    }
    // SAFETY: the caller's.
    let Some(path) = (unsafe { paths::text(path) }) else {
        return false;
    };
    path.starts_with(b"/")
        && World::with_current(|world| world.find_disk(path).is_some()) == Some(true)
}

/// Refuses a call if one of these arguments is a path on a disk. Returns whether it does.
///
/// # Safety
/// These arguments are null, or texts of C.
unsafe fn refuses(arguments: &Arguments, paths: &[usize]) -> bool {
    let on_disk = paths.iter().any(|at| {
        // SAFETY: the caller's.
        unsafe { is_on_disk(arguments[*at]) }
    });
    if on_disk {
        Call::look(|call| call.note("call refused", 0));
        answer(Err(Errno::NotSupported));
    }
    on_disk
}

/// Defines functions of the C library that fail with a path on a disk: the names, the places of
/// their paths among the arguments, and what they return then.
macro_rules! refused {
    ($($name:ident($($path:literal),+) -> $failed:literal;)*) => {
        $(
            /// The function of libc, for the threads of a simulation.
            ///
            /// # Safety
            /// As for the function of libc.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                a: usize, b: usize, c: usize, d: usize, e: usize, f: usize
            ) -> i64 {
                type Function =
                    unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> i64;
                // SAFETY: the caller's.
                if unsafe { refuses(&[a, b, c, d, e, f], &[$($path),+]) } {
                    return $failed;
                }
                let function = next!($name, Function);
                // SAFETY: the caller's.
                unsafe { function(a, b, c, d, e, f) }
            }
        )*

        /// Keeps the functions in the program.
        pub(super) fn keep() {
            $(black_box($name as *const ());)*
        }
    };
}

// Streams and names of C are pointers, which are null after an error.
refused! {
    chdir(0) -> -1;
    fopen(0) -> 0;
    fopen64(0) -> 0;
    freopen(0) -> 0;
    freopen64(0) -> 0;
    getxattr(0) -> -1;
    inotify_add_watch(1) -> -1;
    lgetxattr(0) -> -1;
    listxattr(0) -> -1;
    llistxattr(0) -> -1;
    lremovexattr(0) -> -1;
    lsetxattr(0) -> -1;
    lutimes(0) -> -1;
    mkdtemp(0) -> 0;
    mkfifo(0) -> -1;
    mkfifoat(1) -> -1;
    mknod(0) -> -1;
    mknodat(1) -> -1;
    mkostemp(0) -> -1;
    mkostemp64(0) -> -1;
    mkstemp(0) -> -1;
    mkstemp64(0) -> -1;
    name_to_handle_at(1) -> -1;
    remove(0) -> -1;
    removexattr(0) -> -1;
    setxattr(0) -> -1;
    statfs(0) -> -1;
    statfs64(0) -> -1;
    statvfs(0) -> -1;
    statvfs64(0) -> -1;
    utime(0) -> -1;
    utimes(0) -> -1;
}

/// Returns the places of the paths among the arguments of a system call.
fn paths_of(number: c_long) -> &'static [usize] {
    match number {
        libc::SYS_chdir
        | libc::SYS_getxattr
        | libc::SYS_lgetxattr
        | libc::SYS_listxattr
        | libc::SYS_llistxattr
        | libc::SYS_lremovexattr
        | libc::SYS_lsetxattr
        | libc::SYS_removexattr
        | libc::SYS_setxattr
        | libc::SYS_statfs
        | libc::SYS_truncate => &[0],
        libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_fchmodat
        | libc::SYS_fchownat
        | libc::SYS_inotify_add_watch
        | libc::SYS_mkdirat
        | libc::SYS_mknodat
        | libc::SYS_name_to_handle_at
        | libc::SYS_openat
        | libc::SYS_openat2
        | libc::SYS_readlinkat
        | libc::SYS_statx
        | libc::SYS_unlinkat
        | libc::SYS_utimensat => &[1],
        libc::SYS_symlinkat => &[2],
        libc::SYS_linkat | libc::SYS_renameat2 => &[1, 3],
        _ => paths_of_some(number),
    }
}

/// Returns the places of the paths of a system call that newer processors lack.
#[cfg(target_arch = "x86_64")]
fn paths_of_some(number: c_long) -> &'static [usize] {
    match number {
        libc::SYS_newfstatat => &[1],
        libc::SYS_renameat => &[1, 3],
        libc::SYS_access
        | libc::SYS_chmod
        | libc::SYS_chown
        | libc::SYS_creat
        | libc::SYS_lchown
        | libc::SYS_lstat
        | libc::SYS_mkdir
        | libc::SYS_mknod
        | libc::SYS_open
        | libc::SYS_readlink
        | libc::SYS_rmdir
        | libc::SYS_stat
        | libc::SYS_unlink
        | libc::SYS_utime
        | libc::SYS_utimes => &[0],
        libc::SYS_link | libc::SYS_rename => &[0, 1],
        libc::SYS_symlink => &[1],
        _ => &[],
    }
}

#[cfg(target_arch = "aarch64")]
fn paths_of_some(number: c_long) -> &'static [usize] {
    match number {
        libc::SYS_newfstatat => &[1],
        libc::SYS_renameat => &[1, 3],
        _ => &[],
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn paths_of_some(_: c_long) -> &'static [usize] {
    &[]
}

/// The function `syscall`, for calls that are not simulated. A ring of io_uring would open files,
/// and move bytes, behind the simulator's back.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn raw(number: c_long, arguments: &Arguments) -> Option<Result<i64, Errno>> {
    if number == libc::SYS_io_uring_setup {
        return Call::look(|call| {
            call.note("call refused", number as u64);
            Err(Errno::NotSupported)
        });
    }
    // SAFETY: the caller's.
    let refused = unsafe { refuses(arguments, paths_of(number)) };
    refused.then_some(Err(Errno::NotSupported))
}

/// The functions `dup2` and `dup3`. The number of a descriptor is the simulator's choice, so one of
/// the system takes no simulated one's place, and the other way round.
pub(super) fn duplicate_to(from: c_int, to: c_int) -> Option<Result<i64, Errno>> {
    let any = from >= super::FIRST || to >= super::FIRST;
    let refuse = |call: &Call<'_>| {
        call.note("call refused", 0);
        Err(Errno::NotSupported)
    };
    any.then(|| Call::look(refuse)).flatten()
}
