//! Hands some commands over to the program `verify`. Its front page says why it is a program of its
//! own.
use anyhow::{Context, Result, bail};
use project::workspace::cargo;
use std::{
    env,
    ffi::OsStr,
    process::{Command, ExitCode, ExitStatus},
};

/// The commands of `verify`.
pub(crate) const COMMANDS: [&str; 7] = [
    "loom",
    "shuttle",
    "orderings",
    "report",
    "sanitize",
    "soak",
    "chaos",
];

/// Returns whether the command line has a command of `verify`, or asks for help with such a
/// command.
pub(crate) fn has_command() -> bool {
    let mut words = env::args_os().skip(1).skip_while(|word| word == "help");
    let command = words.next().unwrap_or_default();
    COMMANDS.map(OsStr::new).contains(&&*command)
}

/// Runs `verify` with the arguments of this process, and returns the exit code of `verify`.
pub(crate) fn hand_over() -> ExitCode {
    let code = |status: ExitStatus| status.code().context("`verify` was killed");
    match status(program().args(env::args_os().skip(1))).and_then(code) {
        Ok(code) => project::exit_code(code),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs `verify` with these arguments, which blanks separate. Returns `false` if the exit code of
/// `verify` is 1.
pub(crate) fn passes(arguments: &str) -> Result<bool> {
    let status = status(program().args(arguments.split(' ')))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("`verify {arguments}`: {status}"),
    }
}

fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().context("running cargo")
}

fn program() -> Command {
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--package", "verify", "--"]);
    cargo
}
