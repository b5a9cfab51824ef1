//! The scratch workspace of a crate: a copy of its package, and the package `pin`.
//!
//! `pin` asks for the one version of tokio that the workspace patches in: so cargo's resolution
//! fails where another package wants a tokio that is not this one.
use super::list::Entry;
use crate::messages::Message;
use anyhow::{Context, Result, bail, ensure};
use project::workspace::{self, Package, cargo, nightly};
use std::{
    collections::BTreeMap,
    fs, mem,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A package with the name `tokio`.
pub(super) struct Tokio {
    /// The word for it in paths and in the output.
    pub(super) name: &'static str,
    pub(super) folder: PathBuf,
    pub(super) version: String,
}

/// The test programs of a crate, and its targets that do not compile.
pub(super) struct Built {
    /// The folder of the copied package.
    pub(super) folder: PathBuf,
    /// The programs, by their targets. The unit tests of the library are `lib`.
    pub(super) programs: BTreeMap<String, PathBuf>,
    /// The first error of each target that does not compile.
    pub(super) errors: BTreeMap<String, String>,
}

/// Returns the folder of a crate's package, which cargo fetches.
pub(super) fn fetch(scratch: &Path, entry: &Entry) -> Result<PathBuf> {
    let folder = scratch.join(format!("fetch/{}", entry.name));
    let manifest = format!(
        "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{} = {{ version = \"={}\", default-features = false }}\n",
        entry.name, entry.version
    );
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&folder.join("src/lib.rs"), "")?;
    let packages = workspace::load_graph(&folder)?;
    let is_it =
        |package: &&Package| package.name == entry.name && package.version() == entry.version;
    let package = packages.iter().find(is_it).context("no such package")?;
    let package = package.manifest_path.parent().context("no folder")?;
    Ok(package.to_owned())
}

/// Writes the workspace of a crate and builds its tests, with AddressSanitizer if `sanitize` says
/// so. Fails if the workspace has another tokio.
pub(super) fn build(
    scratch: &Path,
    package: &Path,
    entry: &Entry,
    tokio: &Tokio,
    sanitize: bool,
) -> Result<Built> {
    let folder = scratch.join(format!("{}/{}-{}", tokio.name, entry.name, entry.version));
    let copied = folder.join("package");
    let text = manifest(package, entry)?;
    copy(package, &copied, |path| {
        (path == Path::new("Cargo.toml")).then(|| text.clone())
    })?;
    for (file, from) in &entry.files {
        let bytes = fs::read(package.join(from))?;
        write(&copied.join(file), bytes)?;
    }
    let Tokio {
        version,
        folder: at,
        ..
    } = tokio;
    let manifest = format!(
        "[workspace]\nmembers = [\"package\", \"pin\"]\nresolver = \"2\"\n\n\
         [patch.crates-io]\ntokio = {{ path = {at:?} }}\n\n[profile.dev]\ndebug = false\n"
    );
    write(&folder.join("Cargo.toml"), &manifest)?;
    let pin = format!(
        "[package]\nname = \"pin\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\ntokio = \"={version}\"\n"
    );
    write(&folder.join("pin/Cargo.toml"), &pin)?;
    write(&folder.join("pin/src/lib.rs"), "")?;
    check_graph(&folder, tokio)?;
    compile(&scratch.join("build"), &copied, entry, sanitize)
}

/// Returns the manifest of a crate's package, with other dependencies of the tests where the list
/// of crates says so.
fn manifest(package: &Path, entry: &Entry) -> Result<String> {
    let text = fs::read_to_string(package.join("Cargo.toml"))?;
    let mut text = without(&text, &entry.without)?;
    for (name, lines) in &entry.add {
        text += &format!("\n[dev-dependencies.{name}]\n{lines}\n");
    }
    Ok(text)
}

/// The flags with which `sanitize` compiles. No task's memory is recycled, so that the sanitizer
/// sees each task allocated and freed.
const SANITIZE: &str = "--cap-lints=warn -Zsanitizer=address --cfg selvedge_plain_alloc";

/// Builds the tests of the package in a folder. A target that does not compile keeps cargo from no
/// other one: `cargo build` has an option for this, and named targets are built one by one.
fn compile(target: &Path, folder: &Path, entry: &Entry, sanitize: bool) -> Result<Built> {
    let mut built = Built {
        folder: folder.to_owned(),
        programs: BTreeMap::new(),
        errors: BTreeMap::new(),
    };
    let all = ["build", "--profile", "test", "--tests", "--keep-going"];
    let mut commands = vec![all.to_vec()];
    if !entry.targets.is_empty() {
        let targets = entry.targets.iter().map(|target| match &**target {
            "lib" => vec!["test", "--no-run", "--lib"],
            name => vec!["test", "--no-run", "--test", name],
        });
        commands = targets.collect();
    }
    for arguments in commands {
        let mut build = command(&arguments, target, folder, entry, sanitize)?;
        let output = build.output().context("cargo build")?;
        let earlier = mem::take(&mut built.errors);
        built.read(&String::from_utf8_lossy(&output.stdout), entry)?;
        ensure!(
            output.status.success() || !built.errors.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        built.errors.extend(earlier);
    }
    Ok(built)
}

/// Returns cargo with these arguments, for the package in a folder.
fn command(
    arguments: &[&str],
    target: &Path,
    folder: &Path,
    entry: &Entry,
    sanitize: bool,
) -> Result<Command> {
    let (mut build, flags) = match sanitize {
        true => (nightly("cargo", &[]), SANITIZE),
        false => (cargo(), "--cap-lints=warn"),
    };
    // The folder chooses the package: its dependencies may need a package with its name.
    build.current_dir(folder).args(arguments);
    build.arg("--message-format=json");
    build.arg("--target-dir").arg(target);
    if sanitize {
        // The flags are then not for build scripts and macros.
        build.args(["--target", &workspace::host()?]);
    }
    build.args(["--features", &entry.features.join(",")]);
    if entry.no_default_features {
        build.arg("--no-default-features");
    }
    build
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTFLAGS", flags)
        .stderr(Stdio::piped());
    Ok(build)
}

impl Built {
    /// Reads cargo's messages.
    fn read(&mut self, said: &str, entry: &Entry) -> Result<()> {
        let own = self.folder.join("");
        for line in said.lines() {
            let Ok(message) = serde_json::from_str::<Message>(line) else {
                continue;
            };
            let target = message.target;
            let kind = target.kind.first().map_or("", |kind| kind);
            let name = match kind {
                "test" | "bin" | "example" => target.name,
                _ => "lib".to_owned(),
            };
            let is_test = message.profile.is_some_and(|profile| profile.test);
            if let (true, Some(program)) = (is_test, message.executable) {
                self.programs.insert(name.clone(), program);
            }
            let Some(error) = message.message.filter(|found| found.level == "error") else {
                continue;
            };
            if !target.src_path.starts_with(&own) {
                let text = error.rendered.unwrap_or(error.message);
                bail!("{}: a dependency does not compile: {text}", entry.name);
            }
            self.errors.entry(name).or_insert(error.message);
        }
        Ok(())
    }
}

/// Removes dependencies of the tests from a manifest. Each has a table there, as cargo writes it.
fn without(manifest: &str, names: &[String]) -> Result<String> {
    let is_of = |line: &str, name: &String| line.ends_with(&format!("dev-dependencies.{name}]"));
    for name in names {
        let is_there = manifest.lines().any(|line| is_of(line, name));
        ensure!(is_there, "no test depends on {name}");
    }
    let mut left_out = false;
    let mut text = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            left_out = names.iter().any(|name| is_of(line, name));
        }
        if !left_out {
            text += line;
            text.push('\n');
        }
    }
    Ok(text)
}

/// Fails if the workspace has another tokio of version 1 than this one.
fn check_graph(folder: &Path, tokio: &Tokio) -> Result<()> {
    let packages = workspace::load_graph(folder)?;
    let found = packages
        .iter()
        .filter(|package| package.name == "tokio" && package.version().starts_with("1."));
    let found: Vec<_> = found.collect();
    let is_it = found.iter().all(|package| {
        package.version() == tokio.version
            && package.manifest_path.parent() == Some(tokio.folder.as_path())
    });
    let paths = found.iter().map(|found| found.manifest_path.display());
    let names: Vec<_> = paths.map(|path| path.to_string()).collect();
    ensure!(
        found.len() == 1 && is_it,
        "the graph has another tokio than {}: {}",
        tokio.folder.display(),
        names.join(", ")
    );
    Ok(())
}

/// Copies a package without its `Cargo.lock`. `instead` returns the text of a file that is to
/// differ. A file that is there with the same bytes stays as it is, so that cargo builds nothing
/// anew.
pub(super) fn copy(
    package: &Path,
    copy: &Path,
    instead: impl Fn(&Path) -> Option<String>,
) -> Result<()> {
    for entry in walkdir::WalkDir::new(package) {
        let entry = entry?;
        let path = entry.path().strip_prefix(package)?;
        if !entry.file_type().is_file() || path == Path::new("Cargo.lock") {
            continue;
        }
        let bytes = match instead(path) {
            Some(text) => text.into_bytes(),
            None => fs::read(entry.path())?,
        };
        write(&copy.join(path), bytes)?;
    }
    Ok(())
}

/// Writes a file, unless it has these bytes: a write would change the time at which cargo looks.
pub(crate) fn write(file: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    if fs::read(file).is_ok_and(|there| there == bytes.as_ref()) {
        return Ok(());
    }
    let folder = file.parent().context("a file has a folder")?;
    fs::create_dir_all(folder)?;
    fs::write(file, bytes).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_tests_are_left_out() {
        let manifest = "[dev-dependencies.a]\nversion = '1'\nfeatures = [\n]\n[dependencies.a]\n\
                        x = 1\n[target.'cfg(unix)'.dev-dependencies.a]\n\n[features]\n";
        let left = without(manifest, &["a".into()]).unwrap();
        assert_eq!(left, "[dependencies.a]\nx = 1\n[features]\n");
        assert!(without(manifest, &["b".into()]).is_err());
    }
}
