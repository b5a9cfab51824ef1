//! The thread that saves the recorder's events.
//!
//! 1. A *request* names an occasion. The thread that sees the occasion, a worker for example, only
//!    sets a flag under a lock and wakes the saving thread.
//! 2. The saving thread copies the events, and writes the file without a lock. So there is one save
//!    at a time, and a request during a save leads to one more.
//! 3. Each occasion but a signal has a limit ([`Recordings::apart`]): earlier requests are counted.
//! 4. When the runtime closes, the thread saves for the requests that it has got, and ends. The
//!    runtime's owner waits for it, as for the runtime's other threads. The thread keeps the
//!    runtime's memory until its end.
//! 5. User code runs on this thread: the predicate, and the hook for reports. Their panics are
//!    contained.
use super::{
    folder,
    recordings::{Reason, Recordings},
};
use crate::{fork::Process, scope, worker::shared::Shared};
use std::{
    io::{self, Write},
    mem,
    path::Path,
    thread,
    time::{Duration, Instant},
};
use sync_shim::{
    panics,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::{now, since},
};

#[cfg(all(unix, feature = "signal"))]
mod signals;

/// The time between two looks of the predicate.
const LOOKS: Duration = Duration::from_secs(1);

/// The state that the saving thread and the threads that ask for a save share.
pub(super) struct Saver {
    settings: Option<Recordings>,
    state: Mutex<State>,
    changed: Condvar,
    /// The process that has the thread (checked after `fork`).
    process: Process,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    /// The requests, by the number of their occasion.
    requests: [bool; Reason::ALL.len()],
    is_closing: bool,
    /// Whether the thread runs, from before its start until it has ended its work.
    runs: bool,
}

impl Saver {
    pub(super) fn new(mut settings: Option<Recordings>) -> Self {
        if let Some(settings) = &mut settings {
            // A daemon may change its working directory later.
            let folder = std::path::absolute(&settings.folder);
            settings.folder = folder.unwrap_or_else(|_| settings.folder.clone());
        }
        Self {
            settings,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            process: Process::this(),
            thread: Mutex::new(None),
        }
    }

    /// Starts the thread, if there is a folder. An error is reported.
    pub(super) fn start(&self, shared: &Arc<Shared>) {
        // The events of a simulation are not those of this machine's time.
        let Some(settings) = self.settings.as_ref().filter(|_| !cfg!(selvedge_sim)) else {
            return;
        };
        self.state.lock().runs = true;
        let own = shared.clone();
        let run = move || {
            scope::mark_own_thread(&own.hooks);
            own.trace.saver().run(&own);
        };
        let name = format!("{}-recorder", shared.settings.thread_name);
        match thread::Builder::new().name(name).spawn(run) {
            Ok(thread) => *self.thread.lock() = Some(thread),
            Err(error) => {
                self.state.lock().runs = false;
                report(settings, Err(&error));
            }
        }
    }

    /// Asks for a save, if the settings have this occasion. Does nothing in a child made by `fork`:
    /// it has no saving thread, and another thread may have held the lock.
    pub(super) fn request(&self, reason: Reason) {
        let Some(settings) = self.settings.as_ref().filter(|_| !self.process.is_gone()) else {
            return;
        };
        let is_set = match reason {
            Reason::Stall => settings.on_stall,
            Reason::Panic => settings.on_panic,
            Reason::Predicate | Reason::Signal => true,
        };
        if is_set {
            self.state.lock().requests[reason as usize] = true;
            self.changed.notify_all();
        }
    }

    /// Whether a panic leads to a save.
    pub(super) fn saves_on_panic(&self) -> bool {
        self.settings
            .as_ref()
            .is_some_and(|settings| settings.on_panic)
    }

    /// Lets the thread end, once it has saved for the requests so far.
    pub(super) fn close(&self) {
        self.state.lock().is_closing = true;
        self.changed.notify_all();
    }

    /// Waits until the thread has ended its work, up to `limit`. Returns whether it has.
    pub(super) fn wait(&self, limit: Option<Duration>) -> bool {
        if self.wait_while(limit, |state| state.runs).runs {
            return false;
        }
        if let Some(thread) = self.thread.lock().take() {
            // Panics of user code are contained.
            let _ = thread.join();
        }
        true
    }

    /// Waits for requests. Returns them, and whether the thread is to end after them. Returns no
    /// request if `limit` is over.
    fn next(&self, limit: Option<Duration>) -> ([bool; Reason::ALL.len()], bool) {
        let mut state = self.wait_while(limit, |state| {
            !state.is_closing && state.requests == [false; Reason::ALL.len()]
        });
        (mem::take(&mut state.requests), state.is_closing)
    }

    /// Waits while `goes_on` says so, up to `limit`.
    fn wait_while(
        &self,
        limit: Option<Duration>,
        goes_on: impl Fn(&State) -> bool,
    ) -> MutexGuard<'_, State> {
        // A limit beyond the clock's end is none.
        let deadline = limit.and_then(|limit| now().checked_add(limit));
        let mut state = self.state.lock();
        while goes_on(&state) {
            let Some(deadline) = deadline else {
                state = self.changed.wait(state);
                continue;
            };
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).0;
        }
        state
    }

    /// The body of the thread.
    fn run(&self, shared: &Arc<Shared>) {
        /// Says that the thread has ended its work, also at a panic.
        struct Ended<'a>(&'a Saver);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.state.lock().runs = false;
                self.0.changed.notify_all();
            }
        }
        let _ended = Ended(self);
        let Some(settings) = &self.settings else {
            return;
        };
        #[cfg(all(unix, feature = "signal"))]
        let mut signal = settings.signal.and_then(|kind| {
            let listener = signals::Listener::new(kind, shared);
            listener.map_err(|error| report(settings, Err(&error))).ok()
        });
        #[cfg(all(unix, feature = "signal"))]
        if signal.as_mut().is_some_and(signals::Listener::has_come) {
            self.request(Reason::Signal);
        }
        let mut predicate = settings.predicate.as_ref();
        let mut next_look = now() + LOOKS;
        let mut saves: [Saves; Reason::ALL.len()] = Default::default();
        loop {
            let until_look = next_look.saturating_duration_since(now());
            let (mut requests, is_closing) = self.next(predicate.map(|_| until_look));
            #[cfg(all(unix, feature = "signal"))]
            if let Some(signal) = &mut signal {
                requests[Reason::Signal as usize] |= signal.has_come();
            }
            if let Some(is_time) = predicate.filter(|_| now() >= next_look && !is_closing) {
                next_look = now() + LOOKS;
                let snapshot = crate::Snapshot::of(shared);
                match panics::catch(|| is_time(&snapshot)) {
                    Ok(is_time) => requests[Reason::Predicate as usize] |= is_time,
                    Err(payload) => {
                        shared.hooks.panicked(&*payload);
                        panics::discard(payload);
                        predicate = None;
                        report(settings, Err(&io::Error::other("the predicate panicked")));
                    }
                }
            }
            for reason in Reason::ALL {
                if requests[reason as usize] {
                    let held_back = saves[reason as usize].permit(settings, reason);
                    if let Some(held_back) = held_back {
                        save(settings, shared, reason, held_back);
                    }
                }
            }
            if is_closing {
                return;
            }
        }
    }
}

/// The saves of one occasion.
#[derive(Default)]
struct Saves {
    last: Option<Instant>,
    held_back: u64,
}

impl Saves {
    /// Returns the number of requests since the last save that had no save, if there may be a save
    /// now. Otherwise counts the request.
    fn permit(&mut self, settings: &Recordings, reason: Reason) -> Option<u64> {
        let is_early = self.last.is_some_and(|last| since(last) < settings.apart);
        if is_early && reason != Reason::Signal {
            self.held_back += 1;
            return None;
        }
        self.last = Some(now());
        Some(mem::take(&mut self.held_back))
    }
}

/// Saves the last part of the recording, and reports the file or the error.
fn save(settings: &Recordings, shared: &Shared, reason: Reason, held_back: u64) {
    let mut capture = shared.trace.capture_kept();
    capture.note(folder::WRITER.0, folder::WRITER.1);
    capture.note("saved because of", format!("a {}", reason.word()));
    capture.note("runtime", shared.title());
    if held_back > 0 {
        capture.note("occasions without a file", held_back.to_string());
    }
    let saved = folder::save(settings, reason, |to| capture.write_chrome(to));
    let result = saved.as_deref();
    panics::contain(|| report(settings, result));
}

/// Calls the hook for reports. Without one, writes a line to the standard error.
fn report(settings: &Recordings, result: Result<&Path, &io::Error>) {
    if let Some(hook) = &settings.report {
        return panics::contain(|| hook(result));
    }
    let mut stderr = io::stderr().lock();
    // If nobody can read the line, nobody misses it.
    let _ = match result {
        Ok(path) => writeln!(stderr, "selvedge: saved a recording: {}", path.display()),
        Err(error) => writeln!(stderr, "selvedge: the recorder: {error}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_folder_is_that_of_the_build() {
        let saver = Saver::new(Some(Recordings::new("some/folder")));
        let folder = &saver.settings.as_ref().unwrap().folder;
        assert_eq!(
            *folder,
            std::env::current_dir().unwrap().join("some/folder")
        );
    }
}
