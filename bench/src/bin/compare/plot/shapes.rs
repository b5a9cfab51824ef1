//! The texts, bars and lines of which a chart consists.
use crate::Machine;
use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) const OURS: RGBColor = RGBColor(0xC2, 0x41, 0x0C);
pub(super) const TOKIO: RGBColor = RGBColor(0x47, 0x55, 0x69);
pub(super) const PEER: RGBColor = RGBColor(0x94, 0xA3, 0xB8);
/// The colour of a runtime that is not parallel: it runs the row on one thread.
pub(super) const ALONE: RGBColor = RGBColor(0xDD, 0xE3, 0xEA);
pub(super) const INK: RGBColor = RGBColor(0x1E, 0x29, 0x3B);
pub(super) const FAINT: RGBColor = RGBColor(0xE2, 0xE8, 0xF0);

pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The size, the colour and the alignment of a text.
pub(super) struct Ink {
    pub(super) size: i32,
    pub(super) colour: RGBColor,
    pub(super) to: HPos,
}

pub(super) const PLAIN: Ink = Ink {
    size: 13,
    colour: INK,
    to: HPos::Left,
};

/// Draws a text at the point `at`. The middle of the text's height is at the point's height.
pub(super) fn text(area: &Area<'_>, at: (i32, i32), ink: &Ink, words: &str) -> Drawn {
    let style = ("sans-serif", ink.size)
        .into_font()
        .color(&ink.colour)
        .pos(Pos::new(ink.to, VPos::Center));
    area.draw(&Text::new(words, at, style))?;
    Ok(())
}

pub(super) fn bar(
    area: &Area<'_>,
    from: (i32, i32),
    width: i32,
    height: i32,
    colour: RGBColor,
) -> Drawn {
    let corners = [from, (from.0 + width.max(1), from.1 + height)];
    area.draw(&Rectangle::new(corners, colour.filled()))?;
    Ok(())
}

pub(super) fn line(area: &Area<'_>, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
    area.draw(&PathElement::new([from, to], colour.stroke_width(1)))?;
    Ok(())
}

/// Draws the machine and the versions, in lines of bounded length.
pub(super) fn footer(area: &Area<'_>, machine: &Machine, mut y: i32, width: usize) -> Drawn {
    for words in wrap(machine.line().trim(), width) {
        let ink = Ink {
            size: 11,
            colour: TOKIO,
            ..PLAIN
        };
        text(area, (16, y), &ink, &words)?;
        y += 15;
    }
    Ok(())
}

/// Breaks a text into lines, between words.
pub(super) fn wrap(words: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split_whitespace() {
        let last = lines.last_mut().expect("there is a first");
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

/// Formats a figure in about three digits, with its unit.
pub(super) fn shown(value: f64, unit: &str) -> String {
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
        let all = all.map(|value| shown(value, "ns"));
        assert_eq!(all, ["0.12 ns", "12.3 ns", "123 ns", "1.23 µs", "23.5 µs"]);
        assert_eq!(shown(96.0, "bytes"), "96.0 bytes");
    }

    #[test]
    fn text_is_broken_between_words_only() {
        assert_eq!(wrap("ab cd efghij", 5), ["ab cd", "efghij"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
