//! The page `docs/platforms.md`, and the results that it shows.
use super::{
    cfgs::{self, Source},
    examples::EXAMPLES,
    list::{Build, PLATFORMS, Platform},
};
use anyhow::{Context, Result};
use project::workspace::Package;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    fs,
    path::Path,
};

const PAGE: &str = "docs/platforms.md";
const RESULTS: &str = "docs/verification/platforms.json";

/// The crate of simulations. Their code needs the cfg `selvedge_sim`, which the command does not
/// set.
const SIMULATOR: &str = "selvedge-sim";

const BEGIN: &str = "\
# Platforms

`cargo xtask platforms --page` writes this page from
[the kept results](verification/platforms.json). The command builds each published crate for each
platform, and runs its tests where this machine or an emulator can. All features are on; without an
operating system, those that need no `std`. A number is that of the tests that passed; none failed.
*Checked* means that the crate compiles there, and that no test of it was run there. *Host* means
that the crate has procedural macros: its code runs in the compiler, so it is built for this machine
alone. A dash means that the crate was not built, for the reason below the table. A question mark
means that there is no result.

The results are those of the commit that each platform names. The lists of files, and of tests left
out, are those of the tree in which this page was written.

On x86-64 Linux with the newest Rust all tests run before each push (`cargo xtask test`).

";

/// How a crate fares on a platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cell {
    /// So many tests passed, and none failed.
    Passed(usize),
    /// The crate compiles.
    Checked,
    /// The crate has procedural macros, which are built for this machine, and not for the platform.
    Host,
    /// The crate was not built, for this reason.
    Absent(String),
    /// The crate does not compile, or a test failed. The text says where the output is.
    Failed(String),
}

impl Cell {
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Returns the text of the cell in a table.
    fn short(&self) -> String {
        match self {
            Self::Passed(count) => count.to_string(),
            Self::Checked => "checked".into(),
            Self::Host => "host".into(),
            Self::Absent(_) => "–".into(),
            Self::Failed(_) => "FAILED".into(),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Passed(count) => write!(f, "{count} tests passed"),
            Self::Checked => f.write_str("checked"),
            Self::Host => f.write_str("built for this machine"),
            Self::Absent(why) => write!(f, "not built: {why}"),
            Self::Failed(log) => write!(f, "FAILED, see {log}"),
        }
    }
}

/// The results of a platform.
#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    /// The tree that was built.
    pub(super) commit: String,
    /// The tests and examples that ran.
    #[serde(default)]
    pub(super) tests: Vec<String>,
    /// The result of each crate.
    pub(super) cells: BTreeMap<String, Cell>,
}

/// Returns the tests and examples of a platform, as the page names them.
pub(super) fn tests(platform: &Platform) -> Vec<String> {
    let all = (platform.build == Build::Tests).then(|| "all".to_owned());
    let tested = platform.tested.iter();
    let tested = tested.map(|(name, tests)| format!("`{name}` ({})", tests.join(" ")));
    let also = platform.also.iter();
    let also =
        also.map(|(cfg, (name, tests))| format!("`{name}` (--cfg {cfg} {})", tests.join(" ")));
    let examples = EXAMPLES.iter().filter(|_| platform.examples);
    let examples =
        examples.map(|(name, names)| format!("`{name}` (the examples {})", names.join(", ")));
    all.into_iter()
        .chain(tested)
        .chain(also)
        .chain(examples)
        .collect()
}

pub(super) type Rows = BTreeMap<String, Row>;

/// Writes the page, with these results in the place of older ones of the same platforms.
pub(super) fn write(root: &Path, rows: Rows, crates: &[&Package]) -> Result<()> {
    let mut all = kept(root)?;
    all.extend(rows);
    let results = serde_json::to_string_pretty(&all)? + "\n";
    fs::write(root.join(RESULTS), results).context(RESULTS)?;
    fs::write(root.join(PAGE), page(&all, crates)?).context(PAGE)
}

/// Returns the results that the page shows.
fn kept(root: &Path) -> Result<Rows> {
    match fs::read_to_string(root.join(RESULTS)) {
        Ok(text) => serde_json::from_str(&text).context(RESULTS),
        Err(_) => Ok(Rows::new()),
    }
}

/// Returns a table with a line for each crate, and a column for each of the platforms.
pub(super) fn table(rows: &Rows, platforms: &[&str], crates: &[&Package]) -> String {
    let names = platforms.iter().map(|name| format!(" {name} |"));
    let mut text = format!("| crate |{}\n|---|", names.collect::<String>());
    text += &"---|".repeat(platforms.len());
    for package in crates {
        let name = &package.name;
        let cell = |platform: &&str| rows.get(*platform)?.cells.get(name).map(Cell::short);
        let cells = platforms.iter().map(|platform| {
            let cell = cell(platform).unwrap_or_else(|| "?".into());
            format!(" {cell} |")
        });
        text += &format!("\n| `{name}` |{}", cells.collect::<String>());
    }
    text + "\n"
}

fn page(rows: &Rows, crates: &[&Package]) -> Result<String> {
    let names: Vec<_> = PLATFORMS.iter().map(|platform| platform.name).collect();
    let sources = cfgs::sources(crates)?;
    let mut text = BEGIN.to_owned() + &table(rows, &names, crates) + "\n";
    for platform in PLATFORMS {
        let (name, what) = (platform.name, platform.what);
        let Some(row) = rows.get(name) else {
            let _ = writeln!(text, "## {name}\n\n{what}. It was not run yet.\n");
            continue;
        };
        let _ = writeln!(text, "## {name}\n\n{what}. At `{}`.", row.commit);
        let mut lists = Vec::new();
        let tests = row.tests.iter().map(|test| match &**test {
            "all" => "all but those of the docs".to_owned(),
            _ => test.clone(),
        });
        lists.push(("Tests that ran".to_owned(), tests.collect()));
        for (why, names) in platform.skipped {
            let names = names.iter().map(|name| format!("`{name}`"));
            lists.push((format!("Tests left out, as each {why}"), names.collect()));
        }
        lists.extend(files(platform, row, &sources)?);
        let mut absent: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, cell) in &row.cells {
            if let Cell::Absent(why) = cell {
                absent.entry(why).or_default().push(format!("`{name}`"));
            }
        }
        let absent = absent.into_iter();
        lists.extend(absent.map(|(why, names)| (format!("Not built, as the crate {why}"), names)));
        for (title, items) in lists.into_iter().filter(|(_, items)| !items.is_empty()) {
            let _ = write!(text, "\n{title}:\n{}.\n", items.join(",\n"));
        }
        text += "\n";
    }
    text.truncate(text.trim_end().len());
    Ok(text + "\n")
}

/// Returns the lists of the files whose code the platform changes, each with its title.
fn files(platform: &Platform, row: &Row, sources: &[Source]) -> Result<Vec<(String, Vec<String>)>> {
    let std = match platform.build {
        Build::NoStd => &[][..],
        _ => &["feature=\"std\""],
    };
    let (mut ran, mut unrun, mut unbuilt) = (Vec::new(), Vec::new(), Vec::new());
    for (package, file) in cfgs::files(sources, platform.targets, std)? {
        let path = format!("`{package}/{}`", file.display());
        match row.cells.get(package) {
            _ if package == SIMULATOR => (),
            Some(Cell::Passed(_)) => ran.push(path),
            Some(Cell::Checked) => unrun.push(path),
            _ => (),
        }
    }
    let with_cfg = [std, &["selvedge_sim"]].concat();
    for (package, file) in cfgs::files(sources, platform.targets, &with_cfg)? {
        if package == SIMULATOR {
            unbuilt.push(format!("`{package}/{}`", file.display()));
        }
    }
    let differs = "Files whose code differs from that of x86-64 Linux";
    Ok(vec![
        (format!("{differs}, in crates whose tests ran"), ran),
        (format!("{differs}, checked, not run"), unrun),
        (format!("{differs}, for simulations, not built"), unbuilt),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::workspace;

    #[test]
    fn page_is_that_of_the_kept_results() {
        let (packages, root) = workspace::load().unwrap();
        let published = packages.iter().filter(|package| package.is_publishable());
        let crates: Vec<_> = published.collect();
        let rows = kept(&root).unwrap();
        if !root.join(PAGE).exists() {
            assert!(rows.is_empty(), "there are results, but no page");
            return;
        }
        for (platform, row) in &rows {
            for (name, cell) in &row.cells {
                assert!(!cell.is_failure(), "{platform} {name}: {cell}");
            }
        }
        let written = fs::read_to_string(root.join(PAGE)).unwrap();
        assert_eq!(
            written,
            page(&rows, &crates).unwrap(),
            "run `cargo xtask platforms --page`"
        );
    }
}
