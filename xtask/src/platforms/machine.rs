//! A platform whose packages are unpacked: builds crates for it, and runs their tests.
use super::{
    examples::{self, EXAMPLES},
    list::{Build, Platform},
    page::Cell,
};
use crate::{
    cases::end_of,
    messages::{Diagnostic, Profile, Target},
    no_std,
};
use anyhow::{Context, Result, bail};
use project::{
    debian::{self, Compiler, NEWEST_RUST, OLDEST_RUST},
    say,
    workspace::Package,
};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    io::Write,
    os::unix::{self, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The most time that a program with tests may take.
const LIMIT: Duration = Duration::from_secs(300);

/// How often a test repeats the scenario of a model, where an emulator runs it. This is less often
/// than the usual 200 times.
const MODEL_RUNS: &str = "20";

pub(super) struct Machine<'a> {
    platform: &'a Platform,
    root: &'a Path,
    work: PathBuf,
    compiler: Compiler,
    /// A further cfg of the crates, or an empty text.
    cfg: &'static str,
}

/// A message of cargo: an error of the compiler, or a target that is built.
#[derive(Deserialize)]
struct Message {
    manifest_path: PathBuf,
    target: Target,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
    message: Option<Diagnostic>,
}

/// A task of cargo.
enum Step<'a> {
    /// Builds all tests.
    All,
    /// Builds the tests that the arguments choose.
    Chosen(&'a [&'a str]),
    /// Builds these examples.
    Examples(&'a [&'a str]),
    /// Compiles the libraries alone.
    Check,
}

/// This machine.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// The features of std without that which has the most code.
const NO_BACKTRACE: &str = "-Zbuild-std-features=panic-unwind";

const TEST: [&str; 4] = ["test", "--no-run", "--no-fail-fast", "--all-features"];

/// The crates whose tests run examples of the crate.
const HAVE_PROGRAMS: [&str; 3] = ["blocking-fs", "process-cluster", "selvedge"];

/// A program with tests, or an example.
struct Program {
    package: String,
    name: String,
    file: PathBuf,
    /// The folder of the package, in which the tests run.
    folder: PathBuf,
}

/// The cells of the platform's row, and the files that have the output of the failures.
struct Cells(BTreeMap<String, Cell>);

impl Cells {
    fn fail(&mut self, package: &str, log: &Path) {
        let log = log.display().to_string();
        self.0.insert(package.to_owned(), Cell::Failed(log));
    }

    fn pass(&mut self, package: &str, count: usize) {
        let cell = self.0.entry(package.to_owned());
        match cell.or_insert(Cell::Passed(0)) {
            Cell::Passed(sum) => *sum += count,
            cell @ Cell::Checked => *cell = Cell::Passed(count),
            // The tests of procedural macros run on this machine, and say nothing of the platform.
            Cell::Failed(_) | Cell::Host | Cell::Absent(_) => (),
        }
    }
}

impl<'a> Machine<'a> {
    pub(super) fn new(platform: &'a Platform, root: &'a Path) -> Result<Self> {
        let work = root.join("target/platforms");
        let compiler = match platform.build {
            Build::Tests | Build::Chosen => &OLDEST_RUST,
            Build::Check | Build::NoStd => &NEWEST_RUST,
        };
        for packages in platform.packages {
            debian::unpack(packages, &work)?;
        }
        let machine = Self {
            platform,
            root,
            compiler: Compiler::new(compiler, &work)?,
            work,
            cfg: "",
        };
        machine.link_std()?;
        Ok(machine)
    }

    /// Puts the target's std where the compiler looks for it.
    fn link_std(&self) -> Result<()> {
        if self.builds_std() {
            return Ok(());
        }
        let std = self.work.join(format!("{}-std", self.platform.name));
        for target in self.platform.targets {
            let std = std.join("usr/lib/rustlib").join(target);
            let link = self.compiler.folder.join("lib/rustlib").join(target);
            if fs::symlink_metadata(&link).is_ok() {
                fs::remove_file(&link)?;
            }
            unix::fs::symlink(std, link)?;
        }
        Ok(())
    }

    /// Builds the crates, and runs their tests if the platform has a way.
    pub(super) fn run(&mut self, packages: &[&Package]) -> Result<BTreeMap<String, Cell>> {
        let mut cells = Cells(BTreeMap::new());
        let mut built = Vec::new();
        for package in packages {
            match self.reason_against(&package.name) {
                Some(why) => {
                    let cell = Cell::Absent(why.to_owned());
                    cells.0.insert(package.name.clone(), cell);
                }
                None => built.push(*package),
            }
        }
        (self.platform.prepare)(&self.work)?;
        let target = self.platform.targets.first().copied();
        match self.platform.build {
            Build::Tests => self.test_all(&built, target, &mut cells)?,
            _ => {
                for target in self.platform.targets {
                    self.build(&Step::Check, &built, Some(target), &mut cells)?;
                }
                self.test_chosen(self.platform.tested, &built, target, &mut cells)?;
            }
        }
        for (cfg, tests) in self.platform.also {
            self.cfg = cfg;
            self.test_chosen(&[*tests], &built, target, &mut cells)?;
            self.cfg = "";
        }
        Ok(cells.0)
    }

    /// Builds and runs all tests.
    fn test_all(
        &self,
        packages: &[&Package],
        target: Option<&str>,
        cells: &mut Cells,
    ) -> Result<()> {
        for package in packages {
            if HAVE_PROGRAMS.contains(&&*package.name) {
                self.build_examples(&package.name, target)?;
            }
        }
        let begun = Instant::now();
        let programs = self.build(&Step::All, packages, target, cells)?;
        self.say_built(&programs, begun);
        self.test(&programs, cells)
    }

    /// Builds and runs the chosen tests of the crates that are only checked otherwise.
    fn test_chosen(
        &self,
        tests: &[(&str, &[&str])],
        built: &[&Package],
        target: Option<&str>,
        cells: &mut Cells,
    ) -> Result<()> {
        let begun = Instant::now();
        let mut programs = Vec::new();
        for (name, arguments) in tests {
            let named = built.iter().copied();
            let named: Vec<_> = named.filter(|package| package.name == *name).collect();
            if !named.is_empty() {
                programs.extend(self.build(&Step::Chosen(arguments), &named, target, cells)?);
            }
        }
        let mut servers = Vec::new();
        if self.platform.examples && self.cfg.is_empty() {
            for (package, names) in EXAMPLES {
                let package = built.iter().filter(|one| one.name == *package);
                let package: Vec<_> = package.copied().collect();
                if !package.is_empty() {
                    let step = Step::Examples(names);
                    servers.extend(self.build(&step, &package, target, cells)?);
                }
            }
        }
        if programs.is_empty() && servers.is_empty() {
            return Ok(());
        }
        self.say_built(&programs, begun);
        self.test(&programs, cells)?;
        self.run_examples(&servers, cells)
    }

    /// Runs the examples. One that answers rightly counts as a test of its crate.
    fn run_examples(&self, programs: &[Program], cells: &mut Cells) -> Result<()> {
        for program in programs {
            let Program { package, name, .. } = program;
            let log = self.log(name);
            let mut command = self.command(program)?;
            let file = File::create(&log)?;
            let checked = examples::check(name, command.stderr(file), &program.folder);
            match checked {
                Ok(()) => {
                    cells.pass(package, 1);
                    fs::remove_file(&log)?;
                }
                Err(error) => {
                    say!("{package} {name}: FAILED: {error:#}, see {}", log.display());
                    cells.fail(package, &log);
                }
            }
        }
        Ok(())
    }

    fn say_built(&self, programs: &[Program], begun: Instant) {
        let (name, count) = (self.platform.name, programs.len());
        let seconds = begun.elapsed().as_secs();
        say!("{name}: {count} programs with tests are built, {seconds} s");
    }

    /// Returns whether the compiler builds the target's std from its source.
    fn builds_std(&self) -> bool {
        matches!(self.platform.build, Build::Check | Build::NoStd)
    }

    /// Returns why the platform does without a crate.
    fn reason_against(&self, package: &str) -> Option<&'static str> {
        let part = |(part, _): &(&str, _)| *part == package;
        if self.platform.build == Build::NoStd && !no_std::PARTS.iter().any(part) {
            return Some("needs `std`");
        }
        let mut without = self.platform.without.iter();
        let (why, _) = without.find(|(_, crates)| crates.contains(&package))?;
        Some(why)
    }

    /// Builds the examples of a crate, which its tests run.
    fn build_examples(&self, package: &str, target: Option<&str>) -> Result<()> {
        let log = self.log(&format!("{package}-examples"));
        let file = File::create(&log)?;
        let mut build = self.cargo();
        build.args(["build", "--locked", "--examples", "--all-features"]);
        build.args(["--package", package]);
        build.args(target.into_iter().flat_map(|target| ["--target", target]));
        if !build
            .stdout(file.try_clone()?)
            .stderr(file)
            .status()?
            .success()
        {
            bail!("the examples do not build, see {}", log.display());
        }
        Ok(fs::remove_file(&log)?)
    }

    /// Builds or checks the crates for a target. A crate that does not compile has failed. Returns
    /// the programs with tests.
    fn build(
        &self,
        step: &Step,
        packages: &[&Package],
        target: Option<&str>,
        cells: &mut Cells,
    ) -> Result<Vec<Program>> {
        let what = match step {
            Step::Chosen(_) | Step::Examples(_) => {
                &packages.first().context("a crate is chosen")?.name
            }
            Step::All | Step::Check => "build",
        };
        let log = self.log(&format!("{}-{what}", target.unwrap_or("native")));
        let mut file = File::create(&log)?;
        let mut build = self.cargo();
        match step {
            Step::All => build.args(TEST).args(["--lib", "--tests"]),
            Step::Chosen(arguments) => build.args(TEST).args(*arguments),
            Step::Examples(names) => build
                .args(["build", "--all-features"])
                .args(names.iter().flat_map(|name| ["--example", name])),
            Step::Check if self.platform.build == Build::NoStd => build
                .args(["build", "--keep-going", "--no-default-features", "--lib"])
                .args(["--features", &parts_features(packages)]),
            Step::Check => build.args(["check", "--keep-going", "--all-features", "--lib"]),
        };
        match self.platform.build {
            Build::Tests | Build::Chosen => (),
            Build::Check => _ = build.arg("-Zbuild-std=std,panic_unwind,panic_abort"),
            Build::NoStd => _ = build.arg("-Zbuild-std=core,alloc"),
        }
        build.args(["--locked", "--message-format=json"]);
        build.args(target.into_iter().flat_map(|target| ["--target", target]));
        for package in packages {
            build.args(["--package", &package.name]);
        }
        let output = build.stderr(Stdio::piped()).output().context("cargo")?;
        file.write_all(&output.stderr)?;
        let mut programs = Vec::new();
        let (mut compiled, mut for_host) = (Vec::new(), Vec::new());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Message>(line) else {
                continue; // It is about something else.
            };
            let folder = message
                .manifest_path
                .parent()
                .context("a manifest's folder")?;
            let is_of = |package: &&&Package| package.manifest_path == message.manifest_path;
            let name = packages.iter().find(is_of).map(|package| &*package.name);
            if let Some(error) = message.message.filter(|message| message.level == "error") {
                file.write_all(error.rendered.unwrap_or_default().as_bytes())?;
                cells.fail(name.unwrap_or("a dependency"), &log);
                continue;
            }
            let (Some(name), Some(profile)) = (name, message.profile) else {
                continue;
            };
            compiled.push(name);
            if message.target.kind.iter().any(|kind| kind == "proc-macro") {
                for_host.push(name);
            }
            let is_wanted = profile.test || matches!(step, Step::Examples(_));
            if let Some(file) = message.executable.filter(|_| is_wanted) {
                programs.push(Program {
                    package: name.to_owned(),
                    name: message.target.name,
                    file,
                    folder: folder.to_owned(),
                });
            }
        }
        for package in packages {
            if !compiled.contains(&&*package.name) {
                cells.fail(&package.name, &log);
            } else if !cells.0.contains_key(&package.name) {
                let cell = match target.is_some() && for_host.contains(&&*package.name) {
                    true => Cell::Host,
                    false => Cell::Checked,
                };
                cells.0.insert(package.name.clone(), cell);
            }
        }
        if output.status.success() {
            fs::remove_file(&log)?;
        } else if !cells.0.values().any(Cell::is_failure) {
            cells.fail("cargo", &log);
        }
        Ok(programs)
    }

    /// Returns a command that checks a crate, and those on which it depends.
    pub(super) fn check(&self, package: &str) -> Command {
        let mut check = self.cargo();
        check.args(["check", "--quiet", "--lib", "--all-features", "--locked"]);
        check.args(["--package", package]);
        if self.builds_std() {
            check.args(["-Zbuild-std=std,panic_unwind", NO_BACKTRACE]);
        }
        let targets = self.platform.targets.iter();
        check.args(targets.flat_map(|target| ["--target", target]));
        check
    }

    /// Runs the programs, one more at a time than there are processors: many of them wait.
    fn test(&self, programs: &[Program], cells: &mut Cells) -> Result<()> {
        let next = Mutex::new(programs.iter());
        let cells = Mutex::new(cells);
        let run_rest = || {
            loop {
                let program = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(program) = program else {
                    return Ok(());
                };
                let begun = Instant::now();
                let log = self.log(&format!("{}-{}", program.package, program.name));
                let passed = self.run_program(program, &log)?;
                let seconds = begun.elapsed().as_secs();
                let Program { package, name, .. } = program;
                let mut cells = cells.lock().unwrap_or_else(PoisonError::into_inner);
                match passed {
                    Some(count) => cells.pass(package, count),
                    None => {
                        say!("{package} {name}: FAILED, see {}", log.display());
                        cells.fail(package, &log);
                    }
                }
                if seconds >= 20 {
                    say!("{package} {name}: {seconds} s");
                }
            }
        };
        let threads = thread::available_parallelism()?.get() + 1;
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run_rest)).collect();
            let mut ends = threads.into_iter().map(|thread| thread.join());
            ends.try_for_each(|end| end.expect("a thread that runs programs does not panic"))
        })
    }

    /// Runs a program with tests. Returns how many passed, or `None` if one failed or the program
    /// ended without a result; then the file has the output.
    fn run_program(&self, program: &Program, log: &Path) -> Result<Option<usize>> {
        let file = File::create(log)?;
        let mut command = self.command(program)?;
        let skips = self.platform.skipped.iter();
        command
            .args(
                skips
                    .flat_map(|(_, names)| *names)
                    .flat_map(|name| ["--skip", name]),
            )
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        let mut child = command.spawn().context("running a test")?;
        let end = end_of(&mut child, LIMIT)?;
        if !end.is_some_and(|status| status.success()) {
            return Ok(None);
        }
        let passed = passed(&String::from_utf8_lossy(&fs::read(log)?));
        if passed.is_some() {
            fs::remove_file(log)?;
        }
        Ok(passed)
    }

    /// Returns the command that starts a program in its package's folder, in a group of its own.
    fn command(&self, program: &Program) -> Result<Command> {
        let runner = match self.is_for_target(&program.file) {
            true => (self.platform.runner)(&self.work),
            false => Vec::new(),
        };
        let words = runner.iter().map(AsRef::as_ref);
        let mut words = words.chain([program.file.as_os_str()]);
        let mut command = Command::new(words.next().context("a command has a program")?);
        command
            .args(words)
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("LD_LIBRARY_PATH", self.compiler.libraries(&self.folders()))
            .process_group(0);
        if !runner.is_empty() {
            command.env("SELVEDGE_ITERATIONS", MODEL_RUNS);
            command.env("PROPTEST_CASES", "16");
        }
        Ok(command)
    }

    /// Returns whether a program is for the target. Programs of procedural macros are for this
    /// machine.
    fn is_for_target(&self, file: &Path) -> bool {
        let mut targets = self.platform.targets.iter();
        targets.any(|target| file.starts_with(self.target_folder().join(target)))
    }

    /// Returns the path of a file for the output of a command.
    fn log(&self, what: &str) -> PathBuf {
        let name = self.platform.name;
        self.work.join(format!("{name}-{what}{}.txt", self.cfg))
    }

    /// Returns the folder of what the compiler builds.
    fn target_folder(&self) -> PathBuf {
        let folder = match self.platform.build {
            Build::Tests | Build::Chosen => "target",
            Build::Check | Build::NoStd => "target-newest",
        };
        match self.cfg {
            "" => self.work.join(folder),
            cfg => self.work.join(format!("{folder}-{cfg}")),
        }
    }

    /// Returns the folders of the platform's packages: those of a linker and of an emulator.
    fn folders(&self) -> Vec<PathBuf> {
        let packages = self.platform.packages.iter();
        packages
            .map(|packages| self.work.join(packages.folder))
            .collect()
    }

    fn cargo(&self) -> Command {
        let mut cargo = self.compiler.cargo(&self.folders());
        // The compiler for Windows starts a tool of the linker's package by its name.
        let path = env::var("PATH").unwrap_or_default();
        let tools = self.folders().into_iter();
        let tools = tools.map(|folder| folder.join("usr/bin").display().to_string());
        let path: Vec<_> = [path].into_iter().chain(tools).collect();
        cargo
            .env("PATH", path.join(":"))
            .current_dir(self.root)
            .env("CARGO_TARGET_DIR", self.target_folder());
        if self.builds_std() {
            cargo.env("RUSTC_BOOTSTRAP", "1");
        }
        let targets = match self.platform.targets {
            [] => &[HOST],
            targets => targets,
        };
        for target in targets {
            let variable = target.replace('-', "_").to_uppercase();
            let mut flags = (self.platform.flags)(&self.work);
            if !self.builds_std() {
                // There are many programs to link, and GNU's linker takes longer for each.
                let folder = self.compiler.folder.join("lib/llvm-19/bin");
                let folder = folder.display();
                flags += &format!(" -Clink-arg=-fuse-ld=lld -Clink-arg=-B{folder}");
            }
            if !self.cfg.is_empty() {
                flags += &format!(" --cfg {}", self.cfg);
            }
            cargo.env(format!("CARGO_TARGET_{variable}_RUSTFLAGS"), flags);
        }
        cargo
    }
}

/// Returns the features of the parts that need no std. The shim's atomics of 64 bits are those of
/// portable-atomic, as not all processors have them.
fn parts_features(packages: &[&Package]) -> String {
    let chosen = |part: &str| packages.iter().any(|package| package.name == part);
    let parts = no_std::PARTS.iter().filter(|(part, _)| chosen(part));
    let features = parts.flat_map(|(part, features)| {
        let named = features
            .iter()
            .map(move |feature| format!("{part}/{feature}"));
        named.chain((*part == "sync-shim").then(|| "sync-shim/portable-atomic".into()))
    });
    features.collect::<Vec<_>>().join(",")
}

/// Returns the count of passed tests in the last result that a program has printed. An earlier one
/// is that of a program which a test has started. There is none if a test has ended the program.
fn passed(said: &str) -> Option<usize> {
    let mut lines = said.lines().rev();
    let end = lines.find_map(|line| line.strip_prefix("test result: "))?;
    end.strip_prefix("ok. ")?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::passed;

    #[test]
    fn last_result_counts_and_a_program_without_one_has_failed() {
        let said = "test result: ok. 1 passed; 0 failed\ntest a ... ok\n\n\
                    test result: ok. 12 passed; 0 failed; 1 ignored\n\n";
        assert_eq!(passed(said), Some(12));
        assert_eq!(passed("running 2 tests\ntest a ... ok\n"), None);
        assert_eq!(passed("test result: FAILED. 1 passed; 1 failed\n"), None);
    }
}
