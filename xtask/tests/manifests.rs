//! Checks the manifests of the published crates.
use project::{
    source::modules,
    workspace::{Dependency, load},
};
use std::fs;

#[test]
fn each_crate_is_released_after_those_that_it_needs() {
    let (packages, root) = load().unwrap();
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let order = text.split_once("those that need it: ").unwrap().1;
    let order = order.split_once('.').unwrap().0;
    let order: Vec<_> = order.split('`').skip(1).step_by(2).collect();
    let place = |name: &str| order.iter().position(|n| *n == name);
    let published = |name: &str| {
        packages
            .iter()
            .any(|p| p.name == name && p.is_publishable())
    };
    for package in packages.iter().filter(|package| package.is_publishable()) {
        let name = package.name.as_str();
        assert!(place(name).is_some(), "{name} is not in the order");
        // Cargo leaves a dependency without a version out of the published package.
        let needs = package.dependencies.iter().filter(|d| d.req != "*");
        for needed in needs.filter(|d| published(&d.name)) {
            assert!(
                place(&needed.name) < place(name),
                "{name} needs {}",
                needed.name
            );
        }
    }
}

#[test]
fn dependency_of_a_library_is_used_in_it() {
    let (packages, _) = load().unwrap();
    for package in packages.iter().filter(|package| package.is_publishable()) {
        let modules = modules(package.lib().unwrap(), "").unwrap();
        let normal = |d: &&Dependency| d.kind.is_none() && d.target.is_none();
        for needed in package.dependencies.iter().filter(normal) {
            let name = needed.name.replace('-', "_");
            assert!(
                modules.iter().any(|module| module.source.contains(&name)),
                "{} doesn't use {name}",
                package.name
            );
        }
    }
}

#[test]
fn published_crate_says_where_its_documentation_is() {
    let (packages, _) = load().unwrap();
    for package in packages.iter().filter(|package| package.is_publishable()) {
        let address = format!("https://docs.rs/{}", package.name);
        assert_eq!(package.documentation, Some(address));
    }
}

/// A row of the page is `| crate | what it is | needs | for a feature |`. The page does not name
/// the shim, and the front page leaves out the macros, which nobody takes alone.
#[test]
fn pages_of_crates_name_each_and_what_it_needs() {
    let (packages, root) = load().unwrap();
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let (page, front) = (read("docs/crates.md"), read("README.md"));
    let published = packages.iter().filter(|package| package.is_publishable());
    let published: Vec<_> = published.collect();
    for package in &published {
        let name = &package.name;
        let row = format!("| [`{name}`](");
        let columns = page.lines().find(|line| line.starts_with(&row));
        let columns = columns.unwrap_or_else(|| panic!("docs/crates.md has no row for {name}"));
        let columns: Vec<_> = columns.split('|').map(str::trim).collect();
        for (column, optional) in [(3, false), (4, true)] {
            let is_named = |d: &&Dependency| {
                d.kind.is_none()
                    && d.optional == optional
                    && d.name != "sync-shim"
                    && published.iter().any(|package| package.name == d.name)
            };
            let needs = package.dependencies.iter().filter(is_named);
            let mut needs: Vec<_> = needs.map(|d| format!("`{}`", d.name)).collect();
            needs.sort();
            needs.dedup();
            assert_eq!(
                columns[column],
                needs.join(", "),
                "{name} in docs/crates.md"
            );
        }
        let is_left_out = name == "selvedge-macros";
        assert!(is_left_out || front.contains(&row), "README.md: {name}");
    }
}
