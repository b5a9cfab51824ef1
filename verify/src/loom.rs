//! `cargo xtask loom`: finds the models in the crates' test binaries, and runs each in its own
//! process.
//!
//! A model is a test below a module `models`. It prints the line `model: executions=N bound=B
//! outcome=O` when it has explored everything (`sync_shim::model`). A model that ends without this
//! line has not explored everything.
use crate::{jobs, results};
use anyhow::{Context, Result, bail, ensure};
use project::{
    output, say,
    workspace::{self, CROSSBEAM, Package, cargo},
};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsStr,
    io::Read,
    mem,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

/// Options of `cargo xtask loom`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs only the models of these packages.
    #[arg(long = "crate", value_name = "PACKAGE", value_delimiter = ',')]
    crates: Vec<String>,
    /// Runs only the models whose paths contain this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) model: Option<String>,
    /// Lists the models and runs none.
    #[arg(long)]
    list: bool,
    /// Also runs the large models, whose names begin with `full_`.
    #[arg(long)]
    pub(crate) full: bool,
    /// Writes the results to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Kills a model after this many seconds, which is a failure. 60 by default, or 1800 with
    /// --full.
    #[arg(long, value_name = "SECONDS")]
    limit: Option<u64>,
    /// Number of models that run at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Runs the models of another workspace, which use `sync-shim`.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) path: Option<PathBuf>,
    /// Bounds the models that took long when the page of results was written.
    #[arg(long)]
    brief: bool,
    /// Whether the optimised build is there already.
    #[arg(skip)]
    pub(crate) is_built: bool,
}

/// A test that explores a scenario.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) package: String,
    pub(crate) binary: PathBuf,
    pub(crate) name: String,
    /// A bound for this run of a model that has no bound of its own.
    pub(crate) bound: Option<u32>,
}

impl Model {
    /// Returns whether only `--full` runs the model.
    pub(crate) fn is_large(&self) -> bool {
        let name = self.name.rsplit("::").next();
        name.is_some_and(|name| name.starts_with("full_"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    Ok,
    FailedAsItMust,
    Failed,
    Truncated,
    Unexplored,
    NoModel,
}

impl Status {
    pub(crate) fn passes(self) -> bool {
        matches!(self, Self::Ok | Self::FailedAsItMust)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::FailedAsItMust => "ok (fails as it must)",
            Self::Failed => "FAILED",
            Self::Truncated => "TRUNCATED (killed at the limit)",
            Self::Unexplored => "UNEXPLORED (one execution or none)",
            Self::NoModel => "NO MODEL (it printed no `model:` line)",
        }
    }
}

/// The result of a run of a model.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    #[serde(rename = "crate")]
    pub(crate) package: String,
    pub(crate) model: String,
    pub(crate) executions: u64,
    pub(crate) seconds: f64,
    pub(crate) bound: Option<u64>,
    pub(crate) status: Status,
    /// The commit of the tree to which the result belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
}

/// Runs the models that the options name; returns `false` when one failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.jobs > 0, "--jobs is at least 1");
    ensure!(options.limit != Some(0), "--limit is at least 1");
    workspace::check_writable(options.json.as_deref())?;
    let commit = workspace::commit(options.path.as_deref().unwrap_or(Path::new(".")));
    let mut models = find(options)?;
    if options.brief {
        bound_long(&mut models)?;
    }
    if options.list {
        for model in &models {
            say!("{} {}", model.package, model.name);
        }
        return Ok(true);
    }
    let limit = options
        .limit
        .unwrap_or(if options.full { 1_800 } else { 60 });
    let begun = Instant::now();
    let limit = Duration::from_secs(limit);
    let so_far = Mutex::new(Vec::new());
    let write = |outcomes: &[Outcome]| {
        let file = options.json.as_deref();
        file.map_or(Ok(()), |file| results::write_json(file, &outcomes))
    };
    // The results so far are written after each model, as the run may be cut off.
    let outcomes = run_all(models, options.jobs, limit, &commit, |outcome| {
        let mut so_far = so_far.lock().expect("no job panics");
        so_far.push(outcome.clone());
        write(&so_far)
    })?;
    write(&outcomes)?;
    let sum = |bounded: bool| -> u64 {
        outcomes
            .iter()
            .filter(|o| o.bound.is_some() == bounded)
            .map(|o| o.executions)
            .sum()
    };
    let passed = outcomes
        .iter()
        .filter(|outcome| outcome.status.passes())
        .count();
    let failed = outcomes.len() - passed;
    say!(
        "\n{} models, {} executions without a bound, {} with one, {:.1} s\n{passed} passed, {failed} failed",
        outcomes.len(),
        sum(false),
        sum(true),
        begun.elapsed().as_secs_f64(),
    );
    Ok(failed == 0)
}

/// In a brief run, a model that took more executions than `LONG` gets the bound `BRIEF_BOUND`.
const LONG: u64 = 50_000;
const BRIEF_BOUND: u32 = 3;

/// Bounds the models that took more executions than [`LONG`] when `docs/verification` was written.
fn bound_long(models: &mut [Model]) -> Result<()> {
    let file = workspace::load()?.1.join("docs/verification/models.json");
    let known: Vec<Outcome> = results::earlier(&file)?.unwrap_or_default();
    for known in known.iter().filter(|known| known.executions > LONG) {
        for model in &mut *models {
            if model.package == known.package && model.name == known.model {
                model.bound = Some(BRIEF_BOUND);
            }
        }
    }
    Ok(())
}

/// Finds the models that the options name. To list them, builds without optimisation, unless the
/// optimised build is there already.
pub(crate) fn find(options: &Options) -> Result<Vec<Model>> {
    let (packages, root) = workspace::load_at(options.path.as_deref())?;
    let ours = workspace::load()?.1.join("target");
    let theirs = ours.join("loom");
    let modelled = packages.iter();
    let modelled = modelled.filter(|p| options.path.is_some() || p.is_modelled());
    let wanted = workspace::chosen(modelled, &options.crates, "models")?;
    let speed = match options.list && !options.is_built {
        true => Speed::Listed,
        false => Speed::Explored,
    };
    let build = Build {
        speed,
        root: &root,
        target: options.path.as_ref().map_or(&ours, |_| &theirs),
        flags: FLAGS,
        of_members: options.path.is_none(),
        targets: LIB,
    };
    let mut models = Vec::new();
    for (package, binary) in build.binaries(&wanted)? {
        models.extend(list(package, binary)?);
    }
    let (found, mut skipped) = (models.len(), 0);
    models.retain(|model| {
        let matches = options
            .model
            .as_ref()
            .is_none_or(|text| model.name.contains(text.as_str()));
        let skip = matches && model.is_large() && !options.full;
        skipped += usize::from(skip);
        matches && !skip
    });
    if models.is_empty() {
        bail!(
            "no model matched; {found} exist (--list shows them), {skipped} of the matching only run with --full"
        );
    }
    Ok(models)
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    #[serde(default)]
    profile: Profile,
}

#[derive(Default, Deserialize)]
struct Profile {
    test: bool,
}

/// The flags of rustc that build for the model checker.
pub(crate) const FLAGS: &str = "--cfg selvedge_loom --cfg crossbeam_loom -C debug-assertions=on";

/// Cargo's option for the unit tests of a crate.
pub(crate) const LIB: &[&str] = &["--lib"];

/// How much to optimise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    /// Not at all: the tests are only listed.
    Listed,
    /// The dependencies fully, and the packages a little. The checkers, which are dependencies,
    /// take most of a model's time. To optimise the packages fully takes longer than it saves.
    Explored,
    /// All fully.
    Full,
}

/// The way in which the tests of packages are built.
pub(crate) struct Build<'a> {
    pub(crate) speed: Speed,
    pub(crate) root: &'a Path,
    pub(crate) target: &'a Path,
    pub(crate) flags: &'a str,
    /// Whether the flags apply to the workspace's members only.
    pub(crate) of_members: bool,
    /// Cargo's options that select the tests: the unit tests of the crate, or others.
    pub(crate) targets: &'a [&'a str],
}

impl Build<'_> {
    /// Builds the tests of the packages, and returns them in the packages' order. One run of cargo
    /// compiles each dependency once, with the features that any of the packages needs.
    pub(crate) fn binaries<'a>(&self, packages: &[&'a Package]) -> Result<Vec<(&'a str, PathBuf)>> {
        let mut cargo = cargo();
        cargo
            .current_dir(self.root)
            .args(["test", "--no-run", "--all-features"])
            .args(self.targets)
            .arg("--message-format=json-render-diagnostics")
            .arg("--target-dir")
            .arg(self.target);
        cargo.args((self.speed != Speed::Listed).then_some("--release"));
        for package in packages {
            cargo.args(["--package", &package.name]);
            if self.speed == Speed::Explored {
                let level = format!("profile.release.package.{}.opt-level=1", package.name);
                cargo.args(["--config", &level]);
            }
        }
        if self.of_members {
            workspace::add_flags(&mut cargo, self.root, None, self.flags)?;
        } else {
            if self.flags.contains(CROSSBEAM) {
                let root = workspace::load()?.1;
                workspace::add_flags(&mut cargo, &root, None, CROSSBEAM)?;
            }
            cargo.env("RUSTFLAGS", self.flags.replace(CROSSBEAM, ""));
        }
        let output = cargo
            .stderr(Stdio::inherit())
            .output()
            .context("cargo test")?;
        ensure!(output.status.success(), "the models don't build");
        let built = String::from_utf8_lossy(&output.stdout);
        let built: Vec<_> = built
            .lines()
            .filter_map(|line| serde_json::from_str::<Message>(line).ok())
            .filter(|message| message.reason == "compiler-artifact" && message.profile.test)
            .collect();
        let mut binaries = Vec::new();
        for package in packages {
            let of_package = built
                .iter()
                .filter(|message| message.manifest_path.as_ref() == Some(&package.manifest_path));
            let before = binaries.len();
            let files = of_package.filter_map(|message| message.executable.clone());
            binaries.extend(files.map(|file| (package.name.as_str(), file)));
            ensure!(
                binaries.len() > before,
                "cargo names no test binary of {}",
                package.name
            );
        }
        Ok(binaries)
    }
}

/// Lists the tests in a test binary.
pub(crate) fn tests(package: &str, binary: &Path) -> Result<Vec<Model>> {
    let output = Command::new(binary)
        .arg("--list")
        .output()
        .context("listing the tests")?;
    ensure!(
        output.status.success(),
        "{} --list failed",
        binary.display()
    );
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(|name| Model {
            package: package.into(),
            binary: binary.into(),
            name: name.into(),
            bound: None,
        })
        .collect())
}

/// Lists the models in a test binary.
pub(crate) fn list(package: &str, binary: PathBuf) -> Result<Vec<Model>> {
    let mut models = tests(package, &binary)?;
    models.retain(|model| model.name.split("::").any(|module| module == "models"));
    Ok(models)
}

/// Runs models; passes each outcome to `done` as soon as its model has ended.
pub(crate) fn run_all(
    models: Vec<Model>,
    jobs: usize,
    limit: Duration,
    commit: &str,
    done: impl Fn(&Outcome) -> Result<()> + Sync,
) -> Result<Vec<Outcome>> {
    let width = models
        .iter()
        .map(|m| m.package.len() + m.name.len() + 1)
        .max()
        .unwrap_or(0);
    let mut outcomes = jobs::each(jobs, &models, |model| {
        let (mut outcome, mut said) = run_one(model, limit, &[])?;
        if outcome.status == Status::Failed {
            said.push_str(&replay(model, limit)?);
        }
        outcome.commit = Some(commit.into());
        output::write(format_args!("{}", line(&outcome, width, &said)));
        done(&outcome)?;
        Ok(outcome)
    })?;
    outcomes.sort_by(|a, b| (&a.package, &a.model).cmp(&(&b.package, &b.model)));
    Ok(outcomes)
}

fn line(outcome: &Outcome, width: usize, said: &str) -> String {
    let name = format!("{} {}", outcome.package, outcome.model);
    let bound = outcome
        .bound
        .map_or("none".into(), |bound| bound.to_string());
    let mut line = format!(
        "{name:width$}  {:>9} executions  {:>6.2} s  bound {bound:<4}  {}\n",
        outcome.executions,
        outcome.seconds,
        outcome.status.words()
    );
    if !outcome.status.passes() {
        line.push_str(said);
        line.push('\n');
    }
    line
}

/// Runs a model that has failed once more, and returns the steps of the execution that failed, and
/// the command that shows them. The executions have one order in all runs. So this run fails in the
/// same one, unless the model is killed before: the record of the steps takes time.
fn replay(model: &Model, limit: Duration) -> Result<String> {
    let (_, said) = run_one(model, 10 * limit, &[("SELVEDGE_STEPS", OsStr::new("1"))])?;
    let steps = steps(&said).unwrap_or("The model has shown no steps in a second run.\n");
    let bound = model.bound.map(|bound| format!("SELVEDGE_BOUND={bound} "));
    Ok(format!(
        "\n{steps}To see them again: {}SELVEDGE_STEPS=1 {} --exact {} --nocapture\n",
        bound.unwrap_or_default(),
        model.binary.display(),
        model.name
    ))
}

/// Returns the last steps that sync-shim has printed.
fn steps(said: &str) -> Option<&str> {
    let begin = said.rfind("steps of execution ")?;
    let end = said[begin..].find("end of the steps\n")?;
    Some(&said[begin..begin + end])
}

/// Runs a model in its own process; also returns the output of the model.
pub(crate) fn run_one(
    model: &Model,
    limit: Duration,
    environment: &[(&str, &OsStr)],
) -> Result<(Outcome, String)> {
    let begun = Instant::now();
    let mut command = Command::new(&model.binary);
    command
        .args(["--exact", &model.name, "--nocapture"])
        .stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in [
        "LOOM_CHECKPOINT_FILE",
        "LOOM_LOCATION",
        "LOOM_LOG",
        "LOOM_MAX_BRANCHES",
        "LOOM_MAX_DURATION",
        "LOOM_MAX_PERMUTATIONS",
        "LOOM_MAX_PREEMPTIONS",
        "SELVEDGE_BOUND",
        "SELVEDGE_STEPS",
    ] {
        command.env_remove(name);
    }
    let bound = model.bound.map(|bound| bound.to_string());
    command
        .envs(bound.map(|bound| ("SELVEDGE_BOUND", bound)))
        .envs(environment.iter().copied());
    let mut child = command
        .spawn()
        .with_context(|| format!("starting {}", model.binary.display()))?;
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let ended = wait(&mut child, limit)?;
    let said = out.join().unwrap_or_default() + &err.join().unwrap_or_default();
    let report = said.lines().find_map(parse);
    let status = match (ended, &report) {
        (None, _) => Status::Truncated,
        (Some(exit), _) if !exit.success() => Status::Failed,
        (_, None) => Status::NoModel,
        (_, Some(report)) if report.must_fail => Status::FailedAsItMust,
        (_, Some(report)) if report.executions <= 1 => Status::Unexplored,
        _ => Status::Ok,
    };
    let outcome = Outcome {
        package: model.package.clone(),
        model: model.name.clone(),
        executions: report.as_ref().map_or(0, |report| report.executions),
        seconds: begun.elapsed().as_secs_f64(),
        bound: report.and_then(|report| report.bound),
        status,
        commit: None,
    };
    let how = ended.map_or(String::new(), |exit| format!("{exit}"));
    Ok((outcome, format!("{said}\n{how}")))
}

/// The size of the pieces in which a child's output is read, in bytes.
const PIECE: u64 = 1 << 20;

/// Reads a pipe to its end, and keeps the last lines: a model whose panics are caught may write a
/// message in each of a million schedules.
fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || pipe.map_or_else(String::new, last_lines))
}

/// Returns the last one to two MiB of what is read, with a word on it if there was more. Then the
/// first line is left out too, because it may be a fragment.
fn last_lines(mut from: impl Read) -> String {
    let (mut kept, mut last) = (Vec::new(), Vec::new());
    let mut left_out = false;
    loop {
        let mut piece = Vec::new();
        let read = from.by_ref().take(PIECE).read_to_end(&mut piece);
        if !piece.is_empty() {
            left_out |= !kept.is_empty();
            kept = mem::replace(&mut last, piece);
        }
        if !matches!(read, Ok(1..)) {
            break;
        }
    }
    if left_out {
        let first_line = kept.iter().position(|byte| *byte == b'\n');
        let cut = first_line.map_or(0, |end| end + 1);
        kept.splice(..cut, LEFT_OUT.bytes());
    }
    kept.append(&mut last);
    String::from_utf8_lossy(&kept).into_owned()
}

/// Stands for the lines that are left out.
const LEFT_OUT: &str = "[earlier lines are left out]\n";

/// Waits for the child; returns `None` when this function had to kill the child. The limit is on
/// the child's processor time, where the system reports that time, so that the load of the machine
/// makes no difference. A child that hangs is killed after ten times the limit by the clock.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let by_clock = begun.elapsed();
        if by_clock >= limit
            && used(child.id()).is_none_or(|used| used >= limit || by_clock >= 10 * limit)
        {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the processor time that a process has used.
fn used(process: u32) -> Option<Duration> {
    ticks(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Adds the 14th and the 15th field of `stat`, in hundredths of a second. The second field may
/// contain blanks, but ends with the last bracket.
fn ticks(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (next()? + next()?)))
}

#[derive(Debug, PartialEq, Eq)]
struct Report {
    executions: u64,
    bound: Option<u64>,
    must_fail: bool,
}

/// Parses a `model:` line.
fn parse(line: &str) -> Option<Report> {
    let mut fields = line.strip_prefix("model: ")?.split(' ');
    let executions = fields.next()?.strip_prefix("executions=")?.parse().ok()?;
    let bound = match fields.next()?.strip_prefix("bound=")? {
        "none" => None,
        bound => Some(bound.parse().ok()?),
    };
    let must_fail = match fields.next()?.strip_prefix("outcome=")? {
        "complete" => false,
        "failed-as-it-must" => true,
        _ => return None,
    };
    Some(Report {
        executions,
        bound,
        must_fail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time, as a pipe does.
    struct Pipe<'a>(&'a [u8]);

    impl Read for Pipe<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let some = into.len().min(1_000);
            self.0.read(&mut into[..some])
        }
    }

    #[test]
    fn long_output_keeps_its_last_lines() {
        let all: String = (0..PIECE / 4).map(|line| format!("{line:07}\n")).collect();
        assert!(last_lines(Pipe(all.as_bytes())) == all);
        let longer = all + "the last line";
        let kept = last_lines(Pipe(longer.as_bytes()));
        assert!(kept == LEFT_OUT.to_owned() + &longer[PIECE as usize + 8..]);
        assert_eq!(last_lines(Pipe(b"no line")), "no line");
        assert_eq!(last_lines(Pipe(b"")), "");
    }

    /// The model is a script that fails, and that prints steps when it is asked for them.
    ///
    /// Fails if a model that failed is not run again with its steps, or with another bound.
    #[cfg(unix)]
    #[test]
    fn failed_model_shows_its_steps_and_the_command_that_does() {
        use std::{fs, os::unix::fs::PermissionsExt};
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("models");
        let script = "#!/bin/sh\necho panicked >&2\n[ -z \"$SELVEDGE_STEPS\" ] && exit 101\n\
                      echo steps of execution 1:; echo '  main'; echo end of the steps\n\
                      echo steps of execution 7:; echo \"  $2 $SELVEDGE_BOUND\"; echo end of the steps\n\
                      exit 101\n";
        // A process of its own writes the file that is run: this one may fork meanwhile.
        let source = folder.path().join("source");
        fs::write(&source, script).unwrap();
        let copied = Command::new("cp").args([&source, &binary]).status();
        assert!(copied.unwrap().success());
        fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).unwrap();
        let model = Model {
            package: "a".into(),
            binary: binary.clone(),
            name: "models::b".into(),
            bound: Some(3),
        };
        let limit = Duration::from_secs(600);
        let (outcome, said) = run_one(&model, limit, &[]).unwrap();
        assert!(outcome.status == Status::Failed && steps(&said).is_none());
        let command = format!(
            "SELVEDGE_BOUND=3 SELVEDGE_STEPS=1 {} --exact models::b --nocapture",
            binary.display()
        );
        assert_eq!(
            replay(&model, limit).unwrap(),
            format!("\nsteps of execution 7:\n  models::b 3\nTo see them again: {command}\n")
        );
    }

    #[test]
    fn processor_time_is_parsed_from_the_kernels_stat() {
        let stat = "7 (a b) c) R 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20";
        assert_eq!(ticks(stat), Some(Duration::from_secs(3)));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn only_lines_that_report_a_model_are_parsed() {
        let report = Report {
            executions: 12,
            bound: None,
            must_fail: false,
        };
        assert_eq!(
            parse("model: executions=12 bound=none outcome=complete"),
            Some(report)
        );
        let report = Report {
            executions: 1,
            bound: Some(2),
            must_fail: true,
        };
        assert_eq!(
            parse("model: executions=1 bound=2 outcome=failed-as-it-must"),
            Some(report)
        );
        assert_eq!(parse("model: executions=1 bound=2 outcome=great"), None);
        assert_eq!(parse("test models::a ... ok"), None);
    }
}
