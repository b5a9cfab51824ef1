//! The project's own commands, which the README describes.
use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod bench;
mod cases;
mod expected;
mod facade;
mod flaky;
mod guide;
mod interrupt;
mod links;
mod lockfile;
mod messages;
mod minimal;
mod modules;
mod msrv;
mod no_std;
mod platforms;
mod prose;
mod public;
mod sim;
mod syntax;
mod test;
mod tokio_items;
mod tokio_tests;
mod trace;
mod verify;

/// The project's commands: the checks before a push, the model checker, the measurements.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the checks before a push: format, lints, tests, examples, no_std builds, models.
    Test(test::Options),
    /// Runs the models, one process each, and reports executions and bounds.
    Loom,
    /// Lists the import cycles between the files of a crate.
    Modules(modules::Options),
    /// Runs the models and histories under random schedules.
    Shuttle,
    /// Weakens each ordering, and checks that a model fails.
    Orderings,
    /// Runs the models and mutants that are new, and writes docs/verification.md.
    Report,
    /// Runs the tests under sanitizers and valgrind.
    Sanitize,
    /// Measures the runtimes side by side.
    Bench(bench::Options),
    /// Runs the tests on real threads for long, and accounts for every item.
    Soak,
    /// Runs random whole programs, and checks what they leave behind.
    Chaos,
    /// Explores the scenarios of simulated programs, or replays one.
    Sim(sim::Options),
    /// Builds the guide and the API docs into one site, target/guide.
    ///
    /// It installs mdbook into target/tools if mdbook is not installed.
    Guide(guide::Options),
    /// Writes a page of HTML that shows a saved trace of the scheduler.
    TraceView(trace::Options),
    /// Compares tokio's public items with the table docs/from-tokio.md.
    TokioItems(tokio_items::Options),
    /// Runs tokio's own tests with selvedge in the place of tokio.
    ///
    /// It copies them into target/tokio-tests, and downloads what they depend on.
    TokioTests(tokio_tests::Options),
    /// Runs other projects' own tests with tokio, and with the façade in its place.
    ///
    /// It copies their packages into target/facade, and downloads what they depend on.
    Facade(facade::Options),
    /// Builds and tests the crates with the oldest Rust, and for other machines.
    ///
    /// It downloads Debian's compilers and emulators into target/platforms.
    Platforms(platforms::Options),
    /// Repeats the test binaries, also on a busy machine, and counts the failures.
    Flaky(flaky::Options),
}

fn main() -> ExitCode {
    if verify::has_command() {
        return verify::hand_over();
    }
    project::run_command(|cli: Cli| match cli.command {
        Command::Test(options) => test::run(&options),
        Command::Modules(options) => modules::run(&options),
        Command::Sim(options) => sim::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Guide(options) => guide::run(&options),
        Command::TraceView(options) => trace::run(&options),
        Command::TokioItems(options) => tokio_items::run(&options),
        Command::TokioTests(options) => tokio_tests::run(&options),
        Command::Facade(options) => facade::run(&options),
        Command::Platforms(options) => platforms::run(&options),
        Command::Flaky(options) => flaky::run(&options),
        Command::Loom
        | Command::Shuttle
        | Command::Orderings
        | Command::Report
        | Command::Sanitize
        | Command::Soak
        | Command::Chaos => unreachable!("another program has these commands"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_with_several_values_accept_commas() {
        assert_eq!(project::options_without_commas::<Cli>(), [""; 0]);
    }

    #[test]
    fn commands_of_the_other_program_are_listed() {
        let cli = <Cli as clap::CommandFactory>::command();
        for name in verify::COMMANDS {
            assert!(cli.find_subcommand(name).is_some(), "{name}");
        }
    }
}
