//! [`Handle::dump_on_signal`]: a signal prints a dump.
//!
//! A [`Listener`] has the signal's stream. The stream keeps the listener's waker, and so the
//! listener. The runtime has the listener, too, and the listener has a weak reference to the
//! runtime.
//!
//! 1. The waker is called on the thread of the signals, which must not wait. So it starts a thread,
//!    which prints the dump.
//! 2. After the dump that thread polls the stream with the same waker. A signal that came during
//!    the dump makes the poll ready, and leads to one more dump.
//! 3. The close of the runtime drops the streams, and with them the listeners. A thread in the
//!    middle of a dump keeps its listener until the dump ends, and then finds no stream.
use super::{LIMIT, TaskDump, dump, wait_cycles};
use crate::{Handle, worker::shared::Shared};
use net_driver::signal::unix::{Signal, SignalKind, signal};
use std::{
    fmt::Write as _,
    io::{self, Write as _},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Wake, Waker},
    thread,
};

impl Handle {
    /// Prints a [dump](Self::dump) to the standard error at each signal of this kind, from now
    /// until the runtime's end. With SIGQUIT, Ctrl-\ prints one, as in programs of Go and Java;
    /// from then on the process no longer dies of that signal.
    ///
    /// The text names the runtime by its id and its name, and ends with the tasks
    /// that [wait for each other](crate::wait_cycles). The runtime must
    /// [list its tasks](crate::Builder::list_tasks): otherwise the text says so. Each dump has a
    /// thread of its own, and needs no worker to be free. Signals that come during a dump lead to
    /// one more. A second call for the same kind does nothing.
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
        let listener = Arc::new(Listener {
            kind,
            stream: Mutex::new(Some(signal(kind)?)),
            shared: Arc::downgrade(self.shared()),
            print: Box::new(print),
        });
        if self.shared().dump_signals.add(&listener) {
            listener.listen();
        }
        // A close beside this call may have missed the listener.
        if self.shared().is_closing() {
            self.shared().dump_signals.close();
        }
        Ok(())
    }
}

/// The listeners of a runtime, one for each kind of signal.
#[derive(Default)]
pub(crate) struct DumpSignals(Mutex<Vec<Arc<Listener>>>);

impl DumpSignals {
    /// Adds a listener, unless there is one of its kind.
    fn add(&self, listener: &Arc<Listener>) -> bool {
        let mut all = lock(&self.0);
        let is_new = all.iter().all(|other| other.kind != listener.kind);
        if is_new {
            all.push(listener.clone());
        }
        is_new
    }

    /// Ends the listeners (rule 3).
    pub(crate) fn close(&self) {
        let all = mem::take(&mut *lock(&self.0));
        for listener in all {
            let stream = lock(&listener.stream).take();
            // This drops the waker, and with it a reference to the listener.
            drop(stream);
        }
    }
}

pub(crate) struct Listener {
    kind: SignalKind,
    /// `None` after the runtime's close.
    stream: Mutex<Option<Signal>>,
    shared: Weak<Shared>,
    print: Box<dyn Fn(String) + Send + Sync>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    /// Polls for a signal. Registers the listener's waker if there is none.
    fn poll(self: &Arc<Self>) -> Poll<()> {
        let waker = Waker::from(self.clone());
        let mut stream = lock(&self.stream);
        let polled = stream.as_mut().map(|stream| {
            let mut cx = Context::from_waker(&waker);
            stream.poll_recv(&mut cx)
        });
        polled.map_or(Poll::Pending, |polled| polled.map(drop))
    }

    /// Waits for the next signal. Prints a dump for one that has come already.
    fn listen(self: Arc<Self>) {
        while self.poll().is_ready() {
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            let lists = shared.settings.lists_tasks;
            let dump = lists.then(|| dump(&shared, None, LIMIT));
            let title = shared.title();
            drop(shared);
            (self.print)(text(&title, dump.as_deref()));
        }
    }
}

impl Wake for Listener {
    fn wake(self: Arc<Self>) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let name = format!("{}-dump", shared.settings.thread_name);
        drop(shared);
        let again = self.clone();
        let dumps = move || {
            if let Some(shared) = self.shared.upgrade() {
                shared.monitor.apply_attributes();
            }
            self.listen();
        };
        // A refused thread loses this signal, and the next one tries again.
        if thread::Builder::new().name(name).spawn(dumps).is_err() {
            while again.poll().is_ready() {}
        }
    }
}

/// Returns the text of a dump, or of a signal to a runtime that lists no tasks.
fn text(runtime: &str, dump: Option<&[TaskDump]>) -> String {
    let Some(dump) = dump else {
        return format!("selvedge: no dump of {runtime}, which does not list its tasks\n");
    };
    let s = if dump.len() == 1 { "" } else { "s" };
    let mut text = format!("selvedge: dump of {} task{s} of {runtime}\n", dump.len());
    for task in dump {
        // A write to a string does not fail.
        let _ = writeln!(text, "{task}");
    }
    for cycle in wait_cycles(dump) {
        let _ = writeln!(text, "selvedge: {cycle}");
    }
    text
}

#[cfg(test)]
mod tests;
