//! Computes the table from the samples: medians, spreads, and the ratios within rounds.
use super::{
    Row, Runtime, Sample, Taken, Verdict,
    outside::{self, Figure},
};
use serde::{Deserialize, Serialize};

/// The *yardstick*: the runtime with whose figures the figures of the others are compared.
pub(super) const YARDSTICK: &str = "tokio";

/// One row's figures.
#[derive(Deserialize, Serialize)]
pub(super) struct Table {
    pub(super) row: String,
    pub(super) what: String,
    pub(super) kind: String,
    pub(super) unit: String,
    /// The yardstick of this table.
    yardstick: String,
    /// The aim: the largest allowed ratio of our figure to the yardstick's.
    pub(super) aim: f64,
    /// The parallel peer with the smallest median, if any was measured.
    pub(super) best_peer: Option<String>,
    /// The runtimes' figures, ours first.
    pub(super) lines: Vec<Line>,
    /// The reason why the row has no system calls, if it should have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    syscalls_unknown: Option<String>,
}

/// A runtime's figures in a row. A figure is `None` if no kept sample has it.
#[derive(Deserialize, Serialize)]
pub(super) struct Line {
    /// The runtime's name.
    pub(super) rt: String,
    pub(super) parallel: bool,
    /// The median, in the table's unit an operation.
    pub(super) value: Option<f64>,
    /// The largest sample less the smallest, as a part of the median.
    pub(super) spread: Option<f64>,
    pub(super) p99: Option<f64>,
    /// The p50, p90, p99 and longest time of single operations. Each is the median over the kept
    /// samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) latencies: Option<[f64; 4]>,
    /// In a row of the kind `load`, the part of the workers' time that the tasks' own work took. In
    /// the row `coop`, the part of its pace that the other task keeps.
    pub(super) efficiency: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threads: Option<f64>,
    cpu_ns: Option<f64>,
    pub(super) to_yardstick: Option<f64>,
    cpu_to_yardstick: Option<f64>,
    p99_to_yardstick: Option<f64>,
    to_best_peer: Option<f64>,
    /// The figures of a row whose client is a process of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) figures: Vec<Figure>,
    /// The number of kept samples.
    kept: usize,
    rounds: usize,
    /// The number of samples, also of those that were given up.
    taken: usize,
}

impl Line {
    fn has_figure(&self, at: usize) -> bool {
        let figure = self.figures.get(at);
        figure.is_some_and(|figure| figure.value.is_some())
    }
}

impl Table {
    /// Computes the figures of a row. `runtimes` are the runtimes that have the row.
    pub(super) fn new(row: &Row, runtimes: &[Runtime], taken: &[Taken]) -> Self {
        Self::with_yardstick(YARDSTICK, row, runtimes, taken)
    }

    /// Computes the same table with the yardstick that the caller names.
    pub(super) fn with_yardstick(
        yardstick: &str,
        row: &Row,
        runtimes: &[Runtime],
        taken: &[Taken],
    ) -> Self {
        let value = |rt: &str| median(figures(taken, rt, |sample| Some(sample.value)));
        let best_peer = runtimes[1..]
            .iter()
            // Our runtime with other settings is no peer.
            .filter(|rt| rt.parallel && rt.package != runtimes[0].package)
            .filter_map(|rt| Some((value(&rt.name)?, rt)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, rt)| rt.name.clone());
        let rounds = taken.iter().map(|taken| taken.round + 1).max().unwrap_or(0);
        let line = |rt: &Runtime| {
            let rt_name = rt.name.as_str();
            let values = || figures(taken, rt_name, |sample| Some(sample.value));
            let extent =
                values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min);
            let ratio_to = |other: &str, figure: fn(&Sample) -> Option<f64>| {
                ratio(taken, rt_name, other, figure)
            };
            Line {
                rt: rt.name.clone(),
                parallel: rt.parallel,
                value: value(rt_name),
                spread: value(rt_name).map(|median| extent / median),
                p99: median(figures(taken, rt_name, |sample| sample.p99)),
                latencies: latencies(taken, rt_name),
                efficiency: median(figures(taken, rt_name, |sample| sample.efficiency)),
                threads: median(figures(taken, rt_name, |sample| {
                    sample.threads.map(|threads| threads as f64)
                })),
                cpu_ns: median(figures(taken, rt_name, |sample| Some(sample.cpu_ns))),
                to_yardstick: ratio_to(yardstick, |sample| Some(sample.value)),
                cpu_to_yardstick: ratio_to(yardstick, |sample| Some(sample.cpu_ns)),
                p99_to_yardstick: ratio_to(yardstick, |sample| sample.p99),
                to_best_peer: best_peer
                    .as_ref()
                    .and_then(|best| ratio_to(best, |sample| Some(sample.value))),
                figures: outside_figures(taken, rt_name, yardstick),
                kept: values().count(),
                rounds,
                taken: taken.iter().filter(|taken| taken.rt == rt.name).count(),
            }
        };
        Self {
            row: row.name.clone(),
            what: row.what.clone(),
            kind: row.kind.clone(),
            unit: row.unit.clone(),
            yardstick: yardstick.into(),
            aim: row.aim,
            lines: runtimes.iter().map(line).collect(),
            best_peer,
            syscalls_unknown: taken.iter().find_map(|taken| {
                let outside = taken.sample.outside.as_ref()?;
                outside.syscalls_unknown.clone()
            }),
        }
    }

    /// Returns whether every runtime has a figure.
    pub(super) fn is_complete(&self) -> bool {
        self.lines.iter().all(|line| line.value.is_some())
    }

    /// Returns the table as text for a terminal.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\n{}: {}\n", self.row, self.what);
        if let Some(why) = &self.syscalls_unknown {
            text.push_str(&format!("  system calls are NOT counted: {why}\n"));
        }
        let has = |figure: fn(&Line) -> Option<f64>| self.lines.iter().any(|l| figure(l).is_some());
        let (p99, efficiency) = (has(|line| line.p99), has(|line| line.efficiency));
        let threads = has(|line| line.threads);
        let mut columns = vec![format!("{}/op", self.unit), "spread".into()];
        columns.extend(p99.then(|| "p99".into()));
        columns.extend(efficiency.then(|| "efficiency".into()));
        columns.extend(threads.then(|| "threads".into()));
        let yardstick = &self.yardstick;
        columns.push("cpu ns/op".into());
        columns.extend([format!("x {yardstick}"), format!("cpu x {yardstick}")]);
        columns.push("x best peer".into());
        let shown: Vec<usize> = (0..outside::FIGURES.len())
            .filter(|at| self.lines.iter().any(|line| line.has_figure(*at)))
            .collect();
        if !shown.is_empty() {
            columns.push("p99 x".into());
        }
        for at in &shown {
            columns.extend([outside::FIGURES[*at].0.into(), "x".into()]);
        }
        let row = |name: &str, columns: &[String], rest: &str| {
            let columns: String = columns.iter().map(|text| format!("{text:>13}")).collect();
            format!("  {name:<23}{columns}  {rest}\n")
        };
        text.push_str(&row("", &columns, "samples"));
        for line in &self.lines {
            let percent = |part: Option<f64>| {
                part.map_or("-".into(), |part| format!("{:.0} %", 100.0 * part))
            };
            let mut columns = vec![format_figure(line.value, 1), percent(line.spread)];
            columns.extend(p99.then(|| format_figure(line.p99, 0)));
            columns.extend(efficiency.then(|| percent(line.efficiency)));
            columns.extend(threads.then(|| format_figure(line.threads, 0)));
            columns.push(format_figure(line.cpu_ns, 1));
            for ratio in [line.to_yardstick, line.cpu_to_yardstick, line.to_best_peer] {
                columns.push(format_figure(ratio, 2));
            }
            if !shown.is_empty() {
                columns.push(format_figure(line.p99_to_yardstick, 2));
            }
            for figures in shown.iter().filter_map(|at| line.figures.get(*at)) {
                columns.push(format_figure(figures.value, 2));
                columns.push(format_figure(figures.to_yardstick, 2));
            }
            let best = match (&self.best_peer, line.parallel) {
                (Some(best), _) if *best == line.rt => ", the best peer",
                (_, false) => ", not parallel",
                _ => "",
            };
            let samples = format!("{} kept of {}{best}", line.kept, line.taken);
            text.push_str(&row(&line.rt, &columns, &samples));
        }
        text
    }

    /// Returns whether the runtimes compete in the row for the shortest time. In the row `coop`
    /// they do not: it compares what budgets cost. Nor do they in a row of bytes or wakes.
    fn is_race(&self) -> bool {
        self.unit == "ns" && self.row != "coop"
    }

    /// Returns our ratio to the yardstick, and whether the ratio meets the aim.
    fn ours(&self) -> Option<(f64, bool)> {
        let ratio = self.lines.first()?.to_yardstick?;
        Some((ratio, ratio <= self.aim))
    }
}

/// Returns a page of Markdown. The page shows our figures, the yardstick's and the best parallel
/// peer's in each row that has a best peer.
pub(super) fn page(machine: &str, tables: &[Table], aim: Aim) -> String {
    let mut text = format!(
        "# Runtimes side by side\n\n{}\
         `cargo xtask bench --rounds 5 --json out.json` measures, and with `--plot docs/benchmarks` makes this page and its charts. `cargo xtask bench --list` \
         says what each row is. Nanoseconds an operation, medians of the rounds; the spread is the largest sample less the smallest; ratios are \
         medians of the rounds' ratios. The means leave out `coop`, which is no race, and rows in bytes or wakes.\n\n{machine}\n\
         | row | selvedge | spread | {YARDSTICK} | x {YARDSTICK} | aim | processor time, x {YARDSTICK} | best parallel peer | x that |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        headline(tables)
    );
    for table in tables {
        let line_of = |rt: &str| table.lines.iter().find(|line| line.rt == rt);
        let (Some(ours), Some(best)) = (table.lines.first(), table.best_peer.as_deref()) else {
            continue;
        };
        let value = |line: Option<&Line>| format_figure(line.and_then(|line| line.value), 1);
        let whole = match &*table.kind {
            "load" => "of the workers",
            _ => "of the other's pace alone",
        };
        let efficiency = (ours.efficiency).map(|part| format!(" ({:.0} % {whole})", 100.0 * part));
        let tail = ours
            .p99_to_yardstick
            .map(|ratio| format!(" (p99 {ratio:.2})"));
        text.push_str(&format!(
            "| `{}`{} | {}{} | {} | {} | {}{} | {} | {} | {best} {} | {} |\n",
            table.row,
            if table.unit == "ns" {
                String::new()
            } else {
                format!(", {}", table.unit)
            },
            value(Some(ours)),
            efficiency.unwrap_or_default(),
            ours.spread
                .map_or("-".into(), |spread| format!("{:.0} %", 100.0 * spread)),
            value(line_of(YARDSTICK)),
            format_figure(ours.to_yardstick, 2),
            tail.unwrap_or_default(),
            match aim {
                Aim::Rows => table.aim.to_string(),
                Aim::BestPeer(_) if !table.is_race() => "-".into(),
                Aim::BestPeer(aim) => format!("{aim} of the best peer's"),
            },
            format_figure(ours.cpu_to_yardstick, 2),
            value(line_of(best)),
            format_figure(ours.to_best_peer, 2),
        ));
    }
    text + &outside_page(tables)
}

/// The aim of the rows.
#[derive(Clone, Copy)]
pub(super) enum Aim {
    /// The row's own aim: the largest allowed ratio of our figure to the yardstick's.
    Rows,
    /// The largest allowed part of the best parallel peer's time.
    BestPeer(f64),
}

/// The aim of the row `coop`: the always-ready task must keep this part of the speed that it has
/// alone.
const PACE_AIM: f64 = 0.97;

/// Returns a ratio of a line.
type Ratio = fn(&Line) -> Option<f64>;

/// Returns the geometric mean of our ratios in all rows that are a race, and the number of rows.
fn mean(tables: &[Table], ratio: Ratio) -> Option<(f64, usize)> {
    let timed = tables.iter().filter(|table| table.is_race());
    let ratios = timed.filter_map(|table| ratio(table.lines.first()?));
    let ratios: Vec<f64> = ratios.collect();
    Some((geometric_mean(&ratios)?, ratios.len()))
}

/// Returns the lines that are about the mean of all rows.
pub(super) fn means(tables: &[Table]) -> String {
    let mut text = String::new();
    let ratios: [(Ratio, &str); 3] = [
        (|line| line.to_yardstick, "tokio's time"),
        (|line| line.cpu_to_yardstick, "tokio's processor time"),
        (
            |line| line.to_best_peer,
            "the row's best parallel peer's time",
        ),
    ];
    for (ratio, compared_with) in ratios {
        if let Some((mean, rows)) = mean(tables, ratio) {
            text.push_str(&format!(
                "ours is {mean:.2} x {compared_with}, the geometric mean of {rows} {}\n",
                if rows == 1 { "row" } else { "rows" }
            ));
        }
    }
    text
}

/// Returns the sentence under a page's title.
fn headline(tables: &[Table]) -> String {
    let time = mean(tables, |line| line.to_yardstick);
    let cpu = mean(tables, |line| line.cpu_to_yardstick);
    match time.zip(cpu) {
        Some(((time, rows), (cpu, _))) => format!(
            "**Ours takes {time:.2} of tokio's time and {cpu:.2} of tokio's processor time**, in the \
             geometric mean of {rows} rows.\n\n"
        ),
        None => String::new(),
    }
}

/// Returns a table of the rows whose client is a process of its own: our figures, each with its
/// ratio to the yardstick's.
fn outside_page(tables: &[Table]) -> String {
    let rows: Vec<_> = tables
        .iter()
        .filter_map(|table| {
            let ours = table
                .lines
                .first()
                .filter(|line| !line.figures.is_empty())?;
            Some((&table.row, ours))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let words = outside::FIGURES.map(|(_, words, _)| format!(" {words} |"));
    let mut text = format!(
        "\n## Clients outside\n\nThe rows whose client is a process of its own. A figure is an \
         operation's; in brackets is its multiple of {YARDSTICK}'s.\n\n\
         | row | p99 | processor time |{}\n|---|---|---|{}\n",
        words.concat(),
        "---|".repeat(words.len())
    );
    for (row, ours) in rows {
        let cell = |value, ratio| match value {
            Some(_) => format!(
                " {} ({}) |",
                format_figure(value, 2),
                format_figure(ratio, 2)
            ),
            None => " - |".to_owned(),
        };
        text.push_str(&format!("| `{row}` |"));
        text.push_str(&cell(ours.p99, ours.p99_to_yardstick));
        text.push_str(&cell(ours.cpu_ns, ours.cpu_to_yardstick));
        for figure in &ours.figures {
            text.push_str(&cell(figure.value, figure.to_yardstick));
        }
        text.push('\n');
    }
    text
}

/// Returns the closing lines, which are about all rows.
pub(super) fn closing(tables: &[Table], taken: &[Taken], aim: Aim) -> String {
    let mut text = format!("\n{}", means(tables));
    for table in tables {
        let Some(line) = table.lines.first() else {
            continue;
        };
        let mut behind = Vec::new();
        if let (Some((ratio, false)), Aim::Rows) = (table.ours(), aim) {
            behind.push(format!("{ratio:.2} x tokio, the aim is {}", table.aim));
        }
        let pace = |line: &Line| line.efficiency.filter(|_| table.row == "coop");
        if let Some(kept) = pace(line).filter(|kept| *kept < PACE_AIM) {
            let yardstick = table.lines.iter().find(|line| line.rt == YARDSTICK);
            behind.push(format!(
                "the other's pace {} of what it is alone (tokio's {}), the aim is {PACE_AIM}",
                format_figure(Some(kept), 2),
                format_figure(yardstick.and_then(pace), 2)
            ));
        }
        for (ratio, what) in [
            (line.cpu_to_yardstick, "processor time"),
            (line.p99_to_yardstick, "p99"),
        ] {
            if let Some(ratio) = ratio.filter(|ratio| *ratio > 1.0 && table.unit == "ns") {
                behind.push(format!("{what} {ratio:.2} x tokio's"));
            }
        }
        for (figure, (_, of, _)) in line.figures.iter().zip(outside::FIGURES) {
            if let Some(ratio) = figure.to_yardstick.filter(|ratio| *ratio >= 1.005) {
                behind.push(format!("{of} {ratio:.2} x tokio's"));
            }
        }
        if let (Some(ratio), Some(best)) = (line.to_best_peer, &table.best_peer) {
            match aim {
                Aim::BestPeer(aim) if ratio > aim && table.is_race() => {
                    behind.push(format!("{ratio:.2} x {best}, the aim is {aim}"));
                }
                _ if ratio > 1.0 => behind.push(format!("{ratio:.2} x {best}")),
                _ => {}
            }
        }
        if !behind.is_empty() {
            text.push_str(&format!("behind in {}: {}\n", table.row, behind.join("; ")));
        }
    }
    for table in tables {
        let value = |line: &Line| line.value;
        let epoll = table.lines.iter().find(|line| line.rt == "epoll");
        if let (Some(ours), Some(epoll)) =
            (table.lines.first().and_then(value), epoll.and_then(value))
        {
            let share = 100.0 * epoll / ours;
            text.push_str(&format!(
                "{}: ours has {share:.0} % of a bare epoll server's pace\n",
                table.row
            ));
        }
    }
    let count = |verdict| {
        taken
            .iter()
            .filter(|taken| taken.verdict == verdict)
            .count()
    };
    text.push_str(&format!(
        "{} samples taken, {} kept; given up: {} disturbed by others, {} misplaced\n",
        taken.len(),
        count(Verdict::Kept),
        count(Verdict::Disturbed),
        count(Verdict::Misplaced)
    ));
    let lines = || tables.iter().flat_map(|table| &table.lines);
    let short = lines().filter(|line| line.kept < line.rounds).count();
    if short > 0 {
        text.push_str(&format!(
            "{short} of {} figures rest on fewer samples than rounds: the machine was busy, or its processors moved \
             (--disturbance and --placement say what is kept)\n",
            lines().count(),
        ));
    }
    text
}

/// Formats a figure, or a dash if there is none.
fn format_figure(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

/// Returns the samples of a runtime that were kept.
fn kept_samples<'a>(taken: &'a [Taken], rt: &'a str) -> impl Iterator<Item = &'a Taken> {
    taken
        .iter()
        .filter(move |taken| taken.verdict == Verdict::Kept && taken.rt == rt)
}

/// Returns a figure of each kept sample that has it.
fn figures<'a>(
    taken: &'a [Taken],
    rt: &'a str,
    figure: impl Fn(&Sample) -> Option<f64> + 'a,
) -> impl Iterator<Item = f64> + 'a {
    kept_samples(taken, rt).filter_map(move |taken| figure(&taken.sample))
}

/// Returns a runtime's [`outside::FIGURES`], or nothing if the row has none.
fn outside_figures(taken: &[Taken], rt: &str, yardstick: &str) -> Vec<Figure> {
    if taken.iter().all(|taken| taken.sample.outside.is_none()) {
        return Vec::new();
    }
    let all = outside::FIGURES.iter().map(|(_, _, figure)| {
        let of = |sample: &Sample| figure(sample.outside.as_ref()?);
        Figure {
            value: median(figures(taken, rt, of)),
            to_yardstick: ratio(taken, rt, yardstick, of),
        }
    });
    all.collect()
}

/// Returns the medians of a runtime's latencies.
fn latencies(taken: &[Taken], rt: &str) -> Option<[f64; 4]> {
    let median_of = |index: usize| {
        let latency = move |sample: &Sample| Some(sample.latencies?[index]);
        median(figures(taken, rt, latency))
    };
    Some([median_of(0)?, median_of(1)?, median_of(2)?, median_of(3)?])
}

/// Returns the median of the ratios in the rounds that have kept samples of both runtimes.
fn ratio(
    taken: &[Taken],
    rt: &str,
    other: &str,
    figure: impl Fn(&Sample) -> Option<f64>,
) -> Option<f64> {
    median(kept_samples(taken, rt).filter_map(|own| {
        let other = kept_samples(taken, other).find(|other| other.round == own.round)?;
        Some(figure(&own.sample)? / figure(&other.sample)?)
    }))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rt: &str, round: usize, value: f64, verdict: Verdict) -> Taken {
        let sample = Sample {
            operations: 1,
            value,
            p99: Some(10.0 * value),
            latencies: None,
            efficiency: None,
            threads: None,
            outside: None,
            cpu_ns: 2.0 * value,
            round_trip_before_ns: None,
            round_trip_after_ns: None,
            others: None,
        };
        let (row, rt) = ("row".into(), rt.into());
        Taken {
            row,
            rt,
            round,
            verdict,
            sample,
        }
    }

    fn table(taken: &[Taken]) -> Table {
        let row = Row {
            name: "row".into(),
            what: "what".into(),
            kind: "kind".into(),
            unit: "ns".into(),
            aim: 0.25,
            without: vec![],
            outside: false,
            capacity: None,
        };
        let runtimes = ["ours", "tokio", "smol", "alone"].map(|name| Runtime {
            name: name.into(),
            package: name.into(),
            parallel: name != "alone",
        });
        Table::new(&row, &runtimes, taken)
    }

    #[test]
    fn a_median_is_the_middle_or_between_the_two() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), Some(2.5));
        assert_eq!(median([].into_iter()), None);
    }

    #[test]
    fn a_ratio_is_the_median_within_rounds_not_a_ratio_of_medians() {
        let table = table(&[
            taken("ours", 0, 10.0, Verdict::Kept),
            taken("tokio", 0, 100.0, Verdict::Kept),
            taken("ours", 1, 40.0, Verdict::Kept),
            taken("tokio", 1, 80.0, Verdict::Kept),
            taken("ours", 2, 30.0, Verdict::Kept),
            taken("tokio", 2, 120.0, Verdict::Kept),
        ]);
        assert_eq!(table.lines[0].value, Some(30.0));
        assert_eq!(table.lines[0].spread, Some(1.0));
        assert_eq!(table.lines[0].to_yardstick, Some(0.25));
        assert_eq!(table.lines[1].to_yardstick, Some(1.0));
    }

    #[test]
    fn samples_given_up_count_only_as_given_up() {
        let table = table(&[
            taken("ours", 0, 900.0, Verdict::Disturbed),
            taken("ours", 0, 10.0, Verdict::Kept),
            taken("tokio", 0, 20.0, Verdict::Kept),
            taken("smol", 0, 1.0, Verdict::Misplaced),
        ]);
        assert_eq!(table.best_peer.as_deref(), Some("tokio"));
        assert_eq!(table.lines[0].to_best_peer, Some(0.5));
        assert_eq!((table.lines[0].kept, table.lines[0].taken), (1, 2));
        assert_eq!(table.lines[2].value, None);
        assert!(!table.is_complete());
        assert!(closing(&[table], &[], Aim::Rows).contains("2 of 4 figures"));
    }

    #[test]
    fn the_best_peer_is_never_ours_nor_one_that_uses_one_processor() {
        let table = table(&[
            taken("ours", 0, 1.0, Verdict::Kept),
            taken("tokio", 0, 20.0, Verdict::Kept),
            taken("smol", 0, 10.0, Verdict::Kept),
            taken("alone", 0, 2.0, Verdict::Kept),
        ]);
        assert_eq!(table.best_peer.as_deref(), Some("smol"));
        assert_eq!(table.lines[0].to_best_peer, Some(0.1));
    }

    #[test]
    fn closing_lines_name_a_row_that_is_behind() {
        let samples = |ours| {
            [
                taken("ours", 0, ours, Verdict::Kept),
                taken("tokio", 0, 100.0, Verdict::Kept),
            ]
        };
        let closing = |ours| super::closing(&[table(&samples(ours))], &[], Aim::Rows);
        assert!(!closing(25.0).contains("behind"));
        assert!(closing(26.0).contains("behind in row: 0.26 x tokio, the aim is 0.25"));
        assert!(closing(110.0).contains("processor time 1.10 x tokio's; p99 1.10 x tokio's"));
    }

    #[test]
    fn with_another_allocator_the_aim_is_the_best_peers_time() {
        let table = |ours| {
            table(&[
                taken("ours", 0, ours, Verdict::Kept),
                taken("tokio", 0, 1_000.0, Verdict::Kept),
                taken("smol", 0, 100.0, Verdict::Kept),
            ])
        };
        let closing = |ours| super::closing(&[table(ours)], &[], Aim::BestPeer(0.9));
        assert!(!closing(90.0).contains("behind"));
        assert!(closing(91.0).contains("behind in row: 0.91 x smol, the aim is 0.9"));
        assert!(!closing(400.0).contains("tokio, the aim"));
        let mut no_race = table(91.0);
        no_race.row = "coop".into();
        assert!(!super::closing(&[no_race], &[], Aim::BestPeer(0.9)).contains("behind"));
    }

    #[test]
    fn closing_lines_name_a_pace_that_is_not_kept() {
        let closing = |kept| {
            let mut taken = [
                taken("ours", 0, 1.0, Verdict::Kept),
                taken("tokio", 0, 100.0, Verdict::Kept),
            ];
            (taken[0].sample.efficiency, taken[1].sample.efficiency) = (Some(kept), Some(0.5));
            let mut table = table(&taken);
            table.row = "coop".into();
            super::closing(&[table], &[], Aim::Rows)
        };
        assert!(!closing(0.97).contains("behind"));
        assert!(
            closing(0.9).contains(
                "the other's pace 0.90 of what it is alone (tokio's 0.50), the aim is 0.97"
            )
        );
    }

    #[test]
    fn more_system_calls_than_tokios_are_behind() {
        let mut samples = [
            taken("ours", 0, 10.0, Verdict::Kept),
            taken("tokio", 0, 100.0, Verdict::Kept),
        ];
        for (sample, syscalls) in samples.iter_mut().zip([3.0, 2.0]) {
            sample.sample.outside = Some(outside::Outside {
                syscalls: Some(syscalls),
                ..Default::default()
            });
        }
        let counted = table(&samples);
        assert!(counted.text().contains("calls/op"));
        assert!(outside_page(&[counted]).contains("| 3.00 (1.50) |"));
        let closing = closing(&[table(&samples)], &[], Aim::Rows);
        assert!(
            closing.contains("behind in row: system calls 1.50 x tokio's\n"),
            "{closing}"
        );
    }

    #[test]
    fn system_calls_that_are_not_counted_have_a_reason() {
        let mut samples = [taken("ours", 0, 10.0, Verdict::Kept)];
        samples[0].sample.outside = Some(outside::Outside {
            syscalls_unknown: Some("no root".into()),
            ..Default::default()
        });
        let text = table(&samples).text();
        assert!(
            text.contains("system calls are NOT counted: no root"),
            "{text}"
        );
        assert!(!text.contains("calls/op"), "{text}");
    }

    #[test]
    fn a_geometric_mean_of_a_half_and_two_is_one() {
        assert!((geometric_mean(&[0.5, 2.0]).expect("there are values") - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
