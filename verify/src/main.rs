//! The project's verification: models, their mutants, random schedules, sanitizers and soak tests.
//!
//! Users run this program through `cargo xtask`: for example, `cargo xtask loom` starts it. So its
//! messages name `cargo xtask`. README.md describes the commands.
//!
//! This program and `xtask` are two programs for two reasons. First, the commands of this program
//! are about one question, whether a protocol holds, and keep their results in `docs/verification`.
//! The commands of `xtask` check the tree and build things. Second, after a change of one of the
//! programs only that program is compiled, so `cargo xtask test` begins sooner. This program uses
//! `xtask`'s library. `xtask` knows only the command lines of this program.
use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod chaos;
mod jobs;
mod loom;
mod orderings;
mod report;
mod results;
mod sanitize;
mod shuttle;
mod soak;

/// The commands that verify.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the models, one process each, and reports executions and bounds.
    Loom(loom::Options),
    /// Runs the models and histories under random schedules.
    Shuttle(shuttle::Options),
    /// Weakens each ordering, and checks that a model fails.
    Orderings(orderings::Options),
    /// Runs the models and mutants that are new, and writes docs/verification.md.
    Report(report::Options),
    /// Runs the tests under sanitizers and valgrind.
    Sanitize(sanitize::Options),
    /// Runs the tests on real threads for long, and accounts for every item.
    Soak(soak::Options),
    /// Runs random programs, and checks that they leave nothing behind.
    Chaos(chaos::Options),
}

/// Returns the options that a command line of this program contains.
fn command_line<T: clap::Args>(words: &str) -> T {
    let command = T::augment_args(clap::Command::new("verify").no_binary_name(true));
    let matches = command.get_matches_from(words.split_whitespace());
    T::from_arg_matches(&matches).expect("the options that clap has parsed")
}

fn main() -> ExitCode {
    project::run_command(|cli: Cli| -> Result<bool> {
        match cli.command {
            Command::Loom(options) => loom::run(&options),
            Command::Shuttle(options) => shuttle::run(&options),
            Command::Orderings(options) => orderings::run(&options),
            Command::Report(options) => report::run(&options),
            Command::Sanitize(options) => sanitize::run(&options),
            Command::Soak(options) => soak::run(&options),
            Command::Chaos(options) => chaos::run(&options),
        }
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
    fn partial_run_is_not_recorded_as_a_full_one() {
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
