//! Programs written for tokio, on simulated hosts: their messages are late, lost and repeated, and
//! their hosts crash.
//!
//! ```sh
//! RUSTFLAGS="--cfg selvedge_sim" cargo run --manifest-path ecosystem/facade/Cargo.toml \
//!     -p simulated --target-dir target/programs -- --seeds 200
//! ```
//!
//! `--first SEED` begins with another seed, and `--scenario NAME` runs one scenario alone.
#[cfg(selvedge_sim)]
mod process;
#[cfg(selvedge_sim)]
mod scenarios;

#[cfg(not(selvedge_sim))]
fn main() -> std::process::ExitCode {
    eprintln!("simulated: build with RUSTFLAGS=\"--cfg selvedge_sim\"");
    std::process::ExitCode::from(2)
}

// The programs print by these macros, which hide those of std.
#[cfg(selvedge_sim)]
macro_rules! println {
    ($($arg:tt)*) => { crate::process::print(format!($($arg)*)) };
}
#[cfg(selvedge_sim)]
macro_rules! eprintln {
    ($($arg:tt)*) => { crate::process::print(format!($($arg)*)) };
}

#[cfg(selvedge_sim)]
#[allow(
    unused_imports,
    reason = "the copy does not read the arguments of the process"
)]
mod greeter {
    include!(concat!(env!("OUT_DIR"), "/greeter.rs"));
}

#[cfg(selvedge_sim)]
#[allow(
    unused_imports,
    reason = "the copy does not read the arguments of the process"
)]
mod journal {
    include!(concat!(env!("OUT_DIR"), "/journal.rs"));
}

#[cfg(selvedge_sim)]
#[allow(
    unused_imports,
    reason = "the copy does not read the arguments of the process"
)]
mod kv {
    include!(concat!(env!("OUT_DIR"), "/kv.rs"));
}

// `kv` uses the library of its package under this name. The package itself takes minutes to build.
#[cfg(selvedge_sim)]
extern crate self as services;
#[cfg(selvedge_sim)]
#[path = "../../services/src/lib.rs"]
mod services_lib;
#[cfg(selvedge_sim)]
pub use services_lib::*;

#[cfg(selvedge_sim)]
fn main() -> std::process::ExitCode {
    match explorer::main() {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(error) => {
            std::eprintln!("simulated: {error}");
            std::process::ExitCode::from(2)
        }
    }
}

#[cfg(selvedge_sim)]
mod explorer {
    use crate::scenarios::ALL;
    use selvedge_sim::explore;
    use std::{env, time::Instant};

    /// Runs the scenarios. Returns whether all seeds passed.
    pub(super) fn main() -> Result<bool, String> {
        let (mut seeds, mut first, mut chosen) = (200, 0, None);
        let mut given = env::args().skip(1);
        while let Some(option) = given.next() {
            let value = given.next().ok_or(format!("{option} has no value"))?;
            let number = || value.parse().map_err(|_| format!("{value} is no number"));
            match option.as_str() {
                "--seeds" => seeds = number()?,
                "--first" => first = number()?,
                "--scenario" => chosen = Some(value),
                _ => return Err(format!("there is no option {option}")),
            }
        }
        let is_chosen = |name: &str| chosen.as_ref().is_none_or(|chosen| chosen == name);
        if !ALL.iter().any(|(name, _)| is_chosen(name)) {
            return Err("there is no such scenario".into());
        }
        let mut passed = true;
        for (name, scenario) in ALL.iter().filter(|(name, _)| is_chosen(name)) {
            let begun = Instant::now();
            let explored = explore(first..first + seeds, scenario);
            std::println!(
                "{name:<10} {:>6} seeds, {:>9} points, hash {:016x}: {}",
                explored.runs,
                explored.points,
                explored.hash,
                match &explored.found {
                    None => "ok",
                    Some(_) => "a seed fails",
                }
            );
            std::eprintln!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
            if let Some(found) = explored.found {
                passed = false;
                std::println!("{found}");
            }
        }
        Ok(passed)
    }
}
