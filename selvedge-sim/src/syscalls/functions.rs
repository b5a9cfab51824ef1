//! The functions of the C library, under their names.
//!
//! Each asks the other files for an answer, and calls the function of the shared library if there
//! is none.
use super::{answer, batches, buffers::part, futexes, options, polls, refused, sockets, threads};
use libc::{
    c_int, c_long, c_uint, c_void, epoll_event, mmsghdr, msghdr, nfds_t, pollfd, size_t, sockaddr,
    socklen_t, ssize_t, timespec,
};
use std::{
    ffi::CStr,
    hint::black_box,
    ptr,
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};

/// Returns the function of this name of the shared library. It is found once.
pub(super) fn find(at: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    // Ordering: Relaxed, here and below: each thread would find the same address.
    let known = at.load(Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        std::process::abort();
    }
    // Ordering: Relaxed, as above.
    at.store(found, Relaxed);
    found
}

/// Returns the function of the shared library with this name, as one of this type.
macro_rules! next {
    ($name:ident, $type:ty) => {{
        use std::sync::atomic::AtomicPtr;
        static AT: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());
        const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
            concat!(stringify!($name), "\0").as_bytes(),
        ) {
            Ok(name) => name,
            Err(_) => panic!("the name has no zero within"),
        };
        let found = crate::syscalls::functions::find(&AT, NAME);
        // SAFETY: the function of this name has this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, $type>(found) }
    }};
}
pub(super) use next;

/// Defines functions of the C library: those of the shared library, unless the expression is an
/// answer. `also` names one more function that does the same.
macro_rules! functions {
    ($($(#[also $alias:ident])? fn $name:ident $args:tt -> $ret:ty $done:block)*) => {
        $(
            functions! { @one $name $args -> $ret $done }
            $(functions! { @one $alias $args -> $ret $done })?
        )*

        /// Keeps the functions in the program.
        pub(super) fn keep() {
            $(
                black_box($name as *const ());
                $(black_box($alias as *const ());)?
            )*
        }
    };
    (@one $name:ident ($($arg:ident: $type:ty),*) -> $ret:ty $done:block) => {
        /// The function of libc, for the threads of a simulation.
        ///
        /// # Safety
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $type),*) -> $ret {
            if let Some(done) = $done {
                return answer(done) as $ret;
            }
            let function = next!($name, unsafe extern "C" fn($($type),*) -> $ret);
            // SAFETY: the caller's.
            unsafe { function($($arg),*) }
        }
    };
}
pub(super) use functions;

const NOBODY: (*mut sockaddr, *mut socklen_t) = (ptr::null_mut(), ptr::null_mut());

functions! {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
        sockets::socket(domain, kind).or_else(threads::refuse_socket)
    }
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, to: *mut c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { sockets::pair(domain, kind, to) }
    }
    fn bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
        // SAFETY: the caller's.
        unsafe { sockets::bind(fd, address, len) }
    }
    fn listen(fd: c_int, backlog: c_int) -> c_int {
        sockets::listen(fd, backlog)
    }
    fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
        // SAFETY: the caller's.
        unsafe { sockets::connect(fd, address, len) }
    }
    fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
        // SAFETY: the caller's.
        unsafe { sockets::accept(fd, address, len, 0) }
    }
    fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { sockets::accept(fd, address, len, flags) }
    }
    fn getsockname(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
        // SAFETY: the caller's.
        unsafe { sockets::name(fd, address, len, false) }
    }
    fn getpeername(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
        // SAFETY: the caller's.
        unsafe { sockets::name(fd, address, len, true) }
    }
    fn getsockopt(
        fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { options::get(fd, (level, name), value, len) }
    }
    fn setsockopt(
        fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { options::set(fd, (level, name), value, len) }
    }
    fn shutdown(fd: c_int, how: c_int) -> c_int {
        sockets::shutdown(fd, how)
    }
    fn close(fd: c_int) -> c_int {
        sockets::close(fd)
    }
    fn recv(fd: c_int, to: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { sockets::receive(fd, &[part(to, len)], flags, NOBODY) }
            .map(|done| done.map(|received| received.count))
    }
    fn recvfrom(
        fd: c_int, to: *mut c_void, len: size_t, flags: c_int,
        address: *mut sockaddr, address_len: *mut socklen_t
    ) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { sockets::receive(fd, &[part(to, len)], flags, (address, address_len)) }
            .map(|done| done.map(|received| received.count))
    }
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { sockets::receive_message(fd, message, flags) }
    }
    fn recvmmsg(
        fd: c_int, list: *mut mmsghdr, count: c_uint, flags: c_int, limit: *mut timespec
    ) -> c_int {
        // SAFETY: the caller's.
        unsafe { batches::receive(fd, list, count, flags, limit) }
    }
    fn send(fd: c_int, from: *const c_void, len: size_t, flags: c_int) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { sockets::send(fd, &[part(from, len)], flags, (ptr::null(), 0)) }
    }
    fn sendto(
        fd: c_int, from: *const c_void, len: size_t, flags: c_int,
        address: *const sockaddr, address_len: socklen_t
    ) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { sockets::send(fd, &[part(from, len)], flags, (address, address_len)) }
    }
    fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
        // SAFETY: the caller's.
        unsafe { sockets::send_message(fd, message, flags) }
    }
    fn sendmmsg(fd: c_int, list: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { batches::send(fd, list, count, flags) }
    }
    fn epoll_create1(flags: c_int) -> c_int {
        polls::epoll_create()
    }
    fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
        // SAFETY: the caller's.
        unsafe { polls::epoll_ctl(epoll, operation, fd, event) }
    }
    fn epoll_wait(epoll: c_int, events: *mut epoll_event, max: c_int, limit: c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { polls::epoll_wait(epoll, events, max, polls::from_milliseconds(limit)) }
    }
    fn eventfd(first: c_uint, flags: c_int) -> c_int {
        polls::eventfd(first, flags)
    }
    fn poll(list: *mut pollfd, count: nfds_t, limit: c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { polls::poll(list, count, limit) }
    }
    // The rest have a variable number of arguments in C. On this system a caller passes them as it
    // passes fixed ones, and reads as many as it has passed.
    fn fcntl(fd: c_int, command: c_int, value: usize) -> c_int {
        options::control(fd, command, value)
    }
    fn ioctl(fd: c_int, request: u64, value: *mut c_int) -> c_int {
        // SAFETY: the caller's.
        unsafe { options::ioctl(fd, request, value) }
    }
    fn syscall(
        number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize
    ) -> c_long {
        match number {
            libc::SYS_epoll_pwait2 => {
                let limit = ptr::with_exposed_provenance::<timespec>(d);
                // SAFETY: the caller's.
                let limit = unsafe { polls::from_timespec(limit) };
                let events = ptr::with_exposed_provenance_mut(b);
                // SAFETY: the caller's.
                unsafe { polls::epoll_wait(a as c_int, events, c as c_int, limit) }
            }
            libc::SYS_futex => {
                let word = ptr::with_exposed_provenance(a);
                let limit = ptr::with_exposed_provenance::<timespec>(d);
                // SAFETY: the caller's.
                unsafe { futexes::call(word, b as c_int, c as u32, limit) }
            }
            _ => {
                // SAFETY: the caller's.
                unsafe { refused::raw(number, &[a, b, c, d, e, f]) }
            }
        }
    }
}
