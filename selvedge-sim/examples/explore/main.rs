//! Explores the scenarios: `--seeds N` (1,000 by default), `--first SEED`, `--scenario NAME`,
//! `--replay FILE`, `--save DIR`, `--list`; `--quiet` prints no reports, `--stop` stops at the
//! first failure, and `--speed` measures the simulator. `--mistake NAME` plants a mistake of a
//! program, and runs its scenario; `--mistakes` lists them.
#[cfg(selvedge_sim)]
mod actors;
#[cfg(selvedge_sim)]
mod busy;
#[cfg(selvedge_sim)]
mod cluster;
#[cfg(selvedge_sim)]
mod cluster_faults;
#[cfg(selvedge_sim)]
mod cluster_late;
#[cfg(selvedge_sim)]
mod cluster_size;
#[cfg(selvedge_sim)]
mod disks;
#[cfg(selvedge_sim)]
mod drivers;
#[cfg(selvedge_sim)]
mod ends;
#[cfg(selvedge_sim)]
#[path = "../kv_replicated/store.rs"]
mod kv_replicated;
#[cfg(selvedge_sim)]
mod mistakes;
#[cfg(selvedge_sim)]
mod network;
#[cfg(selvedge_sim)]
mod primitives;
#[cfg(selvedge_sim)]
mod processes;
#[cfg(selvedge_sim)]
mod programs;
#[cfg(selvedge_sim)]
mod replicas;
#[cfg(selvedge_sim)]
mod scenarios;
#[cfg(selvedge_sim)]
mod shares;
#[cfg(selvedge_sim)]
mod speed;

#[cfg(not(selvedge_sim))]
fn main() {
    eprintln!("explore: build with RUSTFLAGS=\"--cfg selvedge_sim\", as `cargo xtask sim` does");
    std::process::exit(2);
}

#[cfg(selvedge_sim)]
fn main() -> std::process::ExitCode {
    explorer::main()
}

#[cfg(selvedge_sim)]
mod explorer {
    use crate::{
        mistakes,
        scenarios::{ALL, Scenario},
    };
    use selvedge_sim::{Replay, explore};
    use std::{
        env,
        path::{Path, PathBuf},
        process::ExitCode,
        time::Instant,
    };

    struct Options {
        seeds: u64,
        first: u64,
        scenario: Option<String>,
        replay: Option<PathBuf>,
        save: PathBuf,
        list: bool,
        mistakes: bool,
        quiet: bool,
        stop: bool,
        speed: bool,
    }

    fn options() -> Result<Options, String> {
        let mut options = Options {
            seeds: 1_000,
            first: 0,
            scenario: None,
            replay: None,
            save: env::temp_dir(),
            list: false,
            mistakes: false,
            quiet: false,
            stop: false,
            speed: false,
        };
        let mut given = env::args().skip(1);
        while let Some(option) = given.next() {
            match option.as_str() {
                "--list" => options.list = true,
                "--mistakes" => options.mistakes = true,
                "--quiet" => options.quiet = true,
                "--stop" => options.stop = true,
                "--speed" => options.speed = true,
                _ => {
                    let value = given.next().ok_or(format!("{option} has no value"))?;
                    let number = || value.parse().map_err(|_| format!("{value} is no number"));
                    match option.as_str() {
                        "--seeds" => options.seeds = number()?,
                        "--first" => options.first = number()?,
                        "--scenario" => options.scenario = Some(value),
                        "--mistake" => options.scenario = Some(mistakes::plant(value)?.to_owned()),
                        "--replay" => options.replay = Some(value.into()),
                        "--save" => options.save = value.into(),
                        _ => return Err(format!("there is no option {option}")),
                    }
                }
            }
        }
        Ok(options)
    }

    pub(super) fn main() -> ExitCode {
        let done = options().and_then(|options| {
            if options.list {
                ALL.iter().for_each(|(name, _)| println!("{name}"));
                return Ok(true);
            }
            if options.mistakes {
                let all = mistakes::ALL.iter();
                all.for_each(|(name, scenario)| println!("{scenario} {name}"));
                return Ok(true);
            }
            if options.speed {
                crate::speed::measure();
                return Ok(true);
            }
            match &options.replay {
                Some(file) => replay(file),
                None => explore_all(&options),
            }
        });
        match done {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("explore: {error}");
                ExitCode::from(2)
            }
        }
    }

    fn named(name: &str) -> Result<&'static Scenario, String> {
        let scenario = ALL.iter().find(|scenario| scenario.0 == name);
        scenario.ok_or(format!("there is no scenario {name}; --list names them"))
    }

    fn explore_all(options: &Options) -> Result<bool, String> {
        let chosen = match &options.scenario {
            Some(name) => std::slice::from_ref(named(name)?),
            None => ALL,
        };
        if options.quiet {
            std::panic::set_hook(Box::new(|_| {}));
        }
        let mut passed = true;
        for (name, scenario) in chosen {
            let begun = Instant::now();
            let most = crate::scenarios::most_seeds(name);
            let seeds = options.first..options.first + options.seeds.min(most);
            let explored = explore(seeds, scenario);
            let seconds = begun.elapsed().as_secs_f64();
            println!(
                "{name:<20} {:>7} seeds, {:>9} points, {:>8.0} seeds/s, {:>9.0} points/s, hash {:016x}: {}",
                explored.runs,
                explored.points,
                explored.runs as f64 / seconds,
                explored.points as f64 / seconds,
                explored.hash,
                match &explored.found {
                    None => "ok".to_owned(),
                    Some(found) => {
                        let kind = found.run.failure().map_or("none", |failure| failure.kind());
                        format!("seed {} fails: {kind}", found.run.seed())
                    }
                }
            );
            if let Some(found) = explored.found {
                passed = false;
                if options.stop {
                    break;
                }
                if !options.quiet {
                    println!("{found}");
                    let file = options
                        .save
                        .join(format!("{name}-{}.sim", found.run.seed()));
                    let replay = Replay::of(name, &found);
                    let saved = replay
                        .write(&file)
                        .and_then(|()| replay.write_trace(&file, scenario));
                    let saved = saved.map_err(|error| format!("{}: {error}", file.display()))?;
                    println!("replay: --replay {}", file.display());
                    let [page, json] = saved.map(|path| path.display().to_string());
                    println!("trace: {page}, and for Perfetto {json}");
                }
            }
        }
        Ok(passed)
    }

    fn replay(file: &Path) -> Result<bool, String> {
        let replay = Replay::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let run = replay.run(named(&replay.scenario)?.1);
        println!("{run}");
        match replay.compare(&run) {
            None if replay.is_of_this_build() => println!("the run is that of the file"),
            None => println!("the run is that of the file, which another build has written"),
            Some(difference) => println!("{difference}"),
        }
        Ok(run.failure().is_none())
    }
}
