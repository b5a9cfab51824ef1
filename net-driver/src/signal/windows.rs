//! Listeners for the events of a console on Windows, under tokio's names.
//!
//! ```no_run
//! # #[cfg(windows)]
//! # async fn listen() -> std::io::Result<()> {
//! let mut breaks = net_driver::signal::windows::ctrl_break()?;
//! breaks.recv().await;
//! # Ok(())
//! # }
//! ```
//!
//! The system calls the handler on a thread of its own, so the handler may wait for locks, and may
//! wake the thread of the listeners (the module `listener`) by any means. While a handler runs, the
//! system holds a lock that the call which installs a handler needs. So no lock that the handler
//! takes is held during that call. A handler that has taken the end of the console never returns.
//! So there is one handler for all events, and no later listener installs one.
use super::listener::{Listener, Slot, lock};
use std::{
    fmt,
    future::poll_fn,
    io,
    sync::Mutex,
    task::{Context, Poll},
    thread::{self, Thread},
};
use windows_sys::{
    Win32::System::Console::{
        CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT,
        SetConsoleCtrlHandler,
    },
    core::BOOL,
};

/// A slot for each event, by the event's number. No number is larger than that of the shutdown.
static SLOTS: [Slot; CTRL_SHUTDOWN_EVENT as usize + 1] =
    [const { Slot::new() }; CTRL_SHUTDOWN_EVENT as usize + 1];

/// The thread that wakes the listeners, once it is started. It stays if the handler is refused.
static THREAD: Mutex<Option<Thread>> = Mutex::new(None);

/// Whether the handler is installed. The handler does not take this lock.
static IS_INSTALLED: Mutex<bool> = Mutex::new(false);

/// Makes a listener for an event. The first listener installs the handler, and the first one for an
/// event makes the handler take that event.
fn listener(event: u32) -> io::Result<Listener> {
    install()?;
    let slot = &SLOTS[event as usize];
    *lock(&slot.has_handler) = true;
    Ok(Listener::new(slot, ("console event", event)))
}

fn install() -> io::Result<()> {
    let mut is_installed = lock(&IS_INSTALLED);
    if *is_installed {
        return Ok(());
    }
    let mut thread = lock(&THREAD);
    if thread.is_none() {
        let builder = thread::Builder::new().name("signals".into());
        *thread = Some(builder.spawn(wake_listeners)?.thread().clone());
    }
    drop(thread);
    // SAFETY: the handler has the signature that the system asks for.
    if unsafe { SetConsoleCtrlHandler(Some(handle), 1) } == 0 {
        return Err(io::Error::last_os_error());
    }
    *is_installed = true;
    Ok(())
}

fn wake_listeners() {
    loop {
        thread::park();
        SLOTS.iter().for_each(Slot::deliver);
    }
}

/// Returns whether the event is handled: whether it has ever had a listener.
unsafe extern "system" fn handle(event: u32) -> BOOL {
    let slot = SLOTS.get(event as usize);
    let Some(slot) = slot.filter(|slot| *lock(&slot.has_handler)) else {
        return 0;
    };
    slot.set_pending();
    if let Some(thread) = &*lock(&THREAD) {
        thread.unpark();
    }
    if matches!(event, CTRL_CLOSE_EVENT | CTRL_SHUTDOWN_EVENT) {
        // The system ends the process when the handler returns, or after some seconds. Until then
        // the listeners have time.
        loop {
            thread::park();
        }
    }
    1
}

macro_rules! events {
    ($($name:ident $function:ident $event:ident $what:literal $rest:literal)*) => {$(
        #[doc = concat!("Makes a listener for ", $what, ".")]
        ///
        /// The listener receives what comes in from now on.
        #[doc = $rest]
        ///
        /// ```no_run
        /// # #[cfg(windows)]
        #[doc = concat!("let listener = net_driver::signal::windows::", stringify!($function), "()?;")]
        /// # std::io::Result::Ok(())
        /// ```
        ///
        /// # Errors
        /// If the handler is refused, or the thread that wakes listeners cannot be started.
        pub fn $function() -> io::Result<$name> {
            listener($event).map($name)
        }

        #[doc = concat!("Receives ", $what, ": see [`", stringify!($function), "`].")]
        ///
        /// All events between two polls of the listener count as one.
        ///
        /// ```no_run
        /// # #[cfg(windows)]
        #[doc = concat!("# async fn wait(mut listener: net_driver::signal::windows::", stringify!($name), ") {")]
        /// assert_eq!(listener.recv().await, Some(()));
        /// # }
        /// ```
        #[must_use = "a listener does nothing unless it is polled"]
        pub struct $name(Listener);

        impl $name {
            /// Waits for the next one. Always returns `Some`.
            ///
            /// The future may be dropped early: the next call then receives the event.
            pub async fn recv(&mut self) -> Option<()> {
                poll_fn(|cx| self.poll_recv(cx)).await
            }

            /// Polls for the next one: see [`recv`](Self::recv).
            pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
                self.0.poll_recv(cx)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

events! {
    CtrlC ctrl_c CTRL_C_EVENT "Ctrl-C"
    "From the first listener on, Ctrl-C no longer ends the process by itself."
    CtrlBreak ctrl_break CTRL_BREAK_EVENT "Ctrl-Break"
    "From the first listener on, Ctrl-Break no longer ends the process by itself."
    CtrlClose ctrl_close CTRL_CLOSE_EVENT "the end of the console"
    "From the first listener on, the process ends some seconds after the console, if not before."
    CtrlLogoff ctrl_logoff CTRL_LOGOFF_EVENT "the end of a user's session"
    "Only a service receives it."
    CtrlShutdown ctrl_shutdown CTRL_SHUTDOWN_EVENT "the shutdown of the system"
    "Only a service receives it."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Driver;
    use futures_lite::future::poll_once;

    /// Calls the handler, as the system does.
    fn handled(event: u32) -> bool {
        // SAFETY: the handler may be called on any thread.
        unsafe { handle(event) != 0 }
    }

    #[test]
    fn event_wakes_its_own_listeners_alone() {
        let mut park = Driver::new(1).park(0);
        park.block_on(async {
            let (mut pressed, mut broken) = (ctrl_c().unwrap(), ctrl_break().unwrap());
            assert!(handled(CTRL_BREAK_EVENT));
            assert_eq!(broken.recv().await, Some(()));
            assert_eq!(poll_once(pressed.recv()).await, None);
            assert!(handled(CTRL_C_EVENT));
            assert_eq!(pressed.recv().await, Some(()));
        });
    }

    #[test]
    fn event_without_a_listener_is_left_to_the_system() {
        assert!(!handled(CTRL_SHUTDOWN_EVENT));
        assert!(!handled(3), "no event has this number");
        assert!(!handled(u32::MAX));
    }

    /// A service receives the end of each user's session, and goes on.
    #[test]
    fn end_of_a_session_returns_to_the_system() {
        let mut ended = ctrl_logoff().unwrap();
        assert!(handled(CTRL_LOGOFF_EVENT));
        Driver::new(1).park(0).block_on(ended.recv());
    }

    #[test]
    fn end_of_the_console_waits_for_the_listeners() {
        let mut closed = ctrl_close().unwrap();
        let handler = thread::spawn(|| handled(CTRL_CLOSE_EVENT));
        Driver::new(1).park(0).block_on(closed.recv());
        assert!(!handler.is_finished());
    }
}
