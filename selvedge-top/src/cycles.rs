//! The tasks of a dump that wait for each other.
use crate::json::Json;
use selvedge::{TaskDump, wait_cycles};

/// The circles that are sent, and the lines of each.
const MOST: usize = 10;
const MOST_LINES: usize = 50;

/// Returns the texts of the circles as JSON. A long one is cut, and says so.
pub(crate) fn json(dump: &[TaskDump]) -> String {
    let cycles = wait_cycles(dump);
    let mut json = Json::new();
    let shown = &cycles[..cycles.len().min(MOST)];
    json.list(shown, |json, cycle| json.text(cut(&cycle.to_string())));
    json.into_string()
}

fn cut(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    match lines.len().checked_sub(MOST_LINES) {
        None | Some(0) => text.to_owned(),
        Some(left) => format!(
            "{}\n  and {left} lines more",
            lines[..MOST_LINES].join("\n")
        ),
    }
}

#[cfg(test)]
#[test]
fn long_circle_is_cut() {
    let text = "a line\n".repeat(MOST_LINES + 3);
    let cut = cut(&text);
    assert_eq!(cut.lines().count(), MOST_LINES + 1);
    assert!(cut.ends_with("and 3 lines more"));
    assert_eq!(self::cut("two\n  lines"), "two\n  lines");
}
