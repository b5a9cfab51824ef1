//! Draws the tables as bar charts:
//!
//! - Two charts of multiples of the figures of tokio, the *yardstick*. One has all rows, the other
//!   has a dozen rows, described in users' words.
//! - A chart for each kind of row, with the figures of all runtimes.
//! - A chart of the percentiles of a row's times.
//! - A chart of our runtime as it is, and without each optimisation.
use super::{
    Machine,
    table::{Line, Table, YARDSTICK},
};
use anyhow::{Context, Result, anyhow};
use plotters::{prelude::*, style::text_anchor::HPos};
use shapes::{
    Area, DrawResult, ONE_THREAD, OURS, PEER, PLAIN, TOKIO, TextStyle, draw_bar, draw_footer,
    draw_text, format_figure, wrap,
};
use std::path::{Path, PathBuf};

mod overview;
mod shapes;

/// Draws all charts into `dir`, and returns the files' names.
pub(super) fn draw(machine: &Machine, tables: &[Table], dir: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let mut kinds: Vec<&str> = Vec::new();
    for table in tables {
        if !kinds.contains(&table.kind.as_str()) {
            kinds.push(&table.kind);
        }
    }
    let mut files = overview::draw(machine, tables, dir)?;
    for kind in kinds {
        let of_kind: Vec<&Table> = tables.iter().filter(|table| table.kind == kind).collect();
        let file = dir.join(format!("{kind}.svg"));
        panels(
            machine,
            &format!("{kind}: shorter is better"),
            &LEGEND,
            &of_kind,
            &file,
        )
        .map_err(|error| anyhow!("{}: {error}", file.display()))?;
        files.push(file);
    }
    Ok(files)
}

/// Draws our runtime as it is, and without each optimisation: a panel for each row.
pub(super) fn ablation(machine: &Machine, tables: &[Table], file: &Path) -> Result<()> {
    let tables: Vec<&Table> = tables.iter().collect();
    let legend = [(16, OURS, "as it is"), (110, PEER, "without")];
    panels(
        machine,
        "What each optimisation is worth",
        &legend,
        &tables,
        file,
    )
    .map_err(|error| anyhow!("{}: {error}", file.display()))
}

/// Draws a chart for each row that has latencies into `dir`, and returns the files' names.
pub(super) fn latencies(machine: &Machine, tables: &[Table], dir: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let mut files = Vec::new();
    for table in tables {
        let latencies = |line: &Line| Some((line.rt.clone(), line.latencies?));
        let runtimes: Vec<_> = table.lines.iter().filter_map(latencies).collect();
        if !runtimes.is_empty() {
            let file = dir.join(format!("{}.svg", table.row));
            percentiles(machine, table, &runtimes, &file)
                .map_err(|error| anyhow!("{}: {error}", file.display()))?;
            files.push(file);
        }
    }
    Ok(files)
}

/// Draws a row's p50, p90, p99 and longest time: a group of bars for each of the four, with a bar
/// for each runtime.
fn percentiles(
    machine: &Machine,
    table: &Table,
    runtimes: &[(String, [f64; 4])],
    file: &Path,
) -> DrawResult {
    const GROUPS: [&str; 4] = ["p50", "p90", "p99", "the longest"];
    const LEFT: i32 = 260;
    /// The length of the longest bar.
    const LENGTH: i32 = 470;
    const BAR: i32 = 20;
    const TOP: i32 = 94;
    let group_height = BAR * runtimes.len() as i32 + 16;
    let bottom = TOP + group_height * GROUPS.len() as i32;
    let area = SVGBackend::new(file, (840, bottom as u32 + 70)).into_drawing_area();
    area.fill(&WHITE)?;
    let title = TextStyle { size: 19, ..PLAIN };
    let heading = format!("{}: the time of an answer, shorter is better", table.row);
    draw_text(&area, (16, 24), &title, &heading)?;
    let small = TextStyle {
        size: 11,
        colour: TOKIO,
        ..PLAIN
    };
    for (index, words) in wrap(&table.what, 130).iter().take(2).enumerate() {
        draw_text(&area, (16, 48 + 14 * index as i32), &small, words)?;
    }
    let times = runtimes.iter().flat_map(|(_, times)| times);
    let longest = times.copied().fold(f64::MIN_POSITIVE, f64::max);
    for (group, name) in GROUPS.into_iter().enumerate() {
        let top = TOP + group_height * group as i32;
        let heading = TextStyle { size: 14, ..PLAIN };
        draw_text(&area, (16, top + BAR / 2 - 2), &heading, name)?;
        for (index, (rt, times)) in runtimes.iter().enumerate() {
            let y = top + BAR * index as i32;
            let name = TextStyle {
                align: HPos::Right,
                ..PLAIN
            };
            draw_text(&area, (LEFT - 8, y + BAR / 2 - 2), &name, rt)?;
            let colour = match rt.as_str() {
                YARDSTICK => TOKIO,
                _ if index == 0 => OURS,
                _ => PEER,
            };
            let time = times[group];
            let length = (time / longest * f64::from(LENGTH)) as i32;
            draw_bar(&area, (LEFT, y), length, BAR - 4, colour)?;
            let end = (LEFT + length + 6, y + BAR / 2 - 2);
            draw_text(&area, end, &PLAIN, &format_figure(time, &table.unit))?;
        }
    }
    draw_footer(&area, machine, bottom + 14, 130)?;
    area.present()?;
    Ok(())
}

/// The legend of the charts with all runtimes.
const LEGEND: [(i32, RGBColor, &str); 4] = [
    (16, OURS, "selvedge"),
    (110, TOKIO, "tokio"),
    (180, PEER, "peers"),
    (250, ONE_THREAD, "on one thread"),
];

/// Draws the tables in two columns, with a bar for each line of a table.
fn panels(
    machine: &Machine,
    heading: &str,
    legend: &[(i32, RGBColor, &str)],
    tables: &[&Table],
    file: &Path,
) -> DrawResult {
    const WIDTH: i32 = 520;
    const LEFT: i32 = 170;
    const BAR: i32 = 18;
    const TOP: i32 = 70;
    let height = |table: &Table| 92 + BAR * table.lines.len() as i32;
    let rows: Vec<_> = tables.chunks(2).collect();
    let heights: Vec<i32> = rows
        .iter()
        .map(|row| row.iter().map(|table| height(table)).max().unwrap_or(0))
        .collect();
    let bottom = TOP + heights.iter().sum::<i32>();
    let columns = tables.len().min(2) as i32;
    let size = (WIDTH as u32 * columns as u32 + 20, bottom as u32 + 80);
    let area = SVGBackend::new(file, size).into_drawing_area();
    area.fill(&WHITE)?;
    let title = TextStyle { size: 19, ..PLAIN };
    draw_text(&area, (16, 24), &title, heading)?;
    for (x, colour, words) in legend {
        draw_bar(&area, (*x, 42), 12, 12, *colour)?;
        draw_text(&area, (x + 18, 49), &PLAIN, words)?;
    }
    let mut top = TOP;
    for (row, height) in rows.iter().zip(heights) {
        for (column, table) in row.iter().enumerate() {
            draw_panel(&area, table, (WIDTH * column as i32, top), WIDTH, LEFT, BAR)?;
        }
        top += height;
    }
    draw_footer(&area, machine, bottom + 14, 75 * columns as usize)?;
    area.present()?;
    Ok(())
}

/// The most characters in a line of a panel's description, and the most lines.
const DESCRIPTION_WIDTH: usize = 84;
const DESCRIPTION_LINES: usize = 2;

/// Draws a table: its name, its description, and a bar of the height `bar` for each line. The bars
/// begin at `left`, right of the names of the runtimes.
fn draw_panel(
    area: &Area<'_>,
    table: &Table,
    (x, y): (i32, i32),
    width: i32,
    left: i32,
    bar: i32,
) -> DrawResult {
    let heading = TextStyle { size: 14, ..PLAIN };
    draw_text(area, (x + 16, y + 14), &heading, &table.row)?;
    let small = TextStyle {
        size: 11,
        colour: TOKIO,
        ..PLAIN
    };
    let description = wrap(&table.what, DESCRIPTION_WIDTH);
    for (index, words) in description.iter().take(DESCRIPTION_LINES).enumerate() {
        draw_text(area, (x + 16, y + 30 + 14 * index as i32), &small, words)?;
    }
    let longest = table.lines.iter().filter_map(|line| line.value);
    let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
    let labels: Vec<_> = (table.lines.iter())
        .map(|line| bar_label(line, &table.unit))
        .collect();
    let label_widths = labels
        .iter()
        .map(|label| 7 * label.chars().count() as i32 + 16);
    let label_width = label_widths.max().unwrap_or(0).max(110);
    for (index, (line, label)) in table.lines.iter().zip(&labels).enumerate() {
        let y = y + 58 + bar * index as i32;
        let name = TextStyle {
            size: 12,
            align: HPos::Right,
            ..PLAIN
        };
        draw_text(area, (x + left - 8, y + 7), &name, &line.rt)?;
        let colour = match line.rt.as_str() {
            _ if index == 0 => OURS,
            YARDSTICK => TOKIO,
            _ if line.parallel => PEER,
            _ => ONE_THREAD,
        };
        let longest_bar = f64::from(width - left - label_width);
        let length = (line.value.unwrap_or(0.0) / longest * longest_bar) as i32;
        draw_bar(area, (x + left, y), length, bar - 4, colour)?;
        let style = TextStyle { size: 12, ..PLAIN };
        draw_text(area, (x + left + length + 6, y + 7), &style, label)?;
    }
    Ok(())
}

/// Returns the text beside a bar: the figure that the bar shows, then the p99 and the efficiency of
/// the rows that have them.
fn bar_label(line: &Line, unit: &str) -> String {
    let value = line.value.map(|value| format_figure(value, unit));
    let mut words = value.unwrap_or("not measured".into());
    if let Some(p99) = line.p99 {
        words.push_str(&format!(", p99 {}", format_figure(p99, unit)));
    }
    if let Some(efficiency) = line.efficiency {
        words.push_str(&format!(" ({:.0} %)", 100.0 * efficiency));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: Option<f64>, p99: Option<f64>, efficiency: Option<f64>) -> Line {
        let json = serde_json::json!({
            "rt": "a", "parallel": true, "value": value, "p99": p99, "efficiency": efficiency,
            "kept": 1, "rounds": 1, "taken": 1
        });
        serde_json::from_value(json).unwrap()
    }

    /// The descriptions of the rows say "median and p99".
    #[test]
    fn label_of_a_bar_has_the_p99_of_a_row_that_has_one() {
        let label = |value, p99, efficiency| bar_label(&line(value, p99, efficiency), "ns");
        assert_eq!(
            label(Some(7451.0), Some(20180.0), None),
            "7.45 µs, p99 20.2 µs"
        );
        assert_eq!(
            label(Some(481.0), Some(3163.0), Some(0.99)),
            "481 ns, p99 3.16 µs (99 %)"
        );
        assert_eq!(label(None, None, None), "not measured");
    }

    /// Fails if a panel cuts the description of a row off.
    #[test]
    fn description_of_each_row_fits_its_panel() {
        for (row, what) in crate::options::names::rows() {
            let lines = wrap(what, DESCRIPTION_WIDTH).len();
            assert!(lines <= DESCRIPTION_LINES, "{row}");
        }
    }
}
