//! The step `lockfile`: counts the packages that a published crate brings into a user's
//! `Cargo.lock`.
//!
//! A lockfile lists the dependencies of every target and every cfg. So a user's lockfile would list
//! a model checker and its dependencies, too, unless these need a feature that no user turns on.
use anyhow::Result;
use project::{
    say,
    workspace::{self, cargo, output_of},
};
use std::collections::BTreeSet;

/// The most packages that a crate may bring with default features, itself included. A crate that is
/// not listed here is counted and has no limit.
const MOST: &[(&str, usize)] = &[
    ("sync-shim", 2),
    ("queue-spmc", 3),
    ("queue-global", 3),
    ("waker-vtable", 3),
    ("task-header", 4),
    ("task-set", 5),
    ("task-sync", 4),
    ("task-io", 5),
    ("coop-budget", 3),
    ("worker-idle", 4), // With libc, for the processor time of the process.
    ("worker-queue", 5),
    ("blocking-threads", 3),
    // With libc, to tell file systems apart and to splice, and windows-sys, to tell pipes apart.
    ("blocking-fs", 11),
    ("timer-wheel", 1),
    ("sched-group", 1),
];

pub(crate) fn run() -> Result<bool> {
    let (packages, _) = workspace::load()?;
    let mut passed = true;
    for package in packages.iter().filter(|package| package.is_publishable()) {
        let name = &package.name;
        let all = brought(name)?;
        let count = all.len();
        let names: Vec<_> = all
            .iter()
            .filter_map(|line| line.split(' ').next())
            .collect();
        let names = names.join(" ");
        match MOST.iter().find(|(known, _)| known == name) {
            Some(&(_, most)) if count > most => {
                eprintln!("{name}: {count} packages, at most {most}: {names}");
                passed = false;
            }
            _ => say!("{name}: {count} packages: {names}"),
        }
    }
    Ok(passed)
}

/// Returns the names and versions of the packages that a dependency on the package `name` brings,
/// `name` included.
fn brought(name: &str) -> Result<BTreeSet<String>> {
    let mut tree = cargo();
    tree.args(["tree", "--target", "all", "--edges", "normal,build"]);
    tree.args(["--prefix", "none", "--no-dedupe", "--package", name]);
    let listed = output_of(&mut tree)?;
    let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(listed.lines().map(words).collect())
}
