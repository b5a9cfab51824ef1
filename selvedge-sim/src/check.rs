//! `check`: the exploration of a scenario as a test.
use crate::{Run, Sim, explore::explore, replay::Replay};
use std::{env, ops::Range, panic::Location, path::PathBuf};

/// The variable that names a replay to run instead of the seeds.
const REPLAY: &str = "SELVEDGE_SIM_REPLAY";

/// Runs a scenario with each seed, as [`explore`](crate::explore()) does, for a test.
///
/// A failure is written to files in the folder for temporary files, whose paths the message names:
/// its choices, and a trace of the shrunk run ([`Replay::write_trace`]). If the variable
/// `SELVEDGE_SIM_REPLAY` has the path of the choices, the same call runs only these, and shows the
/// last events. Without the cfg `selvedge_sim` the scenario runs once.
///
/// ```
/// // In a test:
/// selvedge_sim::check(0..1_000, |sim| {
///     sim.run(|| async {
///         selvedge_executor::spawn(async {}).await.unwrap();
///     })
/// });
/// ```
///
/// # Panics
/// If a run fails, or if the replay cannot be read.
#[track_caller]
// It is no attribute, as `explore` and `Replay` take the same function of `Sim`, and an attribute
// would cost its users the crates that parse Rust.
pub fn check(seeds: Range<u64>, scenario: impl Fn(Sim) -> Run) {
    let at = Location::caller();
    let name = format!("{}:{}", at.file(), at.line());
    if let Some(file) = env::var_os(REPLAY).map(PathBuf::from) {
        let replay = Replay::read(&file);
        let replay = replay.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if replay.scenario == name {
            let run = replay.run(scenario);
            if let Some(difference) = replay.compare(&run) {
                eprintln!("{}: {difference}", file.display());
            }
            return run.unwrap();
        }
    }
    let Some(found) = explore(seeds, &scenario).found else {
        return;
    };
    let file = env::temp_dir().join(format!("{}.sim", name.replace(['/', ':', '\\'], "-")));
    let replay = Replay::of(&name, &found);
    let saved = replay.write(&file).and_then(|()| {
        let saved = format!("the replay is in {}", file.display());
        if cfg!(not(selvedge_sim)) {
            return Ok(saved);
        }
        let [page, json] = replay.write_trace(&file, scenario)?;
        let (page, json) = (page.display(), json.display());
        Ok(format!(
            "{saved}\nits trace is in {page}, and for Perfetto in {json}"
        ))
    });
    let saved = saved.unwrap_or_else(|error| format!("{}: {error}", file.display()));
    panic!("{found}\n{saved}");
}
