//! Writes a capture as Chrome's trace-event JSON.
//!
//! | event | in the file |
//! |---|---|
//! | a poll | a slice (`X`) of category `poll`, named as the task |
//! | a sleep | a slice of category `park` |
//! | a wake | an arrow (`s`, `f`) of category `wake` to the poll that it led to |
//! | a spawn | an arrow of category `spawn` to the task's first poll |
//! | a notification | an arrow of category `notify` to the end of the sleep |
//! | all else | an instant (`i`) |
//!
//! A *slice* is an event with a duration, which a viewer shows as a bar. An arrow begins in a
//! slice. If no poll is in progress there, as in a thread that is no worker, a slice of a
//! nanosecond is written for the arrow. `<` is always escaped, so that the text can be part of an
//! HTML page.
use super::{Capture, Event, Stamped};
use std::{
    collections::HashMap,
    fmt::{self, Display, Write as _},
    io::{self, Write},
    time::Duration,
};

/// The number of the one process in the file.
const PROCESS: u32 = 1;

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
    let mut out = Out { to, first: true };
    out.to
        .write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    out.event(format_args!(
        "\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{PROCESS},\"args\":{{\"name\":\"scheduler\"}}"
    ))?;
    for (number, lane) in capture.lanes().iter().enumerate() {
        out.event(format_args!(
            "\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{PROCESS},\"tid\":{number},\"args\":\
             {{\"name\":{},\"lost\":{}}}",
            Text(&lane.name),
            lane.lost
        ))?;
        out.event(format_args!(
            "\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{PROCESS},\"tid\":{number},\
             \"args\":{{\"sort_index\":{number}}}"
        ))?;
    }
    let mut origins = Vec::new();
    let (mut polls, mut wakes) = (Ends::new(), Ends::new());
    for (number, lane) in capture.lanes().iter().enumerate() {
        let mut slices = Slices {
            capture,
            lane: number,
            open: None,
            // If a lane begins with the end of a sleep, its worker has slept since the start.
            asleep: match lane.events.first().map(|first| first.event) {
                Some(Event::Unpark { .. }) if lane.lost == 0 => Some(Duration::ZERO),
                _ => None,
            },
        };
        for stamped in &lane.events {
            slices.event(&mut out, stamped, &mut origins)?;
            match stamped.event {
                Event::PollBegin { task, .. } => {
                    polls.entry(task).or_default().push((stamped.at, number));
                }
                Event::Unpark { .. } => {
                    let worker = lane.worker.unwrap_or(usize::MAX) as u64;
                    wakes.entry(worker).or_default().push((stamped.at, number));
                }
                _ => {}
            }
        }
        slices.close(&mut out, capture.duration())?;
    }
    polls.values_mut().for_each(|polls| polls.sort());
    for (number, (key, mut origin)) in origins.into_iter().enumerate() {
        let ends = match key {
            Key::Task(task) => polls.get(&task),
            Key::Worker(worker) => wakes.get(&worker),
        };
        let ends = ends.map_or(&[][..], |ends| ends);
        origin.end = ends
            .get(ends.partition_point(|end| end.0 < origin.at))
            .copied();
        origin.write(&mut out, number)?;
    }
    out.to.write_all(b"\n]}\n")
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
    /// The polled task, whether it has a name, and the time at which the poll began.
    open: Option<(u64, bool, Duration)>,
    asleep: Option<Duration>,
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
                Ok(())
            }
            Event::PollEnd { outcome, .. } => self.close_poll(out, at, outcome.name()),
            Event::Park => {
                self.asleep = Some(at);
                Ok(())
            }
            Event::Unpark { notified } => {
                let Some(begun) = self.asleep.take() else {
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
        let name = self.capture.name_of(task, begun, named);
        let args = format!("\"task\":\"{task:#x}\",\"outcome\":{}", Text(outcome));
        out.slice("poll", &name, self.lane, begun, at, &args)
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

/// The file's list of events, which is written event by event.
struct Out<'a, W> {
    to: &'a mut W,
    first: bool,
}

impl<W: Write> Out<'_, W> {
    fn event(&mut self, fields: impl Display) -> io::Result<()> {
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.to, "{comma}\n{{{fields}}}")
    }

    fn slice(
        &mut self,
        category: &str,
        name: &str,
        lane: usize,
        begun: Duration,
        end: Duration,
        args: &str,
    ) -> io::Result<()> {
        self.event(format_args!(
            "\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{},\"pid\":{PROCESS},\"tid\":{lane},\
             \"ts\":{},\"dur\":{},\"args\":{{{args}}}",
            Text(name),
            Micros(begun),
            Micros(end.saturating_sub(begun))
        ))
    }

    fn instant(
        &mut self,
        category: &str,
        name: &str,
        lane: usize,
        at: Duration,
        args: &str,
    ) -> io::Result<()> {
        self.event(format_args!(
            "\"ph\":\"i\",\"s\":\"t\",\"cat\":\"{category}\",\"name\":{},\"pid\":{PROCESS},\
             \"tid\":{lane},\"ts\":{},\"args\":{{{args}}}",
            Text(name),
            Micros(at)
        ))
    }
}

/// A time in microseconds, to the nanosecond.
struct Micros(Duration);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:03}", nanos / 1000, nanos % 1000)
    }
}

/// A string of JSON, with its quotes.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if c < ' ' || c == '<' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_json_and_for_a_page() {
        let text = Text("a\"b\\c\n</script>é").to_string();
        assert_eq!(text, "\"a\\\"b\\\\c\\u000a\\u003c/script>é\"");
    }

    #[test]
    fn time_is_in_microseconds_to_the_nanosecond() {
        assert_eq!(
            Micros(Duration::from_nanos(1_234_005)).to_string(),
            "1234.005"
        );
    }
}
