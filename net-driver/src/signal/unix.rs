//! Listeners for the signals of Unix.
//!
//! ```
//! use futures_lite::future::or;
//! use net_driver::{Driver, signal::unix::{SignalKind, signal}};
//!
//! let mut interrupts = signal(SignalKind::interrupt())?;
//! let mut ends = signal(SignalKind::terminate())?;
//! unsafe { libc::raise(libc::SIGTERM) }; // The command `kill` sends the same signal.
//! Driver::new(1).park(0).block_on(async {
//!     let why = or(
//!         async { interrupts.recv().await.map(|()| "interrupted") },
//!         async { ends.recv().await.map(|()| "asked to end") },
//!     );
//!     assert_eq!(why.await, Some("asked to end"));
//! });
//! # std::io::Result::Ok(())
//! ```
//!
//! One thread wakes the listeners of all signals (the module `listener`). It reads from a
//! socket to which the signal handlers write a byte. A handler calls nothing else, as it may
//! interrupt any code. If the socket is full, the thread has bytes to read anyway. The socket
//! orders a signal's flag before its byte.
use super::listener::{Listener, Slot, lock};
use signal_hook_registry::FORBIDDEN;
use std::{
    fmt,
    future::poll_fn,
    io::{self, Read},
    os::{
        fd::{AsRawFd, RawFd},
        raw::c_int,
        unix::net::UnixStream,
    },
    sync::Mutex,
    task::{Context, Poll},
    thread,
};

/// Signals have numbers below this.
const SIGNALS: usize = 128;

static SLOTS: [Slot; SIGNALS] = [const { Slot::new() }; SIGNALS];

/// The sending end of the thread's socket, once the thread exists.
static SENDER: Mutex<Option<UnixStream>> = Mutex::new(None);

/// The number of a signal.
///
/// ```
/// use net_driver::signal::unix::SignalKind;
///
/// assert_eq!(SignalKind::from_raw(15), SignalKind::terminate());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignalKind(c_int);

macro_rules! kinds {
    ($($name:ident $signal:ident $what:literal)*) => {$(
        #[doc = concat!("Returns ", stringify!($signal), ": ", $what, ".")]
        pub const fn $name() -> Self {
            Self(libc::$signal)
        }
    )*};
}

impl SignalKind {
    /// Returns the signal with this number.
    pub const fn from_raw(number: c_int) -> Self {
        Self(number)
    }

    /// Returns the number of the signal.
    ///
    /// ```
    /// assert_eq!(net_driver::signal::unix::SignalKind::interrupt().as_raw_value(), 2);
    /// ```
    pub const fn as_raw_value(&self) -> c_int {
        self.0
    }

    kinds! {
        alarm SIGALRM "a timer of the process has run out"
        child SIGCHLD "a child has stopped or ended"
        hangup SIGHUP "the terminal is gone"
        interrupt SIGINT "Ctrl-C was pressed"
        io SIGIO "a descriptor is ready"
        pipe SIGPIPE "nobody reads the pipe that was written to"
        quit SIGQUIT "the terminal's quit key was pressed"
        terminate SIGTERM "the process is asked to end"
        user_defined1 SIGUSR1 "its meaning is the program's"
        user_defined2 SIGUSR2 "its meaning is the program's"
        window_change SIGWINCH "the terminal has another size"
    }
}

impl From<c_int> for SignalKind {
    fn from(number: c_int) -> Self {
        Self(number)
    }
}

/// Makes a listener for a signal. The listener receives the signals that come in from now on.
///
/// The first listener for a signal installs a handler, which stays for good: the process no longer
/// dies of that signal. After a `fork` no listener works in the child.
///
/// ```
/// use net_driver::signal::unix::{SignalKind, signal};
///
/// let mut hangups = signal(SignalKind::hangup())?;
/// unsafe { libc::raise(libc::SIGHUP) };
/// let mut park = net_driver::Driver::new(1).park(0);
/// park.block_on(hangups.recv());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// - If there is no such signal, or it cannot be handled (SIGKILL, SIGSTOP, SIGILL, SIGFPE,
///   SIGSEGV).
/// - If the thread cannot be started, or its socket cannot be made.
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    let slot = usize::try_from(kind.0).ok().and_then(|n| SLOTS.get(n));
    let Some(slot) = slot.filter(|_| kind.0 > 0 && !FORBIDDEN.contains(&kind.0)) else {
        let message = format!("signal {} cannot be handled", kind.0);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    };
    let mut has_handler = lock(&slot.has_handler);
    // A simulated program gets no signals: the thread is one of the system, which a simulated
    // socket does not reach, and a handler must not switch to another simulated thread.
    if !*has_handler && !sync_shim::sim::is_simulated() {
        let socket = start_thread()?;
        let handler = move || {
            slot.set_pending();
            // SAFETY: the byte can be read, and the socket is never closed. A handler may call
            // `write`, which does not wait, because the socket is non-blocking.
            unsafe { libc::write(socket, [1_u8].as_ptr().cast(), 1) };
        };
        // SAFETY: the handler does only what a handler may do: an atomic store and a `write`.
        unsafe { signal_hook_registry::register(kind.0, handler) }?;
        *has_handler = true;
    }
    drop(has_handler);
    Ok(Signal {
        listener: Listener::new(slot, ("signal", kind.0.unsigned_abs())),
        kind,
    })
}

/// Starts the thread that wakes listeners, if it does not exist yet. Returns the socket to which
/// handlers write. That socket is never closed.
fn start_thread() -> io::Result<RawFd> {
    let mut sender = lock(&SENDER);
    if let Some(sender) = &*sender {
        return Ok(sender.as_raw_fd());
    }
    let (to_thread, from_handlers) = UnixStream::pair()?;
    to_thread.set_nonblocking(true)?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || wake_listeners(from_handlers))?;
    Ok(sender.insert(to_thread).as_raw_fd())
}

/// Does the work of the thread (rule 2). Returns only if a read of the socket fails, which does not
/// happen.
fn wake_listeners(mut from_handlers: UnixStream) {
    let mut bytes = [0; 64];
    loop {
        match from_handlers.read(&mut bytes) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
        SLOTS.iter().for_each(Slot::deliver);
    }
}

/// Receives a signal: see [`signal`].
///
/// Signals that come in between two polls of the listener count as one.
///
/// ```
/// use net_driver::signal::unix::{Signal, SignalKind, signal};
///
/// let mut changes: Signal = signal(SignalKind::window_change())?;
/// unsafe { libc::raise(libc::SIGWINCH) };
/// let mut park = net_driver::Driver::new(1).park(0);
/// assert_eq!(park.block_on(changes.recv()), Some(()));
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a listener does nothing unless it is polled"]
pub struct Signal {
    listener: Listener,
    kind: SignalKind,
}

impl Signal {
    /// Waits for the signal. Always returns `Some`.
    ///
    /// The future may be dropped early: the next call then receives the signal.
    pub async fn recv(&mut self) -> Option<()> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for the signal: see [`recv`](Self::recv).
    ///
    /// ```
    /// use net_driver::signal::unix::{SignalKind, signal};
    /// use std::task::{Context, Waker};
    ///
    /// let mut alarms = signal(SignalKind::alarm())?;
    /// assert!(alarms.poll_recv(&mut Context::from_waker(Waker::noop())).is_pending());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.listener.poll_recv(cx)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
