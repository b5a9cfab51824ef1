//! Hands some commands over to the program `verify`, whose front page says why it is apart.
use anyhow::{Context, Result, bail};
use project::workspace::cargo;
use std::{
    env,
    ffi::OsStr,
    process::{Command, ExitCode, ExitStatus},
};

/// The commands of the program.
pub(crate) const COMMANDS: [&str; 6] =
    ["loom", "shuttle", "orderings", "report", "sanitize", "soak"];

/// Returns whether the command line has a command of the program, or asks for help with one.
pub(crate) fn has_command() -> bool {
    let mut words = env::args_os().skip(1).skip_while(|word| word == "help");
    let command = words.next().unwrap_or_default();
    COMMANDS.map(OsStr::new).contains(&&*command)
}

/// Runs the program with the arguments of this one, and returns its exit code.
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

/// Runs a step with these arguments, which blanks separate; returns `false` when it failed.
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
