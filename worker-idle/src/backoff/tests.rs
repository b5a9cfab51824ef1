use super::*;

/// Returns how many of `sleeps` parks have a wait before them. `wins` says whether a wait finds
/// work.
fn waits(backoff: &mut Backoff, sleeps: u32, mut wins: impl FnMut(u32) -> bool) -> u32 {
    let mut waits = 0;
    for _ in 0..sleeps {
        if backoff.is_due() {
            waits += 1;
            if wins(waits) {
                backoff.won();
            } else {
                backoff.lost();
            }
        }
    }
    waits
}

#[test]
fn wait_that_never_pays_happens_once_in_1024_sleeps() {
    let mut backoff = Backoff::new();
    waits(&mut backoff, 10_000, |_| false);
    let later = waits(&mut backoff, 100_000, |_| false);
    assert!((97..=98).contains(&later), "{later}");
}

/// The costs of waits and parks that a test assumes, in nanoseconds.
fn with_costs(wait_cost: u32, park_cost: u32) -> Backoff {
    Backoff {
        wait_cost,
        park_cost,
        ..Backoff::new()
    }
}

#[test]
fn wait_that_costs_less_than_it_saves_always_happens() {
    let mut backoff = with_costs(2_000, 10_000);
    let made = waits(&mut backoff, 10_000, |wait| wait % 3 == 1);
    assert_eq!(made, 10_000 - FIRST + 1);
}

#[test]
fn wait_that_costs_more_than_it_saves_happens_seldom() {
    let mut backoff = with_costs(6_000, 10_000);
    let made = waits(&mut backoff, 10_000, |wait| wait % 3 == 1);
    assert!(made < 300, "{made}");
}

#[test]
fn waits_that_begin_to_pay_happen_before_each_park_soon() {
    let mut backoff = with_costs(6_000, 10_000);
    waits(&mut backoff, 10_000, |_| false);
    waits(&mut backoff, 1_024 + 8, |_| true);
    assert_eq!(waits(&mut backoff, 100, |_| true), 100);
}

#[test]
fn latency_is_worth_50_microseconds_and_power_nothing() {
    let mut backoff = with_costs(6_000, 10_000).with(Wait::Latency);
    let made = waits(&mut backoff, 10_000, |wait| wait % 3 == 1);
    assert_eq!(made, 10_000 - FIRST + 1);
    assert_eq!(waits(&mut backoff.with(Wait::Power), 10_000, |_| true), 0);
}

/// On any machine: a thread that the system has descheduled and woken has run code of the system
/// meanwhile.
#[cfg(unix)]
#[test]
fn parks_that_sleep_cost_processor_time_and_others_do_not() {
    let mut backoff = with_costs(0, 0);
    for _ in 0..MEASURED_PARKS {
        backoff.park(|| std::thread::sleep(Duration::from_millis(1)));
    }
    assert!(backoff.park_cost > 0);
    let before = backoff.park_cost;
    backoff.park_cost = MOST;
    for _ in 0..40 * MEASURED_PARKS {
        backoff.park(|| {});
    }
    assert!(backoff.park_cost < MOST, "{before}");
}

#[test]
fn wait_ends_after_the_worth_of_a_won_wait() {
    let mut backoff = with_costs(0, 1).with(Wait::Adaptive);
    let (mut looks, begun) = (0, Instant::now());
    assert!(!backoff.wait_for(Duration::from_secs(1), || {
        looks += 1;
        false
    }));
    assert!(begun.elapsed() < Duration::from_millis(500) && looks < 10);
}

#[test]
fn late_waits_pause_for_64_to_1024_sleeps_and_are_forgotten() {
    let mut backoff = Backoff::eager();
    assert!(backoff.is_due());
    let late = |backoff: &mut Backoff| {
        assert!(backoff.wait(|| {
            std::thread::sleep(2 * LATE);
            true
        }));
    };
    for pause in [64, 128, 256, 512, 1024, 1024] {
        late(&mut backoff);
        assert_eq!(waits(&mut backoff, pause - 1, |_| true), 0);
        assert!(backoff.is_due());
        // One won wait is not enough.
        backoff.won();
    }
    for _ in 0..2 * FORGETS_LATE {
        backoff.won();
    }
    late(&mut backoff);
    assert_eq!(waits(&mut backoff, 256 - 1, |_| true), 0);
}

#[test]
fn wait_ends_when_work_is_found_or_after_its_looks() {
    for at in [1, 3, LOOKS, LOOKS + 1] {
        let mut looks = 0;
        let found = Backoff::eager().wait(|| {
            looks += 1;
            looks == at
        });
        // A late wait may end after fewer looks.
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
