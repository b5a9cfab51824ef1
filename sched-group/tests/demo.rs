//! Reproduces, in virtual time, the two tables of Seastar's demonstration of its CPU scheduler.
use sched_group::{FairQueue, GroupKey, Pick, Shares};
use std::{cell::Cell, collections::VecDeque};

const SECOND: u64 = 1_000_000_000;

/// The tasks of a group. All of them are ready while the group has work.
struct Load {
    /// The time that each poll of a task takes.
    poll_nanos: u64,
    tasks: VecDeque<u64>,
    /// The part of each second in which the group has work.
    duty: f64,
    executed: u64,
}

/// Runs groups of (shares, number of tasks, nanoseconds of a poll, duty) for ten seconds. Returns
/// the runtime of each group in milliseconds, and its virtual runtime in microseconds a share.
fn run(groups: &[(u32, u64, u64, f64)]) -> Vec<(u64, u64)> {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let keys: Vec<GroupKey> = groups
        .iter()
        .map(|&(shares, concurrency, poll_nanos, duty)| {
            let tasks = (0..concurrency).collect();
            let load = Load {
                poll_nanos,
                tasks,
                duty,
                executed: 0,
            };
            queue.insert(Shares::new(shares).unwrap(), load)
        })
        .collect();
    let mut pick = Pick::Idle;
    while time.get() < 10 * SECOND {
        for &key in &keys {
            let on = (queue.get(key).unwrap().duty * SECOND as f64) as u64;
            if time.get() % SECOND < on {
                queue.activate(key).unwrap();
            } else {
                queue.deactivate(key).unwrap();
            }
        }
        if queue.should_switch() {
            pick = queue.pick();
        }
        let Pick::Run(group) = pick else {
            // No group has work until the next period.
            time.set((time.get() / SECOND + 1) * SECOND);
            continue;
        };
        let load = queue.get_mut(group).unwrap();
        load.tasks.rotate_left(1);
        load.executed += 1;
        time.set(time.get() + load.poll_nanos);
    }
    queue.end_turn();
    let each = keys.iter().map(|&key| {
        let load = queue.get(key).unwrap();
        let runtime = load.executed * load.poll_nanos / 1_000_000;
        assert_eq!(
            queue.metrics(key).unwrap().runtime.as_nanos() as u64 / 1_000_000,
            runtime
        );
        (runtime, queue.vruntime(key).unwrap() / 1000)
    });
    each.collect()
}

fn is_near(value: u64, wanted: u64, percent: u64) -> bool {
    value.abs_diff(wanted) * 100 <= wanted * percent
}

#[test]
fn groups_with_full_duty_run_by_their_shares() {
    let groups = [
        (100, 5, 1_000_000, 1.0),
        (20, 3, 100_000, 1.0),
        (50, 2, 400_000, 1.0),
    ];
    let ran = run(&groups);
    for (&(runtime, _), wanted) in ran.iter().zip([5882, 1176, 2941]) {
        assert!(is_near(runtime, wanted, 2), "{ran:?}");
    }
    let vruntimes = ran.iter().map(|&(_, vruntime)| vruntime);
    let (least, most) = (vruntimes.clone().min().unwrap(), vruntimes.max().unwrap());
    assert!(is_near(most, least, 2), "{ran:?}");
}

#[test]
fn group_with_half_duty_gets_half_of_the_other() {
    let ran = run(&[(50, 5, 1_000_000, 1.0), (100, 4, 1_000_000, 0.5)]);
    let (full, half) = (ran[0].0, ran[1].0);
    assert!((19 * half..=21 * half).contains(&(10 * full)), "{ran:?}");
    assert!(full + half >= 9_800, "{ran:?}");
}
