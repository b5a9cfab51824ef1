//! Counts the results that are older than the code of their crates.
//!
//! A result stays until it is taken again. A result at a commit is older than the code if the
//! crate's `src` has changed since, apart from comments and tests.
use super::{
    Models, file,
    page::{CodeMutants, at},
    read,
};
use crate::{orderings::Row, sanitize, shuttle};
use anyhow::Result;
use project::{
    say,
    workspace::{self, Package},
};
use std::{collections::BTreeMap, path::Path};

/// Prints how many results of each crate and commit are older than the code.
pub(super) fn print(
    folder: &Path,
    packages: &[Package],
    models: &Models,
    mutants: &[Row],
) -> Result<()> {
    let random = shuttle::Done::read(&file(folder, "shuttle"))?;
    let tools: Vec<sanitize::Clean> = read(folder, "sanitize")?.unwrap_or_default();
    let code: Vec<CodeMutants> = read(folder, "cargo-mutants")?.unwrap_or_default();
    let models = models
        .values()
        .map(|model| (&*model.package, &model.commit));
    let mutants = mutants.iter().map(|row| (&*row.package, &row.commit));
    let random = (random.rows.iter()).map(|(name, row)| (first(name, ' '), &row.commit));
    let code = code.iter().map(|of| (first(&of.file, '/'), &of.commit));
    let published = packages.iter().filter(|package| package.is_published());
    let tools =
        published.flat_map(|package| tools.iter().map(|tool| (&*package.name, &tool.commit)));
    let mut counts = BTreeMap::<_, usize>::new();
    for result in models.chain(mutants).chain(random).chain(code).chain(tools) {
        *counts.entry(result).or_default() += 1;
    }
    for ((name, commit), count) in counts {
        let of = packages.iter().find(|package| package.name == name);
        let Some(sources) = of.and_then(|package| package.manifest_path.parent()) else {
            continue;
        };
        let changed = |commit: &String| workspace::code_changed(sources, commit);
        let age = match commit.as_ref().and_then(changed) {
            Some(false) => continue,
            Some(true) => "older than the code",
            None => "of unknown age",
        };
        say!("{age}: {count} results of {name}, {}", at(commit));
    }
    Ok(())
}

/// Returns what is before the first `end`.
fn first(text: &str, end: char) -> &str {
    text.split(end).next().unwrap_or_default()
}
