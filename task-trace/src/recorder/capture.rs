//! A capture: the events of all lanes at one moment, with the tasks' names.
use super::{
    Event,
    event::{Words, is_of_observer},
    lane::tick,
    ring::RingCopy,
};
use std::{collections::HashMap, fmt, panic::Location, time::Duration};

/// An event and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stamped {
    /// The time since the recorder's last start.
    pub at: Duration,
    /// The event.
    pub event: Event,
}

/// The events of one lane, the oldest first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneCapture {
    /// The name: "worker 0", or the thread's name.
    pub name: String,
    /// The worker's index, if the lane is a worker's.
    pub worker: Option<usize>,
    /// The events.
    pub events: Vec<Stamped>,
    /// The number of older events of this lane that were overwritten.
    pub lost: u64,
}

/// The events of a recorder; see [`Recorder::capture`](super::Recorder::capture).
///
/// ```
/// use task_trace::recorder::{Event, Recorder};
///
/// let recorder = Recorder::new(1);
/// recorder.start(64);
/// recorder.worker(0).name(7, "reader");
/// recorder.worker(0).poll_begin(7, true);
/// let capture = recorder.capture();
/// let begin = capture.lanes()[0].events[0];
/// assert_eq!(begin.event, Event::PollBegin { task: 7, named: true });
/// assert!(begin.at <= capture.duration());
/// assert_eq!(capture.name(7, begin.at), "reader");
///
/// let (mut json, mut html) = (Vec::new(), Vec::new());
/// capture.write_chrome(&mut json)?;
/// capture.write_html(&mut html)?;
/// assert!(html.len() > json.len());
/// # if false {
/// capture.save("trace.html")?;
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Capture {
    times: Times,
    scale: Box<dyn Fn(u64) -> Duration + Send + Sync>,
    places: Vec<&'static Location<'static>>,
    lanes: Vec<LaneCapture>,
    /// The names of each task id, in the order of their ticks: several tasks may have the same id
    /// in turn.
    names: HashMap<u64, Vec<Named>>,
    gaps: Vec<(Duration, Duration)>,
    notes: Vec<(String, String)>,
    end: Duration,
}

/// The times of a capture, in ticks.
pub(super) struct Times {
    /// The recorder's last start.
    pub(super) since: u64,
    /// The begin of the part of which all recorded events are there. Before it there are those of
    /// the sparse windows.
    pub(super) cut: u64,
    /// The begin of the part that is captured.
    pub(super) first: u64,
    /// The capture.
    pub(super) end: u64,
    /// The begin and the end of each part in which nothing was recorded, the oldest first.
    pub(super) gaps: Vec<(u64, u64)>,
}

/// The name that a task has from a tick on.
struct Named {
    from: u64,
    name: Name,
}

enum Name {
    /// The task's builder gave the name.
    Custom(String),
    /// The place where the task was spawned.
    Place(&'static Location<'static>),
}

impl Capture {
    pub(super) fn new(
        times: Times,
        scale: impl Fn(u64) -> Duration + Send + Sync + 'static,
        places: Vec<&'static Location<'static>>,
    ) -> Self {
        let mut capture = Self {
            scale: Box::new(scale),
            places,
            lanes: Vec::new(),
            names: HashMap::new(),
            gaps: Vec::new(),
            notes: Vec::new(),
            end: Duration::ZERO,
            times,
        };
        capture.end = capture.at(capture.times.end);
        let gaps = capture.times.gaps.iter();
        let gaps = gaps.filter(|gap| gap.1 > capture.times.first);
        capture.gaps = gaps
            .map(|gap| (capture.at(gap.0), capture.at(gap.1)))
            .collect();
        capture
    }

    /// Returns the time from the start to a tick. It is zero for a tick before the start.
    fn at(&self, tick: u64) -> Duration {
        (self.scale)(tick).saturating_sub((self.scale)(self.times.since))
    }

    pub(super) fn add(
        &mut self,
        name: String,
        worker: Option<usize>,
        [recent, sparse]: [RingCopy<4>; 2],
        names: Vec<(u64, u64, String)>,
    ) {
        let cut = self.times.cut;
        let old = sparse.records.iter().filter(|words| tick(words) < cut);
        // An observer also records while the recorder pauses, and its events are few.
        let new = |words: &&Words| tick(words) >= cut || is_of_observer(words);
        let mut records: Vec<_> = old.chain(recent.records.iter().filter(new)).collect();
        records.sort_by_key(|words| tick(words));
        records.dedup();
        let mut events = Vec::new();
        // The begin of the poll or sleep that is in progress when the captured part begins.
        let mut open = None;
        records.retain(|words| tick(words) >= self.times.since);
        for words in records {
            let Some(event) = Event::decode(*words, &self.places) else {
                continue;
            };
            let from = tick(words);
            let at = self.at(from);
            if let Event::Spawn {
                task,
                location: Some(place),
                ..
            } = event
            {
                let name = Name::Place(place);
                let names = self.names.entry(task).or_default();
                names.push(Named { from, name });
            }
            let stamped = Stamped { at, event };
            if from >= self.times.first {
                events.extend(open.take());
                events.push(stamped);
                continue;
            }
            match event {
                Event::PollBegin { .. } | Event::Park => open = Some(stamped),
                Event::PollEnd { .. } | Event::Unpark { .. } => open = None,
                _ => {}
            }
        }
        events.extend(open);
        for (from, task, name) in names {
            let name = Name::Custom(name);
            let names = self.names.entry(task).or_default();
            names.push(Named { from, name });
        }
        if worker.is_some() || !events.is_empty() {
            self.lanes.push(LaneCapture {
                name,
                worker,
                events,
                lost: recent.lost,
            });
        }
    }

    pub(super) fn finish(mut self) -> Self {
        for names in self.names.values_mut() {
            names.sort_by_key(|named| named.from);
        }
        self
    }

    /// Returns the lanes: the workers in order, then the other threads that have recorded an event.
    pub fn lanes(&self) -> &[LaneCapture] {
        &self.lanes
    }

    /// Returns the begin and the end of each part in which nothing was recorded, as the recorder
    /// paused. See [`Recorder::start_limited`](super::Recorder::start_limited).
    ///
    /// ```
    /// let recorder = task_trace::recorder::Recorder::new(1);
    /// recorder.start(64);
    /// assert!(recorder.capture().gaps().is_empty());
    /// ```
    pub fn gaps(&self) -> &[(Duration, Duration)] {
        &self.gaps
    }

    /// Adds a note, for example why the events are saved. The file of JSON has the notes at its
    /// begin, among its `otherData`, in the order in which they were added.
    ///
    /// ```
    /// use task_trace::recorder::Recorder;
    ///
    /// let mut capture = Recorder::new(1).capture();
    /// capture.note("program", "reader");
    /// let mut json = Vec::new();
    /// capture.write_chrome(&mut json)?;
    /// let begin = br#"{"displayTimeUnit":"ns","otherData":{"program":"reader"}"#;
    /// assert!(json.starts_with(begin));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn note(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.notes.push((name.into(), text.into()));
    }

    pub(super) fn notes(&self) -> &[(String, String)] {
        &self.notes
    }

    /// Returns the time from the start to the capture.
    pub fn duration(&self) -> Duration {
        self.end
    }

    /// Returns the name of the task that had this id at that time: the name that its builder gave
    /// it, or the place where it was spawned. If the recorder knows neither, returns the id.
    pub fn name(&self, task: u64, at: Duration) -> String {
        self.name_of(task, at, true)
    }

    /// Returns the newest name that this id had by the time `at`. `named` says whether the task's
    /// builder gave the task a name. If it gave none, the names from builders are skipped, as they
    /// are those of earlier tasks with the same id.
    pub(super) fn name_of(&self, task: u64, at: Duration, named: bool) -> String {
        let names = self.names.get(&task).map_or(&[][..], |names| names);
        let count = names.partition_point(|entry| self.at(entry.from) <= at);
        let name = names[..count]
            .iter()
            .rev()
            .find_map(|entry| match &entry.name {
                Name::Custom(name) => named.then(|| name.clone()),
                Name::Place(place) => Some(format!("{}:{}", short(place.file()), place.line())),
            });
        name.unwrap_or_else(|| format!("task {task:#x}"))
    }
}

/// Returns the last two parts of a path.
fn short(file: &str) -> &str {
    let mut cuts = file.rmatch_indices(['/', '\\']).map(|(at, _)| at);
    cuts.nth(1).map_or(file, |at| &file[at + 1..])
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture")
            .field("lanes", &self.lanes)
            .field("duration", &self.end)
            .finish_non_exhaustive()
    }
}
