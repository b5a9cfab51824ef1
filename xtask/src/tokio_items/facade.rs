//! `cargo xtask tokio-items --facade`: whether `tokio-facade` has what tokio has.
//!
//! 1. The façade has each feature's name. If one were missing, cargo would leave the patch of a
//!    program that asks for it out.
//! 2. At least 99 % of tokio's stable items on Unix are there, under tokio's paths. An item that is
//!    not there is printed.
//!
//! The command writes the items to `tokio-facade/tests/items.rs`: a `use` for each item that a
//! `use` can name, and a link of rustdoc for each item, methods and variants included. `cargo test`
//! compiles the former. The command lets rustdoc resolve the latter.
use anyhow::{Context, Result, ensure};
use project::{
    say,
    workspace::{self, Package, cargo},
};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Stdio,
};

const FOLDER: &str = "tokio-facade";

/// The features of the façade that have all its items.
const FEATURES: [&str; 2] = ["full", "test-util"];

/// tokio's macros.
const MACROS: [&str; 7] = [
    "join",
    "main",
    "pin",
    "select",
    "task_local",
    "test",
    "try_join",
];

/// Items, and modules, that tokio has on other systems than Linux only.
const ELSEWHERE: &[&str] = &[
    "io::Interest::AIO",
    "io::Interest::LIO",
    "io::bsd",
    "net::windows",
    "signal::unix::SignalKind::info",
    "signal::windows",
];

/// The least share of the items, in percent.
const SHARE: usize = 99;

/// Compares the façade with tokio, which is one of the packages. `paths` are its stable items.
pub(super) fn check(packages: &[Package], mut paths: BTreeSet<String>) -> Result<bool> {
    let (_, root) = workspace::load()?;
    let folder = root.join(FOLDER);
    let tokio = packages.iter().find(|package| package.name == "tokio");
    let tokio = tokio.context("the workspace does not use tokio")?;
    let missing_features = missing_features(&folder, &tokio.features)?;
    for name in &missing_features {
        say!("no feature {name}");
    }
    paths.retain(|path| {
        let is_in = |other: &&str| {
            let rest = path.strip_prefix(other);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        !ELSEWHERE.iter().any(is_in)
    });
    let links = links(&paths, tokio.version());
    fs::write(folder.join("tests/items.rs"), links.clone() + &uses(&paths))
        .context("writing the items")?;
    let broken = broken_links(&root, &links)?;
    Ok(print(&paths, &broken) && missing_features.is_empty())
}

/// The features of a package, each with those that it turns on.
type Features = BTreeMap<String, Vec<String>>;

fn missing_features(folder: &Path, tokio: &Features) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let mut command = cargo();
    command
        .current_dir(folder)
        .args(["metadata", "--no-deps", "--format-version=1"]);
    let metadata: Metadata = serde_json::from_str(&workspace::output_of(&mut command)?)?;
    let ours = &metadata.packages.first().context("no package")?.features;
    let missing = tokio.keys().filter(|name| !ours.contains_key(*name));
    Ok(missing.cloned().collect())
}

/// Returns the comment of the file: a link to each item.
fn links(paths: &BTreeSet<String>, version: &str) -> String {
    let mut text = format!(
        "//! The stable items of tokio {version} on Unix.\n//!\n\
         //! `cargo xtask tokio-items --facade` writes this file.\n//!\n"
    );
    for path in paths {
        text += &format!("//! - [`tokio::{path}`]\n");
    }
    for name in MACROS {
        text += &format!("//! - [`macro@tokio::{name}`]\n");
    }
    text
}

/// Returns the imports of the items that are in no other item.
fn uses(paths: &BTreeSet<String>) -> String {
    let mut text = "#![allow(deprecated, unused_imports)]\n\n".to_owned();
    let is_in_another = |path: &str| {
        let parent = path.rsplit_once("::");
        parent.is_some_and(|(parent, _)| paths.contains(parent))
    };
    let named = paths.iter().map(String::as_str);
    for path in named.filter(|path| !is_in_another(path)).chain(MACROS) {
        text += &format!("use tokio::{path} as _;\n");
    }
    text
}

/// Lets rustdoc resolve the links, in a scratch package: rustdoc finds no library of a test.
/// Returns the links that lead nowhere.
fn broken_links(root: &Path, links: &str) -> Result<BTreeSet<String>> {
    let folder = root.join("target/tokio-items");
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/lib.rs"), links)?;
    let facade = root.join(FOLDER);
    let manifest = format!(
        "[package]\nname = \"items\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         tokio = {{ path = {facade:?}, features = {FEATURES:?} }}\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(facade.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut command = cargo();
    command
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", root.join("target"))
        .args(["doc", "--no-deps", "--message-format=json"])
        .stderr(Stdio::inherit());
    let output = command.output().context("cargo doc")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let mut broken = BTreeSet::new();
    for message in said.lines().map(serde_json::from_str::<Message>) {
        let Some(found) = message?.message else {
            continue;
        };
        let is_link = found.code.is_some_and(|code| code.code == LINT);
        let link = found.message.split('`').nth(1);
        match link.and_then(|link| link.rsplit_once("tokio::")) {
            Some((_, path)) if is_link => drop(broken.insert(path.to_owned())),
            _ if found.level == "error" => say!("{}", found.message),
            _ => {}
        }
    }
    ensure!(
        output.status.success() || !broken.is_empty(),
        "cargo doc failed"
    );
    Ok(broken)
}

/// The lint of rustdoc for links that lead nowhere.
const LINT: &str = "rustdoc::broken_intra_doc_links";

/// Prints the counts of each module, and the items that are missing. Returns whether enough items
/// are there.
fn print(paths: &BTreeSet<String>, broken: &BTreeSet<String>) -> bool {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let all = paths.iter().map(String::as_str).chain(MACROS);
    for path in all {
        let module = match path.split_once("::") {
            Some((module, _)) => module,
            None => "macros",
        };
        let (there, all) = counts.entry(module).or_default();
        *there += usize::from(!broken.contains(path));
        *all += 1;
    }
    let mut sum = (0, 0);
    for (module, (there, all)) in &counts {
        say!("{module:8} {there:>5} of {all:>5}");
        sum = (sum.0 + there, sum.1 + all);
    }
    say!("{:8} {:>5} of {:>5}", "all", sum.0, sum.1);
    for path in broken {
        say!("not there: {path}");
    }
    sum.0 * 100 >= sum.1 * SHARE
}

/// A message of cargo.
#[derive(Deserialize)]
struct Message {
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Diagnostic {
    message: String,
    level: String,
    code: Option<Code>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}
