//! `cargo xtask sim`: explores the scenarios of `selvedge-sim`, on the shim's backend for
//! simulations.
mod explorer;
mod hashes;
mod programs;

use anyhow::{Context, Result, ensure};
use explorer::{chosen, parts, range};
use project::{
    say,
    workspace::{self, cargo, succeeds},
};
use std::{
    fs, iter,
    os::unix::process::ExitStatusExt,
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
    /// Runs the seeds in several processes, with another environment, on one processor, and without
    /// random addresses, and compares the hashes of all events.
    #[arg(long, conflicts_with_all = ["replay", "list", "mutants"])]
    hashes: bool,
    /// Measures how many runs of a ping, and how many ticks of workers, the simulator makes in a
    /// second.
    #[arg(long, conflicts_with_all = ["replay", "list", "mutants", "hashes"])]
    speed: bool,
    /// Plants the mistakes of `selvedge-sim/mutants.toml`, one at a time, and says which are found
    /// within `--seeds` of each scenario. `--only` chooses among them by a part of the name.
    #[arg(long, conflicts_with_all = ["first", "replay", "list"])]
    mutants: bool,
    /// Plants the mistakes of the programs of several hosts, one at a time, and says with which of
    /// the `--seeds` each is found. Then runs the programs without a mistake.
    #[arg(long, conflicts_with_all = ["first", "scenario", "replay", "list", "mutants", "hashes", "speed"])]
    programs: bool,
    /// Plants only the mistakes whose name contains this text.
    #[arg(long, value_name = "TEXT", requires = "mutants")]
    only: Option<String>,
}

/// The signal that ends a program beyond its limit of processor time, on Linux and macOS.
const SIGXCPU: i32 = 24;

/// The folder for replays, and for the copies with mistakes.
const FOLDER: &str = "target/sim";

pub(crate) fn run(options: &Options) -> Result<bool> {
    let (_, root) = workspace::load()?;
    if options.mutants {
        return plant_all(&root, options);
    }
    let program = build(&root, &root.join(FOLDER))?.context("it does not build")?;
    if options.programs {
        return programs::try_all(&program, options.seeds);
    }
    if options.hashes {
        let scenario = options.scenario.as_deref();
        return hashes::compare(&program, options.first, options.seeds, scenario);
    }
    let explore = || {
        let mut explore = Command::new(&program);
        explore.arg("--save").arg(root.join(FOLDER));
        explore
    };
    if let Some(file) = &options.replay {
        return succeeds(explore().arg("--replay").arg(file));
    }
    if options.list {
        return succeeds(explore().arg("--list"));
    }
    if options.speed {
        return succeeds(explore().arg("--speed"));
    }
    for scenario in chosen(&program, options.scenario.as_deref())? {
        for (first, seeds) in parts(options.first, options.seeds) {
            if !succeeds(explore().args(range(&scenario, first, seeds)))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The seeds of each scenario in the step.
const STEP_SEEDS: &str = "200";

/// The step of `cargo xtask test`: the tests of the crate, some seeds of each scenario, whether
/// each mistake of the project can be planted, and whether the README names each one of a program.
/// One build serves the tests and the scenarios: it has debug assertions, and is optimised a
/// little.
pub(crate) fn check() -> Result<bool> {
    let (_, root) = workspace::load()?;
    read_edits(&root)?;
    let folder = root.join(FOLDER);
    let mut tests = simulated(&folder);
    tests.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    // This builds the examples, too.
    tests.args(["test", "--package", "selvedge-sim"]);
    if !succeeds(tests.current_dir(&root))? {
        return Ok(false);
    }
    let program = folder.join("debug/examples/explore");
    programs::check_table(&root, &program)?;
    let mut explore = Command::new(program);
    succeeds(explore.args(["--seeds", STEP_SEEDS, "--save"]).arg(folder))
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

/// A change of a file, under the condition that a mistake is tried.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    find: String,
    replace: String,
    /// The fault that this project once had, which the edit brings back.
    real: Option<String>,
    /// Why no scenario finds the mistake.
    unfound: Option<String>,
}

impl Edit {
    /// Returns the names of the mistakes.
    fn names(&self) -> impl Iterator<Item = &str> {
        let calls = self.replace.split("sim::mutant(\"").skip(1);
        calls.filter_map(|rest| rest.split('"').next())
    }
}

#[derive(serde::Deserialize)]
struct Edits {
    edit: Vec<Edit>,
}

/// Reads the edits, each of which must have exactly one place in the sources.
fn read_edits(root: &Path) -> Result<Vec<Edit>> {
    let list = root.join("selvedge-sim/mutants.toml");
    let text = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let Edits { edit } = toml::from_str(&text).context("selvedge-sim/mutants.toml")?;
    for Edit { file, find, .. } in &edit {
        let text = fs::read_to_string(root.join(file)).with_context(|| file.clone())?;
        let places = text.matches(find).count();
        ensure!(places == 1, "{file} has the text {places} times: {find}");
    }
    Ok(edit)
}

/// Plants all mistakes in a copy of the sources, and tries one after the other.
fn plant_all(root: &Path, options: &Options) -> Result<bool> {
    let edit = read_edits(root)?;
    let copy = root.join(FOLDER).join("mutants/tree");
    copy_sources(root, &copy, &edit)?;
    let target = root.join(FOLDER).join("mutants/build");
    let program = build(&copy, &target)?.context("the copy with the mistakes does not build")?;
    let without = try_mutant(&program, "", options)?;
    if let Some((scenario, seed, kind)) = without {
        anyhow::bail!("`{scenario}` fails without a mistake, with seed {seed}: {kind}");
    }
    let is_chosen = |name: &str| (options.only.as_ref()).is_none_or(|part| name.contains(part));
    let (mut found, mut all, mut unexpected) = (0, Vec::new(), Vec::new());
    say!("| mistake | found by | with seed | as |\n|---|---|---|---|");
    for edit in &edit {
        for name in edit.names().filter(|name| is_chosen(name)) {
            if all.contains(&name) {
                continue; // A mistake of several edits.
            }
            all.push(name);
            let mark = if edit.real.is_some() { " \\*" } else { "" };
            match (try_mutant(&program, name, options)?, &edit.unfound) {
                (Some((scenario, seed, kind)), _) => {
                    found += 1;
                    say!("| {name}{mark} | `{scenario}` | {seed} | {kind} |");
                }
                (None, Some(why)) => say!("| {name}{mark} | - | - | not found: {why} |"),
                (None, None) => {
                    unexpected.push(name);
                    say!("| {name}{mark} | - | - | not found |");
                }
            }
        }
    }
    say!("\n\\* a fault that this project once had");
    let (all, seeds) = (all.len(), options.seeds);
    say!("{found} of {all} were found within {seeds} seeds of a scenario");
    for name in &unexpected {
        say!("not found, without a reason in selvedge-sim/mutants.toml: {name}");
    }
    Ok(unexpected.is_empty())
}

/// Copies the files that git knows of, or would add. A file that has not changed keeps its time, so
/// that cargo builds little.
fn copy_sources(root: &Path, to: &Path, edits: &[Edit]) -> Result<()> {
    let mut git = Command::new("git");
    git.current_dir(root);
    let files = git
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()?;
    ensure!(files.status.success(), "git does not list the files");
    for name in String::from_utf8_lossy(&files.stdout).lines() {
        let (from, to) = (root.join(name), to.join(name));
        let Ok(mut content) = fs::read(&from) else {
            continue;
        };
        for edit in edits.iter().filter(|edit| edit.file == name) {
            let text = String::from_utf8(content)?;
            content = text.replacen(&edit.find, &edit.replace, 1).into_bytes();
        }
        if fs::read(&to).is_ok_and(|there| there == content) {
            continue;
        }
        fs::create_dir_all(to.parent().expect("it is in the folder"))?;
        fs::write(&to, content)?;
    }
    Ok(())
}

/// The first seeds, with which all scenarios run before any has more.
const FEW: u64 = 100;

/// Explores the scenarios with a mistake: all with few seeds, and then with more. Returns the first
/// scenario that fails, its seed, and the kind of the failure: `hang` if the simulator's watchdog
/// ends the process, or the limit of processor time.
fn try_mutant(
    program: &Path,
    name: &str,
    options: &Options,
) -> Result<Option<(String, String, String)>> {
    let few = options.seeds.min(FEW);
    let scenarios = chosen(program, options.scenario.as_deref())?;
    for (first, seeds) in iter::once((0, few)).chain(parts(few, options.seeds - few)) {
        for scenario in &scenarios {
            if let Some((seed, kind)) = try_seeds(program, name, scenario, first, seeds)? {
                return Ok(Some((scenario.clone(), seed, kind)));
            }
        }
    }
    Ok(None)
}

/// Explores some seeds of a scenario with a mistake. Returns the first seed that fails, and the
/// kind of the failure.
fn try_seeds(
    program: &Path,
    name: &str,
    scenario: &str,
    first: u64,
    seeds: u64,
) -> Result<Option<(String, String)>> {
    // Seconds of processor time, some times as many as a scenario takes.
    let limit = format!("ulimit -t {}; exec \"$@\"", 60 + seeds / 10);
    let mut explore = Command::new("sh");
    explore.args(["-c", &limit, "sh"]).arg(program);
    explore.args(["--quiet", "--stop"]);
    explore.args(range(scenario, first, seeds));
    explore.env("SELVEDGE_SIM_MUTANT", name);
    let output = explore.output().context("running the explorer")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = text.lines().find_map(|line| {
        let (head, kind) = line.split_once(" fails: ")?;
        let (_, seed) = head.rsplit_once("seed ")?;
        Some((seed.to_owned(), kind.to_owned()))
    });
    if failed.is_some() || output.status.success() {
        return Ok(failed);
    }
    let hung = hung_seed(&String::from_utf8_lossy(&output.stderr));
    let is_late = hung.is_some() || output.status.signal() == Some(SIGXCPU);
    let kind = if is_late { "hang" } else { "crash" };
    Ok(Some((
        hung.unwrap_or_else(|| "?".to_owned()),
        kind.to_owned(),
    )))
}

/// Returns the seed in the report of the simulator's watchdog.
fn hung_seed(errors: &str) -> Option<String> {
    let (before, _) = errors.split_once(" has not switched")?;
    let (_, seed) = before.rsplit_once("with seed ")?;
    Some(seed.split(',').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::hung_seed;

    #[test]
    fn seed_is_read_from_the_report_of_the_watchdog() {
        let report = "selvedge-sim: with seed 7, thread 2 (spinner) has not switched for 10s.\n";
        assert_eq!(hung_seed(report).as_deref(), Some("7"));
        assert_eq!(hung_seed("with seed 7, a panic"), None);
    }
}
