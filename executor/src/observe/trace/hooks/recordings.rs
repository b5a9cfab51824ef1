//! `Recordings`: when a runtime saves its recorder's events by itself, and where.
use crate::Snapshot;
use std::{fmt, io, path::Path, path::PathBuf, sync::Arc, time::Duration};

type Predicate = Arc<dyn Fn(&Snapshot) -> bool + Send + Sync>;
type Report = Arc<dyn Fn(Result<&Path, &io::Error>) + Send + Sync>;

/// The occasion of a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Stall,
    Panic,
    Predicate,
    Signal,
}

impl Reason {
    pub(super) const ALL: [Self; 4] = [Self::Stall, Self::Panic, Self::Predicate, Self::Signal];

    /// Returns the word in the names of the files.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Stall => "stall",
            Self::Panic => "panic",
            Self::Predicate => "predicate",
            Self::Signal => "signal",
        }
    }
}

/// Settings by which a runtime saves its recorder's events by itself: see
/// [`Builder::save_recordings`](crate::Builder::save_recordings).
///
/// By default the runtime saves at a stall and at a panic.
///
/// | occasion | seen by |
/// |---|---|
/// | [a stall](Self::on_stall) | the monitor, when it [reports](crate::Builder::on_stall) a long poll |
/// | [a panic](Self::on_panic) | a task, local task or blocking closure of the runtime; the drop of a runtime by a panic |
/// | [a predicate](Self::when) | a look each second |
/// | a signal (`on_signal`) | feature `signal`, on Unix |
///
/// # Files
/// Each save makes a file of the last part of the recording, as long as the builder's
/// [`flight_recorder`](crate::Builder::flight_recorder) says. The file is JSON, for Perfetto and
/// for the browsers' viewers. A thread of the recorder's own writes it: under another name, until
/// it is whole. At its end the runtime waits for a save in progress, as it waits for its threads;
/// if the process ends earlier, a file with the ending `.part` stays.
///
/// The folder is made at the first save. After each save the oldest files go, until there are at
/// most [`files`](Self::files) and [`bytes`](Self::bytes), and none beyond the [`age`](Self::age);
/// the new file never goes. Only files with the name and the first bytes of such a recording count
/// and go, also those of earlier processes. A `.part` goes once it is an hour old.
///
/// # Limits
/// There is one save at a time, and for each occasion at most one in the time
/// [`apart`](Self::apart); a signal has no such limit. A save costs memory for a copy of the
/// events, and processor time on its thread.
///
/// ```
/// use selvedge_executor::{Builder, Recordings};
/// use std::{sync::mpsc, time::Duration};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let (sender, saved) = mpsc::channel();
/// let recordings = Recordings::new(folder)
///     .on_stall(false)
///     .on_panic(true)
///     .when(|metrics| metrics.spawns > 1_000_000)
///     .apart(Duration::from_secs(10))
///     .files(3)
///     .bytes(100 << 20)
///     .age(Duration::from_secs(7 * 86_400))
///     .report(move |result| drop(sender.send(result.unwrap().to_owned())));
/// let runtime = Builder::new()
///     .flight_recorder(Duration::from_secs(10))
///     .save_recordings(recordings)
///     .build()?;
/// runtime.spawn_detached(async { panic!("oh no") });
/// let file = saved.recv().unwrap();
/// assert!(std::fs::read_to_string(file)?.contains("a panic"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "settings do nothing before `Builder::save_recordings`"]
pub struct Recordings {
    pub(super) folder: PathBuf,
    pub(super) on_stall: bool,
    pub(super) on_panic: bool,
    pub(super) predicate: Option<Predicate>,
    #[cfg(all(unix, feature = "signal"))]
    pub(super) signal: Option<net_driver::signal::unix::SignalKind>,
    pub(super) files: usize,
    pub(super) bytes: u64,
    pub(super) age: Duration,
    pub(super) apart: Duration,
    pub(super) report: Option<Report>,
}

impl Recordings {
    /// Saves into this folder, at a stall and at a panic. A relative path counts from the working
    /// directory that the process has when the runtime is built.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            on_stall: true,
            on_panic: true,
            predicate: None,
            #[cfg(all(unix, feature = "signal"))]
            signal: None,
            files: 10,
            bytes: 512 << 20,
            age: Duration::MAX,
            apart: Duration::from_secs(60),
            report: None,
        }
    }

    /// Sets whether a stall leads to a save. On by default. A runtime without a
    /// [monitor](crate::Builder::monitor) sees no stalls.
    pub fn on_stall(mut self, on: bool) -> Self {
        self.on_stall = on;
        self
    }

    /// Sets whether a panic leads to a save. On by default. A program that is built to abort at a
    /// panic saves nothing then.
    pub fn on_panic(mut self, on: bool) -> Self {
        self.on_panic = on;
        self
    }

    /// Saves when this predicate returns true. It gets a snapshot each second, also while the
    /// runtime is idle. A predicate that panics is called no more.
    pub fn when(mut self, predicate: impl Fn(&Snapshot) -> bool + Send + Sync + 'static) -> Self {
        self.predicate = Some(Arc::new(predicate));
        self
    }

    /// Saves at each signal of this kind. From then on the process no longer dies of that signal.
    ///
    /// ```
    /// use net_driver::signal::unix::SignalKind;
    ///
    /// let recordings = selvedge_executor::Recordings::new("/var/tmp/recordings");
    /// let recordings = recordings.on_signal(SignalKind::quit());
    /// # drop(recordings);
    /// ```
    #[cfg(all(unix, feature = "signal"))]
    pub fn on_signal(mut self, kind: net_driver::signal::unix::SignalKind) -> Self {
        self.signal = Some(kind);
        self
    }

    /// Sets how many files stay in the folder. 10 by default. The newest file always stays.
    pub fn files(mut self, files: usize) -> Self {
        self.files = files;
        self
    }

    /// Sets how many bytes the files in the folder may have together. 512 MiB by default. The
    /// newest file always stays, even if it is larger.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the age from which on a file goes, by the time at which it was last written. There is
    /// no limit by default. As with the other limits, files go after a save, and the newest file
    /// always stays.
    pub fn age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }

    /// Sets the least time between two saves of one occasion. A minute by default. An occasion
    /// that comes earlier is only counted, for a note in the next file.
    pub fn apart(mut self, time: Duration) -> Self {
        self.apart = time;
        self
    }

    /// Sets a hook for the path of each saved file, and for each error. Without a hook, a line on
    /// the standard error says so. The recorder's own thread calls the hook.
    pub fn report(
        mut self,
        hook: impl Fn(Result<&Path, &io::Error>) + Send + Sync + 'static,
    ) -> Self {
        self.report = Some(Arc::new(hook));
        self
    }
}

impl fmt::Debug for Recordings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recordings")
            .field("folder", &self.folder)
            .field("on_stall", &self.on_stall)
            .field("on_panic", &self.on_panic)
            .field("files", &self.files)
            .field("bytes", &self.bytes)
            .field("age", &self.age)
            .field("apart", &self.apart)
            .finish_non_exhaustive()
    }
}

/// The part of a lane's time that the events of a flight recorder may take. It is a half of the
/// 3 % at which the docs say it aims: tasks that were only spawned and joined lost up to twice as
/// much as the estimate of an event's cost says.
pub(super) const PART: f64 = 0.015;

/// The number of events for which a worker has room, unless the builder says otherwise.
const EVENTS: usize = 1 << 16;

/// The least and the most events for which a worker has room.
const LEAST: usize = 1 << 10;
const MOST: usize = 1 << 25;

/// The memory of a flight recorder, unless the builder says otherwise.
const MEMORY: usize = 16 << 20;

/// The bytes of an event.
const EVENT_BYTES: usize = 32;

/// The builder's settings of the recorder.
#[derive(Clone, Default)]
pub(crate) struct RecorderSettings {
    /// The time that a flight recorder keeps.
    pub(crate) keep: Option<Duration>,
    pub(crate) memory: Option<usize>,
    pub(crate) recordings: Option<Recordings>,
}

impl RecorderSettings {
    /// Returns for how many events a worker has room, of as many workers.
    pub(super) fn capacity(&self, workers: usize) -> usize {
        let Some(bytes) = self.memory.or(self.keep.map(|_| MEMORY)) else {
            return EVENTS;
        };
        let events = bytes / EVENT_BYTES / workers.max(1);
        1 << events.clamp(LEAST, MOST).ilog2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_by_the_workers_within_bounds() {
        let with = |memory| RecorderSettings {
            memory,
            ..RecorderSettings::default()
        };
        assert_eq!(with(None).capacity(2), EVENTS);
        assert_eq!(with(Some(0)).capacity(2), LEAST);
        assert_eq!(with(Some(usize::MAX)).capacity(1), MOST);
        assert_eq!(with(Some(1 << 20)).capacity(1), 1 << 15);
        assert_eq!(with(Some(1 << 20)).capacity(3), 1 << 13);
        let flight = RecorderSettings {
            keep: Some(Duration::MAX),
            ..RecorderSettings::default()
        };
        assert_eq!(flight.capacity(2) * EVENT_BYTES * 2, MEMORY);
    }
}
