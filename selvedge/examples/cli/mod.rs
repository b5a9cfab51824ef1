//! The command line of an example: its help, its exit code, and a quiet end if the reader of its
//! output has gone.
//!
//! An example exits with 0, with 1 if it fails, and with 2 if its arguments are wrong.
//!
//! The examples of other crates include this file by its path. A package lacks that path, so the
//! packages of those crates leave their examples out.
#![allow(dead_code, reason = "each example uses a part of it")]
use std::{env, error::Error, ffi::OsString, fmt, panic, process, process::ExitCode};

/// The error of wrong arguments: the example then shows its help.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// Runs an example with its arguments. With `--help` or `-h` this function shows the help instead.
/// The first line of the help says what the example does.
pub fn run(
    help: &str,
    example: impl FnOnce(Vec<String>) -> Result<(), Box<dyn Error>>,
) -> ExitCode {
    end_quietly();
    let to_string = |argument: OsString| argument.into_string();
    let arguments: Result<Vec<_>, _> = env::args_os().skip(1).map(to_string).collect();
    let result = match arguments {
        Ok(arguments)
            if arguments
                .iter()
                .any(|word| word == "--help" || word == "-h") =>
        {
            println!("{}", help.trim());
            Ok(())
        }
        Ok(arguments) => example(arguments),
        Err(argument) => Err(Usage(format!("not UTF-8: {argument:?}")).into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Usage>() => {
            eprintln!("error: {error}\n\n{}", help.trim());
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs an example that takes no arguments.
pub fn demo(help: &str, example: impl FnOnce()) -> ExitCode {
    run(help, |arguments| {
        at_most(&arguments, 0)?;
        example();
        Ok(())
    })
}

/// Checks that no argument is an option, and that there are at most `most` arguments.
pub fn at_most(arguments: &[String], most: usize) -> Result<(), Usage> {
    if let Some(option) = arguments.iter().find(|word| word.starts_with('-')) {
        return Err(Usage(format!("no option {option}")));
    }
    if arguments.len() > most {
        return Err(Usage(format!("{most} arguments at most")));
    }
    Ok(())
}

/// Parses the value of the argument `name`. The error names that argument.
pub fn parse<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Usage> {
    let usage = |_| Usage(format!("{name}: not {value:?}"));
    value.parse().map_err(usage)
}

/// Sets a hook that exits with 0 when `println!` panics because the reader of the output, such as
/// `head`, has gone. The hook reports other panics as before.
fn end_quietly() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>();
        if text.is_some_and(|text| text.starts_with("failed printing to stdout")) {
            process::exit(0);
        }
        report(info);
    }));
}
