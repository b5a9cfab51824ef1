//! The parts that `xtask` and `verify` share: metadata, sources, output and exit codes.
use anyhow::Result;
use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Like `println!`, but writes through [`output`].
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::write(format_args!("{}\n", format_args!($($text)*)))
    };
}

pub mod debian;
pub mod output;
pub mod source;
pub mod workspace;

/// Parses the command line of the process and runs its command. The exit code is 0 if the command
/// returns true, and 1 if it returns false. After an error, which this prints, the code is 2.
pub fn run_command<C: clap::Parser>(run: impl FnOnce(C) -> Result<bool>) -> ExitCode {
    let code = match C::try_parse().map(run) {
        Ok(Ok(passed)) => i32::from(!passed),
        Ok(Err(error)) => {
            eprintln!("error: {error:#}");
            2
        }
        // A request for help or for the version arrives as an error, too.
        Err(error) => {
            output::note(error.print().and_then(|()| io::stdout().flush()));
            error.exit_code()
        }
    };
    match output::failure() {
        None => exit_code(code),
        Some(error) => {
            eprintln!("error: writing to standard output: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns the exit code of this number; 1 for a number that no process can return.
pub fn exit_code(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Returns the options, of all commands, that take several values but do not split them at commas.
pub fn options_without_commas<C: clap::CommandFactory>() -> Vec<String> {
    let mut found = Vec::new();
    for command in C::command().get_subcommands() {
        let several = |option: &&clap::Arg| {
            matches!(option.get_action(), clap::ArgAction::Append)
                && !option.is_positional()
                && option.get_value_delimiter() != Some(',')
        };
        let options = command.get_arguments().filter(several);
        found.extend(options.map(|option| format!("{} --{}", command.get_name(), option.get_id())));
    }
    found
}
