//! From samples to the table: medians, spreads, and the ratios within rounds.
use super::{Row, Runtime, Taken, Verdict};
use serde::Serialize;

/// The runtime that every row is a multiple of.
const YARDSTICK: &str = "tokio";

/// One row's figures.
#[derive(Serialize)]
pub(super) struct Table {
    row: String,
    what: String,
    /// The peer with the smallest median, if any was measured.
    best_peer: Option<String>,
    /// Ours first.
    lines: Vec<Line>,
}

/// A runtime's figures in a row; none where no sample was kept.
#[derive(Serialize)]
struct Line {
    rt: String,
    wall_ns: Option<f64>,
    /// The largest sample less the smallest, as a part of the median.
    spread: Option<f64>,
    cpu_ns: Option<f64>,
    to_tokio: Option<f64>,
    to_best_peer: Option<f64>,
    kept: usize,
    rounds: usize,
    taken: usize,
}

impl Table {
    pub(super) fn of(row: &Row, runtimes: &[Runtime], taken: &[Taken]) -> Self {
        let wall = |rt: &str| median(kept(taken, rt).map(|taken| taken.sample.wall_ns));
        let best_peer = runtimes[1..]
            .iter()
            .filter_map(|rt| Some((wall(&rt.name)?, rt)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, rt)| rt.name.clone());
        let rounds = taken.iter().map(|taken| taken.round + 1).max().unwrap_or(0);
        let line = |rt: &Runtime| {
            let walls = || kept(taken, &rt.name).map(|taken| taken.sample.wall_ns);
            let wall_ns = wall(&rt.name);
            let extent =
                walls().fold(f64::NEG_INFINITY, f64::max) - walls().fold(f64::INFINITY, f64::min);
            Line {
                rt: rt.name.clone(),
                wall_ns,
                spread: wall_ns.map(|median| extent / median),
                cpu_ns: median(kept(taken, &rt.name).map(|taken| taken.sample.cpu_ns)),
                to_tokio: ratio(taken, &rt.name, YARDSTICK),
                to_best_peer: best_peer
                    .as_ref()
                    .and_then(|best| ratio(taken, &rt.name, best)),
                kept: walls().count(),
                rounds,
                taken: taken.iter().filter(|taken| taken.rt == rt.name).count(),
            }
        };
        Self {
            row: row.name.clone(),
            what: row.what.clone(),
            lines: runtimes.iter().map(line).collect(),
            best_peer,
        }
    }

    /// Whether every runtime has a figure.
    pub(super) fn is_complete(&self) -> bool {
        self.lines.iter().all(|line| line.wall_ns.is_some())
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("\n{}: {}\n", self.row, self.what);
        text.push_str(&format!(
            "  {:<23}{:>10}{:>9}{:>12}{:>10}{:>13}  {}\n",
            "", "ns/op", "spread", "cpu ns/op", "x tokio", "x best peer", "samples"
        ));
        for line in &self.lines {
            let best = self.best_peer.as_ref() == Some(&line.rt);
            text.push_str(&format!(
                "  {:<23}{:>10}{:>9}{:>12}{:>10}{:>13}  {} kept of {}{}\n",
                line.rt,
                figure(line.wall_ns, 1),
                line.spread
                    .map_or("-".into(), |spread| format!("{:.0} %", 100.0 * spread)),
                figure(line.cpu_ns, 1),
                figure(line.to_tokio, 2),
                figure(line.to_best_peer, 2),
                line.kept,
                line.taken,
                if best { ", the best peer" } else { "" },
            ));
        }
        text
    }
}

/// What is to be said of all rows.
pub(super) fn closing(tables: &[Table], taken: &[Taken]) -> String {
    let mut text = "\n".to_owned();
    let ours = || tables.iter().filter_map(|table| table.lines.first());
    for (ratios, to) in [
        (ours().filter_map(|line| line.to_tokio).collect(), YARDSTICK),
        (
            ours().filter_map(|line| line.to_best_peer).collect(),
            "the row's best peer",
        ),
    ] {
        let ratios: Vec<f64> = ratios;
        if let Some(mean) = geometric_mean(&ratios) {
            let rows = ratios.len();
            text.push_str(&format!(
                "ours is {mean:.2} x {to}, the geometric mean of {rows} {}\n",
                if rows == 1 { "row" } else { "rows" }
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

fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

fn kept<'a>(taken: &'a [Taken], rt: &str) -> impl Iterator<Item = &'a Taken> {
    taken
        .iter()
        .filter(move |taken| taken.verdict == Verdict::Kept && taken.rt == rt)
}

/// The median of the ratios in those rounds that have a sample of both.
fn ratio(taken: &[Taken], rt: &str, to: &str) -> Option<f64> {
    median(kept(taken, rt).filter_map(|this| {
        let that = kept(taken, to).find(|that| that.round == this.round)?;
        Some(this.sample.wall_ns / that.sample.wall_ns)
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
    use super::super::Sample;
    use super::*;

    fn taken(rt: &str, round: usize, wall_ns: f64, verdict: Verdict) -> Taken {
        let sample = Sample {
            operations: 1,
            wall_ns,
            cpu_ns: 2.0 * wall_ns,
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
        };
        let runtimes = ["ours", "tokio", "smol"].map(|name| Runtime {
            name: name.into(),
            package: name.into(),
        });
        Table::of(&row, &runtimes, taken)
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
        assert_eq!(table.lines[0].wall_ns, Some(30.0));
        assert_eq!(table.lines[0].spread, Some(1.0));
        assert_eq!(table.lines[0].to_tokio, Some(0.25));
        assert_eq!(table.lines[1].to_tokio, Some(1.0));
    }

    #[test]
    fn samples_given_up_count_for_nothing_but_the_count() {
        let table = table(&[
            taken("ours", 0, 900.0, Verdict::Disturbed),
            taken("ours", 0, 10.0, Verdict::Kept),
            taken("tokio", 0, 20.0, Verdict::Kept),
            taken("smol", 0, 1.0, Verdict::Misplaced),
        ]);
        assert_eq!(table.best_peer.as_deref(), Some("tokio"));
        assert_eq!(table.lines[0].to_best_peer, Some(0.5));
        assert_eq!((table.lines[0].kept, table.lines[0].taken), (1, 2));
        assert_eq!(table.lines[2].wall_ns, None);
        assert!(!table.is_complete());
        assert!(closing(&[table], &[]).contains("1 of 3 figures"));
    }

    #[test]
    fn the_best_peer_is_never_ours() {
        let table = table(&[
            taken("ours", 0, 1.0, Verdict::Kept),
            taken("tokio", 0, 20.0, Verdict::Kept),
            taken("smol", 0, 10.0, Verdict::Kept),
        ]);
        assert_eq!(table.best_peer.as_deref(), Some("smol"));
        assert_eq!(table.lines[0].to_best_peer, Some(0.1));
    }

    #[test]
    fn a_geometric_mean_of_a_half_and_two_is_one() {
        assert!((geometric_mean(&[0.5, 2.0]).expect("there are values") - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
