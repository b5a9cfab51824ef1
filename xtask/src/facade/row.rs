//! The results of a crate with both, for the table and the page.
use super::{list::Entry, results::Results};
use crate::{
    cases::End,
    expected::{Expected, Kind},
};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of a crate, for the table and the page.
#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) version: String,
    /// The tests that count, and those of them that pass with the façade.
    pub(super) counted: usize,
    pub(super) passed: usize,
    /// The tests that pass with tokio but enter no runtime, and those of them that pass here.
    pub(super) others: usize,
    pub(super) others_passed: usize,
    /// The tests that fail with tokio, and the targets that do not compile with it.
    pub(super) failed_on_tokio: usize,
    pub(super) not_compiled: Vec<String>,
    pub(super) skipped: BTreeMap<String, usize>,
    /// The tests that pass with tokio and not with the façade.
    pub(super) differences: Vec<Difference>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Difference {
    pub(super) test: String,
    /// Whether the test counts.
    pub(super) counts: bool,
    pub(super) end: End,
    pub(super) line: String,
    /// The reason, from a row.
    pub(super) kind: Option<Kind>,
    pub(super) why: Option<String>,
}

/// Compares the results of a crate with both. Fails if no test counts.
pub(super) fn compare(
    entry: &Entry,
    tokio: &Results,
    here: &Results,
    expected: &mut Expected,
) -> Result<Row> {
    let count = |counts: bool, passed: bool| {
        let tests = tokio
            .passed
            .iter()
            .filter(|(_, pass)| pass.entered == counts);
        let tests = tests.filter(|(test, _)| !passed || here.passed.contains_key(*test));
        tests.count()
    };
    let counted = count(true, false);
    ensure!(
        counted > 0,
        "no test counts: with tokio {} pass, {} fail, {} targets do not compile",
        tokio.passed.len(),
        tokio.failed.len(),
        tokio.not_compiled.len()
    );
    let mut differences = Vec::new();
    for (test, pass) in &tokio.passed {
        if here.passed.contains_key(test) {
            continue;
        }
        let (target, path) = test.split_once("::").unwrap_or((test, ""));
        let error = here.not_compiled.get(target).cloned();
        let not_compiled = (End::NotCompiled, error.unwrap_or_default());
        let (end, line) = here.failed.get(test).cloned().unwrap_or(not_compiled);
        let file = format!("{}/{target}", entry.name);
        let row = expected.row(&file, path, end == End::NotCompiled, &line);
        differences.push(Difference {
            test: test.clone(),
            counts: pass.entered,
            end,
            line,
            kind: row.map(|row| row.kind),
            why: row.map(|row| row.why.clone()),
        });
    }
    Ok(Row {
        version: entry.version.clone(),
        counted,
        passed: count(true, true),
        others: count(false, false),
        others_passed: count(false, true),
        failed_on_tokio: tokio.failed.len(),
        not_compiled: tokio.not_compiled.keys().cloned().collect(),
        skipped: tokio.skipped.clone(),
        differences,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facade::results::Pass;

    /// A server that does not run, or a feature that is off, must not look like success.
    #[test]
    fn crate_without_a_test_that_counts_is_refused() {
        let entry: Entry = toml::from_str("name = 'a'\nversion = '1'").unwrap();
        let mut expected = Expected::default();
        let mut counts = |entered: &[bool]| {
            let pass = |(at, entered): (usize, &bool)| {
                let left = Default::default();
                let entered = *entered;
                (format!("lib::{at}"), Pass { entered, left })
            };
            let passed = entered.iter().enumerate().map(pass).collect();
            let results = Results {
                passed,
                ..Results::default()
            };
            compare(&entry, &results, &results, &mut expected).map(|row| row.counted)
        };
        assert_eq!(counts(&[true, false]).unwrap(), 1);
        for none in [&[][..], &[false]] {
            assert!(
                counts(none)
                    .unwrap_err()
                    .to_string()
                    .contains("no test counts")
            );
        }
    }
}
