//! The step `minimal`: the published crates build with the oldest dependencies that their manifests
//! allow.
//!
//! A project that takes one of the crates need not update the packages of its lockfile, unless one
//! is older than the crates can use. For that, each manifest names the oldest version of each
//! dependency, with all three numbers. The step writes a package that depends on the published
//! crates with all their features, and on exactly that version of each of their dependencies, and
//! checks the package.
//!
//! Cargo's own option, `-Z direct-minimal-versions`, is of nightly alone, and also takes the oldest
//! dependencies of tests. The dependencies of dependencies are those of `Cargo.lock`, where they
//! fit: their manifests are not ours.
use anyhow::{Context, Result, bail, ensure};
use project::{
    say,
    workspace::{self, Package, cargo, succeeds},
};
use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

/// The crates that are checked in a build of their own, as their dependencies need newer versions
/// than the other crates do. All other crates are checked in one build.
const ALONE: &[&str] = &["selvedge-hyper", "selvedge-macros", "selvedge-top"];

/// The features that bring a model checker: only a crate's own tests turn them on.
const FOR_MODELS: [&str; 2] = ["loom", "shuttle"];

/// The cfgs that compile the code of other systems and targets here, and the crates that have such
/// code.
const ELSEWHERE: &str = "--cfg selvedge_polling --cfg selvedge_portable";
const HAVE_ELSEWHERE: [&str; 2] = ["net-driver", "sync-shim"];

/// The oldest version of each dependency, by its target and its name.
type Oldest<'a> = BTreeMap<(Option<&'a str>, &'a str), &'a str>;

pub(crate) fn run() -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let published: Vec<_> = packages.iter().filter(|p| p.is_publishable()).collect();
    let (alone, together): (Vec<&Package>, Vec<_>) = published
        .iter()
        .partition(|package| ALONE.contains(&package.name.as_str()));
    let mut builds = vec![("together", together)];
    builds.extend(alone.into_iter().map(|one| (one.name.as_str(), vec![one])));
    for (name, crates) in builds {
        let oldest = oldest(&crates, &published)?;
        let folder = root.join("target/minimal").join(name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("lib.rs"), "")?;
        fs::write(folder.join("Cargo.toml"), manifest(&crates, &oldest)?)?;
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let versions = oldest
            .iter()
            .map(|((_, name), version)| format!("{name} {version}"));
        say!("{name}: {}", versions.collect::<Vec<_>>().join(", "));
        if !builds_in(&folder, &crates)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether the package in this folder builds.
fn builds_in(folder: &Path, crates: &[&Package]) -> Result<bool> {
    let cargo = |arguments: &[&str]| {
        let mut cargo = cargo();
        cargo.args(arguments).current_dir(folder);
        cargo
    };
    if !cargo(&["tree", "--offline"]).output()?.status.success() {
        let resolved = cargo(&["tree"]).output()?;
        let said = String::from_utf8_lossy(&resolved.stderr);
        if is_without_network(&said) {
            say!(
                "not checked: these versions are not downloaded yet, and the registry is not reached"
            );
            return Ok(true);
        }
        ensure!(resolved.status.success(), "cargo tree: {said}");
    }
    let check = |flags: &str| {
        let mut check = cargo(&["check", "--quiet", "--locked", "--target-dir", "../target"]);
        // As in a user's build, warnings do not count: old macros make code that has some.
        check.env("RUSTFLAGS", format!("--cap-lints allow {flags}"));
        check
    };
    if !succeeds(&mut check(""))? {
        return Ok(false);
    }
    let mut elsewhere = check(ELSEWHERE);
    let here = |name: &&str| crates.iter().any(|package| package.name == *name);
    let have: Vec<_> = HAVE_ELSEWHERE.into_iter().filter(here).collect();
    for name in &have {
        elsewhere.args(["--package", name]);
    }
    Ok(have.is_empty() || succeeds(&mut elsewhere)?)
}

/// Returns whether cargo's message says that it could not reach the registry.
fn is_without_network(message: &str) -> bool {
    message.contains("failed to download") || message.contains("offline")
}

/// Returns the oldest version of each dependency of the crates on a package that is not published
/// from here. Fails if two crates disagree, or if a version has not its three numbers.
fn oldest<'a>(crates: &[&'a Package], published: &[&Package]) -> Result<Oldest<'a>> {
    let mut oldest: Oldest = BTreeMap::new();
    for package in crates {
        let ours = |name: &str| published.iter().any(|package| package.name == name);
        // No user sets a cfg that begins so: such a cfg is for the crates' own models.
        let is_for_models = |target: &str| target.starts_with("cfg(selvedge_");
        let normal = package.dependencies.iter().filter(|dependency| {
            let target = dependency.target.as_deref();
            dependency.kind.is_none()
                && !ours(&dependency.name)
                && !target.is_some_and(is_for_models)
        });
        for dependency in normal {
            let (name, version) = (
                dependency.name.as_str(),
                dependency.req.trim_start_matches('^'),
            );
            ensure!(
                version.split('.').count() == 3,
                "{}: {name} = {version:?} does not name the oldest version by three numbers",
                package.name
            );
            let mut others = oldest.iter().filter(|((_, other), _)| *other == name);
            let other = others.find(|(_, other)| **other != version);
            if let Some((_, other)) = other {
                // One build then checks all crates.
                bail!(
                    "{}: {name} {version}, but another crate has {other}",
                    package.name
                );
            }
            oldest.insert((dependency.target.as_deref(), name), version);
        }
    }
    Ok(oldest)
}

/// Returns the manifest of a package, in a workspace of its own, that depends on all of these.
fn manifest(crates: &[&Package], oldest: &Oldest) -> Result<String> {
    let mut text = "[package]\nname = \"minimal\"\nedition = \"2024\"\n[workspace]\n\
         [lib]\npath = \"lib.rs\"\n[dependencies]\n"
        .to_owned();
    for package in crates {
        let name = &package.name;
        let folder = package.manifest_path.parent().context("no folder")?;
        let mut features: Vec<_> = package.features.keys().collect();
        features.retain(|name| !FOR_MODELS.contains(&name.as_str()));
        writeln!(
            text,
            "{name} = {{ path = {folder:?}, features = {features:?} }}"
        )?;
    }
    for ((target, name), version) in oldest {
        let table = target.map_or_else(String::new, |target| format!("target.'{target}'."));
        writeln!(
            text,
            "[{table}dependencies.{name}]\nversion = \"={version}\"\ndefault-features = false"
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a published package that depends on `libc`.
    fn package(name: &str, libc: &str) -> Package {
        let needed = json!({ "name": "libc", "req": libc, "target": "cfg(unix)" });
        let model = json!({ "name": "loom", "req": "^0.7", "target": "cfg(selvedge_loom)" });
        serde_json::from_value(json!({
            "name": name,
            "manifest_path": format!("/{name}/Cargo.toml"),
            "version": "0.1.0",
            "dependencies": [needed, model],
            "features": { "a": [], "loom": [] },
            "targets": [],
        }))
        .unwrap()
    }

    #[test]
    fn manifest_has_exactly_the_oldest_versions() {
        let (one, other) = (package("one", "^0.2.1"), package("other", "^0.2.1"));
        let published = [&one, &other];
        let text = manifest(&published, &oldest(&published, &published).unwrap()).unwrap();
        assert!(text.contains("other = { path = \"/other\", features = [\"a\"] }\n"));
        let pin = "[target.'cfg(unix)'.dependencies.libc]\nversion = \"=0.2.1\"\n";
        assert_eq!(text.matches(pin).count(), 1);
        assert!(!text.contains("loom"));
    }

    #[test]
    fn oldest_version_that_is_unclear_is_refused() {
        let short = package("short", "^0.2");
        assert!(oldest(&[&short], &[]).is_err());
        let (one, other) = (package("one", "^0.2.1"), package("other", "^0.2.2"));
        assert!(oldest(&[&one, &other], &[]).is_err());
    }
}
