//! [`Handle::dump_on_signal`]: a signal prints a dump.
//!
//! A [`Listener`] has the signal's stream. The stream keeps the listener's waker, and so the
//! listener. The runtime has the listener, too, and the listener has a weak reference to the
//! runtime.
//!
//! 1. The waker is called on the thread of the signals, which must not wait, and runs no user code.
//!    So it starts a thread, which prints the dump.
//! 2. After the dump that thread polls the stream with the same waker. A signal that came during
//!    the dump makes the poll ready, and leads to one more dump.
//! 3. The end of the runtime drops the streams, and with them the listeners: after its threads have
//!    ended, as the end may hang. A thread in the middle of a dump keeps its listener until the
//!    dump ends, and then finds no stream.
use super::{
    LIMIT, TaskDump, dump,
    signals::{Listens, lock},
    wait_cycles,
};
use crate::{Handle, worker::shared::Shared};
use net_driver::signal::unix::{Signal, SignalKind, signal};
use std::{
    fmt::Write as _,
    io::{self, Write as _},
    mem,
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll, Wake, Waker},
    thread,
};

impl Handle {
    /// Prints a [dump](Self::dump) to the standard error at each signal of this kind, from now
    /// until the runtime has ended. With SIGQUIT, Ctrl-\ prints one, as in programs of Go and Java;
    /// from then on the process no longer dies of that signal, also after the runtime's end.
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
            thread: format!("{}-dump", self.shared().settings.thread_name),
            print: Box::new(print),
        });
        let is_new = self.shared().dump_signals.add(listener.clone());
        if is_new && listener.poll().is_ready() {
            listener.start(true);
        }
        Ok(())
    }
}

struct Listener {
    kind: SignalKind,
    /// `None` after the runtime's end.
    stream: Mutex<Option<Signal>>,
    shared: Weak<Shared>,
    /// The name of the thread of a dump.
    thread: String,
    print: Box<dyn Fn(String) + Send + Sync>,
}

impl Listens for Listener {
    fn kind(&self) -> SignalKind {
        self.kind
    }

    fn end(&self) {
        let stream = lock(&self.stream).take();
        // This drops the waker, and with it a reference to the listener.
        drop(stream);
    }
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

    /// Waits for the next signal. Prints a dump if one `is_due`, and for each signal that has come
    /// already.
    fn listen(self: Arc<Self>, mut is_due: bool) {
        while mem::take(&mut is_due) || self.poll().is_ready() {
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            let lists = shared.settings.lists_tasks;
            let dump = lists.then(|| dump(&shared, None, None, LIMIT));
            let title = shared.title();
            drop(shared);
            (self.print)(text(&title, dump.as_deref()));
        }
    }

    /// Listens on a thread of its own.
    fn start(self: Arc<Self>, is_due: bool) {
        let again = self.clone();
        let thread = thread::Builder::new().name(self.thread.clone());
        let dumps = move || {
            if let Some(shared) = self.shared.upgrade() {
                shared.monitor.apply_attributes();
            }
            self.listen(is_due);
        };
        // A refused thread loses this signal, and the next one tries again.
        if thread.spawn(dumps).is_err() {
            while again.poll().is_ready() {}
        }
    }
}

impl Wake for Listener {
    fn wake(self: Arc<Self>) {
        self.start(false);
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
