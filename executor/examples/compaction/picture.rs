//! Draws latencies over the share of the reads that were no slower.
use crate::client::Outcome;
use plotters::prelude::*;
use std::{error::Error, path::Path};

pub fn draw(outcomes: &[Outcome], path: &Path) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (820, 460)).into_drawing_area();
    area.fill(&WHITE)?;
    let longest = outcomes.iter().map(|outcome| outcome.latency(1.0));
    let most = longest.fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&area)
        .caption("Reads beside compaction", ("sans-serif", 20))
        .margin(12)
        .margin_right(28)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..100.0, (0.001..most * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("percent of the reads that were no slower")
        .y_desc("latency, ms")
        .x_label_formatter(&|percent| format!("{percent:.0}"))
        .label_style(("sans-serif", 13))
        .draw()?;
    let colors = [
        RGBColor(0, 90, 181),
        RGBColor(120, 170, 220),
        RGBColor(220, 50, 32),
    ];
    for (outcome, color) in outcomes.iter().zip(colors) {
        let points = (0..=1_000).map(|i| {
            let share = f64::from(i) / 1_000.0;
            (share * 100.0, outcome.latency(share))
        });
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(outcome.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .border_style(BLACK)
        .background_style(WHITE)
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()?;
    Ok(())
}
