//! `cargo xtask test`: the steps before a push, in order, up to the first that fails.
use crate::{
    links, lockfile, loom, msrv, no_std, public, report,
    workspace::{self, cargo},
};
use anyhow::{Context, Result, ensure};
use std::{process::Command, time::Instant};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these steps.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<String>,
    /// All but these steps.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    skip: Vec<String>,
    /// Lists the steps and runs none.
    #[arg(long)]
    list: bool,
}

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<bool>,
}

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "format check",
        run: fmt,
    },
    Step {
        name: "clippy",
        what: "lints, on the real backend and under the model",
        run: clippy,
    },
    Step {
        name: "deny",
        what: "licences and sources of dependencies, where cargo-deny is installed",
        run: deny,
    },
    Step {
        name: "no-std",
        what: "the parts without std, linked",
        run: no_std::run,
    },
    Step {
        name: "examples",
        what: "the executor's examples",
        run: examples,
    },
    Step {
        name: "doc",
        what: "documentation, and its links",
        run: doc,
    },
    Step {
        name: "public",
        what: "an example for each public item of the executor",
        run: public::run,
    },
    Step {
        name: "lockfile",
        what: "how many packages a part brings into a user's lockfile",
        run: lockfile::run,
    },
    Step {
        name: "msrv",
        what: "the published crates, packed, with the oldest Rust that they promise",
        run: msrv::run,
    },
    Step {
        name: "test",
        what: "unit, integration and doc tests",
        run: test,
    },
    Step {
        name: "large",
        what: "what a large future takes of the stack, and chains of a million, optimised",
        run: large,
    },
    Step {
        name: "backends",
        what: "counted costs; the tsan and shuttle backends",
        run: backends,
    },
    Step {
        name: "own",
        what: "the example of an executor of one's own: tests and models",
        run: own,
    },
    Step {
        name: "loom",
        what: "the models, quick setting",
        run: || loom::run(&loom::Options::quick()),
    },
    Step {
        name: "report",
        what: "whether docs/verification.md lists the models and mutants that there are, and a tenth at most is justified",
        run: report::is_current,
    },
];

/// Runs the steps; false when one failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    for name in options.only.iter().chain(&options.skip) {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        ensure!(
            names.contains(&name.as_str()),
            "no step {name}; there are {}",
            names.join(", ")
        );
    }
    let chosen = STEPS.iter().filter(|step| {
        let named = |list: &[String]| list.iter().any(|name| name == step.name);
        (options.only.is_empty() || named(&options.only)) && !named(&options.skip)
    });
    let all = Instant::now();
    for step in chosen {
        say!("== {}: {}", step.name, step.what);
        if options.list {
            continue;
        }
        let begun = Instant::now();
        let passed = (step.run)()?;
        let word = if passed { "ok" } else { "FAILED" };
        say!(
            "== {}: {word}, {:.0} s\n",
            step.name,
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

pub(crate) fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command
        .status()
        .with_context(|| format!("running {:?}", command.get_program()))?;
    if !status.success() {
        eprintln!("failed: {command:?}");
    }
    Ok(status.success())
}

fn fmt() -> Result<bool> {
    succeeds(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<bool> {
    let native = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ];
    if !succeeds(cargo().args(native))? {
        return Ok(false);
    }
    let mut modelled = cargo();
    modelled.args([
        "clippy",
        "--lib",
        "--tests",
        "--all-features",
    ]);
    for package in workspace::load()?
        .0
        .iter()
        .filter(|package| package.is_modelled())
    {
        modelled.args(["--package", &package.name]);
    }
    // For the workspace's crates alone, so that no dependency is checked twice.
    modelled.args(["--", "--cfg", "selvedge_loom", "-D", "warnings"]);
    succeeds(&mut modelled)
}

fn deny() -> Result<bool> {
    let installed = cargo().args(["deny", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        say!("cargo-deny is not installed: skipped");
        return Ok(true);
    }
    succeeds(cargo().args(["deny", "check", "licenses", "bans", "sources"]))
}

fn examples() -> Result<bool> {
    succeeds(cargo().args(["build", "--release", "--examples", "--package", "selvedge"]))
}

fn doc() -> Result<bool> {
    if !links::run()? {
        return Ok(false);
    }
    let mut doc = cargo();
    doc.args(["doc", "--workspace", "--no-deps", "--all-features"])
        .env("RUSTDOCFLAGS", "-D warnings");
    succeeds(&mut doc)
}

fn test() -> Result<bool> {
    succeeds(cargo().args(["test", "--workspace", "--all-features"]))
}

fn large() -> Result<bool> {
    Ok(succeeds(cargo().args([
        "test",
        "--release",
        "--package",
        "task-header",
        "--test",
        "large",
    ]))? && succeeds(cargo().args([
        "test",
        "--release",
        "--package",
        "selvedge",
        "--test",
        "faults",
        "chains",
    ]))?)
}

/// The counting backend's tests are the READMEs' tables. Of the others, that all crates build on them and the shim's own tests pass: code and
/// dependencies of tests that run nowhere would only cost time and room.
fn backends() -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let all: Vec<_> = packages
        .iter()
        .filter(|package| package.is_modelled())
        .flat_map(|package| ["--package", package.name.as_str()])
        .collect();
    let shim = ["--package", "sync-shim"];
    let steps: [(&str, &str, &[&str]); 4] = [
        ("count", "test", &all),
        ("tsan", "check", &all),
        ("tsan", "test", &shim),
        ("shuttle", "check", &all),
    ];
    for (backend, command, packages) in steps {
        let mut cargo = cargo();
        cargo
            .args([command, "--lib", "--all-features"])
            .args(packages);
        workspace::add_flags(&mut cargo, &root, &format!("--cfg selvedge_{backend}"))?;
        if !succeeds(&mut cargo)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// It is outside of the workspace, as a user's crate is.
fn own() -> Result<bool> {
    let folder = "examples/model-your-executor";
    let manifest = format!("{folder}/Cargo.toml");
    let steps: [(&str, &[&str]); 3] = [
        ("fmt", &["--check"]),
        (
            "clippy",
            &[
                "--all-targets",
                "--target-dir",
                "target",
                "--",
                "-D",
                "warnings",
            ],
        ),
        ("test", &["--target-dir", "target"]),
    ];
    for (command, rest) in steps {
        let mut cargo = cargo();
        cargo.args([command, "--manifest-path", &manifest]);
        if !succeeds(cargo.args(rest))? {
            return Ok(false);
        }
    }
    loom::run(&loom::Options::quick_at(folder))
}
