//! The events of a run as a file that a person looks at: JSON for Perfetto, or a page of HTML.
//!
//! | event | in the file |
//! |---|---|
//! | a poll | a slice (`X`) of category `poll`, named as the task |
//! | a park | a slice of category `park` |
//! | a host that is down | a slice of category `down` in the host's lane |
//! | a wake, a spawn | an arrow (`s`, `f`) to the task's next poll |
//! | an unpark | an arrow of category `notify` to the end of the park |
//! | a crash, a restart, a partition, the failure | an instant (`i`) of category `fault` |
//! | a packet, a call of a socket, and all else | an instant of category `network` or `event` |
//!
//! A process of the file is a host. It has a lane for its faults and the packets that come while no
//! thread of it runs, and one for each of its threads. A thread that has ended, also by a crash,
//! leaves its lane to the next thread with its name. Times are virtual. The switches between
//! threads and the jumps of the time are left out: the lanes show both.
use crate::{Event, Run};
use std::{
    collections::HashMap,
    fmt::{self, Display, Write as _},
    fs, io,
    path::Path,
    time::Duration,
};

/// The kinds of events that are faults.
const FAULTS: &[&str] = &["crash", "restart", "cut begins", "cut ends", "panic"];

/// The kinds of events of the network.
const NETWORK: &[&str] = &[
    "packet",
    "packet lost",
    "queue full",
    "connect",
    "accept",
    "read",
    "received",
    "written",
];

/// The kinds of events whose number is another host.
const BETWEEN: &[&str] = &["cut begins", "cut ends"];

impl Run {
    /// Writes the kept events to a file: a page of HTML if the name ends in `.html`, which needs no
    /// network, or else Chrome's JSON, which [Perfetto](https://ui.perfetto.dev) opens.
    ///
    /// ```
    /// let sim = selvedge_sim::Sim::new(7).keep_events(1_000);
    /// let run = sim.run(|| async { selvedge_executor::yield_now().await });
    /// let file = std::env::temp_dir().join(format!("of-a-run-{}.json", std::process::id()));
    /// run.write_trace(&file)?;
    /// assert!(std::fs::read_to_string(&file)?.contains("traceEvents"));
    /// std::fs::remove_file(file)?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// As [`fs::write`].
    pub fn write_trace(&self, path: &Path) -> io::Result<()> {
        let json = self.to_json();
        if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            return fs::write(path, task_trace::recorder::page_of(&json));
        }
        fs::write(path, json)
    }

    /// Returns Chrome's JSON.
    pub(crate) fn to_json(&self) -> String {
        let mut timeline = Timeline::of(self);
        self.kept.iter().for_each(|event| timeline.add(event));
        timeline.finish(self)
    }
}

/// A slice that has not ended.
struct Open {
    /// The task that is polled, or `None` for a park or a time in which the host is down.
    task: Option<u64>,
    category: &'static str,
    since: Duration,
}

struct Lane {
    host: usize,
    name: String,
    /// Whether its thread has not ended.
    is_taken: bool,
    open: Vec<Open>,
}

/// The begin of an arrow.
struct Origin {
    at: Duration,
    lane: usize,
    category: &'static str,
}

/// The end of an arrow: the next poll of a task, or the next end of a thread's park.
#[derive(PartialEq, Eq, Hash)]
enum End {
    Poll(u64),
    Park(u64),
}

struct Timeline<'a> {
    run: &'a Run,
    out: String,
    lanes: Vec<Lane>,
    /// The lane of each thread, by the thread's id, and of the hosts themselves.
    of_threads: HashMap<u64, usize>,
    of_hosts: HashMap<usize, usize>,
    origins: HashMap<End, Vec<Origin>>,
    arrows: u64,
}

impl<'a> Timeline<'a> {
    fn of(run: &'a Run) -> Self {
        Self {
            run,
            out: String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":["),
            lanes: Vec::new(),
            of_threads: HashMap::new(),
            of_hosts: HashMap::new(),
            origins: HashMap::new(),
            arrows: 0,
        }
    }

    /// Returns the name of a host.
    fn host(&self, number: usize) -> &'a str {
        self.run.hosts.get(number).map_or("", |name| name)
    }

    fn add(&mut self, event: &Event) {
        let at = event.time;
        if matches!(event.kind, "run" | "time") {
            return;
        }
        let lane = self.lane(event);
        match event.kind {
            "poll" => {
                self.arrive(&End::Poll(event.task), at, lane);
                self.open(lane, Some(event.task), "poll", at);
            }
            "end of poll" | "end of poll and task" => {
                let outcome = match (event.kind, event.number) {
                    ("end of poll", 0) => "pending",
                    ("end of poll", _) => "runs again",
                    _ => "ready",
                };
                self.close(lane, "poll", at, outcome);
            }
            "park" => self.open(lane, None, "park", at),
            "unparked" => {
                self.close(lane, "park", at, "unparked");
                self.arrive(&End::Park(event.thread), at, lane);
            }
            "wake" => self.depart(End::Poll(event.task), at, lane, "wake"),
            "spawn" => self.depart(End::Poll(event.task), at, lane, "spawn"),
            "unpark" => self.depart(End::Park(event.number), at, lane, "notify"),
            "end" => self.end_lane(lane, at, "ended"),
            "crash" => {
                self.instant(event);
                let host = event.host;
                for other in (0..self.lanes.len()).filter(|other| *other != lane) {
                    if self.lanes[other].host == host {
                        self.end_lane(other, at, "crash");
                    }
                }
                self.open(lane, None, "down", at);
            }
            "restart" => {
                self.close(lane, "down", at, "restart");
                self.instant(event);
            }
            _ => self.instant(event),
        }
    }

    /// Returns the lane of an event.
    fn lane(&mut self, event: &Event) -> usize {
        let known = match event.thread {
            0 => self.of_hosts.get(&event.host),
            thread => self.of_threads.get(&thread),
        };
        if let Some(known) = known {
            return *known;
        }
        let name = match (event.thread, event.host) {
            (0, 0) => "simulator".to_owned(),
            (0, host) => format!("host {}", self.host(host)),
            _ => event.name.as_deref().unwrap_or("unnamed").to_owned(),
        };
        let is_free = |lane: &Lane| {
            !lane.is_taken && (lane.host, lane.name.as_str()) == (event.host, name.as_str())
        };
        let lane = match self.lanes.iter().position(is_free) {
            Some(lane) => lane,
            None => {
                self.lanes.push(Lane {
                    host: event.host,
                    name,
                    is_taken: true,
                    open: Vec::new(),
                });
                self.lanes.len() - 1
            }
        };
        self.lanes[lane].is_taken = true;
        match event.thread {
            0 => self.of_hosts.insert(event.host, lane),
            thread => self.of_threads.insert(thread, lane),
        };
        lane
    }

    fn end_lane(&mut self, lane: usize, at: Duration, outcome: &str) {
        while let Some(open) = self.lanes[lane].open.pop() {
            self.slice(lane, &open, at, outcome);
        }
        self.lanes[lane].is_taken = false;
    }

    fn open(&mut self, lane: usize, task: Option<u64>, category: &'static str, since: Duration) {
        self.lanes[lane].open.push(Open {
            task,
            category,
            since,
        });
    }

    /// Ends the last slice of a lane, if it is of this category. The begin may not be kept.
    fn close(&mut self, lane: usize, category: &str, at: Duration, outcome: &str) {
        let open = &mut self.lanes[lane].open;
        if open.last().is_some_and(|last| last.category == category) {
            let last = open.pop();
            last.into_iter()
                .for_each(|open| self.slice(lane, &open, at, outcome));
        }
    }

    fn slice(&mut self, lane: usize, open: &Open, end: Duration, outcome: &str) {
        let name = match open.task {
            Some(task) => format!("task {task}"),
            None if open.category == "park" => "parked".to_owned(),
            None => open.category.to_owned(),
        };
        let (at, length) = (Micros(open.since), Micros(end.saturating_sub(open.since)));
        let (name, outcome) = (Text(&name), Text(outcome));
        let more = format!("\"dur\":{length},\"args\":{{\"outcome\":{outcome}}}");
        self.event('X', open.category, &name, lane, at, &more);
    }

    /// Begins an arrow. A viewer shows one that begins in a slice.
    fn depart(&mut self, to: End, at: Duration, lane: usize, category: &'static str) {
        if self.lanes[lane].open.is_empty() {
            let name = match &to {
                End::Poll(task) => format!("{category} task {task}"),
                End::Park(thread) => format!("unpark thread {thread}"),
            };
            let more = "\"dur\":0.001,\"args\":{}";
            self.event('X', "origin", &Text(&name), lane, Micros(at), more);
        }
        let origin = Origin { at, lane, category };
        self.origins.entry(to).or_default().push(origin);
    }

    /// Ends the arrows to this place.
    fn arrive(&mut self, to: &End, at: Duration, lane: usize) {
        let name = match to {
            End::Poll(task) => format!("task {task}"),
            End::Park(_) => "notify".to_owned(),
        };
        for origin in self.origins.remove(to).unwrap_or_default() {
            self.arrows += 1;
            let (name, category) = (Text(&name), origin.category);
            let id = format!("\"id\":{},\"args\":{{}}", self.arrows);
            self.event('s', category, &name, origin.lane, Micros(origin.at), &id);
            let id = format!("\"bp\":\"e\",{id}");
            self.event('f', category, &name, lane, Micros(at), &id);
        }
    }

    fn instant(&mut self, event: &Event) {
        let lane = self.lane(event);
        let Event { kind, number, .. } = *event;
        let is_failure = (event.thread, event.host) == (0, 0) && kind != "thread";
        let category = match kind {
            _ if is_failure || FAULTS.contains(&kind) => "fault",
            _ if NETWORK.contains(&kind) => "network",
            _ => "event",
        };
        let name = match number {
            _ if BETWEEN.contains(&kind) => {
                format!("{kind}: to {}", self.host(number as usize))
            }
            0 => kind.to_owned(),
            _ => format!("{kind} ({number})"),
        };
        let task = match event.task {
            0 => String::new(),
            task => format!("\"task\":{task}"),
        };
        let more = format!("\"s\":\"t\",\"args\":{{{task}}}");
        self.event('i', category, &Text(&name), lane, Micros(event.time), &more);
    }

    fn event(
        &mut self,
        phase: char,
        category: &str,
        name: &Text<'_>,
        lane: usize,
        at: Micros,
        more: &str,
    ) {
        let comma = if self.out.ends_with('[') { "" } else { "," };
        let host = self.lanes[lane].host;
        // A write to a `String` does not fail.
        let _ = write!(
            self.out,
            "{comma}\n{{\"ph\":\"{phase}\",\"cat\":\"{category}\",\"name\":{name},\"pid\":{host},\
             \"tid\":{lane},\"ts\":{at},{more}}}"
        );
    }

    /// Ends all slices, shows the wakes that led to nothing, and names the hosts and the lanes.
    fn finish(mut self, run: &Run) -> String {
        let end = run.stats.time;
        let mut left: Vec<_> = self.origins.drain().collect();
        left.sort_by_key(|(end, _)| match end {
            End::Poll(number) | End::Park(number) => *number,
        });
        for (to, origins) in left {
            let target = match to {
                End::Poll(task) => format!("task {task}, not polled after this"),
                End::Park(thread) => format!("thread {thread}, not awake after this"),
            };
            for Origin { at, lane, category } in origins {
                let name = format!("{category} {target}");
                let more = "\"s\":\"t\",\"args\":{}";
                self.event('i', category, &Text(&name), lane, Micros(at), more);
            }
        }
        for lane in 0..self.lanes.len() {
            self.end_lane(lane, end, "in progress");
        }
        let mut order: Vec<_> = (0..self.lanes.len()).collect();
        // The lane of a host is above those of its threads.
        let is_host = |lane: usize| self.of_hosts.values().any(|of_host| *of_host == lane);
        order.sort_by_key(|lane| (self.lanes[*lane].host, !is_host(*lane), *lane));
        let mut names = String::new();
        for (row, lane) in order.into_iter().enumerate() {
            let Lane { host, ref name, .. } = self.lanes[lane];
            let lost = if row == 0 { run.lost } else { 0 };
            // As above.
            let _ = write!(
                names,
                ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{host},\"tid\":{lane},\
                 \"args\":{{\"name\":{},\"lost\":{lost}}}}},\
                 \n{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{host},\"tid\":{lane},\
                 \"args\":{{\"sort_index\":{row}}}}},\
                 \n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{host},\
                 \"args\":{{\"name\":{}}}}}",
                Text(name),
                Text(self.host(host)),
            );
        }
        let names = match self.out.ends_with('[') {
            true => names.trim_start_matches(','),
            false => &names,
        };
        self.out.push_str(names);
        self.out.push_str("\n]}\n");
        self.out
    }
}

/// A time in microseconds, to the nanosecond.
#[derive(Clone, Copy)]
struct Micros(Duration);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:03}", nanos / 1_000, nanos % 1_000)
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
                c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests;
