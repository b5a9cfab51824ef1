//! The page `docs/ecosystem.md`, and the results that it shows.
use super::Row;
use anyhow::{Context, Result};
use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

const PAGE: &str = "docs/ecosystem.md";
const RESULTS: &str = "docs/verification/ecosystem.json";

/// Writes the page, with these results in the place of older ones of the same crates.
pub(super) fn write(root: &Path, rows: BTreeMap<String, Row>) -> Result<()> {
    let file = root.join(RESULTS);
    let mut all: BTreeMap<String, Row> = match fs::read_to_string(&file) {
        Ok(text) => serde_json::from_str(&text).context(RESULTS)?,
        Err(_) => BTreeMap::new(),
    };
    all.extend(rows);
    fs::write(&file, serde_json::to_string_pretty(&all)? + "\n")?;
    fs::write(root.join(PAGE), text(&all)?).context(PAGE)
}

fn text(rows: &BTreeMap<String, Row>) -> Result<String> {
    let mut text = String::new();
    for (name, row) in rows {
        writeln!(
            text,
            "| {name} {} | {} | {} |",
            row.version, row.counted, row.passed
        )?;
    }
    Ok(text)
}
