//! The table that the command prints, and the reasons of failures.
use super::{
    list::Entry,
    row::{Difference, Row},
};
use crate::expected::{Expected, Kind};
use project::say;
use std::collections::{BTreeMap, BTreeSet};

/// Prints the counts of each crate.
pub(super) fn print(rows: &BTreeMap<String, Row>) {
    say!("{:28} counted façade  others façade  failed with tokio", "");
    let line = |name: &str, counts: [usize; 5]| {
        let [counted, passed, others, others_passed, failed] = counts;
        say!("{name:28} {counted:>7} {passed:>6} {others:>7} {others_passed:>6} {failed:>18}");
    };
    let mut total = [0; 5];
    for (name, row) in rows {
        let counts = [
            row.counted,
            row.passed,
            row.others,
            row.others_passed,
            row.failed_on_tokio,
        ];
        line(&format!("{name} {}", row.version), counts);
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
        for target in &row.not_compiled {
            say!("    does not compile with tokio: {target}");
        }
        for (why, count) in &row.skipped {
            say!("    {count} did not run: {why}");
        }
    }
    line("all", total);
}

/// Prints the failures that no row explains, the counts of the others, and the rows whose tests
/// passed. Returns whether each failure has a row, and each row a failure.
pub(super) fn print_reasons(
    rows: &BTreeMap<String, Row>,
    expected: &Expected,
    entries: &[Entry],
) -> bool {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut unexplained = 0;
    for (name, row) in rows {
        for Difference {
            test,
            end,
            line,
            kind,
            ..
        } in &row.differences
        {
            match kind {
                Some(kind) => *kinds.entry(*kind).or_default() += 1,
                None => {
                    say!("no row: {name}/{test}: {end:?}: {line}");
                    unexplained += 1;
                }
            }
        }
    }
    for (kind, count) in &kinds {
        say!("{count:>3} failed as expected: {}", kind.words());
    }
    let ran = |file: &str| {
        let mut ran = entries
            .iter()
            .filter(|entry| rows.contains_key(&entry.name));
        ran.any(|entry| file.split('/').next() == Some(&entry.name))
    };
    let files: BTreeSet<_> = expected.files().filter(|file| ran(file)).collect();
    let stale = expected.stale(&files);
    for test in &stale {
        say!("has a row, but did not fail: {test}");
    }
    unexplained == 0 && stale.is_empty()
}
