//! `cargo xtask sanitize`: the tests under AddressSanitizer, ThreadSanitizer, LeakSanitizer, and valgrind's memcheck.
//!
//! First each tool is shown a program that does wrong (`sync-shim/examples/probe.rs`): one that reports nothing there would
//! report nothing elsewhere either.
//!
//! The sanitizers need a nightly toolchain, but not std's source: std stays as it was compiled, so ThreadSanitizer doesn't see what std orders
//! inside. Under it, hence, the shim's locks are parking_lot's and its fences exchanges; only what goes by the shim runs, that is
//! the models and the tests named `threads`, without those that rest on a library's fences; what std's compiled code copies counts for nothing;
//! and the two [suppressions](THREAD_SUPPRESSIONS) are for the fence in `Arc`.
use crate::{
    test::succeeds,
    workspace::{self, cargo},
};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

/// Options of `cargo xtask sanitize`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What to run.
    #[arg(value_enum, required_unless_present = "all")]
    tools: Vec<Tool>,
    /// All of them.
    #[arg(long)]
    all: bool,
    /// Only these crates.
    #[arg(long = "crate", value_name = "PACKAGE")]
    crates: Vec<String>,
    /// Writes to a file what ran, over all crates, without a report, in the place of what it has of these tools.
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

/// What is not installed, and how it is.
#[derive(Debug)]
enum Missing {
    Nightly,
    Valgrind,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nightly => {
                "the sanitizers need a nightly toolchain: `rustup toolchain install nightly`"
            }
            Self::Valgrind => {
                "valgrind is not installed: it is a package of that name (`apt-get install valgrind`)"
            }
        })
    }
}

impl std::error::Error for Missing {}

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// `Arc` frees after a fence, which ThreadSanitizer doesn't know.
const THREAD_SUPPRESSIONS: &str = "race:alloc::sync::Arc\nrace:drop_slow\n";

/// Tests that rest on crossbeam-epoch, which orders by fences.
const NOT_UNDER_THREAD: &str = "in_a_deque";

/// Tests of what is documented to leak, or that leak on purpose: a list with tasks, guards that are forgotten, a panic's payload whose drop panics, and what
/// an implementation that is wrong on purpose loses.
const LEAKS: [&str; 6] = [
    "a_list_that_is_dropped_with_tasks_leaves_them_whole",
    "a_leaked_guard_and_a_core_that_is_given_away_hold_up_nobody",
    "a_panic_shuts_down_the_runtime_that_asked_for_it_and_no_other",
    "a_panic_of_a_job_or_a_hook_leaves_the_thread_to_the_next",
    "each_fault_is_found_and_named",
    "the_scheduler_hears_of_a_payload_whose_drop_panics",
];

/// A test of how much of the stack something takes, of which AddressSanitizer's own frames are larger.
const DEEP: &str = "a_chain_of_outputs_takes_a_stack_as_deep";

/// A tool that has reported nothing.
#[derive(Serialize, Deserialize)]
pub(crate) struct Clean {
    pub(crate) tool: String,
    pub(crate) version: String,
    seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
}

/// Puts it in the place of what the file has of this tool.
fn record(file: &Path, clean: Clean) -> Result<()> {
    let mut all: Vec<Clean> = workspace::earlier(file)?.unwrap_or_default();
    all.retain(|known| known.tool != clean.tool);
    all.push(clean);
    workspace::write_json(file, &all)
}

/// A wrong program, and what is to be said of it.
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

    /// What it says of itself, if it is installed.
    fn version(self) -> Result<String, Missing> {
        let (mut command, missing) = match self {
            Self::Valgrind => (Command::new("valgrind"), Missing::Valgrind),
            _ => (nightly("rustc", &[]), Missing::Nightly),
        };
        match command.arg("--version").output() {
            Ok(said) if said.status.success() => {
                Ok(String::from_utf8_lossy(&said.stdout).trim().into())
            }
            _ => Err(missing),
        }
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

    /// Cells come from the allocator and go back to it, so that each is seen.
    fn flags(self) -> &'static str {
        match self {
            Self::Address => "-Zsanitizer=address --cfg selvedge_plain_alloc",
            Self::Thread => {
                "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg selvedge_tsan"
            }
            Self::Leak => "-Zsanitizer=leak --cfg selvedge_plain_alloc",
            Self::Valgrind => "--cfg selvedge_plain_alloc",
        }
    }

    /// cargo with what makes its programs this tool's.
    fn cargo(self, root: &Path, command: &str) -> Command {
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
        let target = root.join("target/sanitize").join(self.name());
        cargo
            .current_dir(root)
            .arg("--target-dir")
            .arg(&target)
            .env("RUSTFLAGS", self.flags())
            .env("TSAN_OPTIONS", self.thread_options(&target));
        if self == Self::Valgrind {
            // It is thirty times slower.
            cargo
                .env("PROPTEST_CASES", "8")
                .env("SELVEDGE_ITEMS", "3000");
        }
        cargo
    }

    fn thread_options(self, target: &Path) -> String {
        format!(
            "ignore_interceptors_accesses=1 suppressions={}",
            target.join("suppressions").display()
        )
    }
}

const VALGRIND: [&str; 6] = [
    "valgrind",
    "--quiet",
    "--error-exitcode=9",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
];

fn nightly(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", program]).args(arguments);
    for name in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "CARGO_TARGET_DIR"] {
        command.env_remove(name);
    }
    command
}

/// Runs the tools; false when one reported something, or a test failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let tools = if options.all {
        Tool::ALL.to_vec()
    } else {
        options.tools.clone()
    };
    for tool in &tools {
        tool.version()?;
    }
    workspace::writable(options.json.as_deref())?;
    let (packages, root) = workspace::load()?;
    let all: Vec<_> = packages
        .iter()
        .filter(|package| package.is_modelled())
        .collect();
    for name in &options.crates {
        ensure!(
            all.iter().any(|package| package.name == *name),
            "no crate {name} to check"
        );
    }
    let chosen: Vec<_> = all
        .into_iter()
        .filter(|package| options.crates.is_empty() || options.crates.contains(&package.name))
        .collect();
    let commit = workspace::commit(&root);
    for tool in tools {
        let begun = Instant::now();
        let passed = check(tool, &root, &chosen)?;
        let word = if passed { "0 reports" } else { "FAILED" };
        say!(
            "sanitize {}: {word}, {:.0} s",
            tool.name(),
            begun.elapsed().as_secs_f64()
        );
        if !passed {
            return Ok(false);
        }
        if let Some(file) = &options.json {
            let clean = Clean {
                tool: tool.name().into(),
                version: tool.version()?,
                seconds: begun.elapsed().as_secs_f64(),
                commit: Some(commit.clone()),
            };
            record(file, clean)?;
        }
    }
    Ok(true)
}

fn check(tool: Tool, root: &Path, packages: &[&workspace::Package]) -> Result<bool> {
    let target = root.join("target/sanitize").join(tool.name());
    fs::create_dir_all(&target).with_context(|| format!("making {}", target.display()))?;
    if tool == Tool::Thread {
        fs::write(target.join("suppressions"), THREAD_SUPPRESSIONS).context("the suppressions")?;
        say!("sanitize thread: suppressed are\n{THREAD_SUPPRESSIONS}");
    }
    probe(tool, root)?;
    // The executor's own is not among the parts, and too slow there.
    let names: Vec<_> = packages
        .iter()
        .filter(|package| tool != Tool::Valgrind || package.name != "selvedge")
        .flat_map(|package| ["--package", package.name.as_str()])
        .collect();
    if names.contains(&"selvedge") {
        // Its tests run them, and look for them next to themselves.
        let mut build = tool.cargo(root, "build");
        build.args(["--quiet", "--examples", "--package", "selvedge"]);
        ensure!(build.status()?.success(), "the examples don't build");
    }
    let test = |arguments: &[&str], leaks: bool| {
        let mut test = tool.cargo(root, "test");
        test.args(["--quiet", "--all-features", "--no-fail-fast"])
            .args(&names)
            .args(arguments);
        if leaks {
            test.env("ASAN_OPTIONS", "detect_leaks=0");
        }
        succeeds(&mut test)
    };
    if tool != Tool::Thread {
        say!("sanitize {}: these leak on purpose:", tool.name());
        for name in LEAKS {
            say!("  {name}");
        }
        let most = ["--lib", "--tests", "--"].into_iter();
        let mut most: Vec<_> = most
            .chain(LEAKS.iter().flat_map(|name| ["--skip", name]))
            .collect();
        if tool == Tool::Address {
            say!("sanitize address: left out, as its frames are larger: {DEEP}");
            most.extend(["--skip", DEEP]);
        }
        // The others for what else they may do wrong, where leaks can be allowed.
        let rest = [&["--lib", "--tests", "--"], &LEAKS[..]].concat();
        return Ok(test(&most, false)? && (tool != Tool::Address || test(&rest, true)?));
    }
    say!("sanitize thread: left out, as it rests on a library's fences: {NOT_UNDER_THREAD}\n");
    let models = test(&["--lib", "--", "--test-threads=1", "models::"], false)?;
    let threaded = packages.iter().any(|package| package.has_test("threads"));
    let skipped = ["--", "--test-threads=1", "--skip", NOT_UNDER_THREAD];
    let threads = [&["--test", "threads"][..], &skipped].concat();
    Ok(models && (!threaded || test(&threads, false)?))
}

/// Shows the tool what it must report.
fn probe(tool: Tool, root: &Path) -> Result<()> {
    let run = |what: &str| {
        let mut run = tool.cargo(root, "run");
        run.args([
            "--quiet",
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
    fn what_is_missing_says_how_it_is_installed() {
        assert!(Missing::Nightly.to_string().contains("rustup toolchain"));
        assert!(Missing::Valgrind.to_string().contains("apt-get install"));
    }

    #[test]
    fn a_run_of_one_tool_stays_beside_those_of_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sanitize.json");
        let old = r#"[{"tool": "address", "version": "1", "seconds": 0.5}, {"tool": "thread", "version": "1", "seconds": 0.5}]"#;
        fs::write(&file, old).unwrap();
        let clean = Clean {
            tool: "thread".into(),
            version: "2".into(),
            seconds: 0.5,
            commit: None,
        };
        record(&file, clean).unwrap();
        let all: Vec<Clean> = workspace::earlier(&file).unwrap().unwrap();
        let mut found: Vec<_> = all.iter().map(|c| (&*c.tool, &*c.version)).collect();
        found.sort_unstable();
        assert_eq!(found, [("address", "1"), ("thread", "2")]);
    }

    #[test]
    fn nothing_but_the_fence_in_arc_is_suppressed() {
        let all: Vec<_> = THREAD_SUPPRESSIONS.lines().collect();
        assert_eq!(all, ["race:alloc::sync::Arc", "race:drop_slow"]);
    }
}
