//! The capture: a signal, and its handler, which copies the thread's registers and stack.
//!
//! The *caller* wants the stack of a *thread*, and holds a lock of the process, so that there is
//! one request at a time. The request is static; [`request`](super::request) says how the copy
//! changes hands.
//!
//! # Rules
//!
//! 1. *The handler interrupts its thread anywhere.* So it neither allocates, nor locks, nor calls a
//!    function that POSIX does not allow in a handler. It keeps `errno`.
//! 2. *The handler cannot fault.* The kernel copies the stack (`process_vm_readv`, or else a read
//!    of `/proc/thread-self/mem`), and stops where the memory ends. So the thread may also run on a
//!    stack that it has made itself.
//! 3. *Signals that others send reach their handler.* Our signal carries the request's address. For
//!    any signal without that address, our handler calls the handler that it has replaced.
use super::{
    request::Request,
    unwind::{Registers, Unwinder},
};
use libc::{c_int, c_void, sigaction, siginfo_t, ucontext_t};
use std::{
    mem, ptr,
    sync::{Mutex, OnceLock, TryLockError},
    thread,
    time::{Duration, Instant},
};

/// A signal that is ignored by default, and that debuggers let pass. Go's runtime uses it, too.
const SIGNAL: c_int = libc::SIGURG;

/// The largest number of words that are copied of a stack.
const WORDS: usize = 128 * 1024 / 8;

/// The pause of the caller between two looks at the lock or the request.
const PAUSE: Duration = Duration::from_micros(50);

/// A thread's registers and stack.
struct StackCopy {
    registers: Registers,
    words: usize,
    stack: [u64; WORDS],
}

static REQUEST: Request<StackCopy> = Request::new(StackCopy {
    registers: Registers::NONE,
    words: 0,
    stack: [0; WORDS],
});

/// The lock of the callers.
static CALLER: Mutex<Option<Unwinder>> = Mutex::new(None);

/// The handler that ours replaced. `None` if ours could not be installed.
static BEFORE: OnceLock<Option<Before>> = OnceLock::new();

/// Returns the addresses on the stack of a thread; see [`Stack::capture`](crate::Stack::capture).
pub(super) fn capture(thread: u32, limit: Duration) -> Option<Vec<usize>> {
    let begun = Instant::now();
    let is_late = || begun.elapsed() >= limit;
    // After a `fork` during another thread's capture, the child's lock is never released.
    let mut unwinder = loop {
        match CALLER.try_lock() {
            Ok(unwinder) => break unwinder,
            Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if is_late() => return None,
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    };
    if !install() {
        return None;
    }
    REQUEST.ask(thread);
    if send(thread) {
        while !REQUEST.is_copied(thread) && !is_late() {
            thread::sleep(PAUSE);
        }
    }
    if REQUEST.give_up(thread) {
        return None;
    }
    let unwinder = unwinder.get_or_insert_with(Unwinder::new);
    loop {
        // SAFETY: this thread has asked while it holds the lock, and it asks again only after this
        // call.
        let addresses = unsafe {
            REQUEST.read(thread, |copy| {
                unwinder.unwind(copy.registers, &copy.stack[..copy.words])
            })
        };
        if addresses.is_some() {
            return addresses;
        }
        thread::sleep(PAUSE);
    }
}

/// A signal's information as `rt_tgsigqueueinfo` takes it: `siginfo_t` with the fields of
/// `sigqueue`.
#[repr(C)]
struct Queued {
    signal: c_int,
    error: c_int,
    code: c_int,
    padding: c_int,
    process: libc::pid_t,
    user: libc::uid_t,
    value: *const Request<StackCopy>,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Queued>() == size_of::<siginfo_t>());

/// Sends the signal. Returns whether the thread exists.
fn send(thread: u32) -> bool {
    let process = std::process::id();
    let queued = Queued {
        signal: SIGNAL,
        error: 0,
        code: libc::SI_QUEUE,
        padding: 0,
        process: process as libc::pid_t,
        // SAFETY: this call has no premise.
        user: unsafe { libc::getuid() },
        value: &raw const REQUEST,
        rest: [0; 12],
    };
    let number = libc::SYS_rt_tgsigqueueinfo;
    // SAFETY: `queued` has the layout of a `siginfo_t`, and is read only during this call.
    let error = unsafe { libc::syscall(number, process, thread, SIGNAL, &raw const queued) };
    error == 0
}

/// The parts of the replaced handler that the handler needs.
struct Before {
    handler: usize,
    has_info: bool,
}

/// Installs the handler once. Returns whether it is installed.
fn install() -> bool {
    let installed = BEFORE.get_or_init(|| {
        // SAFETY: a `sigaction` consists of integers and of an optional function, for which zeros
        // are valid.
        let mut ours: sigaction = unsafe { mem::zeroed() };
        ours.sa_sigaction = handle as *const () as usize;
        // The handler uses a thread's alternate stack, if the thread has one. System calls that the
        // signal interrupts begin again.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: as above.
        let mut before: sigaction = unsafe { mem::zeroed() };
        // SAFETY: both pointers are valid, and the handler has the type that `SA_SIGINFO` demands.
        let error = unsafe { libc::sigaction(SIGNAL, &raw const ours, &raw mut before) };
        (error == 0).then_some(Before {
            handler: before.sa_sigaction,
            has_info: before.sa_flags & libc::SA_SIGINFO != 0,
        })
    });
    installed.is_some()
}

/// Handles the signal (rules 1 to 3).
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: this call has no premise.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: `errno` is this thread's own.
    let saved = unsafe { *errno };
    if is_ours(info) {
        answer(context);
    } else {
        pass_on(signal, info, context);
    }
    // SAFETY: as above.
    unsafe { *errno = saved };
}

/// Returns whether the signal carries the request.
fn is_ours(info: *mut siginfo_t) -> bool {
    // SAFETY: the kernel passes a valid pointer, by `SA_SIGINFO`.
    let info = unsafe { &*info };
    if info.si_code != libc::SI_QUEUE {
        return false;
    }
    // SAFETY: a signal with the code `SI_QUEUE` has a value.
    let value = unsafe { info.si_value() };
    ptr::eq(value.sival_ptr.cast(), &raw const REQUEST)
}

/// Copies the registers and the stack, if the request asks this thread.
fn answer(context: *mut c_void) {
    // SAFETY: this call has no premise.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    // SAFETY: the kernel passes a valid `ucontext_t`, by `SA_SIGINFO`.
    let registers = Registers::of(unsafe { &*context.cast::<ucontext_t>() });
    REQUEST.answer(thread, |copy| {
        copy.registers = registers;
        copy.words = copy_memory(registers.stack_pointer(), &mut copy.stack);
    });
}

/// Copies the memory from an address on, until the buffer is full or the memory ends. Returns the
/// number of words. Sandboxes refuse the first way, and emulators do not know it.
fn copy_memory(from: u64, to: &mut [u64; WORDS]) -> usize {
    match copy_by_call(from, to) {
        Err(libc::ENOSYS | libc::EPERM | libc::ESRCH) => copy_by_file(from, to),
        copied => copied.unwrap_or(0),
    }
}

/// As `copy_memory`, by a system call for it. Fails with the number of the error.
fn copy_by_call(from: u64, to: &mut [u64; WORDS]) -> Result<usize, c_int> {
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: size_of_val(to),
    };
    let remote = libc::iovec {
        iov_base: ptr::without_provenance_mut(from as usize),
        ..local
    };
    // SAFETY: this call has no premise.
    let process = unsafe { libc::getpid() };
    // SAFETY: `local` is valid to write. The kernel checks `remote`.
    let bytes =
        unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    if let Ok(bytes) = usize::try_from(bytes) {
        return Ok(bytes / 8);
    }
    // SAFETY: this call has no premise.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: `errno` is this thread's own.
    Err(unsafe { *errno })
}

/// As `copy_memory`, by the file of this process's memory. It also has what the process may not
/// read: the copy may go on into the guard page behind a stack, and beyond.
fn copy_by_file(from: u64, to: &mut [u64; WORDS]) -> usize {
    // The functions of libc for these calls are points at which a thread may be cancelled.
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    let path = c"/proc/thread-self/mem".as_ptr();
    // SAFETY: the path ends with a zero byte.
    let file = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags) };
    if file < 0 {
        return 0;
    }
    let (start, len) = (to.as_mut_ptr(), size_of_val(to));
    // SAFETY: the buffer is valid to write. The kernel checks the memory that it reads.
    let bytes = unsafe { libc::syscall(libc::SYS_pread64, file, start, len, from) };
    // SAFETY: this function has opened the file, and nothing else closes it.
    unsafe { libc::syscall(libc::SYS_close, file) };
    usize::try_from(bytes).unwrap_or(0) / 8
}

/// Calls the handler that was installed before ours, if it is a function.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // `install` stores the replaced handler after it has installed ours. A signal that comes
    // between these two steps has no effect.
    let Some(Some(before)) = BEFORE.get() else {
        return;
    };
    if matches!(before.handler, libc::SIG_DFL | libc::SIG_IGN) {
        return; // The signal is ignored by default.
    }
    let handler = ptr::with_exposed_provenance::<()>(before.handler);
    if before.has_info {
        type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
        // SAFETY: a handler that was installed with `SA_SIGINFO` has this type.
        let handler = unsafe { mem::transmute::<*const (), Handler>(handler) };
        handler(signal, info, context);
    } else {
        type Handler = extern "C" fn(c_int);
        // SAFETY: a handler that was installed without `SA_SIGINFO` has this type.
        let handler = unsafe { mem::transmute::<*const (), Handler>(handler) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        io::Write,
        os::fd::{AsRawFd, FromRawFd, OwnedFd},
    };

    /// Copies the end of a file that is mapped with more pages than it has: the kernel cannot read
    /// the rest.
    #[track_caller]
    fn copies_up_to_the_end(copy: fn(u64, &mut [u64; WORDS]) -> usize) {
        const PAGE: usize = 64 * 1024; // No machine has larger ones.
        // SAFETY: the name ends with a zero byte.
        let file = unsafe { libc::memfd_create(c"end".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: the number is that of a new file, which nothing else owns.
        let mut file = fs::File::from(unsafe { OwnedFd::from_raw_fd(file) });
        for word in 0..PAGE as u64 / 8 {
            file.write_all(&word.to_ne_bytes()).unwrap();
        }
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping touches no other memory.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), 2 * PAGE, read, shared, file.as_raw_fd(), 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        let mut to = Box::new([7; WORDS]);
        let from = memory.expose_provenance() as u64;
        assert_eq!(copy(from + 800, &mut to), PAGE / 8 - 100);
        assert!((100..PAGE as u64 / 8).eq(to[..PAGE / 8 - 100].iter().copied()));
        assert_eq!(copy(from + PAGE as u64, &mut to), 0);
        // SAFETY: the mapping is this function's own, and nothing uses it any more.
        unsafe { libc::munmap(memory, 2 * PAGE) };
    }

    #[test]
    fn copy_by_the_system_call_ends_with_the_memory() {
        // An emulator has no such call.
        if copy_by_call(0, &mut Box::new([0; WORDS])) != Err(libc::ENOSYS) {
            copies_up_to_the_end(|from, to| copy_by_call(from, to).unwrap_or(0));
        }
    }

    #[test]
    fn copy_by_the_file_ends_with_the_memory() {
        copies_up_to_the_end(copy_by_file);
    }
}
