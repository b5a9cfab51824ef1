//! The lanes of what an observer of the workers has seen, and of the gaps.
use super::out::Out;
use crate::recorder::{Capture, Event, Stamped};
use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::Duration,
};

/// The slices of what an observer has seen, for each worker.
#[derive(Default)]
pub(super) struct Observed {
    /// The polls by worker: the begin, the time of the poll's newest event, and the task.
    polls: BTreeMap<usize, Vec<(Duration, Duration, u64)>>,
    /// The waits by worker: the begin and the end.
    waits: BTreeMap<usize, Vec<(Duration, Duration)>>,
}

impl Observed {
    pub(super) fn add(&mut self, &Stamped { at, event }: &Stamped) {
        match event {
            Event::LongPoll {
                worker,
                task,
                lasted,
            } => {
                let begun = at.saturating_sub(lasted);
                let polls = self.polls.entry(worker).or_default();
                let free = polls.last().map_or(Duration::ZERO, |last| last.1);
                match polls.last_mut() {
                    // The event before is one of the same poll.
                    Some(last) if free > begun && last.2 == task => last.1 = at,
                    _ => polls.push((begun.max(free), at, task)),
                }
            }
            Event::NoCpu { worker, waited } => {
                let waits = self.waits.entry(worker).or_default();
                let free = waits.last().map_or(Duration::ZERO, |last| last.1);
                waits.push((at.saturating_sub(waited).max(free), at));
            }
            _ => {}
        }
    }

    pub(super) fn write(&self, out: &mut Out<'_, impl Write>, capture: &Capture) -> io::Result<()> {
        let mut lane = capture.lanes().len();
        for (worker, polls) in &self.polls {
            out.lane(lane, &format!("worker {worker}, long polls"), 0)?;
            for (begun, end, task) in polls {
                let name = capture.name(*task, *begun);
                let args = format!("\"task\":\"{task:#x}\",\"seen by\":\"the monitor\"");
                out.slice("long", &name, lane, *begun, *end, &args)?;
            }
            lane += 1;
        }
        for (worker, waits) in &self.waits {
            out.lane(lane, &format!("worker {worker}, without a CPU"), 0)?;
            for (begun, end) in waits {
                let millis = end.saturating_sub(*begun).as_secs_f64() * 1e3;
                let name =
                    format!("worker {worker} was runnable but did not run for {millis:.1} ms");
                out.slice("wait", &name, lane, *begun, *end, "")?;
            }
            lane += 1;
        }
        if !capture.gaps().is_empty() {
            out.lane(lane, "not recorded", 0)?;
        }
        for (begun, end) in capture.gaps() {
            out.slice(
                "gap",
                "not recorded: too many events",
                lane,
                *begun,
                *end,
                "",
            )?;
        }
        Ok(())
    }
}
