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

#[test]
fn wait_that_pays_every_third_time_always_happens() {
    let mut backoff = Backoff::new();
    let made = waits(&mut backoff, 10_000, |wait| wait % 3 == 1);
    assert_eq!(made, 10_000 - FIRST + 1);
}

#[test]
fn wait_that_pays_every_eighth_time_happens_seldom() {
    let mut backoff = Backoff::new();
    let made = waits(&mut backoff, 10_000, |wait| wait % 8 == 1);
    assert!(made < 3_000, "{made}");
}

#[test]
fn late_waits_pause_for_32_to_1024_sleeps() {
    let mut backoff = Backoff::eager();
    assert!(backoff.is_due());
    for pause in [32, 64, 128, 256, 512, 1024, 1024] {
        assert!(backoff.wait(|| {
            std::thread::sleep(2 * LATE);
            true
        }));
        assert_eq!(waits(&mut backoff, pause - 1, |_| true), 0);
        assert!(backoff.is_due());
    }
    backoff.won();
    assert_eq!(waits(&mut backoff, 2, |_| true), 2);
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
    assert!(backoff.credit > 0, "it was won");
    assert!(!Backoff::eager().wait_for(Duration::ZERO, || false));
    let mut looks = 0;
    let found = Backoff::eager().wait_for(LATE, || {
        looks += 1;
        looks == 2
    });
    assert!(found && looks == 2 || looks == 1, "{looks}");
}
