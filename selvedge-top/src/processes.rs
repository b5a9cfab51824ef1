//! The processes of a scheduler, as JSON: the tree of supervision.
use crate::{json::Json, pace::Paced};
use metrics::{Label, counter, gauge};
use process_scheduler::{Handle, Info, Metrics, Pid};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

/// The most processes that a page shows, besides their supervisors.
const MOST: usize = 200;

/// The name of a counter, and its value.
type Count = (&'static str, u64);

/// A scheduler of processes, and what the page shows of it.
pub(crate) struct Scheduler {
    name: String,
    handle: Handle,
    shown: Paced<String>,
}

impl Scheduler {
    pub(crate) fn new((name, handle): (String, Handle)) -> Self {
        Self {
            name,
            handle,
            shown: Paced::new(),
        }
    }

    /// Records the counters of the scheduler by the facade of the crate `metrics`.
    pub(crate) fn record(&self) {
        let labels = [Label::new("process_scheduler", self.name.clone())];
        let name = |name| format!("process_scheduler.{name}");
        let (counters, gauges) = self.counters();
        for (metric, value) in counters {
            counter!(name(metric), labels.iter()).absolute(value);
        }
        for (metric, value) in gauges {
            gauge!(name(metric), labels.iter()).set(value as f64);
        }
    }

    /// Returns the counters of the scheduler under their names: those that only grow, and those
    /// that do not.
    fn counters(&self) -> (Vec<Count>, Vec<Count>) {
        let Metrics {
            workers,
            processes,
            spawned,
            exited,
            abnormal,
            restarts,
            dead_letters,
            steps,
            delivered,
            panics,
            steals,
            parks,
            ..
        } = self.handle.metrics();
        let counters = vec![
            ("spawned", spawned),
            ("exited", exited),
            ("abnormal", abnormal),
            ("restarts", restarts),
            ("dead_letters", dead_letters),
            ("steps", steps),
            ("delivered", delivered),
            ("panics", panics),
            ("steals", steals),
            ("parks", parks),
        ];
        let gauges = vec![("workers", workers as u64), ("processes", processes as u64)];
        (counters, gauges)
    }

    pub(crate) fn write(&self, json: &mut Json) {
        json.object(|json| {
            json.key("name").text(&self.name);
            let (counters, gauges) = self.counters();
            for (name, number) in counters.into_iter().chain(gauges) {
                json.key(name).number(number);
            }
            let shown = self.shown.get(|| self.rows());
            json.key("rows").raw(&shown.value);
        });
    }

    /// Looks at all processes, and returns the rows of those that the page shows.
    fn rows(&self) -> String {
        let all = self.handle.list().into_iter();
        let infos: HashMap<Pid, Info> = all
            .filter_map(|pid| Some((pid, self.handle.inspect(pid)?)))
            .collect();
        let mut json = Json::new();
        json.list(in_tree_order(&infos, MOST), |json, (pid, depth)| {
            let info = &infos[&pid];
            json.object(|json| write(json, info, depth));
        });
        json.into_string()
    }
}

fn write(json: &mut Json, info: &Info, depth: usize) {
    json.key("pid").text(info.pid);
    json.key("depth").number(depth as u64);
    json.key("names").list(&info.names, Json::text);
    json.key("kind").text(short(info.kind));
    json.key("phase").text(format_args!("{:?}", info.phase));
    json.key("messages");
    match info.messages {
        Some(messages) => json.number(messages as u64),
        None => json.raw("null"),
    }
    json.key("restarts").number(info.restarts.into());
}

/// Returns the `most` processes that are most likely to be looked for, with the supervisors above
/// them: in the order of the tree of supervision, each with its depth.
///
/// Those are the processes with restarts, with messages, and with names, in this order.
fn in_tree_order(infos: &HashMap<Pid, Info>, most: usize) -> Vec<(Pid, usize)> {
    let mut pids: Vec<Pid> = infos.keys().copied().collect();
    pids.sort_by_cached_key(|pid| {
        let info = &infos[pid];
        let messages = info.messages.unwrap_or(1);
        let has_no_name = info.names.is_empty();
        (Reverse(info.restarts), Reverse(messages), has_no_name, *pid)
    });
    let supervisor = |pid: Pid| infos[&pid].supervisor.filter(|pid| infos.contains_key(pid));
    let mut shown = BTreeSet::new();
    for &pid in pids.iter().take(most) {
        let mut at = Some(pid);
        // A pid that is there already has its supervisors there, too.
        while let Some(pid) = at.filter(|pid| shown.insert(*pid)) {
            at = supervisor(pid);
        }
    }
    let mut children: HashMap<Option<Pid>, Vec<Pid>> = HashMap::new();
    for &pid in &shown {
        children.entry(supervisor(pid)).or_default().push(pid);
    }
    let mut left: Vec<(Pid, usize)> = Vec::new();
    let mut tree = Vec::new();
    let mut push = |of: Option<Pid>, depth, left: &mut Vec<_>| {
        let below = children.remove(&of).unwrap_or_default();
        left.extend(below.into_iter().rev().map(|pid| (pid, depth)));
    };
    push(None, 0, &mut left);
    while let Some((pid, depth)) = left.pop() {
        tree.push((pid, depth));
        push(Some(pid), depth + 1, &mut left);
    }
    tree
}

/// Returns a type's name without its paths and parameters.
fn short(name: &str) -> &str {
    let end = name.find('<').unwrap_or(name.len());
    let path = &name[..end];
    path.rsplit("::")
        .find(|part| !part.starts_with('{'))
        .unwrap_or(path)
}

#[cfg(test)]
mod tests;
