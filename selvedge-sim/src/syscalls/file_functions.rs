//! The functions of the C library for files, under their names.
//!
//! On 64-bit Linux a function and the one whose name ends with `64` are the same.
use super::{
    answer,
    buffers::part,
    files,
    functions::{functions, next},
    options, paths,
    paths::Attribute,
    refused,
};
use libc::{AT_FDCWD, c_char, c_int, c_uint, c_void, iovec, off_t, size_t, ssize_t, timespec};
use std::hint::black_box;

functions! {
    // The mode is an argument in C only if the file is new. On this system a caller passes it as it
    // passes a fixed one.
    #[also open64]
    fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::open(AT_FDCWD, path, flags, mode) }
    }
    #[also openat64]
    fn openat(
        directory: c_int, path: *const c_char, flags: c_int, mode: c_uint
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::open(directory, path, flags, mode) }
    }
    #[also creat64]
    fn creat(path: *const c_char, mode: c_uint) -> c_int {
        let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
        // SAFETY: the caller's.
        unsafe { paths::open(AT_FDCWD, path, flags, mode) }
    }
    fn read(fd: c_int, to: *mut c_void, len: size_t) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { files::read(fd, &[part(to, len)]) }
    }
    fn readv(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
        let read = |parts: &[iovec]| {
            // SAFETY: the caller's.
            unsafe { files::read(fd, parts) }
        };
        // SAFETY: the caller's.
        unsafe { files::with_list(fd, (list, count), false, read) }
    }
    #[also pread64]
    fn pread(fd: c_int, to: *mut c_void, len: size_t, at: off_t) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { files::read_at(fd, &[part(to, len)], at) }
    }
    #[also preadv64]
    fn preadv(fd: c_int, list: *const iovec, count: c_int, at: off_t) -> ssize_t {
        let read = |parts: &[iovec]| {
            // SAFETY: the caller's.
            unsafe { files::read_at(fd, parts, at) }
        };
        // SAFETY: the caller's.
        unsafe { files::with_list(fd, (list, count), false, read) }
    }
    fn write(fd: c_int, from: *const c_void, len: size_t) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { files::write(fd, &[part(from, len)]) }
    }
    fn writev(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
        let write = |parts: &[iovec]| {
            // SAFETY: the caller's.
            unsafe { files::write(fd, parts) }
        };
        // SAFETY: the caller's.
        unsafe { files::with_list(fd, (list, count), true, write) }
    }
    #[also pwrite64]
    fn pwrite(fd: c_int, from: *const c_void, len: size_t, at: off_t) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { files::write_at(fd, &[part(from, len)], at) }
    }
    #[also pwritev64]
    fn pwritev(fd: c_int, list: *const iovec, count: c_int, at: off_t) -> ssize_t {
        let write = |parts: &[iovec]| {
            // SAFETY: the caller's.
            unsafe { files::write_at(fd, parts, at) }
        };
        // SAFETY: the caller's.
        unsafe { files::with_list(fd, (list, count), true, write) }
    }
    #[also lseek64]
    fn lseek(fd: c_int, by: off_t, whence: c_int) -> off_t {
        files::seek(fd, by, whence)
    }
    fn fsync(fd: c_int) -> c_int {
        files::sync(fd)
    }
    fn fdatasync(fd: c_int) -> c_int {
        files::sync(fd)
    }
    fn syncfs(fd: c_int) -> c_int {
        files::sync_all(fd)
    }
    fn sync_file_range(fd: c_int, at: off_t, len: off_t, flags: c_uint) -> c_int {
        files::nothing(fd)
    }
    #[also ftruncate64]
    fn ftruncate(fd: c_int, len: off_t) -> c_int {
        files::truncate(fd, len)
    }
    #[also truncate64]
    fn truncate(path: *const c_char, len: off_t) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::truncate(path, len) }
    }
    #[also fallocate64]
    fn fallocate(fd: c_int, mode: c_int, at: off_t, len: off_t) -> c_int {
        files::allocate(fd, mode, at, len)
    }
    #[also stat64]
    fn stat(path: *const c_char, to: *mut libc::stat64) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::stat(AT_FDCWD, path, 0, to) }
    }
    #[also lstat64]
    fn lstat(path: *const c_char, to: *mut libc::stat64) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::stat(AT_FDCWD, path, libc::AT_SYMLINK_NOFOLLOW, to) }
    }
    #[also fstat64]
    fn fstat(fd: c_int, to: *mut libc::stat64) -> c_int {
        // SAFETY: the caller's. The path is empty.
        unsafe { paths::stat(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, to) }
    }
    #[also fstatat64]
    fn fstatat(
        directory: c_int, path: *const c_char, to: *mut libc::stat64, flags: c_int
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::stat(directory, path, flags, to) }
    }
    fn statx(
        directory: c_int, path: *const c_char, flags: c_int, mask: c_uint, to: *mut libc::statx
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::stat_more(directory, path, flags, to) }
    }
    fn access(path: *const c_char, mode: c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::access(AT_FDCWD, path) }
    }
    fn faccessat(directory: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::access(directory, path) }
    }
    fn rename(old: *const c_char, new: *const c_char) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::rename((AT_FDCWD, old), (AT_FDCWD, new), 0) }
    }
    fn renameat(from: c_int, old: *const c_char, to: c_int, new: *const c_char) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::rename((from, old), (to, new), 0) }
    }
    fn renameat2(
        from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_uint
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::rename((from, old), (to, new), flags) }
    }
    fn link(old: *const c_char, new: *const c_char) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::link((AT_FDCWD, old), (AT_FDCWD, new), 0) }
    }
    fn linkat(
        from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_int
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::link((from, old), (to, new), flags) }
    }
    fn symlink(target: *const c_char, path: *const c_char) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::symlink(target, AT_FDCWD, path) }
    }
    fn symlinkat(target: *const c_char, directory: c_int, path: *const c_char) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::symlink(target, directory, path) }
    }
    fn readlink(path: *const c_char, to: *mut c_char, len: size_t) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { paths::read_link(AT_FDCWD, path, to, len) }
    }
    fn readlinkat(directory: c_int, path: *const c_char, to: *mut c_char, len: size_t) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { paths::read_link(directory, path, to, len) }
    }
    fn unlink(path: *const c_char) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::unlink(AT_FDCWD, path, 0) }
    }
    fn unlinkat(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::unlink(directory, path, flags) }
    }
    fn rmdir(path: *const c_char) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::unlink(AT_FDCWD, path, libc::AT_REMOVEDIR) }
    }
    fn mkdir(path: *const c_char, mode: c_uint) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::make_directory(AT_FDCWD, path, mode) }
    }
    fn mkdirat(directory: c_int, path: *const c_char, mode: c_uint) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::make_directory(directory, path, mode) }
    }
    fn chmod(path: *const c_char, mode: c_uint) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::set(AT_FDCWD, path, 0, Attribute::Mode(mode)) }
    }
    fn fchmod(fd: c_int, mode: c_uint) -> c_int {
        files::set(fd, Attribute::Mode(mode))
    }
    fn fchmodat(directory: c_int, path: *const c_char, mode: c_uint, flags: c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::set(directory, path, flags, Attribute::Mode(mode)) }
    }
    fn chown(path: *const c_char, user: c_uint, group: c_uint) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::set(AT_FDCWD, path, 0, Attribute::owner(user, group)) }
    }
    fn lchown(path: *const c_char, user: c_uint, group: c_uint) -> c_int {
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: the caller's.
        unsafe { paths::set(AT_FDCWD, path, flags, Attribute::owner(user, group)) }
    }
    fn fchown(fd: c_int, user: c_uint, group: c_uint) -> c_int {
        files::set(fd, Attribute::owner(user, group))
    }
    fn fchownat(
        directory: c_int, path: *const c_char, user: c_uint, group: c_uint, flags: c_int
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { paths::set(directory, path, flags, Attribute::owner(user, group)) }
    }
    fn utimensat(
        directory: c_int, path: *const c_char, times: *const timespec, flags: c_int
    ) -> c_int {
        // SAFETY: the caller's.
        let attribute = unsafe { Attribute::times(times) };
        // SAFETY: the caller's.
        unsafe { paths::set(directory, path, flags, attribute) }
    }
    fn futimens(fd: c_int, times: *const timespec) -> c_int {
        // SAFETY: the caller's.
        let attribute = unsafe { Attribute::times(times) };
        files::set(fd, attribute)
    }
    fn flock(fd: c_int, operation: c_int) -> c_int {
        files::lock(fd, operation)
    }
    fn dup(fd: c_int) -> c_int {
        options::control(fd, libc::F_DUPFD_CLOEXEC, 0)
    }
    fn dup2(from: c_int, to: c_int) -> c_int {
        refused::duplicate_to(from, to)
    }
    fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
        refused::duplicate_to(from, to)
    }
    fn copy_file_range(
        from: c_int, at: *mut i64, to: c_int, to_at: *mut i64, len: size_t, flags: c_uint
    ) -> ssize_t {
        files::copy(from, to)
    }
    #[also sendfile64]
    fn sendfile(to: c_int, from: c_int, at: *mut i64, len: size_t) -> ssize_t {
        files::copy(from, to)
    }
    fn splice(
        from: c_int, at: *mut i64, to: c_int, to_at: *mut i64, len: size_t, flags: c_uint
    ) -> ssize_t {
        files::copy(from, to)
    }
    #[also mmap64]
    fn mmap(
        address: *mut c_void, len: size_t, kind: c_int, flags: c_int, fd: c_int, at: off_t
    ) -> *mut c_void {
        files::map(fd, flags)
    }
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn realpath(path: *const c_char, to: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's.
    let Some(done) = (unsafe { paths::real_path(path, to) }) else {
        type Function = unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut c_char;
        let function = next!(realpath, Function);
        // SAFETY: the caller's.
        return unsafe { function(path, to) };
    };
    done.unwrap_or_else(|error| {
        answer(Err(error));
        std::ptr::null_mut()
    })
}

/// The function of libc, for the threads of a simulation. It returns the number of an error.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_fallocate(fd: c_int, at: off_t, len: off_t) -> c_int {
    let Some(done) = files::allocate(fd, 0, at, len) else {
        let function = next!(
            posix_fallocate,
            unsafe extern "C" fn(c_int, off_t, off_t) -> c_int
        );
        // SAFETY: the caller's.
        return unsafe { function(fd, at, len) };
    };
    done.map_or_else(super::number_of, |_| 0)
}

/// The function of libc, for the threads of a simulation. It returns the number of an error.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_fadvise(fd: c_int, at: off_t, len: off_t, advice: c_int) -> c_int {
    let Some(done) = files::nothing(fd) else {
        type Function = unsafe extern "C" fn(c_int, off_t, off_t, c_int) -> c_int;
        let function = next!(posix_fadvise, Function);
        // SAFETY: the caller's.
        return unsafe { function(fd, at, len, advice) };
    };
    done.map_or_else(super::number_of, |_| 0)
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_fallocate64(fd: c_int, at: off_t, len: off_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { posix_fallocate(fd, at, len) }
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_fadvise64(fd: c_int, at: off_t, len: off_t, advice: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { posix_fadvise(fd, at, len, advice) }
}

/// Keeps the other functions in the program, too.
pub(super) fn keep_all() {
    keep();
    black_box(realpath as *const ());
    black_box(posix_fallocate as *const ());
    black_box(posix_fallocate64 as *const ());
    black_box(posix_fadvise as *const ());
    black_box(posix_fadvise64 as *const ());
}
