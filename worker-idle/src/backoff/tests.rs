use super::*;

/// A thread that parks again and again, and the processor time that its process has used.
struct Parks {
    backoff: Backoff,
    used: Duration,
    waits: u32,
}

impl Parks {
    fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            used: Duration::ZERO,
            waits: 0,
        }
    }

    /// Parks so many times. A wait takes this number of microseconds. `wins` says for the wait with
    /// this number whether it finds work. A park without a won wait takes 20 µs, and its work takes
    /// 10 µs.
    fn run(&mut self, parks: u32, cost: u64, mut wins: impl FnMut(u32) -> bool) -> u32 {
        let before = self.waits;
        for _ in 0..parks {
            let used = self.used;
            self.used += Duration::from_micros(10);
            self.backoff.add_work(1);
            let mut won = false;
            if self.backoff.is_due_at(|| used) {
                self.waits += 1;
                self.used += Duration::from_micros(cost);
                won = wins(self.waits);
                if won {
                    self.backoff.won();
                } else {
                    self.backoff.lost();
                }
            }
            if !won {
                self.used += Duration::from_micros(20);
            }
        }
        self.waits - before
    }
}

/// Parks until a trial or two have ended.
const TRIALS: u32 = 2_000;

#[test]
fn waits_cheaper_than_parks_are_always_made() {
    let mut parks = Parks::new(Backoff::new().with_trials());
    parks.run(TRIALS, 15, |_| true);
    assert_eq!(parks.backoff.state, State::Waiting);
    assert_eq!(parks.run(1_000, 15, |_| true), 1_000);
}

#[test]
fn waits_costlier_than_parks_are_made_in_trials_only() {
    let mut parks = Parks::new(Backoff::new().with_trials());
    parks.run(TRIALS, 25, |_| true);
    assert_eq!(parks.backoff.state, State::Resting);
    // A trial of three pairs has 96 waits, and comes after rests of up to 32,768 parks.
    parks.run(100_000, 25, |_| true);
    let waits = parks.run(10 * 32_960, 25, |_| true);
    assert!((9 * 96..=11 * 96).contains(&waits), "{waits}");
}

#[test]
fn waits_that_cost_as_much_as_parks_are_made() {
    let mut parks = Parks::new(Backoff::new().with_trials());
    parks.run(TRIALS, 20, |_| true);
    assert_eq!(parks.backoff.state, State::Waiting);
}

/// Every other wait is lost, so a wait pays up to 10 µs.
#[test]
fn trial_counts_the_waits_that_are_lost() {
    for (cost, state) in [(6, State::Waiting), (15, State::Resting)] {
        let mut parks = Parks::new(Backoff::new().with_trials());
        parks.run(TRIALS, cost, |wait| wait % 2 == 0);
        assert_eq!(parks.backoff.state, state, "{cost}");
    }
}

#[test]
fn work_in_batches_is_weighed_by_its_pieces() {
    let mut parks = Parks::new(Backoff::new().with_trials());
    // Without waits, each park has two pieces of work at once. So 20 µs and twice 10 µs are less
    // for a piece than the 25 µs with a wait.
    let mut used = Duration::ZERO;
    for _ in 0..TRIALS {
        let now = used;
        if parks.backoff.is_due_at(|| now) {
            parks.backoff.won();
            parks.backoff.add_work(1);
            used += Duration::from_micros(15 + 10);
        } else {
            parks.backoff.add_work(2);
            used += Duration::from_micros(20 + 2 * 10);
        }
    }
    assert_eq!(parks.backoff.state, State::Resting);
}

#[test]
fn load_that_changes_is_noticed_by_the_next_trial() {
    let mut parks = Parks::new(Backoff::new().with_trials());
    parks.run(100_000, 25, |_| true);
    parks.run(32_768 + TRIALS, 15, |_| true);
    assert_eq!(parks.backoff.state, State::Waiting);
    parks.run(WAITING.1 + TRIALS, 25, |_| true);
    assert_eq!(parks.backoff.state, State::Resting);
}

#[test]
fn lost_waits_are_followed_by_pauses_of_up_to_1023_parks() {
    let mut backoff = Backoff::eager();
    let mut left_out = || {
        let mut parks = 0;
        while !backoff.is_due_at(|| Duration::ZERO) {
            parks += 1;
        }
        backoff.state = State::Waiting;
        backoff.left = WAITING.0;
        backoff.lost();
        parks
    };
    let pauses: Vec<u32> = (0..13).map(|_| left_out()).collect();
    assert_eq!(
        pauses,
        [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1023, 1023]
    );
    while !backoff.is_due_at(|| Duration::ZERO) {}
    backoff.won();
    assert!(backoff.is_due_at(|| Duration::ZERO));
}

/// Fails if a late wait ends a trial without a verdict: the next trial then comes soon, and ends
/// in the same way.
#[test]
fn late_wait_in_a_trial_counts_against_waits() {
    let mut parks = Parks::new(Backoff::new().with_trials());
    for rest in [512, 2_048, 8_192, 32_768, 32_768] {
        while !parks.backoff.is_due_at(|| Duration::ZERO) {}
        assert_eq!(parks.backoff.state, State::Trial);
        parks.backoff.late();
        assert_eq!(
            (parks.backoff.state, parks.backoff.left),
            (State::Resting, rest + 1)
        );
    }
}

#[test]
fn rule_that_changes_begins_anew() {
    let mut backoff = Backoff::new().with_trials();
    backoff.rest();
    let mut latency = backoff.with(Wait::Latency);
    assert!(latency.is_due());
    assert!((0..2 * FIRST).all(|_| !latency.with(Wait::Power).is_due()));
    let mut again = latency.with(Wait::Power).with(Wait::Adaptive);
    assert_eq!((0..FIRST).filter(|_| again.is_due()).count(), 1);
    assert_eq!(backoff.with(Wait::Adaptive), backoff);
    let mut paused = Backoff::eager();
    assert!(paused.is_due());
    paused.lost();
    assert!(paused.with(Wait::Latency).is_due());
}

#[test]
fn waits_without_trials_are_made_whatever_they_cost() {
    let mut parks = Parks::new(Backoff::new());
    assert_eq!(parks.run(100_000, 50, |_| true), 100_000 - FIRST + 1);
    // Each lost wait is followed by a longer pause.
    let waits = parks.run(100_000, 50, |_| false);
    assert!((104..110).contains(&waits), "{waits}");
}

#[test]
fn latency_always_waits_and_power_never() {
    let wins = |_| false;
    let mut parks = Parks::new(Backoff::eager().with(Wait::Latency));
    assert_eq!(parks.run(10_000, 40, wins), 10_000);
    let mut parks = Parks::new(Backoff::eager().with(Wait::Power));
    assert_eq!(parks.run(100_000, 0, wins), 0);
}

/// On any machine: a thread that computes uses processor time, and one that sleeps does not.
#[cfg(unix)]
#[test]
fn processor_time_of_the_process_grows_while_a_thread_computes() {
    let before = process_time::now();
    let begun = Instant::now();
    while process_time::now() == before {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn thread_that_parks_fifteen_times_makes_no_wait() {
    let mut parks = Parks::new(Backoff::new().with_trials());
    assert_eq!(parks.run(FIRST - 1, 0, |_| true), 0);
    assert_eq!(parks.run(1, 0, |_| true), 1);
}

#[test]
fn wait_ends_after_50_microseconds() {
    let (mut looks, begun) = (0, Instant::now());
    assert!(!Backoff::eager().wait_for(Duration::from_secs(1), || {
        looks += 1;
        std::thread::sleep(Duration::from_micros(60));
        false
    }));
    assert!(begun.elapsed() < Duration::from_millis(500) && looks <= 2);
}

#[test]
fn late_waits_pause_for_64_to_1024_parks_and_are_forgotten() {
    let mut backoff = Backoff::eager();
    assert!(backoff.is_due());
    let late = |backoff: &mut Backoff| {
        assert!(backoff.wait(|| {
            std::thread::sleep(2 * LATE);
            true
        }));
    };
    let rests = |backoff: &mut Backoff, parks: u32| {
        assert!((0..parks).all(|_| !backoff.is_due()));
        assert!(backoff.is_due());
    };
    for rest in [64, 128, 256, 512, 1024, 1024] {
        late(&mut backoff);
        rests(&mut backoff, rest);
        // One won wait is not enough.
        backoff.won();
    }
    for _ in 0..2 * FORGETS_LATE {
        backoff.won();
    }
    late(&mut backoff);
    rests(&mut backoff, 256);
}

#[test]
fn wait_ends_when_work_is_found_or_after_its_looks() {
    for at in [1, 3, LOOKS, LOOKS + 1] {
        let mut looks = 0;
        let found = Backoff::eager().wait(|| {
            looks += 1;
            looks == at
        });
        // A late wait may end after fewer looks, as may one that takes 50 µs.
        assert!(looks <= at.min(LOOKS));
        assert_eq!(found, looks == at);
    }
}

#[test]
fn wait_for_a_time_looks_at_once_and_ends_when_work_is_found() {
    let mut backoff = Backoff::eager();
    assert!(backoff.is_due());
    let mut looks = 0;
    assert!(backoff.wait_for(Duration::ZERO, || {
        looks += 1;
        true
    }));
    assert_eq!(looks, 1);
    assert_eq!(backoff.won_in_a_row, 1);
    assert!(!Backoff::eager().wait_for(Duration::ZERO, || false));
    let mut looks = 0;
    let found = Backoff::eager().wait_for(LATE, || {
        looks += 1;
        looks == 2
    });
    assert!(found && looks == 2 || looks == 1, "{looks}");
}
