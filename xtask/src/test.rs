//! `cargo xtask test`: runs the steps before a push, in order, up to the first that fails.
use crate::{
    links, lockfile, minimal, modules, msrv, no_std, platforms, prose, public, sim, tokio_items,
    verify,
};
use anyhow::{Context, Result, ensure};
use project::{
    output, say,
    workspace::{self, cargo, cargo_succeeds, is_installed, succeeds},
};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Instant,
};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs only these steps.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<String>,
    /// Runs all steps but these.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    skip: Vec<String>,
    /// Lists the steps and runs none.
    #[arg(long)]
    list: bool,
}

/// The name of a step, a description of its check, and the check.
type Step = (&'static str, &'static str, fn() -> Result<bool>);

const STEPS: &[Step] = &[
    ("fmt", "format check", fmt),
    (
        "prose",
        "the lengths, subjects and names in comments, documents and code",
        prose::run,
    ),
    (
        "modules",
        "no import cycles between files but pairs that have a reason",
        modules::check,
    ),
    (
        "clippy",
        "lints, on the real backend and under the model",
        clippy,
    ),
    (
        "deny",
        "licences and sources of dependencies, where cargo-deny is installed",
        deny,
    ),
    ("no-std", "the parts without std, linked", no_std::run),
    (
        "examples",
        "the examples of `selvedge` and of its crates for users",
        examples,
    ),
    ("doc", "documentation, and its links", doc),
    (
        "public",
        "an example for each public item that users import",
        public::run,
    ),
    (
        "tokio",
        "the table of tokio's public items",
        tokio_items::check,
    ),
    (
        "lockfile",
        "how many packages a part brings into a user's lockfile",
        lockfile::run,
    ),
    (
        "minimal",
        "the published crates, with the oldest dependencies that their manifests allow",
        minimal::run,
    ),
    (
        "msrv",
        "the published crates, packed, with the oldest Rust that they promise",
        msrv::run,
    ),
    (
        "platforms",
        "the runtime for Windows, and the executor for 32-bit x86, by Debian's compilers",
        platforms::quick::check,
    ),
    ("test", "unit, integration and doc tests", test),
    (
        "large",
        "optimised tests: the stack that a large future needs, and chains of a million tasks",
        large,
    ),
    (
        "backends",
        "counted costs; the backend of shuttle; the poller of other systems",
        backends,
    ),
    (
        "sim",
        "simulated programs, with some seeds each",
        sim::check,
    ),
    (
        "own",
        "the example of an executor of one's own: tests and models",
        own,
    ),
    ("loom", "the models, the long ones with a bound", models),
    (
        "report",
        "whether docs/verification.md lists the models and mutants that there are, and at most a tenth of the mutants is justified",
        report,
    ),
];

/// Runs the steps up to the first that fails. Returns `false` when a step failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    for name in options.only.iter().chain(&options.skip) {
        let names: Vec<_> = STEPS.iter().map(|(name, ..)| *name).collect();
        ensure!(
            names.contains(&name.as_str()),
            "no step {name}; there are {}",
            names.join(", ")
        );
    }
    let chosen = STEPS.iter().filter(|(step, ..)| {
        let named = |list: &[String]| list.iter().any(|name| name == step);
        (options.only.is_empty() || named(&options.only)) && !named(&options.skip)
    });
    let all = Instant::now();
    for (name, what, run) in chosen {
        say!("== {name}: {what}");
        if options.list {
            continue;
        }
        let begun = Instant::now();
        let passed = run()?;
        let word = if passed { "ok" } else { "FAILED" };
        say!(
            "== {name}: {word}, {:.0} s\n",
            begun.elapsed().as_secs_f64()
        );
        if !passed {
            return Ok(false);
        }
    }
    if !options.list {
        say!(
            "== all: ok, {:.1} minutes",
            all.elapsed().as_secs_f64() / 60.0
        );
    }
    Ok(true)
}

fn fmt() -> Result<bool> {
    cargo_succeeds("fmt --all --check")
}

fn clippy() -> Result<bool> {
    if !cargo_succeeds("clippy --workspace --all-targets --all-features -- -D warnings")? {
        return Ok(false);
    }
    let (packages, root) = workspace::load()?;
    let mut modelled = cargo();
    let driver = Path::new(modelled.get_program()).with_file_name("clippy-driver");
    // These are the builds that `cargo clippy` makes. That command itself can't give flags to the
    // workspace's crates alone. Integration tests are left out: they never run under the model.
    modelled.args("check --lib --profile test --all-features".split(' '));
    for package in packages
        .iter()
        .filter(|p| p.is_modelled() && p.is_publishable())
    {
        modelled.args(["--package", &package.name]);
    }
    let flags = format!("--cfg selvedge_loom {} -D warnings", workspace::CROSSBEAM);
    workspace::add_flags(&mut modelled, &root, Some(&driver), &flags)?;
    succeeds(&mut modelled)
}

fn deny() -> Result<bool> {
    if !is_installed(cargo().arg("deny")) {
        say!("cargo-deny is not installed: skipped");
        return Ok(true);
    }
    cargo_succeeds("deny check licenses bans sources")
}

/// Builds the examples of `selvedge` with the features that a user's command turns on, and checks
/// the examples of `selvedge-hyper` with all features. Runs those of `task-sync` under tokio, smol
/// and selvedge.
fn examples() -> Result<bool> {
    let hyper = "check --examples --all-features --package selvedge-hyper";
    let sync = "test --package guide --test sync_examples";
    Ok(cargo_succeeds(EXAMPLES)? && cargo_succeeds(hyper)? && cargo_succeeds(sync)?)
}

/// Cargo's arguments that build the examples of `selvedge`.
const EXAMPLES: &str = "build --examples --package selvedge";

fn doc() -> Result<bool> {
    let mut doc = cargo();
    doc.args(["doc", "--workspace", "--no-deps", "--all-features"]);
    Ok(links::run()? && succeeds(doc.env("RUSTDOCFLAGS", "-D warnings"))?)
}

/// Runs the tests. Some run the examples of `selvedge`, so these are built before: with
/// the default features, and then with all. The step `clippy` has checked all other examples. The
/// doc tests run at the same time as the other tests, which rarely need more than one processor.
fn test() -> Result<bool> {
    let tests = "test --workspace --all-features --tests --no-fail-fast";
    if !build_examples()? || !cargo_succeeds(&format!("{tests} --no-run"))? {
        return Ok(false);
    }
    thread::scope(|scope| {
        let mut docs = cargo();
        docs.args([
            "test",
            "--workspace",
            "--all-features",
            "--doc",
            "--no-fail-fast",
        ]);
        let docs = scope.spawn(move || docs.output());
        let passed = cargo_succeeds(tests)?;
        let docs = docs.join().expect("no panic").context("running cargo")?;
        for text in [docs.stdout, docs.stderr] {
            output::write(format_args!("{}", String::from_utf8_lossy(&text)));
        }
        Ok(passed && docs.status.success())
    })
}

/// Builds the examples of `selvedge` and `process-cluster`, which their tests run: some of the
/// former as a user builds them, and some with all features.
pub(crate) fn build_examples() -> Result<bool> {
    let cluster = "build --examples --package process-cluster --all-features";
    Ok(cargo_succeeds(EXAMPLES)?
        && cargo_succeeds(&format!("{EXAMPLES} --all-features"))?
        && cargo_succeeds(cluster)?)
}

fn large() -> Result<bool> {
    Ok(
        cargo_succeeds("test --release --package task-header --test large")?
            && cargo_succeeds("test --release --package selvedge --test faults chains")?,
    )
}

/// Checks the other backends of the shim, and the other poller:
///
/// - On the counting backend it runs the tests with `count` in their names. These check the tables
///   of the READMEs.
/// - On the backend of shuttle it checks that all published crates with models build. It builds no
///   tests there, as they would not run.
/// - At last it tests the sockets over the poller of Unix systems other than Linux, and over that
///   of systems without edge-triggered events, such as Windows. With the former it also tests the
///   children, for which threads wait there.
fn backends() -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let all: Vec<_> = packages
        .iter()
        .filter(|package| package.is_modelled() && package.is_publishable())
        .flat_map(|package| ["--package", package.name.as_str()])
        .collect();
    let sockets = ["--package", "net-driver"];
    let polling = ["--features", "net-driver/polling"];
    let children = [&["--package", "child-process"][..], &polling].concat();
    let steps: [(&str, &[&str], &[&str]); 5] = [
        ("count", &["test", "count"], &all),
        ("shuttle", &["check"], &all),
        ("polling", &["test", "--tests"], &sockets),
        ("polling", &["test", "--tests"], &children),
        (
            "polling --cfg selvedge_one_shot",
            &["test", "--tests"],
            &sockets,
        ),
    ];
    for (backend, command, packages) in steps {
        let mut cargo = cargo();
        cargo
            .args(command)
            .args(["--lib", "--all-features"])
            .args(packages);
        workspace::add_flags(
            &mut cargo,
            &root,
            None,
            &format!("--cfg selvedge_{backend}"),
        )?;
        if !succeeds(&mut cargo)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tests the example crate, which is outside the workspace, as a user's crate would be.
fn own() -> Result<bool> {
    let folder = "examples/model-your-executor";
    let manifest = format!("--manifest-path {folder}/Cargo.toml");
    for arguments in [
        format!("fmt {manifest} --check"),
        format!("clippy {manifest} --all-targets --target-dir target -- -D warnings"),
        format!("test {manifest} --target-dir target"),
    ] {
        if !cargo_succeeds(&arguments)? {
            return Ok(false);
        }
    }
    verify::passes(&format!("loom --path {folder}"))
}

/// Set once the step `loom` has built all models.
static MODELS_ARE_BUILT: AtomicBool = AtomicBool::new(false);

fn models() -> Result<bool> {
    let passed = verify::passes("loom --brief")?;
    // Ordering: Relaxed, as the steps run on one thread.
    MODELS_ARE_BUILT.store(true, Relaxed);
    Ok(passed)
}

fn report() -> Result<bool> {
    // Ordering: Relaxed, as in `models`.
    verify::passes(match MODELS_ARE_BUILT.load(Relaxed) {
        true => "report --check --built",
        false => "report --check",
    })
}
