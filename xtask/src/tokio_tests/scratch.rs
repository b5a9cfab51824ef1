//! The scratch package: copies of tokio's tests, and `tokio-facade` as its `tokio`.
use super::parts;
use crate::messages::{Diagnostic, Message};
use anyhow::{Context, Result, bail, ensure};
use project::{say, workspace::cargo};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

/// Unstable settings of tokio's own driver and timers, and what the copies of the tests have
/// instead.
const SETTINGS: &[(&str, &str)] = &[
    (".enable_alt_timer()", ".enable_time()"),
    (".enable_eager_driver_handoff()", ""),
];

/// tokio's features, which its tests ask for by `cfg`. Those that are missing here are for tokio's
/// own io_uring driver, its dumps of tasks and its spans.
const FEATURES: &[&str] = &[
    "fs",
    "full",
    "io-std",
    "io-util",
    "macros",
    "net",
    "process",
    "rt",
    "rt-multi-thread",
    "signal",
    "sync",
    "test-util",
    "time",
];

/// The most rounds of compiling and turning parts off. A part that uses a part which is off is
/// turned off in the next round.
const ROUNDS: usize = 12;

/// A folder with the scratch package.
pub(super) struct Scratch {
    pub(super) folder: PathBuf,
    /// The tests, by their names.
    files: BTreeMap<String, TestFile>,
}

/// A file of tests.
#[derive(Default)]
pub(super) struct TestFile {
    /// The functions that do not compile, each with the compiler's message.
    pub(super) off: BTreeMap<String, String>,
    /// Whether the file does not compile without these functions either. Then `off` has all tests.
    pub(super) compiles_nothing: bool,
    /// The program, if the file compiles.
    pub(super) program: Option<PathBuf>,
}

impl Scratch {
    /// Writes the package. `tokio` is the folder of tokio's own package, of this version.
    pub(super) fn write(
        root: &Path,
        tokio: &Path,
        version: &str,
        chosen: &[String],
    ) -> Result<Self> {
        let folder = root.join("target/tokio-tests");
        let tests = tokio.join("tests");
        ensure!(
            tests.is_dir(),
            "{} has no tests: tokio {version} was not fetched from the registry",
            tokio.display()
        );
        let copies = folder.join("tests");
        let mut files = BTreeMap::new();
        for entry in walkdir::WalkDir::new(&tests) {
            let entry = entry?;
            if !entry.file_type().is_file() {
                continue;
            }
            let path = entry.path().strip_prefix(&tests)?;
            let mut text = fs::read_to_string(entry.path())?;
            for (setting, instead) in SETTINGS {
                text = text.replace(setting, instead);
            }
            if path.components().count() == 1 {
                let name = path.with_extension("").display().to_string();
                if chosen.is_empty() || chosen.contains(&name) {
                    files.insert(name, TestFile::default());
                }
            }
            write(&copies.join(path), &text)?;
        }
        for name in chosen {
            ensure!(
                files.contains_key(name),
                "no file {name}.rs in tokio's tests"
            );
        }
        write(&folder.join("src/lib.rs"), "")?;
        write(&folder.join("build.rs"), BUILD)?;
        let facade = root.join("tokio-facade");
        write(
            &folder.join("Cargo.toml"),
            &manifest(&facade.display().to_string()),
        )?;
        let lock = folder.join("Cargo.lock");
        if !lock.exists() {
            fs::copy(facade.join("Cargo.lock"), lock)?;
        }
        Ok(Self { folder, files })
    }

    /// Compiles each file. Turns the functions off that do not compile, and compiles the rest
    /// again.
    pub(super) fn build(mut self) -> Result<(PathBuf, BTreeMap<String, TestFile>)> {
        let mut names: BTreeSet<_> = self.files.keys().cloned().collect();
        for round in 1..=ROUNDS {
            say!("compiling {} files, round {round}", names.len());
            let failed = self.compile(&names)?;
            names.clear();
            for (name, errors) in failed {
                if self.turn_off(&name, &errors)? {
                    names.insert(name);
                }
            }
            if names.is_empty() {
                break;
            }
        }
        Ok((self.folder, self.files))
    }

    /// Compiles these files. Returns the errors of each one that does not compile.
    fn compile(&mut self, names: &BTreeSet<String>) -> Result<BTreeMap<String, Vec<Diagnostic>>> {
        let mut build = cargo();
        build
            .current_dir(&self.folder)
            .args(["build", "--keep-going", "--message-format=json"])
            .env("CARGO_INCREMENTAL", "0")
            .stderr(Stdio::inherit());
        for name in names {
            build.args(["--test", name]);
        }
        let output = build.output().context("cargo build")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let mut failed: BTreeMap<String, Vec<Diagnostic>> = BTreeMap::new();
        let messages = said.lines().map(serde_json::from_str::<Message>);
        for message in messages.flatten() {
            let is_test = message.target.kind.iter().any(|kind| kind == "test");
            let name = message.target.name;
            if let (true, Some(program)) = (is_test, message.executable) {
                self.files.entry(name.clone()).or_default().program = Some(program);
            }
            let Some(error) = message.message.filter(|found| found.level == "error") else {
                continue;
            };
            if !is_test {
                let text = error.rendered.unwrap_or(error.message);
                bail!("{name} does not compile: {text}");
            }
            failed.entry(name).or_default().push(error);
        }
        ensure!(
            output.status.success() || !failed.is_empty(),
            "cargo build failed"
        );
        Ok(failed)
    }

    /// Turns off the parts of a file that do not compile. Returns whether it is to be compiled
    /// again.
    fn turn_off(&mut self, name: &str, errors: &[Diagnostic]) -> Result<bool> {
        let path = format!("tests/{name}.rs");
        let file = self.folder.join(&path);
        let source = fs::read_to_string(&file)?;
        let known = self.files.entry(name.to_owned()).or_default();
        let mut places = Vec::new();
        for error in errors {
            places.extend(error.places(&path));
        }
        let first = &errors[0].message;
        let turned = parts::turn_off(&source, &places)?;
        let Some((text, off)) = turned.filter(|(text, _)| *text != source) else {
            known.compiles_nothing = true;
            let tests = parts::parts(&source)?;
            let tests = tests.into_iter().filter(|part| part.is_test);
            let tests = tests.filter_map(|test| test.name);
            known.off.extend(tests.map(|test| (test, first.clone())));
            if known.off.is_empty() {
                // The file itself is a test: its assertions are about types.
                known.off.insert("(all)".into(), first.clone());
            }
            return Ok(false);
        };
        for function in off {
            let says = |error: &&Diagnostic| {
                let one = error.places(&path);
                let own = parts::turn_off(&source, &one).ok().flatten();
                own.is_some_and(|(_, off)| off.contains(&function))
            };
            let error = errors
                .iter()
                .find(says)
                .map_or(first, |error| &error.message);
            known.off.insert(function, error.clone());
        }
        fs::write(&file, text)?;
        Ok(true)
    }
}

/// Writes a file, unless it has this text: a write would change the time at which cargo looks.
fn write(file: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(file).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let folder = file.parent().context("a file has a folder")?;
    fs::create_dir_all(folder)?;
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// The tests of unstable items are compiled too.
const BUILD: &str = r#"fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cfg=tokio_unstable");
}
"#;

fn manifest(facade: &str) -> String {
    let features: String = FEATURES
        .iter()
        .map(|name| format!("{name} = []\n"))
        .collect();
    format!(
        r#"[package]
name = "tokio-tests"
version = "0.0.0"
edition = "2021"
homepage = "https://tokio.rs" # A test of `fs` looks for it here.
publish = false

[workspace]

[patch.crates-io]
tokio = {{ path = "{facade}" }}

[features]
default = {FEATURES:?}
{features}
[dependencies]
tokio = {{ version = "1.9999", features = {FEATURES:?} }}

[dev-dependencies]
async-stream = "0.3"
bytes = "1"
futures = "0.3"
futures-concurrency = "7.6"
futures-test = "0.3"
libc = "0.2"
mockall = "0.13"
nix = {{ version = "0.31", default-features = false, features = ["aio", "fs", "socket"] }}
pin-project-lite = "0.2"
proptest = "1"
rand = "0.9"
socket2 = {{ version = "0.6", features = ["all"] }}
tempfile = "3"
tokio-stream = "0.1"
tokio-test = "0.4"

[profile.dev]
debug = false
"#
    )
}
