//! The project's own commands, which the README describes.
use clap::{Parser, Subcommand};
use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Like `println!`, but writes through [`output`].
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::write(format_args!("{}\n", format_args!($($text)*)))
    };
}

mod bench;
mod flaky;
mod guide;
mod interrupt;
mod jobs;
mod links;
mod lockfile;
mod loom;
mod modules;
mod msrv;
mod no_std;
mod orderings;
mod output;
mod prose;
mod public;
mod report;
mod sanitize;
mod shuttle;
mod soak;
mod source;
mod test;
mod tokio_items;
mod trace;
mod workspace;

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
    Loom(loom::Options),
    /// Lists the import cycles between the files of a crate.
    Modules(modules::Options),
    /// Runs the models and histories under random schedules.
    Shuttle(shuttle::Options),
    /// Weakens each ordering, and checks that a model fails.
    Orderings(orderings::Options),
    /// Runs the models and mutants that are new, and writes docs/verification.md.
    Report(report::Options),
    /// Runs the tests under sanitizers and valgrind.
    Sanitize(sanitize::Options),
    /// Measures the runtimes side by side.
    Bench(bench::Options),
    /// Runs the tests on real threads for long, and accounts for every item.
    Soak(soak::Options),
    /// Builds the guide and the API docs into one site, target/guide.
    ///
    /// It installs mdbook into target/tools if there is none.
    Guide(guide::Options),
    /// Writes a page of HTML that shows a saved trace of the scheduler.
    TraceView(trace::Options),
    /// Compares tokio's public items with the table docs/from-tokio.md.
    TokioItems(tokio_items::Options),
    /// Repeats tests with cargo-nextest, also on a busy machine, and counts the failures.
    Flaky(flaky::Options),
}

/// Returns the options of a command line of this program's.
fn command_line<T: clap::Args>(words: &str) -> T {
    let command = T::augment_args(clap::Command::new("xtask").no_binary_name(true));
    let matches = command.get_matches_from(words.split_whitespace());
    T::from_arg_matches(&matches).expect("the options that clap has parsed")
}

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => run(cli.command),
        // A request for help or for the version arrives as an error, too.
        Err(error) => {
            output::note(error.print().and_then(|()| io::stdout().flush()));
            exit_code(error.exit_code())
        }
    };
    match output::failure() {
        None => done,
        Some(error) => {
            eprintln!("error: writing to standard output: {error}");
            ExitCode::from(2)
        }
    }
}

fn exit_code(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn run(command: Command) -> ExitCode {
    let done = match command {
        Command::Test(options) => test::run(&options),
        Command::Loom(options) => loom::run(&options),
        Command::Modules(options) => modules::run(&options),
        Command::Shuttle(options) => shuttle::run(&options),
        Command::Orderings(options) => orderings::run(&options),
        Command::Report(options) => report::run(&options),
        Command::Sanitize(options) => sanitize::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Guide(options) => guide::run(&options),
        Command::TraceView(options) => trace::run(&options),
        Command::TokioItems(options) => tokio_items::run(&options),
        Command::Flaky(options) => flaky::run(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_takes_several_takes_them_with_commas() {
        let cli = <Cli as clap::CommandFactory>::command();
        for command in cli.get_subcommands() {
            let several = |option: &&clap::Arg| {
                matches!(option.get_action(), clap::ArgAction::Append) && !option.is_positional()
            };
            for option in command.get_arguments().filter(several) {
                let (command, option_name) = (command.get_name(), option.get_id());
                let comma = option.get_value_delimiter();
                assert_eq!(comma, Some(','), "{command} --{option_name}");
            }
        }
    }

    #[test]
    fn a_run_of_some_is_not_written_down_as_one_of_all() {
        let refused = |words: &str| Cli::try_parse_from(words.split(' ')).is_err();
        assert!(!refused("xtask soak --json f"));
        assert!(refused("xtask soak --json f --crate a"));
        assert!(!refused("xtask sanitize thread --json f"));
        assert!(refused("xtask sanitize thread --json f --crate a"));
        // The results of one crate join those of the others.
        assert!(!refused("xtask shuttle --json f --crate a"));
        assert!(refused("xtask shuttle --json f --model a"));
    }
}
