//! The step `lockfile`: counts the packages that a published crate brings into a user's
//! `Cargo.lock`.
//!
//! A lockfile lists the dependencies of every target and every cfg. So it would list the
//! dependencies of a model checker, too, unless they need a feature that no user turns on. For each
//! part, the step writes a crate that depends on that part alone, has cargo resolve it, and counts
//! the packages.
use crate::workspace::{self, cargo};
use anyhow::{Context, Result, ensure};
use std::{fs, path::Path};

/// The most packages that a crate may bring with default features, itself included. A crate that is
/// not listed here is counted and has no limit.
const MOST: &[(&str, usize)] = &[
    ("sync-shim", 2),
    ("queue-spmc", 3),
    ("queue-global", 3),
    ("waker-vtable", 3),
    ("task-header", 4),
    ("task-set", 5),
    ("coop-budget", 3),
    ("worker-idle", 3),
    ("worker-queue", 5),
    ("blocking-threads", 3),
    ("timer-wheel", 1),
    ("sched-group", 1),
];

pub(crate) fn run() -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let scratch = root.join("target/lockfile");
    let mut passed = true;
    for package in packages.iter().filter(|package| package.is_published()) {
        let lib = package.lib().context("no library")?;
        let folder = lib.ancestors().nth(2).context("no folder")?;
        let others = brought(&package.name, folder, &scratch)?;
        let count = others.len();
        let most = MOST.iter().find(|(name, _)| *name == package.name);
        match most {
            Some(&(name, most)) if count > most => {
                eprintln!(
                    "{name}: {count} packages, at most {most}: {}",
                    others.join(" ")
                );
                passed = false;
            }
            _ => say!("{}: {count} packages: {}", package.name, others.join(" ")),
        }
    }
    Ok(passed)
}

/// Returns the packages in the lockfile of a crate that depends only on the crate in `folder`.
fn brought(name: &str, folder: &Path, scratch: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(scratch.join("src"))?;
    fs::write(scratch.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"user\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{name} = {{ path = {folder:?} }}\n"
    );
    fs::write(scratch.join("Cargo.toml"), manifest)?;
    let lockfile = scratch.join("Cargo.lock");
    if lockfile.exists() {
        fs::remove_file(&lockfile)?;
    }
    let status = cargo()
        .args(["generate-lockfile", "--quiet"])
        .current_dir(scratch)
        .status()
        .context("running cargo generate-lockfile")?;
    ensure!(
        status.success(),
        "cargo generate-lockfile failed for {name}"
    );
    let text = fs::read_to_string(&lockfile).context("reading the lockfile")?;
    Ok(names(&text).filter(|other| other != "user").collect())
}

fn names(lockfile: &str) -> impl Iterator<Item = String> {
    lockfile.lines().filter_map(|line| {
        let name = line.strip_prefix("name = \"")?.strip_suffix('"')?;
        Some(name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_of_a_lockfile_are_its_packages() {
        let text = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\ndependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"b\"\n";
        assert_eq!(names(text).collect::<Vec<_>>(), ["a", "b"]);
    }
}
