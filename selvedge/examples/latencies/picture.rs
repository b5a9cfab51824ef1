//! Draws latencies over the percentage of the samples that were no slower. Two examples use it.
use plotters::prelude::*;
use std::{error::Error, path::Path};

/// The texts of a picture.
pub struct Texts<'a> {
    pub title: &'a str,
    pub x: &'a str,
    pub y: &'a str,
}

/// A line of a picture: its name, its colour and its curve. `latency` takes a fraction of the
/// samples, from 0.0 to 1.0, and returns the latency that this fraction did not exceed.
pub struct Line<'a> {
    pub name: &'static str,
    pub color: RGBColor,
    pub latency: &'a dyn Fn(f64) -> f64,
}

/// Draws the lines on a logarithmic axis that begins at `least`.
pub fn draw(
    texts: &Texts<'_>,
    lines: &[Line<'_>],
    least: f64,
    legend: SeriesLabelPosition,
    path: &Path,
) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (820, 460)).into_drawing_area();
    area.fill(&WHITE)?;
    let longest = lines.iter().map(|line| (line.latency)(1.0));
    let most = longest.fold(least * 10.0, f64::max);
    let mut chart = ChartBuilder::on(&area)
        .caption(texts.title, ("sans-serif", 20))
        .margin(12)
        .margin_right(28)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..100.0, (least..most * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(texts.x)
        .y_desc(texts.y)
        .x_label_formatter(&|percent| format!("{percent:.0}"))
        .label_style(("sans-serif", 13))
        .draw()?;
    for line in lines {
        let color = line.color;
        let points = (0..=1_000).map(|i| {
            let share = f64::from(i) / 1_000.0;
            (share * 100.0, (line.latency)(share))
        });
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(legend)
        .border_style(BLACK)
        .background_style(WHITE)
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()?;
    Ok(())
}
