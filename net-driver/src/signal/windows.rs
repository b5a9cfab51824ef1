//! Ctrl-C on Windows.
//!
//! The system calls the handler on a thread of its own, so the handler may wake the thread of the
//! signals (the module `listener`) by any means.
use super::listener::{Listener, Slot, lock};
use std::{
    fmt,
    future::poll_fn,
    io,
    sync::OnceLock,
    task::{Context, Poll},
    thread::{self, Thread},
};
use windows_sys::{
    Win32::System::Console::{CTRL_C_EVENT, SetConsoleCtrlHandler},
    core::BOOL,
};

static SLOT: Slot = Slot::new();

/// The thread that wakes the listeners.
static THREAD: OnceLock<Thread> = OnceLock::new();

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
        if THREAD.get().is_none() {
            let builder = thread::Builder::new().name("signals".into());
            let thread = builder.spawn(wake_listeners)?.thread().clone();
            let _ = THREAD.set(thread); // The lock is held, so nobody else has set it.
        }
        // SAFETY: the handler has the signature that the system asks for.
        if unsafe { SetConsoleCtrlHandler(Some(handle), 1) } == 0 {
            return Err(io::Error::last_os_error());
        }
        *has_handler = true;
    }
    drop(has_handler);
    Ok(CtrlC(Listener::new(&SLOT)))
}

fn wake_listeners() {
    loop {
        thread::park();
        SLOT.deliver();
    }
}

/// Returns whether the event is handled.
unsafe extern "system" fn handle(event: u32) -> BOOL {
    if event != CTRL_C_EVENT {
        return 0;
    }
    SLOT.set_pending();
    THREAD.get().inspect(|thread| thread.unpark());
    1
}

/// Receives Ctrl-C: see [`ctrl_c`].
///
/// All that is pressed between two polls of the listener counts as one Ctrl-C.
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
