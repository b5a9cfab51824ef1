//! `cargo xtask sanitize`: runs the tests under AddressSanitizer, ThreadSanitizer, LeakSanitizer,
//! and valgrind's memcheck.
//!
//! First each tool runs a wrong program (`sync-shim/examples/probe.rs`). If a tool reports nothing
//! there, its silence about the tests means nothing.
//!
//! The sanitizers need a nightly toolchain, but not std's source. So std stays as it was compiled,
//! and ThreadSanitizer doesn't see the orderings inside std. Therefore, under ThreadSanitizer:
//!
//! - The shim's locks are parking_lot's, and its fences are read-modify-writes.
//! - Only code that goes through the shim runs: the models, and the tests named `threads`.
//! - ThreadSanitizer ignores copies by std's compiled code.
//! - The two [suppressions](THREAD_SUPPRESSIONS) are for the fence in `Arc`.
use crate::results;
use anyhow::{Context, Result, ensure};
use project::{
    say,
    workspace::{self, Package, cargo, nightly, succeeds},
};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

/// Options of `cargo xtask sanitize`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The tools to run.
    #[arg(value_enum, required_unless_present = "all")]
    tools: Vec<Tool>,
    /// All tools.
    #[arg(long)]
    all: bool,
    /// Only these crates.
    #[arg(long = "crate", value_name = "PACKAGE", value_delimiter = ',')]
    crates: Vec<String>,
    /// Writes the runs without a report, over all crates, to a file, in place of its earlier rows
    /// of these tools.
    #[arg(long, value_name = "FILE", conflicts_with = "crates")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Tool {
    /// Memory errors and leaks.
    Address,
    /// Data races.
    Thread,
    /// Leaks.
    Leak,
    /// Memory errors and leaks of the parts, by valgrind.
    Valgrind,
}

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// `Arc` frees its content after a fence, and ThreadSanitizer doesn't know fences.
const THREAD_SUPPRESSIONS: &str = "race:alloc::sync::Arc\nrace:drop_slow\n";

/// Tests of documented leaks, and tests that leak on purpose. They leak a list with tasks, guards
/// that are forgotten, the payload of a panic whose drop panics, and wakers that borrow forever.
/// One of them tests an implementation that leaks by mistakes made on purpose. Another one drops a
/// driven worker while a thread holds a task of that worker.
const LEAKS: [&str; 17] = [
    "a_list_that_is_dropped_with_tasks_leaves_them_whole",
    "a_leaked_guard_and_a_core_that_is_given_away_hold_up_nobody",
    "panic_shuts_down_only_the_runtime_with_that_policy",
    "panic_of_job_or_hook_keeps_the_thread",
    "panic_in_the_drop_of_a_hook_is_caught",
    "panic_of_a_payload_does_not_come_out_of_join",
    "value_of_a_step_is_dropped_guarded_if_the_subscriber_panics",
    "each_fault_is_found_and_named",
    "panic_in_a_payloads_drop_is_reported",
    "leaked_guard_of_a_set_keeps_its_tasks",
    "leaked_guard_of_a_dropped_set_cancels_spawns",
    "panic_of_a_wakers_clone_keeps_the_deadline",
    "panic_of_a_wakers_drop_keeps_the_deadline",
    "forgotten_async_fd_leaves_its_number_to_the_next_owner",
    "task_queued_after_its_home_was_dropped_is_dropped",
    "thread_may_end_with_guards_and_enter_while_it_ends",
    "leaked_guard_leaves_hooks_and_wakers_in_their_runtime",
];

/// A test that measures the use of the stack. With the larger stack frames of AddressSanitizer the
/// use exceeds the test's limit.
const DEEP: &str = "a_chain_of_outputs_takes_a_stack_as_deep";

/// A test that uses all descriptors up. Valgrind accepts a connection before it finds that there is
/// no descriptor for it, and closes it. So the test waits for that connection forever.
const DESCRIPTORS: &str = "descriptors_are_returned_and_their_end_is_survived";

/// The record of a tool's run without a report.
#[derive(Serialize, Deserialize)]
pub(crate) struct Clean {
    pub(crate) tool: String,
    pub(crate) version: String,
    seconds: f64,
    /// The tests that ran.
    #[serde(default)]
    pub(crate) ran: Vec<String>,
    /// The checks that were switched off, suppressed or left out.
    #[serde(default)]
    pub(crate) without: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
}

/// Replaces the row of this tool in the file.
fn record(file: &Path, clean: Clean) -> Result<()> {
    let mut all: Vec<Clean> = results::earlier(file)?.unwrap_or_default();
    all.retain(|known| known.tool != clean.tool);
    all.push(clean);
    results::write_json(file, &all)
}

/// A wrong program, and the text that the tool's report on it must contain.
type Probe = (&'static str, &'static str);

impl Tool {
    pub(crate) const ALL: [Self; 4] = [Self::Address, Self::Leak, Self::Thread, Self::Valgrind];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Thread => "thread",
            Self::Leak => "leak",
            Self::Valgrind => "valgrind",
        }
    }

    /// Returns the tool's version, if the tool is installed.
    fn version(self) -> Result<String> {
        let (mut command, missing) = match self {
            Self::Valgrind => (
                Command::new("valgrind"),
                "valgrind is not installed: it is a package of that name (`apt-get install valgrind`)",
            ),
            _ => (
                nightly("rustc", &[]),
                "the sanitizers need a nightly toolchain: `rustup toolchain install nightly`",
            ),
        };
        let said = command.arg("--version").output();
        let said = said.ok().filter(|said| said.status.success());
        let said = said.context(missing)?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().into())
    }

    fn probes(self) -> &'static [Probe] {
        match self {
            Self::Address => &[
                ("use-after-free", "AddressSanitizer: heap-use-after-free"),
                ("leak", "LeakSanitizer: detected memory leaks"),
            ],
            Self::Thread => &[("race", "ThreadSanitizer: data race")],
            Self::Leak => &[("leak", "LeakSanitizer: detected memory leaks")],
            Self::Valgrind => &[
                ("use-after-free", "Invalid read"),
                ("leak", "definitely lost"),
            ],
        }
    }

    fn flags(self, cells: Cells) -> String {
        let flags = match self {
            Self::Address => "-Zsanitizer=address",
            Self::Thread => {
                "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg selvedge_tsan"
            }
            Self::Leak => "-Zsanitizer=leak",
            Self::Valgrind => "",
        };
        match cells {
            Cells::Recycled => flags.into(),
            Cells::Allocated => format!("{flags} --cfg {PLAIN}"),
        }
    }

    /// Returns the source of the task cells in this tool's tests, except in the pass for the
    /// recycler. A race shows with either source.
    fn cells(self) -> Cells {
        match self {
            Self::Thread => Cells::Recycled,
            _ => Cells::Allocated,
        }
    }

    /// Lists the checks that are switched off, suppressed or left out.
    fn without(self) -> Vec<String> {
        let leaks = LEAKS.join(", ");
        let plain = format!("--cfg {PLAIN}: no task's memory is recycled");
        let tested = "but in the tests of that";
        let unbuilt = "and the executor's tests of limits, forks and long chains are not built";
        match self {
            Self::Address => vec![
                format!("{plain} {tested}, {unbuilt}"),
                format!("the leak detector in tests that leak on purpose: {leaks}"),
                format!("{DEEP}, as its frames are larger"),
            ],
            Self::Leak => vec![
                format!("{plain}, {unbuilt}"),
                format!("tests that leak on purpose: {leaks}"),
            ],
            Self::Thread => vec![
                format!(
                    "{INTERCEPTORS}: what std's compiled code, or the C library, copies counts for nothing"
                ),
                format!(
                    "suppressed: {}",
                    THREAD_SUPPRESSIONS.trim().replace('\n', ", ")
                ),
                "tests that are neither models nor named `threads`".into(),
            ],
            Self::Valgrind => vec![
                format!("{plain} {tested}"),
                format!("tests that leak on purpose: {leaks}"),
                "the executor's own tests, too slow there".into(),
                format!("{DESCRIPTORS}: valgrind loses a connection that gets no descriptor"),
            ],
        }
    }

    fn target(self, root: &Path, cells: Cells) -> PathBuf {
        let name = match cells == self.cells() {
            true => self.name().into(),
            false => format!("{}-recycled", self.name()),
        };
        root.join("target/sanitize").join(name)
    }

    /// Returns cargo with the flags and variables that build for this tool.
    pub(crate) fn cargo(self, root: &Path, command: &str, cells: Cells) -> Command {
        let mut cargo = match self {
            Self::Valgrind => {
                let mut cargo = cargo();
                cargo.arg(command).arg("--config");
                cargo.arg(format!("target.'cfg(all())'.runner = {:?}", VALGRIND));
                cargo
            }
            _ => nightly("cargo", &[command, "--target", TRIPLE]),
        };
        if self == Self::Thread {
            cargo.arg("--release");
        }
        let target = self.target(root, cells);
        cargo
            .current_dir(root)
            .arg("--target-dir")
            .arg(&target)
            .env("RUSTFLAGS", self.flags(cells))
            .env("TSAN_OPTIONS", thread_options(&target));
        if self == Self::Valgrind {
            // Under valgrind the tests are thirty times slower.
            cargo
                .env("PROPTEST_CASES", "8")
                .env("SELVEDGE_ITEMS", "3000");
        }
        cargo
    }
}

/// Where a test's task cells get their memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cells {
    /// From the allocator, to which each cell returns. So the tool sees each cell allocated and
    /// freed.
    Allocated,
    /// From the blocks that earlier cells have left.
    Recycled,
}

const PLAIN: &str = "selvedge_plain_alloc";
const INTERCEPTORS: &str = "ignore_interceptors_accesses=1";

fn thread_options(target: &Path) -> String {
    format!(
        "{INTERCEPTORS} suppressions={}",
        target.join("suppressions").display()
    )
}

const VALGRIND: [&str; 7] = [
    "valgrind",
    "--quiet",
    "--error-exitcode=9",
    // A burst of blocking closures starts as many threads as the pool's cap allows.
    "--max-threads=2000",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
];

/// Runs the tools; returns `false` when one reported something, or a test failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let tools = if options.all {
        Tool::ALL.to_vec()
    } else {
        options.tools.clone()
    };
    for tool in &tools {
        tool.version()?;
    }
    workspace::check_writable(options.json.as_deref())?;
    let (packages, root) = workspace::load()?;
    let tested = packages.iter().filter(|package| package.is_publishable());
    let chosen = workspace::chosen(tested, &options.crates, "tests of its own")?;
    let commit = workspace::commit(&root);
    for tool in tools {
        let begun = Instant::now();
        for what in tool.without() {
            say!("sanitize {}: without {what}", tool.name());
        }
        let ran = check(tool, &root, &chosen)?;
        let word = ran.as_ref().map_or("FAILED", |_| "0 reports");
        say!(
            "sanitize {}: {word}, {:.0} s",
            tool.name(),
            begun.elapsed().as_secs_f64()
        );
        let Some(ran) = ran else {
            return Ok(false);
        };
        if let Some(file) = &options.json {
            let clean = Clean {
                tool: tool.name().into(),
                version: tool.version()?,
                seconds: begun.elapsed().as_secs_f64(),
                ran,
                without: tool.without(),
                commit: Some(commit.clone()),
            };
            record(file, clean)?;
        }
    }
    Ok(true)
}

/// The packages whose own tests are too slow under valgrind.
const TOO_SLOW: [&str; 2] = ["selvedge-executor", "selvedge"];

/// Runs the tests under a tool; returns the list of what ran if no test failed.
fn check(tool: Tool, root: &Path, packages: &[&Package]) -> Result<Option<Vec<String>>> {
    let target = tool.target(root, tool.cells());
    fs::create_dir_all(&target).with_context(|| format!("making {}", target.display()))?;
    if tool == Tool::Thread {
        fs::write(target.join("suppressions"), THREAD_SUPPRESSIONS).context("the suppressions")?;
    }
    probe(tool, root)?;
    let names: Vec<_> = packages
        .iter()
        .filter(|package| tool != Tool::Valgrind || !TOO_SLOW.contains(&&*package.name))
        .flat_map(|package| ["--package", package.name.as_str()])
        .collect();
    if tool != Tool::Thread && names.contains(&"selvedge") {
        // Tests of `selvedge` run its examples, and look for them next to their own binaries. Under
        // ThreadSanitizer only models run, and the examples lack the shim's feature `tsan`.
        let mut build = tool.cargo(root, "build", tool.cells());
        build.args([
            "--quiet",
            "--examples",
            "--all-features",
            "--package",
            "selvedge",
        ]);
        ensure!(build.status()?.success(), "the examples don't build");
    }
    let mut ran = Vec::new();
    let mut test = |what: &str, arguments: &[&str], leaks: bool| {
        let mut test = tool.cargo(root, "test", tool.cells());
        test.args(["--quiet", "--all-features", "--no-fail-fast"])
            .args(&names)
            .args(arguments);
        if leaks {
            test.env("ASAN_OPTIONS", "detect_leaks=0");
        }
        ran.push(what.to_owned());
        succeeds(&mut test)
    };
    let mut passed = if tool == Tool::Thread {
        let models = test(
            "models",
            &["--lib", "--", "--test-threads=1", "models::"],
            false,
        )?;
        let threaded = packages.iter().any(|package| package.has_test("threads"));
        let threads = ["--test", "threads", "--", "--test-threads=1"];
        models && (!threaded || test("tests named `threads`", &threads, false)?)
    } else {
        let most = ["--lib", "--tests", "--"].into_iter();
        let mut most: Vec<_> = most
            .chain(LEAKS.iter().flat_map(|name| ["--skip", name]))
            .collect();
        if tool == Tool::Address {
            most.extend(["--skip", DEEP]);
        }
        if tool == Tool::Valgrind {
            most.extend(["--skip", DESCRIPTORS]);
        }
        // The tests that leak also run where the tool can allow leaks, to find their other errors.
        let rest = [&["--lib", "--tests", "--"], &LEAKS[..]].concat();
        test("unit and integration tests", &most, false)?
            && (tool != Tool::Address
                || test("those that leak on purpose, for the rest", &rest, true)?)
    };
    if names.contains(&RECYCLER) && tool != Tool::Leak {
        passed = passed && recycled(tool, root)?;
        ran.push("task-header's recycling of memory, and its tests named `threads` with it".into());
    }
    Ok(passed.then_some(ran))
}

/// The crate that recycles memory.
const RECYCLER: &str = "task-header";

/// Runs the tests of the code that recycles the memory of tasks, and the tests on threads with it.
fn recycled(tool: Tool, root: &Path) -> Result<bool> {
    let test = |arguments: &[&str]| {
        let mut test = tool.cargo(root, "test", Cells::Recycled);
        test.args(["--quiet", "--all-features", "--package", RECYCLER]);
        // With this variable the tests run in the test binary's own process, one at a time.
        test.args(arguments).env("SELVEDGE_TEST_ALONE", "");
        test
    };
    // These tests do not exist where the recycler is switched off, and a run of no test would pass.
    let mut list = test(&["--lib", "--", "--list", "blocks::"]);
    let listed = list.output().context("listing the tests")?.stdout;
    ensure!(
        String::from_utf8_lossy(&listed).contains("blocks::"),
        "{RECYCLER} has no tests of its recycler there"
    );
    Ok(
        succeeds(&mut test(&["--lib", "--", "--test-threads=1", "blocks::"]))?
            && succeeds(&mut test(&["--test", "threads", "--", "--test-threads=1"]))?,
    )
}

/// Runs the wrong programs, each of which the tool must report. Before these, runs a program
/// without a mistake, which the tool must not report.
fn probe(tool: Tool, root: &Path) -> Result<()> {
    let run = |what: &str| {
        let mut run = tool.cargo(root, "run", tool.cells());
        run.args([
            "--quiet",
            "--all-features",
            "--package",
            "sync-shim",
            "--example",
            "probe",
            what,
        ]);
        run.output().context("the probe")
    };
    let clean = run("nothing")?;
    ensure!(
        clean.status.success(),
        "{} complains about nothing:\n{}",
        tool.name(),
        String::from_utf8_lossy(&clean.stderr)
    );
    for (what, report) in tool.probes() {
        let output = run(what)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            !output.status.success() && said.contains(report),
            "{} does not see a {what}, so its silence means nothing:\n{said}",
            tool.name()
        );
        say!("sanitize {}: sees a {what}", tool.name());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_tests_that_a_tool_leaves_out_are_named() {
        for tool in Tool::ALL {
            let without = tool.without().join("\n");
            assert_eq!(
                tool.flags(tool.cells()).contains(PLAIN),
                without.contains(PLAIN)
            );
            assert!(!tool.flags(Cells::Recycled).contains(PLAIN));
        }
        let options = thread_options(Path::new("t"));
        let without = Tool::Thread.without().join("\n");
        for option in options.split(' ').map(|o| o.split("=t/").next().unwrap()) {
            let said = option.replace("suppressions", "suppressed");
            assert!(without.contains(&said), "{option}");
        }
        for name in LEAKS.iter().chain(&[DEEP]) {
            assert!(Tool::Address.without().join("").contains(name));
        }
        assert!(Tool::Valgrind.without().join("").contains(DESCRIPTORS));
    }

    #[test]
    fn record_of_one_tool_keeps_those_of_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sanitize.json");
        let old = r#"[{"tool": "address", "version": "1", "seconds": 0.5}, {"tool": "thread", "version": "1", "seconds": 0.5}]"#;
        fs::write(&file, old).unwrap();
        let clean = Clean {
            tool: "thread".into(),
            version: "2".into(),
            seconds: 0.5,
            ran: Vec::new(),
            without: Vec::new(),
            commit: None,
        };
        record(&file, clean).unwrap();
        let all: Vec<Clean> = results::earlier(&file).unwrap().unwrap();
        let mut found: Vec<_> = all.iter().map(|c| (&*c.tool, &*c.version)).collect();
        found.sort_unstable();
        assert_eq!(found, [("address", "1"), ("thread", "2")]);
    }

    #[test]
    fn only_the_fence_in_arc_is_suppressed() {
        let all: Vec<_> = THREAD_SUPPRESSIONS.lines().collect();
        assert_eq!(all, ["race:alloc::sync::Arc", "race:drop_slow"]);
    }
}
