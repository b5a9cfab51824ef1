//! Ctrl-C on Windows.
//!
//! The system calls the handler on a thread of its own, so the handler may wake the thread of the
//! signals ([`listener`](super::listener)) by any means.
use super::listener::{Listener, Slot, lock};
use std::{
    fmt,
    future::poll_fn,
    io,
    os::raw::c_int,
    task::{Context, Poll},
    thread,
};

/// The number of Ctrl-C, in the runtime library of C.
const SIGINT: c_int = 2;

static SLOT: Slot = Slot::new();

/// Makes a listener for Ctrl-C. The listener receives what is pressed from now on.
///
/// The first listener installs a handler, which stays for good: Ctrl-C no longer ends the process
/// by itself.
///
/// # Errors
/// If the handler is refused, or the thread that wakes listeners cannot be started.
pub fn ctrl_c() -> io::Result<CtrlC> {
    let mut has_handler = lock(&SLOT.has_handler);
    if !*has_handler {
        let thread = thread::Builder::new().name("signals".into()).spawn(|| {
            loop {
                thread::park();
                SLOT.deliver();
            }
        })?;
        let handler = move || {
            SLOT.set_pending();
            thread.thread().unpark();
        };
        // SAFETY: the handler runs on a thread of its own, so it may do what any code may.
        unsafe { signal_hook_registry::register(SIGINT, handler) }?;
        *has_handler = true;
    }
    drop(has_handler);
    Ok(CtrlC(Listener::new(&SLOT)))
}

/// Receives Ctrl-C: see [`ctrl_c`].
///
/// What is pressed between two polls of the listener counts as once.
#[must_use = "a listener does nothing unless it is polled"]
pub struct CtrlC(Listener);

impl CtrlC {
    /// Waits for the next one. Always returns `Some`.
    ///
    /// The future may be dropped early: the next call then receives it.
    pub async fn recv(&mut self) -> Option<()> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for the next one: see [`recv`](Self::recv).
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.0.poll_recv(cx)
    }
}

impl fmt::Debug for CtrlC {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CtrlC").finish_non_exhaustive()
    }
}
