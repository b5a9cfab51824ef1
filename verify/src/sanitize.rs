//! `cargo xtask sanitize`: runs the tests under AddressSanitizer, ThreadSanitizer, LeakSanitizer,
//! and valgrind's memcheck.
//!
//! First each tool runs a wrong program (`sync-shim/examples/probe.rs`). If a tool reports nothing
//! there, its silence about the tests means nothing.
//!
//! AddressSanitizer and LeakSanitizer need a nightly toolchain, but not std's source, so std stays
//! as it was compiled. ThreadSanitizer must see the orderings inside std. So Debian's compiler
//! builds std with the crates, from Debian's package of std's source. Both are unpacked into
//! `target/platforms`. The tool's own library is that of the nightly toolchain.
//!
//! ThreadSanitizer does not know fences, so the shim's fences are read-modify-writes there. It
//! needs no suppression.
use crate::results;
use anyhow::{Context, Result, ensure};
use project::{
    debian::{Compiler, NEWEST_RUST},
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

/// Tests that ThreadSanitizer cannot run: one counts how often the threads of the process sleep,
/// and the tool has a thread of its own. One starts threads after a fork. In the next four a signal
/// interrupts a thread, which the tool delays until that thread calls the C library. One leaks
/// threads, on purpose. In the last two, one thread moves 2³⁰ items.
const WITHOUT_THREAD: [&str; 9] = [
    "idle_sockets_and_far_timers_wake_nobody",
    "orphans_leave_no_zombie_and_no_thread",
    "chat_brings_lines_to_all_nodes",
    "program_chat_ends_gracefully_at_an_interrupt",
    "captures_in_a_storm_of_allocations_name_the_function",
    "stack_of_a_spin_has_its_function_and_its_callers",
    "each_fault_is_found_and_named",
    "fifo_with_the_most_items_refuses_more_and_loses_none",
    "push_beyond_the_most_items_panics",
];

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
    fn version(self, root: &Path) -> Result<String> {
        let (mut command, missing) = match self {
            Self::Valgrind => (
                Command::new("valgrind"),
                "valgrind is not installed: it is a package of that name (`apt-get install valgrind`)",
            ),
            Self::Thread => {
                let compiler = thread_compiler(root)?;
                let mut rustc = Command::new(compiler.folder.join("bin/rustc"));
                rustc.env("LD_LIBRARY_PATH", compiler.libraries(&[]));
                (rustc, "Debian's rustc does not start")
            }
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
                format!("tests of sleeps, forks, signals, leaks and very many items: {}", WITHOUT_THREAD.join(", ")),
                "fences: those of the crates are read-modify-writes, which order more, and those of other crates count for nothing".into(),
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
    pub(crate) fn cargo(self, root: &Path, command: &str, cells: Cells) -> Result<Command> {
        let mut cargo = match self {
            Self::Thread => {
                let mut cargo = thread_compiler(root)?.cargo(&[]);
                cargo.args([command, "-Zbuild-std=std,panic_unwind", "--target", TRIPLE]);
                cargo.arg("--release").env("RUSTC_BOOTSTRAP", "1");
                cargo
            }
            Self::Valgrind => {
                let mut cargo = cargo();
                cargo.arg(command).arg("--config");
                cargo.arg(format!("target.'cfg(all())'.runner = {:?}", VALGRIND));
                cargo
            }
            _ => nightly("cargo", &[command, "--target", TRIPLE]),
        };
        let target = self.target(root, cells);
        cargo
            .current_dir(root)
            .arg("--target-dir")
            .arg(&target)
            .env("RUSTFLAGS", self.flags(cells));
        if self == Self::Valgrind {
            // Under valgrind the tests are thirty times slower.
            cargo
                .env("PROPTEST_CASES", "8")
                .env("SELVEDGE_ITEMS", "3000");
        }
        Ok(cargo)
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

/// Returns the compiler that builds std for ThreadSanitizer. The nightly toolchain's library of the
/// tool is put beside its std.
fn thread_compiler(root: &Path) -> Result<Compiler> {
    let compiler = Compiler::new(&NEWEST_RUST, &root.join("target/platforms"))?;
    let folder = nightly("rustc", &["--print", "target-libdir"]).output();
    let folder = folder.context("rustup")?.stdout;
    let library = Path::new(String::from_utf8_lossy(&folder).trim()).join(RUNTIME);
    let std = compiler.folder.join("lib/rustlib").join(TRIPLE).join("lib");
    for name in RUNTIME_NAMES {
        let copy = std.join(name);
        if !copy.exists() {
            fs::copy(&library, &copy).with_context(|| {
                format!(
                    "{} is needed: `rustup toolchain install nightly`",
                    library.display()
                )
            })?;
        }
    }
    Ok(compiler)
}

/// The file of the tool's library in a nightly toolchain.
const RUNTIME: &str = "librustc-nightly_rt.tsan.a";

/// The names under which a compiler looks for that library. They depend on how it was built.
const RUNTIME_NAMES: [&str; 3] = [
    "librustc_rt.tsan.a",
    "librustc-dev_rt.tsan.a",
    "librustc-stable_rt.tsan.a",
];

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
    let (packages, root) = workspace::load()?;
    for tool in &tools {
        tool.version(&root)?;
    }
    workspace::check_writable(options.json.as_deref())?;
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
                version: tool.version(&root)?,
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

/// The packages whose tests run examples of the package, and look for them next to their own
/// binaries.
const HAVE_PROGRAMS: [&str; 3] = ["blocking-fs", "process-cluster", "selvedge"];

/// The packages whose own tests are too slow under valgrind.
const TOO_SLOW: [&str; 2] = ["selvedge-executor", "selvedge"];

/// Runs the tests under a tool; returns the list of what ran if no test failed.
fn check(tool: Tool, root: &Path, packages: &[&Package]) -> Result<Option<Vec<String>>> {
    let target = tool.target(root, tool.cells());
    fs::create_dir_all(&target).with_context(|| format!("making {}", target.display()))?;
    probe(tool, root)?;
    let names: Vec<_> = packages
        .iter()
        .filter(|package| tool != Tool::Valgrind || !TOO_SLOW.contains(&&*package.name))
        .flat_map(|package| ["--package", package.name.as_str()])
        .collect();
    for package in HAVE_PROGRAMS.iter().filter(|name| names.contains(name)) {
        let mut build = tool.cargo(root, "build", tool.cells())?;
        build.args(["--quiet", "--examples", "--all-features", "--package"]);
        let built = build.arg(package).status()?.success();
        ensure!(built, "the examples of {package} don't build");
    }
    let mut ran = Vec::new();
    let mut test = |what: &str, arguments: &[&str], leaks: bool| {
        let mut test = tool.cargo(root, "test", tool.cells())?;
        test.args(["--quiet", "--all-features", "--no-fail-fast"])
            .args(&names)
            .args(arguments);
        if leaks {
            test.env("ASAN_OPTIONS", "detect_leaks=0");
        }
        ran.push(what.to_owned());
        succeeds(&mut test)
    };
    let most = ["--lib", "--tests", "--"].into_iter();
    let leaks = LEAKS.iter().filter(|_| tool != Tool::Thread);
    let mut most: Vec<_> = most
        .chain(leaks.flat_map(|name| ["--skip", name]))
        .collect();
    if tool == Tool::Address {
        most.extend(["--skip", DEEP]);
    }
    if tool == Tool::Thread {
        most.extend(WITHOUT_THREAD.iter().flat_map(|name| ["--skip", name]));
    }
    if tool == Tool::Valgrind {
        most.extend(["--skip", DESCRIPTORS]);
    }
    // The tests that leak also run where the tool can allow leaks, to find their other errors.
    let rest = [&["--lib", "--tests", "--"], &LEAKS[..]].concat();
    let mut passed = test("unit and integration tests", &most, false)?
        && (tool != Tool::Address
            || test("those that leak on purpose, for the rest", &rest, true)?);
    if names.contains(&RECYCLER) && !matches!(tool, Tool::Leak | Tool::Thread) {
        passed = passed && recycled(tool, root)?;
        ran.push("task-header's recycling of memory, and its tests named `threads` with it".into());
    }
    Ok(passed.then_some(ran))
}

/// The crate that recycles memory.
const RECYCLER: &str = "task-header";

/// Runs the tests of the code that recycles the memory of tasks, and the tests on threads with it.
fn recycled(tool: Tool, root: &Path) -> Result<bool> {
    let test = |arguments: &[&str]| -> Result<Command> {
        let mut test = tool.cargo(root, "test", Cells::Recycled)?;
        test.args(["--quiet", "--all-features", "--package", RECYCLER]);
        // With this variable the tests run in the test binary's own process, one at a time.
        test.args(arguments).env("SELVEDGE_TEST_ALONE", "");
        Ok(test)
    };
    // These tests do not exist where the recycler is switched off, and a run of no test would pass.
    let mut list = test(&["--lib", "--", "--list", "blocks::"])?;
    let listed = list.output().context("listing the tests")?.stdout;
    ensure!(
        String::from_utf8_lossy(&listed).contains("blocks::"),
        "{RECYCLER} has no tests of its recycler there"
    );
    Ok(
        succeeds(&mut test(&["--lib", "--", "--test-threads=1", "blocks::"])?)?
            && succeeds(&mut test(&["--test", "threads", "--", "--test-threads=1"])?)?,
    )
}

/// Runs the wrong programs, each of which the tool must report. Before these, runs a program
/// without a mistake, which the tool must not report.
fn probe(tool: Tool, root: &Path) -> Result<()> {
    let run = |what: &str| {
        let mut run = tool.cargo(root, "run", tool.cells())?;
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
}
