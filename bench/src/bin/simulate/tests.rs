//! Compares the simulation of one and two workers with what was measured and counted on two cores.
use super::*;

/// Fails if the simulated figure is not within this factor of the measured one.
fn assert_near(what: &str, simulated: f64, measured: f64, factor: f64) {
    let ratio = simulated / measured;
    assert!(
        (1.0 / factor..=factor).contains(&ratio),
        "{what}: {simulated:.3} simulated, {measured:.3} measured"
    );
}

fn each(of: &Scheduler) -> f64 {
    of.now / of.done as f64
}

/// `bench sample --row spawn_many_remote --workers 1` took 52 to 70 ns in five runs. In it one core
/// spawns, and the other polls.
///
/// Fails if the lines of tasks and of the injector cost too little or too much.
#[test]
fn spawns_from_outside_take_what_was_measured() {
    let of = spawn_from_outside(Costs::near(), 1, 1, 1, 0.0, 0.0);
    assert_near("spawn_many_remote", each(&of), 58.0, 1.35);
}

/// The row `spawn_many_local` took 57 to 61 ns with one worker, in five runs. With two workers it
/// took 45 ns, in a run of all rows.
///
/// Fails if a spawn from a task pays for shared lines.
#[test]
fn spawns_from_a_task_take_what_was_measured() {
    let one = spawn_from_a_task(Costs::near(), 1, 10_000, (0.0, 0.0));
    assert_near("one worker", each(&one), 58.0, 1.35);
    let two = spawn_from_a_task(Costs::near(), 2, 10_000, (0.0, 0.0));
    assert_near("two workers", each(&two), 45.0, 1.35);
}

/// The row `skew` kept two workers busy for 97 to 98 % of the time, on a quiet machine.
///
/// Fails if a thief does not find tasks in time.
#[test]
fn skewed_load_keeps_both_workers_busy() {
    let of = spawn_from_a_task(Costs::near(), 2, 512, (1_000.0, 64_000.0));
    assert_near("skew", of.efficiency(), 0.98, 1.03);
}

/// The counted row is `work of 20 µs from a task` with two workers in `docs/benchmarks/scale.md`.
/// The rows with more workers were counted on two cores, where the threads take turns. The
/// simulation leaves that out.
///
/// Fails if the simulation writes the idle word and the injector's stack more than twice as often
/// as the runtime, or less than half as often.
#[test]
fn shared_writes_are_as_many_as_were_counted() {
    let of = spawn_from_a_task(Costs::near(), 2, 2_000, (20_000.0, 20_000.0));
    let shared = of.shared_writes();
    assert_near("from a task", shared as f64 / of.done as f64, 0.019, 2.0);
}

/// Fails if a run depends on anything but its parameters.
#[test]
fn simulation_repeats_exactly() {
    let run = || spawn_from_outside(Costs::near(), 8, 1, 1, 20_000.0, 4_000.0);
    let (one, two) = (run(), run());
    assert_eq!(one.now.to_bits(), two.now.to_bits());
    assert_eq!((one.searches, one.parks), (two.searches, two.parks));
}
