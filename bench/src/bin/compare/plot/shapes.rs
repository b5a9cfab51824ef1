//! The shapes of the charts: texts, bars and lines.
use crate::Machine;
use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The colours of our runtime, of tokio, and of each other runtime.
pub(super) const OURS: RGBColor = RGBColor(0xC2, 0x41, 0x0C);
pub(super) const TOKIO: RGBColor = RGBColor(0x47, 0x55, 0x69);
pub(super) const PEER: RGBColor = RGBColor(0x94, 0xA3, 0xB8);
/// The colour of a runtime that is not parallel: it runs the row on one thread.
pub(super) const ONE_THREAD: RGBColor = RGBColor(0xDD, 0xE3, 0xEA);
/// The colour of plain text.
pub(super) const DARK: RGBColor = RGBColor(0x1E, 0x29, 0x3B);
/// The colour of the lines of a scale.
pub(super) const FAINT: RGBColor = RGBColor(0xE2, 0xE8, 0xF0);

pub(super) type DrawResult = Result<(), Box<dyn std::error::Error>>;

/// The size, the colour and the horizontal alignment of a text.
pub(super) struct TextStyle {
    pub(super) size: i32,
    pub(super) colour: RGBColor,
    pub(super) align: HPos,
}

pub(super) const PLAIN: TextStyle = TextStyle {
    size: 13,
    colour: DARK,
    align: HPos::Left,
};

/// Draws a text at `point`: `style.align` says which end of the text is there. The text is centred
/// vertically.
pub(super) fn draw_text(
    area: &Area<'_>,
    point: (i32, i32),
    style: &TextStyle,
    text: &str,
) -> DrawResult {
    let font = ("sans-serif", style.size)
        .into_font()
        .color(&style.colour)
        .pos(Pos::new(style.align, VPos::Center));
    area.draw(&Text::new(text, point, font))?;
    Ok(())
}

/// Draws a bar whose upper left corner is `corner`.
pub(super) fn draw_bar(
    area: &Area<'_>,
    corner: (i32, i32),
    width: i32,
    height: i32,
    colour: RGBColor,
) -> DrawResult {
    let opposite = (corner.0 + width.max(1), corner.1 + height);
    let corners = [corner, opposite];
    area.draw(&Rectangle::new(corners, colour.filled()))?;
    Ok(())
}

pub(super) fn draw_line(
    area: &Area<'_>,
    from: (i32, i32),
    to: (i32, i32),
    colour: RGBColor,
) -> DrawResult {
    area.draw(&PathElement::new([from, to], colour.stroke_width(1)))?;
    Ok(())
}

/// Draws a text that names the machine and the versions, in lines of up to `width` characters.
pub(super) fn draw_footer(
    area: &Area<'_>,
    machine: &Machine,
    mut y: i32,
    width: usize,
) -> DrawResult {
    for line in wrap(machine.line().trim(), width) {
        let small = TextStyle {
            size: 11,
            colour: TOKIO,
            ..PLAIN
        };
        draw_text(area, (16, y), &small, &line)?;
        y += 15;
    }
    Ok(())
}

/// Breaks a text between words, into lines of up to `width` characters if the words allow it.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is a first line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.len() + 1 + word.len() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Formats a figure with its unit, in two or three digits, or more if it is large.
pub(super) fn format_figure(value: f64, unit: &str) -> String {
    let (value, unit) = match unit {
        "ns" if value >= 1_000_000.0 => (value / 1_000_000.0, "ms"),
        "ns" if value >= 1_000.0 => (value / 1_000.0, "µs"),
        unit => (value, unit),
    };
    let digits = match value {
        v if v >= 99.5 => 0,
        v if v >= 9.95 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_about_three_digits_and_a_unit() {
        let all = [0.123, 12.345, 123.45, 1234.5, 23456.0];
        let all = all.map(|value| format_figure(value, "ns"));
        assert_eq!(all, ["0.12 ns", "12.3 ns", "123 ns", "1.23 µs", "23.5 µs"]);
        assert_eq!(format_figure(96.0, "bytes"), "96.0 bytes");
    }

    #[test]
    fn text_is_broken_between_words_only() {
        assert_eq!(wrap("ab cd efghij", 5), ["ab cd", "efghij"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
