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
    /// All gaps, the oldest first.
    gaps: Vec<(Duration, Duration)>,
    /// The number of those that are over before the captured part.
    earlier_gaps: usize,
    notes: Vec<(String, String)>,
    end: Duration,
}

/// The times of a capture, in ticks.
pub(super) struct Times {
    /// The recorder's last start.
    pub(super) since: u64,
    /// The begin of the part of which the events of sparse windows are there.
    pub(super) sparse_cut: u64,
    /// The begin of the part of which all recorded events are there.
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
    /// A poll has shown that the task has a name from its builder.
    Given,
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
            earlier_gaps: 0,
            notes: Vec::new(),
            end: Duration::ZERO,
            times,
        };
        capture.end = capture.at(capture.times.end);
        let gaps = &capture.times.gaps;
        capture.earlier_gaps = gaps.partition_point(|gap| gap.1 <= capture.times.first);
        let gaps = gaps.iter();
        let gaps = gaps.map(|gap| (capture.at(gap.0), capture.at(gap.1)));
        capture.gaps = gaps.collect();
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
        let Times {
            since,
            sparse_cut,
            cut,
            end,
            ..
        } = self.times;
        let is_old = |words: &&Words| (sparse_cut..cut).contains(&tick(words));
        let old = sparse.records.iter().filter(is_old);
        // An observer also records while the recorder pauses, and its events are few.
        let new = |words: &&Words| tick(words) >= cut || is_of_observer(words);
        let mut records: Vec<_> = old.chain(recent.records.iter().filter(new)).collect();
        records.sort_by_key(|words| tick(words));
        records.dedup();
        let mut events = Vec::new();
        // The begin of the poll or sleep that is in progress when the captured part begins.
        let mut open = None;
        records.retain(|words| (since..=end).contains(&tick(words)));
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
            if let Event::PollBegin { task, named: true } = event {
                self.note_named(task, from);
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

    /// Notes that a task had a name from its builder at this tick, once for each window.
    fn note_named(&mut self, task: u64, from: u64) {
        let at = self.at(from);
        let last = self.names.get(&task).and_then(|names| names.last());
        let is_noted = last.is_some_and(|last| {
            matches!(last.name, Name::Given) && self.is_whole(self.at(last.from), at)
        });
        if !is_noted {
            let name = Name::Given;
            let names = self.names.entry(task).or_default();
            names.push(Named { from, name });
        }
    }

    /// Returns whether there is no gap between these times. Then all spawns between them are there.
    fn is_whole(&self, from: Duration, to: Duration) -> bool {
        let next = self.gaps.partition_point(|gap| gap.1 <= from);
        self.gaps.get(next).is_none_or(|gap| gap.0 > to)
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
        &self.gaps[self.earlier_gaps..]
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
    /// it, or the place where it was spawned. If the recorder knows neither, returns the id: a task
    /// that was spawned in a [gap](Self::gaps) may have the id of an earlier one.
    pub fn name(&self, task: u64, at: Duration) -> String {
        self.name_of(task, at, None)
    }

    /// Returns the newest name that this id had by the time `at`. `named` says whether the task's
    /// builder gave the task a name, if that is known. If it gave none, the names from builders are
    /// skipped, as they are those of earlier tasks with the same id.
    ///
    /// Names from builders are always recorded. So the newest one is that of the task if the task
    /// has one. Each other name counts only if there is no gap between it and `at`.
    pub(super) fn name_of(&self, task: u64, at: Duration, named: Option<bool>) -> String {
        let names = self.names.get(&task).map_or(&[][..], |names| names);
        let count = names.partition_point(|entry| self.at(entry.from) <= at);
        let (earlier, later) = names.split_at(count);
        let next = later
            .first()
            .filter(|next| self.is_whole(at, self.at(next.from)));
        let is_given = next.is_some_and(|next| matches!(next.name, Name::Given));
        let mut named = named.or(is_given.then_some(true));
        let name = earlier.iter().rev().find_map(|entry| {
            let counts = self.is_whole(self.at(entry.from), at);
            match &entry.name {
                Name::Custom(name) => named.unwrap_or(counts).then(|| name.clone()),
                Name::Place(place) => {
                    counts.then(|| format!("{}:{}", short(place.file()), place.line()))
                }
                Name::Given => {
                    named = named.or(counts.then_some(true));
                    None
                }
            }
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
