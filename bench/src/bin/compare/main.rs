//! `cargo xtask bench`: measures runtimes beside each other. Each sample is a process of its own.
//!
//! A row is measured in rounds. In each round every runtime takes one sample, back to back, and the
//! runtimes' order rotates from round to round. A sample is given up for two reasons: other
//! processes disturbed the sample, or the processors' distance was not the one that the options ask
//! for. Processors are near each other or far from each other, by the time of a cache line's round
//! trip between them. The command takes another sample in place of one that is given up, a bounded
//! number of times. A ratio is the median of the rounds' ratios, because the machine changes less
//! within a round than between rounds.
use anyhow::{Context, Result, ensure};
use clap::Parser;
use options::{Options, Placement, choose};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

mod ablation;
mod counts;
#[path = "../../../../xtask/src/interrupt.rs"]
mod interrupt;
mod options;
#[path = "../../../../xtask/src/output.rs"]
mod output;
mod outside;
mod plot;
mod table;

/// Compares runtimes by samples of the program `bench`, which is in the directory of this program.
#[derive(Parser)]
#[command(name = "compare")]
struct Cli {
    /// The path of the workspace.
    #[arg(long)]
    root: PathBuf,
    /// The commit of the tree.
    #[arg(long)]
    commit: String,
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = run(&cli.root, &cli.commit, &cli.options);
    let failure = output::failure()
        .map(|error| anyhow::Error::new(error).context("writing to standard output"));
    match failure.map_or(done, Err) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Two processors are near each other if a cache line's round trip between them takes less than
/// this many nanoseconds.
const NEAR_NS: f64 = 150.0;

#[derive(Deserialize)]
struct Listing {
    runtimes: Vec<Runtime>,
    rows: Vec<Row>,
}

#[derive(Clone, Deserialize)]
struct Runtime {
    name: String,
    package: String,
    parallel: bool,
}

#[derive(Clone, Deserialize)]
struct Row {
    name: String,
    what: String,
    kind: String,
    unit: String,
    /// The aim: the largest allowed ratio of our figure to tokio's.
    aim: f64,
    /// Runtimes that lack the row.
    without: Vec<String>,
    /// True if the row's client is a process of its own.
    #[serde(default)]
    outside: bool,
    /// The row in which tokio's capacity for this row is measured.
    #[serde(default)]
    capacity: Option<String>,
}

impl Row {
    /// Whether the row measures time. Other processes and the processors' distance disturb times
    /// only.
    fn is_timed(&self) -> bool {
        self.unit == "ns"
    }
}

/// The output of `bench sample`.
#[derive(Clone, Deserialize, Serialize)]
struct Sample {
    operations: u64,
    value: f64,
    p99: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latencies: Option<[f64; 4]>,
    efficiency: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threads: Option<usize>,
    #[serde(flatten)]
    outside: Option<outside::Outside>,
    cpu_ns: f64,
    round_trip_before_ns: Option<f64>,
    round_trip_after_ns: Option<f64>,
    others: Option<f64>,
}

/// The verdict on a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Kept,
    /// Other processes used more of the machine than the options allow, or the client was late.
    Disturbed,
    /// The processors' distance is unknown, was not the wanted one, or changed during the sample.
    Misplaced,
}

#[derive(Deserialize, Serialize)]
struct Taken {
    row: String,
    rt: String,
    round: usize,
    verdict: Verdict,
    #[serde(flatten)]
    sample: Sample,
}

impl Sample {
    fn verdict(&self, placement: Placement, disturbance: f64) -> Verdict {
        let trips = [self.round_trip_before_ns, self.round_trip_after_ns];
        let all = |is: fn(f64) -> bool| trips.iter().all(|trip| trip.is_some_and(is));
        let placed = match placement {
            Placement::Near => all(|trip| trip < NEAR_NS),
            Placement::Far => all(|trip| trip >= NEAR_NS),
            Placement::Any => true,
        };
        let is_disturbed = |others| 100.0 * others > disturbance;
        let client = self.outside.as_ref();
        if self.others.is_some_and(is_disturbed) || client.is_some_and(outside::Outside::is_late) {
            Verdict::Disturbed
        } else if placed {
            Verdict::Kept
        } else {
            Verdict::Misplaced
        }
    }
}

/// Does what the options ask for; by default, measures and prints a table for each row. Returns
/// false if a figure is missing, a sample failed, a count has grown, or the user
/// interrupted.
fn run(root: &Path, commit: &str, options: &Options) -> Result<bool> {
    options.check()?;
    if options.list {
        print(&options::list());
        return Ok(true);
    }
    if options.counts {
        return counts::run(root, options.json.as_deref());
    }
    if !options.from.is_empty() {
        return show(&saved(&options.from)?, options);
    }
    let bench = format!("bench{}", std::env::consts::EXE_SUFFIX);
    let bench = std::env::current_exe()?.with_file_name(bench);
    let listing: Listing = serde_json::from_slice(&output(&bench, &["list", "--json"])?)
        .context("reading what `bench list` says")?;
    interrupt::watch();
    if let Some(dir) = &options.ablate {
        return ablation::run(root, commit, &listing, options, &bench, dir);
    }
    let (ours, others) = listing
        .runtimes
        .split_first()
        .context("bench knows no runtime")?;
    let mut rows = choose(&listing.rows, |row| &row.name, &options.rows, "row")?;
    // Only these rows have a second set of parameters.
    rows.retain(|row| row.outside || !options.second_set);
    let mut runtimes = vec![ours.clone()];
    let (peers, asked) = options.peers(&ours.name);
    if !peers.is_empty() || !asked {
        runtimes.extend(choose(others, |rt| &rt.name, &peers, "peer")?);
    }

    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    let machine = Machine::this(options, &runtimes, commit, &lock);
    print(&machine.line());
    if options.quick {
        print(
            "--quick: one short sample of each, disturbed or not; it shows that all works, and no more\n",
        );
    }
    let mut session = Session {
        options,
        bench: &bench,
        variants: &[],
        capacities: HashMap::new(),
        patience: 0,
        failures: 0,
    };
    let mut report = Report {
        machine,
        tables: Vec::new(),
        samples: Vec::new(),
    };
    for row in &rows {
        let having: Vec<_> = runtimes
            .iter()
            .filter(|rt| !row.without.contains(&rt.name))
            .cloned()
            .collect();
        let taken = session.take(row, &having)?;
        if taken.is_empty() && interrupt::came() {
            break;
        }
        let table = table::Table::new(row, &having, &taken);
        // Only the verdicts of the second set count.
        if !options.second_set {
            print(&table.text());
        }
        report.tables.push(table);
        report.samples.extend(taken);
        // The samples are written after each row, so a run that is cut off keeps them.
        report.write(options)?;
        if interrupt::came() {
            break;
        }
    }
    print(&report.closing());
    if interrupt::came() {
        let begun = report.tables.len();
        print(&format!(
            "interrupted: {begun} of {} rows were begun\n",
            rows.len()
        ));
        return Ok(false);
    }
    report.keep(options)?;
    let complete = report.tables.iter().all(table::Table::is_complete);
    Ok(complete && session.failures == 0)
}

/// Prints and keeps a saved report, as if it had just been measured.
fn show(report: &Report, options: &Options) -> Result<bool> {
    print(&report.machine.line());
    for table in &report.tables {
        print(&table.text());
    }
    print(&report.closing());
    report.keep(options)?;
    Ok(report.tables.iter().all(table::Table::is_complete))
}

/// Reads saved reports, and merges them into one.
fn saved(files: &[PathBuf]) -> Result<Report> {
    let mut reports = files.iter().map(|file| {
        let json = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_slice::<Report>(&json)
            .with_context(|| format!("{} was not written by --json", file.display()))
    });
    let mut report = reports.next().context("no file")??;
    for more in reports {
        let more = more?;
        ensure!(
            more.machine == report.machine,
            "the files are of different machines, versions or options"
        );
        for table in &more.tables {
            ensure!(
                report.tables.iter().all(|known| known.row != table.row),
                "{} is in two files",
                table.row
            );
        }
        report.tables.extend(more.tables);
        report.samples.extend(more.samples);
    }
    Ok(report)
}

#[derive(Deserialize, Serialize)]
struct Report {
    machine: Machine,
    tables: Vec<table::Table>,
    samples: Vec<Taken>,
}

impl Report {
    /// Writes the report to the file of `--json`, if the options name one.
    fn write(&self, options: &Options) -> Result<()> {
        if let Some(file) = &options.json {
            let json = serde_json::to_string_pretty(self)?;
            std::fs::write(file, json).with_context(|| format!("writing {}", file.display()))?;
        }
        Ok(())
    }

    /// Writes every file that the options ask for: the report, the page and the charts.
    fn keep(&self, options: &Options) -> Result<()> {
        self.write(options)?;
        if let Some(dir) = &options.plot {
            let page = dir.join("results.md");
            for file in plot::draw(&self.machine, &self.tables, dir)? {
                print(&format!("{}\n", file.display()));
            }
            std::fs::write(&page, self.page())
                .with_context(|| format!("writing {}", page.display()))?;
        }
        if let Some(dir) = &options.latencies {
            for file in plot::latencies(&self.machine, &self.tables, dir)? {
                print(&format!("{}\n", file.display()));
            }
        }
        Ok(())
    }

    fn page(&self) -> String {
        let page = table::page(&self.machine.line(), &self.tables, self.aim());
        format!("{page}\n```text{}```\n", self.closing())
    }

    fn closing(&self) -> String {
        table::closing(&self.tables, &self.samples, self.aim())
    }

    /// Returns the aim of the rows. The rows' own aims hold only for the system's allocator.
    fn aim(&self) -> table::Aim {
        match &*self.machine.allocator {
            JEMALLOC => table::Aim::BestPeer(0.9),
            _ => table::Aim::Rows,
        }
    }
}

/// Builds the program `bench` of a tree into a target directory, and returns the program's path.
fn build(tree: &Path, jemalloc: bool, target: &Path) -> Result<PathBuf> {
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    build
        .env_remove("CARGO_TARGET_DIR")
        .current_dir(tree)
        .args(["build", "--profile", "bench", "--target-dir"])
        .arg(target)
        .args(["--package", "bench", "--bin", "bench"]);
    if jemalloc {
        options::use_jemalloc(&mut build);
    }
    ensure!(build.status()?.success(), "bench doesn't build");
    let name = format!("bench{}", std::env::consts::EXE_SUFFIX);
    Ok(target.join("release").join(name))
}

const JEMALLOC: &str = "jemalloc";

/// The machine and the versions of a measurement.
#[derive(PartialEq, Deserialize, Serialize)]
struct Machine {
    processor: String,
    processors: usize,
    workers: u16,
    rounds: usize,
    placement: Placement,
    allocator: String,
    /// The versions of the kernel and the compiler.
    #[serde(default)]
    system: String,
    /// The commit of the tree, or empty if the commit is unknown.
    #[serde(default)]
    commit: String,
    versions: Vec<(String, String)>,
}

impl Machine {
    fn this(options: &Options, runtimes: &[Runtime], commit: &str, lock: &str) -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == "model name").then(|| value.trim().to_owned())
        });
        let version = |rt: &Runtime| {
            let version = version(lock, &rt.package).unwrap_or("?");
            (rt.name.clone(), version.to_owned())
        };
        Self {
            processor: model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            processors: thread::available_parallelism().map_or(1, usize::from),
            workers: options.workers,
            rounds: options.rounds(),
            placement: options.placement,
            allocator: if options.jemalloc {
                JEMALLOC
            } else {
                "the system's"
            }
            .to_owned(),
            system: system(),
            commit: commit.to_owned(),
            versions: runtimes.iter().map(version).collect(),
        }
    }

    fn line(&self) -> String {
        let versions: Vec<_> = self
            .versions
            .iter()
            .enumerate()
            .map(|(i, (name, version))| match &*self.commit {
                commit if i == 0 && !commit.is_empty() => format!("{name} {version} at {commit}"),
                _ => format!("{name} {version}"),
            })
            .collect();
        format!(
            "{}, processors: {} ({}), workers: {}, allocator: {}, {}; rounds: {}; {}\n",
            self.processor,
            self.processors,
            match self.placement {
                Placement::Near => "near each other",
                Placement::Far => "far from each other",
                Placement::Any => "anywhere",
            },
            self.workers,
            self.allocator,
            self.system,
            self.rounds,
            versions.join(", ")
        )
    }
}

/// Returns the versions of the kernel and the compiler, as `linux 6.12.0, rustc 1.95.0`. An unknown
/// version is left out.
fn system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let compiler = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
        .arg("--version")
        .output();
    let compiler = compiler.map_or_else(
        |_| "rustc".to_owned(),
        |said| String::from_utf8_lossy(&said.stdout).into_owned(),
    );
    let compiler: Vec<_> = compiler.split_whitespace().take(2).collect();
    let (os, release) = (std::env::consts::OS, release.trim());
    format!("{os} {release}, {}", compiler.join(" "))
}

/// Returns the version of a package in a lock file.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines
        .nth(1)?
        .strip_prefix("version = \"")?
        .strip_suffix('"')
}

impl Options {
    /// Returns the peers that the options name, and whether the options name any runtime. Our
    /// runtime is not among the peers, because it is always measured.
    fn peers(&self, ours: &str) -> (Vec<String>, bool) {
        let peers = self.peers.iter().filter(|name| *name != ours);
        (peers.cloned().collect(), !self.peers.is_empty())
    }

    fn rounds(&self) -> usize {
        if self.quick { 1 } else { self.rounds }
    }

    fn retries(&self) -> usize {
        if self.quick { 0 } else { self.retries }
    }
}

/// Takes samples.
struct Session<'a> {
    options: &'a Options,
    bench: &'a Path,
    /// The builds of our runtime that an ablation compares: each one's name and program.
    variants: &'a [(String, PathBuf)],
    /// The requests a second that tokio answers, by the row in which they were measured.
    capacities: HashMap<String, f64>,
    /// Retries left in this row. They are bounded, so that the command ends on a machine that is
    /// never quiet.
    patience: usize,
    failures: usize,
}

impl Session<'_> {
    /// Takes the samples of all rounds of a row, or only those before an interrupt.
    fn take(&mut self, row: &Row, runtimes: &[Runtime]) -> Result<Vec<Taken>> {
        let mut taken = Vec::new();
        self.patience = 3 * runtimes.len() * self.options.rounds();
        for round in 0..self.options.rounds() {
            for turn in 0..runtimes.len() {
                let rt = &runtimes[(turn + round) % runtimes.len()];
                progress(&format!("{}: round {}, {}", row.name, round + 1, rt.name));
                self.take_until_kept(row, rt, round, &mut taken)?;
                if interrupt::came() {
                    progress("");
                    return Ok(taken);
                }
            }
        }
        progress("");
        Ok(taken)
    }

    fn take_until_kept(
        &mut self,
        row: &Row,
        rt: &Runtime,
        round: usize,
        taken: &mut Vec<Taken>,
    ) -> Result<()> {
        let capacity = self.capacity(row)?;
        for attempt in 0.. {
            let sample = self.sample(row, &rt.name, capacity)?;
            // The interrupt's signal may have ended the sample, or disturbed it.
            if interrupt::came() {
                return Ok(());
            }
            match sample {
                Err(how) => {
                    progress("");
                    eprintln!("{} on {}: {how}", row.name, rt.name);
                    self.failures += 1;
                    return Ok(());
                }
                Ok(sample) => {
                    let verdict = if self.options.quick || !row.is_timed() {
                        Verdict::Kept
                    } else {
                        sample.verdict(self.options.placement, self.options.disturbance)
                    };
                    taken.push(Taken {
                        row: row.name.clone(),
                        rt: rt.name.clone(),
                        round,
                        verdict,
                        sample,
                    });
                    let again = attempt < self.options.retries() && self.patience > 0;
                    if verdict == Verdict::Kept || !again {
                        return Ok(());
                    }
                    self.patience -= 1;
                    // Ten pauses take 5.5 s together. Disturbances last about as long: a virtual
                    // machine's processors move every few seconds, and a compiler runs for seconds.
                    thread::sleep(Duration::from_millis(100 * (attempt as u64 + 1)));
                }
            }
        }
        Ok(())
    }

    /// Returns the requests a second that tokio answers, if the row needs them: the median of three
    /// samples, which are taken once.
    fn capacity(&mut self, row: &Row) -> Result<Option<f64>> {
        let Some(name) = &row.capacity else {
            return Ok(None);
        };
        if !self.capacities.contains_key(name) {
            let of = Row {
                name: name.clone(),
                capacity: None,
                ..row.clone()
            };
            let mut paces = Vec::new();
            for _ in 0..3 {
                let sample = self.sample(&of, table::YARDSTICK, None)?;
                paces.extend(sample.map(|sample| 1e9 / sample.value));
            }
            paces.sort_by(f64::total_cmp);
            let median = paces.get(paces.len() / 2);
            let median = median.with_context(|| format!("{name} has no sample"))?;
            self.capacities.insert(name.clone(), *median);
        }
        Ok(self.capacities.get(name).copied())
    }

    /// Takes one sample in a process. The inner error says how the process failed.
    fn sample(&self, row: &Row, rt: &str, capacity: Option<f64>) -> Result<Result<Sample, String>> {
        let workers = self.options.workers.to_string();
        let millis = match (self.options.quick, row.outside) {
            (true, _) => "20",
            // A clock of a thousand requests a second needs more time to have a p99.
            (false, true) => "500",
            (false, false) => "200",
        };
        let mut variants = self.variants.iter();
        let (bench, rt) = match variants.find(|(name, _)| name == rt) {
            Some((_, bench)) => (bench.as_path(), "selvedge"),
            None => (self.bench, rt),
        };
        let mut sample = Command::new(bench);
        sample.args(["sample", "--json", "--rt", rt, "--row", &row.name]);
        sample.args(["--workers", &workers, "--millis", millis]);
        sample.args(self.options.second_set.then_some("--second-set"));
        sample.args(capacity.map(|capacity| format!("--capacity={capacity}")));
        let output = sample
            .output()
            .with_context(|| format!("starting {}", bench.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Ok(Err(format!(
                "no sample, {} (14 is its time limit) {}",
                output.status,
                said.trim()
            )));
        }
        Ok(serde_json::from_slice(&output.stdout).map_err(|error| format!("no sample, {error}")))
    }
}

fn output(bench: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(bench)
        .args(arguments)
        .output()
        .with_context(|| format!("starting {}", bench.display()))?;
    ensure!(
        output.status.success(),
        "bench {} failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output.stdout)
}

fn print(text: &str) {
    output::write(format_args!("{text}"));
}

/// Shows the current step in place of the step before, if standard error is a terminal.
fn progress(text: &str) {
    let mut err = io::stderr().lock();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(before: Option<f64>, after: Option<f64>, others: Option<f64>) -> Sample {
        Sample {
            operations: 1,
            value: 1.0,
            p99: None,
            latencies: None,
            efficiency: None,
            threads: None,
            outside: None,
            cpu_ns: 1.0,
            round_trip_before_ns: before,
            round_trip_after_ns: after,
            others,
        }
    }

    #[test]
    fn pages_match_the_figures_beside_them() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks");
        for dir in [docs.clone(), docs.join("jemalloc")] {
            let report = saved(&[dir.join("results.json")]).unwrap();
            let page = std::fs::read_to_string(dir.join("results.md")).unwrap();
            assert_eq!(page, report.page(), "{}", dir.display());
        }
        let readme = std::fs::read_to_string(docs.join("../../README.md")).unwrap();
        let report = saved(&[docs.join("results.json")]).unwrap();
        let means = table::means(&report.tables);
        assert!(readme.contains(&means), "the README is to say:\n{means}");
        let first = means.split(" x ").next().unwrap();
        let first = first.replace("ours is", "It takes") + " of tokio's time";
        assert!(readme.contains(&first), "the README is to say: {first}");
    }

    #[test]
    fn sample_is_unplaced_if_the_processors_moved_meanwhile() {
        let moved = sample(Some(60.0), Some(450.0), Some(0.0));
        assert_eq!(moved.verdict(Placement::Near, 5.0), Verdict::Misplaced);
        assert_eq!(moved.verdict(Placement::Far, 5.0), Verdict::Misplaced);
        assert_eq!(moved.verdict(Placement::Any, 5.0), Verdict::Kept);
        let near = sample(Some(60.0), Some(62.0), Some(0.0));
        assert_eq!(near.verdict(Placement::Near, 5.0), Verdict::Kept);
        assert_eq!(near.verdict(Placement::Far, 5.0), Verdict::Misplaced);
    }

    #[test]
    fn machine_without_distances_suits_any_placement_only() {
        let unknown = sample(None, None, None);
        assert_eq!(unknown.verdict(Placement::Near, 5.0), Verdict::Misplaced);
        assert_eq!(unknown.verdict(Placement::Any, 5.0), Verdict::Kept);
    }

    #[test]
    fn a_disturbed_sample_is_given_up_wherever_its_processors_were() {
        let disturbed = sample(Some(60.0), Some(60.0), Some(0.2));
        assert_eq!(disturbed.verdict(Placement::Near, 5.0), Verdict::Disturbed);
        assert_eq!(disturbed.verdict(Placement::Any, 5.0), Verdict::Disturbed);
        assert_eq!(disturbed.verdict(Placement::Any, 20.0), Verdict::Kept);
    }

    #[test]
    fn version_is_that_of_the_package_of_exactly_this_name() {
        let lock = "[[package]]\nname = \"tokio-util\"\nversion = \"0.7.0\"\n\n[[package]]\nname = \"tokio\"\nversion = \"1.2.3\"\n";
        assert_eq!(version(lock, "tokio"), Some("1.2.3"));
        assert_eq!(version(lock, "smol"), None);
    }
}
