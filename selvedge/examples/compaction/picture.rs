//! The picture of the runs: a line for each.
use crate::{
    client::Outcome,
    latencies::{Line, Texts, draw as draw_lines},
};
use plotters::{chart::SeriesLabelPosition, style::RGBColor};
use std::{error::Error, path::Path};

pub fn draw(outcomes: &[Outcome], path: &Path) -> Result<(), Box<dyn Error>> {
    let texts = Texts {
        title: "Reads beside compaction",
        x: "percent of the reads that were no slower",
        y: "latency, ms",
    };
    let colors = [
        RGBColor(0, 90, 181),
        RGBColor(120, 170, 220),
        RGBColor(220, 50, 32),
    ];
    let latencies: Vec<_> = outcomes
        .iter()
        .map(|outcome| |share| outcome.latency(share))
        .collect();
    let lines: Vec<_> = outcomes
        .iter()
        .zip(&latencies)
        .zip(colors)
        .map(|((outcome, latency), color)| Line {
            name: outcome.name,
            color,
            latency,
        })
        .collect();
    draw_lines(&texts, &lines, 0.001, SeriesLabelPosition::LowerRight, path)
}
