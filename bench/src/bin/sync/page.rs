//! The figures, and the page that is made from them.
use crate::{bytes::Bytes, rows::Row, runtimes::NAMES};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The largest ratio to tokio's that is aimed at.
const TOKIO: f64 = 0.7;
/// The largest ratio to the best peer's that is aimed at.
const BEST: f64 = 1.0;

/// A sample's nanoseconds an operation.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Sample {
    pub(crate) ns: f64,
    pub(crate) cpu_ns: f64,
}

/// A row's samples.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Table {
    name: String,
    what: String,
    workers: usize,
    /// Ours first, then tokio's.
    peers: Vec<Column>,
}

/// A peer's samples by rounds: those on our runtime, and those on tokio's.
#[derive(Debug, Deserialize, Serialize)]
struct Column {
    peer: String,
    on: [Vec<Sample>; 2],
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: String,
    pub(crate) rounds: usize,
    pub(crate) tables: Vec<Table>,
    pub(crate) bytes: Vec<Bytes>,
}

impl Column {
    fn times(&self, on: usize, of: fn(&Sample) -> f64) -> Vec<f64> {
        self.on[on].iter().map(of).collect()
    }
}

fn wall(sample: &Sample) -> f64 {
    sample.ns
}

fn cpu(sample: &Sample) -> f64 {
    sample.cpu_ns
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the median of the rounds' ratios.
fn ratio(one: &[f64], other: &[f64]) -> f64 {
    median(
        one.iter()
            .zip(other)
            .map(|(one, other)| one / other)
            .collect(),
    )
}

/// Returns the largest figure less the smallest, in per cent of the median.
fn spread(all: Vec<f64>) -> f64 {
    let most = all.iter().copied().fold(f64::MIN, f64::max);
    let least = all.iter().copied().fold(f64::MAX, f64::min);
    100.0 * (most - least) / median(all)
}

impl Table {
    pub(crate) fn new(row: &Row) -> Self {
        let column = |entry: &crate::rows::Entry| Column {
            peer: entry.peer.to_owned(),
            on: [Vec::new(), Vec::new()],
        };
        Self {
            name: row.name.to_owned(),
            what: row.what.to_owned(),
            workers: row.workers,
            peers: row.entries.iter().map(column).collect(),
        }
    }

    /// Returns the number of rounds.
    pub(crate) fn rounds(&self) -> usize {
        self.peers[0].on[0].len()
    }

    pub(crate) fn add(&mut self, samples: &[[Sample; 2]]) {
        for (column, samples) in self.peers.iter_mut().zip(samples) {
            for (on, sample) in column.on.iter_mut().zip(samples) {
                on.push(*sample);
            }
        }
    }

    /// Compares our figures on a runtime with those of a peer on the same runtime.
    fn against(&self, peer: &Column, on: usize, of: fn(&Sample) -> f64) -> f64 {
        ratio(&self.peers[0].times(on, of), &peer.times(on, of))
    }

    /// Returns the peer that is fastest on a runtime.
    fn best(&self, on: usize) -> &Column {
        let time = |column: &&Column| median(column.times(on, wall));
        let peers = self.peers[1..].iter();
        peers
            .min_by(|one, other| time(one).total_cmp(&time(other)))
            .expect("tokio is a peer of each row")
    }

    fn line(&self, on: usize) -> String {
        let (ours, tokio, best) = (&self.peers[0], &self.peers[1], self.best(on));
        format!(
            "| `{}` | {:.1} | {:.0} % | {:.1} | {} | {} | {} {:.1} | {} | {} |\n",
            self.name,
            median(ours.times(on, wall)),
            spread(ours.times(on, wall)),
            median(tokio.times(on, wall)),
            marked(self.against(tokio, on, wall), TOKIO),
            marked(self.against(tokio, on, cpu), TOKIO),
            best.peer,
            median(best.times(on, wall)),
            marked(self.against(best, on, wall), BEST),
            marked(self.against(best, on, cpu), BEST),
        )
    }

    /// Returns whether one of the four ratios misses its aim.
    fn is_behind(&self, on: usize) -> bool {
        let (tokio, best) = (&self.peers[1], self.best(on));
        [(tokio, TOKIO), (best, BEST)].iter().any(|(peer, aim)| {
            let ratios = [wall, cpu].map(|of| self.against(peer, on, of));
            ratios.iter().any(|ratio| !meets(*ratio, *aim))
        })
    }

    /// Returns a line of all peers' figures on both runtimes.
    fn all(&self) -> String {
        let mut line = format!("| `{}` |", self.name);
        for on in 0..NAMES.len() {
            let times = self.peers.iter().map(|column| {
                let time = |of| median(column.times(on, of));
                format!("{} {:.1} ({:.1})", column.peer, time(wall), time(cpu))
            });
            let times: Vec<_> = times.collect();
            let _ = write!(line, " {} |", times.join("; "));
        }
        line + "\n"
    }
}

/// Returns whether a ratio, as it is shown, meets its aim. So no `0.70` is bold beside one that is
/// not.
fn meets(ratio: f64, aim: f64) -> bool {
    let shown = format!("{ratio:.2}");
    shown.parse::<f64>().is_ok_and(|shown| shown <= aim)
}

/// Shows a ratio, in bold if it misses its aim.
fn marked(ratio: f64, aim: f64) -> String {
    match meets(ratio, aim) {
        true => format!("{ratio:.2}"),
        false => format!("**{ratio:.2}**"),
    }
}

/// Describes the machine.
pub(crate) fn machine() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |line| line.trim_start_matches([' ', '\t', ':']));
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    let linux = read("/proc/sys/kernel/osrelease");
    let versions = versions().join(", ");
    format!(
        "{model}, processors: {count}, linux {}; {versions}",
        linux.trim()
    )
}

/// Returns the peers' versions, from the `Cargo.lock` that the program was built with.
fn versions() -> Vec<String> {
    let lock = include_str!("../../../../Cargo.lock");
    let names = [
        "tokio",
        "async-channel",
        "async-lock",
        "flume",
        "futures",
        "kanal",
    ];
    let version = |name: &&str| {
        let entry = format!("name = \"{name}\"\nversion = \"");
        let (_, after) = lock.split_once(&entry)?;
        let (version, _) = after.split_once('"')?;
        Some(format!("{name} {version}"))
    };
    names.iter().filter_map(version).collect()
}

impl Report {
    pub(crate) fn page(&self) -> String {
        let mut page = format!(
            "# Channels and locks side by side

`cargo run --profile bench -p bench --bin sync -- --rounds 15 --json docs/benchmarks/sync.json` measures, and \
             prints this page; `--list` says what each row is. `task-sync` is `selvedge::sync`.

All samples are of one process. In a round, each peer runs on our runtime and on tokio's, back to back. \
             Figures are nanoseconds an operation, medians of the rounds; a ratio is the median of the rounds' \
             ratios, and the spread is the largest sample less the smallest. Aims: 0.7 of tokio's time and \
             processor time on the same runtime, and 1.0 of those of the fastest peer. A ratio that misses \
             its aim is bold.

- `task-sync` charges the budget of our runtime, and tokio's primitives that of tokio's runtime. No other pair \
             charges one: there a task whose operations are all ready goes on without end, which saves switches.
- Some rows have two states, and a round is in one of them: either the tasks of one worker find no other worker \
             at the lock, or all tasks queue. Hence the large spreads of `rwlock_95`, `mpmc_8_8` and \
             `mpsc_unbounded_8_across`.
- [The log](log.md#channels-and-locks) says why rows miss their aims.

{}; rounds: {}

",
            self.machine, self.rounds
        );
        for (on, name) in NAMES.iter().enumerate() {
            let title = match on {
                0 => "## On our runtime",
                _ => "## On tokio's runtime",
            };
            let _ = writeln!(
                page,
                "{title}\n\n| row | task-sync | spread | tokio | x tokio | processor time, x tokio | best peer | \
                 x that | processor time, x that |\n|---|---|---|---|---|---|---|---|---|"
            );
            for table in &self.tables {
                page.push_str(&table.line(on));
            }
            page.push('\n');
            let means = [
                ("tokio's time", wall as fn(&Sample) -> f64),
                ("tokio's processor time", cpu),
            ];
            for (what, of) in means {
                let logs = self
                    .tables
                    .iter()
                    .map(|table| table.against(&table.peers[1], on, of).ln());
                let mean = (logs.sum::<f64>() / self.tables.len() as f64).exp();
                let _ = writeln!(
                    page,
                    "On {name}, ours takes {mean:.2} x {what}, the geometric mean of {} rows.",
                    self.tables.len()
                );
            }
            let behind = self.tables.iter().filter(|table| table.is_behind(on));
            let behind: Vec<_> = behind.map(|table| format!("`{}`", table.name)).collect();
            let _ = writeln!(page, "\nBehind an aim in: {}.\n", behind.join(", "));
        }
        page.push_str("## The rows\n\nAll but those \"within one worker\" have two workers.\n\n");
        for table in &self.tables {
            let _ = writeln!(
                page,
                "- `{}`: {}; {} rounds.",
                table.name,
                table.what,
                table.rounds()
            );
        }
        page.push_str(
            "\n## Each peer\n\nNanoseconds an operation, and of processor time in brackets.\n\n\
             | row | on our runtime | on tokio's |\n|---|---|---|\n",
        );
        for table in &self.tables {
            page.push_str(&table.all());
        }
        page.push_str(
            "\n## Bytes\n\nWhat is allocated for a channel, and the size of the others. A task's wait is the \
             future that it awaits: it allocates nothing. The aim is tokio's size.\n\n\
             | bytes of | task-sync | tokio | x tokio | others |\n|---|---|---|---|---|\n",
        );
        for bytes in &self.bytes {
            let [(_, ours), (_, tokio), others @ ..] = &bytes.of[..] else {
                continue;
            };
            let others: Vec<_> = others
                .iter()
                .map(|(peer, bytes)| format!("{peer} {}", short(*bytes)))
                .collect();
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} |",
                bytes.what,
                short(*ours),
                short(*tokio),
                marked(ours / tokio, BEST),
                others.join(", ")
            );
        }
        page
    }
}

/// Shows bytes, with a fraction if there is one.
fn short(bytes: f64) -> String {
    match bytes.fract() == 0.0 {
        true => format!("{bytes:.0}"),
        false => format!("{bytes:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    #[test]
    fn page_matches_the_figures_beside_it() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks");
        let json = fs::read(docs.join("sync.json")).unwrap();
        let report: Report = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            fs::read_to_string(docs.join("sync.md")).unwrap(),
            report.page()
        );
    }

    #[test]
    fn ratio_is_the_median_of_the_rounds_ratios() {
        assert_eq!(ratio(&[1.0, 9.0, 4.0], &[2.0, 3.0, 2.0]), 2.0);
        assert!(meets(0.704, 0.7) && !meets(0.706, 0.7));
        assert_eq!(marked(0.706, 0.7), "**0.71**");
    }
}
