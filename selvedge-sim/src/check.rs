//! `check`: the exploration of a scenario as a test.
use crate::{Run, Sim, explore::explore, replay::Replay};
use std::{ops::Range, panic::Location};

/// Runs a scenario with each seed, as [`explore`](crate::explore()) does, for a test.
///
/// A failure is written to a file in the folder for temporary files, whose path the message names.
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
/// If a run fails.
#[track_caller]
pub fn check(seeds: Range<u64>, scenario: impl Fn(Sim) -> Run) {
    let Some(found) = explore(seeds, scenario).found else {
        return;
    };
    let at = Location::caller();
    let name = format!("{}:{}", at.file(), at.line());
    let file = std::env::temp_dir().join(format!("{}.sim", name.replace(['/', ':', '\\'], "-")));
    let saved = match Replay::of(&name, &found).write(&file) {
        Ok(()) => format!("the replay is in {}", file.display()),
        Err(error) => format!("{}: {error}", file.display()),
    };
    panic!("{found}\n{saved}");
}
