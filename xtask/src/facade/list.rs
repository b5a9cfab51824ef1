//! The crates whose tests run: `xtask/facade/crates.toml`.
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::{collections::BTreeMap, fs, path::Path};

/// The file of the list. It also has the rows of the tests that may fail.
pub(super) const FILE: &str = "xtask/facade/crates.toml";

/// A crate whose tests run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) version: String,
    /// Whether the crate runs only when it is named: nobody has examined its differences yet.
    #[serde(default)]
    on_trial: bool,
    /// The features that the tests need, apart from the default ones.
    #[serde(default)]
    pub(super) features: Vec<String>,
    #[serde(default)]
    pub(super) no_default_features: bool,
    /// The targets that are built: `lib`, or the name of a test. Empty for all of them.
    #[serde(default)]
    pub(super) targets: Vec<String>,
    /// Packages of tests that are left out, as no test here needs them.
    #[serde(default)]
    pub(super) without: Vec<String>,
    /// Packages of tests that the manifest on the registry lacks, each with the lines of its table.
    #[serde(default)]
    pub(super) add: BTreeMap<String, String>,
    /// Files that tests read outside of their package, each with the file of the package that takes
    /// its place.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// The servers that the tests need.
    #[serde(default)]
    pub(super) servers: Vec<String>,
    /// Variables of the tests. `{redis}` stands for the port of that server.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// The number of tests that run at a time, if it is another one than the command's.
    pub(super) jobs: Option<u8>,
    /// Tests that do not run, with tokio or with the façade.
    #[serde(default)]
    pub(super) skip: Vec<Skip>,
}

/// Tests that do not run, and the reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Skip {
    /// The names of the tests, as `target::path`, or as `target` for all tests of a target.
    tests: Vec<String>,
    pub(super) why: String,
}

/// Crates whose tests do not run here, and the reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Absent {
    pub(super) names: Vec<String>,
    pub(super) why: String,
}

#[derive(Deserialize)]
struct List {
    #[serde(rename = "crate")]
    crates: Vec<Entry>,
    #[serde(default)]
    absent: Vec<Absent>,
}

impl Entry {
    /// Returns the reason why a test does not run.
    pub(super) fn skipped(&self, target: &str, test: &str) -> Option<&str> {
        let path = format!("{target}::{test}");
        let names = |skip: &&Skip| {
            let mut tests = skip.tests.iter();
            tests.any(|name| *name == path || name == target)
        };
        self.skip.iter().find(names).map(|skip| &*skip.why)
    }
}

/// Returns the crates whose tests do not run here.
pub(super) fn absent(root: &Path) -> Result<Vec<Absent>> {
    Ok(list(root)?.absent)
}

fn list(root: &Path) -> Result<List> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    toml::from_str(&text).context(FILE)
}

/// Returns the crates with these names; without names, all that are not on trial.
pub(super) fn read(root: &Path, names: &[String]) -> Result<Vec<Entry>> {
    let List { mut crates, absent } = list(root)?;
    for name in names {
        if let Some(row) = absent.iter().find(|row| row.names.contains(name)) {
            bail!("{name} does not run: {}", row.why);
        }
        let known: Vec<_> = crates.iter().map(|entry| &*entry.name).collect();
        ensure!(
            known.contains(&&**name),
            "no crate {name} in {FILE}; there are {}",
            known.join(", ")
        );
    }
    for entry in &crates {
        let reasons = entry.skip.iter().all(|skip| !skip.why.is_empty());
        ensure!(reasons, "{FILE}: {}: a skip does not say why", entry.name);
    }
    crates.retain(|entry| match names.is_empty() {
        true => !entry.on_trial,
        false => names.contains(&entry.name),
    });
    Ok(crates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_names_a_test_or_a_whole_target() {
        let entry: Entry = toml::from_str(
            "name = 'a'\nversion = '1'\nskip = [{ tests = ['t::m::x', 'u'], why = 'w' }]",
        )
        .unwrap();
        assert_eq!(entry.skipped("t", "m::x"), Some("w"));
        assert_eq!(entry.skipped("u", "y"), Some("w"));
        assert_eq!(entry.skipped("t", "x"), None);
    }
}
