//! Says which results are older than the code that they speak of.
//!
//! A result stays until it is taken again. It is older than the code if the `src` of its crate, or
//! of a crate on which that one depends, has changed since its commit. Comments and tests do not
//! count; nor do `orderings.toml`, and the histories in a crate's `tests`.
use super::{
    page::{CodeMutants, at},
    stored::{FOLDER, Models, file, read},
};
use crate::{orderings::Row, sanitize, shuttle, soak};
use anyhow::Result;
use project::{
    say,
    workspace::{self, Package},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// A result: its kind, the name of its package, and its commit.
type Taken = (&'static str, String, Option<String>);

/// Prints, for each package, how many results are older than the code.
pub(super) fn print(
    root: &Path,
    packages: &[Package],
    models: &Models,
    mutants: &[Row],
) -> Result<()> {
    let folder = root.join(FOLDER);
    let mut counts = BTreeMap::<Taken, usize>::new();
    for taken in all(&folder, packages, models, mutants)? {
        *counts.entry(taken).or_default() += 1;
    }
    for ((what, name, commit), count) in counts {
        let sources = sources(packages, &name);
        let changed = commit
            .as_ref()
            .and_then(|commit| workspace::code_changed(root, commit, &sources));
        if let Some(line) = line(&name, count, what, changed) {
            say!("{line} ({})", at(&commit));
        }
    }
    Ok(())
}

/// Returns one entry for each result and package.
fn all(
    folder: &Path,
    packages: &[Package],
    models: &Models,
    mutants: &[Row],
) -> Result<Vec<Taken>> {
    let mut all = Vec::new();
    let mut add = |what, name: &str, commit: &Option<String>| {
        all.push((what, name.to_owned(), commit.clone()));
    };
    for model in models.values() {
        add("models", &model.package, &model.commit);
    }
    for row in mutants {
        add("mutants", &row.package, &row.commit);
    }
    for (structure, row) in &shuttle::Done::read(&file(folder, "shuttle"))?.rows {
        let name = structure.split(' ').next().unwrap_or_default();
        add("structures under random schedules", name, &row.commit);
    }
    for of in read::<Vec<CodeMutants>>(folder, "cargo-mutants")?.unwrap_or_default() {
        let package = packages
            .iter()
            .find(|package| of.file.starts_with(&in_root(package)));
        let name = package.map_or(&*of.file, |package| &package.name);
        add("files with mutants of the code", name, &of.commit);
    }
    for tool in read::<Vec<sanitize::Clean>>(folder, "sanitize")?.unwrap_or_default() {
        for package in packages.iter().filter(|package| package.is_publishable()) {
            add("runs of sanitizers", &package.name, &tool.commit);
        }
    }
    if let Some(soak) = read::<soak::Done>(folder, "soak")? {
        for package in packages
            .iter()
            .filter(|package| package.has_test("threads"))
        {
            add("soak runs", &package.name, &soak.commit);
        }
    }
    Ok(all)
}

/// Returns the package's folder in the workspace, with a slash at the end.
fn in_root(package: &Package) -> String {
    let folder = package.manifest_path.parent().and_then(Path::file_name);
    format!("{}/", folder.unwrap_or_default().to_string_lossy())
}

/// Returns the `src` folders of the package, and of all packages of the workspace on which it
/// depends.
fn sources(packages: &[Package], name: &str) -> Vec<PathBuf> {
    let mut names = BTreeSet::new();
    let mut next = vec![name];
    let mut sources = Vec::new();
    while let Some(name) = next.pop() {
        let Some(package) = packages.iter().find(|package| package.name == name) else {
            continue;
        };
        if !names.insert(name) {
            continue;
        }
        sources.push(package.manifest_path.with_file_name("src"));
        let normal = package.dependencies.iter().filter(|on| on.kind.is_none());
        next.extend(normal.map(|on| on.name.as_str()));
    }
    sources
}

/// Returns what to say of results; nothing if the code is as it was.
fn line(name: &str, count: usize, what: &str, changed: Option<bool>) -> Option<String> {
    Some(match changed {
        Some(false) => return None,
        Some(true) => format!("{name}: {what} older than the code: {count}"),
        None => format!("{name}: {what} that git cannot compare with the code: {count}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loom::{Outcome, Status};
    use std::fs;

    /// `a` and `b` depend on each other, as a crate and its tests may.
    fn packages() -> [Package; 3] {
        let package = |name: &str, needs: &str, test: &str| -> Package {
            let dependency = format!(r#"{{"name": "{needs}", "req": "*"}}"#);
            let needs = if needs.is_empty() { "" } else { &dependency };
            let json = format!(
                r#"{{"name": "{name}", "manifest_path": "/r/{name}-folder/Cargo.toml",
                "version": "1.0.0", "features": {{}}, "dependencies": [{needs}],
                "targets": [{{"name": "{test}", "kind": ["test"], "src_path": ""}}]}}"#
            );
            serde_json::from_str(&json).unwrap()
        };
        [
            package("a", "b", "threads"),
            package("b", "a", "histories"),
            package("c", "", "histories"),
        ]
    }

    #[test]
    fn sources_are_those_of_the_package_and_what_it_needs() {
        let packages = packages();
        let of = |name| sources(&packages, name);
        assert_eq!(
            of("a"),
            ["/r/a-folder/src", "/r/b-folder/src"].map(PathBuf::from)
        );
        assert_eq!(of("c"), ["/r/c-folder/src"].map(PathBuf::from));
        assert!(of("gone").is_empty());
    }

    #[test]
    fn results_of_each_kind_are_counted_for_their_packages() {
        let outcome = Outcome {
            package: "a".into(),
            model: "m".into(),
            executions: 2,
            seconds: 0.0,
            bound: None,
            status: Status::Ok,
            commit: Some("1".into()),
        };
        let models = Models::from([(("a".into(), "m".into()), outcome)]);
        let folder = tempfile::tempdir().unwrap();
        let write = |name, text| fs::write(file(folder.path(), name), text).unwrap();
        write(
            "shuttle",
            r#"{"rows": {"b x": {"models": 1, "schedules": 2, "seconds": 0.5, "commit": "2"}}}"#,
        );
        write(
            "cargo-mutants",
            r#"[{"file": "c-folder/src/d.rs", "viable": 1, "caught": 1, "timeout": 0,
                "by_models": 0, "changes_nothing": 0, "missed": 0, "commit": "3"}]"#,
        );
        write(
            "sanitize",
            r#"[{"tool": "leak", "version": "7", "seconds": 1.0, "commit": "4", "ran": [], "without": []}]"#,
        );
        write(
            "soak",
            r#"{"seed": 1, "minutes": 1.0, "items": 1, "memory": [1, 2], "commit": "5"}"#,
        );
        let found = all(folder.path(), &packages(), &models, &[]).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|(what, name, commit)| (*what, name.as_str(), commit.as_deref().unwrap()))
            .collect();
        let sanitizers = ["a", "b", "c"].map(|name| ("runs of sanitizers", name, "4"));
        let mut expected = vec![
            ("models", "a", "1"),
            ("structures under random schedules", "b", "2"),
            ("files with mutants of the code", "c", "3"),
        ];
        expected.extend(sanitizers);
        expected.push(("soak runs", "a", "5"));
        assert_eq!(found, expected);
    }

    #[test]
    fn line_is_for_older_results_and_for_those_not_compared() {
        assert_eq!(line("a", 2, "models", Some(false)), None);
        let older = line("a", 2, "models", Some(true)).unwrap();
        assert_eq!(older, "a: models older than the code: 2");
        let unknown = line("a", 2, "models", None).unwrap();
        assert_eq!(
            unknown,
            "a: models that git cannot compare with the code: 2"
        );
    }
}
