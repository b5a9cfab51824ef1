//! Draws cost as a multiple of tokio's (the yardstick). `all.svg` has every row; `overview.svg` has
//! the rows of [`WORDS`] and every other row in which tokio is faster.
use super::shapes::{
    DrawResult, FAINT, OURS, PEER, PLAIN, TOKIO, TextStyle, draw_bar, draw_footer, draw_line,
    draw_text, format_figure,
};
use crate::{
    Machine,
    table::{Line, Table, YARDSTICK},
};
use anyhow::{Result, anyhow};
use plotters::{prelude::*, style::text_anchor::HPos};
use std::path::{Path, PathBuf};

/// The rows of the overview, in words for a reader who knows no runtime from inside.
const WORDS: &[(&str, &str)] = &[
    ("spawn_many_local", "spawn a task"),
    ("spawn_join", "spawn a task and await its output"),
    (
        "spawn_busy_100us_remote",
        "spawn while every worker is in a poll of 100 µs",
    ),
    ("ping_pong", "send a task a message and get an answer"),
    ("idle_wake", "wake an idle runtime"),
    ("wake_threads", "wake one task from four threads"),
    ("spawn_blocking", "run a blocking closure and await it"),
    ("timeout_ready", "a time limit for a future that is ready"),
    ("idle_task", "memory of a waiting task"),
    ("echo_50", "an echo over TCP, 50 connections"),
    ("echo_50_inside", "an echo over TCP, 50 clients inside"),
    ("http_50", "a request over HTTP/1, 50 connections"),
    ("fs_tree", "read a file"),
    ("interval_10k", "how late 10,000 intervals are"),
];

/// Draws both charts into `dir`, and returns the files' names.
pub(super) fn draw(machine: &Machine, tables: &[Table], dir: &Path) -> Result<Vec<PathBuf>> {
    let all: Vec<_> = tables
        .iter()
        .filter_map(|table| Entry::of(table, name(table)))
        .collect();
    let charts = [("overview.svg", chosen(tables)), ("all.svg", all)];
    let mut files = Vec::new();
    for (name, entries) in charts {
        let file = dir.join(name);
        chart(machine, &entries, &file).map_err(|error| anyhow!("{}: {error}", file.display()))?;
        files.push(file);
    }
    Ok(files)
}

/// Returns the entries of the overview.
fn chosen(tables: &[Table]) -> Vec<Entry<'_>> {
    let named = WORDS.iter().filter_map(|(row, words)| {
        let table = tables.iter().find(|table| table.row == *row)?;
        Entry::of(table, (*words).to_owned())
    });
    let others = tables
        .iter()
        .filter(|table| WORDS.iter().all(|(row, _)| table.row != *row));
    let others = others.filter_map(|table| Entry::of(table, name(table)));
    named.chain(others.filter(Entry::is_behind)).collect()
}

fn name(table: &Table) -> String {
    match &*table.unit {
        "ns" => table.row.clone(),
        unit => format!("{}, {unit}", table.row),
    }
}

/// A row of a chart.
struct Entry<'a> {
    label: String,
    figures: String,
    /// Our figure as a multiple of the yardstick's.
    ours: f64,
    /// The best parallel peer and its multiple, unless that peer is the yardstick.
    best: Option<(&'a str, f64)>,
}

impl<'a> Entry<'a> {
    /// Returns the entry of a table, or `None` if the table lacks our multiple or a best peer.
    fn of(table: &'a Table, label: String) -> Option<Self> {
        let line = |rt: &str| table.lines.iter().find(|line| line.rt == rt);
        let ours = table.lines.first()?;
        let best = line(table.best_peer.as_deref()?).filter(|line| line.rt != YARDSTICK);
        let figure = |line: &Line| Some(format_figure(line.value?, &table.unit));
        let yardstick = line(YARDSTICK).and_then(figure).unwrap_or_default();
        Some(Self {
            label,
            figures: format!("{}, {YARDSTICK} {yardstick}", figure(ours)?),
            ours: ours.to_yardstick?,
            best: best.and_then(|best| Some((&*best.rt, best.to_yardstick?))),
        })
    }

    /// Whether the yardstick is faster, by the digits that the chart shows.
    fn is_behind(&self) -> bool {
        (100.0 * self.ours).round() > 100.0
    }
}

fn chart(machine: &Machine, entries: &[Entry<'_>], file: &Path) -> DrawResult {
    const LEFT: i32 = 316;
    const PIXELS_PER_MULTIPLE: i32 = 380;
    /// The end of the scale. Longer bars are cut there.
    const END: f64 = 1.25;
    const ROW: i32 = 44;
    const BAR: i32 = 15;
    const TOP: i32 = 104;
    let bottom = TOP + ROW * entries.len() as i32;
    let area = SVGBackend::new(file, (860, bottom as u32 + 74)).into_drawing_area();
    area.fill(&WHITE)?;
    let title = TextStyle { size: 21, ..PLAIN };
    let heading = "Cost as a multiple of tokio's: shorter is better";
    draw_text(&area, (16, 26), &title, heading)?;
    let label = TextStyle { size: 15, ..PLAIN };
    for (x, colour, words) in [
        (16, OURS, "selvedge"),
        (
            124,
            PEER,
            "the row's best parallel peer, where that isn't tokio",
        ),
    ] {
        draw_bar(&area, (x, 50), 12, 12, colour)?;
        draw_text(&area, (x + 18, 57), &label, words)?;
    }
    let x_of = |ratio: f64| LEFT + (ratio.min(END) * f64::from(PIXELS_PER_MULTIPLE)) as i32;
    let small = TextStyle {
        size: 13,
        colour: TOKIO,
        align: HPos::Center,
    };
    for quarter in 0..=5 {
        let ratio = f64::from(quarter) / 4.0;
        let colour = if quarter == 4 { TOKIO } else { FAINT };
        draw_line(
            &area,
            (x_of(ratio), TOP - 10),
            (x_of(ratio), bottom),
            colour,
        )?;
        let words = match quarter {
            4 => "tokio".into(),
            _ => format!("{ratio}"),
        };
        draw_text(&area, (x_of(ratio), TOP - 19), &small, &words)?;
    }
    for (entry, y) in entries.iter().zip((TOP..).step_by(ROW as usize)) {
        let align = HPos::Right;
        draw_text(
            &area,
            (LEFT - 10, y + 8),
            &TextStyle { align, ..label },
            &entry.label,
        )?;
        draw_text(
            &area,
            (LEFT - 10, y + 24),
            &TextStyle { align, ..small },
            &entry.figures,
        )?;
        // Our bar, and the best peer's below it.
        let ours = (entry.ours, OURS, String::new());
        let best = entry
            .best
            .map(|(name, ratio)| (ratio, PEER, format!(" {name}")));
        let bars = [Some(ours), best].into_iter().flatten();
        for (bar, y) in bars.zip([y, y + BAR]) {
            let (ratio, colour, name) = bar;
            draw_bar(&area, (LEFT, y), x_of(ratio) - LEFT, BAR - 1, colour)?;
            let words = format!("{ratio:.2}{name}");
            let end = x_of(ratio) + 6;
            // A white bar under the text covers the lines of the scale, which were drawn before.
            let width = (5.9 * words.len() as f64) as i32 + 4;
            draw_bar(&area, (end - 2, y), width, BAR - 1, WHITE)?;
            draw_text(
                &area,
                (end, y + BAR / 2),
                &TextStyle { size: 13, ..PLAIN },
                &words,
            )?;
        }
    }
    draw_footer(&area, machine, bottom + 18, 180)?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{options::names, saved};
    use std::fs;

    #[test]
    fn overview_has_words_only_for_rows_that_exist() {
        for (row, _) in WORDS {
            assert!(names::rows().any(|(known, _)| known == row), "{row}");
        }
    }

    /// Fails if a committed chart differs from the one drawn from `results.json` beside it, or if
    /// the overview or the README leaves out a row in which tokio is faster.
    #[test]
    fn charts_match_the_figures_and_hide_no_loss() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks");
        let readme = fs::read_to_string(docs.join("../../README.md")).unwrap();
        let made = tempfile::tempdir().unwrap();
        for dir in [docs.clone(), docs.join("jemalloc")] {
            let report = saved(&[dir.join("results.json")]).unwrap();
            for file in draw(&report.machine, &report.tables, made.path()).unwrap() {
                let kept = dir.join(file.file_name().unwrap());
                let name = kept.display();
                let (drawn, kept) = (fs::read(&file).unwrap(), fs::read(&kept).unwrap());
                assert!(
                    drawn == kept,
                    "`--from results.json --plot` draws another {name}"
                );
            }
            let shown = chosen(&report.tables);
            for table in &report.tables {
                let Some(entry) = Entry::of(table, name(table)) else {
                    continue;
                };
                let is_shown = shown.iter().any(|shown| shown.figures == entry.figures);
                let is_named = readme.contains(&format!("`{}`", table.row));
                assert!(
                    !entry.is_behind() || is_shown && is_named,
                    "{}: {}",
                    dir.display(),
                    table.row
                );
            }
        }
    }
}
