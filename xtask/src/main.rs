//! The project's own commands: see its README.
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// `println!`, but a reader that has gone is no failure.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod bench;
mod instructions;
mod links;
mod lockfile;
mod loom;
mod orderings;
mod public;
mod report;
mod sanitize;
mod shuttle;
mod soak;
mod test;
mod workspace;

/// Checks a contributor runs before pushing, and the model checker.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything to run before pushing: format, lints, tests, examples, no_std builds, models.
    Test(test::Options),
    /// Runs the models, one process each, and reports executions and bounds.
    Loom(loom::Options),
    /// Runs the models and histories under random schedules.
    Shuttle(shuttle::Options),
    /// Weakens each ordering, and asks whether a model notices.
    Orderings(orderings::Options),
    /// Writes what was verified, after running what is new.
    Report(report::Options),
    /// Runs the tests under sanitizers and valgrind.
    Sanitize(sanitize::Options),
    /// Measures the runtimes side by side.
    Bench(bench::Options),
    /// Runs the tests on real threads for long, and counts every item.
    Soak(soak::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Test(options) => test::run(&options),
        Command::Loom(options) => loom::run(&options),
        Command::Shuttle(options) => shuttle::run(&options),
        Command::Orderings(options) => orderings::run(&options),
        Command::Report(options) => report::run(&options),
        Command::Sanitize(options) => sanitize::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Soak(options) => soak::run(&options),
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
    fn a_run_of_some_is_not_written_down_as_one_of_all() {
        let refused = |words: &str| Cli::try_parse_from(words.split(' ')).is_err();
        assert!(!refused("xtask soak --json f"));
        assert!(refused("xtask soak --json f --crate a"));
        assert!(!refused("xtask sanitize thread --json f"));
        assert!(refused("xtask sanitize thread --json f --crate a"));
        // Those of a crate are put beside those of others.
        assert!(!refused("xtask shuttle --json f --crate a"));
        assert!(refused("xtask shuttle --json f --model a"));
    }
}
