//! The stack of another thread of this process: copied by that thread, and unwound by the caller.
//!
//! 1. The caller sends the thread a signal. The handler copies the thread's registers and the top
//!    of its stack into a buffer that exists from the start ([`signal`]). The handler neither
//!    allocates nor locks, so the thread may be anywhere: in the allocator, too.
//! 2. The thread continues. The caller finds the return addresses in the copy ([`unwind`]), by the
//!    tables that the compiler writes for panics.
//! 3. The thread that prints the stack looks up the names ([`Stack::resolve`]). The first look-up
//!    reads the program's debug information, which may take long.
//!
//! This works with the feature `backtrace`, on Linux, on x86-64 and on 64-bit ARM. Otherwise no
//! stack is captured, and nothing else changes: a crate between the monitor and a program need not
//! know whether the program wants stacks.
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

#[cfg_attr(
    not(all(
        feature = "backtrace",
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
    )),
    allow(dead_code, reason = "only the models of `request` use it")
)]
mod request;
#[cfg(all(
    feature = "backtrace",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
mod unwind;

#[cfg_attr(
    not(all(
        feature = "backtrace",
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
    )),
    path = "stack/nothing.rs"
)]
mod signal;

/// The stack of a thread at one moment: the addresses of its functions, the innermost one first.
///
/// A clone shares the addresses. `Display` looks up the names and writes a line for each function.
///
/// ```
/// use sched_monitor::Stack;
/// use std::{sync::mpsc, thread, time::Duration};
///
/// let (sender, receiver) = mpsc::channel();
/// let (stop, stopped) = mpsc::channel::<()>();
/// let stuck = thread::spawn(move || {
///     sender.send(sched_monitor::thread_id()).unwrap();
///     let _ = stopped.recv();
/// });
/// if let Some(id) = receiver.recv().unwrap() {
///     if let Some(stack) = Stack::capture(id, Duration::from_millis(100)) {
///         println!("the thread is in\n{stack}");
///     }
/// }
/// drop(stop);
/// stuck.join().unwrap();
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The first address is that of the next instruction. The others are return addresses.
    addresses: Arc<[usize]>,
}

/// A function on a [`Stack`], with its names as far as the program contains them.
///
/// ```
/// # let _ = |frame: sched_monitor::Frame|
/// println!("{:?} at {:?}:{:?}", frame.function, frame.file, frame.line);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The address in the code.
    pub address: usize,
    /// The name of the function.
    pub function: Option<String>,
    /// The source file, if the program has debug information.
    pub file: Option<PathBuf>,
    /// The line in that file.
    pub line: Option<u32>,
}

impl Stack {
    /// Captures the stack of another thread of this process: see [`thread_id`](crate::thread_id).
    ///
    /// Sends the thread the signal `SIGURG`. The thread copies up to 128 KiB of its stack, and
    /// continues. A system call in which the thread blocks is begun again, or fails with `EINTR` if
    /// it is one of those that signals always end, such as `poll` and `nanosleep`.
    ///
    /// Returns `None` without the feature `backtrace`, and on targets other than Linux on x86-64 or
    /// 64-bit ARM. Also returns `None` if the thread does not answer within `limit`. It may have
    /// ended, wait for a CPU, or block the signal, or the system does not let it go on. One stack
    /// is captured at a time: a second caller waits for the first one, for at most `limit`.
    ///
    /// The stack ends early in a library without tables for the unwinder, such as Debian's build of
    /// musl.
    ///
    /// The first capture installs the handler for the whole process, and the handler stays. For a
    /// signal that another sender has sent, it calls the handler that was installed before.
    pub fn capture(thread: u32, limit: Duration) -> Option<Self> {
        let addresses = signal::capture(thread, limit)?;
        Some(Self {
            addresses: addresses.into(),
        })
    }

    /// Captures the stack of the calling thread, this function included. No signal is sent. An
    /// address takes about 0.1 µs to 1 µs. At most 256 addresses are captured.
    ///
    /// Returns `None` without the feature `backtrace`, and on systems other than Linux.
    ///
    /// ```
    /// let here = sched_monitor::Stack::here();
    /// assert!(here.is_none_or(|stack| stack.addresses().len() > 1));
    /// ```
    #[inline(never)]
    pub fn here() -> Option<Self> {
        own_addresses().map(|addresses| Self {
            addresses: addresses.into(),
        })
    }

    /// Returns the stack without the callers that it has in common with `outer`, a stack that was
    /// captured earlier on the same thread.
    ///
    /// ```
    /// use sched_monitor::Stack;
    ///
    /// #[inline(never)]
    /// fn inner() -> Option<Stack> {
    ///     std::hint::black_box(Stack::here())
    /// }
    ///
    /// if let (Some(outer), Some(inner)) = (Stack::here(), inner()) {
    ///     let below = inner.within(&outer);
    ///     assert!(!below.addresses().is_empty());
    ///     assert!(below.addresses().len() < inner.addresses().len());
    /// }
    /// ```
    #[must_use]
    pub fn within(&self, outer: &Self) -> Self {
        let pairs = self
            .addresses
            .iter()
            .rev()
            .zip(outer.addresses.iter().rev());
        let common = pairs.take_while(|(a, b)| a == b).count();
        Self {
            addresses: self.addresses[..self.addresses.len() - common].into(),
        }
    }

    /// Returns the addresses: the next instruction of the innermost function, and then the return
    /// addresses of its callers.
    ///
    /// ```
    /// # let stack: Option<sched_monitor::Stack> = None;
    /// assert!(stack.is_none_or(|stack| !stack.addresses().is_empty()));
    /// ```
    pub fn addresses(&self) -> &[usize] {
        &self.addresses
    }

    /// Looks up the names of the functions. An inlined function comes before the function that
    /// contains it.
    ///
    /// The first call in a process reads the debug information, which may take long.
    ///
    /// ```
    /// # let stack: Option<sched_monitor::Stack> = None;
    /// for frame in stack.iter().flat_map(|stack| stack.resolve()) {
    ///     println!("{}", frame.function.unwrap_or_default());
    /// }
    /// ```
    pub fn resolve(&self) -> Vec<Frame> {
        let mut frames = Vec::new();
        for (depth, &address) in self.addresses.iter().enumerate() {
            let before = frames.len();
            resolve(address, depth == 0, |frame| frames.push(frame));
            if frames.len() == before {
                frames.push(Frame::at(address));
            }
        }
        frames
    }
}

impl Frame {
    fn at(address: usize) -> Self {
        Self {
            address,
            function: None,
            file: None,
            line: None,
        }
    }
}

/// The most addresses of the calling thread's stack.
#[cfg(all(feature = "backtrace", target_os = "linux"))]
const MOST: usize = 256;

#[cfg(all(feature = "backtrace", target_os = "linux"))]
fn own_addresses() -> Option<Vec<usize>> {
    let mut addresses = Vec::with_capacity(32);
    let push = |frame: &backtrace::Frame| {
        addresses.push(frame.ip().addr());
        addresses.len() < MOST
    };
    // SAFETY: the lock that this call leaves out is for systems whose unwinder is not thread-safe,
    // and for symbols. That of Linux is thread-safe, as panics use it. With the lock, a thread
    // would wait here for one that looks up names.
    unsafe { backtrace::trace_unsynchronized(push) };
    Some(addresses)
}

#[cfg(not(all(feature = "backtrace", target_os = "linux")))]
fn own_addresses() -> Option<Vec<usize>> {
    None
}

/// Looks up the functions at an address. If `next` is true, the address is that of the next
/// instruction. If it is false, the address is a return address, which is behind the call.
#[cfg(all(feature = "backtrace", target_os = "linux"))]
fn resolve(address: usize, next: bool, mut found: impl FnMut(Frame)) {
    // `backtrace` looks before the address that it gets.
    let lookup = address + usize::from(next);
    backtrace::resolve(std::ptr::without_provenance_mut(lookup), |symbol| {
        found(Frame {
            function: symbol.name().map(|name| format!("{name:#}")),
            file: symbol.filename().map(Into::into),
            line: symbol.lineno(),
            ..Frame::at(address)
        });
    });
}

#[cfg(not(all(feature = "backtrace", target_os = "linux")))]
fn resolve(_: usize, _: bool, _: impl FnMut(Frame)) {}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => f.write_str(function)?,
            None => write!(f, "{:#x}", self.address)?,
        }
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            write!(f, " at {}:{line}", file.display())?;
        }
        Ok(())
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, frame) in self.resolve().iter().enumerate() {
            if line > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{frame}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("addresses", &self.addresses.len())
            .finish()
    }
}
