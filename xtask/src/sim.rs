//! `cargo xtask sim`: explores the scenarios of `selvedge-sim`, on the shim's backend for
//! simulations.
use anyhow::{Context, Result, bail, ensure};
use project::{
    say,
    workspace::{self, cargo, succeeds},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Options of `cargo xtask sim`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs each scenario with so many seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// Begins with this seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Runs this scenario alone.
    #[arg(long)]
    scenario: Option<String>,
    /// Runs the choices of this file again.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Lists the scenarios and runs none.
    #[arg(long)]
    list: bool,
    /// Plants the mistakes of `selvedge-sim/mutants.toml`, one at a time, and says which are found
    /// within `--seeds` of each scenario. `--only` chooses among them by a part of the name.
    #[arg(long)]
    mutants: bool,
    /// Plants only the mistakes whose name contains this text.
    #[arg(long, value_name = "TEXT", requires = "mutants")]
    only: Option<String>,
}

/// The folder for replays, and for the copies with mistakes.
const FOLDER: &str = "target/sim";

pub(crate) fn run(options: &Options) -> Result<bool> {
    let (_, root) = workspace::load()?;
    if options.mutants {
        return plant_all(&root, options);
    }
    let program = build(&root, &root.join(FOLDER))?.context("it does not build")?;
    let mut explore = Command::new(program);
    explore.args(["--save", FOLDER]);
    explore.args(["--seeds", &options.seeds.to_string()]);
    explore.args(["--first", &options.first.to_string()]);
    if let Some(scenario) = &options.scenario {
        explore.args(["--scenario", scenario]);
    }
    if let Some(file) = &options.replay {
        explore.arg("--replay").arg(file);
    }
    if options.list {
        explore.arg("--list");
    }
    succeeds(&mut explore)
}

/// The step of `cargo xtask test`: the tests of the crate, and some seeds of each scenario.
pub(crate) fn check() -> Result<bool> {
    let (_, root) = workspace::load()?;
    let mut tests = simulated(&root.join(FOLDER));
    tests.args(["test", "--package", "selvedge-sim"]);
    if !succeeds(tests.current_dir(&root))? {
        return Ok(false);
    }
    let Some(program) = build(&root, &root.join(FOLDER))? else {
        return Ok(false);
    };
    let save = root.join(FOLDER);
    succeeds(
        Command::new(program)
            .args(["--seeds", "500", "--save"])
            .arg(save),
    )
}

/// Returns a cargo that builds on the backend for simulations.
fn simulated(target: &Path) -> Command {
    let mut cargo = cargo();
    cargo.env("RUSTFLAGS", "--cfg selvedge_sim");
    cargo.env("CARGO_TARGET_DIR", target);
    cargo
}

/// Builds the explorer of the sources in `root`. Returns `None` if they do not build.
fn build(root: &Path, target: &Path) -> Result<Option<PathBuf>> {
    let mut build = simulated(target);
    let arguments = "build --release --quiet --package selvedge-sim --example explore";
    build.args(arguments.split(' ')).current_dir(root);
    let built = succeeds(&mut build)?;
    Ok(built.then(|| target.join("release/examples/explore")))
}

/// A planted mistake.
#[derive(serde::Deserialize)]
struct Mutant {
    name: String,
    file: String,
    find: String,
    replace: String,
}

#[derive(serde::Deserialize)]
struct Mutants {
    mutant: Vec<Mutant>,
}

/// Plants each mistake in a copy of the sources.
fn plant_all(root: &Path, options: &Options) -> Result<bool> {
    let list = root.join("selvedge-sim/mutants.toml");
    let text = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let Mutants { mutant } = toml::from_str(&text).context("selvedge-sim/mutants.toml")?;
    let copy = root.join(FOLDER).join("mutants/tree");
    copy_sources(root, &copy)?;
    let (mut found, mut all) = (0, 0);
    say!("| mistake | found by | with seed | as |\n|---|---|---|---|");
    for mutant in &mutant {
        if options
            .only
            .as_ref()
            .is_some_and(|part| !mutant.name.contains(part))
        {
            continue;
        }
        all += 1;
        let file = copy.join(&mutant.file);
        let sources = fs::read_to_string(&file).with_context(|| mutant.file.clone())?;
        let places = sources.matches(&mutant.find).count();
        ensure!(
            places == 1,
            "{}: the text is there {places} times",
            mutant.name
        );
        fs::write(&file, sources.replacen(&mutant.find, &mutant.replace, 1))?;
        let result = explore_mutant(root, &copy, options);
        fs::write(&file, sources)?;
        match result.with_context(|| mutant.name.clone())? {
            Some((scenario, seed, kind)) => {
                found += 1;
                say!("| {} | `{scenario}` | {seed} | {kind} |", mutant.name);
            }
            None => say!("| {} | - | - | not found |", mutant.name),
        }
    }
    say!(
        "\n{found} of {all} were found within {} seeds of a scenario",
        options.seeds
    );
    Ok(true)
}

/// Copies the files that git knows of, or would add. A file that has not changed keeps its time, so
/// that cargo builds little.
fn copy_sources(root: &Path, to: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.current_dir(root);
    let files = git
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()?;
    ensure!(files.status.success(), "git does not list the files");
    for name in String::from_utf8_lossy(&files.stdout).lines() {
        let (from, to) = (root.join(name), to.join(name));
        let Ok(content) = fs::read(&from) else {
            continue;
        };
        if fs::read(&to).is_ok_and(|there| there == content) {
            continue;
        }
        fs::create_dir_all(to.parent().expect("it is in the folder"))?;
        fs::write(&to, content)?;
    }
    Ok(())
}

/// Explores the scenarios of the copy: all with few seeds, and then with more. Returns the first
/// scenario that fails, its seed, and the kind of the failure.
fn explore_mutant(
    root: &Path,
    copy: &Path,
    options: &Options,
) -> Result<Option<(String, String, String)>> {
    let target = root.join(FOLDER).join("mutants/build");
    let Some(program) = build(copy, &target)? else {
        bail!("the copy with the mistake does not build");
    };
    let mut seeds = options.seeds.min(100);
    loop {
        let mut explore = Command::new("timeout");
        explore.arg("600").arg(&program).args(["--quiet", "--stop"]);
        explore.args(["--seeds", &seeds.to_string()]);
        if let Some(scenario) = &options.scenario {
            explore.args(["--scenario", scenario]);
        }
        let output = explore.output().context("running the explorer")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed = text.lines().find_map(|line| {
            let (head, kind) = line.split_once(" fails: ")?;
            let (_, seed) = head.rsplit_once("seed ")?;
            let scenario = head.split_whitespace().next()?;
            Some((scenario.to_owned(), seed.to_owned(), kind.to_owned()))
        });
        if failed.is_some() {
            return Ok(failed);
        }
        if !output.status.success() {
            let how = output.status.to_string();
            return Ok(Some(("?".to_owned(), "?".to_owned(), how)));
        }
        if seeds >= options.seeds {
            return Ok(None);
        }
        seeds = options.seeds.min(10 * seeds);
    }
}
