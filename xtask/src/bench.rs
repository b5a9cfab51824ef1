//! `cargo xtask bench`: builds the programs of `bench/`, which measure and compare.
use crate::interrupt;
use anyhow::{Context, Result, ensure};
use project::{
    output,
    workspace::{self, cargo},
};
use std::process::Command;

#[path = "../../bench/src/bin/compare/options.rs"]
mod options;

pub(crate) use options::Options;

/// Measures and prints the tables. Returns `false` when a figure is missing, or a count
/// has grown.
pub(crate) fn run(options: &Options) -> Result<bool> {
    options.check()?;
    if options.list {
        output::write(format_args!("{}", options::list()));
        return Ok(true);
    }
    let mut build = cargo();
    build.args("build --profile=bench --package=bench --bin=compare".split(' '));
    if options.counts {
        build.args(["--quiet", "--example=counts"]);
    } else {
        workspace::check_writable(options.json.as_deref())?;
        build.arg("--bin=bench");
    }
    let (_, root) = workspace::load()?;
    let commit = workspace::commit(&root);
    if options.jemalloc {
        options::use_jemalloc(&mut build);
    }
    let built = build.arg("--target-dir=target").current_dir(&root).status();
    ensure!(built?.success(), "bench doesn't build");
    let mut compare = Command::new(root.join("target/release/compare"));
    compare.arg("--root").arg(&root).args(["--commit", &commit]);
    // `compare` takes the options of this command.
    compare.args(std::env::args_os().skip(2));
    interrupt::watch();
    let status = compare.status().context("starting the bench's `compare`")?;
    let has_said = status.success() || status.code() == Some(1);
    ensure!(has_said, "the bench's `compare`: {status}");
    Ok(status.success())
}
