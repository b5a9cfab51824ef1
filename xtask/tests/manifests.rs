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
    let published = |name: &str| packages.iter().any(|p| p.name == name && p.is_published());
    for package in packages.iter().filter(|package| package.is_published()) {
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
    for package in packages.iter().filter(|package| package.is_published()) {
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
    for package in packages.iter().filter(|package| package.is_published()) {
        let address = format!("https://docs.rs/{}", package.name);
        assert_eq!(package.documentation, Some(address));
    }
}
