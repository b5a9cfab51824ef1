//! `Tracer`: starts and stops the recorder of a runtime, and saves the recorded events.
use super::Capture;
use crate::Handle;
use std::{io, path::Path, time::Duration};
use task_trace::recorder::Recorder;

/// The recorder of a runtime's events: spawns, polls, wakes, steals and sleeps, with a lane for
/// each worker.
///
/// Each worker records into a buffer of its own, without a lock and without a read-modify-write.
/// The buffer keeps the newest events. So the recorder may run for as long as you like, and you may
/// save the events when something was slow.
///
/// To have it run from the first poll on, see
/// [`Builder::flight_recorder`](crate::Builder::flight_recorder).
///
/// While the recorder is off, an event costs a load and a branch. While it is on, an event costs a
/// reading of the clock and six stores. The begin and the end of a poll are one event each, and
/// cost one more store each. A wake is one event. Without the feature `recorder` there is no code
/// for the recorder at all.
///
/// ```
/// use selvedge_executor::{Builder, TaskBuilder};
///
/// let runtime = Builder::new().workers(2).build()?;
/// let tracer = runtime.handle().trace();
/// tracer.start();
/// let task = TaskBuilder::new().name("answer").spawn_on(async { 42 }, runtime.handle());
/// runtime.block_on(task).unwrap();
/// assert!(tracer.is_on());
/// tracer.stop();
/// # let folder = tempfile::tempdir()?;
/// # std::env::set_current_dir(&folder)?;
/// tracer.save("trace.json")?; // For https://ui.perfetto.dev and chrome://tracing.
/// tracer.save("trace.html")?; // A page that needs no network.
/// assert!(std::fs::read_to_string("trace.json")?.contains("answer"));
/// # std::env::set_current_dir("/")?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A task is shown by the name that [`TaskBuilder`](crate::TaskBuilder) gave it, or else by the
/// place where it was spawned. The place is known only if the recorder was on at the spawn.
#[derive(Clone, Debug)]
pub struct Tracer(Handle);

impl Handle {
    /// Returns the recorder of this runtime's events. Needs the feature `recorder`.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let tracer = runtime.handle().trace();
    /// assert!(!tracer.is_on());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn trace(&self) -> Tracer {
        Tracer(self.clone())
    }
}

impl Tracer {
    fn recorder(&self) -> &Recorder {
        self.0.shared().trace.recorder()
    }

    /// Starts recording. A later start drops the events that were recorded before.
    ///
    /// The first start makes room for 65,536 events (2 MiB) for each worker, unless the builder has
    /// set [the memory](crate::Builder::flight_recorder_memory). A
    /// [flight recorder](crate::Builder::flight_recorder) has started already, with the room and the
    /// limit that it has.
    ///
    /// ```
    /// let builder = selvedge_executor::Builder::new().workers(1).flight_recorder_memory(32 << 10);
    /// let runtime = builder.build()?;
    /// let tracer = runtime.handle().trace();
    /// tracer.start();
    /// for _ in 0..2_000 {
    ///     runtime.block_on(runtime.spawn(async {})).unwrap();
    /// }
    /// let capture = tracer.capture();
    /// let worker = &capture.lanes()[0];
    /// assert!(worker.events.len() <= 1_024 && worker.lost > 1_024);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(&self) {
        self.0.shared().trace.start();
    }

    /// Stops recording. The recorded events stay until the next start.
    pub fn stop(&self) {
        self.recorder().stop();
    }

    /// Returns whether events are recorded: since a start, and until a stop.
    pub fn is_on(&self) -> bool {
        self.recorder().is_started()
    }

    /// Copies what was recorded since the start. The workers go on meanwhile.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
    /// let tracer = runtime.handle().trace();
    /// tracer.start();
    /// runtime.block_on(runtime.spawn(async {})).unwrap();
    /// let capture: selvedge_executor::Capture = tracer.capture();
    /// assert_eq!(capture.lanes()[0].name, "worker 0");
    /// assert!(!capture.lanes()[0].events.is_empty());
    /// let mut json = Vec::new();
    /// capture.write_chrome(&mut json)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn capture(&self) -> Capture {
        self.recorder().capture()
    }

    /// Copies what was recorded in the last so long, but nothing from before the start. A poll or a
    /// sleep that was in progress then is whole, if its begin was not overwritten. Times count from
    /// the start.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let keep = Duration::from_secs(30);
    /// let runtime = selvedge_executor::Builder::new().workers(1).flight_recorder(keep).build()?;
    /// runtime.block_on(runtime.spawn(async {})).unwrap();
    /// let tracer = runtime.handle().trace();
    /// let (all, none) = (tracer.capture_last(Duration::MAX), tracer.capture_last(Duration::ZERO));
    /// assert!(all.lanes()[0].events.len() > none.lanes()[0].events.len());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn capture_last(&self, last: Duration) -> Capture {
        self.recorder().capture_last(last)
    }

    /// Saves what [`capture_last`](Self::capture_last) copies, as [`save`](Self::save) does.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let keep = Duration::from_secs(30);
    /// let runtime = selvedge_executor::Builder::new().workers(1).flight_recorder(keep).build()?;
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("last.json");
    /// runtime.handle().trace().save_last(&file, Duration::from_secs(5))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save_last(&self, path: impl AsRef<Path>, last: Duration) -> io::Result<()> {
        self.capture_last(last).save(path)
    }

    /// Saves what was recorded since the start: as a page of HTML if the name ends in `.html`, or
    /// else as Chrome's trace-event JSON, which Perfetto opens, too.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.capture().save(path)
    }
}
