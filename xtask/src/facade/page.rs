//! The page `docs/ecosystem.md`, and the results that it shows.
use super::{
    list::{self, Absent},
    row::{Difference, Row},
};
use anyhow::{Context, Result};
use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

const PAGE: &str = "docs/ecosystem.md";
const RESULTS: &str = "docs/verification/ecosystem.json";
const SANITIZED: &str = "docs/verification/ecosystem-sanitized.json";

const BEGIN: &str = "\
# Other projects' tests

`cargo xtask facade --page` writes this page from [the kept results](verification/ecosystem.json).
The command takes a crate's package from the registry, with the tests in it, and runs them twice:
with tokio, and with [the façade](../tokio-facade) in its place by a patch. It fails if cargo's
resolution has another tokio than the wanted one.

A test *counts* if it passes with tokio and enters a runtime there: the command's copy of tokio
notes it in the function through which each thread enters one. The *others* pass with tokio without
a runtime. Each test runs in a process of its own, for up to a minute, and once more if it failed.
Tests that fail with tokio, as they need a network or a file that is not in the package, are not
compared.

As the process of a test ends, a library that the command loads into it counts the descriptors that
the process still has, its other threads, and the bytes that it has allocated: a test that leaves a
descriptor, a thread or 5 MiB more than with tokio does not pass. The façade keeps up to 4 MiB of
ended tasks for new ones; AddressSanitizer, below, finds any leak. The descriptors that each runtime
of tokio keeps open to the end of the process do not count.

Three services ran for ten minutes each on the façade without an error, under `redis-benchmark`,
mosquitto's clients and `wrk`: [services](services.md) has the counts, and the latencies beside
tokio.

";

const SANITIZER: &str = "
## Under AddressSanitizer

`cargo xtask facade --sanitize --page CRATE…` builds with the sanitizer, which also finds leaks, and
compares again.

";

type Rows = BTreeMap<String, Row>;

/// Writes the page, with these results in the place of older ones of the same crates.
pub(super) fn write(root: &Path, rows: Rows, sanitized: bool) -> Result<()> {
    let file = if sanitized { SANITIZED } else { RESULTS };
    let mut all = kept(root, file)?;
    all.extend(rows);
    fs::write(root.join(file), serde_json::to_string_pretty(&all)? + "\n")?;
    fs::write(root.join(PAGE), whole(root)?).context(PAGE)
}

/// Returns results that the page shows.
fn kept(root: &Path, file: &str) -> Result<Rows> {
    match fs::read_to_string(root.join(file)) {
        Ok(text) => serde_json::from_str(&text).with_context(|| file.to_owned()),
        Err(_) => Ok(Rows::new()),
    }
}

/// Returns the page of the kept results.
fn whole(root: &Path) -> Result<String> {
    let (rows, sanitized) = (kept(root, RESULTS)?, kept(root, SANITIZED)?);
    page(&rows, &sanitized, &list::absent(root)?)
}

fn page(rows: &Rows, sanitized: &Rows, absent: &[Absent]) -> Result<String> {
    let mut text = BEGIN.to_owned();
    counts(&mut text, rows)?;
    text += "\n## Tests that do not pass with the façade\n\n";
    differences(&mut text, rows)?;
    left_out(&mut text, rows)?;
    text += SANITIZER;
    counts(&mut text, sanitized)?;
    text += "\n";
    differences(&mut text, sanitized)?;
    text += "\n## Crates whose tests do not run here\n\n| crates | reason |\n|---|---|\n";
    for Absent { names, why } in absent {
        writeln!(text, "| {} | {why} |", names.join(", "))?;
    }
    Ok(text)
}

/// Writes how many tests of each crate pass.
fn counts(text: &mut String, rows: &Rows) -> Result<()> {
    *text += "| crate | tests that count | with the façade | others | with the façade |\n";
    *text += "|---|--:|--:|--:|--:|\n";
    let mut sums = [0; 4];
    for (name, row) in rows {
        let counts = [row.counted, row.passed, row.others, row.others_passed];
        writeln!(text, "{}", line(&format!("{name} {}", row.version), counts))?;
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let crates = format!("**{} crates**", rows.len());
    writeln!(text, "{}", line(&crates, sums))?;
    Ok(())
}

fn line(name: &str, [counted, passed, others, others_passed]: [usize; 4]) -> String {
    format!("| {name} | {counted} | {passed} | {others} | {others_passed} |")
}

/// Writes the tests that do not pass with the façade, with their reasons.
fn differences(text: &mut String, rows: &Rows) -> Result<()> {
    if rows.values().all(|row| row.differences.is_empty()) {
        *text += "Every test that passes with tokio passes with the façade.\n";
        return Ok(());
    }
    *text += "| test | counts | reason |\n|---|---|---|\n";
    for (name, row) in rows {
        for difference in &row.differences {
            let Difference { test, counts, .. } = difference;
            let counts = if *counts { "yes" } else { "no" };
            let reason = match (&difference.kind, &difference.why) {
                (Some(kind), Some(why)) => format!("{}: {why}", kind.words()),
                _ => "not known yet".to_owned(),
            };
            writeln!(text, "| {name} `{test}` | {counts} | {reason} |")?;
        }
    }
    Ok(())
}

/// Writes what was not compared.
fn left_out(text: &mut String, rows: &Rows) -> Result<()> {
    *text += "\n## What was not compared\n\n";
    *text += "| crate | fail with tokio | targets that do not compile with tokio | did not run |\n";
    *text += "|---|--:|---|---|\n";
    for (name, row) in rows {
        let failed = row.failed_on_tokio;
        if failed == 0 && row.not_compiled.is_empty() && row.skipped.is_empty() {
            continue;
        }
        let targets = row.not_compiled.join(", ");
        let skipped = row.skipped.iter();
        let skipped: Vec<_> = skipped
            .map(|(why, count)| format!("{count}: {why}"))
            .collect();
        let skipped = skipped.join("; ");
        writeln!(text, "| {name} | {failed} | {targets} | {skipped} |")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cases::End, expected::Kind};

    fn row(differences: Vec<Difference>) -> Row {
        Row {
            version: "1.2.3".into(),
            counted: 5,
            passed: 5 - differences.len(),
            others: 2,
            others_passed: 2,
            failed_on_tokio: 1,
            not_compiled: vec!["t".into()],
            skipped: BTreeMap::new(),
            differences,
        }
    }

    /// Fails if somebody changed the page by hand, or changed the results or the list without it.
    #[test]
    fn page_shows_the_kept_results() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let shown = fs::read_to_string(root.join(PAGE)).unwrap();
        assert_eq!(shown, whole(&root).unwrap());
    }

    #[test]
    fn page_has_the_counts_and_the_reasons() {
        let difference = Difference {
            test: "lib::a".into(),
            counts: true,
            end: End::Failed,
            line: String::new(),
            kind: Some(Kind::Machine),
            why: Some("a reason".into()),
        };
        let rows = [("x", row(vec![difference])), ("y", row(Vec::new()))];
        let rows = rows.map(|(name, row)| (name.to_owned(), row)).into();
        let absent = Absent {
            names: vec!["z".into()],
            why: "no tests".into(),
        };
        let text = page(&rows, &Rows::new(), &[absent]).unwrap();
        assert!(text.contains("| x 1.2.3 | 5 | 4 | 2 | 2 |"));
        assert!(text.contains("| **2 crates** | 10 | 9 | 4 | 4 |"));
        assert!(text.contains("| x `lib::a` | yes | the machine is the reason: a reason |"));
        assert!(text.contains("| y | 1 | t |  |"));
        assert!(text.contains("| z | no tests |"));
    }
}
