//! Writes a capture as Chrome's trace-event JSON.
//!
//! | event | in the file |
//! |---|---|
//! | a poll | a slice (`X`) of category `poll`, named as the task |
//! | a sleep | a slice of category `park` |
//! | a wake | an arrow (`s`, `f`) of category `wake` to the poll that it led to |
//! | a spawn | an arrow of category `spawn` to the task's first poll |
//! | a notification | an arrow of category `notify` to the end of the sleep |
//! | a poll that an observer saw last | a slice of category `long`, in a lane of its own for each worker |
//! | a thread that was ready to run, and had no CPU | a slice of category `wait`, in a lane of its own for each worker |
//! | a gap | a slice of category `gap`, in a lane of its own |
//! | all else | an instant (`i`) |
//!
//! No slice and no arrow goes across a gap: a poll or a sleep that is in progress as the gap begins
//! ends there.
//!
//! A *slice* is an event with a duration, which a viewer shows as a bar. An arrow begins in a
//! slice. If no poll is in progress there, as in a thread that is no worker, a slice of a
//! nanosecond is written for the arrow. `<` is always escaped, so that the text can be part of an
//! HTML page.
use super::{Capture, Event, Stamped};
use observed::Observed;
use out::{Micros, Out, PROCESS, Text};
use std::{
    collections::HashMap,
    fmt::Write as _,
    io::{self, Write},
    time::Duration,
};

mod observed;
mod out;

/// The origin of an arrow: a wake, a spawn or a notification.
struct Origin {
    at: Duration,
    lane: usize,
    /// Whether the lane has a poll in progress at that time.
    in_slice: bool,
    category: &'static str,
    name: String,
    args: String,
    /// The end of the arrow, if it has one.
    end: Option<(Duration, usize)>,
}

/// The times and lanes at which arrows may end: for each task its polls, or for each worker the
/// ends of its sleeps.
type Ends = HashMap<u64, Vec<(Duration, usize)>>;

pub(super) fn write(capture: &Capture, to: &mut impl Write) -> io::Result<()> {
    let mut out = Out::begin(to, capture.notes())?;
    out.event(format_args!(
        "\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{PROCESS},\"args\":{{\"name\":\"scheduler\"}}"
    ))?;
    for (number, lane) in capture.lanes().iter().enumerate() {
        out.lane(number, &lane.name, lane.lost)?;
    }
    let mut observed = Observed::default();
    let mut origins = Vec::new();
    let (mut polls, mut wakes) = (Ends::new(), Ends::new());
    for (number, lane) in capture.lanes().iter().enumerate() {
        let mut slices = Slices {
            capture,
            lane: number,
            gaps: capture.gaps(),
            open: None,
            // If a lane begins with the end of a sleep, its worker has slept since the start.
            asleep: match lane.events.first().map(|first| first.event) {
                Some(Event::Unpark { .. }) if lane.lost == 0 => Some(Duration::ZERO),
                _ => None,
            },
            after_gap: None,
        };
        for stamped in &lane.events {
            slices.end_at_gaps(&mut out, stamped.at)?;
            slices.event(&mut out, stamped, &mut origins)?;
            match stamped.event {
                Event::PollBegin { task, .. } => {
                    polls.entry(task).or_default().push((stamped.at, number));
                }
                Event::Unpark { .. } => {
                    let worker = lane.worker.unwrap_or(usize::MAX) as u64;
                    wakes.entry(worker).or_default().push((stamped.at, number));
                }
                _ => observed.add(stamped),
            }
        }
        slices.end_at_gaps(&mut out, capture.duration())?;
        slices.close(&mut out, capture.duration())?;
    }
    polls.values_mut().for_each(|polls| polls.sort());
    for (number, (key, mut origin)) in origins.into_iter().enumerate() {
        let ends = match key {
            Key::Task(task) => polls.get(&task),
            Key::Worker(worker) => wakes.get(&worker),
        };
        let ends = ends.map_or(&[][..], |ends| ends);
        let end = ends.get(ends.partition_point(|end| end.0 < origin.at));
        let gaps = capture.gaps();
        let gap = gaps.get(gaps.partition_point(|gap| gap.0 < origin.at));
        origin.end = end
            .copied()
            .filter(|end| gap.is_none_or(|gap| end.0 < gap.0));
        origin.write(&mut out, number)?;
    }
    observed.write(&mut out, capture)?;
    out.end()
}

/// The target of an arrow.
enum Key {
    /// The next poll of a task.
    Task(u64),
    /// The next end of a worker's sleep.
    Worker(u64),
}

/// The slices of one lane, in order.
struct Slices<'a> {
    capture: &'a Capture,
    lane: usize,
    /// The gaps that are not over at the last event.
    gaps: &'a [(Duration, Duration)],
    /// The polled task, whether it has a name, and the time at which the poll began.
    open: Option<(u64, bool, Duration)>,
    asleep: Option<Duration>,
    /// The end of a gap, until the next poll or sleep begins.
    after_gap: Option<Duration>,
}

impl Slices<'_> {
    fn event(
        &mut self,
        out: &mut Out<'_, impl Write>,
        &Stamped { at, event }: &Stamped,
        origins: &mut Vec<(Key, Origin)>,
    ) -> io::Result<()> {
        let lane = self.lane;
        let in_slice = self.open.is_some();
        let origin = |category, name, args| Origin {
            at,
            lane,
            in_slice,
            category,
            name,
            args,
            end: None,
        };
        match event {
            Event::PollBegin { task, named } => {
                self.close_poll(out, at, "unknown")?;
                self.open = Some((task, named, at));
                (self.asleep, self.after_gap) = (None, None);
                Ok(())
            }
            Event::PollEnd { outcome, .. } => self.close_poll(out, at, outcome.name()),
            Event::Park => {
                (self.asleep, self.after_gap) = (Some(at), None);
                Ok(())
            }
            Event::Unpark { notified } => {
                let after_gap = self.after_gap.take();
                let Some(begun) = self.asleep.take().or(after_gap) else {
                    return Ok(()); // The begin of the sleep is lost.
                };
                let how = if notified { "a notification" } else { "itself" };
                let args = format!("\"ended by\":\"{how}\"");
                out.slice("park", "parked", lane, begun, at, &args)
            }
            Event::Spawn { task, by, .. } => {
                let args = self.by(by, at, task);
                let name = self.capture.name(task, at + Duration::from_micros(1));
                origins.push((Key::Task(task), origin("spawn", name, args)));
                Ok(())
            }
            Event::Wake { task, by, cause } => {
                let mut args = self.by(by, at, task);
                // A write to a `String` does not fail.
                let _ = write!(args, ",\"cause\":{}", Text(cause.name()));
                let name = self.capture.name(task, at);
                origins.push((Key::Task(task), origin("wake", name, args)));
                Ok(())
            }
            Event::Notify { worker } => {
                let name = format!("notify worker {worker}");
                let key = Key::Worker(worker as u64);
                origins.push((key, origin("notify", name, format!("\"worker\":{worker}"))));
                Ok(())
            }
            Event::Steal { from, tasks } => {
                let name = format!("steal {tasks} from worker {from}");
                out.instant("steal", &name, lane, at, &format!("\"tasks\":{tasks}"))
            }
            Event::StealSlot { from, task } => {
                let name = self.capture.name(task, at);
                let name = format!("steal {name} from worker {from}'s slot");
                out.instant("steal", &name, lane, at, "\"tasks\":1")
            }
            Event::Inject { tasks } => {
                let name = format!("take {tasks} from the injector");
                out.instant("inject", &name, lane, at, &format!("\"tasks\":{tasks}"))
            }
            Event::Overflow => out.instant("overflow", "overflow", lane, at, ""),
            Event::Slice => out.instant("slice", "end of a time slice", lane, at, ""),
            Event::ForcedYield => out.instant("slice", "forced yield", lane, at, ""),
            Event::Group { group } => {
                let name = format!("group {group}");
                out.instant("group", &name, lane, at, &format!("\"group\":{group}"))
            }
            Event::LongPoll { .. } | Event::NoCpu { .. } => Ok(()), // See `Observed`.
        }
    }

    fn by(&self, by: Option<u64>, at: Duration, task: u64) -> String {
        let mut args = format!("\"task\":\"{task:#x}\"");
        if let Some(by) = by {
            // As above.
            let _ = write!(args, ",\"by\":{}", Text(&self.capture.name(by, at)));
        }
        args
    }

    fn close_poll(
        &mut self,
        out: &mut Out<'_, impl Write>,
        at: Duration,
        outcome: &str,
    ) -> io::Result<()> {
        let Some((task, named, begun)) = self.open.take() else {
            return Ok(()); // No poll is open, or the begin of the poll is lost.
        };
        let name = self.capture.name_of(task, begun, Some(named));
        let args = format!("\"task\":\"{task:#x}\",\"outcome\":{}", Text(outcome));
        out.slice("poll", &name, self.lane, begun, at, &args)
    }

    /// Ends the poll and the sleep in progress at each gap before `at`. A sleep goes on after the
    /// gap, if the next event is its end.
    fn end_at_gaps(&mut self, out: &mut Out<'_, impl Write>, at: Duration) -> io::Result<()> {
        while let Some((&(begun, end), later)) = self.gaps.split_first() {
            if begun >= at {
                return Ok(());
            }
            self.gaps = later;
            self.close_poll(out, begun, "in progress")?;
            self.after_gap = Some(end);
            if let Some(asleep) = self.asleep.take() {
                out.slice("park", "parked", self.lane, asleep, begun, "")?;
                self.asleep = Some(end);
            }
        }
        Ok(())
    }

    /// Closes a poll or a sleep that is in progress.
    fn close(&mut self, out: &mut Out<'_, impl Write>, end: Duration) -> io::Result<()> {
        self.close_poll(out, end, "in progress")?;
        match self.asleep.take() {
            Some(begun) => out.slice("park", "parked", self.lane, begun, end, ""),
            None => Ok(()),
        }
    }
}

impl Origin {
    fn write(&self, out: &mut Out<'_, impl Write>, number: usize) -> io::Result<()> {
        let (at, lane) = (self.at, self.lane);
        if !self.in_slice {
            let label = match self.category {
                "notify" => self.name.clone(),
                category => format!("{category} {}", self.name),
            };
            let end = at + Duration::from_nanos(1);
            out.slice("origin", &label, lane, at, end, &self.args)?;
        }
        let Some((end, end_lane)) = self.end else {
            let name = format!("{} {}, not run yet", self.category, self.name);
            return out.instant(self.category, &name, lane, at, &self.args);
        };
        for (phase, at, lane, more) in [("s", at, lane, ""), ("f", end, end_lane, ",\"bp\":\"e\"")]
        {
            out.event(format_args!(
                "\"ph\":\"{phase}\",\"id\":{number},\"cat\":\"{}\",\"name\":{},\"pid\":{PROCESS},\
                 \"tid\":{lane},\"ts\":{}{more},\"args\":{{{}}}",
                self.category,
                Text(&self.name),
                Micros(at),
                self.args
            ))?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
