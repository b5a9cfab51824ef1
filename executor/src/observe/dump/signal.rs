//! [`Handle::dump_on_signal`]: a signal prints a dump.
//!
//! 1. The waker of the signal's listener is called on the thread of the signals, which must not
//!    wait. So it starts a thread, which prints the dump.
//! 2. After the dump that thread polls the listener with the same waker. A signal that came during
//!    the dump makes the poll ready, and leads to one more dump.
//! 3. At the first signal after the runtime's end, or during its last dump, nobody polls the
//!    listener any more. With that the last references to it are gone.
use super::{LIMIT, TaskDump, dump};
use crate::Handle;
use net_driver::signal::unix::{Signal, SignalKind, signal};
use std::{
    fmt::Write as _,
    io::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Wake, Waker},
    thread,
};

impl Handle {
    /// Prints a [dump](Self::dump) to the standard error at each signal of this kind, from now
    /// until the runtime's end. With SIGQUIT, Ctrl-\ prints one, as in programs of Go and Java;
    /// from then on the process no longer dies of that signal.
    ///
    /// The runtime must [list its tasks](crate::Builder::list_tasks): otherwise the text says so.
    /// Each dump has a thread of its own, and needs no worker to be free. Signals that come during
    /// a dump lead to one more. The runtime's memory, not its tasks, stays until the first signal
    /// after its end.
    ///
    /// ```
    /// use net_driver::signal::unix::SignalKind;
    ///
    /// let runtime = selvedge_executor::Builder::new().list_tasks(true).build()?;
    /// runtime.handle().dump_on_signal(SignalKind::quit())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`signal`].
    pub fn dump_on_signal(&self, kind: SignalKind) -> io::Result<()> {
        self.on_signal(kind, |text| {
            // If nobody can read the text, nobody misses it.
            let _ = io::stderr().lock().write_all(text.as_bytes());
        })
    }

    /// Calls `print` with the text of a dump at each signal.
    fn on_signal(
        &self,
        kind: SignalKind,
        print: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<()> {
        let listener = Arc::new(OnSignal {
            signal: Mutex::new(signal(kind)?),
            handle: self.clone(),
            print: Box::new(print),
        });
        listener.listen();
        Ok(())
    }
}

struct OnSignal {
    signal: Mutex<Signal>,
    handle: Handle,
    print: Box<dyn Fn(String) + Send + Sync>,
}

impl OnSignal {
    /// Waits for the next signal. Prints a dump for one that has come already.
    fn listen(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        while !self.handle.shared().is_closing() {
            let mut signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
            let polled = signal.poll_recv(&mut Context::from_waker(&waker));
            drop(signal);
            if polled.is_pending() {
                return;
            }
            self.print();
        }
    }

    fn print(&self) {
        let shared = self.handle.shared();
        let lists = shared.settings.lists_tasks;
        (self.print)(text(lists.then(|| dump(shared, None, LIMIT)).as_deref()));
    }
}

impl Wake for OnSignal {
    fn wake(self: Arc<Self>) {
        if self.handle.shared().is_closing() {
            return;
        }
        // A refused thread loses this signal, and the next one tries again.
        let again = self.clone();
        let dumps = move || self.listen();
        let name = format!("{}-dump", again.handle.shared().settings.thread_name);
        if thread::Builder::new().name(name).spawn(dumps).is_err() {
            let waker = Waker::from(again.clone());
            let mut signal = again.signal.lock().unwrap_or_else(PoisonError::into_inner);
            while signal
                .poll_recv(&mut Context::from_waker(&waker))
                .is_ready()
            {}
        }
    }
}

/// Returns the text of a dump, or of a signal to a runtime that lists no tasks.
fn text(dump: Option<&[TaskDump]>) -> String {
    let Some(dump) = dump else {
        return "selvedge: no dump, as the runtime does not list its tasks\n".into();
    };
    let s = if dump.len() == 1 { "" } else { "s" };
    let mut text = format!("selvedge: dump of {} task{s}\n", dump.len());
    for task in dump {
        // A write to a string does not fail.
        let _ = writeln!(text, "{task}");
    }
    text
}

#[cfg(test)]
mod tests;
